// SPDX-License-Identifier: Apache-2.0
package pyflamert;

import java.util.List;

/**
 * Describes an input or an output of a session.
 *
 * @param name what runs take
 * @param kind what it is; all but tensors have no form in Java: leave them out of a run
 * @param type the type of its elements; null where the model or this package does not know it
 * @param shape the dimensions, -1 where one may have any size; null where the model does not say how many there are
 * @param dimNames the names of dimensions, "" where one has none; as long as shape
 * @param optional whether an input has a default value, and need not be given
 */
public record ValueInfo(String name, Kind kind, ElementType type, List<Long> shape, List<String> dimNames,
        boolean optional) {
    /** What an input or output is, in the order of the C header's PFRT_VALUE_ constants. */
    public enum Kind {
        /** The model does not say. */
        UNSET,
        /** Elements of one type in a shape. */
        TENSOR,
        /** A list of values. */
        SEQUENCE,
        /** Keys and values. */
        MAP,
        /** A value or none. */
        OPTIONAL,
        /** A tensor of which only some elements are kept. */
        SPARSE;

        static Kind of(int number) {
            return number >= 0 && number < values().length ? values()[number] : UNSET;
        }
    }
}

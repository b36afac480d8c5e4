// SPDX-License-Identifier: Apache-2.0
package pyflamert;

/** The kind of an error, in the order of the C header's PFRT_CODE_ constants; their numbers are the ordinals. */
public enum Code {
    /** Success, which no exception has. */
    OK,
    /** A caller's mistake. */
    INVALID_ARGUMENT,
    /** A missing, unknown or repeated input or output. */
    INPUT,
    /** A tensor has another shape than is wanted. */
    SHAPE_MISMATCH,
    /** A tensor has another element type than is wanted. */
    DTYPE_MISMATCH,
    /** A file, provider, name or key is not there. */
    NOT_FOUND,
    /** A file of a model is malformed or truncated. */
    INVALID_MODEL,
    /** A file is none that the library reads. */
    UNSUPPORTED_FORMAT,
    /** No provider runs some of the model's nodes. */
    UNSUPPORTED_OPERATOR,
    /** A graph is not valid; the exception's faults has them one by one. */
    VALIDATION,
    /** Known, but not available here. */
    UNSUPPORTED,
    /** A provider failed. */
    PROVIDER,
    /** A plug-in was rejected. */
    PLUGIN,
    /** The run was cancelled. */
    CANCELLED,
    /** The run took longer than its timeout. */
    DEADLINE,
    /** Memory did not suffice, or a limit of it. */
    OUT_OF_MEMORY,
    /** A file changed or failed while it was in use. */
    DATA_LOSS,
    /** A device is gone. */
    DEVICE_LOST,
    /** Reading or writing failed. */
    IO,
    /** A fault of the library. */
    INTERNAL,
    /** In use, or full: later it will do. */
    BUSY;

    /** Codes of newer libraries count as INTERNAL. */
    static Code of(int number) {
        return number >= 0 && number < values().length ? values()[number] : INTERNAL;
    }
}

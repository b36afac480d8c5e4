// SPDX-License-Identifier: Apache-2.0
package pyflamert;

/**
 * The type of a tensor's elements, and the array that has them in Java. Types without an array occur in descriptions
 * alone.
 */
public enum ElementType {
    /** Elements are in a float[]. */
    FLOAT32(1, float[].class),
    /** Elements are in a byte[], to be read with Byte.toUnsignedInt. */
    UINT8(2, byte[].class),
    /** Elements are in a byte[]. */
    INT8(3, byte[].class),
    /** Elements are in a short[], to be read with Short.toUnsignedInt. */
    UINT16(4, short[].class),
    /** Elements are in a short[]. */
    INT16(5, short[].class),
    /** Elements are in an int[]. */
    INT32(6, int[].class),
    /** Elements are in a long[]. */
    INT64(7, long[].class),
    /** Elements are in a String[]. */
    STRING(8, String[].class),
    /** Elements are in a boolean[]. */
    BOOL(9, boolean[].class),
    /** Elements are in a short[], as the bits of half-precision numbers. */
    FLOAT16(10, short[].class),
    /** Elements are in a double[]. */
    FLOAT64(11, double[].class),
    /** Elements are in an int[], to be read with Integer.toUnsignedLong. */
    UINT32(12, int[].class),
    /** Elements are in a long[], to be read with Long.toUnsignedString and the like. */
    UINT64(13, long[].class),
    /** Has no array. */
    COMPLEX64(14, null),
    /** Has no array. */
    COMPLEX128(15, null),
    /** Elements are in a short[], as the upper halves of floats' bits. */
    BFLOAT16(16, short[].class),
    /** Has no array. */
    FLOAT8E4M3FN(17, null),
    /** Has no array. */
    FLOAT8E4M3FNUZ(18, null),
    /** Has no array. */
    FLOAT8E5M2(19, null),
    /** Has no array. */
    FLOAT8E5M2FNUZ(20, null),
    /** Has no array. */
    UINT4(21, null),
    /** Has no array. */
    INT4(22, null),
    /** Has no array. */
    FLOAT4E2M1(23, null),
    /** Has no array. */
    FLOAT8E8M0(24, null),
    /** Has no array. */
    UINT2(25, null),
    /** Has no array. */
    INT2(26, null);

    final int number;
    final Class<?> array;

    ElementType(int number, Class<?> array) {
        this.number = number;
        this.array = array;
    }

    /** Null for 0, and for types of newer libraries. */
    static ElementType of(int number) {
        return number >= 1 && number <= values().length ? values()[number - 1] : null;
    }
}

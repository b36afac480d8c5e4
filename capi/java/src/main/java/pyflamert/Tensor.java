// SPDX-License-Identifier: Apache-2.0
package pyflamert;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import java.lang.reflect.Array;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * A dense tensor over an array of Java's, row-major. It is a view: whoever writes to the array writes to the tensor. Runs
 * copy the arrays of inputs while they are called, and give outputs with arrays of their own.
 */
public final class Tensor {
    private final ElementType type;
    private final long[] shape;
    private final Object data;

    private Tensor(ElementType type, Object data, long[] shape) {
        this.type = type;
        this.data = data;
        this.shape = shape;
    }

    /**
     * A tensor over an array of any type that an ElementType names, as short[] for FLOAT16.
     *
     * @param type the type of the elements
     * @param data the array, as ElementType says
     * @param shape the dimensions, whose product is the length of the array; none for a scalar
     * @throws PyFlameRTException DTYPE_MISMATCH where the array is another, SHAPE_MISMATCH where its length is
     */
    public static Tensor of(ElementType type, Object data, long... shape) {
        if (type.array == null || data == null || data.getClass() != type.array) {
            throw new PyFlameRTException(Code.DTYPE_MISMATCH, "making a tensor of " + type + ": the data are "
                    + (data == null ? "null" : data.getClass().getSimpleName()) + "; "
                    + (type.array == null ? "no array of Java's has such elements"
                            : "give a " + type.array.getSimpleName()));
        }
        if (data instanceof String[] texts && Arrays.asList(texts).contains(null)) {
            throw new PyFlameRTException(Code.INVALID_ARGUMENT, "making a tensor of STRING: a text is null; give \"\"");
        }
        int length = Array.getLength(data);
        if (count(shape) != length) {
            throw new PyFlameRTException(Code.SHAPE_MISMATCH, "making a tensor: shape " + Arrays.toString(shape)
                    + " does not have " + length + " elements, as the data have; give as many as the shape has");
        }
        return new Tensor(type, data, shape.clone());
    }

    /** A tensor of FLOAT32. */
    public static Tensor of(float[] data, long... shape) {
        return of(ElementType.FLOAT32, data, shape);
    }

    /** A tensor of FLOAT64. */
    public static Tensor of(double[] data, long... shape) {
        return of(ElementType.FLOAT64, data, shape);
    }

    /** A tensor of INT8. */
    public static Tensor of(byte[] data, long... shape) {
        return of(ElementType.INT8, data, shape);
    }

    /** A tensor of INT16. */
    public static Tensor of(short[] data, long... shape) {
        return of(ElementType.INT16, data, shape);
    }

    /** A tensor of INT32. */
    public static Tensor of(int[] data, long... shape) {
        return of(ElementType.INT32, data, shape);
    }

    /** A tensor of INT64. */
    public static Tensor of(long[] data, long... shape) {
        return of(ElementType.INT64, data, shape);
    }

    /** A tensor of BOOL. */
    public static Tensor of(boolean[] data, long... shape) {
        return of(ElementType.BOOL, data, shape);
    }

    /** A tensor of STRING. */
    public static Tensor of(String[] data, long... shape) {
        return of(ElementType.STRING, data, shape);
    }

    /** The type of the elements. */
    public ElementType type() {
        return type;
    }

    /** The dimensions; none for a scalar. */
    public long[] shape() {
        return shape.clone();
    }

    /** The array, of the class that type() has. */
    public Object data() {
        return data;
    }

    /** The array of a tensor of FLOAT32; of others DTYPE_MISMATCH, here and in the methods that follow. */
    public float[] floats() {
        return as(float[].class);
    }

    /** The array of a tensor of FLOAT64. */
    public double[] doubles() {
        return as(double[].class);
    }

    /** The array of a tensor of INT8 or UINT8. */
    public byte[] bytes() {
        return as(byte[].class);
    }

    /** The array of a tensor of INT16, UINT16, FLOAT16 or BFLOAT16. */
    public short[] shorts() {
        return as(short[].class);
    }

    /** The array of a tensor of INT32 or UINT32. */
    public int[] ints() {
        return as(int[].class);
    }

    /** The array of a tensor of INT64 or UINT64. */
    public long[] longs() {
        return as(long[].class);
    }

    /** The array of a tensor of BOOL. */
    public boolean[] booleans() {
        return as(boolean[].class);
    }

    /** The array of a tensor of STRING. */
    public String[] strings() {
        return as(String[].class);
    }

    private <T> T as(Class<T> array) {
        if (!array.isInstance(data)) {
            throw new PyFlameRTException(Code.DTYPE_MISMATCH, "reading a tensor as " + array.getSimpleName()
                    + ": its elements are " + type + ", in a " + type.array.getSimpleName());
        }
        return array.cast(data);
    }

    /** The product of the dimensions; -1 where it is larger than an array may be, or one is negative. */
    private static int count(long[] shape) {
        long count = 1;
        for (long dim : shape) {
            if (dim == 0) {
                count = 0;
            } else if (dim < 0 || count > Integer.MAX_VALUE / dim) {
                return -1;
            }
            count *= dim;
        }
        return (int) count;
    }

    /** A value of the library's with a copy of the elements; the caller's to release. */
    Pointer toValue(Library library) {
        try (Memory dims = new Memory(8L * shape.length + 1)) {
            dims.write(0, shape, 0, shape.length);
            long rank = shape.length;
            if (data instanceof String[] texts) {
                return stringValue(library, texts, dims, rank);
            }
            Pointer value = library.make(library.value, "create_tensor", type.number, dims, rank);
            try (Memory view = view(library, value)) {
                write(view.getPointer(Abi.TENSOR.at("data")));
                return value;
            } catch (RuntimeException error) {
                library.value.call("release", value);
                throw error;
            }
        }
    }

    /** A copy of the value that a run gave as the output of that name. */
    static Tensor fromValue(Library library, String name, Pointer value) {
        ValueInfo.Kind kind = ValueInfo.Kind.of(library.value.number("kind", value));
        if (kind != ValueInfo.Kind.TENSOR) {
            throw withoutForm(name, "is of kind " + kind + ", which has no form in Java");
        }
        try (Memory view = view(library, value)) {
            int number = view.getInt(Abi.TENSOR.at("dtype"));
            ElementType type = ElementType.of(number);
            if (type == null || type.array == null) {
                throw withoutForm(name, "has elements of type " + (type == null ? number : type)
                        + ", for which Java has no array");
            }
            int rank = view.getInt(Abi.TENSOR.at("rank"));
            long[] shape = rank == 0 ? new long[0] : view.getPointer(Abi.TENSOR.at("dims")).getLongArray(0, rank);
            int count = count(shape);
            if (count < 0) {
                throw withoutForm(name, "has more elements than an array of Java's: " + Arrays.toString(shape));
            }
            Object data = type == ElementType.STRING ? readStrings(library, name, value, count)
                    : read(type.array, view.getPointer(Abi.TENSOR.at("data")), count);
            return new Tensor(type, data, shape);
        }
    }

    private static PyFlameRTException withoutForm(String name, String what) {
        return new PyFlameRTException(Code.UNSUPPORTED, "running: output '" + name + "' " + what
                + "; name the others in RunOptions.outputs");
    }

    private static Memory view(Library library, Pointer value) {
        Memory view = new Memory(Abi.TENSOR.size());
        view.clear();
        view.setInt(0, Abi.TENSOR.size());
        library.check(library.value.pointer("tensor", value, view));
        return view;
    }

    private void write(Pointer to) {
        int length = Array.getLength(data);
        if (length == 0) {
            return;
        }
        if (data instanceof float[] array) {
            to.write(0, array, 0, length);
        } else if (data instanceof double[] array) {
            to.write(0, array, 0, length);
        } else if (data instanceof byte[] array) {
            to.write(0, array, 0, length);
        } else if (data instanceof short[] array) {
            to.write(0, array, 0, length);
        } else if (data instanceof int[] array) {
            to.write(0, array, 0, length);
        } else if (data instanceof long[] array) {
            to.write(0, array, 0, length);
        } else {
            boolean[] booleans = (boolean[]) data;
            byte[] bytes = new byte[length];
            for (int i = 0; i < length; ++i) {
                bytes[i] = (byte) (booleans[i] ? 1 : 0);
            }
            to.write(0, bytes, 0, length);
        }
    }

    private static Object read(Class<?> array, Pointer from, int count) {
        if (count == 0) {
            return Array.newInstance(array.getComponentType(), 0);
        } else if (array == float[].class) {
            return from.getFloatArray(0, count);
        } else if (array == double[].class) {
            return from.getDoubleArray(0, count);
        } else if (array == byte[].class) {
            return from.getByteArray(0, count);
        } else if (array == short[].class) {
            return from.getShortArray(0, count);
        } else if (array == int[].class) {
            return from.getIntArray(0, count);
        } else if (array == long[].class) {
            return from.getLongArray(0, count);
        }
        byte[] bytes = from.getByteArray(0, count);
        boolean[] booleans = new boolean[count];
        for (int i = 0; i < count; ++i) {
            booleans[i] = bytes[i] != 0;
        }
        return booleans;
    }

    /** Texts cross over one behind another, with the place where each ends. */
    private static Pointer stringValue(Library library, String[] texts, Memory dims, long rank) {
        byte[][] parts = new byte[texts.length][];
        long[] ends = new long[texts.length];
        long end = 0;
        for (int i = 0; i < texts.length; ++i) {
            parts[i] = texts[i].getBytes(StandardCharsets.UTF_8);
            end += parts[i].length;
            ends[i] = end;
        }
        try (Memory joined = new Memory(end + 1); Memory places = new Memory(8L * ends.length + 1)) {
            places.write(0, ends, 0, ends.length);
            for (int i = 0; i < parts.length; ++i) {
                joined.write(ends[i] - parts[i].length, parts[i], 0, parts[i].length);
            }
            return library.make(library.value, "create_strings", dims, rank, joined, end, places);
        }
    }

    private static String[] readStrings(Library library, String name, Pointer value, int count) {
        try (Memory size = new Memory(8); Memory places = new Memory(8L * count + 1)) {
            library.check(library.value.pointer("strings", value, null, 0L, size, places));
            long bytes = size.getLong(0);
            try (Memory joined = new Memory(bytes + 1)) {
                library.check(library.value.pointer("strings", value, joined, bytes, size, places));
                String[] texts = new String[count];
                long start = 0;
                for (int i = 0; i < count; ++i) {
                    long end = places.getLong(8L * i);
                    ByteBuffer part = ByteBuffer.wrap(joined.getByteArray(start, (int) (end - start)));
                    texts[i] = StandardCharsets.UTF_8.newDecoder().decode(part).toString();
                    start = end;
                }
                return texts;
            }
        } catch (CharacterCodingException error) {
            throw withoutForm(name, "has a text that is no UTF-8, which a String cannot hold");
        }
    }

    /** The type and shape, as in "FLOAT32 [1, 10]". */
    @Override
    public String toString() {
        return type + " " + Arrays.toString(shape);
    }
}

// SPDX-License-Identifier: Apache-2.0
import com.sun.jna.Function;
import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import com.sun.jna.Structure;
import com.sun.jna.Structure.FieldOrder;
import com.sun.jna.ptr.PointerByReference;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;

/**
 * Classifies handwritten digits through the C ABI, by JNA: prints the class of the first held-out image and its
 * probability, then how many of all are right. Argument: the folder with digits.onnx and digits_test.bin. The library
 * is the file that PYFLAME_RT_LIBRARY names, else the system's libpyflamert_c.so.
 */
public final class Digits {
    /** Version 2.0 of include/pyflame_rt, whose functions every library of major version 2 has. */
    private static final int ABI = 2 << 16;
    private static final int FLOAT32 = 1;
    private static final int PIXELS = 64;
    private static final int CLASSES = 10;

    /** An error of the library or of the files, with a message for people. */
    private static final class Failure extends Exception {
        Failure(String message) {
            super(message);
        }
    }

    // ---- structs of include/pyflame_rt ----

    @FieldOrder({"data", "size"})
    public static class Text extends Structure {
        public Pointer data;
        public long size;

        public static final class ByValue extends Text implements Structure.ByValue {}

        static ByValue of(String words) {
            byte[] bytes = words.getBytes(StandardCharsets.UTF_8);
            ByValue text = new ByValue();
            text.data = new Memory(bytes.length + 1L);
            text.data.write(0, bytes, 0, bytes.length);
            text.size = bytes.length;
            return text;
        }

        String words() {
            return size == 0 ? "" : new String(data.getByteArray(0, (int) size), StandardCharsets.UTF_8);
        }
    }

    @FieldOrder({"struct_size", "abi", "version", "message"})
    public static class AbiInfo extends Structure {
        public int struct_size = size();
        public int abi;
        public Text version;
        public Text message;
    }

    @FieldOrder({"struct_size", "reserved", "model", "options", "extra_outputs", "extra_output_count", "samples",
            "sample_count", "sample_source", "log", "log_user", "log_release"})
    public static class SessionDesc extends Structure {
        public int struct_size = size();
        public int reserved;
        public Pointer model;
        public Pointer options;
        public Pointer extra_outputs;
        public long extra_output_count;
        public Pointer samples;
        public long sample_count;
        public Pointer sample_source;
        public Pointer log;
        public Pointer log_user;
        public Pointer log_release;
    }

    @FieldOrder({"struct_size", "dtype", "rank", "memory", "data", "offset", "bytes", "dims", "strides", "quantization",
            "extension", "device", "reserved"})
    public static class Tensor extends Structure {
        public int struct_size = size();
        public int dtype;
        public int rank;
        public int memory;
        public Pointer data;
        public long offset;
        public long bytes;
        public Pointer dims;
        public Pointer strides;
        public Pointer quantization;
        public Pointer extension;
        public int device;
        public int reserved;
    }

    @FieldOrder({"struct_size", "reserved", "flags", "tensor", "value"})
    public static class Io extends Structure {
        public int struct_size = size();
        public int reserved;
        public long flags;
        public Tensor tensor;
        public Pointer value;
    }

    // ---- tables ----

    /** A table: its size and ABI in 32 bits each, then pointers. Slot numbers count these. */
    private record Table(String name, Pointer address) {
        Pointer at(int slot) throws Failure {
            long needed = 8 + 8L * (slot + 1);
            long has = address == null ? 0 : Integer.toUnsignedLong(address.getInt(0));
            if (has < needed) {
                throw new Failure("the library's table '" + name + "' has " + has + " bytes, " + needed
                        + " are needed: it is not a PyFlameRT library of ABI 2");
            }
            return address.getPointer(needed - 8);
        }

        Table area(String area, int slot) throws Failure {
            return new Table(area, at(slot));
        }

        Function function(int slot) throws Failure {
            return Function.getFunction(at(slot));
        }
    }

    /** A session on a model file; not to be used by two threads at once, as its buffers are shared by all runs. */
    private static final class Session implements AutoCloseable {
        private final Function statusMessage;
        private final Function statusRelease;
        private final Function release;
        private final Function run;
        private final Pointer handle;
        private final Memory image = new Memory(PIXELS * 4L);
        private final Memory dims = new Memory(4 * 8L);
        private final Memory probabilities = new Memory(CLASSES * 4L);
        private final Io input = new Io();
        private final Io output = new Io();

        Session(String path) throws Failure {
            Table api = api();
            Table status = api.area("status", 0);
            Table env = api.area("env", 2);
            Table model = api.area("model", 5);
            Table session = api.area("session", 6);
            statusMessage = status.function(1);
            statusRelease = status.function(4);
            release = session.function(2);
            run = session.function(9);
            Function releaseModel = model.function(4);
            Function releaseEnv = env.function(2);

            PointerByReference newEnv = new PointerByReference();
            PointerByReference newModel = new PointerByReference();
            PointerByReference newSession = new PointerByReference();
            try {
                check(env.function(0), null, newEnv);
                Text.ByValue text = Text.of(path);
                check(model.function(0), newEnv.getValue(), text, null, newModel);
                SessionDesc desc = new SessionDesc();
                desc.model = newModel.getValue();
                check(session.function(0), newEnv.getValue(), desc, newSession);
            } finally { // the session keeps what it needs
                releaseModel.invokeVoid(new Object[] {newModel.getValue()});
                releaseEnv.invokeVoid(new Object[] {newEnv.getValue()});
            }
            handle = newSession.getValue();

            dims.write(0, new long[] {1, 1, 8, 8}, 0, 4);
            input.tensor.rank = 4;
            input.tensor.dims = dims;
            view(input, image);
            view(output, probabilities);
        }

        private static Table api() throws Failure {
            String named = System.getenv("PYFLAME_RT_LIBRARY");
            String path = named != null ? named : "libpyflamert_c.so";
            AbiInfo info = new AbiInfo();
            Pointer api;
            try {
                Function get = NativeLibrary.getInstance(path).getFunction("pfrt_get_api");
                api = get.invokePointer(new Object[] {ABI, info});
            } catch (UnsatisfiedLinkError error) {
                throw new Failure("opening " + path + ": " + error.getMessage().lines().findFirst().orElse("")
                        + "; PYFLAME_RT_LIBRARY names the file");
            }
            if (api == null) {
                throw new Failure(path + ": " + info.message.words());
            }
            return new Table("api", api);
        }

        private static void view(Io io, Memory memory) {
            io.tensor.dtype = FLOAT32;
            io.tensor.data = memory;
            io.tensor.bytes = memory.size();
        }

        private void check(Function function, Object... arguments) throws Failure {
            Pointer status = function.invokePointer(arguments);
            if (status == null) {
                return;
            }
            Object[] argument = {status};
            String message = ((Text) statusMessage.invoke(Text.ByValue.class, argument)).words();
            statusRelease.invokeVoid(argument);
            throw new Failure(message);
        }

        float[] classify(byte[] pixels) throws Failure {
            for (int p = 0; p < PIXELS; ++p) {
                image.setFloat(4L * p, pixels[p] / 16.0f);
            }
            check(run, handle, input, 1L, output, 1L, null);
            return probabilities.getFloatArray(0, CLASSES);
        }

        @Override
        public void close() {
            release.invokeVoid(new Object[] {handle});
        }
    }

    private record Digit(int label, byte[] pixels) {}

    /** The layout is described in samples/digits/train.py. */
    private static Digit[] readDigits(Path path) throws Failure {
        byte[] content;
        try {
            content = Files.readAllBytes(path);
        } catch (IOException error) {
            throw new Failure(path + " cannot be opened (" + error.getClass().getSimpleName()
                    + "); the argument is the folder of the digits");
        }
        ByteBuffer file = ByteBuffer.wrap(content).order(ByteOrder.LITTLE_ENDIAN);
        byte[] magic = "PFRTDIG1".getBytes(StandardCharsets.US_ASCII);
        if (content.length < 20 || !Arrays.equals(content, 0, 8, magic, 0, 8) || file.getInt(8) <= 0
                || file.getInt(12) != 8 || file.getInt(16) != 8) {
            throw new Failure(path + " is not a file of 8x8 digits");
        }
        int count = file.getInt(8);
        if (content.length - 20 < count * (1L + PIXELS)) {
            throw new Failure(path + " is truncated");
        }
        Digit[] digits = new Digit[count];
        file.position(20);
        for (int i = 0; i < count; ++i) {
            digits[i] = new Digit(file.get(), new byte[PIXELS]);
            file.get(digits[i].pixels);
        }
        return digits;
    }

    private static void work(String folder) throws Failure {
        Digit[] digits = readDigits(Path.of(folder, "digits_test.bin"));
        int right = 0;
        try (Session session = new Session(folder + "/digits.onnx")) {
            for (int i = 0; i < digits.length; ++i) {
                float[] probabilities = session.classify(digits[i].pixels);
                int best = 0;
                for (int c = 1; c < CLASSES; ++c) {
                    best = probabilities[c] > probabilities[best] ? c : best;
                }
                if (i == 0) {
                    print("the first image is a %d with probability %.6f%n", best, probabilities[best]);
                }
                right += best == digits[i].label ? 1 : 0;
            }
        }
        print("%d of %d held-out images are right%n", right, digits.length);
        print("accuracy %.1f %%%n", 100.0 * right / digits.length);
    }

    private static void print(String format, Object... values) {
        System.out.print(String.format(Locale.ROOT, format, values));
    }

    public static void main(String[] arguments) {
        try {
            work(arguments.length > 0 ? arguments[0] : ".");
        } catch (Failure failure) {
            System.err.println("digits: " + failure.getMessage());
            System.exit(1);
        }
    }
}

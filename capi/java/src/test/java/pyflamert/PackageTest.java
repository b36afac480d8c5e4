// SPDX-License-Identifier: Apache-2.0
package pyflamert;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.reflect.Array;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;

/**
 * Tests of the package, on the digits model and on models of one node that are written here. It needs no framework:
 * main runs all tests, or those whose names are given, and exits with 1 where one fails.
 */
public final class PackageTest {
    private static final String MISSING = "/no/such/libpyflamert_c.so";

    private interface Test {
        void run() throws Exception;
    }

    // ---- what tests use ----

    static void check(boolean right, String otherwise) {
        if (!right) {
            throw new AssertionError(otherwise);
        }
    }

    private static void same(Object found, Object expected) {
        check(Arrays.deepEquals(new Object[] {found}, new Object[] {expected}),
                Arrays.deepToString(new Object[] {found}) + " is not " + Arrays.deepToString(new Object[] {expected}));
    }

    /** Expects an exception with the code and the words in its message. */
    private static void fails(Code code, Test test, String... words) throws Exception {
        try {
            test.run();
        } catch (PyFlameRTException error) {
            check(error.code() == code, error.code() + " in place of " + code + ": " + error.getMessage());
            for (String word : words) {
                check(error.getMessage().contains(word), "'" + word + "' is not in: " + error.getMessage());
            }
            return;
        }
        throw new AssertionError("nothing failed, where " + code + " was expected");
    }

    /** The tree that this package is part of: the first folder up from here with the C header in it. */
    static Path root() {
        Path folder = Path.of("").toAbsolutePath();
        while (!Files.exists(folder.resolve("include/pyflame_rt/pyflame_rt.h"))) {
            folder = folder.getParent();
            check(folder != null, "the test has to run inside of the source tree");
        }
        return folder;
    }

    private static String digits() {
        return root().resolve("samples/digits/digits.onnx").toString();
    }

    /** Bytes one after the other: numbers, texts and byte[]. */
    private static byte[] bytes(Object... parts) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (Object part : parts) {
            if (part instanceof Integer number) {
                all.write(number);
            } else {
                all.writeBytes(part instanceof byte[] array ? array : ((String) part).getBytes(StandardCharsets.UTF_8));
            }
        }
        return all.toByteArray();
    }

    /** A field of a protobuf message that is shorter than 128 bytes. */
    private static byte[] field(int number, Object... parts) {
        byte[] content = bytes(parts);
        return bytes(number << 3 | 2, content.length, content);
    }

    /** An ONNX model y = Identity(x); the dimensions are an encoded shape. */
    private static byte[] identity(ElementType type, byte[] dims) {
        byte[] tensor = field(2, field(1, 1 << 3, type.number, field(2, dims)));
        byte[] node = bytes(field(1, "x"), field(2, "y"), field(4, "Identity"));
        byte[] graph = bytes(field(1, node), field(2, "g"), field(11, field(1, "x"), tensor),
                field(12, field(1, "y"), tensor));
        return bytes(1 << 3, 8, field(7, graph), field(8, 2 << 3, 17));
    }

    /** A model of a sequence y = [x] and a tensor z = x + c, where c is 2 unless it is given. */
    private static byte[] withSequenceAndDefault() {
        byte[] tensor = bytes(1 << 3, ElementType.FLOAT32.number);
        byte[] sequence = bytes(field(1, "x"), field(2, "y"), field(4, "SequenceConstruct"));
        byte[] sum = bytes(field(1, "x"), field(1, "c"), field(2, "z"), field(4, "Add"));
        byte[] two = bytes(2 << 3, ElementType.FLOAT32.number, field(8, "c"), field(9, 0, 0, 0, 0x40));
        byte[] graph = bytes(field(1, sequence), field(1, sum), field(2, "g"), field(5, two),
                field(11, field(1, "x"), field(2, field(1, tensor))), field(11, field(1, "c"), field(2, field(1, tensor))),
                field(12, field(1, "y"), field(2, field(4, field(1, field(1, tensor))))),
                field(12, field(1, "z"), field(2, field(1, tensor))));
        return bytes(1 << 3, 8, field(7, graph), field(8, 2 << 3, 17));
    }

    /** The shape of one dimension n. */
    private static byte[] anyLength() {
        return field(1, field(2, "n"));
    }

    private static Session open(ElementType type) {
        return Session.load(identity(type, anyLength()), Map.of());
    }

    private static Map<String, Tensor> image() {
        return Map.of("image", Tensor.of(new float[64], 1, 1, 8, 8));
    }

    /** How many of the held-out digits the session gets right. */
    private static int countRight(Session session) throws IOException {
        byte[] file = Files.readAllBytes(root().resolve("samples/digits/digits_test.bin"));
        int right = 0;
        for (int at = 20; at + 65 <= file.length; at += 65) {
            float[] image = new float[64];
            for (int p = 0; p < 64; ++p) {
                image[p] = file[at + 1 + p] / 16.0f;
            }
            Tensor result = session.run(Map.of("image", Tensor.of(image, 1, 1, 8, 8))).get("probabilities");
            same(result.shape(), new long[] {1, 10});
            float[] probabilities = result.floats();
            int best = 0;
            for (int c = 1; c < 10; ++c) {
                best = probabilities[c] > probabilities[best] ? c : best;
            }
            right += best == file[at] ? 1 : 0;
        }
        return right;
    }

    // ---- tests ----

    private static void digitsAreClassified() throws Exception {
        try (Session session = Session.load(digits())) {
            same(countRight(session), 291);
        }
    }

    private static void threadsShareASession() throws Exception {
        try (Session session = Session.load(digits(), Map.of("num_threads", "1"))) {
            CompletableFuture<Integer> other = CompletableFuture.supplyAsync(() -> {
                try {
                    return countRight(session);
                } catch (IOException error) {
                    throw new IllegalStateException(error);
                }
            });
            same(countRight(session), 291);
            same(other.get(), 291);
        }
    }

    private static void inputsAndOutputsAreListed() {
        try (Session session = Session.load(digits()); Session any = open(ElementType.INT8)) {
            ValueInfo image = session.inputs().get(0);
            same(session.inputs().size(), 1);
            same(image.name(), "image");
            same(image.kind(), ValueInfo.Kind.TENSOR);
            same(image.type(), ElementType.FLOAT32);
            same(image.shape(), List.of(-1L, 1L, 8L, 8L));
            same(image.optional(), false);
            same(session.outputs().stream().map(ValueInfo::name).toList(), List.of("probabilities"));
            same(any.outputs().get(0), new ValueInfo("y", ValueInfo.Kind.TENSOR, ElementType.INT8, List.of(-1L),
                    List.of("n"), false));
        }
    }

    private static void elementsOfEveryTypeComeAndGo() {
        Map<ElementType, Object> all = Map.ofEntries(
                Map.entry(ElementType.FLOAT32, new float[] {1.5f, -2}),
                Map.entry(ElementType.FLOAT64, new double[] {1e300, -0.0}),
                Map.entry(ElementType.INT8, new byte[] {-128, 127}),
                Map.entry(ElementType.UINT8, new byte[] {1, (byte) 255}),
                Map.entry(ElementType.INT16, new short[] {-32768, 32767}),
                Map.entry(ElementType.UINT16, new short[] {1, (short) 65535}),
                Map.entry(ElementType.INT32, new int[] {Integer.MIN_VALUE, 7}),
                Map.entry(ElementType.UINT32, new int[] {1, -1}),
                Map.entry(ElementType.INT64, new long[] {Long.MIN_VALUE, 7}),
                Map.entry(ElementType.UINT64, new long[] {1, -1}),
                Map.entry(ElementType.BOOL, new boolean[] {true, false, true}),
                Map.entry(ElementType.FLOAT16, new short[] {0x3c00, 0x7bff}),
                Map.entry(ElementType.BFLOAT16, new short[] {0x3f80, (short) 0xc000}),
                Map.entry(ElementType.STRING, new String[] {"é", "", "a\0b", "日本", "long ".repeat(1000)}));
        for (ElementType type : ElementType.values()) {
            same(all.containsKey(type), type.array != null);
        }
        all.forEach((type, data) -> {
            try (Session session = open(type); Session scalar = Session.load(identity(type, bytes()), Map.of())) {
                same(session.outputs().get(0).type(), type);
                for (int n : new int[] {Array.getLength(data), 0, 1}) {
                    comesAndGoes(session, type, head(data, n), n);
                }
                comesAndGoes(scalar, type, head(data, 1));
            }
        });
    }

    private static Object head(Object data, int n) {
        Object part = Array.newInstance(data.getClass().getComponentType(), n);
        System.arraycopy(data, 0, part, 0, n);
        return part;
    }

    private static void comesAndGoes(Session session, ElementType type, Object data, long... shape) {
        Tensor y = session.run(Map.of("x", Tensor.of(type, data, shape))).get("y");
        same(y.type(), type);
        same(y.shape(), shape);
        same(y.data(), data);
    }

    private static void tensorsThatMakeNoSenseAreRefused() throws Exception {
        fails(Code.SHAPE_MISMATCH, () -> Tensor.of(new float[5], 2, 3), "[2, 3]", "5 elements");
        fails(Code.SHAPE_MISMATCH, () -> Tensor.of(new byte[1], -1, -1), "[-1, -1]");
        fails(Code.SHAPE_MISMATCH, () -> Tensor.of(new byte[0], 1L << 32, 1L << 32));
        fails(Code.SHAPE_MISMATCH, () -> Tensor.of(new byte[2]), "[]");
        fails(Code.DTYPE_MISMATCH, () -> Tensor.of(ElementType.FLOAT16, new float[1], 1), "FLOAT16", "short[]");
        fails(Code.DTYPE_MISMATCH, () -> Tensor.of(ElementType.UINT8, null, 1), "null", "byte[]");
        fails(Code.DTYPE_MISMATCH, () -> Tensor.of(ElementType.INT4, new byte[1], 1), "no array");
        fails(Code.INVALID_ARGUMENT, () -> Tensor.of(new String[] {null}, 1), "null");
        fails(Code.DTYPE_MISMATCH, () -> Tensor.of(new float[1], 1).doubles(), "double[]", "FLOAT32", "float[]");
        same(Tensor.of(new boolean[] {true}, 1).booleans()[0], true);
        same(Tensor.of(new String[] {"a"}, 1).strings()[0], "a");
        same(Tensor.of(new int[] {1}, 1).ints()[0] + Tensor.of(new long[] {1}, 1).longs()[0], 2L);
        same(Tensor.of(new short[] {1}, 1).shorts()[0] + Tensor.of(new byte[] {1}, 1).bytes()[0], 2);
        same(Tensor.of(new double[] {1}, 1).doubles()[0], 1.0);
    }

    private static void wrongNamesShapesTypesAndFilesAreErrors() throws Exception {
        try (Session session = Session.load(digits())) {
            Tensor image = image().get("image");
            Tensor flat = Tensor.of(new float[64], 64);
            Tensor doubles = Tensor.of(new double[64], 1, 1, 8, 8);
            fails(Code.INPUT, () -> session.run(Map.of("picture", image)), "picture", "image");
            fails(Code.INPUT, () -> session.run(Map.of()), "image");
            fails(Code.INPUT, () -> session.run(Collections.singletonMap("image", null)), "'image' is null");
            fails(Code.SHAPE_MISMATCH, () -> session.run(Map.of("image", flat)), "image", "64");
            fails(Code.DTYPE_MISMATCH, () -> session.run(Map.of("image", doubles)), "image", "float32", "float64");
            fails(Code.INPUT, () -> session.run(image(), new RunOptions().outputs("classes")), "classes",
                    "probabilities");
            same(session.run(image()).get("probabilities").shape(), new long[] {1, 10});
        }
        fails(Code.NOT_FOUND, () -> Session.load("/no/such.onnx"), "/no/such.onnx");
        fails(Code.UNSUPPORTED_FORMAT, () -> Session.load(bytes("no model"), Map.of()), "onnx");
        fails(Code.INVALID_ARGUMENT, () -> Session.load(digits(), Map.of("num_thread", "1")), "num_threads");
        try (Session complex = open(ElementType.COMPLEX64)) {
            same(complex.inputs().get(0).type(), ElementType.COMPLEX64);
            fails(Code.DTYPE_MISMATCH, () -> complex.run(Map.of("x", Tensor.of(new float[1], 1))), "complex64");
        }
    }

    private static void aClosedSessionIsAnError() throws Exception {
        Session session = Session.load(digits());
        session.close();
        session.close();
        fails(Code.INVALID_ARGUMENT, () -> session.run(image()), "has been closed");
    }

    private static void closingHarmsNoRun() throws Exception {
        Session session = Session.load(digits());
        CountDownLatch begun = new CountDownLatch(1);
        CompletableFuture<Void> runs = CompletableFuture.runAsync(() -> {
            while (true) {
                session.run(image());
                begun.countDown();
            }
        });
        begun.await();
        session.close();
        fails(Code.INVALID_ARGUMENT, () -> {
            try {
                runs.join();
            } catch (CompletionException error) {
                throw (Exception) error.getCause();
            }
        }, "has been closed");
    }

    private static void inputsMayHaveDefaultsAndOutputsBeLeftOut() throws Exception {
        try (Session session = Session.load(withSequenceAndDefault(), Map.of())) {
            same(session.inputs().stream().map(ValueInfo::name).toList(), List.of("x", "c"));
            same(session.inputs().stream().map(ValueInfo::optional).toList(), List.of(false, true));
            same(session.inputs().get(0).shape(), null);
            same(session.outputs().get(0).kind(), ValueInfo.Kind.SEQUENCE);
            Tensor x = Tensor.of(new float[] {1, 2}, 2);
            Tensor c = Tensor.of(new float[] {10});
            fails(Code.UNSUPPORTED, () -> session.run(Map.of("x", x)), "'y' is of kind SEQUENCE", "RunOptions.outputs");
            RunOptions z = new RunOptions().outputs("z");
            same(session.run(Map.of("x", x), z).get("z").floats(), new float[] {3, 4});
            same(session.run(Map.of("x", x, "c", c), z).get("z").floats(), new float[] {11, 12});
            same(session.run(Map.of("x", x), z).keySet(), Set.of("z"));
        }
    }

    private static void runsAreToldWhatToDo() throws Exception {
        try (Session session = open(ElementType.FLOAT32)) {
            Map<String, Tensor> x = Map.of("x", Tensor.of(new float[] {1, 2}, 2));
            RunOptions options = new RunOptions().outputs("y").timeout(Duration.ofHours(1)).numThreads(1)
                    .memoryLimit(1 << 30).tag("first");
            same(session.run(x, options).get("y").floats(), new float[] {1, 2});
            options.cancel();
            fails(Code.CANCELLED, () -> session.run(x, options));
            fails(Code.OUT_OF_MEMORY, () -> session.run(x, new RunOptions().memoryLimit(1)));
            fails(Code.INVALID_ARGUMENT, () -> session.run(x, new RunOptions().timeout(Duration.ofNanos(-1))),
                    "timeout_ms");
        }
    }

    private static void manySessionsOpenAndClose() {
        for (int i = 0; i < 100; ++i) {
            try (Session session = open(ElementType.INT32)) {
                comesAndGoes(session, ElementType.INT32, new int[] {i}, 1);
            }
        }
    }

    /** A process opens the library once: this test runs itself in another. */
    private static void aLibraryThatIsNotThereIsAnError() throws Exception {
        if (MISSING.equals(System.getenv("PYFLAME_RT_LIBRARY"))) {
            for (int i = 0; i < 2; ++i) {
                fails(Code.NOT_FOUND, () -> Session.load("digits.onnx"),
                        "opening the library: PYFLAME_RT_LIBRARY names", MISSING, "No such file", "set PYFLAME");
            }
            return;
        }
        ProcessBuilder again = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp", System.getProperty("java.class.path"), PackageTest.class.getName(),
                "aLibraryThatIsNotThereIsAnError");
        again.environment().put("PYFLAME_RT_LIBRARY", MISSING);
        same(again.inheritIO().start().waitFor(), 0);
    }

    private record Named(String name, Test test) {}

    private static final List<Named> TESTS = List.of(
            new Named("structsLieAsInTheHeader", LayoutTest::structsLieAsInTheHeader),
            new Named("aSlotThatMovedIsFound", LayoutTest::aSlotThatMovedIsFound),
            new Named("numbersAreThoseOfTheHeader", LayoutTest::numbersAreThoseOfTheHeader),
            new Named("digitsAreClassified", PackageTest::digitsAreClassified),
            new Named("threadsShareASession", PackageTest::threadsShareASession),
            new Named("inputsAndOutputsAreListed", PackageTest::inputsAndOutputsAreListed),
            new Named("elementsOfEveryTypeComeAndGo", PackageTest::elementsOfEveryTypeComeAndGo),
            new Named("tensorsThatMakeNoSenseAreRefused", PackageTest::tensorsThatMakeNoSenseAreRefused),
            new Named("wrongNamesShapesTypesAndFilesAreErrors", PackageTest::wrongNamesShapesTypesAndFilesAreErrors),
            new Named("aClosedSessionIsAnError", PackageTest::aClosedSessionIsAnError),
            new Named("closingHarmsNoRun", PackageTest::closingHarmsNoRun),
            new Named("inputsMayHaveDefaultsAndOutputsBeLeftOut",
                    PackageTest::inputsMayHaveDefaultsAndOutputsBeLeftOut),
            new Named("runsAreToldWhatToDo", PackageTest::runsAreToldWhatToDo),
            new Named("manySessionsOpenAndClose", PackageTest::manySessionsOpenAndClose),
            new Named("aLibraryThatIsNotThereIsAnError", PackageTest::aLibraryThatIsNotThereIsAnError));

    private PackageTest() {}

    /** Runs the tests of these names, or all. */
    public static void main(String[] names) {
        int passed = 0;
        int failed = 0;
        for (Named named : TESTS) {
            if (names.length > 0 && !List.of(names).contains(named.name)) {
                continue;
            }
            try {
                named.test.run();
                ++passed;
            } catch (Throwable error) {
                System.err.println("FAILED: " + named.name);
                error.printStackTrace();
                ++failed;
            }
        }
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed > 0 || passed == 0 ? 1 : 0);
    }
}

// SPDX-License-Identifier: Apache-2.0
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import pyflamert.PyFlameRTException;
import pyflamert.Session;
import pyflamert.Tensor;

/**
 * Classifies handwritten digits by the package capi/java: prints the class of the first held-out image and its
 * probability, then how many of all are right. Argument: the folder with digits.onnx and digits_test.bin.
 */
public final class Digits {
    private static final int PIXELS = 64;

    private record Digit(int label, byte[] pixels) {}

    private record Guess(int digit, float probability) {}

    /** The layout is described in samples/digits/train.py. */
    private static Digit[] readDigits(Path path) throws IOException {
        byte[] content;
        try {
            content = Files.readAllBytes(path);
        } catch (IOException error) {
            throw new IOException(path + " cannot be opened (" + error.getClass().getSimpleName()
                    + "); the argument is the folder of the digits");
        }
        ByteBuffer file = ByteBuffer.wrap(content).order(ByteOrder.LITTLE_ENDIAN);
        byte[] magic = "PFRTDIG1".getBytes(StandardCharsets.US_ASCII);
        if (content.length < 20 || !Arrays.equals(content, 0, 8, magic, 0, 8) || file.getInt(8) <= 0
                || file.getInt(12) != 8 || file.getInt(16) != 8) {
            throw new IOException(path + " is not a file of 8x8 digits");
        }
        int count = file.getInt(8);
        if (content.length - 20 < count * (1L + PIXELS)) {
            throw new IOException(path + " is truncated");
        }
        Digit[] digits = new Digit[count];
        file.position(20);
        for (int i = 0; i < count; ++i) {
            digits[i] = new Digit(file.get(), new byte[PIXELS]);
            file.get(digits[i].pixels);
        }
        return digits;
    }

    private static Guess classify(Session session, byte[] pixels) {
        float[] image = new float[PIXELS];
        for (int p = 0; p < PIXELS; ++p) {
            image[p] = pixels[p] / 16.0f;
        }
        Map<String, Tensor> outputs = session.run(Map.of("image", Tensor.of(image, 1, 1, 8, 8)));
        float[] probabilities = outputs.get("probabilities").floats();
        int best = 0;
        for (int c = 1; c < probabilities.length; ++c) {
            best = probabilities[c] > probabilities[best] ? c : best;
        }
        return new Guess(best, probabilities[best]);
    }

    private static void work(String folder) throws IOException {
        Digit[] digits = readDigits(Path.of(folder, "digits_test.bin"));
        int right = 0;
        try (Session session = Session.load(folder + "/digits.onnx")) {
            for (int i = 0; i < digits.length; ++i) {
                Guess guess = classify(session, digits[i].pixels);
                if (i == 0) {
                    print("the first image is a %d with probability %.6f%n", guess.digit, guess.probability);
                }
                right += guess.digit == digits[i].label ? 1 : 0;
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
        } catch (IOException | PyFlameRTException error) {
            System.err.println("digits: " + error.getMessage());
            System.exit(1);
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
package pyflamert;

import com.sun.jna.Structure;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Writes what Abi and the enums claim as assertions in C, and has the C compiler hold them against the header. */
final class LayoutTest {
    private record Said(boolean compiles, String words) {}

    /** Whether a C file with the assertions compiles, and what the compiler says. */
    private static Said compile(List<String> assertions) throws IOException, InterruptedException {
        Path file = Files.createTempFile("pyflame_rt", ".c");
        Path said = Files.createTempFile("pyflame_rt", ".txt");
        Files.writeString(file, "#include <pyflame_rt/pyflame_rt.h>\n" + String.join("\n", assertions) + "\n");
        try {
            Process cc = new ProcessBuilder("cc", "-std=c11", "-fsyntax-only", "-I",
                    PackageTest.root().resolve("include").toString(), file.toString())
                    .redirectErrorStream(true).redirectOutput(said.toFile()).start();
            return new Said(cc.waitFor() == 0, Files.readString(said, StandardCharsets.UTF_8));
        } finally {
            Files.delete(file);
            Files.delete(said);
        }
    }

    private static String assertion(String claim, String name) {
        return "_Static_assert(" + claim + ", \"" + name + "\");";
    }

    private static String field(String struct, String field, long offset, long size) {
        return assertion("offsetof(" + struct + ", " + field + ") == " + offset + " && sizeof(((" + struct + "*)0)->"
                + field + ") == " + size, struct + "." + field);
    }

    private static List<String> layouts() {
        List<String> assertions = new ArrayList<>();
        for (Abi.Layout layout : Abi.ALL) {
            layout.fields.forEach((name, place) ->
                    assertions.add(field(layout.name, name, place.offset(), place.size())));
            if (layout.whole) {
                assertions.add(assertion("sizeof(" + layout.name + ") == " + layout.size(), layout.name));
            }
        }
        return assertions;
    }

    static void structsLieAsInTheHeader() throws Exception {
        List<String> assertions = layouts();
        PackageTest.check(assertions.size() > 110, "only " + assertions.size() + " fields");
        Structure text = new Abi.Text();
        assertions.add(assertion("sizeof(pfrt_string) == " + text.size(), "pfrt_string"));
        assertions.add(field("pfrt_string", "data", 0, 8));
        assertions.add(field("pfrt_string", "size", 8, 8));
        Said said = compile(assertions);
        PackageTest.check(said.compiles, said.words);
    }

    static void aSlotThatMovedIsFound() throws Exception {
        Said said = compile(List.of(
                field("pfrt_session_api", "run_named", Abi.SESSION.at("run_named") + 8L, 8)));
        PackageTest.check(!said.compiles && said.words.contains("pfrt_session_api.run_named"), said.words);
    }

    static void numbersAreThoseOfTheHeader() throws Exception {
        List<String> assertions = new ArrayList<>();
        for (Code code : Code.values()) {
            assertions.add(equal("PFRT_CODE_%s".formatted(code), code.ordinal()));
        }
        for (ElementType type : ElementType.values()) {
            assertions.add(equal("PFRT_DTYPE_%s".formatted(type), type.number));
            PackageTest.check(ElementType.of(type.number) == type, type + " has another number than its place");
        }
        for (ValueInfo.Kind kind : ValueInfo.Kind.values()) {
            assertions.add(equal("PFRT_VALUE_%s".formatted(kind), kind.ordinal()));
        }
        assertions.add(equal("PFRT_MAKE_ABI(PFRT_ABI_MAJOR, 0)", Abi.VERSION));
        assertions.add(equal("PFRT_OPTIONS_SESSION", Abi.OPTIONS_SESSION));
        assertions.add(equal("PFRT_COPY", Abi.MEMORY_COPY));
        Said said = compile(assertions);
        PackageTest.check(said.compiles, said.words);
    }

    private static String equal(String name, int number) {
        return assertion(name + " == " + number, name);
    }

    private LayoutTest() {}
}

// SPDX-License-Identifier: Apache-2.0
package pyflamert;

import com.sun.jna.Function;
import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.PointerByReference;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.CodeSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** The C library: it is found, opened and checked at the first use, and stays until the process ends. */
final class Library {
    private static final String FILE = "libpyflamert_c.so";
    private static final int RTLD_NOW = 2;

    private static Library opened;

    /** The functions of a table, by their names in the header. */
    static final class Table {
        private final Map<String, Function> functions = new HashMap<>();

        private Table(String name, Abi.Layout layout, Pointer address) {
            checkSize(name, layout, address);
            layout.fields.forEach((slot, place) -> {
                if (place.size() == 8) {
                    functions.put(slot, Function.getFunction(address.getPointer(place.offset())));
                }
            });
        }

        /** The table must have all slots that are declared before any is looked at. */
        private static void checkSize(String name, Abi.Layout layout, Pointer address) {
            long has = address == null ? 0 : Integer.toUnsignedLong(address.getInt(0));
            if (has < layout.size()) {
                throw new PyFlameRTException(Code.UNSUPPORTED, "opening the library: its table '" + name + "' has " + has
                        + " bytes, " + layout.size() + " are needed: it is not a PyFlameRT library of ABI 2");
            }
        }

        Pointer pointer(String name, Object... arguments) {
            return functions.get(name).invokePointer(arguments);
        }

        int number(String name, Object... arguments) {
            return functions.get(name).invokeInt(arguments);
        }

        long count(String name, Object... arguments) {
            return functions.get(name).invokeLong(arguments);
        }

        String text(String name, Object... arguments) {
            return ((Abi.Text) functions.get(name).invoke(Abi.Text.ByValue.class, arguments)).words();
        }

        void call(String name, Object... arguments) {
            functions.get(name).invokeVoid(arguments);
        }
    }

    /** What JNA unloads once nobody holds it. */
    private final NativeLibrary file;
    private final Table status;
    private final Table options;
    final Table value;
    private final Table model;
    final Table session;
    private final Pointer environment;

    /** The library, which is opened where it has not been yet. What failed is attempted again by the next call. */
    static synchronized Library get() {
        if (opened == null) {
            opened = new Library();
        }
        return opened;
    }

    /** The file to open and, for an error, how it came to be that one. */
    private record Found(String file, String why) {}

    private static Found find() {
        String given = System.getenv("PYFLAME_RT_LIBRARY");
        if (given != null && !given.isEmpty()) {
            return new Found(given, "PYFLAME_RT_LIBRARY names '" + given + "'");
        }
        Path folder = folder();
        Path inside = folder.resolve("native").resolve(FILE);
        Path beside = folder.resolve(FILE);
        for (Path own : List.of(inside, beside)) {
            if (Files.exists(own)) {
                return new Found(own.toString(), "PYFLAME_RT_LIBRARY is not set, and '" + own + "' is there");
            }
        }
        return new Found(FILE, "PYFLAME_RT_LIBRARY is not set, there is neither '" + inside + "' nor '" + beside
                + "', and the loader was asked");
    }

    /** The folder of the package's jar, or that of its classes. */
    private static Path folder() {
        CodeSource source = Library.class.getProtectionDomain().getCodeSource();
        try {
            Path place = Path.of(source.getLocation().toURI());
            return Files.isDirectory(place) ? place : place.toAbsolutePath().getParent();
        } catch (URISyntaxException | RuntimeException error) {
            return Path.of("").toAbsolutePath(); // a class loader that has no files
        }
    }

    private Library() {
        Found found = find();
        Memory info = new Memory(Abi.ABI_INFO.size());
        info.clear();
        info.setInt(0, Abi.ABI_INFO.size());
        Pointer api;
        try {
            file = NativeLibrary.getInstance(found.file, Map.of(com.sun.jna.Library.OPTION_OPEN_FLAGS, RTLD_NOW));
            api = file.getFunction("pfrt_get_api").invokePointer(new Object[] {Abi.VERSION, info});
        } catch (UnsatisfiedLinkError error) {
            throw new PyFlameRTException(Code.NOT_FOUND, "opening the library: " + found.why + ": "
                    + error.getMessage().lines().limit(2).collect(Collectors.joining(" ")) // JNA's and the loader's
                    + "; set PYFLAME_RT_LIBRARY to the path of " + FILE + ", or put its folder on the loader's path");
        }
        if (api == null) {
            throw new PyFlameRTException(Code.UNSUPPORTED,
                    "opening the library " + found.file + ": " + Abi.words(info, Abi.ABI_INFO.at("message")));
        }
        Table.checkSize("api", Abi.API, api);
        status = new Table("status", Abi.STATUS, api.getPointer(Abi.API.at("status")));
        options = new Table("options", Abi.OPTIONS, api.getPointer(Abi.API.at("options")));
        Table env = new Table("env", Abi.ENV, api.getPointer(Abi.API.at("env")));
        value = new Table("value", Abi.VALUE, api.getPointer(Abi.API.at("value")));
        model = new Table("model", Abi.MODEL, api.getPointer(Abi.API.at("model")));
        session = new Table("session", Abi.SESSION, api.getPointer(Abi.API.at("session")));
        environment = make(env, "create", (Object) null);
    }

    /** Throws what a status stands for, and releases it. */
    void check(Pointer failed) {
        if (failed == null) {
            return;
        }
        List<String> faults = new ArrayList<>();
        for (long i = 0, n = status.count("child_count", failed); i < n; ++i) {
            faults.add(status.text("message", status.pointer("child", failed, i)));
        }
        Code code = Code.of(status.number("code", failed));
        String message = status.text("message", failed);
        status.call("release", failed);
        throw new PyFlameRTException(code, message, List.copyOf(faults));
    }

    /** The object that a function gives by its last parameter. */
    Pointer make(Table table, String name, Object... arguments) {
        PointerByReference out = new PointerByReference();
        Object[] all = Arrays.copyOf(arguments, arguments.length + 1);
        all[arguments.length] = out;
        check(table.pointer(name, all));
        return out.getValue();
    }

    /** A session on a file, or else on bytes. */
    Pointer makeSession(String path, byte[] bytes, Map<String, String> given) {
        Pointer settings = make(options, "create", Abi.OPTIONS_SESSION);
        Pointer loaded = null;
        try {
            given.forEach((key, text) ->
                    check(options.pointer("set_text", settings, Abi.Text.of(key), Abi.Text.of(text))));
            loaded = path != null ? make(model, "load_file", environment, Abi.Text.of(path), null)
                    : make(model, "load_memory", environment, bytes, (long) bytes.length, Abi.MEMORY_COPY, null, null, null);
            try (Memory desc = new Memory(Abi.SESSION_DESC.size())) {
                desc.clear();
                desc.setInt(0, Abi.SESSION_DESC.size());
                desc.setPointer(Abi.SESSION_DESC.at("model"), loaded);
                desc.setPointer(Abi.SESSION_DESC.at("options"), settings);
                return make(session, "create", environment, desc);
            }
        } finally { // the session keeps what it needs
            model.call("release", loaded);
            options.call("release", settings);
        }
    }

    /** The inputs or the outputs of a session: |side| is "input" or "output". */
    List<ValueInfo> describe(Pointer handle, String side) {
        List<ValueInfo> all = new ArrayList<>();
        try (Memory info = new Memory(Abi.VALUE_INFO.size())) {
            for (long i = 0, n = session.count(side + "_count", handle); i < n; ++i) {
                info.clear();
                info.setInt(0, Abi.VALUE_INFO.size());
                check(session.pointer(side + "_at", handle, i, info));
                all.add(readInfo(info));
            }
        }
        return List.copyOf(all);
    }

    private static ValueInfo readInfo(Pointer info) {
        Abi.Layout layout = Abi.VALUE_INFO;
        int rank = info.getInt(layout.at("rank"));
        Pointer dims = info.getPointer(layout.at("dims"));
        Pointer names = info.getPointer(layout.at("dim_names"));
        List<Long> shape = new ArrayList<>();
        List<String> dimNames = new ArrayList<>();
        for (int i = 0; i < rank; ++i) {
            shape.add(dims.getLong(8L * i));
            dimNames.add(names == null ? "" : Abi.words(names, 16 * i));
        }
        return new ValueInfo(Abi.words(info, layout.at("name")), ValueInfo.Kind.of(info.getInt(layout.at("kind"))),
                ElementType.of(info.getInt(layout.at("dtype"))), rank < 0 ? null : List.copyOf(shape),
                List.copyOf(dimNames), info.getInt(layout.at("has_initializer")) != 0);
    }
}

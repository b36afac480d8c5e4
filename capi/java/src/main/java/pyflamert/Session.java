// SPDX-License-Identifier: Apache-2.0
package pyflamert;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * A model that is loaded and planned. Threads may share a session and run it at once. close() frees it once the runs in
 * progress are over; one that is forgotten is freed by the garbage collector.
 *
 * <p>The C library is opened at the first use: the file that the environment variable PYFLAME_RT_LIBRARY names, else one
 * beside the package (in the folder native, then in the package's own), else one where the loader looks. There is one
 * environment (threads, plug-ins, log) for the process, made at the first use and kept until the process ends.
 */
public final class Session implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();

    /** The reference to the library's session, which is dropped once. */
    private static final class Handle implements Runnable {
        private final Library library;
        private Pointer session;

        Handle(Library library, Pointer session) {
            this.library = library;
            this.session = session;
        }

        /** The session with a reference for the caller, so that closing does no harm to a run. */
        synchronized Pointer acquire() {
            if (session == null) {
                throw new PyFlameRTException(Code.INVALID_ARGUMENT,
                        "running: the session has been closed; load another");
            }
            library.session.call("retain", session);
            return session;
        }

        @Override
        public synchronized void run() {
            library.session.call("release", session);
            session = null;
        }
    }

    private final Library library;
    private final Handle handle;
    private final Cleaner.Cleanable cleanable;
    private final List<ValueInfo> inputs;
    private final List<ValueInfo> outputs;

    private Session(Library library, Pointer session) {
        this.library = library;
        handle = new Handle(library, session);
        cleanable = CLEANER.register(this, handle);
        inputs = library.describe(session, "input");
        outputs = library.describe(session, "output");
    }

    /**
     * Loads the model in a file.
     *
     * @throws PyFlameRTException NOT_FOUND where there is no such file
     */
    public static Session load(String path) {
        return load(path, Map.of());
    }

    /**
     * Loads the model in a file.
     *
     * @param options the library's of a session by their names, as in Map.of("num_threads", "1"); pfrt run --help lists
     *     them
     * @throws PyFlameRTException NOT_FOUND where there is no such file, INVALID_ARGUMENT where there is no such option
     */
    public static Session load(String path, Map<String, String> options) {
        Objects.requireNonNull(path, "path");
        Library library = Library.get();
        return new Session(library, library.makeSession(path, null, options));
    }

    /** Loads a model from its bytes, which are copied; otherwise like load of a path. */
    public static Session load(byte[] model, Map<String, String> options) {
        Objects.requireNonNull(model, "model");
        Library library = Library.get();
        return new Session(library, library.makeSession(null, model, options));
    }

    /** The inputs: those that must be given, then those with a default value. */
    public List<ValueInfo> inputs() {
        return inputs;
    }

    /** The outputs. */
    public List<ValueInfo> outputs() {
        return outputs;
    }

    /**
     * Runs the model on inputs by name, and gives all outputs by name.
     *
     * @throws PyFlameRTException INPUT, SHAPE_MISMATCH or DTYPE_MISMATCH where an input is not as the model wants it
     */
    public Map<String, Tensor> run(Map<String, Tensor> inputs) {
        return run(inputs, new RunOptions());
    }

    /** Runs the model as the options say, which have to stay as they are until the run is over; otherwise like run. */
    public Map<String, Tensor> run(Map<String, Tensor> inputs, RunOptions options) {
        Collection<String> wanted =
                options.outputs().isEmpty() ? outputs.stream().map(ValueInfo::name).toList() : options.outputs();
        Pointer session = handle.acquire();
        try (Scope scope = new Scope(library)) {
            Memory given = scope.allocate((long) Abi.IO.size() * inputs.size());
            Memory names = names(scope, inputs.keySet());
            int i = 0;
            for (Map.Entry<String, Tensor> input : inputs.entrySet()) {
                Tensor tensor = input.getValue();
                if (tensor == null) {
                    throw new PyFlameRTException(Code.INPUT, "running: input '" + input.getKey()
                            + "' is null; give a Tensor, as in Tensor.of(data, 1, 10)");
                }
                place(given, i++).setPointer(Abi.IO.at("value"), scope.keep(tensor.toValue(library)));
            }
            Memory results = scope.allocate((long) Abi.IO.size() * wanted.size());
            for (i = 0; i < wanted.size(); ++i) {
                place(results, i);
            }
            library.check(library.session.pointer("run_named", session, names, given, (long) inputs.size(),
                    names(scope, wanted), results, (long) wanted.size(), options.desc(scope)));
            for (i = 0; i < wanted.size(); ++i) {
                scope.keep(results.getPointer((long) Abi.IO.size() * i + Abi.IO.at("value")));
            }
            Map<String, Tensor> tensors = new LinkedHashMap<>();
            i = 0;
            for (String name : wanted) {
                Pointer value = results.getPointer((long) Abi.IO.size() * i++ + Abi.IO.at("value"));
                tensors.put(name, Tensor.fromValue(library, name, value));
            }
            return tensors;
        } finally {
            library.session.call("release", session);
            Reference.reachabilityFence(options); // whose memory the library reads to see whether it was cancelled
        }
    }

    /** An array of pfrt_string. */
    private static Memory names(Scope scope, Collection<String> words) {
        Memory names = scope.allocate(16L * words.size());
        long offset = 0;
        for (String word : words) {
            scope.write(names, offset, word);
            offset += 16;
        }
        return names;
    }

    /** Element |index| of an array of pfrt_io, with its sizes set. */
    private static Pointer place(Memory ios, int index) {
        Pointer io = ios.share((long) Abi.IO.size() * index, Abi.IO.size());
        io.setInt(0, Abi.IO.size());
        io.setInt(Abi.IO.at("tensor"), Abi.TENSOR.size());
        return io;
    }

    /** Frees the session once the runs in progress are over; runs that begin later are INVALID_ARGUMENT. */
    @Override
    public void close() {
        cleanable.clean();
    }
}

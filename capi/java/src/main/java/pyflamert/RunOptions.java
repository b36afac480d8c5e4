// SPDX-License-Identifier: Apache-2.0
package pyflamert;

import com.sun.jna.Memory;
import java.time.Duration;
import java.util.List;

/**
 * What a run may be told. Several runs may have the same options, on several threads too; setters are for one thread,
 * before the runs. cancel() may be called from any thread at any time.
 */
public final class RunOptions {
    private List<String> outputs = List.of();
    private long timeoutMillis;
    private long numThreads;
    private long memoryLimit;
    private String tag = "";
    private final Memory cancelled = new Memory(4);

    /** Options of a plain run. */
    public RunOptions() {
        cancelled.clear();
    }

    /** Names of the outputs that are wanted; none = all. */
    public RunOptions outputs(String... names) {
        outputs = List.of(names);
        return this;
    }

    /** The run ends with DEADLINE after so long; zero = never. */
    public RunOptions timeout(Duration timeout) {
        timeoutMillis = timeout.isZero() ? 0 : timeout.isNegative() ? -1 : timeout.toMillis() + 1;
        return this;
    }

    /** Threads of this run; 0 = the session's. */
    public RunOptions numThreads(int threads) {
        numThreads = threads;
        return this;
    }

    /** Bytes of memory outside of Java's heap that the run and its results may take; 0 = no limit of its own. */
    public RunOptions memoryLimit(long bytes) {
        memoryLimit = bytes;
        return this;
    }

    /** The name of the run in logs and profiles. */
    public RunOptions tag(String name) {
        tag = name;
        return this;
    }

    /** Ends the runs that have these options, now and later: they are CANCELLED within milliseconds. */
    public void cancel() {
        cancelled.setInt(0, 1);
    }

    List<String> outputs() {
        return outputs;
    }

    /** A pfrt_run_desc, which borrows this object. */
    Memory desc(Scope scope) {
        Abi.Layout layout = Abi.RUN_DESC;
        Memory desc = scope.allocate(layout.size());
        desc.setInt(0, layout.size());
        desc.setPointer(layout.at("cancel"), cancelled);
        desc.setLong(layout.at("timeout_ms"), timeoutMillis);
        desc.setLong(layout.at("num_threads"), numThreads);
        desc.setLong(layout.at("memory_limit"), memoryLimit);
        scope.write(desc, layout.at("tag"), tag);
        return desc;
    }
}

// SPDX-License-Identifier: Apache-2.0
package pyflamert;

import java.util.List;

/** What went wrong: the message says what was attempted, on what, what was found and the nearest fix. */
public final class PyFlameRTException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** The kind of the error. */
    private final Code code;
    /** Single faults; transient since not every List can be written. */
    private final transient List<String> faults;

    PyFlameRTException(Code code, String message) {
        this(code, message, List.of());
    }

    PyFlameRTException(Code code, String message, List<String> faults) {
        super(message);
        this.code = code;
        this.faults = faults;
    }

    /** The kind of the error. */
    public Code code() {
        return code;
    }

    /** The single faults where there are several, as of a graph that is not valid; else empty. */
    public List<String> faults() {
        return faults == null ? List.of() : faults;
    }
}

# SPDX-License-Identifier: Apache-2.0
"""Counts what a program has lost. Under AddressSanitizer its leak checker looks for every block that is no longer
reachable; elsewhere what the C library's allocator has given out, the mappings, files and threads are compared."""
import ctypes
import gc
import os
import sys
import tempfile

from pyflame_rt._core import interrupt, library

_process = ctypes.CDLL(None)
SANITIZED = hasattr(_process, "__lsan_do_recoverable_leak_check")


# Growth that is no loss: what malloc keeps for each thread, and the interpreter for itself.
ALLOWED = {"bytes": 262144, "blocks": 500, "mappings": 32, "files": 0, "threads": 0}


class _Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks",
                                                     "fsmblks", "uordblks", "fordblks", "keepcost")]


def in_use():
    """Bytes of malloc and blocks of Python's in use, mappings, open files and threads."""
    gc.collect()
    _process.mallinfo2.restype = _Mallinfo
    info = _process.mallinfo2()
    with open("/proc/self/maps") as maps:
        mappings = sum(1 for _ in maps)
    return {"bytes": info.uordblks + info.hblkhd, "blocks": sys.getallocatedblocks(), "mappings": mappings,
            "files": len(os.listdir("/proc/self/fd")), "threads": len(os.listdir("/proc/self/task"))}


def unreachable():
    """Reports of blocks of the library's that nothing points to. Python's numbers do not count as pointers: whatever
    is alive counts as lost, so close it first. Python's own blocks, which it never frees, are left out."""
    if library._default_env is not None:
        library._default_env.close()
        library._default_env = None
    if interrupt._state is not None:
        interrupt._state = None
    gc.collect()
    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        _process.__lsan_do_recoverable_leak_check()
        os.dup2(terminal, 2)
        file.seek(0)
        report = file.read().decode("utf-8", "replace")
    return [part for part in report.split("\n\n") if " leak of " in part and ("pfrt" in part or "pyflamert" in part)]


def lost(work, times):
    """The loss of |times| calls of |work|; the first ones, which fill caches, are not counted. "" = nothing."""
    if SANITIZED:
        for _ in range(times):
            work()
        return "\n\n".join(unreachable())
    for _ in range(times // 2 + 1):
        work()
    before = in_use()
    for _ in range(times):
        work()
    after = in_use()
    grown = {key: after[key] - before[key] for key in before}
    return str(grown) if any(grown[key] > limit for key, limit in ALLOWED.items()) else ""

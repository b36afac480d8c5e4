# SPDX-License-Identifier: Apache-2.0
"""Where the environment's log lines go: to the program's logger or, without one, to what ``sys.stderr`` is then."""
from __future__ import annotations

import atexit
import ctypes
import sys
import weakref
from typing import Any, Callable, Optional

from . import abi, callbacks, library as lib

# logger(level, message), with the words of LogLevel.
Logger = Callable[[str, str], Any]

_LEVELS = {abi.LOG_DEBUG: "debug", abi.LOG_INFO: "info", abi.LOG_WARNING: "warning", abi.LOG_ERROR: "error"}


def _to_stderr(level: str, message: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"pyflame_rt {level}: {message}\n")


_logger: Logger = _to_stderr


def set_logger(logger: Optional[Logger]) -> None:
    """Sends lines to |logger|; None is sys.stderr."""
    global _logger
    _logger = _to_stderr if logger is None else logger


def _log(_user: Any, level: int, message: Any) -> None:
    try:
        _logger(_LEVELS.get(level, "error"), lib.read(message))
    except BaseException:  # nothing may be raised through the library
        pass


_LOG = ctypes.cast(callbacks.permanent_function(abi.LogFn, _log), ctypes.c_void_p)


def _begin(env: lib.Handle) -> None:
    """Takes the lines of an environment until the interpreter ends, when they go to the process's stderr."""
    lib.check(lib.env.set_logger(env.address, _LOG, None))
    atexit.register(_end, weakref.ref(env))


def _end(reference: "weakref.ref[lib.Handle]") -> None:
    env = reference()
    if env is not None and env.address:  # it may be closed before the interpreter ends
        lib.env.set_logger(env.address, None, None)


lib.on_default_env.append(_begin)

# SPDX-License-Identifier: Apache-2.0
"""Callbacks: the Python functions that the library calls, the objects it holds for them, and what they raise.

A callback of the C ABI is a function and a |user| that it is called with. Here the functions are made once, by
``permanent``, and are never freed. |user| is a number from ``hold``. It stands for a Python object until the library
calls ``RELEASE`` with it.

``guard`` catches what the object's code raises. The library gets a code, and a message with the exception's type and
text. The error that the library makes of them gets the exception itself as its ``__cause__``, whichever thread the
error reaches.
"""
from __future__ import annotations

import ctypes
import itertools
from collections import deque
from typing import Any, Callable, Deque, Dict, Optional, Tuple

from . import abi
from .errors import PyFlameRTError

# ------------------------------------------------------------------ functions


def permanent(struct: Any, field: str, function: Callable[..., Any]) -> Any:
    """|function| as a callback for |field| of |struct|; it is never freed."""
    return permanent_function(dict(struct._fields_)[field], function)


def permanent_function(kind: Any, function: Callable[..., Any]) -> Any:
    """Does the same for a function type that is no field of a struct, such as abi.ReleaseFn."""
    # Why callbacks are never freed: the library may call one while the interpreter ends, and one that releases an
    # object could otherwise free itself while it runs.
    callback = kind(function)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))
    return callback


# ------------------------------------------------------------------ what the library holds

_held: Dict[int, Any] = {}
_numbers = itertools.count(1)


def hold(what: Any) -> int:
    """A |user| that stands for |what|, which is kept until RELEASE is called with it."""
    number = next(_numbers)
    _held[number] = what
    return number


def held(user: int) -> Any:
    """The object that |user| stands for."""
    return _held[user]


def let_go(user: int, drop: Callable[..., Any] = _held.pop) -> None:
    """Drops the object that |user| stands for: called by RELEASE, or directly if the library never got |user|."""
    # |drop| is a default argument because globals may be gone when the interpreter ends.
    drop(user, None)


# release(user)
RELEASE: Any = permanent(abi.CustomPass, "release", let_go)
# release(user, data)
RELEASE_MEMORY: Any = permanent_function(abi.ReleaseFn, lambda user, data, drop=let_go: drop(user))

# ------------------------------------------------------------------ what callbacks raise

# Exceptions that are on their way through the library, each with the message that cause_of finds it by. Only the last
# few are kept, since nobody asks for one that the library handles itself.
_raised: Deque[Tuple[str, BaseException]] = deque(maxlen=8)


class Refusal(PyFlameRTError):
    """A fault that this package itself finds. Its text says everything, so the library's error gets no cause."""


def guard(fail: Callable[[int, str], int], work: Callable[..., None], *args: Any) -> int:
    """The body of a callback that returns a pfrt_code: calls ``work(*args)`` and returns 0.

    If ``work`` raises, the answer is that of ``fail(code, message)``. The code is that of a PyFlameRTError, and
    INTERNAL for most other exceptions. The message has the exception's type and text. ``guard`` itself raises nothing.
    """
    try:
        work(*args)
        return abi.CODE_OK
    except BaseException as fault:  # also KeyboardInterrupt: it may not pass through the library
        try:
            if isinstance(fault, Refusal):
                return fail(fault.code, str(fault)) or fault.code
            message = _message(fault)
            _raised.append((message, fault))
            return fail(_code(fault), message) or abi.CODE_INTERNAL
        except BaseException:  # if a callback raises, ctypes returns 0, which is success
            return abi.CODE_INTERNAL


def cause_of(message: str) -> Optional[BaseException]:
    """The exception of a callback that a library error with this message comes from; each is returned once."""
    found = max((kept for kept in list(_raised) if kept[0] in message), key=lambda kept: len(kept[0]), default=None)
    if found is None:
        return None
    try:
        _raised.remove(found)
    except ValueError:  # another thread was faster
        pass
    return found[1]


def _message(fault: BaseException) -> str:
    try:
        text = str(fault)
    except Exception as second:
        text = f"(its text cannot be had: {type(second).__name__})"
    if not isinstance(fault, PyFlameRTError) or not text:
        text = f"{type(fault).__name__}: {text}" if text else type(fault).__name__
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _code(fault: BaseException) -> int:
    if isinstance(fault, PyFlameRTError):
        return fault.code or abi.CODE_INTERNAL
    for kind, code in ((MemoryError, abi.CODE_OUT_OF_MEMORY), (NotImplementedError, abi.CODE_UNSUPPORTED),
                       (KeyboardInterrupt, abi.CODE_CANCELLED)):
        if isinstance(fault, kind):
            return code
    return abi.CODE_INTERNAL

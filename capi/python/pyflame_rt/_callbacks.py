# SPDX-License-Identifier: Apache-2.0
"""Python that the library calls: functions it can always reach, what it holds, and what they raise.

A callback of the C ABI is a function with a |user| that it is given. Here the functions are made once by ``permanent``
and |user| is a number from ``hold``, which leads back to the object until the library lets it go by ``RELEASE``.
What the object's code raises ends in ``guard``: the library gets a code and the exception's type and text, and the
error that it makes of them gets the exception itself as its ``__cause__``, whichever thread it comes out on.
"""
from __future__ import annotations

import ctypes
import itertools
from collections import deque
from typing import Any, Callable, Deque, Dict, Optional, Tuple

from . import _abi
from ._errors import PyFlameRTError

# ------------------------------------------------------------------ functions


def permanent(struct: Any, field: str, function: Callable[..., Any]) -> Any:
    """|function| as the callback |field| of |struct|, for as long as the process lives."""
    return permanent_function(dict(struct._fields_)[field], function)


def permanent_function(kind: Any, function: Callable[..., Any]) -> Any:
    """The same for a function type of its own, as _abi.ReleaseFn."""
    # The library may call back when modules are taken down already, and a release function may end the last reference
    # to what it belongs to: so none of them is ever freed.
    callback = kind(function)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))
    return callback


# ------------------------------------------------------------------ what the library holds

_held: Dict[int, Any] = {}
_numbers = itertools.count(1)


def hold(what: Any) -> int:
    """A |user| for |what|, which stays until RELEASE is called with it."""
    number = next(_numbers)
    _held[number] = what
    return number


def held(user: int) -> Any:
    """What |user| was made for."""
    return _held[user]


def let_go(user: int, drop: Callable[..., Any] = _held.pop) -> None:
    """Takes a hold back that the library never got."""
    drop(user, None)


# release(user)
RELEASE: Any = permanent(_abi.CustomPass, "release", let_go)
# release(user, data)
RELEASE_MEMORY: Any = permanent_function(_abi.ReleaseFn, lambda user, data, drop=let_go: drop(user))

# ------------------------------------------------------------------ what callbacks raise

# Exceptions on their way through the library, with the text that finds them again. Few: an error that the library
# deals with itself never comes out.
_raised: Deque[Tuple[str, BaseException]] = deque(maxlen=8)


class Refusal(PyFlameRTError):
    """What a callback is refused for: the error that the library makes of it says everything and has no cause."""


def guard(fail: Callable[[int, str], int], work: Callable[..., None], *args: Any) -> int:
    """The body of a callback that returns a pfrt_code: ``work(*args)``, and 0 when it returns.

    When it raises, fail(code, message) is called and what it returns is returned: the code is that of a PyFlameRTError
    and INTERNAL for most others, the message has the exception's type and text. Nothing is raised.
    """
    try:
        work(*args)
        return _abi.CODE_OK
    except BaseException as fault:  # also KeyboardInterrupt: it may not pass through the library
        try:
            if isinstance(fault, Refusal):
                return fail(fault.code, str(fault)) or fault.code
            message = _message(fault)
            _raised.append((message, fault))
            return fail(_code(fault), message) or _abi.CODE_INTERNAL
        except BaseException:  # what leaves a callback would count as success
            return _abi.CODE_INTERNAL


def cause_of(message: str) -> Optional[BaseException]:
    """The exception of a callback that an error of the library's with this message tells of; each is given once."""
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
        return fault.code or _abi.CODE_INTERNAL
    for kind, code in ((MemoryError, _abi.CODE_OUT_OF_MEMORY), (NotImplementedError, _abi.CODE_UNSUPPORTED),
                       (KeyboardInterrupt, _abi.CODE_CANCELLED)):
        if isinstance(fault, kind):
            return code
    return _abi.CODE_INTERNAL

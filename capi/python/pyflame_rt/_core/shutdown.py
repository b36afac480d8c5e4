# SPDX-License-Identifier: Apache-2.0
"""The interpreter's end, while the library may still call Python code from threads of its own.

Python ends every thread that asks for it once it is being taken down, in the midst of whatever the library does there.
So calls that can lead to Python code are counted from the first such code on (``count_calls``; without it, nothing is).
At exit kernels fail at once, calls under way are waited for, and threads that come out of them or want to make one
stay where they are; the process ends around them.
"""
from __future__ import annotations

import atexit
import os
import threading
from typing import Any, Callable, List

from . import abi, library as lib

# A kernel that does not come back cannot call anything either: the process may end around it too.
_PATIENCE = 5.0

_state = threading.Condition()
_inside = 0
_counting = False
_here = threading.local()
closing = False
_when_counting: List[Callable[[], None]] = []


def callback(function: Callable[..., int]) -> Callable[..., int]:
    """Python code that the library calls for a code: calls of the library inside it are never held back."""
    def call(*args: Any) -> int:
        before = True
        try:
            before = getattr(_here, "called", False)
            _here.called = True
            return function(*args)
        except BaseException:  # what leaves a callback would count as success
            return abi.CODE_INTERNAL
        finally:
            _here.called = before
    return call


def enter() -> None:
    """Before a call of the library that can lead to Python code."""
    global _inside
    _hold_back()
    with _state:
        _inside += 1


def leave() -> None:
    global _inside
    with _state:
        _inside -= 1
        if closing:
            _state.notify_all()
    _hold_back()


def _hold_back() -> None:
    if closing and not getattr(_here, "called", False) and threading.current_thread() is not threading.main_thread():
        forever = threading.Lock()
        forever.acquire()
        forever.acquire()


def _counted(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        enter()
        try:
            return function(*args)
        finally:
            leave()
    return call


def when_counting(told: Callable[[], None]) -> None:
    """Calls |told| once calls are counted: a module that keeps a function of the library then takes the counted one."""
    with _state:
        if not _counting:
            _when_counting.append(told)
            return
    told()


def count_calls() -> None:
    """Counts calls from now on: there is Python code that the library may call."""
    global _counting
    with _state:
        if _counting:
            return
        _counting = True
    for area, names in ((lib.session, ("create", "run")), (lib.model, ("load_file", "load_memory", "from_graph")),
                        (lib.graph, ("infer_shapes", "validate", "validate_all")), (lib.optimizer, ("run",))):
        for name in names:
            setattr(area, name, _counted(getattr(area, name)))
    for told in _when_counting:
        told()
    atexit.register(_close)
    os.register_at_fork(after_in_child=_begin_again)


def _close() -> None:
    global closing
    closing = True
    with _state:
        _state.wait_for(lambda: _inside == 0, _PATIENCE)


def _begin_again() -> None:
    """A forked child has none of the other threads."""
    global _state, _inside
    _state, _inside = threading.Condition(), 1 if getattr(_here, "called", False) else 0

# SPDX-License-Identifier: Apache-2.0
"""Runs that nobody waits for.

The library tells of a run's end on a thread of its own. That thread takes the results over and nothing more: the
caller's function is called on a thread of Python's, which a finalising interpreter may stop, as it must not stop one
that has the library's frames below it. For the same reason runs under way are cancelled, and waited for, before the
interpreter finalises.
"""
from __future__ import annotations

import atexit
import ctypes
import itertools
import os
import sys
import threading
import time
import weakref
from queue import SimpleQueue
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from .._core import abi, library as lib
from .._core.errors import InvalidArgumentError, PyFlameRTError
from .._core.options import RunDesc
from .feeding import FeedingSession
from .run_options import RunOptions

Callback = Callable[[List[Any], Any, str], Any]

# The end of the interpreter waits so many seconds for callers' functions.
_PATIENCE = 5.0


class _Run:
    """A run keeps here what it needs until it is over."""

    def __init__(self, callback: Callback, user_data: Any, options: RunDesc, collect: Callable[[Any], List[Any]],
                 memory: Any) -> None:
        self.callback, self.user_data = callback, user_data
        self.options = options
        self.collect = collect
        self.memory = memory  # that the library reads and writes


class _Presence:
    """A thread's locals hold it while Python knows the thread: for one of the library's, until its call ends."""


class _State:
    """The threads share this; a forked child begins with a new one, since no run goes on in it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running: Dict[int, _Run] = {}
        self.unanswered: Set[int] = set()  # runs whose caller's function has not returned
        self.finished: "SimpleQueue[Tuple[int, _Run, List[Any], str]]" = SimpleQueue()
        self.present: Set["weakref.ref[_Presence]"] = set()
        self.thread: Optional[threading.Thread] = None
        self.ending = False

    def begin(self, run: _Run) -> int:
        with self.lock:
            if self.ending:
                raise PyFlameRTError("run_async: the interpreter is ending, no run can be started any more")
            if self.thread is None:
                self.thread = threading.Thread(target=_answer, args=(self,), name="pyflame_rt callbacks", daemon=True)
                self.thread.start()
            number = next(_numbers)
            self.running[number] = run
            self.unanswered.add(number)
            return number

    def forget(self, number: int) -> None:
        """Takes back a run that the library did not start."""
        self.running.pop(number)
        self.unanswered.discard(number)


_numbers = itertools.count(1)
_state = _State()
_locals = threading.local()


def _answer(state: _State) -> None:
    """Calls the callers' functions, one after another."""
    while True:
        number, run, results, error = state.finished.get()
        try:
            run.callback(results, run.user_data, error)
        except BaseException:  # of the caller's; there is nobody else to tell
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))
        del run, results
        state.unanswered.discard(number)


def _done(number: int, status: Optional[int], outputs: int, count: int) -> None:
    state = _state
    run, results, error = state.running[number], [], ""
    try:
        presence = _Presence()
        state.present.add(weakref.ref(presence, state.present.discard))
        _locals.presence = presence
        try:
            fault: Optional[BaseException] = lib.take_error(status)
            if fault is None:
                array = (abi.Io * count).from_address(outputs) if count else (abi.Io * 0)()
                results = run.collect(memoryview(array).cast("B").cast("Q"))
        except BaseException as raised:
            fault = raised
        if fault is not None:
            error = str(fault) or type(fault).__name__
        state.finished.put((number, run, results, error))
    finally:
        del state.running[number]


# The library calls it until the process ends.
_DONE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(_done)


def _end() -> None:
    state = _state
    with state.lock:
        state.ending = True
    for run in list(state.running.values()):
        run.options.stop(True)
    while state.running:
        time.sleep(0.001)
    for waited_for in (state.present, state.unanswered):
        deadline = time.monotonic() + _PATIENCE
        while waited_for and time.monotonic() < deadline:
            time.sleep(0.001)


def _begin_child() -> None:
    global _state
    _state = _State()


atexit.register(_end)
os.register_at_fork(after_in_child=_begin_child)


def run_async(session: FeedingSession, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
              callback: Callback, user_data: Any, run_options: Optional[RunOptions]) -> None:
    """InferenceSession.run_async."""
    if not callable(callback):
        raise InvalidArgumentError(f"run_async: the callback is {callback!r}, which cannot be called; give a function "
                                   "of (results, user_data, error_text)")
    options = RunDesc() if run_options is None else run_options._options
    state, frame = _state, session._take_frame()
    try:
        kept = session._feed(frame, input_feed, None if run_options is None else run_options._options.state)
        made, wanted = session._prepare(frame, output_names)
        number = state.begin(_Run(callback, user_data, options, lambda words: session._collect(words, made, wanted),
                                  (kept, made)))
        try:
            lib.check(lib.session.run_async(session._alive(), frame.inputs, len(session._inputs), frame.outputs,
                                            len(session._outputs), options.address, _DONE, number))
        except PyFlameRTError:
            state.forget(number)
            raise
    except BaseException:
        frame.discard()
        raise
    session._frames.append(frame)

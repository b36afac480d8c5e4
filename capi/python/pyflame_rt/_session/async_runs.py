# SPDX-License-Identifier: Apache-2.0
"""Runs that nobody waits for.

The library tells of a run's end on a thread of its own. That thread takes the results over and nothing more: the
caller's function is called on a thread of Python's, which a finalising interpreter may stop, as it must not stop one
that has the library's frames below it. For the same reason runs under way are cancelled, and waited for, before the
interpreter finalises.
"""
from __future__ import annotations

import ctypes
import itertools
import os
import sys
import threading
import time
import weakref
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from .._core import abi, library as lib
from .._core.ending import at_end
from .._core.errors import DTypeMismatchError, InvalidArgumentError, PyFlameRTError, ShapeMismatchError
from .._core.options import RunDesc
from .feeding import FeedingSession
from .run_options import RunOptions

if TYPE_CHECKING:
    import asyncio

Callback = Callable[[List[Any], Any, str], Any]
# Takes the results of a run, or what it failed with.
_Receiver = Callable[[List[Any], Optional[BaseException]], Any]

# The end of the interpreter waits so many seconds for callers' functions.
_PATIENCE = 5.0


class _Run:
    """A run keeps here what it needs until it is over."""

    def __init__(self, receiver: _Receiver, options: RunDesc, collect: Callable[[Any], List[Any]], memory: Any) -> None:
        self.receiver = receiver
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
        self.finished: "SimpleQueue[Tuple[int, _Run, List[Any], Optional[BaseException]]]" = SimpleQueue()
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
        number, run, results, fault = state.finished.get()
        try:
            run.receiver(results, fault)
        except BaseException:  # of the caller's; there is nobody else to tell
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))
        del run, results, fault
        state.unanswered.discard(number)


def _done(number: int, status: Optional[int], outputs: int, count: int) -> None:
    state = _state
    run, results = state.running[number], []
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
        state.finished.put((number, run, results, fault))
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


at_end.append(_end)
os.register_at_fork(after_in_child=_begin_child)


def run_async(session: FeedingSession, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
              callback: Callback, user_data: Any, run_options: Optional[RunOptions]) -> None:
    """InferenceSession.run_async."""
    if not callable(callback):
        raise InvalidArgumentError(f"run_async: the callback is {callback!r}, which cannot be called; give a function "
                                   "of (results, user_data, error_text)")


    def answer(results: List[Any], fault: Optional[BaseException]) -> None:
        callback(results, user_data, "" if fault is None else str(fault) or type(fault).__name__)

    _start(session, output_names, input_feed, answer, run_options, RunDesc())


def awaited_run(session: FeedingSession, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
                run_options: Optional[RunOptions],
                check_feeds: Callable[[List[Any]], None]) -> "asyncio.Future[List[Any]]":
    """InferenceSession.run_async without a callback. |check_feeds| raises where an input will not do."""
    import asyncio  # by whoever awaits it is there already, and others need not wait for it
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise InvalidArgumentError("run_async: without a callback its result is awaited, and no event loop runs in this "
                                   "thread; call it from a coroutine, or give a function of (results, user_data, "
                                   "error_text)") from None
    future: "asyncio.Future[List[Any]]" = loop.create_future()
    own = RunDesc()
    options = own if run_options is None else run_options._options
    fed: List[Any] = []

    def settle(results: List[Any], fault: Optional[BaseException]) -> None:
        if future.cancelled():
            if run_options is not None and not run_options._options.cancelled:
                options.stop(False)  # which the cancelled future had set
            return
        if fault is None:
            future.set_result(results)
            return
        raised = None if run_options is None else run_options._options.raised()
        try:
            if raised is not None:
                raise raised from None
            if isinstance(fault, (DTypeMismatchError, ShapeMismatchError)):
                check_feeds(fed)
            raise fault
        except BaseException as seen:
            future.set_exception(seen)

    def answer(results: List[Any], fault: Optional[BaseException]) -> None:
        try:
            loop.call_soon_threadsafe(settle, results, fault)
        except RuntimeError:  # the loop is closed: nobody waits any more
            pass

    fed += _start(session, output_names, input_feed, answer, run_options, own)
    future.add_done_callback(lambda done: options.stop(True) if done.cancelled() else None)
    return future


def _start(session: FeedingSession, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
           receiver: _Receiver, run_options: Optional[RunOptions], own: RunDesc) -> List[Any]:
    """Starts a run, with options of its |own| where it is given none; returns what it was fed."""
    options = own if run_options is None else run_options._options
    state, frame = _state, session._take_frame()
    try:
        kept = session._feed(frame, input_feed, None if run_options is None else run_options._options.state)
        made, wanted = session._prepare(frame, output_names)
        number = state.begin(_Run(receiver, options, lambda words: session._collect(words, made, wanted), (kept, made)))
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
    return kept

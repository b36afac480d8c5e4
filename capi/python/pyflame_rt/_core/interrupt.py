# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while the library works for the main thread.

Python's handler of SIGINT runs on the main thread, which is in the library until the call is over. So for the time of
the call the signal also wakes a thread of this module, which cancels the options of the call; the call then returns
within a few steps of a kernel, and the handler raises KeyboardInterrupt. A program with a handler of its own decides
itself what a signal means: its calls go on, and it may cancel the run's options.
"""
from __future__ import annotations

import os
import select
import signal
import threading
from typing import Any, Callable, List, Optional

from .options import RunDesc, Stoppable

_OURS = signal.default_int_handler
_main = threading.main_thread().ident


class _Call:
    """A call of the main thread that is under way."""

    def __init__(self, options: Stoppable) -> None:
        self.options = options
        self.stopped = False


class _State:
    """The threads share this; a forked child, which has no listener, begins with a new one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls: List[_Call] = []  # the innermost last: a kernel written in Python may run another session
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        self.forward = -1  # who was woken by signals before
        self.options = RunDesc()  # of runs that have none
        threading.Thread(target=self._listen, name="pyflame_rt interrupts", daemon=True).start()

    def _listen(self) -> None:
        poll = select.poll()
        poll.register(self.reader, select.POLLIN)
        while True:
            poll.poll()
            with self.lock:
                self.take_signals()

    def take_signals(self) -> None:
        """Acts on the signals that came; with the lock held, so that none of them is left for a later call."""
        try:
            numbers = os.read(self.reader, 4096)
        except BlockingIOError:  # the other thread was faster
            return
        if self.forward >= 0:
            try:
                os.write(self.forward, numbers)
            except OSError:  # full or closed, which ends in nothing with Python's own writing too
                pass
        if signal.SIGINT in numbers and signal.getsignal(signal.SIGINT) is _OURS:
            for call in self.calls:
                call.stopped = True
                call.options.stop(True)


_state: Optional[_State] = None


def on_main_thread() -> bool:
    return threading.get_ident() == _main


def stoppable(options: Optional[Stoppable], work: Callable[[Optional[int]], Any]) -> Any:
    """work(address of the options), which Ctrl-C cancels when this is the main thread; without options, of others.

    Options that the caller shares with runs on other threads stop those too.
    """
    global _state
    if not on_main_thread() or signal.getsignal(signal.SIGINT) is not _OURS:
        return work(None if options is None else options.address)
    if _state is None:
        _state = _State()
    state, before, call = _state, None, None
    try:
        try:
            before = signal.set_wakeup_fd(state.writer, warn_on_full_buffer=False)
        except ValueError:  # a subinterpreter, which gets no signals
            return work(None if options is None else options.address)
        if before != state.writer:
            state.forward = before
        call = _Call(options or state.options)
        if not state.calls:
            state.options.stop(False)
        state.calls.append(call)
        return work(call.options.address)
    finally:
        _end(state, call, before)


def _end(state: _State, call: Optional[_Call], before: Optional[int]) -> None:
    with state.lock:
        if call in state.calls:
            state.calls.remove(call)
        if before is not None:
            try:
                signal.set_wakeup_fd(before)
            except (OSError, ValueError):  # closed meanwhile
                signal.set_wakeup_fd(-1)
        state.take_signals()
        if call is not None and call.stopped and not call.options.cancelled:
            if all(outer.options is not call.options for outer in state.calls):
                call.options.stop(False)


def _begin_child() -> None:
    global _state, _main
    state, _state = _state, None
    _main = threading.main_thread().ident
    if state is not None:
        os.close(state.reader)
        os.close(state.writer)
        if state.calls:  # forked by a kernel written in Python: signals are not to reach a pipe that is closed
            try:
                signal.set_wakeup_fd(state.forward)
            except (OSError, ValueError):
                signal.set_wakeup_fd(-1)


os.register_at_fork(after_in_child=_begin_child)

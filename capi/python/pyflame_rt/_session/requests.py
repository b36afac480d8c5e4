# SPDX-License-Identifier: Apache-2.0
"""Requests that the library's batchers and streams answer later, on threads of its own."""
from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import threading
import weakref
from concurrent.futures import Future
from typing import Any, Callable, Dict, Generator, List, Mapping, Optional, Sequence

from .._core import abi, callbacks, interrupt, library as lib
from .._core.ending import at_end
from .._core.errors import InvalidArgumentError, PyFlameRTError
from .._core.options import NativeOptions
from .._values.memory import results_of
from .feeding import FeedingSession

# Takes what became of a request.
Receiver = Callable[["Response"], Any]

# The end of the interpreter waits so many seconds for the functions of callers.
_PATIENCE = 5.0


class Response:
    """What became of a request."""

    def __init__(self, request_id: int, outputs: Dict[str, Any], fault: Optional[PyFlameRTError], struct: Any) -> None:
        self.request_id = request_id
        self.outputs = outputs
        self.fault = fault
        self.stream_id = int(struct.stream)
        self.rows = int(struct.rows)
        self.queued_us = struct.queued_ns / 1e3
        self.ran_us = struct.ran_ns / 1e3
        self.latency_us = struct.latency_ns / 1e3


class RequestFuture(Future):
    """The result of a request: ``result()`` waits for it, ``await`` too. ``cancel()`` ends the request."""

    def __init__(self, end: Callable[[int], None]) -> None:
        super().__init__()
        self._end = end
        self.request_id = 0

    def cancel(self) -> bool:
        cancelled = super().cancel()
        if cancelled and self.request_id:
            self._end(self.request_id)
        return cancelled

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self).__await__()


class _Open:
    """A request that is not answered, and what it needs until then."""

    def __init__(self, receiver: Receiver, names: Sequence[str], memory: Any) -> None:
        self.receiver = receiver
        self.names = names  # of the session's outputs
        self.memory = memory


def _outputs(names: Sequence[str], struct: Any) -> Dict[str, Any]:
    values = [value or 0 for value in (ctypes.c_void_p * struct.output_count).from_address(struct.outputs)
              ] if struct.output_count else []
    try:
        made = [(name, value) for name, value in zip(names, values) if value]
        return dict(zip([name for name, _ in made], results_of([value for _, value in made])))
    finally:
        for value in values:
            if value:
                lib.value.release(value)


def _answer(user: int, address: int) -> None:
    """Is called by the library, on a thread of its own."""
    open_request: _Open = callbacks.held(user)
    callbacks.let_go(user)
    struct = abi.Response.from_address(address)
    fault = lib.take_error(struct.status)
    outputs: Dict[str, Any] = {}
    try:
        outputs = _outputs(open_request.names, struct)
    except PyFlameRTError as failed:
        fault = fault or failed
    try:
        open_request.receiver(Response(int(struct.id), outputs, fault, struct))
    except BaseException:  # of the caller's; there is nobody else to tell
        threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))


# The library calls it until the process ends.
_ANSWER = ctypes.cast(callbacks.permanent_function(abi.ResponseFn, _answer), ctypes.c_void_p)


def fill_options(kind: int, values: Mapping[str, Any]) -> NativeOptions:
    """Options of the library's with these values, by its keys."""
    native = NativeOptions(kind)
    for key, value in values.items():
        native.set(key, value)
    return native


class Requests:
    """A batcher or streams of the library's, which |area| has the functions of."""

    def __init__(self, what: str, area: Any, session: FeedingSession, options: NativeOptions) -> None:
        if not isinstance(session, FeedingSession):
            raise InvalidArgumentError(f"{what} takes an InferenceSession, got {type(session).__name__}")
        self._what, self._area, self._session = what, area, session
        self.handle = lib.make(area.create, area.release, session._alive(), options.address)
        self._names = [port.name for port in session._outputs]
        with _lock:
            _living.add(self)

    def start(self) -> None:
        lib.check(self._area.start(self.handle))

    def stop(self) -> None:
        lib.check(self._area.stop(self.handle))

    def desc(self, output_names: Optional[Sequence[str]], priority: int, timeout_ms: int, stream: int) -> Any:
        """A RequestDesc that keeps its arrays."""
        out = abi.RequestDesc(struct_size=ctypes.sizeof(abi.RequestDesc), stream=stream, priority=priority,
                              timeout_ms=timeout_ms)
        if output_names:
            frame = self._session._take_frame()
            _, wanted = self._session._prepare(frame, output_names)  # it raises for names that there are not
            out.kept = (ctypes.c_size_t * len(wanted))(*wanted)
            out.outputs, out.output_count = ctypes.addressof(out.kept), len(wanted)
        return out

    def submit(self, inputs: Mapping[str, Any], receiver: Receiver, desc: Any) -> int:
        """Submits a request; the result is its number."""
        session = self._session
        frame = session._take_frame()
        kept = session._feed(frame, inputs)
        user = callbacks.hold(_Open(receiver, self._names, kept))
        number = ctypes.c_uint64()
        status = self._area.submit(self.handle, frame.inputs, len(session._inputs), ctypes.byref(desc), _ANSWER, user,
                                   ctypes.byref(number))
        if status:
            callbacks.let_go(user)
            lib.check(status)
        session._frames.append(frame)
        return number.value

    def future(self, inputs: Mapping[str, Any], desc: Any,
               settle: Callable[[RequestFuture, Response], None]) -> RequestFuture:
        """Submits a request whose future |settle| gives its result."""
        future = RequestFuture(self._try_cancel)

        def receive(response: Response) -> None:
            if future.set_running_or_notify_cancel():
                settle(future, response)

        future.request_id = self.submit(inputs, receive, desc)
        return future

    def _try_cancel(self, request_id: int) -> None:
        status = self._area.cancel(self.handle, request_id)
        if status:
            lib.take_error(status)  # it is answered already

    def infer(self, inputs: Mapping[str, Any], desc: Any) -> Dict[str, Any]:
        """Submits a request and waits for its outputs, as a batcher does it; Ctrl-C ends the wait."""
        session, count = self._session, len(self._names)
        frame = session._take_frame()
        kept = session._feed(frame, inputs)
        values = (ctypes.c_void_p * max(count, 1))()
        response = abi.Response(struct_size=ctypes.sizeof(abi.Response))

        def wait(options: Optional[int]) -> Any:
            if options:
                desc.cancel = abi.RunDesc.from_address(options).cancel
            return self._area.infer(self.handle, frame.inputs, len(session._inputs), ctypes.byref(desc), values, count,
                                    ctypes.byref(response))

        lib.check(interrupt.stoppable(None, wait))
        del kept  # which the library has used until here
        session._frames.append(frame)
        response.outputs, response.output_count = ctypes.addressof(values), count
        return _outputs(self._names, response)

    def cancel(self, request_id: int) -> None:
        lib.check(self._area.cancel(self.handle, request_id))


_lock = threading.Lock()
_living: "weakref.WeakSet[Requests]" = weakref.WeakSet()


def _end() -> None:
    """At the interpreter's end the library's threads leave before Python takes itself down."""
    with _lock:
        living: List[Requests] = list(_living)

    def stop_all() -> None:
        for each in living:
            if each.handle.address:
                lib.take_error(each._area.stop(each.handle))

    # A function of a caller's that does not return would keep the process for ever.
    last = threading.Thread(target=stop_all, daemon=True)
    last.start()
    last.join(_PATIENCE)


def _begin_child() -> None:
    global _lock, _living
    _lock, _living = threading.Lock(), weakref.WeakSet()


at_end.append(_end)
os.register_at_fork(after_in_child=_begin_child)


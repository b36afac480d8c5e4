# SPDX-License-Identifier: Apache-2.0
"""Services of plug-ins."""
from __future__ import annotations

import atexit
import ctypes
import threading
from typing import Any, Callable, List, Mapping, Optional, Sequence, Set

from .._core import abi, callbacks, interrupt, library as lib
from .._core.errors import InvalidArgumentError
from .._core.options import NativeOptions, text_of
from .ask import Answer, ask_by, told
from .environment import ProviderOption, option_of

# on_event(name, text)
OnEvent = Callable[[str, str], Any]


class Service:
    """A running service of a plug-in, for example a model server.

    >>> with Service("heartbeat", {"interval_ms": 100, "model": "model.onnx"}) as service:
    ...     print(service.address, service.ask("stats").text)

    It runs until ``stop``, the end of the ``with`` block, or that of the process.

    Parameters
    ----------
    name: the plug-in's own ("Heartbeat") or that of its file ("heartbeat").
    options: by name; values are given as text. ``Service.options`` lists them.
    on_event: ``on_event(name, text)`` hears that something happened in the service, in its own words, on any thread and
        until ``stop`` returns. It may ask the service, and must not stop it; what it raises is lost.
    timeout_ms: TimeoutError when it does not serve after so many milliseconds; 0 = never.
    progress: hears how far the start is, from 0 to 1; returning False stops it with CancelledError.

    Raises NotFoundError, which lists the services there are, InvalidArgumentError for an option that the service does
    not know, and what it reports.
    """

    def __init__(self, name: str, options: Optional[Mapping[str, Any]] = None, *, on_event: Optional[OnEvent] = None,
                 timeout_ms: int = 0, progress: Optional[Callable[[float], Optional[bool]]] = None) -> None:
        if on_event is not None and not callable(on_event):
            raise InvalidArgumentError(f"on_event: {on_event!r} cannot be called; give a function of (name, text)")
        self.name = name
        self._lock = threading.Lock()
        self._asking = threading.Condition()  # guards the options of the questions under way
        self._asks: Set[NativeOptions] = set()
        self._event_user = 0 if on_event is None else callbacks.hold(on_event)
        call = _Call(name, options, timeout_ms)
        if on_event is not None:
            call.desc.event, call.desc.event_user = _HEAR, self._event_user
        out = ctypes.c_void_p()

        def start(_: Optional[int]) -> None:
            lib.check(lib.env.service_start(lib.default_env().address, ctypes.byref(call.desc), ctypes.byref(out)))

        def work(_: Optional[int]) -> None:
            interrupt.stoppable(call.native, start)

        try:
            told(call.native, progress)(work)
        except BaseException:
            callbacks.let_go(self._event_user)
            raise
        self._address: Optional[int] = out.value
        _running.add(self)

    @staticmethod
    def options(name: str) -> List[ProviderOption]:
        """The options that a service lists; it is opened and not started."""
        count, found = ctypes.c_size_t(), []
        env = lib.default_env().address
        lib.check(lib.env.service_option_count(env, lib.text(name), ctypes.byref(count)))
        for i in range(count.value):
            row = abi.OptionInfo(struct_size=ctypes.sizeof(abi.OptionInfo))
            lib.check(lib.env.service_option_at(env, lib.text(name), i, ctypes.byref(row)))
            found.append(option_of(row))
        return found

    @staticmethod
    def check(name: str, options: Optional[Mapping[str, Any]] = None, *, timeout_ms: int = 0) -> None:
        """Raises what starting the service with these options would, as far as it can tell without starting anything.

        UnsupportedError where it cannot tell.
        """
        call = _Call(name, options, timeout_ms)
        interrupt.stoppable(call.native, lambda _: lib.check(lib.env.service_check(
            lib.default_env().address, ctypes.byref(call.desc))))

    def ask(self, verb: str, request: str = "", tensors: Sequence[Any] = (), *, timeout_ms: int = 0,
            progress: Optional[Callable[[float], Optional[bool]]] = None) -> Answer:
        """Asks the running service, from any thread, and returns its answer.

        Parameters
        ----------
        verb, request: what to do, in the service's own word, and how, in the form that the verb wants.
        tensors: arrays that the verb works on.
        timeout_ms: TimeoutError after so many milliseconds; 0 = never.
        progress: hears how far it is, from 0 to 1; returning False stops it with CancelledError.

        UnsupportedError when the service takes no questions or does not know the verb; CancelledError when it is stopped
        meanwhile, InvalidArgumentError when it was stopped before.
        """
        native = NativeOptions(abi.OPTIONS_ASK)
        if timeout_ms:
            native.set("timeout_ms", timeout_ms)

        def call(desc: Any, out: Any) -> Any:
            with self._asking:
                address = self._address
                if address is None:
                    raise InvalidArgumentError(f"asking service '{self.name}': it was stopped")
                self._asks.add(native)
            try:
                return lib.env.service_ask(address, desc, out)
            finally:
                with self._asking:
                    self._asks.remove(native)
                    self._asking.notify_all()

        return ask_by(call, native, "", verb, request, tensors, progress)

    @property
    def address(self) -> str:
        """The address that it can be reached at; "" when it has none, or was stopped."""
        with self._lock:
            return lib.read(lib.env.service_address(self._address)) if self._address else ""

    @property
    def running(self) -> bool:
        """Tells whether it runs: False once it was stopped."""
        return self._address is not None

    def stop(self) -> None:
        """Ends the service: afterwards none of its threads runs.

        Questions under way end with CancelledError. Not to be called from a thread of the service, nor within a question
        or an event.
        """
        with self._lock, self._asking:
            address, self._address = self._address, None
        if address:
            # The library would wait too, but only for questions that have reached it.
            with self._asking:
                for native in self._asks:
                    native.stop(True)
                self._asking.wait_for(lambda: not self._asks)
            lib.env.service_stop(address)
            callbacks.let_go(self._event_user)
        _running.discard(self)

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Service({self.name!r}, {self.address or 'running' if self.running else 'stopped'})"


class _Call:
    """The description of a service in the library's form, and what it points to."""

    def __init__(self, name: str, options: Optional[Mapping[str, Any]], timeout_ms: int) -> None:
        self.native = NativeOptions(abi.OPTIONS_ASK)
        if timeout_ms:
            self.native.set("timeout_ms", timeout_ms)
        pairs = [(lib.text(key), lib.text(text_of(value))) for key, value in (options or {}).items()]
        self._array = (abi.KeyValue * len(pairs))(*(abi.KeyValue(key, value) for key, value in pairs))
        self._kept = (pairs, lib.text(name))
        self.desc = abi.ServiceDesc(struct_size=ctypes.sizeof(abi.ServiceDesc), name=self._kept[1],
                                    options=ctypes.cast(self._array, ctypes.c_void_p), option_count=len(pairs),
                                    call=self.native.address)


def _hear(user: int, name: Any, text: Any) -> None:
    try:
        callbacks.held(user)(lib.read(name), lib.read(text))
    except BaseException:  # nothing may be raised through the service
        pass


_HEAR = callbacks.permanent(abi.ServiceDesc, "event", _hear)

# Not by a finaliser, which may run on any thread, one of the service's among them.
_running: Set[Service] = set()


@atexit.register
def _stop_all() -> None:
    for service in list(_running):
        service.stop()

# SPDX-License-Identifier: Apache-2.0
"""Options of runs."""
from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

from .._core import abi, callbacks, library as lib
from .._core.errors import InvalidArgumentError, PyFlameRTError
from .._core.options import LogLevel, RunDesc
from .._values.memory import taken
from .state import State

# An observer is called with the name and the value of each of SessionOptions.extra_outputs.
Observer = Callable[[str, Any], None]


class _Observing:
    """An observer, and what it raised."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.raised: Optional[BaseException] = None


def _observe(user: int, name: Any, value: int) -> int:
    call = callbacks.held(user)
    try:
        lib.value.retain(value)
        seen = taken(value)
        call.observer(lib.read(name), seen.copy() if hasattr(seen, "copy") else seen)
        return int(abi.CODE_OK)
    except BaseException as fault:
        call.raised = call.raised or fault
        return int(abi.CODE_CANCELLED)


_OBSERVE = callbacks.permanent_function(abi.ObserveFn, _observe)
_NOBODY = ctypes.cast(ctypes.c_void_p(), abi.ObserveFn)


class NativeRunOptions(RunDesc):
    """The library's settings of a run, with its state and its observer."""

    def __init__(self) -> None:
        super().__init__()
        self.state: Optional[State] = None
        self._observing = 0  # what the observer is held by; 0 = there is none

    def __del__(self) -> None:
        if getattr(self, "_observing", 0):
            callbacks.let_go(self._observing)

    def set_observer(self, observer: Optional[Observer]) -> None:
        call = None if observer is None else _Observing(observer)
        user = 0 if call is None else callbacks.hold(call)
        self.struct.observe, self.struct.observe_user = _OBSERVE if call else _NOBODY, user
        if self._observing:
            callbacks.let_go(self._observing)
        self._observing = user

    def raised(self) -> Optional[BaseException]:
        """The exception that the observer raised; it is given once."""
        if not self._observing:
            return None
        call: _Observing = callbacks.held(self._observing)
        fault, call.raised = call.raised, None
        return fault

    def set_keeps_state(self, keeps: Any) -> None:
        if not isinstance(keeps, bool):
            raise InvalidArgumentError(f"keeps_state of a run is {keeps!r}; give True or False")
        self.struct.flags = abi.RUN_KEEPS_STATE if keeps else 0

    def set_state(self, state: Optional[State]) -> None:
        if state is not None and not hasattr(state, "_handle"):
            raise InvalidArgumentError(f"a run's state is a State, which a session makes, got {type(state).__name__}")
        self.struct.state = None if state is None else state._handle.address
        self.state = state


class RunOptions:
    """Options that say how one run goes.

    >>> session.run(None, feeds, RunOptions(timeout_ms=500))

    Attributes, which are also the keywords of a new object; None = not set. They are set before a run begins.
    ----------
    log_level: as in the session; not set = the session's.
    tag: a name for the run in logs and profiles.
    timeout_ms: the run raises TimeoutError after so many milliseconds; not set or 0 = never.
    num_threads: threads this run may use; not set or 0 = the session's.
    memory_limit: bytes of host memory that this run may take for what it works in and for its results, beyond which it
        raises OutOfMemoryError; not set or 0 = no limit.
    priority: of asynchronous runs that wait, those of higher priority are started first; not set = 0.
    state: a State that runs take inputs from and leave their own values in.
    keeps_state: True = runs only read the state, several of them at once, and return what they make.
    observer: observer(name, value) sees SessionOptions.extra_outputs once a run has computed them, on the run's thread,
        whether the run returns them or not; what it raises comes out of the run. All other values are fused as ever.
    """

    _KEYS = RunDesc.KEYS

    def __init__(self, *, log_level: Optional[LogLevel] = None, tag: Optional[str] = None,
                 timeout_ms: Optional[int] = None, num_threads: Optional[int] = None,
                 memory_limit: Optional[int] = None, priority: Optional[int] = None,
                 state: Optional[State] = None, keeps_state: bool = False,
                 observer: Optional[Observer] = None) -> None:
        self._options = NativeRunOptions()
        self.state: Optional[State] = state
        self.keeps_state: bool = keeps_state
        self.observer: Optional[Observer] = observer
        self.log_level: Optional[LogLevel] = log_level
        self.tag: Optional[str] = tag
        self.timeout_ms: Optional[int] = timeout_ms
        self.num_threads: Optional[int] = num_threads
        self.memory_limit: Optional[int] = memory_limit
        self.priority: Optional[int] = priority

    if not TYPE_CHECKING:  # it would let type checkers take any name

        def __setattr__(self, name: str, value: Any) -> None:
            if name in self._KEYS:
                self._options.set(name, value)
            elif name == "state":
                self._options.set_state(value)
            elif name == "keeps_state":
                self._options.set_keeps_state(value)
            elif name == "observer":
                self._options.set_observer(value)
            elif name != "_options":
                known = ", ".join((*self._KEYS, "state", "keeps_state", "observer"))
                raise AttributeError(f"RunOptions has no option '{name}'; it has {known}")
            super().__setattr__(name, value)

    def cancel(self) -> None:
        """Stops runs that use these options, now and later, with CancelledError; from any thread."""
        self._options.cancel()

    def reset(self) -> None:
        """Lets runs use these options again after cancel."""
        self._options.reset_cancel()

    def __repr__(self) -> str:
        known = ((key, getattr(self, key)) for key in (*self._KEYS, "state", "keeps_state"))
        return "RunOptions(" + ", ".join(f"{k}={v!r}" for k, v in known if v is not None and v is not False) + ")"


# What runs take for their options.
GivenRunOptions = Union[RunOptions, "Mapping[str, Any]", None]


def given_options(what: GivenRunOptions) -> Optional[RunOptions]:
    """The options that a run was given: RunOptions, or a dict of them."""
    if what is None or isinstance(getattr(what, "_options", None), NativeRunOptions):
        return what  # type: ignore[return-value]
    if not isinstance(what, Mapping):
        raise InvalidArgumentError(f"run_options is RunOptions or a dict of them, got {type(what).__name__}; for "
                                   "example RunOptions(timeout_ms=500)")
    out = RunOptions()
    for name, value in what.items():
        try:
            setattr(out, str(name), value)
        except AttributeError as fault:
            raise InvalidArgumentError(f"run_options: {fault}") from None
    return out


def check_run(status: Any, run_options: Optional[RunOptions]) -> None:
    """Raises what a run's status says, or what the observer of its options raised."""
    try:
        lib.check(status)
    except PyFlameRTError:
        raised = None if run_options is None else run_options._options.raised()
        if raised is not None:
            raise raised from None
        raise

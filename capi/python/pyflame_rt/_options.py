# SPDX-License-Identifier: Apache-2.0
"""Options of sessions and runs."""
from __future__ import annotations

import ctypes
import enum
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Literal, Mapping, Optional, Sequence, Union

from . import _abi, _callbacks, _library as lib
from ._errors import InvalidArgumentError, PyFlameRTError
from ._providers import known_devices


LogLevel = Literal["debug", "info", "warning", "error", "off"]
ExecutionMode = Literal["sequential", "parallel"]
Precision = Literal["ieee", "fp32", "fast", "bf16", "auto"]
Deterministic = Literal["threads", "batch"]
Tune = Union[bool, Literal["off", "on", "cached"]]
TuneSearch = Literal["race", "random", "model"]
Observer = Callable[[str, Any], None]


class OptLevel(enum.IntEnum):
    """How far a session optimises its graph."""

    NONE = 0  # as the model has it, a step for each node; results may differ from other levels' in the last bits
    BASIC = 1  # constants folded, dead code removed
    EXTENDED = 2  # also common subexpressions and fusion
    ALL = 3  # also layout


def text_of(value: Any) -> str:
    """A value as the options' text form has it."""
    if isinstance(value, OptLevel):
        return value.name.lower()
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _names(option: str, names: Sequence[str]) -> List[str]:
    """A list of names; one name alone is most often meant as a list of one."""
    if isinstance(names, str):
        raise InvalidArgumentError(f"{option} is a list of names, got {names!r}; give [{names!r}]")
    return list(names)

if TYPE_CHECKING:
    from ._state import State


class _Observing:
    """An observer, and what it raised."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.raised: Optional[BaseException] = None


def _observe(user: int, name: Any, value: int) -> int:
    from ._values import taken

    call = _callbacks.held(user)
    try:
        lib.value.retain(value)
        seen = taken(value)
        call.observer(lib.read(name), seen.copy() if hasattr(seen, "copy") else seen)
        return int(_abi.CODE_OK)
    except BaseException as fault:
        call.raised = call.raised or fault
        return int(_abi.CODE_CANCELLED)


_OBSERVE = _callbacks.permanent_function(_abi.ObserveFn, _observe)
_NOBODY = ctypes.cast(ctypes.c_void_p(), _abi.ObserveFn)


class NativeOptions:
    """A handle of the library's options of one kind."""

    def __init__(self, kind: int) -> None:
        self.handle = lib.make(lib.options.create, lib.options.release, kind)
        self.cancelled = False  # by the caller
        self.state: Optional["State"] = None  # of runs
        self._observing = 0  # what the observer is held by; 0 = there is none

    def __del__(self) -> None:
        if getattr(self, "_observing", 0):
            _callbacks.let_go(self._observing)

    @property
    def address(self) -> Optional[int]:
        return self.handle.address

    def set(self, key: str, value: Any) -> None:
        """Sets a key by the type that it has; a list or tuple is a list of strings."""
        if isinstance(value, (list, tuple)):
            lib.check(lib.options.set_strings(self.address, lib.text(key), lib.texts(map(str, value)), len(value)))
        else:
            lib.check(lib.options.set_text(self.address, lib.text(key), lib.text(text_of(value))))

    def set_observer(self, observer: Optional[Observer]) -> None:
        call = None if observer is None else _Observing(observer)
        user = 0 if call is None else _callbacks.hold(call)
        lib.check(lib.options.set_observer(self.address, _OBSERVE if call else _NOBODY, user))
        if self._observing:
            _callbacks.let_go(self._observing)
        self._observing = user

    def raised(self) -> Optional[BaseException]:
        """What the observer raised, once."""
        if not self._observing:
            return None
        call: _Observing = _callbacks.held(self._observing)
        fault, call.raised = call.raised, None
        return fault

    def set_state(self, state: Optional["State"]) -> None:
        if state is not None and not hasattr(state, "_handle"):
            raise InvalidArgumentError(f"a run's state is a State, which a session makes, got {type(state).__name__}")
        lib.check(lib.options.set_state(self.address, None if state is None else state._handle.address))
        self.state = state

    def cancel(self) -> None:
        self.cancelled = True
        lib.options.cancel(self.address)

    def reset_cancel(self) -> None:
        self.cancelled = False
        lib.options.reset_cancel(self.address)

    def get(self, key: str) -> str:
        out = _abi.String()
        lib.check(lib.options.get_text(self.address, lib.text(key), ctypes.byref(out)))
        return lib.read(out)


class SessionOptions:
    """How a session runs its model.

    >>> options = SessionOptions(num_threads=2)
    >>> options.precision = "bf16"

    Attributes, which are also the keywords of a new object. None = the default.
    ----------
    device: "cpu" or another device word; short for a list of providers.
    num_threads: threads a run may use; 0 = as many as the process may use.
    enable_profiling: time every step and keep every run until ``InferenceSession.end_profiling``.
    profile_file_prefix: where the profile goes: PREFIX_YYYY-MM-DD_HH-MM-SS_P_N.json, P being the process's number and N the
        session's; None = "pyflame_rt_profile". Where it is given, a profile that nobody ended is written when the
        session goes.
    execution_mode: "sequential", or "parallel" for independent steps at once.
    optimization_level: an ``OptLevel``.
    verbose_optimization: log what each optimisation pass did.
    log_level: "debug", "info", "warning", "error" or "off".
    skip_passes: optimisation passes to leave out, by name.
    verify: check the results of every optimisation pass on inputs made up.
    precision: "fp32"; "ieee" for plain arithmetic; "fast" or "bf16" for quicker and coarser products; "auto" for the
        quickest of each product with which outputs stay within max_error of "fp32", as measured while the session is
        made.
    max_error: of precision "auto": the largest error of an element, relative to its output's largest; None = 0.001.
    samples: inputs, a dict by name each, on which precision "auto" is measured in place of inputs made up, and verify
        besides those.
    deterministic: "threads": results have the same bits on any number of threads; "batch": also each row of a batch, by
        itself or among any others, in plain arithmetic.
    tune: True = refine blockings by measurement, which makes the first run of new shapes seconds longer; what is found
        goes to cache_dir, where there is one, and is not measured again on this machine; results stay bit-equal.
        "cached" = use what was found before, and measure nothing.
    tune_budget_s: of tune: seconds that the session may measure for in all; None = 3 for each plan.
    tune_search: of tune: "race" measures the few blockings that are usually worth it, "random" ten of these and then some
        of many more at random, and "model" ten and then those of which a Gaussian process of the times expects the
        largest improvement.
    tune_iterations: of the searches "random" and "model": blockings that are measured after the first ten, at most;
        None = 30.
    tune_repeats: of tune: runs by which a blocking is measured; None = some milliseconds of them.
    cache_dir: folder where compiled models are kept, for sessions in other processes to start from (see
        ``pyflame_rt.cache``); "off" = nowhere, None = that of PFRT_CACHE_DIR, if it is set.
    fallback: a failing provider's nodes go to the next one.
    enable_mem_reuse: values that are not in use at the same time lie in the same memory.
    enable_mem_pattern: the block that a run works in is kept for the next; False: freed after each run.
    halve_batch: a run that memory does not suffice for is done in parts of fewer rows of its batch, where the graph
        computes each row by itself; not without fallback, nor with a state.
    strict_dimension_names: a run whose inputs have other sizes for dimensions of one name is refused; False: there is one
        warning, and such runs take a plan in which names tie nothing; with a state they are refused all the same.
    extra_outputs: inner values to return after the model's outputs.
    extra: further options by the keys of the library's or a provider's schema, as text.
    """

    def __init__(self, *, device: str = "cpu", num_threads: int = 0, enable_profiling: bool = False,
                 profile_file_prefix: Optional[str] = None,
                 execution_mode: ExecutionMode = "sequential", optimization_level: OptLevel = OptLevel.EXTENDED,
                 verbose_optimization: bool = False, log_level: LogLevel = "warning", skip_passes: Sequence[str] = (),
                 verify: bool = False, precision: Precision = "fp32", max_error: Optional[float] = None,
                 samples: Sequence[Mapping[str, Any]] = (), tune: Tune = False, fallback: bool = True,
                 enable_mem_reuse: bool = True, enable_mem_pattern: bool = True, halve_batch: bool = True,
                 deterministic: Deterministic = "threads", extra_outputs: Sequence[str] = (),
                 extra: Optional[Mapping[str, str]] = None,
                 cache_dir: "Union[str, os.PathLike[str], None]" = None, tune_budget_s: Optional[float] = None,
                 tune_search: Optional[TuneSearch] = None, tune_iterations: Optional[int] = None,
                 tune_repeats: Optional[int] = None, strict_dimension_names: bool = False) -> None:
        self.device: str = device
        self.num_threads: int = num_threads
        self.enable_profiling: bool = enable_profiling
        self.profile_file_prefix: Optional[str] = profile_file_prefix
        self.execution_mode: ExecutionMode = execution_mode
        self.optimization_level: OptLevel = optimization_level
        self.verbose_optimization: bool = verbose_optimization
        self.log_level: LogLevel = log_level
        self.skip_passes: List[str] = _names("skip_passes", skip_passes)
        self.verify: bool = verify
        self.precision: Precision = precision
        self.max_error: Optional[float] = max_error
        self.samples: List[Mapping[str, Any]] = list(samples)
        self.deterministic: Deterministic = deterministic
        self.tune: Tune = tune
        self.tune_budget_s: Optional[float] = tune_budget_s
        self.tune_search: Optional[TuneSearch] = tune_search
        self.tune_iterations: Optional[int] = tune_iterations
        self.tune_repeats: Optional[int] = tune_repeats
        self.cache_dir: "Union[str, os.PathLike[str], None]" = cache_dir
        self.fallback: bool = fallback
        self.enable_mem_reuse: bool = enable_mem_reuse
        self.enable_mem_pattern: bool = enable_mem_pattern
        self.halve_batch: bool = halve_batch
        self.strict_dimension_names: bool = strict_dimension_names
        self.extra_outputs: List[str] = _names("extra_outputs", extra_outputs)
        self.extra: Dict[str, str] = dict(extra or {})

    if not TYPE_CHECKING:  # it would let type checkers take any name

        def __setattr__(self, name: str, value: Any) -> None:
            if "extra" in self.__dict__ and name not in self.__dict__:
                known = ", ".join(sorted(self.__dict__))
                raise AttributeError(f"SessionOptions has no option '{name}'; it has {known}; others go into .extra by "
                                     "their key")
            super().__setattr__(name, value)

    def _pairs(self) -> Dict[str, Any]:
        apart = ("extra", "extra_outputs", "fallback", "halve_batch", "samples")
        pairs: Dict[str, Any] = {key: value for key, value in self.__dict__.items()
                                 if key not in apart and value is not None}
        if self.optimization_level is not None:
            pairs["optimization_level"] = OptLevel(self.optimization_level)
        if self.cache_dir is not None:
            pairs["cache_dir"] = os.fspath(self.cache_dir)
        pairs["verify"] = "on" if self.verify else "off"
        pairs["tune"] = self.tune if isinstance(self.tune, str) else "on" if self.tune else "off"
        pairs["session.halve_batch"] = "off" if self.halve_batch is not None and not self.halve_batch else "on"
        pairs["session.fallback"] = "off" if self.fallback is not None and not self.fallback else "on"
        pairs.update(self.extra)
        return pairs

    def validate(self) -> List[str]:
        """What is wrong with the options, a sentence each; empty when nothing is."""
        native, faults = NativeOptions(_abi.OPTIONS_SESSION), []
        try:
            pairs = self._pairs()
        except ValueError as fault:
            return [f"optimization_level: {fault}"]
        for key, value in pairs.items():
            try:
                native.set(key, value)
            except PyFlameRTError as fault:
                faults.append(str(fault))
        words = known_devices()
        if self.device is not None and self.device not in words:
            faults.append(f"no provider opens device '{self.device}'; devices are {', '.join(words)}")
        return faults

    def _native(self, providers: Sequence[str] = ()) -> NativeOptions:
        """The library's options; "cpu" is what a list of providers means anyway, only another device can disagree."""
        native = NativeOptions(_abi.OPTIONS_SESSION)
        try:
            pairs = self._pairs()
            if providers:
                pairs["providers"] = list(providers)
                if self.device == "cpu":
                    pairs.pop("device", None)
        except ValueError as fault:
            raise InvalidArgumentError(f"optimization_level: {fault}; take one of OptLevel's") from None
        for key, value in pairs.items():
            native.set(key, value)
        return native

    def __repr__(self) -> str:
        return "SessionOptions(" + ", ".join(f"{key}={value!r}" for key, value in self.__dict__.items()) + ")"


class RunOptions:
    """How one run goes.

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
    observer: observer(name, value) sees SessionOptions.extra_outputs once a run has computed them, on the run's thread,
        whether the run returns them or not; what it raises comes out of the run. All other values are fused as ever.
    """

    _KEYS = ("log_level", "tag", "timeout_ms", "num_threads", "memory_limit", "priority")

    def __init__(self, *, log_level: Optional[LogLevel] = None, tag: Optional[str] = None,
                 timeout_ms: Optional[int] = None, num_threads: Optional[int] = None,
                 memory_limit: Optional[int] = None, priority: Optional[int] = None,
                 state: Optional["State"] = None, observer: Optional[Observer] = None) -> None:
        self._options = NativeOptions(_abi.OPTIONS_RUN)
        self.state: Optional["State"] = state
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
                if value is not None and not (name == "log_level" and value == ""):
                    self._options.set(name, value)
                elif self.__dict__.get(name) is not None:
                    self._unset(name)
            elif name == "state":
                self._options.set_state(value)
            elif name == "observer":
                self._options.set_observer(value)
            elif name != "_options":
                raise AttributeError(f"RunOptions has no option '{name}'; it has " + ", ".join(self._KEYS) + ", state, observer")
            super().__setattr__(name, value)

    def _unset(self, name: str) -> None:
        """A value once set can be taken back from the library's options only by making them anew."""
        fresh = NativeOptions(_abi.OPTIONS_RUN)
        for key in self._KEYS:
            value = self.__dict__.get(key)
            if key != name and value is not None and value != "":
                fresh.set(key, value)
        fresh.set_state(self.__dict__.get("state"))
        fresh.set_observer(self.__dict__.get("observer"))
        if self._options.cancelled:
            fresh.cancel()
        self._options = fresh

    def cancel(self) -> None:
        """Stops runs that use these options, now and later, with CancelledError; from any thread."""
        self._options.cancel()

    def reset(self) -> None:
        """Lets runs use these options again after cancel."""
        self._options.reset_cancel()

    def __repr__(self) -> str:
        known = ((key, getattr(self, key)) for key in (*self._KEYS, "state"))
        return "RunOptions(" + ", ".join(f"{key}={value!r}" for key, value in known if value is not None) + ")"


def check_run(status: Any, run_options: Optional[RunOptions]) -> None:
    """Raises what a run's status says, or what the observer of its options raised."""
    try:
        lib.check(status)
    except PyFlameRTError:
        raised = None if run_options is None else run_options._options.raised()
        if raised is not None:
            raise raised from None
        raise

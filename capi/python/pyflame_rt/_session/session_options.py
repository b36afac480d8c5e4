# SPDX-License-Identifier: Apache-2.0
"""Options of sessions."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Literal, Mapping, Optional, Sequence, Union

from .._core import abi
from .._core.errors import InvalidArgumentError, PyFlameRTError
from .._core.options import LogLevel, NativeOptions, OptLevel
from .._core.progress import Progress
from .providers import known_devices
from .session_calls import SampleSource

ExecutionMode = Literal["sequential", "parallel"]
Precision = Literal["ieee", "fp32", "fast", "bf16", "auto"]
Deterministic = Literal["threads", "batch"]
Tune = Union[bool, Literal["off", "on", "cached"]]
TuneSearch = Literal["race", "random", "model"]
Assign = Literal["cost", "priority"]

# The library's keys of options that have another name here.
_KEYS = {"fallback": "session.fallback", "halve_batch": "session.halve_batch",
         "use_env_allocators": "session.use_env_allocators", "set_denormal_as_zero": "session.set_denormal_as_zero",
         "image_max_pixels": "image.max_pixels",
         "device_reopen_ms": "session.device_reopen_ms"}
# Attributes that are no options of the library's.
_NOT_OPTIONS = ("extra", "extra_outputs", "samples", "sample_source", "progress", "logger")


def _names(option: str, names: Sequence[str]) -> List[str]:
    """A list of names; one name alone is most often meant as a list of one."""
    if isinstance(names, str):
        raise InvalidArgumentError(f"{option} is a list of names, got {names!r}; give [{names!r}]")
    return list(names)


class SessionOptions:
    """Options that say how a session runs its model.

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
    sample_source: a function without arguments that returns a new iterator over such dicts, in place of samples, so that
        they need not be in memory at once. It is called many times while the session is made; what it raises comes out
        of there.
    progress: ``progress(fraction, stage)`` hears how far making the session is, from 0 to 1; returning False stops it
        with CancelledError, raising with what was raised. None: with precision "auto", which takes long, a line on
        ``sys.stderr`` where that is a terminal.
    logger: ``logger(level, message)`` takes the lines that calls of this session cause, by log_level, in place of the
        environment's logger.
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
    assign: "cost" gives a node to whoever estimates the lowest cost, "priority" to the first of the session's providers
        that accepts it.
    node_precision: precision of single nodes, as "NAME=bf16", by the name of the node or of a value it makes.
    use_env_allocators: memory comes from the environment's allocator, where it has one.
    set_denormal_as_zero: runs take denormal numbers, which many processors are slow with, for zero where they read and
        compute them; numbers that are only moved stay as they are.
    image_max_pixels: larger images are refused by ImageDecoder; None = 67108864.
    create_timeout_ms: milliseconds after which making the session fails; 0 = never.
    device_reopen_ms: a device that is lost again within this time of being opened anew is given up; None = 60000.
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
                 samples: Sequence[Mapping[str, Any]] = (), sample_source: Optional[SampleSource] = None,
                 progress: Optional[Progress] = None, logger: Optional[Callable[[str, str], Any]] = None,
                 tune: Tune = False, fallback: bool = True,
                 enable_mem_reuse: bool = True, enable_mem_pattern: bool = True, halve_batch: bool = True,
                 deterministic: Deterministic = "threads", extra_outputs: Sequence[str] = (),
                 extra: Optional[Mapping[str, str]] = None,
                 cache_dir: "Union[str, os.PathLike[str], None]" = None, tune_budget_s: Optional[float] = None,
                 tune_search: Optional[TuneSearch] = None, tune_iterations: Optional[int] = None,
                 tune_repeats: Optional[int] = None, strict_dimension_names: bool = False,
                 assign: Assign = "cost", node_precision: Sequence[str] = (), use_env_allocators: bool = True,
                 set_denormal_as_zero: bool = False, image_max_pixels: Optional[int] = None, create_timeout_ms: int = 0,
                 device_reopen_ms: Optional[int] = None) -> None:
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
        self.sample_source: Optional[SampleSource] = sample_source
        self.progress: Optional[Progress] = progress
        self.logger: Optional[Callable[[str, str], Any]] = logger
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
        self.assign: Assign = assign
        self.node_precision: List[str] = _names("node_precision", node_precision)
        self.use_env_allocators: bool = use_env_allocators
        self.set_denormal_as_zero: bool = set_denormal_as_zero
        self.image_max_pixels: Optional[int] = image_max_pixels
        self.create_timeout_ms: int = create_timeout_ms
        self.device_reopen_ms: Optional[int] = device_reopen_ms
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
        pairs: Dict[str, Any] = {_KEYS.get(name, name): value for name, value in self.__dict__.items()
                                 if name not in _NOT_OPTIONS and value is not None}
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
        """The faults of the options, a sentence each; the list is empty when there are none."""
        native, faults = NativeOptions(abi.OPTIONS_SESSION), []
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
        native = NativeOptions(abi.OPTIONS_SESSION)
        try:
            pairs = self._pairs()
            if providers:
                pairs["providers"] = list(providers)
                if self.device == "cpu":
                    pairs.pop("device", None)
        except ValueError as fault:
            names = ", ".join(each.name for each in OptLevel)
            raise InvalidArgumentError(f"optimization_level: {fault}; take one of OptLevel's: {names}") from None
        for key, value in pairs.items():
            native.set(key, value)
        return native

    def __repr__(self) -> str:
        return "SessionOptions(" + ", ".join(f"{key}={value!r}" for key, value in self.__dict__.items()) + ")"



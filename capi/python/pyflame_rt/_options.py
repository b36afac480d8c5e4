# SPDX-License-Identifier: Apache-2.0
"""Options of sessions and runs."""
from __future__ import annotations

import ctypes
import enum
from typing import Any, Dict, List, Mapping, Optional, Sequence

from . import _abi, _library as lib
from ._errors import InvalidArgumentError, PyFlameRTError


class OptLevel(enum.IntEnum):
    """How far a session optimises its graph."""

    NONE = 0  # as the model has it
    BASIC = 1  # constants folded, dead code removed
    EXTENDED = 2  # also common subexpressions and fusion
    ALL = 3  # also layout


def _text_of(value: Any) -> str:
    """A value as the options' text form has it."""
    if isinstance(value, OptLevel):
        return value.name.lower()
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class NativeOptions:
    """A handle of the library's options of one kind."""

    def __init__(self, kind: int) -> None:
        self.handle = lib.make(lib.options.create, lib.options.release, kind)
        self.cancelled = False  # by the caller

    @property
    def address(self) -> Optional[int]:
        return self.handle.address

    def set(self, key: str, value: Any) -> None:
        """Sets a key by the type that it has; a list or tuple is a list of strings."""
        if isinstance(value, (list, tuple)):
            lib.check(lib.options.set_strings(self.address, lib.text(key), lib.texts(map(str, value)), len(value)))
        else:
            lib.check(lib.options.set_text(self.address, lib.text(key), lib.text(_text_of(value))))

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

    Attributes
    ----------
    device: "cpu" or another device word; short for a list of providers.
    num_threads: threads a run may use; 0 = as many as the process may use.
    enable_profiling: time every step of a run.
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
    tune: refine blockings by measurement, which makes the first run of new shapes seconds longer; results stay
        bit-equal.
    fallback: a failing provider's nodes go to the next one.
    extra_outputs: inner values to return after the model's outputs.
    extra: further options by the keys of the library's or a provider's schema, as text.
    """

    def __init__(self) -> None:
        self.device: str = "cpu"
        self.num_threads: int = 0
        self.enable_profiling: bool = False
        self.execution_mode: str = "sequential"
        self.optimization_level: OptLevel = OptLevel.EXTENDED
        self.verbose_optimization: bool = False
        self.log_level: str = "warning"
        self.skip_passes: List[str] = []
        self.verify: bool = False
        self.precision: str = "fp32"
        self.max_error: Optional[float] = None
        self.samples: List[Mapping[str, Any]] = []
        self.tune: bool = False
        self.fallback: bool = True
        self.extra_outputs: List[str] = []
        self.extra: Dict[str, str] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if "extra" in self.__dict__ and name not in self.__dict__:
            raise AttributeError(f"SessionOptions has no option '{name}'; it has " + ", ".join(sorted(self.__dict__)) +
                                 "; others go into .extra by their key")
        super().__setattr__(name, value)

    def _pairs(self) -> Dict[str, Any]:
        apart = ("extra", "extra_outputs", "fallback", "samples")
        pairs: Dict[str, Any] = {key: value for key, value in self.__dict__.items() if key not in apart}
        pairs["optimization_level"] = OptLevel(self.optimization_level)
        pairs["verify"] = "on" if self.verify else "off"
        pairs["tune"] = "on" if self.tune else "off"
        pairs["session.fallback"] = "on" if self.fallback else "off"
        if self.max_error is None:
            del pairs["max_error"]
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
        return faults

    def _native(self, providers: Sequence[str] = ()) -> NativeOptions:
        """The library's options; "cpu" is what a list of providers means anyway, only another device can disagree."""
        native = NativeOptions(_abi.OPTIONS_SESSION)
        try:
            pairs = self._pairs()
            if providers:
                pairs["providers"] = list(providers)
                if self.device == "cpu":
                    del pairs["device"]
        except ValueError as fault:
            raise InvalidArgumentError(f"optimization_level: {fault}; take one of OptLevel's") from None
        for key, value in pairs.items():
            native.set(key, value)
        return native

    def __repr__(self) -> str:
        return "SessionOptions(" + ", ".join(f"{key}={value!r}" for key, value in self.__dict__.items()) + ")"


class RunOptions:
    """How one run goes.

    Attributes
    ----------
    log_level: as in the session; "" = the session's.
    tag: a name for the run in logs.
    timeout_ms: the run raises TimeoutError after so many milliseconds; 0 = never.
    num_threads: threads this run may use; 0 = the session's.
    """

    _KEYS = ("log_level", "tag", "timeout_ms", "num_threads")

    def __init__(self) -> None:
        self._options = NativeOptions(_abi.OPTIONS_RUN)
        self.log_level: str = ""
        self.tag: str = ""
        self.timeout_ms: int = 0
        self.num_threads: int = 0

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._KEYS:
            # An empty level means the session's, which is what a fresh handle has.
            if not (name == "log_level" and value == ""):
                self._options.set(name, value)
        elif name != "_options":
            raise AttributeError(f"RunOptions has no option '{name}'; it has " + ", ".join(self._KEYS))
        super().__setattr__(name, value)

    def cancel(self) -> None:
        """Stops runs that use these options, now and later, with CancelledError; from any thread."""
        self._options.cancel()

    def reset(self) -> None:
        """Lets runs use these options again after cancel."""
        self._options.reset_cancel()

    def __repr__(self) -> str:
        return "RunOptions(" + ", ".join(f"{key}={getattr(self, key)!r}" for key in self._KEYS) + ")"

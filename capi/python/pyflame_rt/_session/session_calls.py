# SPDX-License-Identifier: Apache-2.0
"""The functions of the program's that a session calls: samples one by one, and log lines."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterator, List, Mapping, Optional, Sequence, Tuple

from .._core import abi, callbacks, library as lib
from .._core.errors import InputError, InvalidArgumentError
from .._values.value import value_of

# Returns a new iterator over samples, which are dicts with a value for each input by name.
SampleSource = Callable[[], Iterator[Mapping[str, Any]]]
_LEVELS = {abi.LOG_DEBUG: "debug", abi.LOG_INFO: "info", abi.LOG_WARNING: "warning", abi.LOG_ERROR: "error"}


def _fill(at: Any, sample: Any) -> List[Any]:
    """Fills a sample of the library's form; what it points to is returned."""
    if not isinstance(sample, Mapping):
        raise InputError(f"a sample is a dict with a value for each input by name, got {type(sample).__name__}")
    values = [value_of(value, name) for name, value in sample.items()]
    names = lib.texts(sample)
    addresses = (ctypes.c_void_p * len(values))(*(value.address for value in values))
    at.names, at.values = ctypes.cast(names, ctypes.c_void_p), ctypes.cast(addresses, ctypes.c_void_p)
    at.count = len(values)
    return [values, names, addresses]


def samples_in_c(samples: Sequence[Mapping[str, Any]]) -> Tuple[Any, List[Any]]:
    """The library's form of samples, and what has to stay while it is read."""
    out: Any = (abi.Sample * len(samples))()
    kept: List[Any] = []
    for at, sample in zip(out, samples):
        at.struct_size = ctypes.sizeof(abi.Sample)
        kept += _fill(at, sample)
    return out, kept


class SourceCall:
    """A sample source for the time of one call, and what it raised."""

    def __init__(self, source: Optional[SampleSource]) -> None:
        if source is not None and not callable(source):
            raise InvalidArgumentError(f"sample_source: {source!r} cannot be called; give a function that returns an "
                                       "iterator over samples")
        self._source = source
        self._iterator: Iterator[Mapping[str, Any]] = iter(())
        self._kept: List[Any] = []
        self.raised: Optional[BaseException] = None

    def __call__(self, desc: Any, work: Callable[[], Any]) -> Any:
        """work(), while |desc| of a session has the source."""
        if self._source is None:
            return work()
        user = callbacks.hold(self)
        struct = abi.SampleSource(struct_size=ctypes.sizeof(abi.SampleSource), user=user, next=_NEXT, rewind=_REWIND)
        desc.sample_source = ctypes.addressof(struct)
        try:
            return work()
        except BaseException:
            if self.raised is None:
                raise
        finally:
            callbacks.let_go(user)
        raise self.raised

    def rewind(self) -> None:
        assert self._source is not None
        self._kept = []
        self._iterator = iter(self._source())

    def next(self, out: Any) -> None:
        self._kept = []
        sample = next(self._iterator, None)
        if sample is None:
            return
        if isinstance(sample, Mapping) and not sample:
            raise InputError("a sample of the sample_source has no inputs")
        self._kept = _fill(out, sample)


def _guard(user: int, work: Callable[[SourceCall], None]) -> int:
    call: SourceCall = callbacks.held(user)
    try:
        work(call)
        return abi.CODE_OK
    except BaseException as fault:
        call.raised = call.raised or fault
        return abi.CODE_INPUT


def _next(user: int, out: int) -> int:
    return _guard(user, lambda call: call.next(abi.Sample.from_address(out)))


def _rewind(user: int) -> int:
    return _guard(user, lambda call: call.rewind())


def set_log(desc: Any, logger: Optional[Callable[[str, str], Any]]) -> None:
    """Makes |logger| take the lines of a session that |desc| is given for once; the library keeps it."""
    if logger is None:
        return
    if not callable(logger):
        raise InvalidArgumentError(f"logger: {logger!r} cannot be called; give a function of (level, message)")
    desc.log, desc.log_user, desc.log_release = _LOG, callbacks.hold(logger), callbacks.RELEASE


def _log(user: int, level: int, message: Any) -> None:
    try:
        callbacks.held(user)(_LEVELS.get(level, "error"), lib.read(message))
    except BaseException:  # nothing may be raised through the library
        pass


_NEXT = callbacks.permanent(abi.SampleSource, "next", _next)
_REWIND = callbacks.permanent(abi.SampleSource, "rewind", _rewind)
_LOG = callbacks.permanent(abi.SessionDesc, "log", _log)

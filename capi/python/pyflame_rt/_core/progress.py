# SPDX-License-Identifier: Apache-2.0
"""Calls that tell how far they are."""
from __future__ import annotations

import sys
from typing import Any, Callable, Optional, TypeVar

from . import abi, callbacks, library as lib
from .errors import PyFlameRTError
from .options import NativeOptions

T = TypeVar("T")
# progress(fraction, stage) hears how far a load or save is, from 0 to 1, and what is being done. Returning False stops
# it with CancelledError, raising with what was raised.
Progress = Callable[[float, str], Optional[bool]]


class ProgressLine:
    """A line on the terminal that says how far a long call is. It is cleared at the end, and never written elsewhere."""

    def __init__(self) -> None:
        self._shown = ""

    @staticmethod
    def can_be_seen() -> bool:
        return sys.stderr is not None and hasattr(sys.stderr, "isatty") and sys.stderr.isatty()

    def __call__(self, fraction: float, stage: str) -> None:
        text = f"pyflame_rt: {stage}, {fraction:.0%}"
        if text != self._shown:
            self._write(text)
            self._shown = text

    def clear(self) -> None:
        if self._shown:
            self._write("")

    @staticmethod
    def _write(text: str) -> None:
        try:
            sys.stderr.write(f"\r\033[K{text}")
            sys.stderr.flush()
        except (OSError, ValueError):  # the terminal is gone, which is no reason to stop
            pass


def _hear(user: int, fraction: float, stage: Any) -> None:
    call = callbacks.held(user)
    try:
        if call.progress(fraction, lib.read(stage)) is False:
            lib.options.cancel(call.native.address)
    except BaseException as fault:
        call.raised = call.raised or fault
        lib.options.cancel(call.native.address)


_HEAR = callbacks.permanent_function(abi.ProgressFn, _hear)


class ProgressCall:
    """Options of a call that tells how far it is, and what its progress callback raised."""

    def __init__(self, native: NativeOptions, progress: Optional[Progress]) -> None:
        self.native = native
        self.progress = progress
        self.raised: Optional[BaseException] = None

    def __call__(self, work: Callable[..., T], *args: Any) -> T:
        """work(*args, address of the options)"""
        if self.progress is None:
            return work(*args, self.native.address)
        user = callbacks.hold(self)
        try:
            lib.check(lib.options.set_progress(self.native.address, _HEAR, user))
            return work(*args, self.native.address)
        except PyFlameRTError:
            if self.raised is None:
                raise
        finally:
            callbacks.let_go(user)
        raise self.raised

# SPDX-License-Identifier: Apache-2.0
"""Options as the library has them: keys with values, and whether their call was cancelled."""
from __future__ import annotations

import ctypes
import enum
from typing import Any, Literal, Optional

from . import abi, library as lib

LogLevel = Literal["debug", "info", "warning", "error", "off"]


class OptLevel(enum.IntEnum):
    """The levels up to which a session optimises its graph."""

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
            lib.check(lib.options.set_text(self.address, lib.text(key), lib.text(text_of(value))))

    def cancel(self) -> None:
        self.cancelled = True
        lib.options.cancel(self.address)

    def reset_cancel(self) -> None:
        self.cancelled = False
        lib.options.reset_cancel(self.address)

    def get(self, key: str) -> str:
        out = abi.String()
        lib.check(lib.options.get_text(self.address, lib.text(key), ctypes.byref(out)))
        return lib.read(out)

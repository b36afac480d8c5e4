# SPDX-License-Identifier: Apache-2.0
"""Options as the library has them, settings of runs, and whether their calls were cancelled."""
from __future__ import annotations

import ctypes
import enum
import operator
from typing import Any, Literal, Optional

from . import abi, library as lib
from .errors import InvalidArgumentError

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


class Stoppable:
    """Settings of calls, which stop them."""

    def __init__(self) -> None:
        self.cancelled = False  # by the caller

    @property
    def address(self) -> Optional[int]:
        raise NotImplementedError

    def stop(self, yes: bool) -> None:
        """Stops calls that have these settings, now and later, or lets them go on. It is not the caller's doing."""
        raise NotImplementedError

    def cancel(self) -> None:
        self.cancelled = True
        self.stop(True)

    def reset_cancel(self) -> None:
        self.cancelled = False
        self.stop(False)


class NativeOptions(Stoppable):
    """A handle of the library's options of one kind."""

    def __init__(self, kind: int) -> None:
        super().__init__()
        self.handle = lib.make(lib.options.create, lib.options.release, kind)

    @property
    def address(self) -> Optional[int]:
        return self.handle.address

    def set(self, key: str, value: Any) -> None:
        """Sets a key by the type that it has; a list or tuple is a list of strings."""
        if isinstance(value, (list, tuple)):
            lib.check(lib.options.set_strings(self.address, lib.text(key), lib.texts(map(str, value)), len(value)))
        else:
            lib.check(lib.options.set_text(self.address, lib.text(key), lib.text(text_of(value))))

    def stop(self, yes: bool) -> None:
        (lib.options.cancel if yes else lib.options.reset_cancel)(self.address)

    def get(self, key: str) -> str:
        out = abi.String()
        lib.check(lib.options.get_text(self.address, lib.text(key), ctypes.byref(out)))
        return lib.read(out)


class RunDesc(Stoppable):
    """Settings of runs, in memory that the library reads at each run."""

    KEYS = ("log_level", "tag", "timeout_ms", "num_threads", "memory_limit", "priority")
    _LEVELS = ("", "debug", "info", "warning", "error", "off")
    _MOST = 1 << 40

    def __init__(self) -> None:
        super().__init__()
        self._flag = ctypes.c_uint32()
        self._tag = lib.text("")
        self.struct = abi.RunDesc(struct_size=ctypes.sizeof(abi.RunDesc), cancel=ctypes.addressof(self._flag))
        self.pointer = ctypes.c_void_p(ctypes.addressof(self.struct))

    @property
    def address(self) -> Optional[int]:
        return self.pointer.value

    def stop(self, yes: bool) -> None:
        self._flag.value = yes

    def set(self, key: str, value: Any) -> None:
        """Sets a member by its name, to a value or its text; None = not set."""
        if key == "log_level":
            self.struct.log_level = self._level(value or "")
        elif key == "tag":
            self._tag = lib.text("" if value is None else str(value))
            self.struct.tag = self._tag
        elif key in self.KEYS:
            setattr(self.struct, key, self._number(key, 0 if value is None else value))
        else:
            raise InvalidArgumentError(f"a run has no option '{key}'; it has " + ", ".join(self.KEYS))

    def _level(self, value: Any) -> int:
        if value not in self._LEVELS:
            raise InvalidArgumentError(f"log_level of a run is {value!r}; give one of " + ", ".join(self._LEVELS[1:]))
        return self._LEVELS.index(value)

    def _number(self, key: str, value: Any) -> int:
        number = -1
        if not isinstance(value, bool):
            try:
                number = int(value) if isinstance(value, str) and value.isdecimal() else operator.index(value)
            except TypeError:
                pass
        if not 0 <= number <= self._MOST:  # a member of the struct would take the last bits of any number
            raise InvalidArgumentError(f"{key} of a run is {value!r}; give a whole number from 0 to {self._MOST}")
        return number

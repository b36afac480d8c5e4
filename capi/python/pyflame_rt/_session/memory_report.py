# SPDX-License-Identifier: Apache-2.0
"""The memory that a session takes, and the session's phase."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Dict

from .._core import abi, library as lib

_ROW = ctypes.CFUNCTYPE(None, ctypes.c_void_p, abi.String, ctypes.c_uint64)


@dataclass
class MemoryReport:
    """Bytes of memory, of the host's but for those of devices; ``weights`` and ``packed`` are shared by sessions."""

    weights: int  # the model's constants in memory, mapped files not counted
    packed: int  # constants in providers' own layouts
    in_use: int  # blocks of runs under way
    idle: int  # blocks that wait for the next run
    peak: int  # of blocks so far
    blocks: Dict[str, int]  # by the signature that plans are kept for, as "x[8,3,224,224]"
    device_in_use: int = 0  # blocks of runs under way, in the memory of devices
    device_idle: int = 0  # blocks there that wait for the next run
    states: int = 0  # values of states and room for the next ones; what states share is counted once
    device_states: int = 0  # the same, in the memory of devices


def memory_report(session: Any) -> MemoryReport:
    """The report of the session of this address."""
    out = abi.MemoryReport(struct_size=ctypes.sizeof(abi.MemoryReport))
    blocks: Dict[str, int] = {}

    def add(_: Any, signature: Any, size: int) -> None:
        text = lib.read(signature)
        blocks[text] = blocks.get(text, 0) + size

    row = _ROW(add)
    lib.check(lib.session.memory_report(session, ctypes.byref(out), ctypes.cast(row, ctypes.c_void_p), None))
    return MemoryReport(out.weights, out.packed, out.in_use, out.idle, out.peak, blocks, out.device_in_use,
                        out.device_idle, out.states, out.device_states)


def trimmed(trim: Any, handle: Any) -> int:
    """The bytes that a function of the library's has given back."""
    out = ctypes.c_uint64()
    lib.check(trim(handle, ctypes.byref(out)))
    return out.value


def phase_of(session: Any) -> str:
    """The word of a session's phase."""
    phase, name = ctypes.c_uint32(), abi.String()
    lib.check(lib.session.phase(session, ctypes.byref(phase), ctypes.byref(name)))
    return lib.read(name)

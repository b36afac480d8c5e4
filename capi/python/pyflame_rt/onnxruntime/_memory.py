# SPDX-License-Identifier: Apache-2.0
"""Names of ONNX Runtime's for memory. They are taken as that API takes them; memory is pooled by size here."""
from __future__ import annotations

import enum
from typing import Any, Dict, Union

from pyflame_rt._core.errors import InvalidArgumentError

from ._environment import log_no_meaning
from ._exceptions import translates, translating


class OrtAllocatorType(enum.IntEnum):
    """The kinds of allocators."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(enum.IntEnum):
    """What memory is for."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtMemoryInfoDeviceType(enum.IntEnum):
    """The kinds of devices that memory belongs to."""

    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtDeviceMemoryType(enum.IntEnum):
    """Who can read a device's memory."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


@translates
class OrtMemoryInfo:
    """A name for memory: ``name`` of its allocator ("Cpu"), ``allocator_type``, ``device_id`` and ``mem_type``."""

    def __init__(self, name: str, allocator_type: OrtAllocatorType, id: int, mem_type: OrtMemType) -> None:
        if not isinstance(name, str):
            raise InvalidArgumentError(f"OrtMemoryInfo: the name is {name!r}; give text, as 'Cpu'")
        self.name = name
        self.allocator_type = OrtAllocatorType(allocator_type)
        self.device_id = int(id)
        self.mem_type = OrtMemType(mem_type)
        self.device_type = OrtMemoryInfoDeviceType.CPU
        self.device_mem_type = OrtDeviceMemoryType.DEFAULT
        self.alignment = 0
        self.device_vendor_id = 0

    @staticmethod
    def create_v2(name: str, device_type: OrtMemoryInfoDeviceType, vendor_id: int, device_id: int,
                  mem_type: OrtDeviceMemoryType, alignment: int, allocator_type: OrtAllocatorType) -> "OrtMemoryInfo":
        """A name for memory by its device; ``alignment`` is what its blocks are at least aligned to, in bytes."""
        out = OrtMemoryInfo(name, allocator_type, device_id, OrtMemType.DEFAULT)
        out.device_type = OrtMemoryInfoDeviceType(device_type)
        out.device_mem_type = OrtDeviceMemoryType(mem_type)
        out.device_vendor_id, out.alignment = int(vendor_id), int(alignment)
        return out

    def __repr__(self) -> str:
        return (f"OrtMemoryInfo({self.name!r}, {self.allocator_type.name}, {self.device_id}, {self.mem_type.name})")


@translates
class OrtArenaCfg:
    """Settings of an arena: a dict of them, or the four numbers."""

    NAMES = ("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk",
             "initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes")

    def __init__(self, *given: Any) -> None:
        settings: Dict[str, int] = dict.fromkeys(self.NAMES, -1)
        if len(given) == 1 and isinstance(given[0], dict):
            unknown = [name for name in given[0] if name not in settings]
            if unknown:
                raise InvalidArgumentError(f"OrtArenaCfg has no {unknown[0]!r}; it has {', '.join(self.NAMES)}")
            settings.update(given[0])
        elif len(given) == 4:
            settings.update(zip(self.NAMES, given))
        else:
            raise InvalidArgumentError("OrtArenaCfg takes a dict, or max_mem, arena_extend_strategy, "
                                       "initial_chunk_size_bytes and max_dead_bytes_per_chunk")
        self.__dict__.update({name: int(value) for name, value in settings.items()})


@translating
def create_and_register_allocator(mem_info: OrtMemoryInfo, arena_cfg: Union[OrtArenaCfg, None] = None) -> None:
    """Is taken and told to the logger: memory is pooled by size, and given back."""
    if not isinstance(mem_info, OrtMemoryInfo):
        raise InvalidArgumentError(f"create_and_register_allocator: {mem_info!r} is no OrtMemoryInfo")
    log_no_meaning("create_and_register_allocator", "memory is pooled by size, and given back")

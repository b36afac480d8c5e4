# SPDX-License-Identifier: Apache-2.0
"""Values with all that is within them, which one call describes: a call for each costs more than to copy what is small."""
from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from .._core import abi, library as lib
from .arrays import address_of, presented
from .dtype import FROM_ABI, OWN_NUMPY, TO_ABI, DType, memory_dtype
from .strings import strings_at

_ROOM = 16  # parts that are asked for at first
SMALL = 16384  # bytes of a tensor that is cheaper to copy than to keep
_PART_SIZE = ctypes.sizeof(abi.ValuePart)

# A part in words of 8 bytes.
_WORDS = _PART_SIZE // 8
_COUNT, _TENSOR = abi.ValuePart.count.offset // 8, abi.ValuePart.tensor.offset // 8
_RANK, _DATA, _BYTES, _DIMS = (_TENSOR + at // 8 for at in (
    abi.Tensor.rank.offset, abi.Tensor.data.offset, abi.Tensor.bytes.offset, abi.Tensor.dims.offset))
_HOST_VECTOR = abi.MEMORY_HOST << 32 | 1  # the word of rank and memory
_KEY, _VALUE, _ENTRY = _WORDS, 2 * _WORDS, 3 * _WORDS  # of a map: its keys, its values, what follows it
_NUMBERS = {TO_ABI[dtype]: code for dtype, code in (
    (DType.Int64, "q"), (DType.Int32, "i"), (DType.Float32, "f"), (DType.Float64, "d"))}
_NUMPY = {TO_ABI[dtype]: numpy for dtype, numpy in OWN_NUMPY.items() if dtype != DType.String}
# Types of arrays go with the last reference, and cost more than a call to make.
_KEPT = [number * size for number in (ctypes.c_int64, ctypes.c_void_p) for size in range(33)]


class NotCopied(Exception):
    """A tensor is large or on a device, or a value is sparse."""


def parts_of(values: Sequence[int]) -> "Parts":
    """The parts of values, in their order."""
    words, at, room = _room_for(_ROOM)
    given, count = (ctypes.c_void_p * len(values))(*values), ctypes.c_size_t()
    lib.check(lib.value.parts(given, len(values), at, room, ctypes.byref(count)))
    if count.value > room:
        words, at, room = _room_for(count.value)
        lib.check(lib.value.parts(given, len(values), at, room, ctypes.byref(count)))
    return Parts(words)


def _room_for(count: int) -> Tuple[Any, int, int]:
    words = memoryview(bytearray(_PART_SIZE * count)).cast("Q")
    words[0] = _PART_SIZE
    return words, ctypes.addressof(ctypes.c_char.from_buffer(words)), count


class Parts:
    """Takes one part after another for Python's own values and copied arrays."""

    def __init__(self, words: Any) -> None:
        self._words, self._at = words, 0
        self._lists: Dict[Tuple[int, int, int], List[Any]] = {}  # many maps have the same keys

    def take_or_skip(self) -> Tuple[bool, Any]:
        """Whether the next part could be taken, and what it is."""
        at = self._at
        try:
            return True, self.take()
        except NotCopied:
            self._at = at
            self._skip()
            return False, None

    def _skip(self) -> None:
        """Goes on behind a part and all that is within it."""
        count = self._words[self._at + _COUNT]
        self._at += _WORDS
        for _ in range(count):
            self._skip()

    def strings(self) -> Optional[Tuple[int, ...]]:
        """The dimensions of a tensor of strings, which is then taken; None for others."""
        at = self._at
        if self._words[at] >> 32 != abi.VALUE_TENSOR or self._words[at + _TENSOR] >> 32 != abi.DTYPE_STRING:
            return None
        self._at += _WORDS
        return self._dims(at)

    def take(self) -> Any:
        """What the next part is. Raises NotCopied somewhere within it."""
        words, at = self._words, self._at
        self._at = at + _WORDS
        kind = words[at] >> 32
        if kind == abi.VALUE_TENSOR:
            if words[at + _BYTES] > SMALL:
                raise NotCopied
            return self._array(at)
        if kind == abi.VALUE_SEQUENCE:
            count = words[at + _COUNT]
            maps = self._maps(count) if count > 1 else None
            return [self.take() for _ in range(count)] if maps is None else maps
        if kind == abi.VALUE_OPTIONAL:
            return self.take() if words[at + _COUNT] else None
        if kind != abi.VALUE_MAP:
            raise NotCopied
        self._at = at + _ENTRY
        return dict(zip(self._list(at + _KEY), self._list(at + _VALUE)))

    def _maps(self, count: int) -> Optional[List[Dict[Any, Any]]]:
        """Maps with the same keys whose values lie one behind another, as ZipMap makes them; None for others."""
        words, first = self._words, self._at
        end = first + count * _ENTRY
        code, size = _NUMBERS.get(words[first + _VALUE + _TENSOR] >> 32), words[first + _VALUE + _BYTES]
        if words[first] >> 32 != abi.VALUE_MAP or code is None or not size:
            return None
        for at in (0, _KEY, _KEY + _DATA, _KEY + _BYTES, _VALUE + _TENSOR, _VALUE + _RANK, _VALUE + _BYTES):
            if words[first + at:end:_ENTRY].tolist().count(words[first + at]) != count:
                return None
        data = words[first + _VALUE + _DATA]
        if words[first + _VALUE + _RANK] != _HOST_VECTOR or (
                words[first + _VALUE + _DATA:end:_ENTRY].tolist() != list(range(data, data + count * size, size))):
            return None
        self._at = end
        keys = self._list(first + _KEY)
        numbers = memoryview(ctypes.string_at(data, count * size)).cast(code).tolist()
        return [dict(zip(keys, numbers[i:i + len(keys)])) for i in range(0, len(numbers), len(keys))]

    def _dims(self, at: int) -> Tuple[int, ...]:
        rank = self._words[at + _RANK] & 0xFFFFFFFF
        return tuple((ctypes.c_int64 * rank).from_address(self._words[at + _DIMS])) if rank else ()

    def _list(self, at: int) -> List[Any]:
        """The rows of a tensor, as Python's own numbers and texts where there is one dimension."""
        words = self._words
        data, size, number = words[at + _DATA], words[at + _BYTES], words[at + _TENSOR] >> 32
        made = self._lists.get((data, size, number)) if size else None
        if made is None:
            code = _NUMBERS.get(number)
            if code is not None and words[at + _RANK] == _HOST_VECTOR:
                made = memoryview(ctypes.string_at(data, size)).cast(code).tolist() if size else []
            else:
                array = self._array(at)
                made = array.tolist() if array.ndim == 1 else list(array)
            self._lists[data, size, number] = made
        return made

    def _array(self, at: int) -> np.ndarray:
        words = self._words
        rank, size, number = words[at + _RANK], words[at + _BYTES], words[at + _TENSOR] >> 32
        if rank >> 32 != abi.MEMORY_HOST:
            raise NotCopied
        dims = self._dims(at)
        if number == abi.DTYPE_STRING:
            return strings_at(words[at + _DATA], dims)
        numpy = _NUMPY.get(number)
        dtype = None if numpy is not None else FROM_ABI[number]
        out = np.empty(dims, numpy) if dtype is None else np.empty(
            (size,) if dtype.bits < 8 else dims, memory_dtype(dtype))
        if size:
            ctypes.memmove(address_of(out), words[at + _DATA], size)
        return out if dtype is None else presented(out, dtype, dims)

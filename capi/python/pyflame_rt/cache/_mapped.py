# SPDX-License-Identifier: Apache-2.0
"""Files as memory: their pages are read when they are first touched, and shared with all who map the same file."""
from __future__ import annotations

import mmap
import os
import threading
from enum import IntEnum
from typing import Optional, Sequence, Tuple, Union

import numpy as np

from .._core.errors import InputError
from .._core.regular_file import open_regular
from .._graph.files import load_model
from .._graph.graph import Graph
from .._values.dtype import DType, dtype_size
from .._values.tensor import Tensor

FilePath = Union[str, "os.PathLike[str]"]


class MMapAdvice(IntEnum):
    """Advice on how the memory of a file will be used."""

    Normal = 0
    Sequential = 1
    Random = 2
    WillNeed = 3
    DontNeed = 4


_ADVICE = {MMapAdvice.Normal: "MADV_NORMAL", MMapAdvice.Sequential: "MADV_SEQUENTIAL", MMapAdvice.Random: "MADV_RANDOM",
           MMapAdvice.WillNeed: "MADV_WILLNEED", MMapAdvice.DontNeed: "MADV_DONTNEED"}


class MappedFile:
    """A file as memory. What is written to the memory is this object's own and does not reach the file."""

    def __init__(self) -> None:
        self._map: Optional[mmap.mmap] = None

    @staticmethod
    def open(path: FilePath) -> "MappedFile":
        """The regular file at ``path``; not valid when there is none, it is empty or cannot be mapped."""
        file = MappedFile()
        try:
            with open_regular(path) as source:
                file._map = mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_COPY)
        except (OSError, ValueError):
            pass
        return file

    def is_valid(self) -> bool:
        """Tells whether there is one."""
        return self._map is not None

    def size(self) -> int:
        """Bytes."""
        return 0 if self._map is None else len(self._map)

    def data(self) -> memoryview:
        """Its bytes, which stay while anybody has them."""
        return memoryview(self._map if self._map is not None else b"")

    def advise(self, advice: MMapAdvice, offset: int = 0, length: int = 0) -> bool:
        """Advises on ``length`` bytes from ``offset`` on, 0 = to the end, by whole pages around them. False when the
        system does not take it."""
        option = getattr(mmap, _ADVICE[MMapAdvice(advice)], None)
        if self._map is None or option is None or not 0 <= offset < len(self._map):
            return False
        start = offset - offset % mmap.PAGESIZE
        end = len(self._map) if length <= 0 else min(offset + length, len(self._map))
        try:
            self._map.madvise(option, start, end - start)
        except (OSError, ValueError):
            return False
        return True


class MMapLoader:
    """Models out of mapped files, as ``load_model`` reads them too."""

    @staticmethod
    def can_mmap(path: FilePath) -> bool:
        """Tells whether the file is there, not empty, and may be mapped."""
        return MappedFile.open(path).is_valid()

    @staticmethod
    def load(path: FilePath) -> Graph:
        """The graph, whose constants are views of the file."""
        return load_model(path)

    @staticmethod
    def page_alignment() -> int:
        """The alignment, in bytes, of parts of a file that are to be mapped by themselves."""
        return mmap.ALLOCATIONGRANULARITY


class LazyTensor:
    """A tensor in a file, of which nothing is read before it is asked for.

    Row-major elements from byte ``offset`` of ``file`` on. InputError when the file is not valid or too short.
    """

    def __init__(self, file: MappedFile, offset: int, shape: Sequence[int], dtype: DType) -> None:
        self._shape: Tuple[int, ...] = tuple(shape)
        self._dtype = DType(dtype)
        count = int(np.prod(self._shape, dtype=object))
        if not file.is_valid():
            raise InputError(f"LazyTensor {list(self._shape)}: there is no file")
        if any(dim < 0 for dim in self._shape) or dtype_size(self._dtype) == 0:
            raise InputError(f"LazyTensor {list(self._shape)}: the shape is impossible, or the type not one of numbers")
        self._bytes = count * dtype_size(self._dtype)
        if offset < 0 or offset + self._bytes > file.size():
            raise InputError(f"LazyTensor {list(self._shape)}: its {self._bytes} bytes from {offset} on are more than "
                             f"the file's {file.size()}")
        self._file, self._offset = file, offset
        self._lock = threading.Lock()
        self._tensor: Optional[Tensor] = None

    @property
    def shape(self) -> Tuple[int, ...]:
        """The shape that was given."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The element type that was given."""
        return self._dtype

    def num_elements(self) -> int:
        """The product of the dimensions."""
        return int(np.prod(self._shape, dtype=object))

    def size_bytes(self) -> int:
        """Bytes of the elements."""
        return self._bytes

    def is_materialized(self) -> bool:
        """Tells whether the tensor has been asked for."""
        return self._tensor is not None

    def materialize(self) -> Tensor:
        """The tensor, the same each time."""
        with self._lock:
            if self._tensor is None:
                made = Tensor(list(self._shape), self._dtype)
                flat = made.memory().reshape(-1).view(np.uint8)
                flat[:] = np.frombuffer(self._file.data(), np.uint8, self._bytes, self._offset)
                self._tensor = made
            return self._tensor

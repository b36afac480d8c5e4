# SPDX-License-Identifier: Apache-2.0
"""Tensors that a program makes itself."""
from __future__ import annotations

from typing import Any, List, Sequence

import numpy as np

from .arrays import address_of, plain, presented, stored
from .dtype import DType, dtype_of, memory_dtype
from .memory import array_over


class Tensor:
    """A dense tensor in host memory.

    ``Tensor(shape, dtype)`` has memory of its own, zeroed. The elements' bytes are kept as ONNX has them, several packed
    into one where they are of fewer than 8 bits; ``numpy`` says as what they are given.
    """

    __slots__ = ("_array", "_dtype", "_shape")
    __array_priority__ = 1

    def __init__(self, shape: Sequence[int], dtype: Any = DType.Float32) -> None:
        self._dtype = dtype_of(dtype)
        self._shape = [int(dim) for dim in shape]
        if any(dim < 0 for dim in self._shape):
            raise ValueError(f"a tensor of shape {self._shape}: no dimension may be negative")
        # The bytes, as memory_of_view gives them.
        self._array = np.zeros(self._storage_shape(), memory_dtype(self._dtype))
        if self._dtype == DType.String:
            self._array.fill("")

    def _packed(self) -> bool:
        return 0 < self._dtype.bits < 8

    def _storage_shape(self) -> List[int]:
        return [(self.num_elements * self._dtype.bits + 7) // 8] if self._packed() else self._shape

    @classmethod
    def _over(cls, array: np.ndarray, dtype: DType, shape: Sequence[int]) -> "Tensor":
        out = cls.__new__(cls)
        out._array, out._dtype, out._shape = array, dtype, list(shape)
        return out

    @property
    def shape(self) -> List[int]:
        """The dimensions; [] for a scalar."""
        return list(self._shape)

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    @property
    def num_elements(self) -> int:
        """The product of the dimensions; 1 for a scalar."""
        count = 1
        for dim in self._shape:
            count *= dim
        return count

    @property
    def size_bytes(self) -> int:
        """Bytes of the elements; sub-byte types are packed."""
        return int(self._array.nbytes)

    @property
    def is_valid(self) -> bool:
        """It is always true: a tensor of Python has memory."""
        return True

    @property
    def owns_data(self) -> bool:
        """Tells whether the memory stays for as long as the tensor does."""
        return True

    def numpy(self) -> np.ndarray:
        """The elements, not copied. Where the package ml_dtypes can be imported, those of types that NumPy lacks are of
        its dtypes, and a read-only copy where they are packed in the tensor; where not, they come as ``memory``."""
        array = presented(self._array, self._dtype, self._shape)
        if self._packed():
            array.flags.writeable = array is self._array and array.flags.writeable
        return array

    def memory(self) -> np.ndarray:
        """The elements' bytes, not copied: an array of the type itself where NumPy has it, otherwise of uint16 or uint8;
        flat and packed as ONNX packs them where elements are of fewer than 8 bits."""
        return self._array

    def clone(self) -> "Tensor":
        """A tensor with a copy of the elements."""
        return Tensor._over(self._array.copy(), self._dtype, self._shape)

    def reshape(self, shape: Sequence[int]) -> "Tensor":
        """A tensor over the same memory with another shape; one dimension may be -1."""
        wanted = [int(dim) for dim in shape]
        known = 1
        for dim in wanted:
            known *= 1 if dim == -1 else dim
        if wanted.count(-1) == 1 and known > 0 and self.num_elements % known == 0:
            wanted[wanted.index(-1)] = self.num_elements // known
            known = self.num_elements
        if -1 in wanted or any(dim < 0 for dim in wanted) or known != self.num_elements:
            raise ValueError(f"a tensor of shape {self._shape} has {self.num_elements} elements and cannot become "
                             f"{list(shape)}")
        return Tensor._over(self._array if self._packed() else self._array.reshape(wanted), self._dtype, wanted)

    def zero(self) -> None:
        """Makes every element 0 (or the empty string)."""
        self._array.fill("" if self._dtype == DType.String else 0)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        array = self.numpy() if dtype is None else self.numpy().astype(dtype, copy=False)
        return array.copy() if copy else array

    def __dlpack__(self, **arguments: Any) -> Any:
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("a tensor of rank 0 has no length")
        return self._shape[0]

    def __repr__(self) -> str:
        return f"Tensor(shape={self._shape}, dtype={self._dtype})"


def from_numpy(array: Any) -> Tensor:
    """A tensor over the array's memory, which stays for as long as the tensor does.

    An array that is not row-major or of another byte order, one whose elements have to be packed (int4 of ml_dtypes), and
    anything else that NumPy makes arrays of, is copied.
    """
    array = np.asarray(array)
    if dtype_of(array.dtype) == DType.String:
        return Tensor._over(plain(array.astype(object)), DType.String, array.shape)
    memory, dtype = stored(array)
    return Tensor._over(memory, dtype, array.shape)


def from_dlpack(source: Any) -> Tensor:
    """A tensor over the memory of anything that speaks DLPack, on the CPU."""
    array = np.from_dlpack(source)
    if array.size and not array.flags.writeable:
        # Memory that DLPack hands over may be written; NumPy 1.24 marks it as read-only all the same.
        memory = array_over(array, address_of(array), _extent(array), array.dtype, (-1,))
        array = np.lib.stride_tricks.as_strided(memory, array.shape, array.strides)
    return from_numpy(array)


def _extent(array: np.ndarray) -> int:
    """Bytes from the first element to the end of the last."""
    return array.itemsize + sum((dim - 1) * stride for dim, stride in zip(array.shape, array.strides))


def to_numpy(tensor: Tensor) -> np.ndarray:
    """The elements of a tensor, as ``Tensor.numpy`` gives them."""
    return tensor.numpy()

# SPDX-License-Identifier: Apache-2.0
"""Values of the library as NumPy arrays, lists and dicts."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Dict, List, Tuple

import numpy as np

from .._core import abi, library as lib
from .._core.errors import InputError
from .arrays import address_of, presented
from .dtype import FROM_ABI, OWN_NUMPY, TO_ABI, DType, memory_dtype

TENSOR_SIZE = ctypes.sizeof(abi.Tensor)
_NUMPY_OF_ABI = {TO_ABI[dtype]: numpy for dtype, numpy in OWN_NUMPY.items() if dtype != DType.String}
_SMALL = 16384  # bytes of a tensor that is cheaper to copy than to keep


@dataclass
class SparseTensor:
    """Elements ``values`` [nnz] at ``indices`` [nnz, rank] (or [nnz], linear) of a tensor of ``shape``."""

    values: np.ndarray
    indices: np.ndarray
    shape: Tuple[int, ...]


def dims_of(view: Any) -> Tuple[int, ...]:
    if not view.rank:
        return ()
    return tuple((ctypes.c_int64 * view.rank).from_address(view.dims))


def array_over(owner: Any, address: int, size: int, dtype: "np.dtype[Any]", dims: Tuple[int, ...]) -> np.ndarray:
    """An array over memory that |owner| keeps alive."""
    if size == 0:
        return np.empty(dims, dtype)
    memory: Any = (ctypes.c_char * size).from_address(address)
    memory.owner = owner
    return np.frombuffer(memory, dtype).reshape(dims)


def _strings(view: Any, dims: Tuple[int, ...]) -> np.ndarray:
    out = np.empty(dims, object)
    count = out.size
    if count:
        strings = (abi.String * count).from_address(view.data)
        out.ravel()[:] = [lib.read(s) for s in strings]
    return out


def array_of(handle: lib.Handle) -> np.ndarray:
    """A tensor's elements, copied only to unpack them; without ml_dtypes, types that NumPy lacks come as their bytes."""
    view = view_of(handle)
    return presented(memory_of_view(view, handle), FROM_ABI[view.dtype], dims_of(view))


def view_of(handle: lib.Handle) -> Any:
    """A tensor in host memory as a Tensor struct."""
    view = abi.Tensor(struct_size=TENSOR_SIZE)
    lib.check(lib.value.tensor(handle.address, ctypes.byref(view)))
    if view.memory != abi.MEMORY_HOST:
        raise InputError("the tensor is in a device's memory; copy it to the host first")
    return view


def memory_of_view(view: Any, owner: Any) -> np.ndarray:
    """The bytes of a Tensor struct, whose memory |owner| keeps alive, as ``memory_dtype``: in the tensor's shape, or flat
    where elements are packed. Strings are copied."""
    dims, dtype = dims_of(view), FROM_ABI[view.dtype]
    if dtype == DType.String:
        return _strings(view, dims)
    return array_over(owner, view.data, view.bytes, memory_dtype(dtype), (view.bytes,) if dtype.bits < 8 else dims)


def taken(value: int) -> Any:
    """The result that a run gives for a value, which is released with it. Small tensors are copied: that costs less
    than an array that keeps the value alive."""
    view = abi.Tensor(TENSOR_SIZE)
    status = lib.value.tensor(value, ctypes.byref(view))
    if status:  # not a tensor
        lib.status.release(status)
    elif view.dtype in _NUMPY_OF_ABI and view.bytes <= _SMALL and view.memory == abi.MEMORY_HOST:
        rank, size = view.rank, view.bytes
        array = np.empty((ctypes.c_int64 * rank).from_address(view.dims)[:] if rank else (), _NUMPY_OF_ABI[view.dtype])
        if size:
            ctypes.memmove(address_of(array), view.data, size)
        lib.value.release(value)
        return array
    return python_of(lib.Handle(value, lib.value.release))


def _element(handle: lib.Handle, index: int) -> lib.Handle:
    out = ctypes.c_void_p()
    lib.check(lib.value.element(handle.address, index, ctypes.byref(out)))
    assert out.value
    lib.value.retain(out.value)
    return lib.Handle(out.value, lib.value.release)


def _parts(function: Any, handle: lib.Handle, count: int = 2, *more: Any) -> List[lib.Handle]:
    outs = [ctypes.c_void_p() for _ in range(count)]
    lib.check(function(handle.address, *(ctypes.byref(o) for o in outs), *more))
    made = []
    for out in outs:
        assert out.value
        lib.value.retain(out.value)
        made.append(lib.Handle(out.value, lib.value.release))
    return made


def python_of(handle: lib.Handle) -> Any:
    """The result that a run gives for a value: arrays, lists, dicts, None, SparseTensor."""
    kind = lib.value.kind(handle.address)
    if kind == abi.VALUE_TENSOR:
        return array_of(handle)
    if kind in (abi.VALUE_SEQUENCE, abi.VALUE_OPTIONAL):
        count = ctypes.c_size_t()
        lib.check(lib.value.count(handle.address, ctypes.byref(count)))
        elements = [python_of(_element(handle, i)) for i in range(count.value)]
        if kind == abi.VALUE_SEQUENCE:
            return elements
        return elements[0] if elements else None
    if kind == abi.VALUE_MAP:
        keys, values = (array_of(part) for part in _parts(lib.value.map_parts, handle))
        out: Dict[Any, Any] = dict(zip(keys.tolist(), values.tolist() if values.ndim == 1 else list(values)))
        return out
    dims, rank = ctypes.c_void_p(), ctypes.c_size_t()
    parts = _parts(lib.value.sparse_parts, handle, 2, ctypes.byref(dims), ctypes.byref(rank))
    shape = tuple((ctypes.c_int64 * rank.value).from_address(dims.value)) if rank.value and dims.value else ()
    return SparseTensor(array_of(parts[0]), array_of(parts[1]), shape)

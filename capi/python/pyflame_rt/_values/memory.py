# SPDX-License-Identifier: Apache-2.0
"""Values of the library as NumPy arrays, lists and dicts."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from .._core import abi, library as lib
from .._core.errors import InputError
from .arrays import address_of, presented
from .dtype import FROM_ABI, DType, memory_dtype
from .nested import parts_of
from .strings import strings_at, strings_of

TENSOR_SIZE = ctypes.sizeof(abi.Tensor)


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


def array_of(handle: lib.Handle) -> np.ndarray:
    """A tensor's elements, copied only to unpack them; without ml_dtypes, types that NumPy lacks come as their bytes."""
    view = view_of(handle)
    if view.dtype == abi.DTYPE_STRING:
        return strings_of(handle.address or 0, dims_of(view))
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
        return strings_at(view.data, dims)
    return array_over(owner, view.data, view.bytes, memory_dtype(dtype), (view.bytes,) if dtype.bits < 8 else dims)


def results_of(values: Sequence[int]) -> List[Any]:
    """What values are for Python: arrays, lists, dicts, None, SparseTensor. Small tensors are copied: that costs less than
    an array that keeps the value alive, as those over large ones do."""
    parts, out = parts_of(values), []
    for value in values:
        dims = parts.strings()
        if dims is not None:
            out.append(strings_of(value, dims))
            continue
        copied, result = parts.take_or_skip()
        if not copied:
            lib.value.retain(value)
            result = _kept(lib.Handle(value, lib.value.release))
        out.append(result)
    return out


def taken(value: int) -> Any:
    """The result for a value, which is released."""
    try:
        return results_of((value,))[0]
    finally:
        lib.value.release(value)


def python_of(handle: lib.Handle) -> Any:
    """The result for a value."""
    return results_of((handle.address or 0,))[0]


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


def _kept(handle: lib.Handle) -> Any:
    """The result for a value of which some is not copied."""
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

# SPDX-License-Identifier: Apache-2.0
"""Values of the library from arrays, lists and dicts."""
from __future__ import annotations

import ctypes
from typing import Any, List, Optional, Sequence

import numpy as np

from .._core import abi, library as lib
from .._core.errors import DTypeMismatchError, ShapeMismatchError
from .arrays import address_of, as_array, number_array, stored
from .dtype import ABI_OF_NUMPY, FROM_ABI, TO_ABI, DType, numpy_name
from .memory import TENSOR_SIZE, SparseTensor, dims_of
from .strings import string_tensor
from .tensor import Tensor


def check_tensor(port: Any, fed: Any) -> None:
    """Raises where what was fed, an array or a value, has not the element type or rank of an input."""
    if port.kind != abi.VALUE_TENSOR or fed is None:
        return
    if isinstance(fed, lib.Handle):
        if lib.value.kind(fed.address) != abi.VALUE_TENSOR:
            return
        view = abi.Tensor(struct_size=TENSOR_SIZE)
        lib.check(lib.value.tensor(fed.address, ctypes.byref(view)))
        dtype, shape = view.dtype, dims_of(view)
    else:
        dtype = TO_ABI[fed.dtype] if isinstance(fed.dtype, DType) else ABI_OF_NUMPY[fed.dtype]
        shape = tuple(fed.shape)
    if port.dtype != dtype and port.dtype in FROM_ABI:
        want, got = FROM_ABI[port.dtype], FROM_ABI[dtype].text
        nearest = f"give a pyflame_rt.Tensor of {want}"
        if want == DType.String:
            nearest = "give an array of str"
        elif numpy_name(want) is not None:
            nearest = f"convert it, for example with numpy.asarray(value, {numpy_name(want)})"
        raise DTypeMismatchError(f"running: input '{port.name}' expects {want.text}, got {got}; {nearest}") from None
    if port.dims is not None and len(port.dims) != len(shape):
        rank = len(shape)
        nearest = ("numpy.expand_dims(value, 0) adds a dimension" if rank == len(port.dims) - 1 else
                   "numpy.squeeze(value, 0) takes a first dimension of 1 away" if rank == len(port.dims) + 1 else
                   "numpy.reshape gives it another")
        dims = ",".join(str(dim) if dim >= 0 else text or "?" for dim, text in zip(port.dims, port.dim_names))
        raise ShapeMismatchError(f"running: input '{port.name}' expects [{dims}], got [{','.join(map(str, shape))}] "
                                 f"(rank {rank} instead of {len(port.dims)}); {nearest}") from None


def tensor_value(array: np.ndarray, dtype: int, dims: Sequence[int]) -> lib.Handle:
    """A tensor that is a copy of |array|'s bytes."""
    shape = (ctypes.c_int64 * max(len(dims), 1))(*dims)
    handle = lib.make(lib.value.create_tensor, lib.value.release, dtype, shape, len(dims))
    view = abi.Tensor(struct_size=TENSOR_SIZE)
    lib.check(lib.value.tensor(handle.address, ctypes.byref(view)))
    if view.bytes != array.nbytes:
        raise ValueError(f"{array.nbytes} bytes for a tensor of {view.bytes}")
    if view.bytes:
        ctypes.memmove(view.data, address_of(array), view.bytes)
    return handle


def _as_dtype(what: List[Any], dtype: Optional[DType], name: str) -> np.ndarray:
    if dtype is None:
        return np.array(what)
    return np.array(what, object) if dtype == DType.String else number_array(what, dtype, name)


def value_of(what: Any, name: str, dtype: Optional[DType] = None, key_dtype: Optional[DType] = None) -> lib.Handle:
    """A value of any kind: arrays are tensors, lists and tuples sequences, dicts maps, None an empty optional. Where
    |dtype| is given, numbers of Python's are of that type, and keys of maps of |key_dtype|."""
    if isinstance(what, Tensor):
        if what.dtype == DType.String:
            return string_tensor(what._array, name)
        return tensor_value(what._array, TO_ABI[what.dtype], what.shape)
    if what is None:
        return lib.make(lib.value.create_optional, lib.value.release, None)
    if isinstance(what, dict):
        keys = _as_dtype(list(what.keys()), key_dtype, name)
        if key_dtype is None and keys.dtype.kind == "i":
            keys = keys.astype(np.int64)
        parts = [value_of(part, name) for part in (keys, _as_dtype(list(what.values()), dtype, name))]
        return lib.make(lib.value.create_map, lib.value.release, parts[0].address, parts[1].address)
    if isinstance(what, (list, tuple)):
        elements = [value_of(element, name, dtype, key_dtype) for element in what]
        addresses = (ctypes.c_void_p * max(len(elements), 1))(*(e.address for e in elements))
        none = abi.DTYPE_FLOAT32 if dtype is None else TO_ABI[dtype]
        of = lib.value.dtype(elements[0].address) if elements else none
        return lib.make(lib.value.create_sequence, lib.value.release, of, addresses, len(elements))
    if isinstance(what, SparseTensor):
        values, indices = value_of(what.values, name), value_of(np.asarray(what.indices, np.int64), name)
        dims = (ctypes.c_int64 * max(len(what.shape), 1))(*what.shape)
        return lib.make(lib.value.create_sparse, lib.value.release, values.address, indices.address, dims,
                        len(what.shape))
    array = as_array(what if dtype is None else number_array(what, dtype, name), name)
    if array.dtype.kind in "OUS":
        return string_tensor(array, name)
    memory, dtype = stored(array)
    return tensor_value(memory, TO_ABI[dtype], array.shape)

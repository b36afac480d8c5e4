# SPDX-License-Identifier: Apache-2.0
"""Values of the library as NumPy arrays, lists and dicts, and back."""
from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from . import _abi, _library as lib
from ._dtype import (ABI_OF_NUMPY, FROM_ABI, OWN_NUMPY, TO_ABI, DType, dtype_of_numpy, memory_dtype, numpy_name)
from ._errors import DTypeMismatchError, InputError, OutOfMemoryError, PyFlameRTError, ShapeMismatchError

TENSOR_SIZE = ctypes.sizeof(_abi.Tensor)
_NUMPY_OF_ABI = {TO_ABI[dtype]: numpy for dtype, numpy in OWN_NUMPY.items() if dtype != DType.String}
_SMALL = 16384  # bytes of a tensor that is cheaper to copy than to keep


@dataclass
class SparseTensor:
    """Elements ``values`` [nnz] at ``indices`` [nnz, rank] (or [nnz], linear) of a tensor of ``shape``."""

    values: np.ndarray
    indices: np.ndarray
    shape: Tuple[int, ...]


def address_of(array: np.ndarray) -> int:
    """Where the elements begin; 0 is never returned for an array with elements."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):  # read-only, or without elements
        return int(array.__array_interface__["data"][0])


def plain(array: np.ndarray) -> np.ndarray:
    """The array in the machine's byte order, aligned and row-major; a copy only where it is not."""
    try:
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        return array if array.flags.c_contiguous and array.flags.aligned else array.copy(order="C")
    except MemoryError as fault:
        raise OutOfMemoryError(f"an array of shape {array.shape} is not row-major and has to be copied: "
                               f"{fault}") from fault


def array_from(what: Any, name: str) -> np.ndarray:
    """What NumPy makes of |what|, and no subclass of its arrays."""
    if type(what) is np.ndarray:
        return what
    if isinstance(what, np.ma.MaskedArray) and np.any(np.ma.getmaskarray(what)):  # type: ignore[no-untyped-call]
        raise InputError(f"input '{name}' is an array with masked elements, and a tensor has an element everywhere; "
                         "say which with .filled(value)")
    try:
        if hasattr(what, "__dlpack__") and not any(hasattr(what, protocol) for protocol in _ARRAY_PROTOCOLS):
            return np.from_dlpack(what)
        array = np.asarray(what)
    except PyFlameRTError:
        raise
    except Exception as fault:
        text = str(fault).rstrip(".")
        raise InputError(f"input '{name}': NumPy makes no array of this {type(what).__name__}: {text}; give an array "
                         "in the host's memory, a Tensor, or lists of equal length") from fault
    if array.dtype == object and array.ndim == 0:
        raise InputError(f"input '{name}': NumPy makes no array of this {type(what).__name__}; give an array, a "
                         "Tensor, a number, or lists of numbers")
    return array


_ARRAY_PROTOCOLS = ("__array__", "__array_interface__", "__array_struct__")


def as_array(what: Any, name: str) -> np.ndarray:
    """An array of a type that the library has, from whatever NumPy makes arrays of."""
    array = array_from(what, name)
    if array.dtype in ABI_OF_NUMPY:
        return plain(array)
    if array.dtype.kind in "OUS":
        return array
    if dtype_of_numpy(array.dtype) is not None:
        return plain(array)
    raise DTypeMismatchError(f"input '{name}': arrays of {array.dtype} have no element type here; convert it, "
                             "for example with .astype(numpy.float32)")


def number_array(what: Any, dtype: DType, name: str) -> np.ndarray:
    """An array of Python's numbers as |dtype|, so that lists of floats are not float64; other arrays as they are."""
    array = array_from(what, name)
    if hasattr(what, "dtype") or dtype == DType.String:
        return array
    target, kind = dtype.numpy, _KIND_OF_NAME.get(dtype.text.rstrip("0123456789"), "f")
    if target is None or kind not in _EXACT.get(array.dtype.kind, ""):
        return array
    with np.errstate(all="ignore"):
        made = array.astype(target)
    exact = array.dtype.kind in "iu" and kind in "iu"
    wide = made.astype(np.int64) if target.itemsize == 1 else made  # types of ml_dtypes compare with none of NumPy's
    lost = wide != array if exact else np.isfinite(array) & ~np.isfinite(made)
    if np.any(lost):
        raise InputError(f"input '{name}': {array[lost].flat[0]} is no number of {dtype.text}, which the model takes")
    return made


# Kinds as NumPy has them, of all element types but the floating-point ones.
_KIND_OF_NAME = {"bool": "b", "int": "i", "uint": "u", "complex": "c"}
_EXACT = {"b": "b", "i": "iuf", "u": "iuf", "f": "f", "c": "c"}


def check_tensor(port: Any, fed: Any) -> None:
    """Raises where what was fed, an array or a value, has not the element type or rank of an input."""
    if port.kind != _abi.VALUE_TENSOR or fed is None:
        return
    if isinstance(fed, lib.Handle):
        if lib.value.kind(fed.address) != _abi.VALUE_TENSOR:
            return
        view = _abi.Tensor(struct_size=TENSOR_SIZE)
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


# ------------------------------------------------------------------ elements in memory and as arrays


def stored(array: np.ndarray) -> Tuple[np.ndarray, DType]:
    """The bytes of an array of numbers as the library keeps them, row-major, and their element type. A view where
    nothing has to be packed or moved."""
    array, dtype = plain(array), dtype_of_numpy(array.dtype)
    assert dtype is not None
    if dtype in OWN_NUMPY:
        return array, dtype
    if dtype.bits >= 8:
        return array.view(memory_dtype(dtype)), dtype
    each = 8 // dtype.bits
    flat = np.zeros(-(-array.size // each) * each, np.uint8)
    flat[:array.size] = array.reshape(-1).view(np.uint8) & (1 << dtype.bits) - 1
    out = flat[::each].copy()
    for i in range(1, each):
        np.bitwise_or(out, np.left_shift(flat[i::each], i * dtype.bits), out=out)
    return out, dtype


def presented(memory: np.ndarray, dtype: DType, shape: Sequence[int]) -> np.ndarray:
    """The inverse of ``stored``, where NumPy or ml_dtypes has the type; the bytes as they are where none has it."""
    numpy = dtype.numpy
    if dtype in OWN_NUMPY or numpy is None:
        return memory
    if dtype.bits >= 8:
        return memory.view(numpy)
    each = 8 // dtype.bits
    out = np.empty((memory.size, each), np.uint8)
    for i in range(each):
        out[:, i] = memory >> i * dtype.bits & (1 << dtype.bits) - 1
    return out.reshape(-1)[:math.prod(shape)].reshape(shape).view(numpy)


# ------------------------------------------------------------------ to the library


def string_tensor(array: np.ndarray, name: str) -> lib.Handle:
    """A tensor of strings from an array of str or bytes."""
    dims = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    handle = lib.make(lib.value.create_tensor, lib.value.release, _abi.DTYPE_STRING, dims, array.ndim)
    for i, element in enumerate(array.ravel().tolist()):
        try:
            element = element.decode("utf-8") if isinstance(element, bytes) else element
            string = lib.text(element) if isinstance(element, str) else None
        except UnicodeError as fault:
            raise InputError(f"input '{name}': element {i} is no text that UTF-8 has: {fault}") from None
        if string is None:
            raise DTypeMismatchError(
                f"input '{name}': element {i} of an object array is {type(element).__name__}, and only arrays of str "
                "are tensors; give numbers a numeric dtype, for example with .astype(numpy.float32)")
        lib.check(lib.value.set_string(handle.address, i, string))
    return handle


def tensor_value(array: np.ndarray, dtype: int, dims: Sequence[int]) -> lib.Handle:
    """A tensor that is a copy of |array|'s bytes."""
    shape = (ctypes.c_int64 * max(len(dims), 1))(*dims)
    handle = lib.make(lib.value.create_tensor, lib.value.release, dtype, shape, len(dims))
    view = _abi.Tensor(struct_size=TENSOR_SIZE)
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
    from ._tensor import Tensor  # which is made of what is here
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
        none = _abi.DTYPE_FLOAT32 if dtype is None else TO_ABI[dtype]
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


# ------------------------------------------------------------------ from the library

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
        strings = (_abi.String * count).from_address(view.data)
        out.ravel()[:] = [lib.read(s) for s in strings]
    return out


def array_of(handle: lib.Handle) -> np.ndarray:
    """A tensor's elements, copied only to unpack them; without ml_dtypes, types that NumPy lacks come as their bytes."""
    view = view_of(handle)
    return presented(memory_of_view(view, handle), FROM_ABI[view.dtype], dims_of(view))


def view_of(handle: lib.Handle) -> Any:
    """A tensor in host memory as a Tensor struct."""
    view = _abi.Tensor(struct_size=TENSOR_SIZE)
    lib.check(lib.value.tensor(handle.address, ctypes.byref(view)))
    if view.memory != _abi.MEMORY_HOST:
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
    """What a run gives for a value, which is released with it. Small tensors are copied: that costs less than an array
    that keeps the value alive."""
    view = _abi.Tensor(TENSOR_SIZE)
    status = lib.value.tensor(value, ctypes.byref(view))
    if status:  # not a tensor
        lib.status.release(status)
    elif view.dtype in _NUMPY_OF_ABI and view.bytes <= _SMALL and view.memory == _abi.MEMORY_HOST:
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
    """What a run gives for a value: arrays, lists, dicts, None, SparseTensor."""
    kind = lib.value.kind(handle.address)
    if kind == _abi.VALUE_TENSOR:
        return array_of(handle)
    if kind in (_abi.VALUE_SEQUENCE, _abi.VALUE_OPTIONAL):
        count = ctypes.c_size_t()
        lib.check(lib.value.count(handle.address, ctypes.byref(count)))
        elements = [python_of(_element(handle, i)) for i in range(count.value)]
        if kind == _abi.VALUE_SEQUENCE:
            return elements
        return elements[0] if elements else None
    if kind == _abi.VALUE_MAP:
        keys, values = (array_of(part) for part in _parts(lib.value.map_parts, handle))
        out: Dict[Any, Any] = dict(zip(keys.tolist(), values.tolist() if values.ndim == 1 else list(values)))
        return out
    dims, rank = ctypes.c_void_p(), ctypes.c_size_t()
    parts = _parts(lib.value.sparse_parts, handle, 2, ctypes.byref(dims), ctypes.byref(rank))
    shape = tuple((ctypes.c_int64 * rank.value).from_address(dims.value)) if rank.value and dims.value else ()
    return SparseTensor(array_of(parts[0]), array_of(parts[1]), shape)



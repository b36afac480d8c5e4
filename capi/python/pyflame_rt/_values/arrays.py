# SPDX-License-Identifier: Apache-2.0
"""Arrays of NumPy, and the bytes of their elements as the library keeps them."""
from __future__ import annotations

import ctypes
import math
from typing import Any, Sequence, Tuple

import numpy as np

from .._core.errors import DTypeMismatchError, InputError, OutOfMemoryError, PyFlameRTError
from .dtype import ABI_OF_NUMPY, OWN_NUMPY, DType, dtype_of_numpy, memory_dtype


def address_of(array: np.ndarray) -> int:
    """The address of the first element; 0 is never returned for an array with elements."""
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
    """The array that NumPy makes of |what|, and no subclass of its arrays."""
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
        if str(getattr(what, "dtype", "")) == "torch.bfloat16":
            raise InputError(f"input '{name}': NumPy has no bfloat16, of which this {type(what).__name__} is; give "
                             "tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16), or tensor.float() where the "
                             "model takes float32") from fault
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
    """An array of Python's numbers as |dtype|, so that lists of floats are not float64; other arrays as they are. Of
    NumPy's void arrays, texts of one length are made where |dtype| is of strings."""
    array = array_from(what, name)
    if dtype == DType.String and array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize:
        return np.ascontiguousarray(array).view(f"S{array.dtype.itemsize}")
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

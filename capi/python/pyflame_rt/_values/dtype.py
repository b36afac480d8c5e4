# SPDX-License-Identifier: Apache-2.0
"""Element types, and the dtypes of their arrays: NumPy's own, and those of the package ml_dtypes.

ml_dtypes brings what NumPy lacks: bfloat16, the types of 8 bits and fewer. It is looked for when the first value of
such a type is met, so that other programs do not pay for its import. Where it can be imported, arrays of its dtypes are
taken and given; where not, what is given is the bytes of the elements, in arrays of uint16 or uint8.
"""
from __future__ import annotations

import enum
import importlib
import sys
from typing import Any, Dict, Optional

import numpy as np

from .._core import abi
from .._core.errors import InvalidArgumentError


class DType(enum.IntEnum):
    """Element types, numbered as in the guide: ``DType.Float32`` is 0."""

    Float32 = 0
    Float16 = 1
    BFloat16 = 2
    Float64 = 3
    Int64 = 4
    Int32 = 5
    Int16 = 6
    Int8 = 7
    UInt8 = 8
    Bool = 9
    UInt16 = 10
    String = 11
    UInt32 = 12
    UInt64 = 13
    Complex64 = 14
    Complex128 = 15
    Float8E4M3FN = 16
    Float8E4M3FNUZ = 17
    Float8E5M2 = 18
    Float8E5M2FNUZ = 19
    UInt4 = 20
    Int4 = 21
    Float4E2M1 = 22
    Float8E8M0 = 23
    UInt2 = 24
    Int2 = 25

    @property
    def text(self) -> str:
        """The name in types: "float32", as in "tensor(float32)"."""
        return _TEXT[self]

    @property
    def bits(self) -> int:
        """Bits of an element; 0 for strings, whose elements differ."""
        return _BITS[self]

    @property
    def numpy(self) -> Optional["np.dtype[Any]"]:
        """The dtype of arrays with such elements: NumPy's own or ml_dtypes', or None where neither has one.

        ml_dtypes keeps an element of fewer than 8 bits in a byte, and the library packs several.
        """
        return OWN_NUMPY[self] if self in OWN_NUMPY else _ml_dtypes().get(self)

    def __repr__(self) -> str:
        return f"DType.{self.name}"

    def __str__(self) -> str:
        return f"DType.{self.name}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


_TEXT: Dict[DType, str] = {DType(guide): name for _, guide, _, name, _ in abi.DTYPES}
_BITS: Dict[DType, int] = {DType(guide): bits for _, guide, bits, _, _ in abi.DTYPES}
# The C ABI's numbers, which are ONNX's.
TO_ABI: Dict[DType, int] = {DType(guide): number for number, guide, _, _, _ in abi.DTYPES}
FROM_ABI: Dict[int, DType] = {number: dtype for dtype, number in TO_ABI.items()}

OWN_NUMPY: Dict[DType, "np.dtype[Any]"] = {
    dtype: np.dtype(_TEXT[dtype]) for dtype in (
        DType.Float32, DType.Float16, DType.Float64, DType.Int64, DType.Int32, DType.Int16, DType.Int8, DType.UInt8,
        DType.UInt16, DType.UInt32, DType.UInt64, DType.Bool, DType.Complex64, DType.Complex128)}
OWN_NUMPY[DType.String] = np.dtype(object)
# Types of ml_dtypes join these when it is found; the second has only those whose bytes are as the library's.
FROM_NUMPY: Dict["np.dtype[Any]", DType] = {numpy: dtype for dtype, numpy in OWN_NUMPY.items() if dtype != DType.String}
ABI_OF_NUMPY: Dict["np.dtype[Any]", int] = {numpy: TO_ABI[dtype] for numpy, dtype in FROM_NUMPY.items()}

_ML_NAMES = {
    DType.BFloat16: "bfloat16", DType.Float8E4M3FN: "float8_e4m3fn", DType.Float8E4M3FNUZ: "float8_e4m3fnuz",
    DType.Float8E5M2: "float8_e5m2", DType.Float8E5M2FNUZ: "float8_e5m2fnuz", DType.Float8E8M0: "float8_e8m0fnu",
    DType.Float4E2M1: "float4_e2m1fn", DType.UInt4: "uint4", DType.Int4: "int4", DType.UInt2: "uint2",
    DType.Int2: "int2"}
_ml_found: Dict[DType, "np.dtype[Any]"] = {}
_ml_looked = False


def _ml_dtypes() -> Dict[DType, "np.dtype[Any]"]:
    """The dtypes of ml_dtypes that the package has in its version; {} where it cannot be imported."""
    global _ml_looked
    if _ml_found or _ml_looked and "ml_dtypes" not in sys.modules:
        return _ml_found
    try:
        ml_dtypes = importlib.import_module("ml_dtypes")
    except Exception:  # one that was built for another NumPy fails in ways of its own
        _ml_looked = True
        return _ml_found
    found = {dtype: np.dtype(getattr(ml_dtypes, name)) for dtype, name in _ML_NAMES.items() if hasattr(ml_dtypes, name)}
    for dtype, numpy in found.items():
        FROM_NUMPY[numpy] = dtype
        if dtype.bits >= 8:
            ABI_OF_NUMPY[numpy] = TO_ABI[dtype]
    _ml_found.update(found)
    return _ml_found


def dtype_of_numpy(numpy: "np.dtype[Any]") -> Optional[DType]:
    """The element type of an array of numbers, in whatever byte order; None when the library has none."""
    if numpy.type.__module__ == "ml_dtypes":
        _ml_dtypes()
    return FROM_NUMPY.get(numpy.newbyteorder("="))


def memory_dtype(dtype: DType) -> "np.dtype[Any]":
    """The dtype of NumPy's own that the elements' bytes are kept in."""
    return OWN_NUMPY[dtype] if dtype in OWN_NUMPY else np.dtype(np.uint16 if dtype.bits == 16 else np.uint8)


def numpy_name(dtype: DType) -> Optional[str]:
    """The dtype of arrays as Python names it, "numpy.float32" or "ml_dtypes.bfloat16"; None when there is none."""
    numpy = dtype.numpy
    return None if numpy is None else f"{numpy.type.__module__}.{numpy}"


def dtype_of(what: Any) -> DType:
    """A DType, from one or from anything that NumPy takes as a dtype."""
    if isinstance(what, DType):
        return what
    if isinstance(what, str):
        for dtype, name in _TEXT.items():
            if what in (name, dtype.name):
                return dtype
    numpy = np.dtype(what)
    if numpy.kind in "OUS":
        return DType.String
    found = dtype_of_numpy(numpy)
    if found is not None:
        return found
    raise TypeError(f"{what!r} is no element type that the runtime has; it has " +
                    ", ".join(name for name in _TEXT.values()))


def dtype_size(dtype: Any) -> int:
    """Bytes of an element: 0 for strings, whose elements differ, 1 for those that are packed several to a byte."""
    return (dtype_of(dtype).bits + 7) // 8


def dtype_name(dtype: Any) -> str:
    """The name in types: "float32"."""
    return dtype_of(dtype).text


def dtype_from_name(name: str) -> DType:
    """The inverse of ``dtype_name``; InvalidArgumentError lists the names there are."""
    for dtype, text in _TEXT.items():
        if text == name:
            return dtype
    raise InvalidArgumentError(f"no element type is called {name!r}; there are " + ", ".join(_TEXT.values()))

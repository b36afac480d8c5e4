# SPDX-License-Identifier: Apache-2.0
"""Element types."""
from __future__ import annotations

import enum
from typing import Any, Dict, Optional

import numpy as np

from . import _abi
from ._errors import InvalidArgumentError


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
        """The NumPy dtype with the same bytes, or None where NumPy has none."""
        return _NUMPY.get(self)

    def __repr__(self) -> str:
        return f"DType.{self.name}"

    def __str__(self) -> str:
        return f"DType.{self.name}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


_TEXT: Dict[DType, str] = {DType(guide): name for _, guide, _, name, _ in _abi.DTYPES}
_BITS: Dict[DType, int] = {DType(guide): bits for _, guide, bits, _, _ in _abi.DTYPES}
# The C ABI's numbers, which are ONNX's.
TO_ABI: Dict[DType, int] = {DType(guide): number for number, guide, _, _, _ in _abi.DTYPES}
FROM_ABI: Dict[int, DType] = {number: dtype for dtype, number in TO_ABI.items()}

_NUMPY: Dict[DType, "np.dtype[Any]"] = {
    dtype: np.dtype(_TEXT[dtype]) for dtype in (
        DType.Float32, DType.Float16, DType.Float64, DType.Int64, DType.Int32, DType.Int16, DType.Int8, DType.UInt8,
        DType.UInt16, DType.UInt32, DType.UInt64, DType.Bool, DType.Complex64, DType.Complex128)}
_NUMPY[DType.String] = np.dtype(object)
FROM_NUMPY: Dict["np.dtype[Any]", DType] = {numpy: dtype for dtype, numpy in _NUMPY.items() if dtype != DType.String}
ABI_OF_NUMPY: Dict["np.dtype[Any]", int] = {numpy: TO_ABI[dtype] for numpy, dtype in FROM_NUMPY.items()}


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
    if numpy.newbyteorder("=") in FROM_NUMPY:
        return FROM_NUMPY[numpy.newbyteorder("=")]
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

# SPDX-License-Identifier: Apache-2.0
"""Descriptions of values, without their data."""
from __future__ import annotations

import ctypes
import math
import operator
from dataclasses import dataclass, field
from typing import Any, List, Optional, Sequence, Tuple, Union

from .._core import abi, library as lib
from .._core.errors import InvalidArgumentError
from .dtype import FROM_ABI, TO_ABI, DType

# A shape may be written as numbers, names of dimensions, and None for those without either.
ShapeLike = Optional[Sequence[Union[int, str, None]]]
_KIND_WORDS = {abi.VALUE_TENSOR: "tensor", abi.VALUE_SEQUENCE: "sequence", abi.VALUE_MAP: "map",
               abi.VALUE_OPTIONAL: "optional", abi.VALUE_SPARSE: "sparse_tensor"}
_KIND_NUMBERS = {word: kind for kind, word in _KIND_WORDS.items()}
# A shape has numbers, and None where a dimension may vary; it is None where the rank is not known.
Shape = Optional[Sequence[Optional[int]]]
_KINDS = {abi.VALUE_SEQUENCE: "seq", abi.VALUE_OPTIONAL: "optional", abi.VALUE_SPARSE: "sparse_tensor"}


def shape_to_string(shape: Shape) -> str:
    """"[1, 3, ?, 224]", and "[...]" where the rank is not known."""
    return "[...]" if shape is None else "[" + ", ".join("?" if dim is None else str(dim) for dim in shape) + "]"


def is_dynamic_shape(shape: Shape) -> bool:
    """Tells whether the rank is not known, or a dimension may vary."""
    return shape is None or any(dim is None for dim in shape)


def shape_num_elements(shape: Shape) -> Optional[int]:
    """The product of the dimensions; None where one may vary, or the rank is not known."""
    known = [] if shape is None else [dim for dim in shape if dim is not None]
    return None if shape is None or len(known) < len(shape) else math.prod(known)


@dataclass
class NodeArg:
    """An input or output of a model.

    ``shape`` holds ints, None where a dimension may vary; None instead of a list when the rank is not known.
    ``dim_names`` has a name, or "", for each dimension. ``type`` reads "tensor(float32)".
    """

    name: str
    type: str
    shape: Optional[List[Optional[int]]]
    dim_names: List[str] = field(default_factory=list)

    @classmethod
    def from_tensor_info(cls, info: "TensorInfo") -> "NodeArg":
        """The input or output that |info| describes."""
        return cls(info.name, info.type_text(), None if info.shape is None else list(info.shape), list(info.dim_names))

    @property
    def type_str(self) -> str:
        """``type`` by its other name."""
        return self.type


@dataclass
class TensorInfo:
    """The ``name``, element type and shape of a value without its data.

    ``shape`` and ``dim_names`` as in NodeArg; ``dtype`` None = not known. ``kind`` is "tensor", "sequence", "map",
    "optional" or "sparse_tensor", and ``dtype`` then that of the tensors in it; ``key_dtype`` is a map's,
    or that of the maps in a sequence.
    ``has_initializer``: an input with a default value.
    """

    name: str = ""
    dtype: Optional[DType] = None
    shape: Optional[List[Optional[int]]] = None
    dim_names: List[str] = field(default_factory=list)
    kind: str = "tensor"
    key_dtype: Optional[DType] = None
    has_initializer: bool = False

    def is_dynamic(self) -> bool:
        """Tells whether the shape is not known, or a dimension of it may vary."""
        return is_dynamic_shape(self.shape)

    def num_elements(self) -> Optional[int]:
        """The number of elements of a tensor whose dimensions are all known; None otherwise."""
        return shape_num_elements(self.shape) if self.kind == "tensor" else None

    def size_bytes(self) -> Optional[int]:
        """Bytes of the elements, packed; None where ``num_elements`` is, for strings, and for an unknown type."""
        count, bits = self.num_elements(), 0 if self.dtype is None else self.dtype.bits
        return None if count is None or not bits else (count * bits + 7) // 8

    def type_text(self) -> str:
        """The type as ``NodeArg.type`` has it: "tensor(float32)"."""
        return _type_text(_KIND_NUMBERS[self.kind], self.dtype, self.key_dtype)


@dataclass
class PortInfo:
    """An input or output as the library describes it."""

    name: str
    kind: int
    dtype: int
    key_dtype: int
    dims: Optional[List[int]]  # -1 where dynamic
    dim_names: List[str]
    has_initializer: bool

    def node_arg(self) -> NodeArg:
        shape = None if self.dims is None else [dim if dim >= 0 else None for dim in self.dims]
        return NodeArg(self.name, self.type_text(), shape, self.dim_names)

    def tensor_info(self) -> TensorInfo:
        arg = self.node_arg()
        names = arg.dim_names if any(arg.dim_names) else []
        return TensorInfo(self.name, FROM_ABI.get(self.dtype), arg.shape, names, _KIND_WORDS.get(self.kind, "tensor"),
                          FROM_ABI.get(self.key_dtype), self.has_initializer)

    def type_text(self) -> str:
        return _type_text(self.kind, FROM_ABI.get(self.dtype), FROM_ABI.get(self.key_dtype))


def _type_text(kind: int, dtype: Optional[DType], key_dtype: Optional[DType]) -> str:
    element = f"tensor({'?' if dtype is None else dtype.text})"
    if kind == abi.VALUE_SPARSE:
        return f"sparse_{element}"
    if kind == abi.VALUE_MAP or key_dtype is not None:
        element = f"map({'?' if key_dtype is None else key_dtype.text},{element})"
    outer = _KINDS.get(kind)
    return f"{outer}({element})" if outer else element


def read_info(info: Any) -> PortInfo:
    rank = info.rank
    dims = None if rank < 0 else list((ctypes.c_int64 * rank).from_address(info.dims)) if rank else []
    names: List[str] = []
    if rank > 0 and info.dim_names:
        names = [lib.read(name) for name in (abi.String * rank).from_address(info.dim_names)]
    return PortInfo(lib.read(info.name), info.kind, info.dtype, info.key_dtype, dims, names or [""] * max(rank, 0),
                    bool(info.has_initializer))


def info_struct(info: TensorInfo) -> Any:
    """|info| as a ValueInfo struct, which keeps what it points at."""
    if info.kind not in _KIND_NUMBERS:
        raise InvalidArgumentError(f"value '{info.name}' is of kind {info.kind!r}; there are " +
                                   ", ".join(_KIND_NUMBERS))
    kind = _KIND_NUMBERS[info.kind]
    if info.kind == "tensor" and info.dtype is None and info.shape is None:
        kind = abi.VALUE_UNSET  # nothing is said of it
    out = abi.ValueInfo(struct_size=ctypes.sizeof(abi.ValueInfo), kind=kind, rank=-1, name=lib.text(info.name))
    out.dtype = 0 if info.dtype is None else TO_ABI[info.dtype]
    out.key_dtype = 0 if info.key_dtype is None else TO_ABI[info.key_dtype]
    if info.shape is not None:
        numbers, names = _dimensions(info.name, info.shape, info.dim_names)
        out.rank = len(numbers)
        out.kept = (ctypes.c_int64 * max(len(numbers), 1))(*numbers), lib.texts(names), out.name
        out.dims = ctypes.addressof(out.kept[0])
        out.dim_names = ctypes.addressof(out.kept[1])
    else:
        out.kept = out.name
    return out


def _dimensions(name: str, shape: Sequence[Any], given: Sequence[str]) -> Tuple[List[int], List[str]]:
    """The dimensions with -1 for those that vary, and their names."""
    if isinstance(shape, str) or (given and len(given) != len(shape)):
        raise InvalidArgumentError(f"value '{name}': a shape is a list of dimensions with as many dim_names, or none; "
                                   f"it is {shape!r} with {list(given)!r}")
    numbers, names = [], list(given) or [""] * len(shape)
    for i, dim in enumerate(shape):
        if dim is None or isinstance(dim, str):
            numbers.append(-1)
            names[i] = dim or names[i]
            continue
        try:
            number = operator.index(dim)
        except TypeError:
            number = -1
        if not 0 <= number < 1 << 63:
            raise InvalidArgumentError(f"value '{name}' of shape {list(shape)}: dimension {i} is {dim!r}; a dimension "
                                       "is a number from 0 on, a name, or None where it may vary")
        numbers.append(number)
    return numbers, names

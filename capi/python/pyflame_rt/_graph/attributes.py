# SPDX-License-Identifier: Apache-2.0
"""Attributes of nodes as Python values, and back."""
from __future__ import annotations

import ctypes
import math
from typing import Any, Callable, List, Sequence, Union

import numpy as np

from .._core import abi, library as lib
from .._core.errors import InvalidArgumentError
from .._values.constant import tensor_at, value_of_constant
from .._values.dtype import TO_ABI, DType
from .._values.memory import SparseTensor
from .._values.tensor import Tensor
from .protocols import GraphHandle

# An attribute's value may be of these types. Numbers of NumPy's count as Python's, arrays as Tensors.
AttributeValue = Union[int, float, str, bytes, Tensor, "np.ndarray[Any, Any]", SparseTensor, GraphHandle,
                       Sequence[Union[int, float, str, bytes, Tensor, "np.ndarray[Any, Any]", GraphHandle]]]


class TypeText(str):
    """An attribute that is a type, in words: "tensor(float,[2,N,?])", "seq(tensor(float))"."""


# ------------------------------------------------------------------ to the library


def _kind(value: Any) -> int:
    """The attribute type of a single value; 0 when it is of none."""
    if isinstance(value, TypeText):
        return abi.ATTR_TYPE
    if isinstance(value, (str, bytes)):
        return abi.ATTR_STRING
    if isinstance(value, (int, np.integer, np.bool_)):
        return abi.ATTR_INT
    if isinstance(value, (float, np.floating)):
        return abi.ATTR_FLOAT
    if isinstance(value, (Tensor, np.ndarray)):
        return abi.ATTR_TENSOR
    if isinstance(value, SparseTensor):
        return abi.ATTR_SPARSE
    return abi.ATTR_GRAPH if hasattr(value, "create_subgraph") else abi.ATTR_UNSET


_LISTS = {abi.ATTR_INT: abi.ATTR_INTS, abi.ATTR_FLOAT: abi.ATTR_FLOATS, abi.ATTR_STRING: abi.ATTR_STRINGS,
          abi.ATTR_TENSOR: abi.ATTR_TENSORS, abi.ATTR_GRAPH: abi.ATTR_GRAPHS}


def _integer(name: str, value: Any) -> int:
    # Models number element types as ONNX does, not as the guide.
    number = TO_ABI[value] if isinstance(value, DType) else int(value)
    if not -1 << 63 <= number < 1 << 63:
        raise InvalidArgumentError(f"attribute '{name}': {number} does not fit into 64 bits")
    return number


def _float(name: str, value: Any) -> float:
    number = float(value)
    if math.isfinite(number) and math.isinf(ctypes.c_float(number).value):
        raise InvalidArgumentError(f"attribute '{name}': {number} does not fit into a float32")
    return number


def _string(value: Union[str, bytes]) -> Any:
    if isinstance(value, str):
        return lib.text(value)
    out = abi.String(ctypes.cast(ctypes.c_char_p(value), ctypes.c_void_p), len(value))
    out.bytes = value
    return out


def encode(name: str, value: Any) -> Any:
    """An Attr struct, which keeps what it points at.

    A list has elements of one type, ints and floats together being floats; an empty one is of ints. Names of element
    types (``DType``) become ONNX's numbers.
    """
    out = abi.Attr(struct_size=ctypes.sizeof(abi.Attr), name=lib.text(name))
    kept: List[Any] = [out.name]
    out.kept = kept
    kind = _kind(value)
    if kind:
        out.type = kind
        if kind == abi.ATTR_INT:
            out.i = _integer(name, value)
        elif kind == abi.ATTR_FLOAT:
            out.f = _float(name, value)
        elif kind in (abi.ATTR_STRING, abi.ATTR_TYPE):
            out.s = _string(value)
            kept.append(out.s)
        elif kind in (abi.ATTR_TENSOR, abi.ATTR_SPARSE):
            kept.append(value_of_constant(value, f"attribute '{name}'", share=False))
            out.tensor = kept[-1].address
        else:
            kept.append(value)
            out.graph = value._at()
        return out
    if not isinstance(value, (list, tuple)):
        raise InvalidArgumentError(f"attribute '{name}' is {type(value).__name__}; attributes are numbers, strings, "
                                   "tensors, graphs, and lists of one of these")
    kinds = {_kind(element) for element in value}
    if kinds == {abi.ATTR_INT, abi.ATTR_FLOAT}:
        kinds = {abi.ATTR_FLOAT}
    kind = (kinds or {abi.ATTR_INT}).pop()
    if kinds or kind not in _LISTS:
        raise InvalidArgumentError(f"attribute '{name}': the list has elements of types " + ", ".join(
            sorted({type(element).__name__ for element in value})) + "; give numbers, strings, tensors or graphs alone")
    out.type, out.count = _LISTS[kind], len(value)
    _encode_list(name, kind, value, out)
    return out


def _encode_list(name: str, kind: int, values: Sequence[Any], out: Any) -> None:
    count, array = max(len(values), 1), None  # type: int, Any
    if kind == abi.ATTR_INT:
        field, array = "ints", (ctypes.c_int64 * count)(*(_integer(name, v) for v in values))
    elif kind == abi.ATTR_FLOAT:
        field, array = "floats", (ctypes.c_float * count)(*(_float(name, v) for v in values))
    elif kind == abi.ATTR_STRING:
        strings = [_string(v) for v in values]
        field, array = "strings", (abi.String * count)(*strings)
        out.kept.append(strings)
    elif kind == abi.ATTR_TENSOR:
        tensors = [value_of_constant(v, f"attribute '{name}'", share=False) for v in values]
        field, array = "tensors", (ctypes.c_void_p * count)(*(t.address for t in tensors))
        out.kept.append(tensors)
    else:
        field, array = "graphs", (ctypes.c_void_p * count)(*(graph._at() for graph in values))
        out.kept.append(values)
    out.kept.append(array)
    setattr(out, field, ctypes.addressof(array))


# ------------------------------------------------------------------ from the library


def _shortest(number: Any) -> float:
    """The shortest number that is this float32: 0.1, not 0.10000000149."""
    return float(str(np.float32(number)))


def _text(string: Any) -> Union[str, bytes]:
    data: bytes = ctypes.string_at(string.data, string.size) if string.size else b""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def _elements(kind: Any, address: int, count: int) -> List[Any]:
    return list((kind * count).from_address(address)) if count else []


def decode(attr: Any, body: Callable[[int], Any]) -> Any:
    """The value of an Attr struct; |body| makes a Graph of a handle. Floats are the shortest that mean the same."""
    kind = attr.type
    if kind == abi.ATTR_INT:
        return attr.i
    if kind == abi.ATTR_FLOAT:
        return _shortest(attr.f)
    if kind == abi.ATTR_STRING:
        return _text(attr.s)
    if kind == abi.ATTR_TYPE:
        return TypeText(lib.read(attr.s))
    if kind in (abi.ATTR_TENSOR, abi.ATTR_SPARSE):
        return tensor_at(attr.tensor)
    if kind == abi.ATTR_GRAPH:
        return body(attr.graph)
    if kind == abi.ATTR_INTS:
        return _elements(ctypes.c_int64, attr.ints, attr.count)
    if kind == abi.ATTR_FLOATS:
        return [_shortest(f) for f in _elements(ctypes.c_float, attr.floats, attr.count)]
    if kind == abi.ATTR_STRINGS:
        return [_text(s) for s in _elements(abi.String, attr.strings, attr.count)]
    if kind == abi.ATTR_TENSORS:
        return [tensor_at(t) for t in _elements(ctypes.c_void_p, attr.tensors, attr.count)]
    return [body(g) for g in _elements(ctypes.c_void_p, attr.graphs, attr.count)]

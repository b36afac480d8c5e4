# SPDX-License-Identifier: Apache-2.0
"""Calls of Python code for nodes: attributes, inputs that are lent for a call, results that are taken from it."""
from __future__ import annotations

import ctypes
import gc
import traceback
import weakref
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from .._core import abi, callbacks, library as lib
from .._values.arrays import plain, stored
from .._values.dtype import FROM_ABI, DType, dtype_of_numpy
from .._values.memory import dims_of, memory_of_view
from .._values.tensor import Tensor

ATTRIBUTES = {abi.ATTR_FLOAT: "float", abi.ATTR_INT: "int", abi.ATTR_STRING: "string", abi.ATTR_TENSOR: "tensor",
              abi.ATTR_FLOATS: "floats", abi.ATTR_INTS: "ints", abi.ATTR_STRINGS: "strings"}


def refusal(message: str, code: int = abi.CODE_PROVIDER) -> callbacks.Refusal:
    return callbacks.Refusal(message, code)


# ------------------------------------------------------------------ attributes


def _text_of(string: Any) -> Any:
    data = ctypes.string_at(string.data, string.size) if string.size else b""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def list_of(kind: Any, address: Optional[int], count: int) -> List[Any]:
    return list((kind * count).from_address(address)) if count and address else []


def _attribute(attr: Any) -> Any:
    if attr.type == abi.ATTR_FLOAT:
        return attr.f
    if attr.type == abi.ATTR_INT:
        return attr.i
    if attr.type == abi.ATTR_STRING:
        return _text_of(attr.s)
    if attr.type == abi.ATTR_FLOATS:
        return list_of(ctypes.c_float, attr.floats, attr.count)
    if attr.type == abi.ATTR_INTS:
        return list_of(ctypes.c_int64, attr.ints, attr.count)
    if attr.type == abi.ATTR_STRINGS:
        return [_text_of(string) for string in list_of(abi.String, attr.strings, attr.count)]
    return Tensor._over(memory_of_view(attr.tensor, None), FROM_ABI[attr.tensor.dtype], dims_of(attr.tensor)).clone()


def attributes_of(node: Any, size: int) -> Iterator[Tuple[str, str, Any]]:
    """Name, type and value of a node's attributes, which are |size| bytes apart."""
    for i in range(node.attr_count):
        attr = abi.SnapshotAttr.from_address(node.attrs + i * size)
        if attr.type in ATTRIBUTES:
            yield lib.read(attr.name), ATTRIBUTES[attr.type], _attribute(attr)


# ------------------------------------------------------------------ inputs


class _Lease:
    """Lives for as long as an array over an input of a call does."""

    __slots__ = ("__weakref__",)


class Leases:
    """Inputs lent to Python code for the time of a call."""

    def __init__(self) -> None:
        self._lent: Dict[Any, "weakref.ref[_Lease]"] = {}

    def lend(self, key: Any, view: Any) -> Tensor:
        """A tensor over the memory of a Tensor struct, read-only."""
        lease = _Lease()
        array = memory_of_view(view, lease)
        array.flags.writeable = False
        self._lent[key] = weakref.ref(lease)
        return Tensor._over(array, FROM_ABI[view.dtype], dims_of(view))

    def check(self, borrower: str, inputs: str) -> None:
        """Refuses that |borrower| keeps one of its |inputs| beyond the call."""
        if any(lease() for lease in self._lent.values()):
            gc.collect()  # a cycle does not count
            kept = [key for key, lease in self._lent.items() if lease()]
            if kept:
                raise refusal(f"{borrower} keeps input {kept[0]} beyond the call, and its memory is another's then; "
                              f"keep a copy, for example {inputs}[{kept[0]!r}].clone()")


def forget_frames(fault: Optional[BaseException], seen: Optional[List[int]] = None) -> None:
    """Takes the variables out of a traceback, which may be looked at when the inputs' memory is gone."""
    seen = seen or []
    if fault is None or id(fault) in seen:
        return
    seen.append(id(fault))
    traceback.clear_frames(fault.__traceback__)
    forget_frames(fault.__cause__, seen)
    forget_frames(fault.__context__, seen)


# ------------------------------------------------------------------ results


def result_of(what: Any, where: str, maker: str) -> Tuple["np.ndarray[Any, Any]", DType, Sequence[int]]:
    if isinstance(what, Tensor):
        if what.dtype != DType.String:
            return plain(what.memory()), what.dtype, what.shape
        what = what.memory()
    array = np.asarray(what)
    if dtype_of_numpy(array.dtype) is None:
        raise refusal(f"{maker} gave {where}, as {type(what).__name__} of {array.dtype}; wanted is a tensor of "
                      "numbers or bools")
    memory, dtype = stored(array)
    return memory, dtype, array.shape


def texts_of(what: Any, where: str, maker: str) -> Tuple[Any, Sequence[int]]:
    """An array of String structs that keeps its bytes, and the shape, of a result that has to be strings."""
    array = np.asarray(what.memory() if isinstance(what, Tensor) else what)
    kind = what.dtype.text if isinstance(what, Tensor) else array.dtype
    elements = array.ravel().tolist()
    if array.dtype.kind not in "OUS" or not all(isinstance(one, (str, bytes)) for one in elements):
        raise refusal(f"{maker} gave {kind} for {where}, which is string; return an array of str",
                      abi.CODE_DTYPE_MISMATCH)
    kept = [one.encode("utf-8") if isinstance(one, str) else one for one in elements]
    texts: Any = (abi.String * max(len(kept), 1))(
        *(abi.String(ctypes.cast(ctypes.c_char_p(one), ctypes.c_void_p), len(one)) for one in kept))
    texts.bytes = kept
    return texts, array.shape

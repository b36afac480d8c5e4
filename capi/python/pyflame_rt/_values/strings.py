# SPDX-License-Identifier: Apache-2.0
"""Tensors of strings: all texts cross over in one call, with a byte of 0 between two where none has one within."""
from __future__ import annotations

import ctypes
from itertools import accumulate
from typing import Any, List, Optional, Tuple

import numpy as np

from .._core import abi, library as lib
from .._core.errors import DTypeMismatchError, InputError

_addressof = ctypes.addressof
_buffer_of: Any = ctypes.c_char.from_buffer


def _encoded(texts: List[Any], name: str) -> List[bytes]:
    """The bytes of each element."""
    out = []
    for i, text in enumerate(texts):
        if not isinstance(text, (str, bytes)):
            raise DTypeMismatchError(
                f"input '{name}': element {i} of an object array is {type(text).__name__}, and only arrays of str "
                "are tensors; give numbers a numeric dtype, for example with .astype(numpy.float32)")
        try:
            if isinstance(text, str):
                out.append(text.encode())
            else:
                text.decode()
                out.append(text)
        except UnicodeError as fault:
            raise InputError(f"input '{name}': element {i} is no text that UTF-8 has: {fault}") from None
    return out


def _joined(texts: List[Any], name: str) -> Tuple[bytes, Optional[Any]]:
    """The elements one behind another, and their ends where no byte of 0 tells them."""
    try:
        if texts and type(texts[0]) is bytes:
            data = b"\0".join(texts)
            data.decode()
        else:
            data = "\0".join(texts).encode()
    except (TypeError, UnicodeError):
        data = b"\0".join(_encoded(texts, name))
    if data.count(0) == max(len(texts) - 1, 0):
        return data, None
    parts = _encoded(texts, name)
    return b"".join(parts), (ctypes.c_uint64 * len(parts))(*accumulate(map(len, parts)))


class StringTensor(lib.Handle):
    """A tensor of strings. Those of one ``size_class`` have one shape and about as many bytes."""

    __slots__ = ("size_class",)

    def __init__(self, address: int, size_class: Tuple[Tuple[int, ...], int]) -> None:
        super().__init__(address, lib.value.release)
        self.size_class = size_class


def string_tensor(array: np.ndarray, name: str) -> StringTensor:
    """A tensor of strings from an array of str or bytes."""
    data, ends = _joined(array.ravel().tolist(), name)
    shape, out = array.shape, ctypes.c_void_p()
    dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    lib.check(lib.value.create_strings(dims, len(shape), data, len(data), ends, ctypes.byref(out)))
    assert out.value
    return StringTensor(out.value, (shape, len(data).bit_length()))


def strings_of(value: int, dims: Tuple[int, ...]) -> np.ndarray:
    """The elements of a tensor of strings as an object array."""
    out = np.empty(dims, object)
    if out.size:
        out.ravel()[:] = _texts_of(value, out.size)
    return out


def strings_at(data: int, dims: Tuple[int, ...]) -> np.ndarray:
    """The elements of an array of String structs as an object array."""
    out = np.empty(dims, object)
    if out.size:
        out.ravel()[:] = [lib.read(one) for one in (abi.String * out.size).from_address(data)]
    return out


def _texts_of(value: int, count: int) -> List[str]:
    size = ctypes.c_size_t()
    buffer, ends = bytearray(64 + 24 * count), None
    while True:
        lib.check(lib.value.strings(value, _addressof(_buffer_of(buffer)), len(buffer), ctypes.byref(size), ends))
        data = buffer[:size.value]
        if size.value > len(buffer):
            buffer = bytearray(size.value)
        elif ends is None:
            texts = data.decode("utf-8", "replace").split("\0")
            if len(texts) == count:
                return texts
            ends = (ctypes.c_uint64 * count)()
        else:
            at = [0, *ends]
            return [data[a:b].decode("utf-8", "replace") for a, b in zip(at, at[1:])]

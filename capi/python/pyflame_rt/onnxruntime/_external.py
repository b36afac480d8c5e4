# SPDX-License-Identifier: Apache-2.0
"""What is looked up in the bytes of ONNX files: initializers that lie outside of them, given by the program or moved out
when a model is saved; dimensions by their denotation.

Only the fields that this needs are looked at, in the bytes of the message; all others stay as they are.
"""
from __future__ import annotations

import math
import mmap
import os
from typing import Any, Dict, Iterator, List, Mapping, Tuple, Union

import numpy as np

from pyflame_rt._core.errors import InvalidArgumentError, InvalidModelError, UnsupportedError
from pyflame_rt._core.regular_file import open_regular
from pyflame_rt._graph.files import load_model
from pyflame_rt._graph.graph import Graph
from pyflame_rt._session.ort_value import OrtValue
from pyflame_rt._values.dtype import FROM_ABI, DType, memory_dtype
from pyflame_rt._values.tensor import Tensor

_GRAPH, _INITIALIZER = 7, 5  # of ModelProto, of GraphProto
_DIMS, _DATA_TYPE, _NAME, _RAW_DATA, _EXTERNAL_DATA, _LOCATION = 1, 2, 8, 9, 13, 14  # of TensorProto
_EXTERNAL = 1  # a data_location
_INPUT, _PORT_NAME, _PORT_DIMS, _DENOTATION = 11, 1, (2, 1, 2, 1), 3  # of GraphProto, ValueInfoProto, Dimension
_ALIGNMENT = 4096  # of data in a file, so that readers may map it
_LEAST = 1024  # bytes of an initializer that is moved out, where the program does not say it

Field = Tuple[int, Union[int, memoryview], memoryview]  # number, value, all its bytes


def _varint(data: memoryview, at: int) -> Tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _fields(data: memoryview) -> Iterator[Field]:
    """The fields of a message; IndexError when it is cut short."""
    at = 0
    while at < len(data):
        begin = at
        key, at = _varint(data, at)
        value: Union[int, memoryview]
        if key & 7 == 0:
            value, at = _varint(data, at)
        elif key & 7 in (1, 5):
            at += 8 if key & 7 == 1 else 4
            value = 0
        elif key & 7 == 2:
            size, at = _varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise IndexError
        if at > len(data):
            raise IndexError
        yield key >> 3, value, data[begin:at]


def _number(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def _message(number: int, *parts: Any) -> List[Any]:
    return [_number(number << 3 | 2) + _number(sum(len(part) for part in parts)), *parts]


class _Initializer:
    """A TensorProto by its fields."""

    def __init__(self, data: memoryview) -> None:
        self.fields = list(_fields(data))
        self.bytes = data
        self.name = self.dtype = self.raw = None  # type: Any
        self.is_external, self.dims = False, []  # type: bool, List[int]
        self.entries: Dict[str, str] = {}
        for number, value, _ in self.fields:
            if isinstance(value, int):
                if number == _DIMS:
                    self.dims.append(value)
                self.dtype = value if number == _DATA_TYPE else self.dtype
                self.is_external |= number == _LOCATION and value == _EXTERNAL
            elif number == _DIMS:
                self.dims += _packed(value)
            elif number == _NAME:
                self.name = bytes(value).decode()
            elif number == _RAW_DATA:
                self.raw = value
            elif number == _EXTERNAL_DATA:
                pair = {key: bytes(text).decode() for key, text, _ in _fields(value) if isinstance(text, memoryview)}
                self.entries[pair.get(1, "")] = pair.get(2, "")

    def inlined(self, raw: Any) -> List[Any]:
        """Its message with the data in it."""
        kept = [whole for number, _, whole in self.fields if number not in (_RAW_DATA, _EXTERNAL_DATA, _LOCATION)]
        return _message(_INITIALIZER, *kept, *_message(_RAW_DATA, raw))

    def moved(self, entries: Mapping[str, str]) -> List[Any]:
        """Its message with the data elsewhere."""
        kept = [whole for number, _, whole in self.fields if number not in (_RAW_DATA, _EXTERNAL_DATA, _LOCATION)]
        for key, value in entries.items():
            kept += _message(_EXTERNAL_DATA, *_message(1, key.encode()), *_message(2, value.encode()))
        return _message(_INITIALIZER, *kept, _number(_LOCATION << 3), _number(_EXTERNAL))


def _packed(data: memoryview) -> List[int]:
    out, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        out.append(value)
    return out


def _taken_apart(model: memoryview, what: str) -> Tuple[List[memoryview], List[memoryview], List[_Initializer]]:
    """The fields of a model around its graph, those of the graph but for its initializers, and these."""
    try:
        fields = list(_fields(model))
        graphs = [value for number, value, _ in fields if number == _GRAPH and isinstance(value, memoryview)]
        parts = [field for graph in graphs for field in _fields(graph)]
        initializers = [_Initializer(value) for number, value, _ in parts
                        if number == _INITIALIZER and isinstance(value, memoryview)]
    except (IndexError, UnicodeDecodeError):
        raise InvalidModelError(f"{what}: the file is no ONNX model, or it is cut short") from None
    return ([whole for number, _, whole in fields if number != _GRAPH],
            [whole for number, _, whole in parts if number != _INITIALIZER], initializers)


def denoted_dimensions(source: Union[str, bytes], overrides: Mapping[str, int]) -> Dict[str, Dict[int, int]]:
    """The sizes that |overrides| give, by denotation, for dimensions of a model's inputs: by input and axis."""
    model = memoryview(source) if isinstance(source, bytes) else _mapped(source)
    out: Dict[str, Dict[int, int]] = {}
    try:
        for port in _inner(model, _GRAPH, _INPUT):
            name = bytes(_inner(port, _PORT_NAME)[-1]).decode()
            for axis, dim in enumerate(_inner(port, *_PORT_DIMS)):
                denotation = [bytes(text).decode() for text in _inner(dim, _DENOTATION)]
                if denotation and denotation[-1] in overrides:
                    out.setdefault(name, {})[axis] = overrides[denotation[-1]]
    except (IndexError, UnicodeDecodeError):
        raise InvalidModelError("overriding dimensions: the file is no ONNX model, or it is cut short") from None
    return out


def _inner(message: memoryview, *path: int) -> List[memoryview]:
    """The messages or texts at a path of fields."""
    found = [message]
    for wanted in path:
        found = [value for one in found for number, value, _ in _fields(one)
                 if number == wanted and isinstance(value, memoryview)]
    return found


# ------------------------------------------------------------------ given by the program


class Initializers:
    """What a program gives in place of initializers: values by the name of an external one that each model has to have,
    by the name of any, which models may have, and contents of files by the names that external ones are under."""

    def __init__(self) -> None:
        self.external: Dict[str, OrtValue] = {}
        self.own: Dict[str, OrtValue] = {}
        self.files: Dict[str, memoryview] = {}

    def __bool__(self) -> bool:
        return bool(self.external or self.own or self.files)


def with_initializers(source: Union[str, bytes], given: Initializers) -> Graph:
    """The graph of a model with what is given in place of its initializers.

    InvalidArgumentError for a name of an external one that the model does not have, and for a value of another type or
    shape. Other external initializers are read from the files given or, below its folder, beside the model.
    """
    what = "external initializers"
    data = memoryview(source) if isinstance(source, bytes) else _mapped(source)
    around, parts, initializers = _taken_apart(data, what)
    external = {one.name: one for one in initializers if one.is_external}
    for name in given.external:
        if name not in external:
            raise InvalidArgumentError(f"{what}: the model has no external initializer '{name}'; it has " +
                                       (", ".join(map(repr, external)) or "none"))
    values = {**given.own, **given.external}
    kept = []
    for one in initializers:
        if one.name in values:
            _expect(one, values[one.name])
        elif not one.is_external:
            kept += _message(_INITIALIZER, one.bytes)
    graph = load_model(b"".join([*around, *_message(_GRAPH, *parts, *kept)]), validate=False, infer_shapes=False)
    for one in initializers:
        if one.name in values:
            graph.add_initializer(one.name, values[one.name]._host)
        elif one.is_external and one.entries.get("location") in given.files:
            graph.add_initializer(one.name, _within(one, given.files[one.entries["location"]]))
        elif one.is_external:
            graph.add_initializer(one.name, _beside(one, source))
    return graph


def _expect(one: _Initializer, value: OrtValue) -> None:
    if not isinstance(value, OrtValue) or value._host is None:
        raise InvalidArgumentError(f"initializer '{one.name}' is given a {type(value).__name__}; give an OrtValue of a "
                                   "tensor in host memory")
    dtype = FROM_ABI.get(one.dtype)
    if value._host.dtype != dtype or value.shape() != one.dims:
        raise InvalidArgumentError(f"initializer '{one.name}' is {'?' if dtype is None else dtype.text} {one.dims}, and "
                                   f"the value given is {value._host.dtype.text} {value.shape()}")


def _mapped(path: str) -> memoryview:
    try:
        with open_regular(path) as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError:
        load_model(path)  # which says it
        raise
    except ValueError:
        return memoryview(b"")


def _beside(one: _Initializer, source: Union[str, bytes]) -> Tensor:
    """An external initializer that the program did not give."""
    doing = f"reading external initializer '{one.name}'"
    if isinstance(source, bytes):
        raise InvalidArgumentError(f"{doing}: a model of bytes has no files beside it; give its value too, or the "
                                   "model's path")
    location = one.entries.get("location", "")
    if not location or "\0" in location or os.path.isabs(location):
        raise InvalidModelError(f"{doing}: {location!r} is no path within the model's folder")
    dtype, offset, needed = _place(doing, one)
    folder = os.path.realpath(os.path.dirname(source) or ".")
    path = os.path.realpath(os.path.join(folder, location))

    def expect_below() -> None:
        if os.path.commonpath([folder, path]) != folder:
            raise InvalidModelError(f"{doing}: '{location}' is not below the model's folder")

    expect_below()
    try:
        with open_regular(path) as file:
            path = os.path.realpath(f"/proc/self/fd/{file.fileno()}")  # the name may have become a link meanwhile
            expect_below()
            size = os.fstat(file.fileno()).st_size
            if offset > size or needed > size - offset:
                raise InvalidModelError(f"{doing}: it needs {needed} bytes from byte {offset} of '{path}', which has "
                                        f"{size}")
            tensor = Tensor(one.dims, dtype)
            file.seek(offset)
            found = file.readinto(memoryview(tensor.memory().reshape(-1).view(np.uint8)))  # type: ignore[arg-type]
    except (OSError, ValueError) as fault:
        raise InvalidModelError(f"{doing}: {fault}; give its value by add_external_initializers") from None
    if found != needed:
        raise InvalidModelError(f"{doing}: '{path}' ends after {found} of {needed} bytes")
    return tensor


def _within(one: _Initializer, data: memoryview) -> Tensor:
    """An external initializer out of the contents of its file, over whose memory it is."""
    doing = f"reading external initializer '{one.name}'"
    dtype, offset, needed = _place(doing, one)
    if offset > len(data) or needed > len(data) - offset:
        raise InvalidModelError(f"{doing}: it needs {needed} bytes from byte {offset} of the file in memory "
                                f"'{one.entries['location']}', which has {len(data)}")
    array = np.frombuffer(data[offset:offset + needed], np.uint8)
    if array.ctypes.data % max(dtype.bits // 8, 1):
        array = array.copy()
    array = array.view(memory_dtype(dtype))
    return Tensor._over(array if dtype.bits < 8 else array.reshape(one.dims), dtype, one.dims)


def _place(doing: str, one: _Initializer) -> Tuple[DType, int, int]:
    """The element type, and the first and the number of the bytes in the file."""
    dtype = FROM_ABI.get(one.dtype)
    if dtype is None or dtype == DType.String:
        raise InvalidModelError(f"{doing}: its element type is {one.dtype}, which no file holds")
    needed = (math.prod(one.dims) * dtype.bits + 7) // 8
    offset, length = (_count(doing, one, key, value) for key, value in (("offset", 0), ("length", needed)))
    if length != needed:
        raise InvalidModelError(f"{doing}: it has {needed} bytes, and the model says that there are {length}")
    return dtype, offset, needed


def _count(doing: str, one: _Initializer, key: str, default: int) -> int:
    text = one.entries.get(key, "") or str(default)
    if not (text.isascii() and text.isdecimal()):
        raise InvalidModelError(f"{doing}: {key} {text!r} is no number of bytes")
    return int(text)


# ------------------------------------------------------------------ moved out when a model is saved


def move_initializers(path: str, file_name: str, least: int) -> None:
    """Moves the data of a saved model's initializers that have |least| bytes or more into a file beside it."""
    folder = os.path.dirname(path)
    if os.path.basename(file_name) != file_name or file_name in ("", ".", "..", os.path.basename(path)):
        raise UnsupportedError(f"external initializers in '{file_name}': give the name of a file beside the model, other "
                               "than the model's")
    with open(path, "rb") as file:
        model = memoryview(file.read())
    around, parts, initializers = _taken_apart(model, f"moving initializers of '{path}'")
    target, new_model = os.path.join(folder, file_name), path + ".part"
    kept: List[Any] = []
    written = {os.path.join(folder, one.entries.get("location", "")) for one in initializers if one.is_external}
    try:
        with open(target + ".part", "wb") as out:
            for one in initializers:
                raw = _data_of(one, folder)
                if raw is None or len(raw) < least:
                    kept += one.inlined(raw) if one.is_external else _message(_INITIALIZER, one.bytes)
                    continue
                out.write(bytes(-out.tell() % _ALIGNMENT))
                kept += one.moved({"location": file_name, "offset": str(out.tell()), "length": str(len(raw))})
                out.write(raw)
        with open(new_model, "wb") as out:
            for part in [*around, *_message(_GRAPH, *parts, *kept)]:
                out.write(part)
        os.replace(target + ".part", target)
        os.replace(new_model, path)
    except BaseException:
        for left in (target + ".part", new_model):
            if os.path.exists(left):
                os.remove(left)
        raise
    for left in written - {target}:
        os.remove(left)


def _data_of(one: _Initializer, folder: str) -> Any:
    """The bytes of an initializer that the library wrote, in the model or, of a large one, beside it."""
    if not one.is_external:
        return one.raw
    begin = int(one.entries.get("offset") or 0)
    return _mapped(os.path.join(folder, one.entries["location"]))[begin:begin + int(one.entries["length"])]


def least_bytes(text: str) -> int:
    """The size that session.optimized_model_external_initializers_min_size_in_bytes asks for."""
    if not text:
        return _LEAST
    if not text.isdecimal():
        raise InvalidArgumentError(f"the least size of an external initializer is {text!r}; give a number of bytes")
    return int(text)

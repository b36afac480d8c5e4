# SPDX-License-Identifier: Apache-2.0
"""Adapters: files of tensors that runs feed to inputs which a model has default values for, as LoRA's.

A file is a FlatBuffer of ONNX Runtime's schema "TORT": a table with three versions and a vector of tables, one a tensor.
"""
from __future__ import annotations

import math
import os
import struct
from typing import Any, Dict, List, Mapping, Tuple

import numpy as np

from pyflame_rt._core.errors import DataError, InvalidArgumentError, InvalidModelError, ModelNotFoundError
from pyflame_rt._core.regular_file import open_regular
from pyflame_rt._values.dtype import FROM_ABI, DType, memory_dtype
from pyflame_rt._values.tensor import Tensor

from ._exceptions import translates
from ._values import OrtValue

_IDENTIFIER, _FORMAT_VERSION = b"TORT", 1
_ALIGNMENT = 8  # of dimensions and elements


class _Reader:
    """The fields of tables in a FlatBuffer; struct.error for what lies outside of it."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def number(self, form: str, at: int) -> int:
        if at < 0:
            raise struct.error("before the beginning")
        out: int = struct.unpack_from("<" + form, self._data, at)[0]
        return out

    def follow(self, at: int) -> int:
        return at + self.number("I", at)

    def field(self, table: int, index: int) -> int:
        """The place of a table's field, 0 where it is left out."""
        layout = table - self.number("i", table)
        place = 4 + 2 * index
        offset = self.number("H", layout + place) if place + 2 <= self.number("H", layout) else 0
        return table + offset if offset else 0

    def value(self, table: int, index: int) -> int:
        at = self.field(table, index)
        return self.number("i", at) if at else 0

    def vector(self, table: int, index: int, size: int) -> memoryview:
        """The elements of a vector, of |size| bytes each, empty where it is left out."""
        at = self.field(table, index)
        if not at:
            return memoryview(b"")
        begin = self.follow(at)
        end = begin + 4 + size * self.number("I", begin)
        if end > len(self._data):
            raise struct.error("after the end")
        return memoryview(self._data)[begin + 4:end]

    def tables(self, table: int, index: int) -> List[int]:
        at = self.field(table, index)
        begin = self.follow(at) if at else 0
        count = len(self.vector(table, index, 4)) // 4
        return [self.follow(begin + 4 + 4 * i) for i in range(count)]


def _read(data: bytes) -> Tuple[Tuple[int, int, int], Dict[str, OrtValue]]:
    reader, parameters = _Reader(data), {}
    adapter = reader.follow(0)
    for table in reader.tables(adapter, 3):
        name = bytes(reader.vector(table, 0, 1)).decode()
        dims = np.frombuffer(reader.vector(table, 1, 8), "<i8").tolist()
        dtype, elements = FROM_ABI.get(reader.value(table, 2)), reader.vector(table, 3, 1)
        if dtype is None or dtype == DType.String or name in parameters or min(dims, default=0) < 0:
            raise InvalidModelError(f"parameter '{name}' is there twice, or of no type or shape of a tensor of numbers")
        if (math.prod(dims) * dtype.bits + 7) // 8 != len(elements):
            raise InvalidModelError(f"parameter '{name}' is {dtype.text} {dims} and has {len(elements)} bytes")
        array = np.frombuffer(elements, np.uint8).copy().view(memory_dtype(dtype))
        parameters[name] = OrtValue(Tensor._over(array if dtype.bits < 8 else array.reshape(dims), dtype, dims))
    return (reader.value(adapter, 0), reader.value(adapter, 1), reader.value(adapter, 2)), parameters


def _load(path: Any) -> Tuple[Tuple[int, int, int], Dict[str, OrtValue]]:
    doing = f"reading the adapter '{os.fspath(path)}'"
    try:
        with open_regular(path) as file:
            data = file.read()
    except FileNotFoundError as fault:
        raise ModelNotFoundError(f"{doing}: {fault}") from None
    except OSError as fault:
        raise DataError(f"{doing}: {fault}") from None
    if data[4:8] != _IDENTIFIER:
        raise InvalidModelError(f"{doing}: it is no adapter of ONNX Runtime's; AdapterFormat.export_adapter writes them")
    try:
        versions, parameters = _read(data)
    except (struct.error, ValueError) as fault:
        what = fault if isinstance(fault, InvalidModelError) else "it is cut short, or what it points to is"
        raise InvalidModelError(f"{doing}: {what}") from None
    if versions[0] != _FORMAT_VERSION:
        raise InvalidModelError(f"{doing}: it is of version {versions[0]} of the format; {_FORMAT_VERSION} is read")
    return versions, parameters


class _Writer:
    """A FlatBuffer that is written from its root on; places that point further are filled in when that is written."""

    def __init__(self) -> None:
        self.data = bytearray(4) + _IDENTIFIER

    def table(self, pointer: int, *fields: int) -> List[int]:
        """Writes a table of fields of 4 bytes each, which |pointer| points to; gives their places."""
        self._align(4)
        count = len(fields)
        layout = len(self.data)
        self.data += struct.pack(f"<{2 + count}H", 4 + 2 * count, 4 + 4 * count, *range(4, 4 + 4 * count, 4))
        self._align(4)
        table = len(self.data)
        self._point(pointer, table)
        self.data += struct.pack(f"<i{count}i", table - layout, *fields)
        return [table + 4 + 4 * i for i in range(count)]

    def vector(self, pointer: int, count: int, elements: bytes) -> int:
        """Writes a vector that |pointer| points to; gives the place of its elements."""
        self.data += bytes(-(len(self.data) + 4) % _ALIGNMENT)
        self._point(pointer, len(self.data))
        self.data += struct.pack("<I", count) + elements
        return len(self.data) - len(elements)

    def _align(self, size: int) -> None:
        self.data += bytes(-len(self.data) % size)

    def _point(self, pointer: int, target: int) -> None:
        struct.pack_into("<I", self.data, pointer, target - pointer)


@translates
class AdapterFormat:
    """An adapter that a program makes and writes to a file, or reads: versions, and tensors by the names of inputs."""

    def __init__(self) -> None:
        self._versions: Tuple[int, int] = (0, 0)
        self._parameters: Dict[str, OrtValue] = {}

    @staticmethod
    def read_adapter(file_path: Any) -> "AdapterFormat":
        """The adapter of a file. Raises NoSuchFile, InvalidProtobuf for what is no adapter."""
        out = AdapterFormat()
        (_, *versions), out._parameters = _load(file_path)
        out._versions = (versions[0], versions[1])
        return out

    def export_adapter(self, file_path: Any) -> None:
        """Writes a file that ``LoraAdapter.Load`` and ONNX Runtime read."""
        writer = _Writer()
        _, _, _, at = writer.table(0, _FORMAT_VERSION, *self._versions, 0)
        count = len(self._parameters)
        tables = writer.vector(at, count, bytes(4 * count))
        for i, (name, value) in enumerate(self._parameters.items()):
            assert value._host is not None
            elements = np.ascontiguousarray(value._host.memory()).tobytes()
            fields = writer.table(tables + 4 * i, 0, 0, value.element_type(), 0)
            text = name.encode()
            writer.vector(fields[0], len(text), text)
            writer.data += b"\0"  # which ends a text, and is not counted
            writer.vector(fields[1], len(value.shape()), struct.pack(f"<{len(value.shape())}q", *value.shape()))
            writer.vector(fields[3], len(elements), elements)
        try:
            with open(file_path, "wb") as file:
                file.write(writer.data)
        except OSError as fault:
            raise DataError(f"writing the adapter '{os.fspath(file_path)}': {fault}") from None

    def get_format_version(self) -> int:
        """The version of the format of files."""
        return _FORMAT_VERSION

    def set_adapter_version(self, adapter_version: int) -> None:
        """Sets a number of the program's own."""
        self._versions = (int(adapter_version), self._versions[1])

    def get_adapter_version(self) -> int:
        """The number that ``set_adapter_version`` set."""
        return self._versions[0]

    def set_model_version(self, model_version: int) -> None:
        """Sets the version of the model that the adapter is for; nothing compares it."""
        self._versions = (self._versions[0], int(model_version))

    def get_model_version(self) -> int:
        """The number that ``set_model_version`` set."""
        return self._versions[1]

    def set_parameters(self, params: Mapping[str, OrtValue]) -> None:
        """Sets the tensors, of numbers and in host memory, by the names of inputs."""
        for name, value in params.items():
            if not isinstance(name, str) or not isinstance(value, OrtValue) or value._host is None or (
                    value._host.dtype == DType.String):
                raise InvalidArgumentError(f"parameter {name!r} of an adapter is {value!r}; give an OrtValue of a tensor "
                                           "of numbers in host memory")
        self._parameters = dict(params)

    def get_parameters(self) -> Dict[str, OrtValue]:
        """The tensors by name."""
        return dict(self._parameters)


@translates
class LoraAdapter:
    """An adapter to run with: ``Load`` it, and give it to ``RunOptions.add_active_adapter``."""

    def __init__(self) -> None:
        self._parameters: Dict[str, OrtValue] = {}

    def Load(self, file_path: Any) -> None:
        """Reads a file. Raises NoSuchFile, InvalidProtobuf for what is no adapter."""
        self._parameters = _load(file_path)[1]

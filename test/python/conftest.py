# SPDX-License-Identifier: Apache-2.0
"""Models that the tests share, written by hand so that no other package is needed."""
import struct
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def pytest_configure(config):
    config.addinivalue_line("markers", "registers_passes: registers passes of sessions, which stay until the process ends")


def pytest_collection_modifyitems(items):
    """Tests that register passes come last: with a client's passes no session is kept in a cache."""
    items.sort(key=lambda item: item.get_closest_marker("registers_passes") is not None)


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """A field of a protobuf message: an int, a float, text, or the bytes of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def port(name, dtype, dims):
    """A ValueInfoProto of a tensor; a dimension is a number or a name, and None for all is any shape."""
    tensor = field(1, dtype)
    if dims is not None:
        tensor += field(2, b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d)) for d in dims))
    return field(1, name) + field(2, field(1, tensor))


def node(op, inputs, outputs, **attributes):
    message = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(4, op)
    for name, value in attributes.items():
        kind = 1 if isinstance(value, float) else 2
        message += field(5, field(1, name) + field(2 if kind == 1 else 3, value) + field(20, kind))
    return message


def onnx_model(nodes, inputs, outputs, opset=17):
    """The bytes of an ONNX model."""
    graph = b"".join(field(1, n) for n in nodes) + field(2, "made")
    graph += b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs)
    return field(1, 8) + field(2, "tests") + field(7, graph) + field(8, field(2, opset))


FLOAT, UINT8, INT64, STRING, BOOL, DOUBLE = 1, 2, 7, 8, 9, 11


@pytest.fixture
def digits():
    return str(ROOT / "samples" / "digits" / "digits.onnx")


@pytest.fixture
def add_model():
    """y = a + b, float32 [N, 3]."""
    return onnx_model([node("Add", ["a", "b"], ["y"])], [port("a", FLOAT, ["N", 3]), port("b", FLOAT, ["N", 3])],
                      [port("y", FLOAT, ["N", 3])])

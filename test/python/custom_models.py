# SPDX-License-Identifier: Apache-2.0
"""Operators with Python kernels, and models of a node that uses one: what their tests share."""
import pytest

import pyflame_rt
from conftest import FLOAT, field, node, onnx_model, port
from pyflame_rt.custom import CustomOpRegistry, register_custom_op


@pytest.fixture
def none_stay_registered():
    """No operator of a test is there for the next."""
    yield
    for name in CustomOpRegistry.instance().list():
        CustomOpRegistry.instance().unregister(name)


def build(name, kernel, inputs=("X",), outputs=("Y",), shape=None):
    return register_custom_op(name, input_names=list(inputs), output_names=list(outputs), kernel_fn=kernel,
                              shape_inference_fn=shape)


def same(shapes):
    return [shapes[0]]


def doubled(inputs, attrs):
    return [2 * inputs[0].numpy()]


def attribute(name, value):
    """An AttributeProto of any kind that operators take."""
    def message(kind, body):
        return field(5, field(1, name) + body + field(20, kind))
    if isinstance(value, float):
        return message(1, field(2, value))
    if isinstance(value, int):
        return message(2, field(3, value & (1 << 64) - 1))
    if isinstance(value, (str, bytes)):
        return message(3, field(4, value))
    if isinstance(value, list):
        number, kind = {float: (7, 6), int: (8, 7), str: (9, 8)}[type(value[0])]
        return message(kind, b"".join(field(number, one) for one in value))
    dtype = {"float32": 1, "int64": 7}[str(value.dtype)]
    tensor = b"".join(field(1, d) for d in value.shape) + field(2, dtype) + field(9, value.tobytes())
    return message(4, field(5, tensor))


def custom_node(op, inputs, outputs, attributes=None, name="node_0"):
    made = node(op, inputs, outputs) + field(3, name) + field(7, "custom")
    return made + b"".join(attribute(key, value) for key, value in (attributes or {}).items())


def model_of(nodes, inputs, outputs, version=1):
    """|inputs| and |outputs| are ports, or names for vectors of float32."""
    def ports(given):
        return [port(one, FLOAT, ["N"]) if isinstance(one, str) else one for one in given]
    return onnx_model(nodes, ports(inputs), ports(outputs)) + field(8, field(1, "custom") + field(2, version))


def session_of(op, inputs=("x",), outputs=("y",), attributes=None, options=None):
    """A session of one node whose inputs and outputs are float32 vectors, or ports."""
    def names(given):
        return [one if isinstance(one, str) else name_of(one) for one in given]
    made = model_of([custom_node(op, names(inputs), names(outputs), attributes)], inputs, outputs)
    return pyflame_rt.InferenceSession(made, options)


def name_of(made):
    """The name in the bytes of a port."""
    return made[2:2 + made[1]].decode()

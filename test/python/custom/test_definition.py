# SPDX-License-Identifier: Apache-2.0
"""Operators described as ONNX Runtime's CustomOpDef describes them."""
import numpy as np
import pytest

import pyflame_rt
from custom_models import none_stay_registered  # noqa: F401
from pyflame_rt import DType, custom
from pyflame_rt.custom import CustomOpDef


class CustomPyOp:
    def compute(self, input_data):
        return input_data * 2.0


def session_of(op, inputs, outputs, domain="custom.domain"):
    graph = pyflame_rt.Graph()
    for i, dtype in enumerate(inputs):
        graph.add_input(f"x{i}", ["N"], dtype)
    names = [f"y{i}" for i in range(outputs)]
    graph.add_node("node", op, [f"x{i}" for i in range(len(inputs))], names, domain=domain)
    for name in names:
        graph.add_output(name)
    return pyflame_rt.InferenceSession(graph)


def test_an_object_computes(none_stay_registered):
    kind = CustomOpDef.TensorType
    op = CustomOpDef(op_type="CustomPyOp", domain="custom.domain", inputs=[kind.FLOAT], outputs=[kind.FLOAT])
    assert repr(op) == "CustomOpDef(custom.domain.CustomPyOp: float32 -> float32)"
    assert isinstance(op.register(CustomPyOp()), custom.CustomOp)
    session = session_of("CustomPyOp", [DType.Float32], 1)
    assert session.run(None, {"x0": np.array([1, 2.5], np.float32)})[0].tolist() == [2.0, 5.0]
    with pytest.raises(pyflame_rt.InvalidArgumentError):
        op.register(CustomPyOp())  # the name is taken


def test_a_function_of_many_ports(none_stay_registered):
    op = CustomOpDef("SumAndText", "custom.domain", [DType.Int64, "float64"], [DType.Float32, CustomOpDef.TensorType.BOOL])
    op.register(lambda a, b: (a + b, a > b))
    session = session_of("SumAndText", [DType.Int64, DType.Float64], 2)
    total, greater = session.run(None, {"x0": np.array([1, 4]), "x1": np.array([0.5, 5])})
    assert total.dtype == np.float32 and total.tolist() == [1.5, 9.0] and greater.tolist() == [True, False]


def test_what_will_not_do():
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="has no outputs"):
        CustomOpDef("None", "custom.domain", [DType.Float32])
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="cannot be called and has no 'compute'"):
        CustomOpDef("Three", "custom.domain", [], [DType.Float32]).register(3)

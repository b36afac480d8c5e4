# SPDX-License-Identifier: Apache-2.0
"""The guide's "Custom Operators" in Python: its names used in its way. Numbers are those of guide_snippets.md."""
import numpy as np
import pytest

import pyflame_rt
from custom_models import none_stay_registered, session_of
from pyflame_rt import custom
from pyflame_rt.custom import BackendType, CustomOpBuilder, CustomOpRegistry

X = np.array([-2, -0.5, 0, 1, 3], np.float32)
pytestmark = pytest.mark.usefixtures(none_stay_registered.__name__)


def my_gelu(inputs, attrs):
    x = pyflame_rt.to_numpy(inputs[0])
    # x * 0.5 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3)))
    result = x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))
    return [pyflame_rt.from_numpy(result)]


def register_my_gelu():
    custom.register_custom_op(
        name="MyGELU",
        domain="custom",
        input_names=["X"],
        output_names=["Y"],
        kernel_fn=my_gelu
    )


def test_59_quick_registration():
    register_my_gelu()
    out = session_of("MyGELU").run(None, {"x": X})[0]
    assert out.dtype == np.float32
    assert np.allclose(out, [-0.0454023, -0.1542860, 0, 0.8411920, 2.9963627], rtol=0, atol=2e-6)


def test_60_builder_api():
    def fused_bias_relu(inputs, attrs):
        x = pyflame_rt.to_numpy(inputs[0])
        bias = pyflame_rt.to_numpy(inputs[1])
        result = np.maximum(0, x + bias)
        return [pyflame_rt.from_numpy(result)]

    def shape_inference(input_shapes):
        return [input_shapes[0]]

    op = CustomOpBuilder("FusedBiasRelu") \
        .domain("custom") \
        .version(1) \
        .doc("Fused bias addition and ReLU activation") \
        .input("X", pyflame_rt.DType.Float32) \
        .input("bias", pyflame_rt.DType.Float32) \
        .output("Y", pyflame_rt.DType.Float32) \
        .attr_float("alpha", required=False) \
        .kernel(fused_bias_relu, BackendType.CPU) \
        .shape_inference(shape_inference) \
        .build()
    assert op.doc == "Fused bias addition and ReLU activation" and op.full_name() == "custom::FusedBiasRelu"
    session = session_of("FusedBiasRelu", ["x", "bias"])
    assert session.run(None, {"x": X, "bias": np.full(5, 1, np.float32)})[0].tolist() == [0, 0.5, 1, 2, 4]


def test_61_operator_with_attributes():
    def scaled_add(inputs, attrs):
        x = pyflame_rt.to_numpy(inputs[0])
        y = pyflame_rt.to_numpy(inputs[1])
        scale = attrs.get("scale", 1.0)
        return [pyflame_rt.from_numpy(x + scale * y)]

    CustomOpBuilder("ScaledAdd") \
        .input("X") \
        .input("Y") \
        .output("Z") \
        .attr_float("scale", required=True) \
        .kernel(scaled_add) \
        .build()
    session = session_of("ScaledAdd", ["a", "b"], attributes={"scale": 2.0})
    assert session.run(None, {"a": X, "b": X})[0].tolist() == (3 * X).tolist()
    with pytest.raises(pyflame_rt.InputError, match="'scale' is required"):
        session_of("ScaledAdd", ["a", "b"])


def test_62_operator_with_gradient():
    def my_square(inputs, attrs):
        x = pyflame_rt.to_numpy(inputs[0])
        return [pyflame_rt.from_numpy(x ** 2)]

    def my_square_grad(inputs, grad_outputs):
        x = pyflame_rt.to_numpy(inputs[0])
        grad_out = pyflame_rt.to_numpy(grad_outputs[0])
        grad_x = 2 * x * grad_out  # d(x^2)/dx = 2x
        return [pyflame_rt.from_numpy(grad_x)]

    CustomOpBuilder("MySquare") \
        .input("X") \
        .output("Y") \
        .kernel(my_square) \
        .gradient(my_square_grad) \
        .build()
    assert session_of("MySquare").run(None, {"x": X})[0].tolist() == (X * X).tolist()
    op = CustomOpRegistry.instance().get("MySquare")
    assert op.has_gradient()
    (gradient,) = op.gradient([X], [np.full(5, 3, np.float32)])
    assert gradient.numpy().tolist() == (6 * X).tolist()


def test_63_registry_management(capsys):
    register_my_gelu()
    registry = CustomOpRegistry.instance()

    # List all custom operators
    print(registry.list())

    # Check if operator exists
    if registry.has("MyGELU"):
        op = registry.get("MyGELU")
        print(f"Operator: {op.full_name()}")

    # Unregister operator
    registry.unregister("MyGELU")
    assert capsys.readouterr().out == "['custom::MyGELU']\nOperator: custom::MyGELU\n"
    assert not registry.has("MyGELU")
    with pytest.raises(pyflame_rt.UnsupportedOperatorError, match="MyGELU"):
        session_of("MyGELU")

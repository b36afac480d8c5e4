# SPDX-License-Identifier: Apache-2.0
import contextlib
import io

import numpy as np
import pytest

import pyflame_rt


def product_model():
    """y = x W with W float32[256, 256]."""
    graph = pyflame_rt.Graph()
    graph.add_input("x", ["N", 256], pyflame_rt.DType.Float32)
    graph.add_initializer("w", np.random.default_rng(3).standard_normal((256, 256)).astype(np.float32))
    graph.add_node("product", "MatMul", inputs=["x", "w"], outputs=["y"])
    graph.add_output("y")
    return graph


def auto(max_error=None, samples=()):
    options = pyflame_rt.SessionOptions()
    options.precision = "auto"
    options.max_error = max_error
    options.samples = list(samples)
    return options


def test_precision_auto_stays_inside_its_error():
    model = product_model()
    x = np.random.default_rng(4).standard_normal((2, 256)).astype(np.float32)
    (exact,) = pyflame_rt.InferenceSession(model).run(None, {"x": x})
    for max_error in (0.05, 1e-4, 0.0):
        session = pyflame_rt.InferenceSession(model, auto(max_error, [{"x": x}]))
        (got,) = session.run(None, {"x": x})
        assert np.abs(got - exact).max() <= max_error * np.abs(exact).max()
    assert pyflame_rt.InferenceSession(model, auto()).run(None, {"x": x})[0].shape == (2, 256)


def test_samples_are_checked():
    model = product_model()
    for sample, fault, part in (({"z": np.zeros((1, 256), np.float32)}, pyflame_rt.InputError, "z"),
                                ({"x": np.zeros((1, 255), np.float32)}, pyflame_rt.ShapeMismatchError, "sample 0"),
                                ({"x": np.zeros((1, 256), np.int64)}, pyflame_rt.DTypeMismatchError, "sample 0"),
                                ({}, pyflame_rt.InputError, "x")):
        with pytest.raises(fault, match=part):
            pyflame_rt.InferenceSession(model, auto(samples=[sample]))
    with pytest.raises(pyflame_rt.InputError, match="dict"):
        pyflame_rt.InferenceSession(model, auto(samples=[[1, 2]]))


def test_max_error_belongs_to_auto():
    options = pyflame_rt.SessionOptions()
    options.max_error = 0.01
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="max_error.*auto.*fp32"):
        pyflame_rt.InferenceSession(product_model(), options)


def convolutions(dtype, weights):
    """A chain of residual 3 x 3 convolutions of 24 channels; the result of each layer is added to what it read."""
    graph = pyflame_rt.Graph()
    graph.add_input("x", ["N", 24, 10, 10], dtype)
    last = "x"
    for i, w in enumerate(weights):
        graph.add_initializer(f"w{i}", w)
        graph.add_node(f"conv{i}", "Conv", inputs=[last, f"w{i}"], outputs=[f"c{i}"], attrs={"pads": [1, 1, 1, 1]})
        graph.add_node(f"act{i}", "HardSwish", inputs=[f"c{i}"], outputs=[f"a{i}"])
        graph.add_node(f"sum{i}", "Add", inputs=[f"a{i}", last], outputs=[f"s{i}"])
        last = f"s{i}"
    graph.add_output(last)
    return graph


def test_a_network_of_float16_is_rounded_at_its_end():
    random = np.random.default_rng(5)
    weights = [(0.1 * random.standard_normal((24, 24, 3, 3))).astype(np.float16) for _ in range(12)]
    x = random.standard_normal((2, 24, 10, 10)).astype(np.float16)
    (exact,) = pyflame_rt.InferenceSession(
        convolutions(pyflame_rt.DType.Float64, [w.astype(np.float64) for w in weights])).run(
            None, {"x": x.astype(np.float64)})
    error = {}
    for level in (pyflame_rt.OptLevel.NONE, pyflame_rt.OptLevel.EXTENDED):
        options = pyflame_rt.SessionOptions()
        options.optimization_level = level
        (got,) = pyflame_rt.InferenceSession(convolutions(pyflame_rt.DType.Float16, weights), options).run(None, {"x": x})
        assert got.dtype == np.float16
        error[level] = np.sqrt(np.mean((got.astype(np.float64) - exact)**2) / np.mean(exact**2))
    assert error[pyflame_rt.OptLevel.EXTENDED] < 2.5e-4  # of one rounding to 11 bits: 2.0e-4
    assert error[pyflame_rt.OptLevel.NONE] < 2e-3


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_auto_tells_a_terminal_how_far_it_is(digits):
    with contextlib.redirect_stderr(Terminal()) as seen:
        pyflame_rt.InferenceSession(digits, pyflame_rt.SessionOptions(precision="auto"))
    lines = seen.getvalue().split("\r\033[K")
    assert len(lines) > 3 and lines[-1] == "" and all(line.startswith("pyflame_rt: ") for line in lines[1:-1])
    assert any("%" in line for line in lines)
    with contextlib.redirect_stderr(Terminal()) as seen:
        pyflame_rt.InferenceSession(digits)
    assert seen.getvalue() == ""
    with contextlib.redirect_stderr(io.StringIO()) as seen:
        pyflame_rt.InferenceSession(digits, pyflame_rt.SessionOptions(precision="auto"))
    assert seen.getvalue() == ""
    heard = []
    with contextlib.redirect_stderr(Terminal()) as seen:
        options = pyflame_rt.SessionOptions(precision="auto", progress=lambda *told: heard.append(told))
        pyflame_rt.InferenceSession(digits, options)
    assert heard and seen.getvalue() == ""

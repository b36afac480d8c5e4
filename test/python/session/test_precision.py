# SPDX-License-Identifier: Apache-2.0
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

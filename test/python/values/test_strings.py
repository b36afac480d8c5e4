# SPDX-License-Identifier: Apache-2.0
"""Tensors of strings, which cross over in one call each way."""
import gc

import numpy as np
import pytest

import pyflame_rt
from conftest import STRING, node, onnx_model, port


@pytest.fixture(scope="module")
def same():
    return pyflame_rt.InferenceSession(
        onnx_model([node("Identity", ["x"], ["y"])], [port("x", STRING, None)], [port("y", STRING, None)]))


@pytest.mark.parametrize("texts", [
    [], [""], ["", ""], ["a"], ["\0"], ["", "\0", "\0\0", "a\0b", ""], ["é", "日本", "\U0001f600", "e\u0301"],
    [f"word {i}" for i in range(600)], ["x" * 5000, "", "y" * 100000], ["\0"] * 300,
])
@pytest.mark.parametrize("kind", ["object", "str", "bytes"])
def test_any_text_goes_through(same, texts, kind):
    if kind == "bytes":
        fed = np.array([text.encode() for text in texts], object)
    else:
        fed = np.array(texts, object if kind == "object" else "U")
    (y,) = same.run(None, {"x": fed})
    assert y.dtype == object and y.shape == fed.shape
    # NumPy's own arrays of text end at their last character that is not 0.
    assert y.tolist() == (fed.tolist() if kind == "str" else texts)


@pytest.mark.parametrize("shape", [(), (1, 1), (2, 3), (2, 0, 3), (3, 1, 2)])
def test_shapes(same, shape):
    fed = np.empty(shape, object)
    fed[...] = "text"
    (y,) = same.run(None, {"x": fed})
    assert y.shape == shape and y.tolist() == fed.tolist()


def test_parts_of_arrays_are_read_in_their_order(same):
    fed = np.array([f"{i}" for i in range(24)], object).reshape(4, 6)
    for given in (fed.T, fed[::2, ::-1], fed[:, 1]):
        (y,) = same.run(None, {"x": given})
        assert y.tolist() == given.tolist()


def test_str_and_bytes_in_one_array(same):
    (y,) = same.run(None, {"x": np.array([b"a", "b", np.str_("c"), b""], object)})
    assert y.tolist() == ["a", "b", "c", ""]


@pytest.mark.parametrize("texts, wanted", [
    (["a", 3], "element 1 of an object array is int"), ([None, "a"], "element 0 of an object array is NoneType"),
    ([b"a", 2.5], "element 1 of an object array is float"), (["a", "\ud800"], "element 1 is no text that UTF-8 has"),
    ([b"ok", b"\xff"], "element 1 is no text that UTF-8 has"),
])
def test_what_is_no_text_is_named(same, texts, wanted):
    with pytest.raises((pyflame_rt.InputError, pyflame_rt.DTypeMismatchError)) as fault:
        same.run(None, {"x": np.array(texts, object)})
    assert wanted in str(fault.value)
    assert same.run(None, {"x": np.array(["a"], object)})[0].tolist() == ["a"]


def test_runs_whose_texts_grow_and_shrink(same):
    for count in (1, 600, 2, 0, 70, 600, 1):
        for length in (0, 1, 300):
            fed = np.array(["z" * length + str(i) for i in range(count)], object)
            for _ in range(2):
                assert same.run(None, {"x": fed})[0].tolist() == fed.tolist()


def test_results_do_not_change_with_later_runs(same):
    first = same.run(None, {"x": np.array(["one", "two"], object)})[0]
    for i in range(50):
        same.run(None, {"x": np.array([str(i)] * 2, object)})
    gc.collect()
    assert first.tolist() == ["one", "two"]

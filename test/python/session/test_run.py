# SPDX-License-Identifier: Apache-2.0
"""Runs whose arrays differ from those of the run before, and outputs that are asked for in other ways."""
import threading

import numpy as np
import pytest

import pyflame_rt
from conftest import FLOAT, INT64, node, onnx_model, port


@pytest.fixture
def fixed():
    """n = -x and a = |x| of a fixed shape, s = the shape's numbers, of a rank alone."""
    model = onnx_model([node("Neg", ["x"], ["n"]), node("Abs", ["x"], ["a"]), node("Shape", ["x"], ["s"])],
                       [port("x", FLOAT, [2, 3])],
                       [port("n", FLOAT, [2, 3]), port("a", FLOAT, [2, 3]), port("s", INT64, ["R"])])
    return pyflame_rt.InferenceSession(model)


X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)


def test_outputs_of_a_fixed_shape_are_arrays_of_their_own(fixed):
    n, a, s = fixed.run(None, {"x": X})
    assert n.base is None and a.base is None  # the run wrote to them
    assert n.tolist() == (-X).tolist() and a.tolist() == abs(X).tolist() and s.tolist() == [2, 3]


def test_other_outputs_from_run_to_run(fixed):
    for names in (["n"], ("a", "n"), ["a", "a"], [], None, ["s"], ("n", "s", "a"), ["n"], None):
        out = fixed.run(names, {"x": X})
        expected = {"n": (-X).tolist(), "a": abs(X).tolist(), "s": [2, 3]}
        assert [o.tolist() for o in out] == [expected[name] for name in names or ["n", "a", "s"]]
    wanted = ["n"]
    fixed.run(wanted, {"x": X})
    wanted[0] = "a"
    assert fixed.run(wanted, {"x": X})[0].tolist() == abs(X).tolist()
    with pytest.raises(pyflame_rt.InputError, match="'z'"):
        fixed.run(["z"], {"x": X})
    assert fixed.run(["n"], {"x": X})[0].tolist() == (-X).tolist()


def test_other_layouts_of_a_shape_from_run_to_run(fixed):
    frozen = X.copy()
    frozen.flags.writeable = False
    row = np.broadcast_to(X[:1], (2, 3))
    for x in (X, frozen, X, np.asfortranarray(X), row, X[::-1], X.astype(">f4"), X.copy(), row.copy(), X.tolist()):
        for _ in range(2):
            assert fixed.run(["n"], {"x": x})[0].tolist() == (-np.asarray(x)).tolist()


def test_a_session_may_be_closed_while_others_run_it(add_model):
    x = np.ones((100, 3), np.float32)
    for _ in range(20):
        session, right, faults = pyflame_rt.InferenceSession(add_model), [], []

        def work():
            try:
                while True:
                    right.append(session.run(None, {"a": x, "b": x})[0][0, 0] == 2)
            except pyflame_rt.PyFlameRTError as fault:
                faults.append(str(fault))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        while len(right) < 20:
            session.run(None, {"a": x, "b": x})
        session.close()
        for thread in threads:
            thread.join()
        assert all(right) and faults == ["the session is closed"] * 4


@pytest.mark.parametrize("shape", [(), (0,), (0, 4), (1,), (3, 5), (300, 400)], ids=str)
def test_outputs_whose_shape_is_known_after_the_run_belong_to_the_caller(shape):
    names = [f"d{i}" for i in range(len(shape))]
    model = onnx_model([node("Neg", ["x"], ["y"])], [port("x", FLOAT, names)], [port("y", FLOAT, names)])
    session = pyflame_rt.InferenceSession(model)
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    first, second = session.run(None, {"x": x})[0], session.run(None, {"x": x + np.float32(1)})[0]
    session.close()
    assert first.shape == second.shape == shape and first.dtype == np.float32
    assert np.array_equal(first, -x) and np.array_equal(second, -x - 1)
    first.fill(7)
    assert np.array_equal(second, -x - 1)


@pytest.mark.parametrize("level", list(pyflame_rt.OptLevel))
def test_outputs_have_the_shapes_that_the_run_gives_them(level):
    """Whatever the file declares: arrays made beforehand would not fit."""
    graph = pyflame_rt.Graph("declared")
    graph.add_input("x", ["N", 4])
    for name in ("k", "pads", "dims"):
        graph.add_input(name, [None], pyflame_rt.DType.Int64)
    graph.add_node("", "TopK", ["x", "k"], ["top", "at"])
    graph.add_node("", "Pad", ["x", "pads"], ["wide"])
    graph.add_node("", "ConstantOfShape", ["dims"], ["zeros"])
    graph.add_node("", "Reshape", ["x", "dims"], ["other"])
    for name in ("top", "wide", "zeros", "other"):
        graph.add_output(name, [2, 4], pyflame_rt.DType.Float32)
    options = pyflame_rt.SessionOptions()
    options.optimization_level = level
    session = pyflame_rt.InferenceSession(graph, options)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    feeds = {"x": x, "k": np.array([2]), "pads": np.array([0, 1, 0, 1]), "dims": np.array([6, 2])}
    top, wide, zeros, other = session.run(None, feeds)
    assert top.tolist() == [[3, 2], [7, 6], [11, 10]] and wide.shape == (3, 6) and zeros.shape == (6, 2)
    assert other.tolist() == x.reshape(6, 2).tolist()

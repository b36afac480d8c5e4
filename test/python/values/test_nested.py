# SPDX-License-Identifier: Apache-2.0
"""Sequences, maps and optionals as results: small parts are copied, large ones are kept alive."""
import gc

import numpy as np
import pytest

import pyflame_rt

onnx = pytest.importorskip("onnx")
helper, TensorProto = onnx.helper, onnx.TensorProto


def session_of(nodes, inputs, outputs):
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=name) for name in outputs])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return pyflame_rt.InferenceSession(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def matrix(name, columns=None):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, columns])


@pytest.mark.parametrize("keys", [{"classlabels_int64s": [7, -1, 3]}, {"classlabels_strings": ["b", "", "a"]}])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 100])
def test_maps_of_rows(keys, rows):
    session = session_of([helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", **keys)], [matrix("x", 3)], ["y"])
    x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
    (names,) = keys.values()
    wanted = [dict(zip(names, row)) for row in x.tolist()]
    for _ in range(2):
        (y,) = session.run(None, {"x": x})
        assert y == wanted
        for one in y:
            assert all(type(key) is type(names[0]) and type(value) is float for key, value in one.items())
    assert session.run(None, {"x": x + 1})[0] == [{key: value + 1 for key, value in one.items()} for one in wanted]
    if rows > 1:
        y[0].clear()
        assert y[1] == wanted[1]


def test_maps_that_differ_in_keys_or_size():
    """The caller's own maps in one sequence."""
    fed = onnx.ValueInfoProto(name="s")
    of = fed.type.sequence_type.elem_type.map_type
    of.key_type = TensorProto.STRING
    of.value_type.tensor_type.elem_type = TensorProto.FLOAT
    of.value_type.tensor_type.shape.SetInParent()
    session = session_of([helper.make_node("Identity", ["s"], ["y"])], [fed], ["y"])
    for given in ([{"a": 1.0}, {"a": 2.0}], [{"a": 1.0}, {"b": 2.0}], [{"a": 1.0}, {"a": 2.0, "b": 3.0}], [{}, {}],
                  [{"a": 1.0}, {}], [{}, {"a": 1.0}], [{"a\0b": 1.0, "é": 0.5}], [{"a": float("inf")}, {"a": -0.0}]):
        assert session.run(None, {"s": given})[0] == given


def test_sequences_of_small_and_large_tensors():
    nodes = [helper.make_node("SequenceConstruct", ["a", "b", "a"], ["s"])]
    session = session_of(nodes, [matrix("a"), matrix("b")], ["s"])
    small, large = np.ones((2, 3), np.float32), np.arange(20000, dtype=np.float32).reshape(2, -1)
    for a, b in ((small, small), (small, large), (large, small), (large, large), (small[:0], large)):
        (got,) = session.run(None, {"a": a, "b": b})
        assert [one.tolist() for one in got] == [a.tolist(), b.tolist(), a.tolist()]
        got[0][...] = 7  # the caller's own
        assert got[2].tolist() == a.tolist()
    kept = got[1]
    del got
    gc.collect()
    assert kept.tolist() == large.tolist()


def test_sequences_of_texts_and_of_narrow_types():
    texts = helper.make_tensor_value_info("t", TensorProto.STRING, [None])
    session = session_of([helper.make_node("SequenceConstruct", ["t", "t"], ["s"])], [texts], ["s"])
    for words in (["a", "b\0c", ""], [], ["long" * 100] * 700):
        (got,) = session.run(None, {"t": np.array(words, object)})
        assert [one.tolist() for one in got] == [words, words]
    nodes = [helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16),
             helper.make_node("Cast", ["x"], ["b"], to=TensorProto.BOOL),
             helper.make_node("SequenceConstruct", ["h"], ["s"]), helper.make_node("SequenceConstruct", ["b"], ["r"])]
    session = session_of(nodes, [matrix("x")], ["s", "r"])
    s, r = session.run(None, {"x": np.array([[0, 1.5]], np.float32)})
    assert s[0].dtype == np.float16 and s[0].tolist() == [[0, 1.5]]
    assert r[0].dtype == np.bool_ and r[0].tolist() == [[False, True]]


def test_optionals():
    nodes = [helper.make_node("Optional", ["x"], ["o"])]
    session = session_of(nodes, [matrix("x")], ["o"])
    for shape in ((1, 2), (100, 100)):
        assert session.run(None, {"x": np.ones(shape, np.float32)})[0].shape == shape


def test_many_outputs_of_every_kind_at_once():
    nodes = [helper.make_node("Relu", ["x"], ["small"]), helper.make_node("Tile", ["x", "n"], ["large"]),
             helper.make_node("SequenceConstruct", ["x", "large"], ["mixed"]),
             helper.make_node("SequenceConstruct", ["small"], ["few"]),
             helper.make_node("ZipMap", ["x"], ["maps"], domain="ai.onnx.ml", classlabels_int64s=[0, 1]),
             helper.make_node("Cast", ["x"], ["texts"], to=TensorProto.STRING), helper.make_node("Shape", ["x"], ["shape"])]
    n = helper.make_tensor_value_info("n", TensorProto.INT64, [2])
    names = ["small", "large", "mixed", "few", "maps", "texts", "shape"]
    session = session_of(nodes, [matrix("x", 2), n], names)
    x = np.array([[1, 2], [3, 4]], np.float32)
    for times in (1, 5000, 1):
        feed = {"x": x, "n": np.array([times, 1])}
        large = np.tile(x, (times, 1)).tolist()
        wanted = {"small": x.tolist(), "large": large, "mixed": [x.tolist(), large], "few": [x.tolist()],
                  "maps": [{0: 1.0, 1: 2.0}, {0: 3.0, 1: 4.0}], "texts": [["1", "2"], ["3", "4"]], "shape": [2, 2]}
        for asked in (None, names[::-1], ["maps", "large"], ["texts"]):
            for name, got in zip(asked or names, session.run(asked, feed)):
                plain = [one.tolist() for one in got] if name in ("mixed", "few") else (
                    got if name == "maps" else got.tolist())
                assert plain == wanted[name], name

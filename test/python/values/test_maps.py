# SPDX-License-Identifier: Apache-2.0
"""Maps and sequences of maps: their types as text, and Python's numbers in them."""
import numpy as np
import pytest

import pyflame_rt

onnx = pytest.importorskip("onnx")
helper, TensorProto = onnx.helper, onnx.TensorProto


def session_of(nodes, inputs, name):
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=name)])
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 2)]
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 8
    return model.SerializeToString()


def test_zip_map_makes_a_sequence_of_maps():
    from pyflame_rt import onnxruntime as ort
    node = helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[1, 2])
    model = session_of([node], [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 2])], "y")
    session = pyflame_rt.InferenceSession(model)
    assert session.get_outputs()[0].type == "seq(map(int64,tensor(float32)))"
    assert ort.InferenceSession(model).get_outputs()[0].type == "seq(map(int64,tensor(float)))"
    assert session.run(None, {"x": np.array([[0.5, 1]], np.float32)})[0] == [{1: 0.5, 2: 1.0}]


def test_numbers_of_python_in_a_map_have_the_type_of_the_input():
    fed = onnx.ValueInfoProto(name="m")
    fed.type.map_type.key_type = TensorProto.STRING
    fed.type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
    fed.type.map_type.value_type.tensor_type.shape.SetInParent()
    node = helper.make_node("DictVectorizer", ["m"], ["y"], domain="ai.onnx.ml", string_vocabulary=["a", "b"])
    session = pyflame_rt.InferenceSession(session_of([node], [fed], "y"))
    for given, wanted in (({"a": 1.5, "b": 2}, [[1.5, 2]]), ({"b": np.float32(3)}, [[0, 3]]), ({}, [[0, 0]])):
        (y,) = session.run(None, {"m": given})
        assert y.dtype == np.float32 and y.tolist() == wanted

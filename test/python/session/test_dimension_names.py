# SPDX-License-Identifier: Apache-2.0
"""Dimensions of one name with other sizes, and the option that refuses them."""
import numpy as np
import pytest

import pyflame_rt

onnx = pytest.importorskip("onnx")
helper, TensorProto = onnx.helper, onnx.TensorProto


def test_sizes_may_differ_unless_the_option_says_no():
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", "C"]) for name in "ab"]
    shape, expand = helper.make_node("Shape", ["a"], ["s"]), helper.make_node("Expand", ["b", "s"], ["y"])
    graph = helper.make_graph([shape, expand], "g", ports,
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", "C"])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    feed = {"a": np.zeros((4, 2), np.float32), "b": np.array([[3, 5]], np.float32)}
    for level in pyflame_rt.OptLevel:
        options = pyflame_rt.SessionOptions(optimization_level=level, log_level="off")
        session = pyflame_rt.InferenceSession(model.SerializeToString(), options)
        assert session.run(None, feed)[0].tolist() == [[3, 5]] * 4
    options = pyflame_rt.SessionOptions(strict_dimension_names=True)
    with pytest.raises(pyflame_rt.ShapeMismatchError, match="dimension 'N' is 4 in input 'a'"):
        pyflame_rt.InferenceSession(model.SerializeToString(), options).run(None, feed)

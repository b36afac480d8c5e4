# SPDX-License-Identifier: Apache-2.0
"""ONNX files that the library writes, as the package onnx reads them."""
import pytest

import pyflame_rt

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

TENSOR = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
SEQUENCE = helper.make_sequence_type_proto(TENSOR)


def value(name, held=None, shape=None):
    """An optional of |held|, or a tensor of booleans."""
    made = helper.make_optional_type_proto(held) if held is not None else helper.make_tensor_type_proto(
        TensorProto.BOOL, shape or [])
    return helper.make_value_info(name, made)


def absent(held, output):
    node = helper.make_node("Optional", [], [output])
    node.attribute.append(helper.make_attribute("type", held))
    return node


def saved(tmp_path, nodes, inputs, outputs, opset=18):
    """The model as it is saved from its file, by way of .pfm, and from a session that optimised it."""
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs), ir_version=8,
                              opset_imports=[helper.make_opsetid("", opset)])
    onnx.checker.check_model(model, full_check=True)
    graph = pyflame_rt.load_model(model.SerializeToString())
    graph.save(tmp_path / "a.onnx")
    graph.save(tmp_path / "b.pfm")
    pyflame_rt.load_model(tmp_path / "b.pfm").save(tmp_path / "b.onnx")
    pyflame_rt.InferenceSession(model.SerializeToString()).graph(optimized=True).save(tmp_path / "c.onnx")
    made = [onnx.load(str(tmp_path / name)) for name in ("a.onnx", "b.onnx", "c.onnx")]
    for one in made:
        onnx.checker.check_model(one, full_check=True)
    return made


def shapeless(made):
    for kind in ("tensor_type", "sequence_type", "optional_type"):
        if made.HasField(kind):
            inner = getattr(made, kind)
            return (kind, inner.elem_type if kind == "tensor_type" else shapeless(inner.elem_type))
    return None


@pytest.mark.parametrize("held", [TENSOR, SEQUENCE], ids=["tensor", "sequence"])
def test_an_optional_without_input_keeps_its_type(tmp_path, held):
    nodes = [absent(held, "o"), helper.make_node("OptionalHasElement", ["o"], ["y"])]
    for one in saved(tmp_path, nodes, [], [value("o", held), value("y")]):
        assert shapeless(one.graph.output[0].type) == ("optional_type", shapeless(held))


@pytest.mark.parametrize("held", [TENSOR, SEQUENCE], ids=["tensor", "sequence"])
def test_what_optionals_hold_is_told_by_nodes(tmp_path, held):
    def branch(name, node, output):
        return helper.make_graph([node], name, [], [value(output, held)])
    given = helper.make_value_info("x", held)
    nodes = [helper.make_node("If", ["c"], ["o"], then_branch=branch("t", absent(held, "p"), "p"),
                              else_branch=branch("e", helper.make_node("Optional", ["x"], ["q"]), "q")),
             helper.make_node("Identity", ["o"], ["r"]), helper.make_node("OptionalHasElement", ["r"], ["y"])]
    for one in saved(tmp_path, nodes, [value("c"), given], [value("r", held), value("y")]):
        assert shapeless(one.graph.output[0].type) == ("optional_type", shapeless(held))


def test_an_input_that_is_taken_apart_keeps_its_type(tmp_path):
    nodes = [helper.make_node("OptionalGetElement", ["o"], ["s"]), helper.make_node("SequenceLength", ["s"], ["y"])]
    length = helper.make_tensor_value_info("y", TensorProto.INT64, [])
    sequence = helper.make_value_info("s", SEQUENCE)
    for one in saved(tmp_path, nodes, [value("o", SEQUENCE)], [length, sequence]):
        assert shapeless(one.graph.input[0].type) == ("optional_type", shapeless(SEQUENCE))


def test_the_batches_of_the_first_scan_are_not_written_as_an_attribute(tmp_path):
    def number(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    body = helper.make_graph([helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Identity", ["t"], ["o"])],
                             "body", [number("s", [2]), number("x", [2])], [number("t", [2]), number("o", [2])])
    scan = helper.make_node("Scan", ["", "s0", "xs"], ["s1", "os"], num_scan_inputs=1, body=body)
    graph = helper.make_graph([scan], "g", [number("s0", [1, 2]), number("xs", [1, 3, 2])],
                              [number("s1", [1, 2]), number("os", [1, 3, 2])])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 8)])
    optimised = pyflame_rt.InferenceSession(model.SerializeToString()).graph(optimized=True)
    with pytest.raises(pyflame_rt.UnsupportedError, match="save the model as .pfm"):
        optimised.save(tmp_path / "out.onnx")
    optimised.save(tmp_path / "out.pfm")
    assert [path.name for path in tmp_path.iterdir()] == ["out.pfm"]


def test_one_zero_point_of_all_channels_is_a_scalar(tmp_path):
    """ONNX Runtime's ConvInteger has none by channel."""
    def constant(name, numbers, kind, dims=()):
        return helper.make_tensor(name, kind, dims, numbers)

    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
             helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0), helper.make_node("Conv", ["d", "wd"], ["y"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2, 3, 3])],
        [constant("s", [0.05], TensorProto.FLOAT), constant("z", [10], TensorProto.UINT8),
         constant("w", range(8), TensorProto.INT8, [2, 1, 2, 2]), constant("ws", [0.1, 0.2], TensorProto.FLOAT, [2]),
         constant("wz", [3, 3], TensorProto.INT8, [2])])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    pyflame_rt.InferenceSession(model.SerializeToString()).graph(optimized=True).save(tmp_path / "optimised.onnx")
    made = onnx.load(str(tmp_path / "optimised.onnx")).graph
    node, = [one for one in made.node if one.op_type == "ConvInteger"]
    dims = {one.name: list(one.dims) for one in made.initializer}
    assert dims[node.input[2]] == dims[node.input[3]] == []

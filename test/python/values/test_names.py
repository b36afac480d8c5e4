# SPDX-License-Identifier: Apache-2.0
"""Names of element types, shapes, descriptions and graphs, as the C++ API has them too."""
import copy
import pickle

import numpy as np
import pytest

import pyflame_rt
from conftest import FLOAT, node, onnx_model, port
from pyflame_rt import DType, Graph, NodeArg, RunOptions, Tensor, TensorInfo


# ------------------------------------------------------------------ element types and shapes


def test_sizes_of_element_types():
    sizes = {"Float32": 4, "Float16": 2, "BFloat16": 2, "Float64": 8, "Int64": 8, "Int8": 1, "Bool": 1, "String": 0,
             "Complex128": 16, "Int4": 1, "UInt2": 1, "Float8E4M3FN": 1}
    for name, size in sizes.items():
        assert pyflame_rt.dtype_size(DType[name]) == size, name
    assert pyflame_rt.dtype_size(np.int16) == 2


def test_names_of_element_types():
    assert pyflame_rt.dtype_name(DType.BFloat16) == "bfloat16" and pyflame_rt.dtype_name(np.uint8) == "uint8"
    for dtype in DType:
        assert pyflame_rt.dtype_from_name(pyflame_rt.dtype_name(dtype)) is dtype
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="'invalid'; there are float32, .*bfloat16"):
        pyflame_rt.dtype_from_name("invalid")


@pytest.mark.parametrize("shape, text, dynamic, count", [
    ([1, 3, None, 224], "[1, 3, ?, 224]", True, None), ([2, 3, 4], "[2, 3, 4]", False, 24), ([], "[]", False, 1),
    ((0, 5), "[0, 5]", False, 0), ([0, None], "[0, ?]", True, None), (None, "[...]", True, None)])
def test_shapes(shape, text, dynamic, count):
    assert pyflame_rt.shape_to_string(shape) == text
    assert pyflame_rt.is_dynamic_shape(shape) is dynamic
    assert pyflame_rt.shape_num_elements(shape) == count


# ------------------------------------------------------------------ descriptions


@pytest.mark.parametrize("info, elements, size, type_text", [
    (TensorInfo("x", DType.Float32, [1, 3, 4]), 12, 48, "tensor(float32)"),
    (TensorInfo("x", DType.Int4, [3]), 3, 2, "tensor(int4)"),
    (TensorInfo("x", DType.String, [3]), 3, None, "tensor(string)"),
    (TensorInfo("x", None, [3]), 3, None, "tensor(?)"),
    (TensorInfo("x", DType.Float32, [1, None]), None, None, "tensor(float32)"),
    (TensorInfo("x", DType.Float32), None, None, "tensor(float32)"),
    (TensorInfo("x", DType.Float32, [3], kind="sequence"), None, None, "seq(tensor(float32))"),
    (TensorInfo("x", DType.Float32, kind="map", key_dtype=DType.Int64), None, None, "map(int64,tensor(float32))"),
    (TensorInfo("x", DType.Float32, kind="sparse_tensor"), None, None, "sparse_tensor(float32)"),
    (TensorInfo("x", DType.Float32, kind="optional"), None, None, "optional(tensor(float32))")])
def test_what_a_description_says(info, elements, size, type_text):
    assert (info.num_elements(), info.size_bytes()) == (elements, size)
    arg = NodeArg.from_tensor_info(info)
    assert (arg.name, arg.type, arg.type_str, arg.shape) == ("x", type_text, type_text, info.shape)
    assert info.shape is None or arg.shape is not info.shape


def test_types_of_a_session_are_those_of_its_graph(digits):
    session = pyflame_rt.InferenceSession(digits)
    assert session.get_inputs()[0].type_str == "tensor(float32)"
    graph = session.graph()
    assert [NodeArg.from_tensor_info(one).type for one in graph.inputs] == [one.type for one in session.get_inputs()]


# ------------------------------------------------------------------ graphs


def small():
    graph = Graph("small")
    graph.add_input("x", [3])
    graph.add_initializer("w", np.ones(3, np.float32))
    graph.add_node("add", "Add", ["x", "w"], ["a"])
    graph.add_node("relu", "Relu", ["a"], ["y"])
    graph.add_output("y")
    return graph


def test_nodes_and_initializers_by_name():
    graph = small()
    assert graph.num_nodes() == 2 and Graph().num_nodes() == 0
    assert graph.get_node("relu") is graph.nodes[1] and graph.get_node("nobody") is None
    assert graph.has_initializer("w") and not graph.has_initializer("x")
    assert graph.get_initializer("w").numpy().tolist() == [1, 1, 1] and graph.get_initializer("nothing") is None
    graph.remove_initializer("w")
    assert not graph.has_initializer("w")


def test_who_makes_and_takes_a_value():
    graph = small()
    assert graph.get_producer("a") == "add" and graph.get_consumers("a") == ["relu"]
    assert graph.get_producer("x") is None and graph.get_consumers("x") == ["add"] and graph.get_consumers("y") == []
    assert graph.get_producer("nothing") is None and graph.get_consumers("nothing") == []


def test_a_name_that_another_node_has_is_refused():
    graph = small()
    with pytest.raises(pyflame_rt.InvalidArgumentError,
                       match=r"adding node 'add' \(Neg\): the graph has a node of that name, Add -> a; give .*name"):
        graph.add_node("add", "Neg", ["y"], ["z"])
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="renaming node 'relu' to 'add': .*Add -> a"):
        graph.get_node("relu").name = "add"
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="'relu'"):
        graph.insert_after("x", "relu", "Neg", outputs=["n"])
    assert graph.num_nodes() == 2 and [one.name for one in graph.nodes] == ["add", "relu"]
    graph.get_node("relu").name = "relu"
    graph.add_node("", "Neg", ["y"], ["z1"])
    graph.add_node("", "Neg", ["y"], ["z2"])  # any number may have none
    graph.remove_node("relu")
    graph.add_node("relu", "Relu", ["a"], ["y"])  # free again


def test_names_of_nodes_that_passes_made_are_taken_too():
    graph = small()
    graph.add_node("more", "Neg", ["y"], ["z"])

    class Insert(pyflame_rt.opt.Pass):
        def run(self, lent):
            lent.insert_after("x", "made", "Abs", outputs=["positive"])
            return pyflame_rt.opt.PassResult(True)
    Insert().run(graph.clone())
    manager = pyflame_rt.opt.PassManager()
    manager.register_pass(Insert())
    manager.run(graph)
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="Abs -> positive"):
        graph.add_node("made", "Neg", ["y"], ["other"])
    for made in (graph.clone(), graph):
        made.remove_node("made")
        made.add_node("made", "Neg", ["y"], ["other"])


def test_files_may_hold_a_name_twice():
    named = [node("Relu", ["x"], ["a"]), node("Neg", ["a"], ["y"])]
    made = onnx_model([one + b"\x1a\x04same" for one in named], [port("x", FLOAT, [3])], [port("y", FLOAT, [3])])
    graph = pyflame_rt.load_model(made)
    assert [one.name for one in graph.nodes] == ["same", "same"] and graph.get_node("same").op == "Relu"
    assert pyflame_rt.InferenceSession(graph).run(None, {"x": np.array([1, -1, 2], np.float32)})[0].tolist() == [-1, 0, -2]
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="'same'"):
        graph.add_node("same", "Abs", ["y"], ["z"])
    graph.nodes[1].name = "other"
    assert graph.get_node("other").op == "Neg"


# ------------------------------------------------------------------ tensors and options


@pytest.mark.parametrize("dtype", [DType.Float32, DType.String, DType.BFloat16, DType.Int4])
def test_copies_of_tensors_are_deep(dtype):
    tensor = Tensor([2, 3], dtype)
    for made in (tensor.clone(), copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor))):
        assert (made.shape, made.dtype) == ([2, 3], dtype)
        assert not np.shares_memory(made.numpy(), tensor.numpy())
        made.numpy().ravel()[0] = "other" if dtype == DType.String else 7
        assert tensor.numpy().ravel()[0] == ("" if dtype == DType.String else 0)


def test_a_copy_of_a_constant_may_be_written():
    graph = small()
    for made in (graph.get_initializer("w").clone(), copy.deepcopy(graph.get_initializer("w"))):
        made.numpy()[:] = 5
    assert graph.get_initializer("w").numpy().tolist() == [1, 1, 1]


def test_run_options_that_are_not_set_are_none():
    options = RunOptions()
    names = ("log_level", "tag", "timeout_ms", "num_threads")
    assert [getattr(options, name) for name in names] == [None] * 4
    options.timeout_ms = 500
    options.timeout_ms = None
    assert options.timeout_ms is None

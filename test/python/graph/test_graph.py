# SPDX-License-Identifier: Apache-2.0
"""Graphs: what is written is read back, edits do what they say, and sessions run them."""
import copy
import gc
import os
import pickle
import threading
import weakref

import numpy as np
import pytest

import pyflame_rt as rt
from pyflame_rt import DType, Graph


def mlp(name="mlp"):
    """y = relu(x @ w1 + b1) @ w2, float32 [N, 4] -> [N, 3]; the graph and its weights."""
    rng = np.random.default_rng(1)
    weights = {"w1": rng.normal(size=(4, 5)), "b1": rng.normal(size=5), "w2": rng.normal(size=(5, 3))}
    weights = {key: value.astype(np.float32) for key, value in weights.items()}
    graph = Graph(name)
    graph.add_input("x", ["N", 4], DType.Float32)
    for key, value in weights.items():
        graph.add_initializer(key, value)
    graph.add_node("fc1", "Gemm", inputs=["x", "w1", "b1"], outputs=["h"])
    graph.add_node("act", "Relu", inputs=["h"], outputs=["r"])
    graph.add_node("fc2", "MatMul", inputs=["r", "w2"], outputs=["y"])
    graph.add_output("y", [None, 3], DType.Float32)
    return graph, weights


def expected(x, w):
    return np.maximum(x @ w["w1"] + w["b1"], 0) @ w["w2"]


# ------------------------------------------------------------------ building and reading


def test_a_built_graph_runs_and_stays_usable():
    graph, weights = mlp()
    x = np.random.default_rng(2).normal(size=(7, 4)).astype(np.float32)
    session = rt.InferenceSession(graph)
    np.testing.assert_allclose(session.run(None, {"x": x})[0], expected(x, weights), rtol=1e-5, atol=1e-5)
    graph.add_node("more", "Neg", ["y"], ["z"])
    graph.add_output("z")
    y, z = rt.InferenceSession(graph).run(None, {"x": x})
    np.testing.assert_array_equal(z, -y)
    assert [o.name for o in session.get_outputs()] == ["y"]


def test_inputs_and_outputs_are_read_as_written():
    graph = Graph("ports")
    graph.add_input("image", ["N", 3, None, 8], DType.Float16)
    graph.add_input("scalar", [], np.int64)
    graph.add_input("any")
    graph.add_output("image")
    graph.add_output("s", None, "bool")
    image, scalar, anything = graph.inputs
    assert (image.name, image.dtype, image.shape) == ("image", DType.Float16, [None, 3, None, 8])
    assert image.dim_names == ["N", "", "", ""] and image.is_dynamic()
    assert (scalar.dtype, scalar.shape, scalar.is_dynamic()) == (DType.Int64, [], False)
    assert (anything.dtype, anything.shape, anything.is_dynamic()) == (DType.Float32, None, True)
    assert (graph.outputs[0].dtype, graph.outputs[0].shape) == (DType.Float16, [None, 3, None, 8])
    assert (graph.outputs[1].dtype, graph.outputs[1].shape) == (DType.Bool, None)


@pytest.mark.parametrize("kind", ["sequence", "optional", "sparse_tensor", "map"])
def test_values_of_other_kinds_are_described_by_a_tensor_info(kind):
    graph = Graph()
    key = DType.Int64 if kind == "map" else None
    graph.add_input(rt.TensorInfo("s", DType.Float32, [None, 2], kind=kind, key_dtype=key))
    info = graph.inputs[0]
    assert (info.kind, info.dtype, info.shape, info.key_dtype) == (kind, DType.Float32, [None, 2], key)


def test_a_map_without_a_key_type_can_be_looked_at():
    graph = Graph()
    graph.add_input(rt.TensorInfo("m", kind="map"))
    assert (graph.inputs[0].kind, graph.inputs[0].key_dtype, graph.inputs[0].dtype) == ("map", None, None)
    assert "m: [...] map of ?" in str(graph)


@pytest.mark.parametrize("shape", [[1, -1], [1.5], "N", [1 << 70], [b"N"]])
def test_shapes_that_are_none_are_refused(shape):
    graph = Graph()
    with pytest.raises(rt.InvalidArgumentError, match="'x'"):
        graph.add_input("x", shape)
    assert graph.inputs == []


def test_a_tensor_info_leaves_nothing_else_to_say():
    with pytest.raises(rt.InvalidArgumentError, match="TensorInfo says"):
        Graph().add_input(rt.TensorInfo("x", DType.Float32, [1]), [2])


def test_ports_are_replaced_and_removed_by_position_and_name():
    graph = Graph()
    for name in "abc":
        graph.add_input(name, [1])
        graph.add_output(name)
    graph.replace_input("b", rt.TensorInfo("d", DType.Int32, [2]))
    graph.remove_input(0)
    graph.replace_output(0, rt.TensorInfo("d", DType.Int32, [2]))
    graph.remove_output("b")
    assert [i.name for i in graph.inputs] == ["d", "c"]
    assert [o.name for o in graph.outputs] == ["d", "c"]
    assert (graph.inputs[0].dtype, graph.inputs[0].shape) == (DType.Int32, [2])
    with pytest.raises(rt.NotFoundError, match="'q'.*'d', 'c'"):
        graph.remove_input("q")
    for position in (9, -1):
        with pytest.raises(rt.InvalidArgumentError, match=f"position {position}; it has 2"):
            graph.remove_output(position)


def test_name_opsets_and_metadata():
    graph = Graph("first")
    assert graph.name == "first"
    graph.name = "zwölf"
    graph.set_opset(17)
    graph.set_opset("com.example", 3)
    graph.set_metadata("author", "somebody")
    graph.set_metadata("year", "2026")
    assert graph.name == "zwölf"
    assert graph.opsets == {"": 17, "com.example": 3}
    assert graph.metadata == {"author": "somebody", "year": "2026"}
    graph.remove_opset("com.example")
    graph.remove_metadata("year")
    assert graph.opsets == {"": 17} and graph.metadata == {"author": "somebody"}
    for remove in (graph.remove_opset, graph.remove_metadata):
        with pytest.raises(rt.NotFoundError):
            remove("nothing")
    for version in (0, -1, (1 << 64) + 17):
        with pytest.raises(rt.InvalidArgumentError, match="opset"):
            graph.set_opset(version)
    assert graph.opsets == {"": 17}
    with pytest.raises(TypeError, match="text is needed where 5"):
        graph.name = 5


# ------------------------------------------------------------------ initializers


def test_initializers_share_the_memory_and_keep_it():
    graph = Graph()
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    alive = weakref.ref(array)
    graph.add_initializer("w", array)
    got = graph.initializer("w")
    assert isinstance(got, rt.Tensor) and got.shape == [3, 4] and got.dtype == DType.Float32
    assert np.shares_memory(got.numpy(), array)
    with pytest.raises(ValueError):
        got.numpy()[0, 0] = 1
    del array, got
    gc.collect()
    assert alive() is not None
    np.testing.assert_array_equal(graph.initializer("w").numpy(), alive())
    graph.remove_initializer("w")
    gc.collect()
    assert alive() is None
    assert graph.initializers == {}


def test_a_session_keeps_borrowed_memory():
    graph = Graph()
    array = np.full((2, 3), 2, np.float32)
    alive = weakref.ref(array)
    graph.add_input("x", [2, 3])
    graph.add_initializer("w", array)
    graph.add_node("mul", "Mul", ["x", "w"], ["y"])
    graph.add_output("y")
    session = rt.InferenceSession(graph)
    del array, graph
    gc.collect()
    np.testing.assert_array_equal(session.run(None, {"x": np.ones((2, 3), np.float32)})[0], np.full((2, 3), 2))
    assert alive() is not None
    del session
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("array", [
    np.arange(6, dtype=np.int64).reshape(2, 3).T, np.arange(4, dtype=">f4"), np.zeros((0, 3), np.float32),
    np.float64(3.5), np.array([[True], [False]]), np.array([1 + 2j], np.complex64), [1, 2, 3]],
    ids=["transposed", "big-endian", "empty", "scalar", "bool", "complex", "list"])
def test_initializers_of_any_array(array):
    graph = Graph()
    graph.add_initializer("w", array)
    want = np.asarray(array)
    got = graph.initializer("w").numpy()
    np.testing.assert_array_equal(got, want)
    assert got.dtype == want.dtype.newbyteorder("=") and list(got.shape) == list(want.shape)


def test_read_only_arrays_tensors_strings_and_sparse_ones_are_initializers():
    graph = Graph()
    frozen = np.ones(3, np.float32)
    frozen.flags.writeable = False
    graph.add_initializer("frozen", frozen)
    half = rt.Tensor([2, 3], DType.BFloat16)
    half.numpy()[:] = 0x3f80
    graph.add_initializer("half", half)
    packed = rt.Tensor([3], DType.Int4)
    packed.numpy()[:] = [0x21, 0x03]
    graph.add_initializer("packed", packed)
    graph.add_initializer("words", np.array([["a", "zwölf"]]))
    graph.add_initializer("sparse", rt.SparseTensor(np.array([5.0], np.float32), np.array([[1, 2]]), (3, 4)))
    got = graph.initializers
    assert list(got) == ["frozen", "half", "packed", "words", "sparse"]
    np.testing.assert_array_equal(got["frozen"].numpy(), frozen)
    assert (got["half"].dtype, got["half"].shape) == (DType.BFloat16, [2, 3])
    np.testing.assert_array_equal(got["half"].numpy(), np.full((2, 3), 0x3f80))
    assert (got["packed"].dtype, got["packed"].shape) == (DType.Int4, [3])
    np.testing.assert_array_equal(got["packed"].numpy(), [0x21, 0x03])
    assert got["words"].numpy().tolist() == [["a", "zwölf"]]
    assert got["sparse"].shape == (3, 4)
    np.testing.assert_array_equal(got["sparse"].indices, [[1, 2]])
    assert graph.get_tensor_info("half").shape == [2, 3]
    assert graph.get_tensor_info("half").dtype == DType.BFloat16


@pytest.mark.parametrize("array", [np.array([object()]), np.array(["2020-01-01"], "datetime64[D]"),
                                   np.zeros(1, np.longdouble)])
def test_arrays_that_are_no_tensors_are_refused_by_name(array):
    with pytest.raises(rt.DTypeMismatchError, match="initializer 'w'"):
        Graph().add_initializer("w", array)


def test_adding_an_initializer_replaces_the_one_of_its_name():
    graph = Graph()
    graph.add_initializer("w", np.zeros(2, np.float32))
    old = graph.initializer("w").numpy()
    graph.add_initializer("w", np.ones(5, np.float64))
    np.testing.assert_array_equal(graph.initializer("w").numpy(), np.ones(5))
    np.testing.assert_array_equal(old, np.zeros(2))
    with pytest.raises(rt.NotFoundError, match="nothing"):
        graph.initializer("nothing")


def test_writing_into_a_constant_leaves_what_shares_it_alone():
    graph, weights = mlp()
    clone, session = graph.clone(), rt.InferenceSession(graph)
    before = weights["w2"].copy()
    graph.initializer_for_write("w2").numpy()[:] = 0
    x = np.ones((1, 4), np.float32)
    assert (rt.InferenceSession(graph).run(None, {"x": x})[0] == 0).all()
    np.testing.assert_array_equal(weights["w2"], before)
    np.testing.assert_array_equal(clone.initializer("w2").numpy(), before)
    np.testing.assert_allclose(session.run(None, {"x": x})[0], expected(x, weights), rtol=1e-5, atol=1e-5)


# ------------------------------------------------------------------ nodes and attributes


def body_of(graph, name, value):
    body = graph.create_subgraph(name)
    body.add_node("", "Add" if value else "Sub", ["x", "x"], [name + "_out"])
    body.add_output(name + "_out")
    return body


ATTRIBUTES = {
    "int": 3, "negative": -(1 << 63), "true": True, "float": 0.1, "infinity": float("inf"), "text": "zwölf",
    "empty": "", "bytes": b"\xff\xfe", "ints": [1, 2, 3], "floats": [0.5, 0.1, 3.0], "texts": ["a", "", "c"], "none": [],
    "type": rt.TypeText("seq(tensor(float))"),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_are_read_as_written(name):
    node = Graph().add_node("n", "Op", [], ["y"], {name: ATTRIBUTES[name]}, domain="com.example")
    got = node.attrs[name]
    assert got == ATTRIBUTES[name]
    assert isinstance(got, bool) is False and type(got) is type(ATTRIBUTES[name]) or name == "true"
    assert dict(node.attrs) == node.attributes == {name: ATTRIBUTES[name]}


def test_tensor_attributes():
    half = rt.Tensor([3], DType.BFloat16)
    half.numpy()[:] = [1, 2, 3]
    node = Graph().add_node("n", "Op", [], ["y"], attrs={
        "array": np.eye(2, dtype=np.float32), "half": half, "words": np.array(["a", "b"]),
        "many": [np.int64(4) * np.ones(1, np.int64), half],
        "sparse": rt.SparseTensor(np.array([5.0], np.float32), np.array([[1, 2]]), (3, 4))})
    np.testing.assert_array_equal(node.attrs["array"].numpy(), np.eye(2))
    assert node.attrs["half"].dtype == DType.BFloat16
    np.testing.assert_array_equal(node.attrs["half"].numpy(), [1, 2, 3])
    assert node.attrs["words"].numpy().tolist() == ["a", "b"]
    assert [t.dtype for t in node.attrs["many"]] == [DType.Int64, DType.BFloat16]
    assert node.attrs["sparse"].shape == (3, 4)


def test_numbers_of_numpy_and_element_types_are_attributes():
    node = Graph().add_node("cast", "Cast", ["x"], ["y"], {"to": DType.Float16, "f": np.float32(2.5), "i": np.int8(-3),
                                                           "mixed": [1, 2.5], "many": (np.int64(1), 2)})
    assert dict(node.attrs) == {"to": 10, "f": 2.5, "i": -3, "mixed": [1.0, 2.5], "many": [1, 2]}


@pytest.mark.parametrize("value, said", [
    (None, "NoneType"), ({}, "dict"), ([1, "a"], "int, str"), (1 << 63, "64 bits"), (1e300, "float32"),
    ([[1]], "list"), (3j, "complex")])
def test_attributes_that_are_none_are_refused_by_name(value, said):
    graph = Graph()
    with pytest.raises(rt.InvalidArgumentError, match=f"'a'.*{said}"):
        graph.add_node("n", "Op", [], ["y"], attrs={"a": value})
    assert graph.nodes == []


def test_attributes_are_set_and_removed_in_the_graph():
    graph = Graph()
    node = graph.add_node("n", "Op", [], ["y"], {"a": 1})
    node.attrs["b"] = [1.5]
    node.set_attr("a", "text")
    assert dict(graph.find_node("n").attrs) == {"a": "text", "b": [1.5]}
    del node.attrs["b"]
    node.remove_attr("a")
    assert dict(node.attrs) == {} and not node.has_attr("a") and node.get_attr("a", 7) == 7 and len(node.attrs) == 0
    with pytest.raises(KeyError):
        del node.attrs["b"]
    with pytest.raises(KeyError):
        node.attrs["b"]
    with pytest.raises(rt.NotFoundError):
        node.remove_attr("b")


def test_nodes_are_read_as_written():
    graph = Graph()
    node = graph.add_node("n", "Op", ["a", "", "c"], ["y", ""], domain="com.example", doc="what it does")
    assert graph.nodes == [node] and graph.nodes[0] is node
    assert (node.name, node.op, node.op_type, node.domain, node.doc) == (
        "n", "Op", "Op", "com.example", "what it does")
    assert (node.inputs, node.outputs) == (["a", "", "c"], ["y", ""])
    assert repr(node) == "Node(n: com.example.Op(a, , c) -> y, )"
    node.name, node.inputs, node.outputs = "m", ["b"], ["z"]
    assert (graph.find_node("m").inputs, graph.nodes[0].outputs, graph.find_node("n")) == (["b"], ["z"], None)
    with pytest.raises(TypeError, match="list of names"):
        node.inputs = "bc"
    with pytest.raises(TypeError, match="lists of names"):
        graph.add_node("n", "Op", "x", ["y"])
    with pytest.raises(rt.InvalidArgumentError, match="one parameter"):
        graph.add_node("n", "Op", [], [], {"a": 1}, attrs={"a": 1})


def test_a_second_maker_of_a_value_is_refused():
    graph, _ = mlp()
    with pytest.raises(rt.ValidationError, match="'h'"):
        graph.add_node("again", "Relu", ["x"], ["h"])
    with pytest.raises(rt.ValidationError, match="'r'"):
        graph.find_node("fc2").outputs = ["r"]
    assert len(graph.nodes) == 3


def test_removed_nodes_keep_what_they_were():
    graph, _ = mlp()
    act = graph.find_node("act")
    act.attrs["note"] = "kept"
    number = act.id
    graph.remove_node(act)
    assert (act.id, act.name, act.op, act.inputs, act.outputs, act.attrs["note"]) == (
        None, "act", "Relu", ["h"], ["r"], "kept")
    assert [n.name for n in graph.nodes] == ["fc1", "fc2"] and graph.node(number) is None
    assert graph.node(-1) is None and graph.node((1 << 32) + graph.nodes[0].id) is None
    for change in (lambda: act.set_attr("a", 1), lambda: setattr(act, "name", "b"), lambda: graph.remove_node(act),
                   lambda: setattr(act, "inputs", [])):
        with pytest.raises(rt.NotFoundError, match="'?act"):
            change()
    with pytest.raises(TypeError):
        act.attrs["note"] = "changed"
    with pytest.raises(rt.NotFoundError):
        graph.remove_node("act")


def test_a_node_of_another_graph_is_refused():
    graph, _ = mlp()
    clone = graph.clone()
    with pytest.raises(rt.NotFoundError, match="not in this graph"):
        graph.remove_node(clone.find_node("act"))
    assert len(graph.nodes) == len(clone.nodes) == 3
    clone.remove_node("act")
    assert len(graph.nodes) == 3 and len(clone.nodes) == 2


def test_makers_users_and_order():
    graph = Graph()
    graph.add_input("x", [1])
    last = graph.add_node("last", "Add", ["a", "b"], ["y"])
    one = graph.add_node("one", "Neg", ["x"], ["a"])
    two = graph.add_node("two", "Abs", ["a"], ["b"])
    graph.add_output("y")
    assert graph.nodes == [last, one, two] and graph.topological_sort() == [one, two, last]
    assert graph.producer("a") is one and graph.producer("x") is None
    assert graph.consumers("a") == [last, two] and graph.consumers("y") == []
    assert graph.node(two.id) is two
    with pytest.raises(rt.NotFoundError):
        graph.producer("nothing")
    one.inputs = ["y"]
    with pytest.raises(rt.ValidationError):
        graph.topological_sort()
    assert graph.validate() != []


def test_uses_are_replaced_and_nodes_inserted():
    graph, weights = mlp()
    scale = graph.insert_after("h", "scale", "Mul", ["h", "two"], ["h2"])
    graph.add_initializer("two", np.float32(2))
    assert graph.find_node("act").inputs == ["h2"] and scale.inputs == ["h", "two"]
    graph.insert_after("y", "negate", "Neg", outputs=["neg"])
    assert [o.name for o in graph.outputs] == ["y"]
    x = np.ones((2, 4), np.float32)
    want = -2 * expected(x, weights)
    np.testing.assert_allclose(rt.InferenceSession(graph).run(None, {"x": x})[0], want, rtol=1e-5, atol=1e-5)
    graph.replace_uses("h2", "h")
    graph.remove_node(scale)
    assert graph.find_node("act").inputs == ["h"]
    with pytest.raises(rt.NotFoundError):
        graph.insert_after("nothing", "n", "Neg", outputs=["z"])
    with pytest.raises(rt.InvalidArgumentError, match="no output"):
        graph.insert_after("h", "n", "Neg")
    assert graph.find_node("n") is None


def test_values_are_renamed_everywhere():
    graph, _ = mlp()
    graph.rename_value("x", "image")
    graph.rename_value("y", "logits")
    assert [i.name for i in graph.inputs] == ["image"] and [o.name for o in graph.outputs] == ["logits"]
    assert graph.find_node("fc1").inputs[0] == "image" and graph.find_node("fc2").outputs == ["logits"]
    with pytest.raises(rt.ValidationError):
        graph.rename_value("image", "logits")


def test_a_walk_may_edit():
    graph, _ = mlp()
    for node in graph.nodes:
        if node.op == "Relu":
            graph.replace_uses(node.outputs[0], node.inputs[0])
            graph.remove_node(node)
        else:
            node.name = node.name.upper()
    assert [n.name for n in graph.nodes] == ["FC1", "FC2"] and graph.validate_all() == []


# ------------------------------------------------------------------ bodies


def conditional():
    graph = Graph("conditional")
    graph.add_input("x", [2])
    graph.add_input("flag", [], DType.Bool)
    graph.add_node("if", "If", ["flag"], ["y"], attrs={
        "then_branch": body_of(graph, "then", True), "else_branch": body_of(graph, "else", False)})
    graph.add_output("y", [2])
    return graph


def test_bodies_run_and_are_read_and_edited_in_place():
    graph = conditional()
    x = np.array([1, 2], np.float32)
    feeds = {"x": x, "flag": np.array(True)}
    np.testing.assert_array_equal(rt.InferenceSession(graph).run(None, feeds)[0], 2 * x)
    body = graph.find_node("if").attrs["then_branch"]
    assert body.name == "then" and [n.op for n in body.nodes] == ["Add"] and body.nodes[0].inputs == ["x", "x"]
    assert graph.find_node("if").attrs["then_branch"] is body
    body.remove_node(body.nodes[0])
    body.add_node("mul", "Mul", ["x", "x"], ["then_out"])
    np.testing.assert_array_equal(rt.InferenceSession(graph).run(None, feeds)[0], x * x)
    np.testing.assert_array_equal(rt.InferenceSession(graph).run(None, {**feeds, "flag": np.array(False)})[0], 0 * x)
    assert graph.consumers("x") == graph.nodes


def test_bodies_outlive_the_objects_they_came_from():
    body = conditional().find_node("if").attrs["else_branch"]
    gc.collect()
    assert [n.op for n in body.nodes] == ["Sub"]
    copy_of = body.clone()
    copy_of.nodes[0].name = "renamed"
    assert body.nodes[0].name == ""


def test_a_body_made_elsewhere_is_refused():
    graph, other = Graph(), Graph()
    with pytest.raises(rt.InvalidArgumentError, match="create_subgraph"):
        graph.add_node("if", "If", ["flag"], ["y"], {"then_branch": other})
    with pytest.raises(rt.InvalidArgumentError, match="create_subgraph"):
        graph.add_node("if", "If", ["flag"], ["y"], {"then_branch": graph})


# ------------------------------------------------------------------ checks, copies, files


def test_shapes_are_inferred():
    graph, _ = mlp()
    assert graph.get_tensor_info("h").shape is None
    graph.infer_shapes()
    hidden = graph.get_tensor_info("h")
    assert (hidden.dtype, hidden.shape, hidden.dim_names) == (DType.Float32, [None, 5], ["N", ""])
    weight = graph.get_tensor_info("w1")
    assert (weight.shape, weight.dtype, weight.has_initializer) == ([4, 5], DType.Float32, True)
    with pytest.raises(rt.NotFoundError, match="nothing"):
        graph.get_tensor_info("nothing")
    graph.set_tensor_info(rt.TensorInfo("r", DType.Float32, [8, 5]))
    assert graph.get_tensor_info("r").shape == [8, 5]


def test_validation_says_everything():
    graph, _ = mlp()
    assert graph.validate() == [] and graph.validate_all() == []
    graph.add_node("lost", "Relu", ["nowhere"], ["lost_out"])
    graph.add_node("lost2", "Relu", ["nowhere2"], ["lost2_out"])
    faults = graph.validate()
    assert len(faults) == 2 and "nowhere" in faults[0] and "nowhere2" in faults[1]
    graph.add_node("odd", "NoSuchOperator", ["x"], ["odd_out"])
    assert any("NoSuchOperator" in fault for fault in graph.validate_all())
    with pytest.raises(rt.ValidationError) as raised:
        rt.InferenceSession(graph)
    assert len(raised.value.faults) == 2


@pytest.mark.parametrize("copied", [lambda g: g.clone(), copy.copy, copy.deepcopy,
                                    lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_are_graphs_of_their_own(copied):
    graph, weights = mlp()
    graph.set_opset(17)
    other = copied(graph)
    assert str(other) == str(graph) and other.opsets == graph.opsets
    other.remove_node("act")
    other.name = "other"
    assert len(graph.nodes) == 3 and graph.name == "mlp"
    np.testing.assert_array_equal(other.initializer("w1").numpy(), weights["w1"])


def test_an_unfinished_graph_pickles_as_it_is():
    graph = Graph("unfinished")
    graph.add_node("n", "NoSuchOperator", ["nowhere"], ["z"], {"a": [1.5]}, domain="com.example")
    assert str(pickle.loads(pickle.dumps(graph))) == str(graph)


@pytest.mark.parametrize("extension", ["pfm", "onnx"])
def test_files_hold_what_was_written(tmp_path, extension):
    graph, weights = mlp()
    graph.set_opset(17)
    graph.set_metadata("author", "somebody")
    graph.find_node("fc1").attrs["alpha"] = 1.0
    path = tmp_path / f"graph.{extension}"
    graph.save(path)
    for read in (Graph.load(path), rt.load_model(str(path))):
        assert read.name == "mlp" and read.opsets[""] == 17 and read.metadata["author"] == "somebody"
        assert [str(n) for n in read.nodes] == [str(n) for n in graph.nodes]
        assert [(i.name, i.dtype, i.shape, i.dim_names) for i in read.inputs] == [
            (i.name, i.dtype, i.shape, i.dim_names) for i in graph.inputs]
        for name, value in weights.items():
            np.testing.assert_array_equal(read.initializer(name).numpy(), value)
    x = np.ones((1, 4), np.float32)
    np.testing.assert_allclose(rt.InferenceSession(path).run(None, {"x": x})[0], expected(x, weights), rtol=1e-5,
                               atol=1e-5)


def test_bodies_are_saved(tmp_path):
    conditional().save(tmp_path / "if.onnx")
    x = np.array([3, 4], np.float32)
    session = rt.InferenceSession(tmp_path / "if.onnx")
    np.testing.assert_array_equal(session.run(None, {"x": x, "flag": np.array(True)})[0], 2 * x)


def test_an_invalid_graph_and_an_unknown_format_are_not_saved(tmp_path):
    graph, _ = mlp()
    with pytest.raises(rt.UnsupportedFormatError):
        rt.save_model(graph, tmp_path / "graph.txt")
    graph.remove_node("act")
    with pytest.raises(rt.ValidationError, match="'r'"):
        graph.save(tmp_path / "graph.onnx")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(rt.ModelNotFoundError):
        Graph.load(tmp_path / "graph.onnx")


# ------------------------------------------------------------------ sessions


def test_a_session_shows_its_graph(digits):
    session = rt.InferenceSession(digits)
    graph = session.graph()
    assert [i.name for i in graph.inputs] == [i.name for i in session.get_inputs()]
    again = rt.InferenceSession(graph)
    feeds = {i.name: np.random.default_rng(3).random([d or 1 for d in i.shape], np.float32)
             for i in session.get_inputs()}
    np.testing.assert_array_equal(session.run(None, feeds)[0], again.run(None, feeds)[0])
    graph.remove_node(graph.nodes[0])
    assert len(session.graph().nodes) == len(graph.nodes) + 1


def test_initializers_of_a_session():
    graph, weights = mlp()
    session = rt.InferenceSession(graph)
    np.testing.assert_array_equal(session.get_initializer("w1"), weights["w1"])
    assert session.get_initializer("b1").shape == [5]
    with pytest.raises(rt.NotFoundError, match="nothing"):
        session.get_initializer("nothing")


def test_the_optimised_graph_of_a_session():
    graph, weights = mlp()
    graph.add_node("fold", "Add", ["b1", "b1"], ["b2"])
    graph.find_node("fc1").inputs = ["x", "w1", "b2"]
    graph.insert_after("x", "same", "Identity", outputs=["x2"])
    session = rt.InferenceSession(graph)
    assert len(session.graph().nodes) == 5
    optimised = session.graph(optimized=True)
    ops = [n.op for n in optimised.nodes]
    assert "Identity" not in ops and "Add" not in ops and optimised.validate_all() == []
    np.testing.assert_array_equal(session.get_initializer("b2", optimized=True), 2 * weights["b1"])
    with pytest.raises(rt.NotFoundError):
        session.get_initializer("b2")
    x = np.ones((2, 4), np.float32)
    np.testing.assert_allclose(rt.InferenceSession(optimised).run(None, {"x": x})[0], session.run(None, {"x": x})[0],
                               rtol=1e-5, atol=1e-5)
    options = rt.SessionOptions()
    options.optimization_level = rt.OptLevel.NONE
    assert len(rt.InferenceSession(graph, options).graph(optimized=True).nodes) == 5
    options.optimization_level = rt.OptLevel.BASIC
    options.skip_passes = ["ConstantFoldingPass"]
    options.extra_outputs = ["h"]
    kept = rt.InferenceSession(graph, options).graph(optimized=True)
    assert "Add" in [n.op for n in kept.nodes] and [o.name for o in kept.outputs] == ["y", "h"]


def test_a_session_of_a_graph_pickles_as_it_was_made():
    graph, weights = mlp()
    session = rt.InferenceSession(graph)
    graph.initializer_for_write("w1").numpy()[:] = 0
    graph.remove_node("act")
    x = np.ones((2, 4), np.float32)
    again = pickle.loads(pickle.dumps(session))
    np.testing.assert_array_equal(again.run(None, {"x": x})[0], session.run(None, {"x": x})[0])
    assert repr(session).startswith("InferenceSession('mlp': x: [N, 4]")


# ------------------------------------------------------------------ looks and threads


def test_a_person_can_read_it():
    graph, _ = mlp("ResNet")
    assert repr(graph) == "Graph('ResNet': 3 nodes, 3 initializers, x: [N, 4] float32 -> y: [?, 3] float32)"
    text = str(graph).splitlines()
    assert text[0] == 'Graph: "ResNet"' and "│   └── x: [N, 4] float32" in text
    assert "    ├── fc1: Gemm(x, w1, b1) -> h" in text and "│   ├── w1: [4, 5] float32" in text
    graph.find_node("fc1").name = "<b>"
    html = graph._repr_html_()
    assert "<td>&lt;b&gt;</td><td>Gemm</td>" in html and "<td>[N, 4]</td>" in html
    many = Graph()
    for i in range(300):
        many.add_node(f"n{i}", "Relu", ["x"], [f"y{i}"])
    assert "100 nodes more" in many._repr_html_()


def test_threads_wait_for_each_other():
    graph = Graph()
    body_owner = graph.add_node("if", "If", ["c"], ["o"], {"then_branch": graph.create_subgraph("b")})
    body = body_owner.attrs["then_branch"]
    graph.add_input("x", [1])
    body.add_node("first", "Relu", ["x"], ["first"])
    faults = []

    def work(k):
        try:
            for i in range(150):
                name = f"{k}_{i}"
                where = graph if k % 2 else body
                where.add_node(name, "Relu", ["x"], [name], attrs={"a": [i]})
                assert where.find_node(name).attrs["a"] == [i]
                graph.consumers("x")
                [n.name for n in where.nodes[-3:]]
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert len(graph.nodes) == 301 and len(body.nodes) == 301


def test_a_forked_child_goes_on_with_its_graphs():
    graph, weights = mlp()
    x = np.ones((1, 4), np.float32)
    rt.InferenceSession(graph).run(None, {"x": x})
    child = os.fork()
    if child == 0:
        done = 1
        try:
            rt.opt.optimize(graph)
            graph.add_node("more", "Neg", ["y"], ["z"])
            graph.add_output("z")
            y, z = rt.InferenceSession(graph).run(None, {"x": x})
            done = 0 if np.allclose(y, expected(x, weights), atol=1e-5) and (z == -y).all() else 2
        finally:
            os._exit(done)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(graph.nodes) == 3


def test_a_part_runs_alone():
    graph = rt.Graph("whole")
    graph.add_input("x", [None, 3], rt.DType.Float32)
    graph.add_initializer("w", np.arange(9, dtype=np.float32).reshape(3, 3))
    graph.add_node("product", "MatMul", ["x", "w"], ["m"])
    graph.add_node("relu", "Relu", ["m"], ["y"])
    graph.add_output("y", [None, 3], rt.DType.Float32)
    x = np.float32([[1, -2, 3]])
    (whole,) = rt.InferenceSession(graph).run(None, {"x": x})
    (m,) = rt.InferenceSession(graph.extract([], ["m"])).run(None, {"x": x})
    after = graph.extract(["m"], ["y"])
    np.testing.assert_array_equal(rt.InferenceSession(after).run(None, {"m": m})[0], whole)
    assert [i.name for i in after.inputs] == ["m"]
    with pytest.raises(rt.NotFoundError, match="'q'"):
        graph.extract(["q"], ["y"])
    with pytest.raises(rt.InvalidArgumentError, match="lists of names"):
        graph.extract("m", ["y"])

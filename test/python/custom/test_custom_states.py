# SPDX-License-Identifier: Apache-2.0
"""Operators with Python kernels: kernels made for each node, strings, and several operators of one name."""
import gc
import re
import weakref

import numpy as np
import pytest

import pyflame_rt
from conftest import FLOAT, INT64, STRING, port
from custom_models import custom_node, model_of, none_stay_registered, same, session_of
from pyflame_rt import DType, Tensor, custom
from pyflame_rt.custom import BackendType, CustomOpBuilder, CustomOpRegistry, OpNode, OpSchema

X = np.array([1, -2, 3], np.float32)
pytestmark = pytest.mark.usefixtures(none_stay_registered.__name__)
BOOL = 9


class Match:
    """Whether texts match the pattern of the node."""

    made = 0

    def __init__(self, node):
        Match.made += 1
        self.pattern = re.compile(node.attributes["pattern"])

    def __call__(self, inputs):
        return [np.array([bool(self.pattern.fullmatch(text)) for text in inputs[0].numpy()])]


def match_op():
    Match.made = 0
    return (CustomOpBuilder("Match").input("X", DType.String).output("Y", DType.Bool).attr_string("pattern", True)
            .node_kernel(Match).shape_inference(same).build())


# ------------------------------------------------------------------ kernels of nodes


def test_a_kernel_is_made_once_for_each_node_of_a_session():
    op = match_op()
    nodes = [custom_node("Match", ["x"], ["a"], {"pattern": "a+"}, "one"),
             custom_node("Match", ["x"], ["b"], {"pattern": "b*"}, "two")]
    made = model_of(nodes, [port("x", STRING, ["N"])], [port("a", BOOL, ["N"]), port("b", BOOL, ["N"])])
    session = pyflame_rt.InferenceSession(made)
    assert Match.made == 2 and op.supports_backend(BackendType.CPU)
    for texts in (["aa", "b", ""], ["ab"]):
        a, b = session.run(None, {"x": texts})
        assert a.tolist() == [bool(re.fullmatch("a+", text)) for text in texts]
        assert b.tolist() == [bool(re.fullmatch("b*", text)) for text in texts]
    assert Match.made == 2
    pyflame_rt.InferenceSession(made)
    assert Match.made == 4


def test_a_kernel_goes_with_its_session():
    kernels = []

    def maker(node):
        class Kernel:
            def __call__(self, inputs):
                return [inputs[0]]
        kernel = Kernel()
        kernels.append(weakref.ref(kernel))
        return kernel

    CustomOpBuilder("Kept").input("X").output("Y").node_kernel(maker).build()
    session = session_of("Kept")
    assert session.run(None, {"x": X})[0].tolist() == X.tolist()
    gc.collect()
    assert kernels[0]() is not None
    session.close()
    del session
    gc.collect()
    assert [kernel() for kernel in kernels] == [None]


def test_what_a_node_is_made_for():
    seen = []

    def maker(node):
        seen.append(node)
        return lambda inputs: [inputs[0]]

    (CustomOpBuilder("Look").version(2).input("X").input("left out", optional=True).input("words").output("Y")
     .attr_int("n", default_value=3).attr_float("f").node_kernel(maker).build())
    graph = pyflame_rt.Graph("g")
    graph.add_input("x", ["N"], DType.Float32)
    graph.add_initializer("words", np.array(["one", "two"], object))
    graph.add_output("y", ["N"], DType.Float32)
    graph.add_node("node_0", "Look", ["x", "", "words"], ["y"], domain="custom")
    graph.set_opset("custom", 5)
    session = pyflame_rt.InferenceSession(graph)
    assert session.run(None, {"x": X})[0].tolist() == X.tolist()
    (node,) = seen
    assert isinstance(node, OpNode) and (node.name, node.opset, node.attributes) == ("node_0", 5, {"n": 3})
    assert node.input_dtypes == [DType.Float32, None, DType.String] and node.output_dtypes == [DType.Float32]
    assert node.constants[:2] == [None, None] and node.constants[2].numpy().tolist() == ["one", "two"]


def test_what_a_maker_raises_is_the_error_of_the_session():
    match_op()
    ports = [port("x", STRING, ["N"])], [port("y", BOOL, ["N"])]
    with pytest.raises(pyflame_rt.BackendError, match="Match 'node_0': .*unterminated") as caught:
        session_of("Match", *ports, attributes={"pattern": "["})
    assert isinstance(caught.value.__cause__, re.error)
    CustomOpBuilder("Refused").input("X").output("Y").node_kernel(refuse).build()
    with pytest.raises(pyflame_rt.InputError, match="Refused 'node_0': no vocabulary"):
        session_of("Refused")
    CustomOpBuilder("Nothing").input("X").output("Y").node_kernel(lambda node: None).build()
    with pytest.raises(pyflame_rt.BackendError, match="Nothing 'node_0': what makes its kernel returned NoneType"):
        session_of("Nothing")


def refuse(node):
    raise pyflame_rt.InputError("no vocabulary")


def test_an_operator_with_a_maker_can_be_called_alone():
    op = match_op()
    assert op([np.array(["a", "b"], object)], {"pattern": "a"})[0].numpy().tolist() == [True, False]
    with pytest.raises(pyflame_rt.InputError, match="'pattern' is required"):
        op([np.array(["a"], object)])
    table = (CustomOpBuilder("Table").input("X").input("table").output("Y")
             .node_kernel(lambda node: lambda inputs: [node.constants[1].numpy()[inputs[0].numpy()]]).build())
    assert table([np.array([1, 0, 1]), np.array([5., 7.])])[0].numpy().tolist() == [7, 5, 7]


def test_what_cannot_make_a_kernel_is_refused():
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="its node kernel is 7, which cannot be called"):
        CustomOpBuilder("Odd").input("X").output("Y").node_kernel(7).build()


# ------------------------------------------------------------------ strings


@pytest.mark.parametrize("made", [
    lambda texts: np.array(texts, object), lambda texts: np.array(texts), lambda texts: texts,
    lambda texts: pyflame_rt.from_numpy(np.array(texts, object)), lambda texts: [one.encode() for one in texts],
], ids=["objects", "unicode", "list", "tensor", "bytes"])
@pytest.mark.parametrize("shape", [None, same], ids=["data-dependent", "with shapes"])
def test_texts_are_outputs(made, shape):
    builder = CustomOpBuilder("Upper").input("X", DType.String).output("Y").kernel(
        lambda inputs, attrs: [made([text.upper() for text in inputs[0].numpy()])])
    (builder.shape_inference(shape) if shape else builder).build()
    session = session_of("Upper", [port("x", STRING, ["N"])], [port("y", STRING, ["N"])])
    assert session.run(None, {"x": ["a", "", "déjà"]})[0].tolist() == ["A", "", "DÉJÀ"]
    assert session.run(None, {"x": ["b"]})[0].tolist() == ["B"]


def test_texts_of_any_number():
    (CustomOpBuilder("Words").input("X", DType.String).output("Y", DType.String)
     .kernel(lambda inputs, attrs: [np.array(" ".join(inputs[0].numpy()).split(), object)]).build())
    session = session_of("Words", [port("x", STRING, ["N"])], [port("y", STRING, ["M"])])
    assert session.run(None, {"x": ["a bc", "d"]})[0].tolist() == ["a", "bc", "d"]
    assert session.run(None, {"x": [" "]})[0].tolist() == []


@pytest.mark.parametrize("answer, words", [
    (X, "gave float32 for output 0, 'Y', which is string; return an array of str"),
    (np.array([1, "a"], object), "gave object for output 0"),
    (Tensor([2], DType.Int64), "gave int64 for output 0"),
], ids=["numbers", "mixed", "tensor"])
def test_what_are_no_texts(answer, words):
    CustomOpBuilder("Wrong").input("X").output("Y", DType.String).kernel(lambda inputs, attrs: [answer]).build()
    with pytest.raises(pyflame_rt.DTypeMismatchError, match="Wrong 'node_0': its kernel " + words):
        session_of("Wrong", outputs=[port("y", STRING, ["N"])]).run(None, {"x": X})


# ------------------------------------------------------------------ several operators of one name


def version_of(op, opset):
    made = model_of([custom_node(op, ["x"], ["y"])], ["x"], ["y"], version=opset)
    return pyflame_rt.InferenceSession(made).run(None, {"x": X})[0].tolist()


def gives(value):
    return lambda inputs, attrs: [np.array([value], np.float32)]


def test_versions_stand_side_by_side():
    first = CustomOpBuilder("Versions").version(1, 2).input("X").output("Y").kernel(gives(1)).build()
    second = custom.register_custom_op("Versions", input_names=["X"], output_names=["Y"], kernel_fn=gives(2), version=3)
    assert [version_of("Versions", opset) for opset in (1, 2, 3, 7)] == [[1], [1], [2], [2]]
    registry = CustomOpRegistry.instance()
    assert (first.version, first.until, second.version, second.until) == (1, 2, 3, 0)
    assert registry.get("Versions") is second and registry.list() == ["custom::Versions"] and registry.size() == 2
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="taken by operator 'custom.Versions'.*opsets 1 to 2"):
        CustomOpBuilder("Versions").version(2, 2).input("X").output("Y").kernel(gives(3)).build()
    registry.unregister("Versions")
    assert registry.list() == [] and registry.size() == 0
    with pytest.raises(pyflame_rt.UnsupportedOperatorError, match="Versions"):
        version_of("Versions", 1)


@pytest.mark.parametrize("until", [-1, 2, True, 1.5])
def test_versions_that_make_no_sense(until):
    faults = OpSchema("Odd", version=3, outputs=[custom.OpPort("Y")], until=until).validate()
    assert len(faults) == 1 and "from version 3 to" in faults[0]


def test_types_are_chosen_by_the_graph():
    for dtype, value in ((DType.Float32, 1), (DType.Int64, 2), (DType.String, 3)):
        CustomOpBuilder("Typed").input("X", dtype).output("Y", DType.Float32).kernel(gives(value)).build()
    for given, fed, value in ((FLOAT, X, 1), (INT64, np.array([1]), 2), (STRING, ["a"], 3)):
        session = session_of("Typed", [port("x", given, ["N"])])
        assert session.run(None, {"x": fed})[0].tolist() == [value]
    with pytest.raises(pyflame_rt.DTypeMismatchError, match="Typed 'node_0': .*'float64 -> float32'; there are "
                       "'float32 -> float32', 'int64 -> float32', 'string -> float32'"):
        session_of("Typed", [port("x", 11, ["N"])])
    rows = [row.types for row in pyflame_rt.Environment.instance().custom_operators() if row.op == "Typed"]
    assert rows == ["float32 -> float32", "int64 -> float32", "string -> float32"]


def test_an_operator_for_all_other_types():
    CustomOpBuilder("Most").input("X").output("Y", DType.Float32).kernel(gives(1)).build()
    CustomOpBuilder("Most").input("X", DType.Int64).output("Y", DType.Float32).kernel(gives(2)).build()
    assert session_of("Most").run(None, {"x": X})[0].tolist() == [1]
    assert session_of("Most", [port("x", INT64, ["N"])]).run(None, {"x": np.array([1])})[0].tolist() == [2]
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="taken by operator 'custom.Most'"):
        CustomOpBuilder("Most").input("X").output("Y", DType.Float32).kernel(gives(3)).build()

# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import pyflame_rt
from conftest import FLOAT, INT64, STRING, port
from custom_models import build, custom_node, doubled, model_of, none_stay_registered, same, session_of
from pyflame_rt import DType, Tensor, custom
from pyflame_rt.custom import BackendType, CustomOpBuilder, CustomOpRegistry

X = np.array([1, -2, 3], np.float32)
pytestmark = pytest.mark.usefixtures(none_stay_registered.__name__)


# ------------------------------------------------------------------ what a kernel gets and gives


@pytest.mark.parametrize("shape", [None, same], ids=["data-dependent", "with shapes"])
def test_inputs_lie_in_the_memory_that_was_fed(shape):
    seen = []

    def kernel(inputs, attrs):
        x = inputs[0]
        seen.append((type(x), x.shape, x.dtype, x.numpy().ctypes.data, x.numpy().flags.writeable, attrs))
        return [x]

    build("Look", kernel, shape=shape)
    out = session_of("Look").run(None, {"x": X})[0]
    assert seen == [(Tensor, [3], DType.Float32, X.ctypes.data, False, {})]
    assert out.tolist() == X.tolist() and out.flags.writeable and not np.shares_memory(out, X)


def test_inputs_cannot_be_written():
    def kernel(inputs, attrs):
        x = inputs[0].numpy()
        x += 1
        return [x]

    build("Write", kernel)
    with pytest.raises(pyflame_rt.BackendError, match="read-only") as caught:
        session_of("Write").run(None, {"x": X})
    assert isinstance(caught.value.__cause__, ValueError)
    assert X.tolist() == [1, -2, 3]


@pytest.mark.parametrize("made", [
    lambda x: x * 2, lambda x: pyflame_rt.from_numpy(x * 2), lambda x: np.repeat(x * 2, 2)[::2],
    lambda x: (x * 2).astype(">f4"), lambda x: np.ma.array(x * 2),
], ids=["array", "tensor", "strided", "big-endian", "masked"])
@pytest.mark.parametrize("shape", [None, same], ids=["data-dependent", "with shapes"])
def test_results_of_any_layout(made, shape):
    build("Double", lambda inputs, attrs: (made(inputs[0].numpy()),), shape=shape)
    assert session_of("Double").run(None, {"x": X})[0].tolist() == [2, -4, 6]


def test_attributes_of_every_kind():
    seen = []

    def kernel(inputs, attrs):
        seen.append(attrs)
        return [inputs[0]]

    (CustomOpBuilder("Attributes").input("X").output("Y").attr_float("f").attr_int("i").attr_string("s")
     .attr_floats("fs").attr_ints("is").attr_strings("ss").attr_tensor("t").attr_int("absent")
     .attr_int("filled", default_value=4).attr_ints("list", default_value=(1, 2)).kernel(kernel).build())
    given = {"f": 0.5, "i": -3, "s": "déjà", "fs": [1.5, 2.5], "is": [1, 2, 3], "ss": ["a", ""],
             "t": np.array([[1, 2]], np.int64), "undeclared": 7, "blob": b"\xff\x00"}
    session_of("Attributes", attributes=given).run(None, {"x": X})
    attrs = seen[0]
    tensor = attrs.pop("t")
    assert (type(tensor), tensor.numpy().tolist(), tensor.dtype) == (Tensor, [[1, 2]], DType.Int64)
    del given["t"]
    assert attrs == {**given, "filled": 4, "list": [1, 2]}


def test_attributes_are_checked_when_the_session_is_made():
    CustomOpBuilder("Scaled").input("X").output("Y").attr_float("scale", required=True).kernel(doubled).build()
    session_of("Scaled", attributes={"scale": 2.0})
    with pytest.raises(pyflame_rt.InputError, match="Scaled 'node_0': attribute 'scale' is required, and absent"):
        session_of("Scaled")
    with pytest.raises(pyflame_rt.InputError, match="'node_0': attribute 'scale' is of type int, expected float"):
        session_of("Scaled", attributes={"scale": 2})


def test_element_types_are_checked_when_the_session_is_made():
    CustomOpBuilder("Floats").input("X", DType.Float32).output("Y").kernel(doubled).build()
    with pytest.raises(pyflame_rt.DTypeMismatchError,
                       match="Floats 'node_0': no operator of that name takes the types 'int64 -> int64'; there is "
                       "'float32 -> any'"):
        session_of("Floats", [port("x", INT64, ["N"])], [port("y", INT64, ["N"])])


def test_strings_are_inputs():
    def lengths(inputs, attrs):
        return [np.array([len(text) for text in inputs[0].numpy()], np.int64)]

    CustomOpBuilder("Lengths").input("X", DType.String).output("Y", DType.Int64).kernel(lengths).build()
    session = session_of("Lengths", [port("x", STRING, ["N"])], [port("y", INT64, ["N"])])
    assert session.run(None, {"x": ["a", "", "déjà"]})[0].tolist() == [1, 0, 4]


def test_inputs_that_a_node_leaves_out():
    def kernel(inputs, attrs):
        assert len(inputs) == 4
        given = [one.numpy() for one in inputs if one is not None]
        return [sum(given) + sum(10 ** i for i, one in enumerate(inputs) if one is None)]

    shapes = []

    def shape(input_shapes):
        shapes.append(input_shapes)
        return [input_shapes[0]]

    op = (CustomOpBuilder("Sum").input("A").input("B", optional=True).input("C").input("D", optional=True).output("Y")
          .kernel(kernel).shape_inference(shape).build())
    made = model_of([custom_node("Sum", ["a", "", "c"], ["y"])], ["a", "c"], ["y"])
    session = pyflame_rt.InferenceSession(made)
    assert session.run(None, {"a": X, "c": X})[0].tolist() == (2 * X + 1010).tolist()
    assert [[3], None, [3], None] in shapes
    assert op([X, None, X])[0].numpy().tolist() == (2 * X + 1010).tolist()
    with pytest.raises(pyflame_rt.InputError, match="Sum 'node_0': input 2, 'C', is required, and absent"):
        pyflame_rt.InferenceSession(model_of([custom_node("Sum", ["a", "b", ""], ["y"])], ["a", "b"], ["y"]))
    with pytest.raises(pyflame_rt.InputError, match="input 2, 'C', is required, and absent"):
        session_of("Sum", ["a", "b"])
    with pytest.raises(pyflame_rt.PyFlameRTError, match="Sum 'node_0'.*5 inputs"):
        session_of("Sum", ["a", "b", "c", "d", "e"])


def test_several_outputs_of_which_some_are_wanted():
    def kernel(inputs, attrs):
        x = inputs[0].numpy()
        return [x.sum(), np.array(x > 0), x[x > 0]]

    (CustomOpBuilder("Parts").input("X").output("Sum").output("Mask", DType.Bool).output("Positive").kernel(kernel)
     .build())
    made = model_of([custom_node("Parts", ["x"], ["s", "", "p"])], ["x"], [port("s", FLOAT, []), "p"])
    total, positive = pyflame_rt.InferenceSession(made).run(None, {"x": X})
    assert (total, total.shape, positive.tolist()) == (2, (), [1, 3])
    first = session_of("Parts", outputs=[port("s", FLOAT, [])])
    assert first.run(None, {"x": X})[0] == 2


def test_empty_tensors_and_scalars():
    build("Double", lambda inputs, attrs: [inputs[0].numpy() + inputs[0].numpy()], shape=same)
    assert session_of("Double").run(None, {"x": np.empty(0, np.float32)})[0].shape == (0,)
    scalar = session_of("Double", [port("x", FLOAT, [])], [port("y", FLOAT, [])])
    assert scalar.run(None, {"x": 1.5})[0] == 3


def test_types_that_numpy_does_not_have():
    build("Keep", lambda inputs, attrs: [inputs[0].clone()], shape=same)
    seen = Tensor([2], DType.BFloat16)
    seen.numpy()[:] = [0x3f80, 0x4000]
    session = session_of("Keep", [port("x", 16, ["N"])], [port("y", 16, ["N"])])
    assert session.run(None, {"x": seen})[0].tolist() == [0x3f80, 0x4000]


# ------------------------------------------------------------------ shapes


def test_shape_inference_is_asked_with_none_for_what_is_not_known():
    asked = []

    def shape(input_shapes):
        asked.append(input_shapes)
        return [[2, input_shapes[0][0]]]

    build("Twice", lambda inputs, attrs: [np.stack([inputs[0].numpy()] * 2)], shape=shape)
    session = session_of("Twice", outputs=[port("y", FLOAT, ["A", "B"])])
    assert session.get_outputs()[0].shape == [2, None]
    assert session.run(None, {"x": X})[0].tolist() == [X.tolist()] * 2
    assert [[None]] in asked and [[3]] in asked


def test_without_shape_inference_the_kernel_decides():
    build("Positive", lambda inputs, attrs: [inputs[0].numpy()[inputs[0].numpy() > 0]])
    session = session_of("Positive")
    assert session.run(None, {"x": X})[0].tolist() == [1, 3]
    assert session.run(None, {"x": -X})[0].tolist() == [2]


@pytest.mark.parametrize("answer, words", [
    ([], "its shape inference returned 0 shapes; return a list of 1"),
    (None, "its shape inference returned NoneType; return a list of 1"),
    ([[1], [1]], "its shape inference returned 2 shapes"),
    ([3], "returned 3 as the shape of output 'Y'; return a list of ints"),
    ([["N"]], "a dimension is an int or None"),
    ([[-1]], "a dimension is None or not below 0"),
    ([[None]], "and so leaves dimensions open, .* register it without shape_inference"),
])
def test_shape_inferences_that_answer_wrongly(answer, words):
    build("Wrong", doubled, shape=lambda shapes: answer)
    with pytest.raises(pyflame_rt.PyFlameRTError, match=f"Wrong 'node_0': .*{words}") as caught:
        session_of("Wrong", [port("x", FLOAT, [3])])
    assert caught.value.__cause__ is None


def test_shape_inferences_that_raise():
    def shape(input_shapes):
        raise pyflame_rt.ShapeMismatchError("X must be a matrix")

    build("Raise", doubled, shape=shape)
    with pytest.raises(pyflame_rt.ShapeMismatchError, match="Raise 'node_0': X must be a matrix") as caught:
        session_of("Raise")
    assert str(caught.value.__cause__) == "X must be a matrix"


# ------------------------------------------------------------------ kernels that fail


@pytest.mark.parametrize("answer, error, words", [
    (lambda x: [], pyflame_rt.BackendError, "returned 0 tensors, output 0, 'Y', is not among them"),
    (lambda x: [None], pyflame_rt.BackendError, "returned 1 tensors, output 0, 'Y', is not among them"),
    (lambda x: [x, x], pyflame_rt.BackendError, "returned 2 tensors, and it has 1 outputs"),
    (lambda x: x * 2, pyflame_rt.BackendError, "returned ndarray; return a list with a tensor for each output"),
    (lambda x: None, pyflame_rt.BackendError, "returned NoneType; return a list"),
    (lambda x: [x.astype(np.float64)], pyflame_rt.DTypeMismatchError,
     r"gave float64 for output 0, 'Y', which is float32; return it with \.astype\(numpy.float32\)"),
    (lambda x: [np.array(["a", "b", "c"])], pyflame_rt.BackendError, "output 0, 'Y', as ndarray of <U1"),
    (lambda x: [object()], pyflame_rt.BackendError, "output 0, 'Y', as object of object"),
    (lambda x: [Tensor([3], DType.String)], pyflame_rt.BackendError, "of numbers or bools"),
])
def test_results_that_are_wrong(answer, error, words):
    build("Wrong", lambda inputs, attrs: answer(inputs[0].numpy()), shape=same)
    session = session_of("Wrong")
    with pytest.raises(error, match=f"Wrong 'node_0': its kernel .*{words}") as caught:
        session.run(None, {"x": X})
    assert caught.value.__cause__ is None


def test_results_of_another_shape_than_was_said():
    build("Wrong", lambda inputs, attrs: [inputs[0].numpy()[:2]], shape=same)
    with pytest.raises(pyflame_rt.ShapeMismatchError, match=r"Wrong 'node_0'.*output 0 \('y'\).*\[2\].*\[3\]"):
        session_of("Wrong").run(None, {"x": X})


def test_tensors_that_lie_about_themselves():
    class Liar(Tensor):
        @property
        def shape(self):
            return [1]

    build("Wrong", lambda inputs, attrs: [Liar([1000])])
    with pytest.raises(pyflame_rt.BackendError, match=r"its kernel gave 4000 bytes as float32 \[1\] for output 0, 'Y'"):
        session_of("Wrong").run(None, {"x": X})


class Odd(Exception):
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize("raised, error, words", [
    (ZeroDivisionError("by nought"), pyflame_rt.BackendError, "ZeroDivisionError: by nought"),
    (KeyError("scale"), pyflame_rt.BackendError, "KeyError: 'scale'"),
    (pyflame_rt.InputError("X must be sorted"), pyflame_rt.InputError, "X must be sorted"),
    (MemoryError(), pyflame_rt.OutOfMemoryError, "MemoryError"),
    (NotImplementedError("complex"), pyflame_rt.UnsupportedError, "NotImplementedError: complex"),
    (Odd(), pyflame_rt.BackendError, "Odd: "),
], ids=lambda value: type(value).__name__)
def test_what_a_kernel_raises_is_the_cause(raised, error, words):
    wrong = [True]

    def kernel(inputs, attrs):
        if wrong:
            raise raised
        return [inputs[0]]

    build("Raise", kernel)
    session = session_of("Raise")
    with pytest.raises(error, match=f"Raise 'node_0': {words}") as caught:
        session.run(None, {"x": X})
    assert caught.value.__cause__ is raised
    wrong.clear()
    assert session.run(None, {"x": X})[0].tolist() == X.tolist()


def test_a_traceback_does_not_hold_what_has_gone():
    def kernel(inputs, attrs):
        x = inputs[0].numpy()
        return [x / {}["scale"]]

    build("Raise", kernel)
    with pytest.raises(pyflame_rt.BackendError) as caught:
        session_of("Raise").run(None, {"x": X})
    last = caught.value.__cause__.__traceback__
    while last.tb_next:
        last = last.tb_next
    assert last.tb_frame.f_code.co_name == "kernel" and last.tb_frame.f_locals == {}


def test_control_c_in_a_kernel_stays_one():
    def kernel(inputs, attrs):
        raise KeyboardInterrupt

    build("Interrupted", kernel)
    with pytest.raises(KeyboardInterrupt):
        session_of("Interrupted").run(None, {"x": X})


def test_kernels_may_not_keep_their_inputs():
    kept = []

    def kernel(inputs, attrs):
        kept.append(inputs[1].numpy()[1:])
        return [inputs[0]]

    build("Keep", kernel, ["A", "B"])
    words = r"Keep 'node_0': its kernel keeps input 1 beyond .*inputs\[1\]\.clone\(\)"
    with pytest.raises(pyflame_rt.BackendError, match=words):
        session_of("Keep", ["a", "b"]).run(None, {"a": X, "b": X.copy()})


def test_cycles_are_not_kept():
    def kernel(inputs, attrs):
        cycle = [inputs[0].numpy()]
        cycle.append(cycle)
        return [inputs[0]]

    build("Cycle", kernel)
    assert session_of("Cycle").run(None, {"x": X})[0].tolist() == X.tolist()


# ------------------------------------------------------------------ building and the registry


def test_an_operator_can_be_called_alone():
    op = (CustomOpBuilder("Scaled").input("X", DType.Float32).output("Y").attr_float("scale", required=True)
          .attr_int("times", default_value=2)
          .kernel(lambda inputs, attrs: [inputs[0].numpy() * attrs["scale"] * attrs["times"]]).build())
    out = op([X], {"scale": 3.0})
    assert type(out[0]) is Tensor and out[0].numpy().tolist() == (6 * X).tolist()
    with pytest.raises(pyflame_rt.InputError, match="custom::Scaled: attribute 'scale' is required"):
        op([X])
    with pytest.raises(pyflame_rt.InputError, match="custom::Scaled takes 1 inputs, got 2"):
        op([X, X], {"scale": 1.0})
    with pytest.raises(pyflame_rt.DTypeMismatchError, match="input 0, 'X', is int64, expected float32"):
        op([np.array([1])], {"scale": 1.0})


def test_an_operator_describes_itself():
    op = (CustomOpBuilder("Fused").domain("acme").version(3).doc("what it does").input("X", np.float32)
          .input("bias", optional=True).output("Y", "float16").attr_float("alpha").attr_ints("axes", required=True)
          .kernel(doubled, BackendType.CPU).build())
    assert (op.full_name(), op.name, op.domain, op.version, op.doc) == ("acme::Fused", "Fused", "acme", 3,
                                                                       "what it does")
    assert op.inputs == [custom.OpPort("X", DType.Float32), custom.OpPort("bias", None, optional=True)]
    assert op.outputs == [custom.OpPort("Y", DType.Float16)]
    assert [(a.name, a.type, a.required) for a in op.attributes] == [("alpha", "float", False), ("axes", "ints", True)]
    assert repr(op) == ("CustomOp(acme::Fused: X: float32, bias?, alpha: float, axes: ints (required) -> "
                        "Y: float16)")


def test_the_registry():
    registry = CustomOpRegistry.instance()
    assert registry is CustomOpRegistry.instance() and registry.list() == []
    op = build("B", doubled)
    other = CustomOpBuilder("A").domain("acme").output("Y").kernel(doubled).build()
    assert registry.list() == ["acme::A", "custom::B"]
    assert registry.get("B") is registry.get("custom::B") is op and registry.get("A") is other
    assert registry.has("acme::A") and not registry.has("custom::A") and registry.get("C") is None
    registry.unregister("acme::A")
    assert registry.list() == ["custom::B"]
    with pytest.raises(pyflame_rt.NotFoundError, match="no custom operator 'A'; there are 'custom::B'"):
        registry.unregister("A")


def test_a_name_can_be_had_again():
    build("Again", doubled)
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="taken by operator 'custom.Again'"):
        build("Again", doubled)
    CustomOpRegistry.instance().unregister("Again")
    build("Again", lambda inputs, attrs: [inputs[0].numpy() * 5])
    assert session_of("Again").run(None, {"x": X})[0].tolist() == (5 * X).tolist()


@pytest.mark.parametrize("builder, words", [
    (lambda: CustomOpBuilder("").output("Y").kernel(doubled), "the name is not empty"),
    (lambda: CustomOpBuilder("NoKernel").output("Y"), "its kernel is None"),
    (lambda: CustomOpBuilder("NoOutput").kernel(doubled), "it has no output"),
    (lambda: CustomOpBuilder("Text").output("Y").kernel("doubled"), "its kernel is 'doubled'"),
    (lambda: CustomOpBuilder("Old").version(0).output("Y").kernel(doubled), "its version is 0"),
    (lambda: CustomOpBuilder("Twice").input("X").input("X").output("Y").kernel(doubled), "two of its inputs"),
    (lambda: CustomOpBuilder("Both").output("Y").attr_int("n", True, 1).kernel(doubled), "required and has a default"),
    (lambda: CustomOpBuilder("Relu").domain("").output("Y").kernel(doubled), "built-in"),
    (lambda: CustomOpBuilder("Where").output("Y").kernel(doubled, "wse"), "BackendType.CPU"),
])
def test_what_cannot_be_built(builder, words):
    with pytest.raises(pyflame_rt.InvalidArgumentError, match=words):
        builder().build()
    assert CustomOpRegistry.instance().list() == []


def test_a_builder_goes_on_after_build():
    builder = CustomOpBuilder("One").output("Y").kernel(doubled)
    one = builder.build()
    builder.input("X")
    assert one.inputs == []


def test_an_operator_is_known_from_its_version_on():
    CustomOpBuilder("New").version(2).input("X").output("Y").kernel(doubled).build()
    nodes = [custom_node("New", ["x"], ["y"])]
    assert pyflame_rt.InferenceSession(model_of(nodes, ["x"], ["y"], version=2)).run(None, {"x": X})[0][0] == 2
    with pytest.raises(pyflame_rt.UnsupportedOperatorError, match="New"):
        pyflame_rt.InferenceSession(model_of(nodes, ["x"], ["y"], version=1))

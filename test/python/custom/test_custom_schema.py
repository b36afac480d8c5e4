# SPDX-License-Identifier: Apache-2.0
"""Operators with Python kernels: schemas, the registry, inference of shapes and types, variadic inputs, gradients."""
import numpy as np
import pytest

import pyflame_rt
from conftest import FLOAT, INT64, port
from custom_models import build, custom_node, doubled, model_of, none_stay_registered, same, session_of
from pyflame_rt import DType, Tensor
from pyflame_rt.custom import BackendType, CustomOpBuilder, CustomOpRegistry, OpAttribute, OpPort, OpSchema

X = np.array([1, -2, 3], np.float32)
pytestmark = pytest.mark.usefixtures(none_stay_registered.__name__)


def total(inputs, attrs):
    return [sum(one.numpy() for one in inputs)]


# ------------------------------------------------------------------ schemas and the registry


def scaled_schema():
    return OpSchema("Scaled", doc="scales", inputs=[OpPort("X", DType.Float32)], outputs=[OpPort("Y")],
                    attributes=[OpAttribute("scale", "float", default_value=2.0)])


def test_an_operator_is_registered_from_a_schema():
    registry, schema = CustomOpRegistry.instance(), scaled_schema()
    op = registry.register_op(schema, lambda inputs, attrs: [inputs[0].numpy() * attrs["scale"]])
    assert registry.size() == 1 and registry.list() == ["custom::Scaled"] and registry.get("Scaled") is op
    assert op.schema == schema and (op.doc, op.version, op.domain) == ("scales", 1, "custom")
    assert session_of("Scaled", attributes={"scale": 3.0}).run(None, {"x": X})[0].tolist() == (3 * X).tolist()
    # Changes to the caller's schema, or to a copy, do not count afterwards.
    schema.inputs.append(OpPort("Z"))
    op.schema.outputs[0].name = "other"
    op.inputs.clear()
    assert len(op.inputs) == 1 and op.outputs[0].name == "Y"


def test_a_schema_of_another_goes_on_to_a_new_operator():
    CustomOpRegistry.instance().register_op(scaled_schema(), doubled)
    schema = CustomOpRegistry.instance().get("Scaled").schema
    schema.name = "Other"
    CustomOpRegistry.instance().register_op(schema, doubled)
    assert CustomOpRegistry.instance().list() == ["custom::Other", "custom::Scaled"]


def test_an_operator_without_a_kernel_waits_for_one():
    op = CustomOpRegistry.instance().register_op(scaled_schema())
    session = session_of("Scaled")
    assert op.get_supported_backends() == [] and not op.supports_backend(BackendType.CPU)
    for call in (lambda: op.execute([X]), lambda: session.run(None, {"x": X})):
        with pytest.raises(pyflame_rt.UnsupportedOperatorError, match="has no kernel; give it one with op.set_kernel"):
            call()
    op.set_kernel(doubled)
    assert op.supports_backend(BackendType.CPU) and not op.supports_backend(BackendType.WSE)
    assert session.run(None, {"x": X})[0].tolist() == (2 * X).tolist()
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="no kernel runs on <BackendType.CUDA.*BackendType.CPU"):
        op.set_kernel(doubled, BackendType.CUDA)


@pytest.mark.parametrize("change, words", [
    (lambda s: s.attributes.append(OpAttribute("a", "complex")), "of type 'complex'; there are float, int, string"),
    (lambda s: s.inputs.insert(0, OpPort("rest", variadic=True)), "'rest' is variadic and not the last"),
    (lambda s: s.outputs.append(OpPort("Z", optional=True)), "output 'Z' is variadic or optional"),
    (lambda s: s.inputs.append(OpPort("X")), "two of its inputs are called 'X'"),
    (lambda s: s.outputs.clear(), "it has no output"),
], ids=["attribute", "variadic", "optional output", "twice", "no output"])
def test_what_is_wrong_with_a_schema_is_said(change, words):
    schema = scaled_schema()
    change(schema)
    assert len(schema.validate()) == 1 and words in schema.validate()[0]
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="'Scaled'.*" + words):
        CustomOpRegistry.instance().register_op(schema, doubled)
    assert CustomOpRegistry.instance().size() == 0


@pytest.mark.parametrize("what", ["shape_inference", "type_inference", "gradient"])
def test_what_cannot_be_called_is_refused(what):
    builder = CustomOpBuilder("Odd").input("X").output("Y").kernel(doubled)
    with pytest.raises(pyflame_rt.InvalidArgumentError, match=what.replace("_", " ") + " is 7, which cannot be called"):
        getattr(builder, what)(7).build()


def test_the_registry_is_cleared():
    registry = CustomOpRegistry.instance()
    for name in ("A", "B", "C"):
        build(name, doubled)
    assert registry.size() == 3
    registry.unregister_op("B")
    assert registry.list() == ["custom::A", "custom::C"]
    registry.clear()
    assert registry.size() == 0 and registry.list() == [] and not registry.has("A")
    with pytest.raises(pyflame_rt.UnsupportedOperatorError, match=r"custom\b.*\bA\b"):
        session_of("A")
    registry.clear()


# ------------------------------------------------------------------ inference


def test_shapes_are_inferred_without_a_session():
    def stacked(shapes):
        return [[len(shapes)] + shapes[0]]
    op = build("Stack", total, ("A", "B"), shape=stacked)
    assert op.infer_output_shapes([[3, None], [3, 4]]) == [[2, 3, None]]
    assert build("Late", doubled).infer_output_shapes([[3]]) == [None]
    wrong = build("Wrong", doubled, shape=lambda shapes: [[None]])
    with pytest.raises(pyflame_rt.BackendError, match="custom::Wrong: .*leaves dimensions open"):
        wrong.infer_output_shapes([[3]])


def test_types_are_inferred_without_a_session():
    op = CustomOpBuilder("Types").input("X").output("Same").output("Mask", DType.Bool).kernel(doubled).build()
    assert op.infer_output_dtypes([DType.Float16]) == [DType.Float16, DType.Bool]
    assert op.infer_output_dtypes(["int64"]) == [DType.Int64, DType.Bool]
    assert op.infer_output_dtypes([None]) == [None, DType.Bool]
    strict = CustomOpBuilder("Strict").input("X", DType.Float32).output("Y").kernel(doubled).build()
    with pytest.raises(pyflame_rt.DTypeMismatchError, match="custom::Strict: input 0, 'X', is int8, expected float32"):
        strict.infer_output_dtypes([np.int8])


@pytest.mark.parametrize("shape", [None, same], ids=["data-dependent", "with shapes"])
def test_a_type_inference_decides_in_a_session(shape):
    wider, asked = {DType.Float32: DType.Float64, DType.Int32: DType.Int64}, []

    def types(dtypes):
        asked.append(dtypes)
        return [wider.get(dtypes[0])]

    def widen(inputs, attrs):
        x = inputs[0].numpy()
        return [x.astype({"float32": np.float64, "int32": np.int64}[x.dtype.name])]

    builder = CustomOpBuilder("Widen").input("X").output("Y").kernel(widen).type_inference(types)
    if shape:
        builder.shape_inference(shape)
    op = builder.build()
    assert op.infer_output_dtypes([DType.Int32]) == [DType.Int64]
    for given, dtype in ((1, np.float64), (6, np.int64)):
        session = session_of("Widen", [port("x", given, ["N"])], [port("y", 0, ["N"])])
        out = session.run(None, {"x": X.astype(np.float32 if given == 1 else np.int32)})[0]
        assert out.dtype == dtype and out.tolist() == [1, -2, 3]
    assert [DType.Float32] in asked and [DType.Int32] in asked


@pytest.mark.parametrize("answer, error, words", [
    ([DType.Bool], pyflame_rt.DTypeMismatchError, "returned bool for output 'Y', which is float32"),
    ([], pyflame_rt.BackendError, r"returned \[\]; return a list of 1"),
    (None, pyflame_rt.BackendError, "returned None; return a list of 1"),
])
def test_a_type_inference_that_contradicts_is_refused(answer, error, words):
    op = (CustomOpBuilder("Odd").input("X").output("Y", DType.Float32).kernel(doubled)
          .type_inference(lambda dtypes: answer).build())
    for call in (lambda: op.infer_output_dtypes([DType.Float32]), lambda: session_of("Odd")):
        with pytest.raises(error, match=words):
            call()


# ------------------------------------------------------------------ variadic inputs


@pytest.mark.parametrize("shape", [None, same], ids=["data-dependent", "with shapes"])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_variadic_input_takes_any_number(shape, count):
    seen = []

    def kernel(inputs, attrs):
        seen.append(len(inputs))
        return total(inputs, attrs)

    builder = CustomOpBuilder("Total").input("first").variadic_input("rest", DType.Float32).output("Y").kernel(kernel)
    op = (builder.shape_inference(shape) if shape else builder).build()
    assert "rest...: float32" in repr(op)
    names = [f"x{i}" for i in range(count + 1)]
    out = session_of("Total", names).run(None, {name: X for name in names})[0]
    assert out.tolist() == op.execute([X] * (count + 1))[0].numpy().tolist() == ((count + 1) * X).tolist()
    assert seen == [count + 1] * 2


def test_a_variadic_input_is_there_at_least_once_unless_it_is_optional():
    op = CustomOpBuilder("Some").input("first").variadic_input("rest").output("Y").kernel(total).build()
    with pytest.raises(pyflame_rt.InputError, match="takes 2 or more inputs, got 1"):
        op([X])
    with pytest.raises(pyflame_rt.PyFlameRTError, match="Some"):
        session_of("Some", ["x"])
    any_number = (CustomOpBuilder("Any").input("first").variadic_input("rest", optional=True).output("Y").kernel(total)
                  .build())
    assert any_number([X])[0].numpy().tolist() == X.tolist()
    assert session_of("Any", ["x"]).run(None, {"x": X})[0].tolist() == X.tolist()


def test_each_of_a_variadic_input_has_its_type():
    op = CustomOpBuilder("Floats").variadic_input("all", DType.Float32).output("Y").kernel(total).build()
    with pytest.raises(pyflame_rt.DTypeMismatchError, match="input 2, 'all', is int64, expected float32"):
        op([X, X, X.astype(np.int64)])
    with pytest.raises(pyflame_rt.DTypeMismatchError, match="'float32, int64 -> float32'; there is 'float32, ... -> any'"):
        session_of("Floats", [port("x", FLOAT, ["N"]), port("y", INT64, ["N"])], ["z"])


# ------------------------------------------------------------------ gradients


def product_op():
    def gradient(inputs, grad_outputs):
        a, b, out = inputs[0].numpy(), inputs[1].numpy(), grad_outputs[0].numpy()
        return [b * out, pyflame_rt.from_numpy(a * out)]
    return (CustomOpBuilder("Product").input("A").input("B").output("Y").gradient(gradient)
            .kernel(lambda inputs, attrs: [inputs[0].numpy() * inputs[1].numpy()]).build())


def test_a_gradient_agrees_with_differences():
    op, rng = product_op(), np.random.default_rng(7)
    a, b, weights = (rng.standard_normal(5) for _ in range(3))
    grads = op.gradient([a, b], [weights])
    assert all(type(one) is Tensor for one in grads)
    step = 1e-6
    for which in (0, 1):
        for i in range(5):
            moved = [a.copy(), b.copy()]
            moved[which][i] += step
            loss = [float((op(given)[0].numpy() * weights).sum()) for given in (moved, [a, b])]
            assert grads[which].numpy()[i] == pytest.approx((loss[0] - loss[1]) / step, abs=1e-5)


def test_inputs_without_a_gradient():
    op = (CustomOpBuilder("Pick").input("X").input("which").output("Y").kernel(doubled)
          .gradient(lambda inputs, grads: [grads[0], None]).build())
    grads = op.gradient([X, np.array([0])], [X])
    assert grads[0].numpy().tolist() == X.tolist() and grads[1] is None


@pytest.mark.parametrize("returned, error, words", [
    ([], pyflame_rt.InputError, "returned 0 tensors; return a list of 1"),
    (None, pyflame_rt.InputError, "returned NoneType"),
    ([X[:2]], pyflame_rt.ShapeMismatchError, r"input 0, 'X', has shape \[2\], expected the input's \[3\]"),
    ([X.astype(np.float64)], pyflame_rt.DTypeMismatchError, "is float64, expected the input's float32"),
])
def test_a_gradient_that_does_not_fit_is_refused(returned, error, words):
    op = (CustomOpBuilder("Odd").input("X").output("Y").kernel(doubled)
          .gradient(lambda inputs, grads: returned).build())
    with pytest.raises(error, match="the gradient of custom::Odd.*" + words):
        op.gradient([X], [X])
    with pytest.raises(pyflame_rt.InputError, match="takes 1 gradients of outputs, got 2"):
        op.gradient([X], [X, X])
    with pytest.raises(pyflame_rt.InputError, match="takes 1 inputs, got 0"):
        op.gradient([], [X])


def test_an_operator_without_a_gradient_says_so():
    op = build("Plain", doubled)
    assert not op.has_gradient() and product_op().has_gradient()
    with pytest.raises(pyflame_rt.UnsupportedError, match="custom::Plain has no gradient; .*CustomOpBuilder.gradient"):
        op.gradient([X], [X])

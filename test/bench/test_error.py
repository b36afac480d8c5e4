# SPDX-License-Identifier: Apache-2.0
"""What error.py measures, with a side of known error in the peer's place."""
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import error
from transformers import decoder

SMALL = {"tokens": 6, "vocabulary": 11, "width": 8, "heads": 2, "inner": 16, "layers": 1}


def small_graph():
    weight = np.random.default_rng(3).standard_normal((4, 5)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name="first"), helper.make_node("Softmax", ["h"], ["y"])]
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", width]) for n, width in (("x", 4), ("y", 5))]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [numpy_helper.from_array(weight, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), weight


def test_logits_are_what_the_last_softmax_takes():
    model, _ = small_graph()
    assert error.logits(model.graph) == "h" and error.products(model.graph) == {"h": "first"}
    assert error.logits(decoder(**SMALL).graph) == "logits"


def test_the_double_run_is_in_double():
    model, weight = small_graph()
    inputs = error.inputs_of(model.graph, {"N": 3}, seed=1)
    assert inputs["x"].shape == (3, 4) and inputs["x"].dtype == np.float32
    asked = error.with_outputs(model, ["h"])
    side = error.Ours(error.in_double(asked), threads=1, precision="fp32")
    (found,) = side.run({"x": inputs["x"].astype(np.float64)})
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, inputs["x"].astype(np.float64) @ weight.astype(np.float64), rtol=1e-14)
    assert [o.name for o in model.graph.output] == ["y"]
    assert model.graph.initializer[0].data_type == TensorProto.FLOAT


def test_a_transformer_in_double_gives_its_answer_in_fp32():
    model = decoder(**SMALL)
    inputs = error.inputs_of(model.graph, {}, seed=0)
    assert inputs["ids"].max() < SMALL["vocabulary"]
    (single,) = error.Ours(model, 1, "fp32").run(inputs)
    (double,) = error.Ours(error.in_double(error.with_outputs(model, ["logits"])), 1, "fp32").run(inputs)
    assert double.dtype == np.float64 and not np.array_equal(single, double)
    np.testing.assert_allclose(single, double, atol=1e-5)


class Shifted:
    """Gives the reference with |by| added to the first element."""

    def __init__(self, by):
        self.by = by

    def run(self, inputs):
        value = inputs["x"].astype(np.float64) * 2
        value[0, 0] += self.by
        return [value]


def test_errors_add_up_over_inputs():
    model, _ = small_graph()
    (ours,), (theirs,) = error.accumulate([Shifted(3e-3), Shifted(-2e-3), Shifted(0)], model.graph, {"N": 2}, seeds=4)
    assert ours.squares == pytest.approx(4 * 9e-6) and ours.worst == pytest.approx(3e-3) and ours.count == 32
    assert error.ratios(ours, theirs) == pytest.approx((1.5, 1.5))


def test_no_error_on_either_side():
    assert error.ratio(0.0, 0.0) == 0 and error.ratio(1.0, 0.0) == float("inf")


def test_a_row_is_met_only_if_all_of_it_is():
    row = {"model": "m", "logits_rms_ours": 1e-7, "logits_rms_peer": 2e-7, "logits_rms_ratio": 0.5,
           "logits_max_ratio": 1.4, "products": [{"name": "a", "rms_ratio": 0.9, "max_ratio": 1.5},
                                                 {"name": "b", "rms_ratio": 1.0, "max_ratio": 0.2}]}
    assert error.met(row) and "0 of 2" in error.row_text(row) and "1.5 a" in error.row_text(row)
    row["products"][1]["rms_ratio"] = 1.01
    assert not error.met(row) and "1 of 2" in error.row_text(row) and "MISSED" in error.row_text(row)
    assert "MISSED" not in error.row_text(row, "bf16")


def test_shapes_that_differ_are_refused():
    with pytest.raises(ValueError, match="shapes differ"):
        error.Error().add(np.zeros(2, np.float32), np.zeros(3))

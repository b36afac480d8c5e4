# SPDX-License-Identifier: Apache-2.0
"""States: what one run leaves for the next."""
import threading

import numpy as np
import pytest
from onnx import TensorProto, helper

import pyflame_rt as rt


def cache_model():
    """present_0 = past_0 and then x along axis 2; y = the sum along it. h_out = h + x's first."""
    value = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    nodes = [
        helper.make_node("Concat", ["past_0", "x"], ["present_0"], axis=2),
        helper.make_node("ReduceSum", ["present_0", "axes"], ["y"], keepdims=0),
    ]
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [2])
    graph = helper.make_graph(nodes, "cache", [value("x", ["N", 2, "T", 3]), value("past_0", ["N", 2, "P", 3])],
                              [value("y", ["N", 2, 3]), value("present_0", ["N", 2, "P+T", 3])], [axes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    return model.SerializeToString()


def accumulator():
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])
    graph = helper.make_graph([helper.make_node("Add", ["x", "h"], ["h_out"])], "sum", [value("x"), value("h")],
                              [value("h_out")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    return model.SerializeToString()


@pytest.fixture()
def session():
    return rt.InferenceSession(cache_model())


def block(tokens, seed):
    return np.random.default_rng(seed).standard_normal((1, 2, tokens, 3)).astype(np.float32)


def test_grows_from_run_to_run(session):
    state = session.create_state()
    options = rt.RunOptions(state=state)
    assert state.get("past_0") is None and len(state) == 0 and state
    blocks = [block(n, n) for n in (5, 1, 1, 3, 1)]
    for i, x in enumerate(blocks):
        (y,) = session.run(["y"], {"x": x}, options)
        np.testing.assert_allclose(y, np.concatenate(blocks[:i + 1], 2).sum(2), rtol=1e-5)
    assert len(state) == 11
    np.testing.assert_array_equal(state.get("past_0"), np.concatenate(blocks, 2))
    assert "length=11" in repr(state) and "past_0" in repr(options)


def test_is_cut_cloned_set_and_kept_in_files(session, tmp_path):
    state = session.create_state({"past_0": "present_0"})
    options = rt.RunOptions(state=state)
    session.run(["y"], {"x": block(4, 1)}, options)
    copy = state.clone()
    session.run(["y"], {"x": block(2, 2)}, options)
    state.truncate(4)
    np.testing.assert_array_equal(state.get("past_0"), copy.get("past_0"))
    state.save(tmp_path / "state.pfm")
    other = session.create_state([("past_0", "present_0", 2)])
    other.load(tmp_path / "state.pfm")
    np.testing.assert_array_equal(other.get("past_0"), block(4, 1))
    other.set("past_0", np.ones((1, 2, 1, 3), np.float32))
    (y,) = session.run(["y"], {"x": np.ones((1, 2, 1, 3), np.float32)}, rt.RunOptions(state=other))
    np.testing.assert_array_equal(y, np.full((1, 2, 3), 2, np.float32))
    with pytest.raises(rt.PyFlameRTError, match="none.pfm"):
        other.load(tmp_path / "none.pfm")


def test_outputs_that_are_asked_for_are_copies(session):
    options = rt.RunOptions(state=session.create_state())
    y, present = session.run(None, {"x": block(2, 3)}, options)
    present[:] = 0
    np.testing.assert_array_equal(options.state.get("past_0"), block(2, 3))
    recurrent = rt.InferenceSession(accumulator())
    options = rt.RunOptions(state=recurrent.create_state())
    for i in range(1, 4):
        (total,) = recurrent.run(None, {"x": np.ones(2, np.float32)}, options)
        np.testing.assert_array_equal(total, [i, i])


def test_input_of_a_state_is_not_fed(session):
    options = rt.RunOptions(state=session.create_state())
    with pytest.raises(rt.InputError, match="the state's"):
        session.run(["y"], {"x": block(1, 1), "past_0": block(1, 1)}, options)
    with pytest.raises(rt.InputError, match="missing: 'x'"):
        session.run(["y"], {}, options)
    options.state = None
    with pytest.raises(rt.InputError, match="missing: 'past_0'"):
        session.run(["y"], {"x": block(1, 1)}, options)


def test_run_async_leaves_its_values_too(session):
    state = session.create_state()
    done, outcome = threading.Event(), []

    def callback(results, _, error):
        outcome.extend([results, error])
        done.set()

    session.run_async(["y"], {"x": block(3, 1)}, callback, None, rt.RunOptions(state=state))
    assert done.wait(30) and outcome[1] == ""
    assert len(state) == 3


def test_faults_say_what_to_do(session):
    with pytest.raises(rt.NotFoundError, match="'past_0'"):
        session.create_state({"past": "present_0"})
    with pytest.raises(rt.InvalidArgumentError, match="input, output"):
        session.create_state(["past_0"])
    with pytest.raises(rt.InvalidArgumentError, match="axis"):
        session.create_state([("past_0", "present_0", -1)])
    with pytest.raises(rt.InvalidArgumentError, match="State"):
        rt.RunOptions(state=3)
    state = session.create_state()
    with pytest.raises(rt.InvalidArgumentError, match="another session"):
        rt.InferenceSession(cache_model()).run(["y"], {"x": block(1, 1)}, rt.RunOptions(state=state))
    with pytest.raises(rt.UnsupportedError, match="clone"):
        rt.InferenceSession(accumulator()).create_state().truncate(1)

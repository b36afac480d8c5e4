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


def test_is_kept_by_runs_that_only_read_it(session):
    state = session.create_state()
    session.run(["y"], {"x": block(3, 1)}, rt.RunOptions(state=state))
    keeps = rt.RunOptions(state=state, keeps_state=True)
    want = block(3, 1).sum(2) + block(2, 2).sum(2)
    results = []
    threads = [threading.Thread(target=lambda: results.append(session.run(["y"], {"x": block(2, 2)}, keeps)[0]))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and len(state) == 3
    for y in results:
        np.testing.assert_allclose(y, want, rtol=1e-5)
    assert "keeps_state=True" in repr(keeps) and "keeps_state" not in repr(rt.RunOptions(state=state))
    keeps.keeps_state = False
    session.run(["y"], {"x": block(2, 2)}, keeps)
    assert len(state) == 5
    with pytest.raises(rt.InvalidArgumentError, match="keep the state"):
        session.run(["y"], {"x": block(1, 1), "past_0": block(1, 1)}, rt.RunOptions(keeps_state=True))
    with pytest.raises(rt.InvalidArgumentError, match="keeps_state"):
        rt.RunOptions(keeps_state=1)


def test_chooses_rows(session):
    state = session.create_state()
    first = np.concatenate([block(2, seed) for seed in range(3)])
    session.run(["y"], {"x": first}, rt.RunOptions(state=state))
    clone = state.clone()
    state.select_rows([2, 0, 0, 1])
    np.testing.assert_array_equal(state.get("past_0"), first[[2, 0, 0, 1]])
    state.select_rows(np.array([3, 1]))
    np.testing.assert_array_equal(state.get("past_0"), first[[1, 0]])
    np.testing.assert_array_equal(clone.get("past_0"), first)
    state.select_rows(range(0))
    assert state.get("past_0").shape == (0, 2, 2, 3)
    for rows in ([3], [-1], [1 << 70]):
        with pytest.raises(rt.InvalidArgumentError, match="row"):
            clone.select_rows(rows)
    with pytest.raises(TypeError):
        clone.select_rows([0.5])
    np.testing.assert_array_equal(clone.get("past_0"), first)


def test_goes_to_another_session_and_comes_from_a_model_for_prompts(session):
    state = session.create_state()
    options = rt.RunOptions(state=state)
    session.run(["y"], {"x": block(3, 1)}, options)
    other = rt.InferenceSession(cache_model())
    moved = state.clone_for(other)
    (a,) = session.run(["y"], {"x": block(1, 2)}, options)
    (b,) = other.run(["y"], {"x": block(1, 2)}, rt.RunOptions(state=moved))
    np.testing.assert_array_equal(a, b)
    with pytest.raises(rt.NotFoundError, match="no 'past_0'"):
        state.clone_for(rt.InferenceSession(accumulator()))
    with pytest.raises(rt.InvalidArgumentError, match="InferenceSession"):
        state.clone_for("other")

    begun = other.create_state({"past_0": "present_0"})
    begun.set_outputs({"present_0": block(4, 5)})
    np.testing.assert_array_equal(begun.get("past_0"), block(4, 5))
    with pytest.raises(rt.NotFoundError, match="'logits'.*'present_0'"):
        begun.set_outputs({"present_0": block(4, 6), "logits": block(1, 1)})
    np.testing.assert_array_equal(begun.get("past_0"), block(4, 5))


def test_memory_is_in_the_report_once(session):
    assert session.memory_report().states == 0
    state = session.create_state()
    session.run(["y"], {"x": block(10, 1)}, rt.RunOptions(state=state))
    size = session.memory_report().states
    assert size == 10 * 6 * 4 and session.memory_report().device_states == 0
    clones = [state.clone() for _ in range(8)]
    assert session.memory_report().states == size
    session.run(["y"], {"x": block(1, 1)}, rt.RunOptions(state=clones[0]))
    assert session.memory_report().states > 2 * size
    del clones, state


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


def scattered_cache():
    """cache_out = cache with x at row |at| of axis 1, whose length the model leaves open."""
    value = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    at = helper.make_tensor_value_info("at", TensorProto.INT64, [1])
    graph = helper.make_graph([helper.make_node("TensorScatter", ["cache", "x", "at"], ["cache_out"], axis=1)], "write",
                              [value("cache", [1, "room", 3]), value("x", [1, 1, 3]), at],
                              [value("cache_out", [1, "room", 3])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)])
    model.ir_version = 10
    return model.SerializeToString()


def test_has_the_room_that_a_pair_says():
    session = rt.InferenceSession(scattered_cache())
    state = session.create_state([("cache", "cache_out", "in_place", (1, 5))])
    options = rt.RunOptions(state=state)
    for row in (3, 0):
        session.run([], {"x": np.full((1, 1, 3), row + 1, np.float32), "at": np.int64([row])}, options)
    np.testing.assert_array_equal(state.get("cache")[0, :, 0], [1, 0, 0, 4, 0])
    with pytest.raises(rt.InvalidArgumentError, match="say which|capacity"):
        session.create_state([("cache", "cache_out", None, 5)])
    for growth, room in (("in_place", 5), ("in_place", (1, 2, 3)), (1, (1, 5)), (1, 0), (1, -1), ("in_place", (1, 1 << 63))):
        with pytest.raises(rt.InvalidArgumentError, match="capacity"):
            session.create_state([("cache", "cache_out", growth, room)])
    grows = rt.InferenceSession(cache_model())
    with_room = rt.RunOptions(state=grows.create_state([("past_0", "present_0", 2, 64)]))
    for n in (1, 2, 3):
        (y,) = grows.run(["y"], {"x": block(n, n)}, with_room)
    np.testing.assert_allclose(y, np.concatenate([block(n, n) for n in (1, 2, 3)], 2).sum(2), rtol=1e-5)

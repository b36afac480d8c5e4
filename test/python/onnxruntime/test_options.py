# SPDX-License-Identifier: Apache-2.0
"""Programs that choose how a session works."""
import json
import warnings

import numpy as np
import pytest

from conftest import FLOAT, field, node, onnx_model, port
from ort_models import ADD, DIGITS, LINEAR, MATMUL, NEG_ABS, floats, open_session, ort, row, state

pytestmark = pytest.mark.filterwarnings("ignore:.*has no meaning here")
LEVELS = [ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
          ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED, ort.GraphOptimizationLevel.ORT_ENABLE_ALL]


@pytest.mark.parametrize("level", LEVELS, ids=["none", "basic", "extended", "all"])
def test_results_are_the_same_at_every_level(level):
    options = ort.SessionOptions()
    assert options.graph_optimization_level == ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.graph_optimization_level = level
    image = np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 1, 8, 8)
    found = ort.InferenceSession(DIGITS, options, providers=["CPUExecutionProvider"]).run(None, {"image": image})[0]
    wanted = ort.InferenceSession(DIGITS, providers=["CPUExecutionProvider"]).run(None, {"image": image})[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def test_one_thread():
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    a = np.ones((64, 64), np.float32)
    assert np.array_equal(open_session(MATMUL, options).run(None, {"a": a, "b": a})[0], np.full((64, 64), 64))


def test_what_many_programs_set_is_taken_in_silence(caplog):
    with warnings.catch_warnings(), caplog.at_level("INFO", logger="pyflame_rt.onnxruntime"):
        warnings.simplefilter("error")
        options = ort.SessionOptions()
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False
        options.enable_mem_pattern = False
        for key, value in (("session.intra_op.allow_spinning", "1"), ("session.some_future_entry", "7"),
                           ("optimization.minimal_build_optimizations", "save")):
            options.add_session_config_entry(key, value)
            assert options.get_session_config_entry(key) == value
            assert key in caplog.text
        run = ort.RunOptions()
        run.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        for arena in ("kSameAsRequested", "kNextPowerOfTwo"):
            given = [("CPUExecutionProvider", {"arena_extend_strategy": arena})]
            session = ort.InferenceSession(ADD, options, providers=given)
            assert session.get_providers() == ["CPUExecutionProvider"]
        session = ort.InferenceSession(ADD, options, providers=["CPUExecutionProvider"],
                                       provider_options=[{"arena_extend_strategy": "kSameAsRequested"}])
    assert "arena_extend_strategy" in caplog.text
    with pytest.raises(state.InvalidArgument, match="'precision' = 'nonsense' is not known"):
        options.add_session_config_entry("precision", "nonsense")


@pytest.mark.parametrize("mode", ["ORT_SEQUENTIAL", "ORT_PARALLEL"])
def test_execution_modes(mode):
    options = ort.SessionOptions()
    assert options.execution_mode == ort.ExecutionMode.ORT_SEQUENTIAL
    options.execution_mode = {"ORT_SEQUENTIAL": ort.ExecutionMode.ORT_SEQUENTIAL,
                              "ORT_PARALLEL": ort.ExecutionMode.ORT_PARALLEL}[mode]
    session = open_session(NEG_ABS, options)
    assert [out.tolist() for out in session.run(None, {"x": floats(-1, 2)})] == [[1, -2], [1, 2]]


def test_order_of_execution():
    options = ort.SessionOptions()
    assert options.execution_order == ort.ExecutionOrder.DEFAULT
    options.execution_order = ort.ExecutionOrder.PRIORITY_BASED
    session = open_session(NEG_ABS, options)
    assert [out.tolist() for out in session.run(None, {"x": floats(-1, 2)})] == [[1, -2], [1, 2]]


def test_the_session_gives_its_options():
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    options.logid = "mine"
    session = open_session(ADD, options)
    assert session.get_session_options().intra_op_num_threads == 2
    assert session.get_session_options().logid == "mine"


def test_memory_options_do_not_change_results():
    options = ort.SessionOptions()
    assert options.enable_cpu_mem_arena and options.enable_mem_pattern and options.enable_mem_reuse
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options.enable_cpu_mem_arena = False
        options.enable_mem_pattern = False
        options.enable_mem_reuse = False
    assert open_session(ADD, options).run(None, {"a": row(1, 2, 3), "b": row(4, 5, 6)})[0].tolist() == [[5, 7, 9]]


def test_results_that_do_not_depend_on_chance():
    options = ort.SessionOptions()
    options.use_deterministic_compute = True
    options.use_per_session_threads = True
    a = np.random.default_rng(2).standard_normal((50, 50)).astype(np.float32)
    first, second = (open_session(MATMUL, options).run(None, {"a": a, "b": a})[0] for _ in range(2))
    assert np.array_equal(first, second)


def test_less_in_the_log():
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.log_verbosity_level = 0
    assert options.log_severity_level == 3
    assert open_session(ADD, options).run(None, {"a": row(1, 2, 3), "b": row(4, 5, 6)})[0].tolist() == [[5, 7, 9]]


def test_configuration_entries():
    options = ort.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.set_denormal_as_zero", "0")
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    with pytest.raises(RuntimeError):
        options.get_session_config_entry("session.disable_prepacking")
    assert open_session(LINEAR, options).run(None, {"x": row(1, 1, 1)})[0].tolist() == [[19, 32]]


@pytest.mark.parametrize("flush", ["0", "1"])
def test_denormal_numbers_are_zero_on_demand(flush):
    options = ort.SessionOptions()
    options.add_session_config_entry("session.set_denormal_as_zero", flush)
    assert options.get_session_config_entry("session.set_denormal_as_zero") == flush
    session = open_session(ADD, options)
    tiny = row(1e-39, 1e-39, 1)
    result = session.run(None, {"a": tiny, "b": tiny})[0]
    assert result[0, 2] == 2
    assert np.count_nonzero(result[0, :2]) == (0 if flush == "1" else 2)


def test_a_free_dimension_is_fixed_by_its_name():
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("batch", 2)
    session = open_session(LINEAR, options)
    assert [arg.shape for arg in session.get_inputs()] == [[2, 3]]
    assert session.run(None, {"x": np.ones((2, 3), np.float32)})[0].tolist() == [[19, 32], [19, 32]]
    with pytest.raises(state.InvalidArgument):
        session.run(None, {"x": row(1, 1, 1)})


def test_a_free_dimension_is_fixed_by_its_denotation():
    shape = field(2, field(1, field(2, "N") + field(3, "DATA_BATCH")) + field(1, field(3, "DATA_CHANNEL")) +
                  field(1, field(1, 5) + field(3, "DATA_FEATURE")))
    described = field(1, "x") + field(2, field(1, field(1, FLOAT) + shape))
    made = onnx_model([node("Abs", ["x"], ["y"])], [described], [port("y", FLOAT, ["A", "B", 5])])
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 3)
    options.add_free_dimension_override_by_denotation("DATA_CHANNEL", 4)
    options.add_free_dimension_override_by_denotation("FILTER_SPATIAL", 7)
    session = open_session(made, options)
    assert [arg.shape for arg in session.get_inputs()] == [[3, 4, 5]]
    assert session.run(None, {"x": -np.ones((3, 4, 5), np.float32)})[0].sum() == 60
    for wrong in ((2, 4, 5), (3, 5, 5)):
        with pytest.raises(state.InvalidArgument):
            session.run(None, {"x": np.ones(wrong, np.float32)})
    options.add_free_dimension_override_by_denotation("DATA_FEATURE", 6)
    with pytest.raises((state.InvalidArgument, state.Fail)):
        open_session(made, options)


def test_an_initializer_of_the_program_s_own():
    options = ort.SessionOptions()
    weights = ort.OrtValue.ortvalue_from_numpy(np.array([[0, 1], [0, 1], [0, 1]], np.float32))
    options.add_initializer("w", weights)
    options.add_initializer("of another model", weights)
    session = open_session(LINEAR, options)
    assert session.run(None, {"x": row(1, 1, 1)})[0].tolist() == [[10, 23]]
    assert session.run(None, {"x": row(1, 1, 1), "bias": floats(0, 0)})[0].tolist() == [[0, 3]]


def test_a_profile(tmp_path):
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = open_session(MATMUL, options)
    assert session.get_profiling_start_time_ns() > 0
    a = np.ones((64, 64), np.float32)
    session.run(None, {"a": a, "b": a})
    path = session.end_profiling()
    assert path.startswith(str(tmp_path / "profile"))
    with open(path) as file:
        events = [event for event in json.load(file) if event.get("cat") == "Node"]
    assert any("MatMul" in event["args"].get("op_name", "") for event in events)
    assert all(event["dur"] >= 0 for event in events)


def test_the_optimised_model_is_a_model(tmp_path):
    options, path = ort.SessionOptions(), str(tmp_path / "optimised.onnx")
    options.optimized_model_filepath = path
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    image = np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 1, 8, 8)
    wanted = ort.InferenceSession(DIGITS, options, providers=["CPUExecutionProvider"]).run(None, {"image": image})[0]
    found = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"image": image})[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def test_an_unknown_option_is_refused():
    with pytest.raises(AttributeError):
        setattr(ort.SessionOptions(), "intra_op_num_thread", 1)
    with pytest.raises(TypeError):
        ort.SessionOptions().intra_op_num_threads = "two"

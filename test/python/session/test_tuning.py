# SPDX-License-Identifier: Apache-2.0
"""The cache folder remembers what tuning finds, for sessions and for tuners of one operator."""
import subprocess
import sys

import numpy as np
import pytest

import pyflame_rt
from pyflame_rt import DType, InferenceSession, SessionOptions, tuning

SHAPES = [(1, 16, 27, 43), (48, 16, 3, 3)]
CONV = tuning.OpKernelInfo("Conv", {"pads": [1, 1, 1, 1]})


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


def conv_model(rows=27):
    graph = pyflame_rt.Graph("conv")
    graph.add_input("x", [1, 16, rows, 43], DType.Float32)
    graph.add_initializer("w", np.linspace(-1, 1, 48 * 16 * 9, dtype=np.float32).reshape(48, 16, 3, 3))
    graph.add_node("conv", "Conv", ["x", "w"], ["y"], attributes={"pads": [1, 1, 1, 1]})
    graph.add_output("y", [1, 48, rows, 43], DType.Float32)
    return graph


def outcome(graph, **options):
    session = InferenceSession(graph, SessionOptions(num_threads=1, **options))
    shape = session.get_inputs()[0].shape
    y = session.run(None, {"x": np.linspace(-2, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)})[0]
    return np.asarray(y), next((step for step in session.explain() if "tuned: " in step["reason"]), None)


def test_one_operator_is_tuned_and_models_use_it(folder):
    tuner = tuning.AutoTuner(cache_dir=folder, max_iterations=2, benchmark_iterations=3,
                             session=SessionOptions(num_threads=1))
    config = tuner.tune_kernel(CONV, SHAPES)
    assert config.kernel_name and config.performance_score > 0
    if not config.int_params:
        pytest.skip("kernels here have nothing to choose: " + config.note)
    assert 0 < config.measured <= 13 and config.gain >= 1 and config.note.startswith("tuned: ")
    again = tuner.TuneKernel(CONV, SHAPES)
    assert again.int_params == config.int_params and again.measured == 0 and "(remembered)" in again.note
    plain, step = outcome(conv_model())
    assert step is None
    for tune in (True, "cached"):
        y, step = outcome(conv_model(), tune=tune, cache_dir=folder)
        assert "(remembered)" in step["reason"] and step["tuning"].endswith(" measured=0")
        np.testing.assert_array_equal(y, plain)
    y, step = outcome(conv_model(26), tune="cached", cache_dir=folder)
    assert "nothing is remembered" in step["reason"] and step["tuning"] == ""
    kinds = [entry.kind for entry in pyflame_rt.cache.BinaryCache(
        pyflame_rt.cache.CacheConfig(cache_dir=folder)).entries(True)]
    assert kinds.count("tuned") == 1


def test_another_process_measures_nothing(folder):
    script = ("import sys; from pyflame_rt import tuning, SessionOptions\n"
              "config = tuning.AutoTuner(cache_dir=sys.argv[1], search='race', benchmark_iterations=1).tune_kernel(\n"
              "    tuning.OpKernelInfo('Conv', {'pads': [1, 1, 1, 1]}), [(1, 16, 25, 43), (48, 16, 3, 3)])\n"
              "print(len(config.int_params), config.measured)")
    first, second = (subprocess.run([sys.executable, "-c", script, str(folder)], check=True, capture_output=True,
                                    text=True).stdout.split() for _ in range(2))
    if first[0] == "0":
        pytest.skip("kernels here have nothing to choose")
    assert int(first[1]) > 0 and second == [first[0], "0"]


@pytest.mark.parametrize("dtype", [DType.Float32, DType.Float16, DType.BFloat16])
def test_operators_without_a_choice_have_a_score(dtype):
    config = tuning.AutoTuner(benchmark_iterations=1).tune_kernel(tuning.OpKernelInfo("Softmax", dtypes=[dtype]), [(3, 50)])
    assert config.performance_score > 0 and not config.int_params and config.note == "the kernel has nothing to choose"


def test_inputs_may_be_integers_and_constants():
    tuner = tuning.AutoTuner(search="race", benchmark_iterations=1)
    gather = tuning.OpKernelInfo("Gather", dtypes=["float32", DType.Int64], constant_inputs=[0])
    assert tuner.tune_kernel(gather, [(20, 30), (5,)]).performance_score > 0
    assert tuner.tune_kernel("Relu", [(5,)]).performance_score > 0
    assert tuner.tune_kernel(tuning.OpKernelInfo("MatMul", epilogue=["Relu"]), [(9, 8), (8, 7)]).kernel_name


def test_what_makes_no_sense_is_refused(folder):
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="benchmark_iterations"):
        tuning.AutoTuner(benchmark_iterations=0).tune_kernel("Relu", [(1,)])
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="strings"):
        tuning.AutoTuner().tune_kernel(tuning.OpKernelInfo("Identity", dtypes=[DType.String]), [(1,)])
    with pytest.raises(pyflame_rt.PyFlameRTError, match="tune_search"):
        tuning.AutoTuner(search="guess").tune_kernel("Relu", [(1,)])
    with pytest.raises(pyflame_rt.PyFlameRTError, match="give cache_dir"):
        InferenceSession(conv_model(), SessionOptions(tune="cached", cache_dir="off"))
    with pytest.raises(pyflame_rt.PyFlameRTError, match="tune_budget_s is of tune 'on'"):
        InferenceSession(conv_model(), SessionOptions(tune_budget_s=1.0))

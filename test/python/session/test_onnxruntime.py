# SPDX-License-Identifier: Apache-2.0
"""pyflame_rt.onnxruntime where ONNX Runtime does otherwise; test/python/onnxruntime has the programs for both."""
import gc
import json
import os
import pickle
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import pyflame_rt
import pyflame_rt.onnxruntime as ort
from conftest import FLOAT, field, node, onnx_model, port
from pyflame_rt.onnxruntime import _environment, _options
from pyflame_rt.onnxruntime._external import move_initializers
from pyflame_rt.onnxruntime.capi import onnxruntime_pybind11_state as state

A, B = np.array([[1, 2, 3]], np.float32), np.array([[10, 20, 30]], np.float32)


@pytest.fixture(autouse=True)
def nothing_warned_yet(monkeypatch):
    monkeypatch.setattr(_environment, "_warned", set())


def test_what_has_no_meaning_is_warned_of_once_by_name():
    others = {"execution_order": ort.ExecutionOrder.PRIORITY_BASED,
              "inter_op_num_threads": 4, "log_verbosity_level": 1, "logid": "x"}
    assert {*others, "enable_cpu_mem_arena"} == set(_options.NO_MEANING)
    for name, value in others.items():
        options = ort.SessionOptions()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            setattr(options, name, getattr(options, name))  # what it is anyway
            assert caught == []
            setattr(options, name, value)
            setattr(ort.SessionOptions(), name, value)
        assert len(caught) == 1 and f"'{name}' has no meaning here" in str(caught[0].message)
        assert caught[0].filename == __file__ and getattr(options, name) == value


@pytest.mark.parametrize("kind, table, add", [
    (ort.SessionOptions, _options.CONFIG_NO_MEANING, "add_session_config_entry"),
    (ort.RunOptions, _options.RUN_CONFIG_NO_MEANING, "add_run_config_entry")])
def test_entries_without_a_meaning_are_logged(kind, table, add, caplog):
    for key, (so_anyway, _) in table.items():
        with warnings.catch_warnings(), caplog.at_level("INFO", logger="pyflame_rt.onnxruntime"):
            warnings.simplefilter("error")
            caplog.clear()
            for value in so_anyway:
                getattr(kind(), add)(key, value)
            assert caplog.text == ""
            getattr(kind(), add)(key, "another")
        assert f"'{key}' has no meaning here" in caplog.text


def test_what_would_change_results_is_refused():
    options = ort.SessionOptions()
    for key, (harmless, _) in _options.CONFIG_REFUSED.items():
        for value in harmless:
            options.add_session_config_entry(key, value)
        with pytest.raises(state.NotImplemented, match=key.replace(".", r"\.")):
            options.add_session_config_entry(key, "another")
    with pytest.raises(state.NotImplemented, match="training_mode"):
        ort.RunOptions().training_mode = True
    with pytest.raises(state.InvalidArgument, match="'no_such_key'"):
        options.add_session_config_entry("no_such_key", "1")
    with pytest.raises(state.InvalidArgument, match="'timeout'.* timeout_ms"):
        ort.RunOptions().add_run_config_entry("timeout", "1")
    with pytest.raises(state.InvalidArgument, match="'memory_limit'.* from 0"):
        ort.RunOptions().add_run_config_entry("memory_limit", "much")
    with pytest.raises(TypeError, match="pair of strings"):
        options.add_session_config_entry("session.set_denormal_as_zero", 0)
    assert str(options.get_session_config_entry("ep.context_enable")) == "0"


def test_what_is_always_so_is_taken_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options = ort.SessionOptions()
        for name in _options.ALWAYS_SO:
            for value in (True, False):
                setattr(options, name, value)


def test_options_have_types():
    options = ort.SessionOptions()
    options.intra_op_num_threads = np.int64(2)
    options.enable_profiling = np.bool_(True)
    assert type(options.intra_op_num_threads) is int and options.enable_profiling is True
    options.graph_optimization_level = 99
    assert repr(options) == ("SessionOptions(enable_profiling=True, intra_op_num_threads=2)")
    for name, value, error in (("intra_op_num_threads", 1.5, TypeError), ("logid", 3, TypeError),
                               ("intra_op_num_threads", -1, state.InvalidArgument),
                               ("graph_optimization_level", 7, state.InvalidArgument),
                               ("log_severity_level", 5, state.InvalidArgument)):
        with pytest.raises(error, match=name):
            setattr(options, name, value)
    copy = pickle.loads(pickle.dumps(options))
    assert copy.intra_op_num_threads == 2 and copy.graph_optimization_level is _options.GraphOptimizationLevel(99)


def test_options_reach_the_library():
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    options.intra_op_num_threads = 3
    options.log_severity_level = 0
    options.add_session_config_entry("precision", "ieee")
    native = options._to_native()
    assert (native.optimization_level, native.execution_mode, native.num_threads) == (
        pyflame_rt.OptLevel.BASIC, "parallel", 3)
    assert (native.log_level, native.extra) == ("debug", {"precision": "ieee"}) and native.validate() == []
    ort.set_default_logger_severity(4)
    try:
        assert ort.SessionOptions()._to_native().log_level == "off"
    finally:
        ort.set_default_logger_severity(2)
    assert ort.SessionOptions()._to_native().optimization_level == pyflame_rt.OptLevel.ALL


def test_the_help_lists_them_all():
    for table in (_options.NO_MEANING, _options.ALWAYS_SO, _options.CONFIG_NO_MEANING, _options.CONFIG_REFUSED,
                  _options.RUN_CONFIG_NO_MEANING, _options.ABSENT):
        for name in table:
            assert name in ort.__doc__
    assert "{options}" not in ort.__doc__


def test_names_that_are_not_here_say_what_there_is():
    for name in ("training", "ModelCompiler", "quantization"):
        assert not hasattr(ort, name)
        with pytest.raises(AttributeError, match=f"'{name}': "):
            getattr(ort, name)
    with pytest.raises(AttributeError, match="'no_such_name'$"):
        ort.no_such_name
    with pytest.raises(AttributeError, match="'set_provider_selection_policy': "):
        ort.SessionOptions().set_provider_selection_policy
    for name in ort.__all__:
        assert hasattr(ort, name)


def test_custom_ops_come_from_plugins_of_this_library(tmp_path):
    plugins = {plugin.kind: plugin.path for plugin in pyflame_rt.Environment.instance().plugins() if plugin.loaded}
    options = ort.SessionOptions()
    options.register_custom_ops_library(plugins["ops"])
    options.register_custom_ops_library(plugins["ops"])
    with pytest.raises(Exception, match="of kind 'provider'.*of kind 'ops'"):
        options.register_custom_ops_library(plugins["provider"])
    with pytest.raises(Exception, match="there is no such file"):
        options.register_custom_ops_library(str(tmp_path / "libcustom.so"))
    for name, says in (("libcustom.so", "does not say what it is.*RegisterCustomOps"),
                       ("libpyflamert_ops_none.so", "RegisterCustomOps are of another interface")):
        (tmp_path / name).write_bytes(b"no library")
        with pytest.raises(Exception, match=says):
            options.register_custom_ops_library(tmp_path / name)


def test_errors_are_three_kinds_at_once(add_model, tmp_path):
    session = ort.InferenceSession(add_model)

    def fails(theirs, ours, python, call):
        with pytest.raises(theirs) as caught:
            call()
        assert isinstance(caught.value, ours) and isinstance(caught.value, python)
        assert type(caught.value).__name__ == theirs.__name__ and str(caught.value).startswith("[ONNXRuntimeError] : ")
        copy = pickle.loads(pickle.dumps(caught.value))
        assert type(copy) is type(caught.value) and str(copy) == str(caught.value) and copy.code == caught.value.code
        return str(caught.value)

    assert "2 : INVALID_ARGUMENT" in fails(state.InvalidArgument, pyflame_rt.DTypeMismatchError, TypeError,
                                           lambda: session.run(None, {"a": A.astype(float), "b": B}))
    fails(state.InvalidArgument, pyflame_rt.ShapeMismatchError, ValueError,
          lambda: session.run(None, {"a": A[0], "b": B}))
    fails(state.InvalidArgument, pyflame_rt.InputError, ValueError, lambda: session.run(None, {}))
    fails(state.InvalidArgument, pyflame_rt.InputError, ValueError, lambda: session.run(["z"], {"a": A, "b": B}))
    fails(state.InvalidArgument, pyflame_rt.InputError, ValueError, lambda: session.io_binding().bind_output("z"))
    fails(state.NotImplemented, pyflame_rt.UnsupportedError, NotImplementedError,
          lambda: ort.OrtValue.ortvalue_from_numpy(A, "cuda", 0))
    assert "3 : NO_SUCHFILE" in fails(state.NoSuchFile, pyflame_rt.ModelNotFoundError, FileNotFoundError,
                                      lambda: ort.InferenceSession(str(tmp_path / "nowhere.onnx")))
    fails(state.InvalidProtobuf, pyflame_rt.UnsupportedFormatError, ValueError,
          lambda: ort.InferenceSession(b"\xff" * 100))
    fails(state.NotFound, pyflame_rt.NotFoundError, LookupError,
          lambda: ort.InferenceSession(add_model, providers=["NoSuchExecutionProvider"]))
    unknown = onnx_model([node("NoSuchOperator", ["x"], ["y"])], [port("x", FLOAT, [1])], [port("y", FLOAT, [1])])
    fails(state.NotImplemented, pyflame_rt.UnsupportedOperatorError, NotImplementedError,
          lambda: ort.InferenceSession(unknown))
    invalid = onnx_model([node("Neg", ["w"], ["y"]), node("Neg", ["v"], ["z"])], [],
                         [port("y", FLOAT, [1]), port("z", FLOAT, [1])])
    fails(state.InvalidGraph, pyflame_rt.ValidationError, ValueError, lambda: ort.InferenceSession(invalid))
    with pytest.raises(state.InvalidGraph) as caught:
        ort.InferenceSession(invalid)
    assert len(caught.value.faults) >= 2


def test_runs_that_are_stopped_or_late_fail(add_model):
    session, run_options = ort.InferenceSession(add_model), ort.RunOptions()
    run_options.terminate = True
    values = {"a": ort.OrtValue.ortvalue_from_numpy(A), "b": ort.OrtValue.ortvalue_from_numpy(B)}
    for call in (lambda: session.run(None, {"a": A, "b": B}, run_options),
                 lambda: session.run_with_ort_values(None, values, run_options)):
        with pytest.raises(state.Fail) as caught:
            call()
        assert isinstance(caught.value, pyflame_rt.CancelledError)
    late = ort.RunOptions()
    for key, value in (("timeout_ms", "1"), ("priority", "3"), ("num_threads", "1"), ("tag", "late"),
                       ("log_level", "off"), ("memory_limit", "0")):
        late.add_run_config_entry(key, value)
    products = [node("MatMul", [f"y{i}" if i else "a", "a"], [f"y{i + 1}" if i < 7 else "y"]) for i in range(8)]
    long = ort.InferenceSession(onnx_model(products, [port("a", FLOAT, ["N", "N"])], [port("y", FLOAT, ["N", "N"])]))
    with pytest.raises(state.Fail) as caught:
        long.run(None, {"a": np.ones((1500, 1500), np.float32)}, late)
    assert isinstance(caught.value, TimeoutError)


def test_providers_as_in_that_api(add_model):
    with pytest.warns(UserWarning, match="'CUDAExecutionProvider' is not in available"):
        session = ort.InferenceSession(add_model, providers=[("CUDAExecutionProvider", {"device_id": 0})])
    assert session.get_providers() == ["CPUExecutionProvider"]
    with pytest.warns(UserWarning, match="Duplicate"):
        ort.InferenceSession(add_model, providers=["CPUExecutionProvider"] * 2)
    for wrong in ("CPUExecutionProvider", [3], 3):
        with pytest.raises(state.InvalidArgument, match="'providers'"):
            ort.InferenceSession(add_model, providers=wrong)
    for options in ([{}, {}], {"CPUExecutionProvider": {}}):
        with pytest.raises(state.InvalidArgument, match="'provider_options'"):
            ort.InferenceSession(add_model, providers=["CPUExecutionProvider"], provider_options=options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("arena_extend_strategy", "no_such_option"):
            session = ort.InferenceSession(add_model, providers=[("CPUExecutionProvider", {name: "1"})])
            assert session.get_provider_options() == {"CPUExecutionProvider": {}}
        ort.InferenceSession(add_model, providers=["CPUExecutionProvider"], provider_options=[{"use_arena": "1"}])
    options = ort.SessionOptions()
    assert not options.has_providers()
    options.add_provider("CPUExecutionProvider", {})
    assert options.has_providers()
    assert ort.InferenceSession(add_model, options).get_provider_options() == {"CPUExecutionProvider": {}}


def test_a_failed_change_of_providers_leaves_the_session(add_model):
    session = ort.InferenceSession(add_model)
    with pytest.raises(state.NotFound):
        session.set_providers(["NoSuchExecutionProvider"])
    assert session.run(None, {"a": A, "b": B})[0].tolist() == [[11, 22, 33]]
    session.set_providers([("CPUExecutionProvider", {})])
    assert session.run(None, {"a": A, "b": B})[0].tolist() == [[11, 22, 33]]


def test_further_arguments(add_model):
    with pytest.warns(UserWarning, match="disabled_optimizers"):
        ort.InferenceSession(add_model, disabled_optimizers=["ConstantFolding"])
    session = ort.InferenceSession(add_model, enable_fallback=0)
    assert not session._options.fallback and not pickle.loads(pickle.dumps(session))._options.fallback
    for change, wanted in ((session.enable_fallback, True), (session.disable_fallback, False)):
        change()
        assert session._options.fallback is wanted
        assert session.run(None, {"a": A, "b": B})[0].tolist() == [[11, 22, 33]]
    with pytest.raises(TypeError, match="no argument 'option'"):
        ort.InferenceSession(add_model, option=1)


def test_free_dimensions_hold_for_every_way_to_run(add_model):
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("N", 1)
    session = ort.InferenceSession(add_model, options)
    assert session.get_outputs()[0].shape == [1, 3]
    two = np.ones((2, 3), np.float32)
    value = ort.OrtValue.ortvalue_from_numpy(two)
    for call in (lambda: session.run(None, {"a": two, "b": two}),
                 lambda: session.run_async(None, {"a": two, "b": two}, print),
                 lambda: session.io_binding().bind_cpu_input("a", two),
                 lambda: session.io_binding().bind_ortvalue_input("a", value),
                 lambda: session.run_with_ort_values(None, {"a": value, "b": value})):
        with pytest.raises(state.InvalidArgument, match="'N' is overridden to 1"):
            call()
    assert session.run(None, {"a": A, "b": B})[0].tolist() == [[11, 22, 33]]
    options.add_free_dimension_override_by_name("N", 2)  # for sessions to come
    assert session.get_outputs()[0].shape == [1, 3]
    options.add_free_dimension_override_by_name("M", 1)
    with pytest.warns(UserWarning, match="'M'.*: N"):
        ort.InferenceSession(add_model, options)


def test_pyflame_rt_s_own_options_are_taken(add_model):
    options, run_options = pyflame_rt.SessionOptions(), pyflame_rt.RunOptions()
    options.num_threads, run_options.timeout_ms = 1, 60000
    session = ort.InferenceSession(add_model, options)
    assert session.get_session_options() is options and session.end_profiling() == ""
    assert session.run(None, {"a": A, "b": B}, run_options)[0].tolist() == [[11, 22, 33]]


def test_sessions_are_pickled(digits):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_free_dimension_override_by_name("batch", 1)
    session = pickle.loads(pickle.dumps(ort.InferenceSession(digits, options)))
    assert session.get_session_options().intra_op_num_threads == 1
    assert session.run(None, {"image": np.zeros((1, 1, 8, 8), np.float32)})[0].shape == (1, 10)
    assert repr(session) == (f"InferenceSession({digits!r}: image: [1, 1, 8, 8] tensor(float) -> "
                             "probabilities: [1, 10] tensor(float))")
    assert "<td>probabilities</td><td>[1, 10]</td><td>tensor(float)</td>" in session._repr_html_()


def test_a_profile_has_every_step(digits, tmp_path):
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "steps")
    session = ort.InferenceSession(digits, options)
    session.run(None, {"image": np.zeros((1, 1, 8, 8), np.float32)})
    steps = session.explain()
    path = session.end_profiling()
    assert path.startswith(str(tmp_path / "steps_"))
    events = [event for event in json.loads(Path(path).read_text()) if event["cat"] == "Node"]
    assert [event["args"]["op_name"] for event in events] == [step["ops"] for step in steps]
    assert [event["dur"] for event in events] == [step["measured_ns"] / 1000 for step in steps]
    assert [event["name"] for event in events] == [step["nodes"] + "_kernel_time" for step in steps]
    assert sum(event["dur"] for event in events) > 0


def test_a_profile_is_written_when_the_session_goes(digits, tmp_path):
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "steps")
    ort.InferenceSession(digits, options).run(None, {"image": np.zeros((1, 1, 8, 8), np.float32)})
    gc.collect()
    (path,) = tmp_path.iterdir()
    profile_data = json.loads(path.read_text())
    for event in profile_data['traceEvents']:
        if event['ph'] == 'X':  # Complete events
            print(f"Op: {event['name']}, Duration: {event['dur']}us")


def test_a_graph_is_a_model_too(add_model):
    session = ort.InferenceSession(pyflame_rt.InferenceSession(add_model).graph())
    for again in (session, pickle.loads(pickle.dumps(session))):
        assert again.run(None, {"a": A, "b": B})[0].tolist() == [[11, 22, 33]]
    session.set_providers(["CPUExecutionProvider"])
    assert session.run(None, {"a": A, "b": B})[0].tolist() == [[11, 22, 33]]
    assert repr(session) == ("InferenceSession('made': a: [N, 3] tensor(float), b: [N, 3] tensor(float) -> "
                             "y: [N, 3] tensor(float))")


def test_an_optimised_model_that_cannot_be_written(add_model, tmp_path):
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "nowhere" / "out.onnx")
    with pytest.raises(pyflame_rt.PyFlameRTError, match="nowhere"):
        ort.InferenceSession(add_model, options)


def test_values_have_onnx_s_numbers():
    value = ort.OrtValue.ortvalue_from_shape_and_type([2], 11)
    assert value.numpy().dtype == np.float64 and value.data_type() == "tensor(double)"
    with pytest.raises(state.InvalidArgument, match="99"):
        ort.OrtValue.ortvalue_from_shape_and_type([2], 99)
    assert repr(ort.OrtDevice.make("cpu", 0)) == "OrtDevice('cpu', 0)"
    with pytest.raises(state.NotImplemented, match="'cuda'"):
        ort.OrtDevice.make("cuda", 0).device_type()
    assert ort.OrtDevice.make("cpu", 0, 0x10de).device_vendor_id() == ort.OrtDeviceVendorId.NVIDIA
    with pytest.raises(state.NotImplemented, match="vendor"):
        ort.OrtValue.ortvalue_from_numpy(A, "cpu", 0, 1)
    with pytest.raises(state.InvalidArgument, match="need 2 or 4 indices, not 3"):
        ort.SparseTensor.sparse_coo_from_numpy([2, 2], np.ones(2, np.float32), np.array([1, 2, 3]), None)


def test_errors_of_async_runs_are_told(add_model):
    told, over = [], threading.Event()
    session = ort.InferenceSession(add_model)
    session.run_async(None, {"a": A[0], "b": B}, lambda *arguments: (told.append(arguments), over.set()), 7)
    assert over.wait(60) and told[0][:2] == ([], 7) and "'a'" in told[0][2]


REPLACED = """
import sys, pyflame_rt.onnxruntime
sys.modules["onnxruntime"] = pyflame_rt.onnxruntime
import numpy as np
import onnxruntime
from onnxruntime import InferenceSession, SessionOptions
from onnxruntime.capi import _pybind_state as C
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from onnxruntime.capi.onnxruntime_inference_collection import OrtValue
assert OrtValue is onnxruntime.OrtValue and C.InvalidArgument is InvalidArgument
session = InferenceSession(sys.argv[1], SessionOptions(), providers=["CPUExecutionProvider"])
try: session.run(None, {"a": np.ones(3), "b": np.ones(3)})
except InvalidArgument: print("right")
"""


def test_it_may_stand_in_under_the_other_name(add_model, tmp_path):
    file = tmp_path / "add.onnx"
    file.write_bytes(add_model)
    done = subprocess.run([sys.executable, "-c", REPLACED, str(file)], capture_output=True, text=True, timeout=60,
                          cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(Path(pyflame_rt.__file__).parents[1])})
    assert (done.returncode, done.stdout, done.stderr) == (0, "right\n", "")


def test_versions():
    assert ort.__version__ == ort.get_version_string() == _environment.API_VERSION
    assert pyflame_rt.__version__ in ort.get_build_info()


def test_memory_options_are_passed_on():
    options = ort.SessionOptions()
    options.enable_mem_pattern = options.enable_mem_reuse = False
    options.add_session_config_entry("session.use_env_allocators", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options.add_session_config_entry("session.use_env_allocators", "1")
    native = options._to_native()
    assert not native.enable_mem_pattern and not native.enable_mem_reuse
    assert native.extra["session.use_env_allocators"] == "1"
    assert ort.SessionOptions()._to_native().enable_mem_pattern
    with pytest.raises(pyflame_rt.InvalidArgumentError):
        options.add_session_config_entry("session.use_env_allocators", "2")


def weighted_model(weights, bias):
    """y = x @ w + b, where |weights| and |bias| are the fields of their data."""
    def tensor(name, dims, data):
        return field(5, b"".join(field(1, dim) for dim in dims) + field(2, FLOAT) + field(8, name) + data)
    graph = (field(1, node("MatMul", ["x", "w"], ["m"])) + field(1, node("Add", ["m", "b"], ["y"])) + field(2, "made") +
             tensor("w", [3, 2], weights) + tensor("b", [2], bias) + field(11, port("x", FLOAT, ["N", 3])) +
             field(12, port("y", FLOAT, ["N", 2])))
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))


def in_file(name, offset=None, length=None):
    entries = {"location": name, **{key: str(value) for key, value in (("offset", offset), ("length", length))
                                    if value is not None}}
    return b"".join(field(13, field(1, key) + field(2, text)) for key, text in entries.items()) + field(14, 1)


W, BIAS = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([10, 20], np.float32)


def test_external_initializers_are_given(tmp_path):
    options = ort.SessionOptions()
    options.add_external_initializers(["w"], [ort.OrtValue.ortvalue_from_numpy(W)])
    model = weighted_model(in_file("nowhere"), field(9, BIAS.tobytes()))
    for source in (model, tmp_path / "model.onnx"):
        (tmp_path / "model.onnx").write_bytes(model)
        session = ort.InferenceSession(source, options)
        assert session.run(None, {"x": A})[0].tolist() == (A @ W + BIAS).tolist()
        assert [arg.name for arg in session.get_inputs()] == ["x"]
        assert pickle.loads(pickle.dumps(session)).run(None, {"x": A})[0].tolist() == (A @ W + BIAS).tolist()


def test_external_initializers_that_are_not_given_are_read_beside_the_model(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/data").write_bytes(b"1234" + BIAS.tobytes())
    path = tmp_path / "model.onnx"
    options = ort.SessionOptions()
    options.add_external_initializers(["w"], [ort.OrtValue.ortvalue_from_numpy(W)])
    path.write_bytes(weighted_model(in_file("nowhere"), in_file("inner/data", 4)))
    assert ort.InferenceSession(path, options).run(None, {"x": A})[0].tolist() == (A @ W + BIAS).tolist()
    os.mkfifo(tmp_path / "pipe")
    for bias, why in ((in_file("inner/data", 9), "needs 8 bytes from byte 9 of .*, which has 12"),
                      (in_file("../data"), "is not below"), (in_file(str(tmp_path / "inner/data")), "no path within"),
                      (in_file("absent"), "No such file"), (in_file("pipe"), "is no regular file"),
                      (in_file("inner/data", 4, 7), "has 8 bytes, and the model says that there are 7"),
                      (in_file("inner/data", "x"), "offset 'x' is no number of bytes")):
        path.write_bytes(weighted_model(in_file("nowhere"), bias))
        with pytest.raises(state.InvalidProtobuf, match=f"'b': .*{why}"):
            ort.InferenceSession(path, options)
    with pytest.raises(state.InvalidArgument, match="a model of bytes has no files"):
        ort.InferenceSession(path.read_bytes(), options)
    with pytest.raises(state.Fail, match="it is a pipe"):
        ort.InferenceSession(tmp_path / "pipe", options)


@pytest.mark.parametrize("names, values, why", [
    (["u"], [W], "no external initializer 'u'; it has 'w'"), (["b"], [BIAS], "no external initializer 'b'"),
    (["w"], [W.T.copy()], r"float32 \[3, 2\], and the value given is float32 \[2, 3\]"),
    (["w"], [W.astype(np.float64)], "given is float64")])
def test_external_initializers_that_do_not_fit(names, values, why):
    options = ort.SessionOptions()
    options.add_external_initializers(names, [ort.OrtValue.ortvalue_from_numpy(value) for value in values])
    with pytest.raises(state.InvalidArgument, match=why):
        ort.InferenceSession(weighted_model(in_file("nowhere"), field(9, BIAS.tobytes())), options)


def test_external_initializers_without_values():
    options = ort.SessionOptions()
    value = ort.OrtValue.ortvalue_from_numpy(W)
    for names, values in ((["w"], []), (["w", "w"], [value, value]), (["w"], [W]), ([3], [value])):
        with pytest.raises(state.InvalidArgument):
            options.add_external_initializers(names, values)
    options.add_external_initializers(["w"], [value])
    for cut in (b"\x3a", weighted_model(in_file("nowhere"), b"")[:-30]):
        with pytest.raises(state.InvalidProtobuf, match="no ONNX model, or it is cut short"):
            ort.InferenceSession(cut, options)


def test_files_of_external_initializers_are_given():
    model = weighted_model(in_file("weights"), in_file("inner/data", 3, 8))
    files = {"weights": W.tobytes(), "inner/data": bytearray(b"123" + BIAS.tobytes() + b"4567")}
    options = ort.SessionOptions()
    options.add_external_initializers_from_files_in_memory(list(files), list(files.values()), [24, 12])
    assert ort.InferenceSession(model, options).run(None, {"x": A})[0].tolist() == (A @ W + BIAS).tolist()
    options = ort.SessionOptions()
    options.add_external_initializers_from_files_in_memory(["inner/data"], [files["inner/data"]], [11])
    with pytest.raises(state.InvalidArgument, match="'w': a model of bytes has no files"):
        ort.InferenceSession(model, options)
    options.add_external_initializers(["w"], [ort.OrtValue.ortvalue_from_numpy(W)])
    assert ort.InferenceSession(model, options).run(None, {"x": A})[0].tolist() == (A @ W + BIAS).tolist()
    options = ort.SessionOptions()
    options.add_external_initializers_from_files_in_memory(list(files), list(files.values()), [24, 10])
    with pytest.raises(state.InvalidProtobuf, match="needs 8 bytes from byte 3 of the file in memory 'inner/data', which has"):
        ort.InferenceSession(model, options)


@pytest.mark.parametrize("names, buffers, lengths", [
    (["a"], [], [1]), ([3], [b"12"], [2]), (["a"], [b"12"], [3]), (["a"], [b"12"], [-1]), (["a"], ["12"], [2]),
    (["a", "a"], [b"12", b"12"], [2, 2])])
def test_files_of_external_initializers_that_are_none(names, buffers, lengths):
    with pytest.raises(state.InvalidArgument):
        ort.SessionOptions().add_external_initializers_from_files_in_memory(names, buffers, lengths)


def test_initializers_of_the_program_s_own_that_do_not_fit():
    for value, why in ((W.T.copy(), r"'w' is float32 \[3, 2\], and the value given is float32 \[2, 3\]"),
                       (W.astype(np.int64), "given is int64")):
        options = ort.SessionOptions()
        options.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(value))
        with pytest.raises(state.InvalidArgument, match=why):
            ort.InferenceSession(weighted_model(field(9, W.tobytes()), field(9, BIAS.tobytes())), options)
    for name, value in (("w", W), (3, ort.OrtValue.ortvalue_from_numpy(W))):
        with pytest.raises(state.InvalidArgument):
            ort.SessionOptions().add_initializer(name, value)


def test_an_optimised_model_has_its_initializers_in_another_file(tmp_path):
    path = tmp_path / "optimised.onnx"
    for least, outside in (("8", 2), ("9", 1), ("", 0)):
        options = ort.SessionOptions()
        options.optimized_model_filepath = str(path)
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "weights.bin")
        if least:
            options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", least)
        ort.InferenceSession(weighted_model(field(9, W.tobytes()), field(9, BIAS.tobytes())), options)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["optimised.onnx", "weights.bin"]
        assert (W.tobytes() in (tmp_path / "weights.bin").read_bytes()) == (outside > 0)
        assert (W.tobytes() in path.read_bytes()) == (outside == 0) and (BIAS.tobytes() in path.read_bytes()) == (
            outside < 2)
        assert ort.InferenceSession(path).run(None, {"x": A})[0].tolist() == (A @ W + BIAS).tolist()


@pytest.mark.parametrize("file, name, least", [
    ("o.onnx", "a/w.bin", "1"), ("o.onnx", "o.onnx", "1"), ("o.pfm", "w.bin", "1"), ("o.onnx", "w.bin", "-1")])
def test_other_files_are_refused(tmp_path, file, name, least, add_model):
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / file)
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", name)
    options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", least)
    with pytest.raises((state.NotImplemented, state.InvalidArgument), match="external initializer"):
        ort.InferenceSession(add_model, options)


@pytest.mark.parametrize("again", ["weights.bin", "other.bin"])
def test_initializers_that_are_moved_back_are_in_the_model(tmp_path, again):
    """The writer of a large model has put them beside it already."""
    path = tmp_path / "m.onnx"
    path.write_bytes(weighted_model(field(9, W.tobytes()), field(9, BIAS.tobytes())))
    move_initializers(str(path), "weights.bin", 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "weights.bin"]
    move_initializers(str(path), again, 9)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", again]
    assert BIAS.tobytes() in path.read_bytes() and W.tobytes() in (tmp_path / again).read_bytes()
    assert ort.InferenceSession(path).run(None, {"x": A})[0].tolist() == (A @ W + BIAS).tolist()

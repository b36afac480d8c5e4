# SPDX-License-Identifier: Apache-2.0
"""What packages import beside sessions: the name ``onnxruntime`` itself, examples, the backend, memory's names."""
import json
import logging
import os
import subprocess
import sys

import numpy as np
import pytest

import pyflame_rt
import pyflame_rt.onnxruntime as ort
from pyflame_rt.onnxruntime import backend, datasets
from pyflame_rt.onnxruntime.capi import _pybind_state, onnxruntime_inference_collection
from pyflame_rt.onnxruntime.transformers.io_binding_helper import TypeHelper

PROGRAM = """
import sys
import numpy as np
import onnxruntime as ort
import onnxruntime.backend
from onnxruntime.capi import onnxruntime_pybind11_state as state
from onnxruntime.capi._pybind_state import OrtValue
from onnxruntime.datasets import get_example
from onnxruntime.transformers.io_binding_helper import TypeHelper
import pyflame_rt.onnxruntime
assert ort is pyflame_rt.onnxruntime and OrtValue is ort.OrtValue and __name__ == "__main__"
session = ort.InferenceSession(get_example("mul_1.onnx"))
try:
    session.run(None, {})
except state.InvalidArgument:
    print(*sys.argv[1:], session.run(None, {"X": np.ones((3, 2), np.float32)})[0].tolist())
"""


def run(*arguments, cwd=None):
    return subprocess.run([sys.executable, "-W", "error", *arguments], capture_output=True, text=True, timeout=120,
                          cwd=cwd)


def test_a_program_runs_unchanged(tmp_path):
    (tmp_path / "beside.py").write_text("VALUE = 3\n")
    (tmp_path / "program.py").write_text(f"from beside import VALUE\n{PROGRAM}")
    wanted = "one --two [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]\n"
    ran = run("-m", "pyflame_rt.onnxruntime", str(tmp_path / "program.py"), "one", "--two")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, wanted, "")
    ran = run("-m", "pyflame_rt.onnxruntime", "-m", "program", "one", "--two", cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, wanted, "")
    (tmp_path / "fails.py").write_text("import sys\nsys.exit(7)\n")
    assert run("-m", "pyflame_rt.onnxruntime", str(tmp_path / "fails.py")).returncode == 7
    ran = run("-m", "pyflame_rt.onnxruntime", str(tmp_path / "absent.py"))
    assert ran.returncode == 1 and "there is no file" in ran.stderr and "usage: " in ran.stderr
    assert run("-m", "pyflame_rt.onnxruntime").returncode == 1


def test_installed_as_onnxruntime(tmp_path):
    (tmp_path / "onnxruntime.py").write_text("IS_ANOTHER = True\n")
    install = "from pyflame_rt.onnxruntime import install_as_onnxruntime as install\ninstall()\ninstall()\n"
    program = install + PROGRAM.replace("print(", "import onnxruntime.quantization\n    print(")
    ran = run("-c", program.replace("import onnxruntime.quantization", "pass"), cwd=tmp_path)
    assert ran.returncode == 0 and "[[1.0, 2.0]" in ran.stdout, ran.stderr
    assert "ModuleNotFoundError: No module named 'onnxruntime.quantization'" in run("-c", program, cwd=tmp_path).stderr
    ran = run("-c", f"import onnxruntime\nassert onnxruntime.IS_ANOTHER\n{install}", cwd=tmp_path)
    assert ran.returncode == 1 and "is imported already, from" in ran.stderr


def test_examples_are_models_of_their_own():
    x = np.array([[5.1, 3.5], [7.0, 3.2], [5.8, 2.6]], np.float32)
    session = ort.InferenceSession(datasets.get_example("logreg_iris.onnx"))
    label, probability = session.run(None, {session.get_inputs()[0].name: x})
    assert label.tolist()[0] == 0 and [max(row, key=row.get) for row in probability] == label.tolist()
    assert all(abs(sum(row.values()) - 1) < 1e-5 for row in probability)
    sigmoid = ort.InferenceSession(datasets.get_example("sigmoid.onnx"))
    assert sigmoid.run(None, {"x": np.zeros((3, 4, 5), np.float32)})[0].tolist() == np.full((3, 4, 5), 0.5).tolist()
    for name in ("absent.onnx", "../datasets/mul_1.onnx", "__init__.py"):
        with pytest.raises(FileNotFoundError, match="logreg_iris.onnx, mul_1.onnx, sigmoid.onnx"):
            datasets.get_example(name)


def test_examples_of_a_process_outlive_its_children():
    path = datasets.get_example("mul_1.onnx")
    child = os.fork()
    if child == 0:
        try:
            datasets.get_example("sigmoid.onnx")
            datasets._remove(os.path.dirname(path), os.getppid())  # as the end of the interpreter calls it
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0 and os.path.exists(path)
    program = "from pyflame_rt.onnxruntime.datasets import get_example\nprint(get_example('mul_1.onnx'))\n"
    ran = run("-c", program)
    assert ran.returncode == 0 and not os.path.exists(os.path.dirname(ran.stdout.strip()))


def test_backend_of_onnx():
    model = datasets.get_example("mul_1.onnx")
    x = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    prepared = backend.prepare(model, "CPU", intra_op_num_threads=1)
    for inputs in (x, [x], {"X": x}):
        assert prepared.run(inputs, logid="one")[0].tolist() == (x * x).tolist()
    assert backend.run(model, x)[0].tolist() == (x * x).tolist()
    assert backend.prepare(prepared) is prepared
    assert backend.prepare(ort.InferenceSession(model)).run(x)[0].tolist() == (x * x).tolist()
    assert backend.supports_device("CPU") and backend.supports_device("cpu:0") and not backend.supports_device("CUDA")
    assert backend.is_compatible(model) and not backend.is_compatible(model, "CUDA")
    with pytest.raises(ValueError, match="no device 'CUDA'"):
        backend.prepare(model, "CUDA")
    with pytest.raises(pyflame_rt.InputError, match="2 values are given for 1 inputs: X"):
        prepared.run([x, x])
    with pytest.raises(NotImplementedError):
        backend.OnnxRuntimeBackend.run_node(None, [])


def test_what_is_below_a_session(tmp_path):
    path = datasets.get_example("mul_1.onnx")
    made = ort.InferenceSession(path)
    assert made._model_path == path and made._model_bytes is None
    x = np.ones((3, 2), np.float32)
    below = made._sess
    assert below.run(["Y"], {"X": x}, None)[0].shape == (3, 2)
    assert [one.name for one in below.inputs_meta] == ["X"] and [one.name for one in made._outputs_meta] == ["Y"]
    assert below.model_meta.graph_name == "mul_1" and below.overridable_initializers == []
    with open(path, "rb") as file:
        data = file.read()
    made = ort.InferenceSession(data)
    assert made._model_bytes == data and made._model_path is None
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "profile")
    session = ort.InferenceSession(path, options)
    session.run(None, {"X": x})
    written = session.end_profiling()
    assert session.end_profiling() == written
    with open(written, encoding="utf-8") as file:
        events = json.load(file)
    assert isinstance(events, list) and any(event["name"] == "model_run" for event in events)


def test_names_of_memory(caplog):
    for state in (_pybind_state, ort.capi.onnxruntime_pybind11_state):
        assert state.OrtValue is ort.OrtValue and state.InferenceSession is ort.InferenceSession
        assert state.OrtDevice is ort.OrtDevice and list(state.OrtValueVector([1])) == [1]
    assert onnxruntime_inference_collection.OrtValue is ort.OrtValue
    info = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    assert (info.name, info.device_id, info.mem_type) == ("Cpu", 0, ort.OrtMemType.DEFAULT)
    info_of_device = ort.OrtMemoryInfo.create_v2("Test", ort.OrtMemoryInfoDeviceType.CPU, 0, 0,
                                                 ort.OrtDeviceMemoryType.DEFAULT, 128,
                                                 ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR)
    assert (info_of_device.name, info_of_device.alignment) == ("Test", 128)
    assert info_of_device.device_mem_type == info.device_mem_type
    assert ort.OrtArenaCfg({"max_mem": 5}).max_mem == 5 and ort.OrtArenaCfg(1, 2, 3, 4).initial_chunk_size_bytes == 3
    with pytest.raises(ValueError, match="OrtArenaCfg has no 'most'"):
        ort.OrtArenaCfg({"most": 5})
    with caplog.at_level(logging.INFO, "pyflame_rt.onnxruntime"):
        ort.create_and_register_allocator(info, ort.OrtArenaCfg(0, -1, -1, -1))
        ort.set_seed(3)
        ort.preload_dlls(cuda=False)
    assert "'create_and_register_allocator' has no meaning here" in caplog.text and "'set_seed'" in caplog.text


def test_values_below_a_session():
    session = ort.InferenceSession(datasets.get_example("mul_1.onnx"))
    value = ort.OrtValue.ortvalue_from_numpy(np.ones((3, 2), np.float32))
    assert value._ortvalue is value
    results = session._sess.run_with_ort_values({"X": value._get_c_value()}, ["Y"], ort.RunOptions())
    assert isinstance(results, _pybind_state.OrtValueVector)
    assert results[0].numpy().tolist() == [[1, 2], [3, 4], [5, 6]]
    binding = session.io_binding()
    binding._iobinding.bind_ortvalue_input("X", value)
    binding.bind_output("Y")
    session._sess.run_with_iobinding(binding._iobinding, None)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [[1, 2], [3, 4], [5, 6]]


def test_arguments_about_providers_are_made_alike():
    check = onnxruntime_inference_collection.check_and_normalize_provider_args
    assert check(None, None, ["a"]) == ([], [])
    assert check([("a", {1: 2}), "b"], None, ["a", "b"]) == (["a", "b"], [{"1": "2"}, {}])
    assert check(["a", "b"], [{1: 2}, {}], ["a", "b"]) == (["a", "b"], [{"1": "2"}, {}])
    with pytest.warns(UserWarning, match="Duplicate provider 'a'"):
        assert check(["a", "b", "a"], [{"x": 1}, {}, {"y": 2}], ["a", "b"]) == (["a", "b"], [{"x": "1"}, {}])
    with pytest.warns(UserWarning, match="'d' is not in available provider names"):
        check(["d"], None, ["a"])
    with pytest.raises(ValueError, match="a list with a dict for each of the 1 providers"):
        check(["a"], 3, ["a"])


def test_types_of_inputs_and_outputs():
    session = ort.InferenceSession(datasets.get_example("mul_1.onnx"))
    assert TypeHelper.get_io_numpy_type_map(session) == {"X": np.float32, "Y": np.float32}
    assert TypeHelper.get_output_type(session, "Y") == "tensor(float)"
    assert TypeHelper.ort_type_to_numpy_type("tensor(bool)") is np.bool_
    with pytest.raises(pyflame_rt.InputError, match="no input 'Z'; it has X"):
        TypeHelper.get_input_type(session, "Z")
    with pytest.raises(pyflame_rt.InputError, match="no element type for 'tensor.string.'"):
        TypeHelper.ort_type_to_numpy_type("tensor(string)")
    assert os.path.exists(datasets.get_example("sigmoid.onnx"))

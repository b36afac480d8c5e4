# SPDX-License-Identifier: Apache-2.0
import gc
import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pyflame_rt
from conftest import FLOAT, INT64, STRING, field, node, onnx_model, port
from pyflame_rt import DType, OrtValue

A, B = np.array([[1, 2, 3]], np.float32), np.array([[10, 20, 30]], np.float32)
BFLOAT16 = 16
SEQUENCE = field(1, "s") + field(2, field(4, field(1, field(1, field(1, FLOAT)))))  # a sequence of float tensors


def test_a_value_shares_memory_with_numpy():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    value = OrtValue.ortvalue_from_numpy(array)
    assert np.shares_memory(value.numpy(), array) and value.data_ptr() == array.ctypes.data
    assert (value.shape(), value.data_type(), value.element_type()) == ([2, 3], "tensor(float32)", DType.Float32)
    assert (value.device_name(), value.tensor_size_in_bytes()) == ("cpu", 24)
    assert value.is_tensor() and value.has_value() and not value.is_sparse_tensor() and not value.is_tensor_sequence()
    assert repr(value) == "OrtValue(tensor(float32), shape=[2, 3], device='cpu')"
    value.update_inplace(array * 2)
    assert array[1, 2] == 10 and np.asarray(value).sum() == 30
    strided = np.arange(8, dtype=np.float32)[::2]
    assert OrtValue.ortvalue_from_numpy(strided).numpy().tolist() == [0, 2, 4, 6]


def test_values_of_shape_and_type():
    value = OrtValue.ortvalue_from_shape_and_type([2, 3], np.int64)
    assert value.numpy().dtype == np.int64 and value.numpy().tolist() == [[0] * 3] * 2
    half = OrtValue.ortvalue_from_shape_and_type([3], DType.BFloat16)
    assert (half.data_type(), half.tensor_size_in_bytes()) == ("tensor(bfloat16)", 6)
    assert OrtValue.ortvalue_from_shape_and_type([0], np.float32).data_ptr() == 0
    bits = OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([0x3F80], np.uint16), BFLOAT16)
    assert bits.element_type() == DType.BFloat16 and bits.numpy().tolist() == [0x3F80]
    floats = OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([0x3F800000], np.uint32), FLOAT)
    assert floats.numpy().tolist() == [1.0]
    with pytest.raises(pyflame_rt.DTypeMismatchError, match="bfloat16, 16 bits"):
        OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([1], np.uint8), BFLOAT16)
    with pytest.raises(pyflame_rt.UnsupportedError, match="session="):
        OrtValue.ortvalue_from_numpy(A, "wse")
    for make in (lambda: OrtValue.ortvalue_from_numpy(A, "cpu", 1),
                 lambda: OrtValue.ortvalue_from_shape_and_type([1], np.float32, "cpu", 1)):
        with pytest.raises(pyflame_rt.UnsupportedError, match="use device 0"):
            make()


def test_update_inplace_says_what_is_wrong():
    value = OrtValue.ortvalue_from_numpy(A.copy())
    with pytest.raises(pyflame_rt.ShapeMismatchError, match=r"\[1, 3\], the array \[3\]"):
        value.update_inplace(A[0])
    with pytest.raises(pyflame_rt.DTypeMismatchError, match="float64"):
        value.update_inplace(A.astype(np.float64))
    frozen = A.copy()
    frozen.flags.writeable = False
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="read-only"):
        OrtValue.ortvalue_from_numpy(frozen).update_inplace(B)
    assert value.numpy().tolist() == A.tolist()


def test_dlpack_both_ways():
    array = np.arange(4, dtype=np.float32)
    value = OrtValue.from_dlpack(array)
    assert np.shares_memory(np.from_dlpack(value), array)
    assert OrtValue.from_dlpack(np.array([1, 0], np.uint8), is_bool_tensor=True).numpy().tolist() == [True, False]
    assert "dltensor" in repr(value.to_dlpack()) and value.__dlpack_device__() == (1, 0)
    with pytest.raises(pyflame_rt.DTypeMismatchError, match="float32"):
        OrtValue.from_dlpack(array, is_bool_tensor=True)


def test_results_go_straight_into_bound_memory(add_model):
    session, out, a = pyflame_rt.InferenceSession(add_model), np.zeros((1, 3), np.float32), A.copy()
    binding = session.io_binding()
    binding.bind_cpu_input("a", a)
    binding.bind_cpu_input("b", B)
    binding.bind_ortvalue_output("y", OrtValue.ortvalue_from_numpy(out))
    session.run_with_iobinding(binding)
    assert out.tolist() == [[11, 22, 33]]
    (value,), (copy,) = binding.get_outputs(), binding.copy_outputs_to_cpu()
    assert value.data_ptr() == out.ctypes.data
    a[:] = 5
    session.run_with_iobinding(binding)
    assert out.tolist() == [[15, 25, 35]] and copy.tolist() == [[11, 22, 33]]
    assert repr(binding) == "IOBinding(inputs=['a', 'b'], outputs=['y'])"


def test_allocated_outputs_are_new_each_run(add_model):
    session, a = pyflame_rt.InferenceSession(add_model), A.copy()
    binding = session.io_binding()
    binding.bind_cpu_input("a", a)
    binding.bind_cpu_input("b", B)
    binding.bind_output("y")
    with pytest.raises(pyflame_rt.InputError, match="'y' has no result yet"):
        binding.get_outputs()
    session.run_with_iobinding(binding, pyflame_rt.RunOptions())
    first = binding.get_outputs()[0].numpy()
    a[:] = 0
    session.run_with_iobinding(binding)
    second = binding.copy_outputs_to_cpu()[0]
    del session, binding
    gc.collect()
    assert first.tolist() == [[11, 22, 33]] and second.tolist() == B.tolist()


def test_memory_by_its_address(add_model):
    session, out = pyflame_rt.InferenceSession(add_model), np.zeros((1, 3), np.float32)
    a = np.ascontiguousarray(A)
    binding = session.io_binding()
    binding.bind_input("a", "cpu", 0, np.float32, [1, 3], a.ctypes.data)
    binding.bind_input("b", device_type="cpu", device_id=0, element_type="float32", shape=(1, 3),
                       buffer_ptr=B.ctypes.data)
    binding.bind_output("y", "cpu", 0, np.float32, [1, 3], out.ctypes.data)
    session.run_with_iobinding(binding)
    assert out.tolist() == [[11, 22, 33]]
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="element_type and shape"):
        binding.bind_output("y", buffer_ptr=out.ctypes.data)
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="address 0"):
        binding.bind_input("a", "cpu", 0, np.float32, [1, 3], 0)
    with pytest.raises(pyflame_rt.UnsupportedError, match="bind_ortvalue_input"):
        binding.bind_input("a", "wse", 0, np.float32, [1, 3], a.ctypes.data)


def two_outputs():
    return onnx_model([node("Neg", ["x"], ["n"]), node("Abs", ["x"], ["a"])], [port("x", FLOAT, ["N"])],
                      [port("n", FLOAT, ["N"]), port("a", FLOAT, ["N"])])


def test_only_what_is_bound_comes_out_in_its_order():
    session = pyflame_rt.InferenceSession(two_outputs())
    binding = session.io_binding()
    binding.bind_cpu_input("x", np.array([-1, 2], np.float32))
    binding.bind_output("a")
    binding.bind_output("n")
    session.run_with_iobinding(binding)
    assert [o.tolist() for o in binding.copy_outputs_to_cpu()] == [[1, 2], [1, -2]]
    binding.clear_binding_outputs()
    binding.bind_output("n")
    session.run_with_iobinding(binding)
    assert [o.tolist() for o in binding.copy_outputs_to_cpu()] == [[1, -2]]
    binding.clear_binding_inputs()
    with pytest.raises(pyflame_rt.InputError, match="not bound: 'x'"):
        session.run_with_iobinding(binding)


def test_a_binding_may_be_bound_anew():
    session, out = pyflame_rt.InferenceSession(two_outputs()), np.zeros(2, np.float32)
    binding = session.io_binding()
    binding.bind_cpu_input("x", np.array([-1, 2], np.float32))
    binding.bind_ortvalue_output("n", OrtValue.ortvalue_from_numpy(out))
    session.run_with_iobinding(binding)
    binding.bind_output("n")
    binding.bind_cpu_input("x", np.array([5, 6, 7], np.float32))
    session.run_with_iobinding(binding)
    assert out.tolist() == [1, -2] and binding.copy_outputs_to_cpu()[0].tolist() == [-5, -6, -7]
    for value in binding.get_outputs():  # results may be inputs of the next run
        binding.bind_ortvalue_input("x", value)
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [5, 6, 7]


def test_mistakes_in_binding_say_what_to_do(add_model):
    session = pyflame_rt.InferenceSession(add_model)
    binding = session.io_binding()
    for bind in (lambda: binding.bind_cpu_input("z", A), lambda: binding.bind_output("z")):
        with pytest.raises(pyflame_rt.InputError, match="'z'"):
            bind()
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="ortvalue_from_numpy"):
        binding.bind_ortvalue_input("a", A)
    frozen = A.copy()
    frozen.flags.writeable = False
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="read-only"):
        binding.bind_ortvalue_output("y", OrtValue.ortvalue_from_numpy(frozen))
    with pytest.raises(pyflame_rt.UnsupportedError, match="tensors of numbers"):
        binding.bind_ortvalue_output("y", OrtValue.ortvalue_from_numpy(np.array(["a"])))
    with pytest.raises(pyflame_rt.NotFoundError, match="no device 'wse'; it uses 'cpu'"):
        binding.bind_output("y", "wse")
    binding.bind_cpu_input("a", A)
    binding.bind_cpu_input("b", B)
    with pytest.raises(pyflame_rt.UnsupportedError, match="use device 0"):
        binding.bind_output("y", "cpu", 1)
    with pytest.raises(pyflame_rt.InputError, match="no output is bound"):
        session.run_with_iobinding(binding)
    binding.bind_ortvalue_output("y", OrtValue.ortvalue_from_shape_and_type([2, 3]))
    with pytest.raises(pyflame_rt.PyFlameRTError, match="'y'"):
        session.run_with_iobinding(binding)
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="another session"):
        pyflame_rt.InferenceSession(add_model).run_with_iobinding(binding)


def test_values_feed_runs_and_come_from_them(add_model):
    session = pyflame_rt.InferenceSession(add_model)
    feeds = {"a": OrtValue.ortvalue_from_numpy(A), "b": OrtValue.ortvalue_from_numpy(B)}
    for names in (["y"], None, ["y", "y"]):
        values = session.run_with_ort_values(names, feeds)
        assert [v.numpy().tolist() for v in values] == [[[11, 22, 33]]] * len(names or "1")
    assert session.run(None, {"a": feeds["a"], "b": B})[0].tolist() == [[11, 22, 33]]
    again = session.run_with_ort_values(None, {"a": values[0], "b": values[0]})
    assert again[0].numpy().tolist() == [[22, 44, 66]]


def test_strings_sequences_and_short_floats():
    model = onnx_model([node("SequenceConstruct", ["x", "x"], ["s"]), node("Identity", ["t"], ["u"]),
                        node("Cast", ["h"], ["f"], to=FLOAT)],
                       [port("x", FLOAT, ["N"]), port("t", STRING, ["N"]), port("h", BFLOAT16, ["N"])],
                       [port("u", STRING, ["N"]), port("f", FLOAT, ["N"])])
    options = pyflame_rt.SessionOptions()
    options.extra_outputs = ["s"]
    session = pyflame_rt.InferenceSession(model, options)
    feeds = {"x": OrtValue.ortvalue_from_numpy(np.array([1, 2], np.float32)),
             "t": OrtValue.ortvalue_from_numpy(np.array(["a", "déjà"])),
             "h": OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([0x3F80, 0xC000], np.uint16), BFLOAT16)}
    u, f, s = session.run_with_ort_values(None, feeds)
    assert u.numpy().tolist() == ["a", "déjà"] and f.numpy().tolist() == [1.0, -2.0]
    assert s.is_tensor_sequence() and s.data_type() == "seq(tensor(float32))" and repr(s).startswith("OrtValue(seq")
    counted = onnx_model([node("SequenceLength", ["s"], ["n"])], [SEQUENCE], [port("n", INT64, [])])
    assert pyflame_rt.InferenceSession(counted).run(None, {"s": s})[0] == 2
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="no shape"):
        s.shape()
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="only tensors"):
        s.numpy()


def test_sparse_values():
    sparse = pyflame_rt.SparseTensor(np.array([5, 7], np.float32), np.array([[0, 1], [2, 0]]), (3, 2))
    value = OrtValue.ort_value_from_sparse_tensor(sparse)
    assert value.is_sparse_tensor() and value.shape() == [3, 2] and value.data_type() == "sparse_tensor(float32)"
    assert value.as_sparse_tensor().indices.tolist() == [[0, 1], [2, 0]]


# The device of the library's own tests: it computes Add, and its memory may not be touched by the host.
@pytest.mark.parametrize("package", ["pyflame_rt", "pyflame_rt.onnxruntime"])
def test_arrays_and_values_in_two_arguments(add_model, package):
    module = importlib.import_module(package)
    session = module.InferenceSession(add_model)
    a, out = np.array([[1, 2, 3]], np.float32), np.zeros((1, 3), np.float32)
    binding = session.io_binding()
    binding.bind_input("a", a)
    binding.bind_input("b", module.OrtValue.ortvalue_from_numpy(a))
    binding.bind_output("y", out)
    session.run_with_iobinding(binding)
    assert out.tolist() == [[2, 4, 6]] and binding.get_outputs()[0].numpy().tolist() == [[2, 4, 6]]
    a[0, 0] = 5  # read at each run
    value = module.OrtValue.ortvalue_from_shape_and_type([1, 3], np.float32)
    binding.bind_output("y", value)
    binding.bind_input(name="b", device_type=np.ones((1, 3), np.float32))
    session.run_with_iobinding(binding)
    assert value.numpy().tolist() == [[6, 3, 4]] and out.tolist() == [[2, 4, 6]]


def test_tensors_in_two_arguments(add_model):
    session = pyflame_rt.InferenceSession(add_model)
    a, out = pyflame_rt.from_numpy(np.ones((2, 3), np.float32)), pyflame_rt.Tensor([2, 3])
    binding = session.io_binding()
    binding.bind_input("a", a)
    binding.bind_input("b", a)
    binding.bind_output("y", out)
    session.run_with_iobinding(binding)
    assert out.numpy().tolist() == [[2, 2, 2]] * 2


def test_what_cannot_be_bound_in_two_arguments(add_model):
    binding = pyflame_rt.InferenceSession(add_model).io_binding()
    a = np.ones((1, 3), np.float32)
    with pytest.raises(pyflame_rt.InvalidArgumentError, match=r"'a' on 'cpu'.*bind_input\('a', array\)"):
        binding.bind_input("a", "cpu")
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="says type, shape and address itself"):
        binding.bind_input("a", a, shape=[1, 3])
    with pytest.raises(pyflame_rt.InputError, match="no input 'z'"):
        binding.bind_input("z", a)
    for what in ([[1.0, 2, 3]], np.ones((3, 2), np.float32).T, np.ones((1, 3), ">f4")):
        with pytest.raises(pyflame_rt.InvalidArgumentError, match=r"row-major NumPy arrays.*numpy.empty"):
            binding.bind_output("y", what)
    a.flags.writeable = False
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="read-only"):
        binding.bind_output("y", a)


DEVICE = """
import sys, numpy as np, pyflame_rt
from pyflame_rt import OrtValue
session = pyflame_rt.InferenceSession(sys.argv[1], providers=["DeviceExecutionProvider", "CPUExecutionProvider"])
a = OrtValue.ortvalue_from_numpy(np.array([[1, 2, 3]], np.float32), "device", session=session)
assert (a.device_name(), a.shape(), a.numpy().tolist()) == ("device", [1, 3], [[1, 2, 3]])
binding = session.io_binding()
binding.bind_ortvalue_input("a", a)
binding.bind_ortvalue_input("b", a)
binding.bind_output("y", "device")
session.run_with_iobinding(binding)
y, = binding.get_outputs()
assert y.device_name() == "device" and binding.copy_outputs_to_cpu()[0].tolist() == [[2, 4, 6]]
try: y.to_dlpack()
except pyflame_rt.UnsupportedError as fault: assert "'device'" in str(fault)
binding.bind_ortvalue_input("b", y)  # stays where it is
out = OrtValue.ortvalue_from_shape_and_type([1, 3], np.float32, "device", session=session)
binding.bind_ortvalue_output("y", out)
session.run_with_iobinding(binding)
assert out.numpy().tolist() == [[3, 6, 9]]
out.update_inplace(np.array([[7, 7, 7]], np.float32))
assert session.run(None, {"a": out, "b": y})[0].tolist() == [[9, 11, 13]]
print("right")
"""


def test_a_device_s_memory(add_model, tmp_path):
    library = Path(os.environ.get("PYFLAME_RT_LIBRARY", ""))
    plugins = library.parents[1] / "test" / "plugins" / "device" / "lib" if library.name else Path()
    if not list(plugins.glob("libpyflamert_provider_device.so")):
        pytest.skip("the library's tests are not built beside it")
    file = tmp_path / "add.onnx"
    file.write_bytes(add_model)
    environment = {**os.environ, "PYTHONPATH": str(Path(pyflame_rt.__file__).parents[1]),
                   "PFRT_PLUGIN_PATH": str(plugins)}
    done = subprocess.run([sys.executable, "-c", DEVICE, str(file)], capture_output=True, text=True, timeout=60,
                          env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "right\n", "")

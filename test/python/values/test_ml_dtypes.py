# SPDX-License-Identifier: Apache-2.0
"""Element types that NumPy lacks, with the package ml_dtypes and without it."""
import subprocess
import sys

import numpy as np
import pytest
from conftest import node, onnx_model, port
from custom_models import build, session_of

import pyflame_rt
from pyflame_rt import Backend, BackendRegistry, DType, Tensor, custom
from pyflame_rt import onnxruntime as ort
from pyflame_rt._values.dtype import TO_ABI

NAMES = {DType.BFloat16: "bfloat16", DType.Float8E4M3FN: "float8_e4m3fn", DType.Float8E4M3FNUZ: "float8_e4m3fnuz",
         DType.Float8E5M2: "float8_e5m2", DType.Float8E5M2FNUZ: "float8_e5m2fnuz", DType.Float8E8M0: "float8_e8m0fnu",
         DType.Float4E2M1: "float4_e2m1fn", DType.UInt4: "uint4", DType.Int4: "int4", DType.UInt2: "uint2",
         DType.Int2: "int2"}


def same(dtype, dims=("N", "M")):
    """y = x, of an element type."""
    return onnx_model([node("Identity", ["x"], ["y"])], [port("x", TO_ABI[dtype], dims)],
                      [port("y", TO_ABI[dtype], dims)], opset=25)


@pytest.fixture
def ml():
    return pytest.importorskip("ml_dtypes")


@pytest.fixture(params=NAMES, ids=NAMES.values())
def typed(request, ml):
    """A DType and an array of it whose elements do not fill their last byte where they are packed."""
    values = np.array([[1, 2, 0, 1, 3], [3, 2, 1, 0, 2], [2, 1, 3, 0, 1]])
    if NAMES[request.param] == "int2":
        values = values - 2
    return request.param, values.astype(getattr(ml, NAMES[request.param]))


def alike(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_a_run_takes_and_gives_arrays(typed):
    dtype, array = typed
    for dims in (("N", "M"), (3, 5)):
        session = pyflame_rt.InferenceSession(same(dtype, dims))
        for fed in (array, array[::-1], np.asfortranarray(array), pyflame_rt.from_numpy(array), array):
            (got,) = session.run(None, {"x": fed})
            assert alike(got, np.ascontiguousarray(fed.numpy() if isinstance(fed, Tensor) else fed))
    assert alike(ort.InferenceSession(same(dtype)).run(None, {"x": array})[0], array)


def test_large_results_and_those_without_elements(typed):
    dtype, array = typed
    session = pyflame_rt.InferenceSession(same(dtype))
    large = np.tile(array, (801, 9))
    assert alike(session.run(None, {"x": large})[0], large)
    assert alike(session.run(None, {"x": large[:0]})[0], large[:0])
    assert alike(pyflame_rt.InferenceSession(same(dtype, ())).run(None, {"x": array[0, 0]})[0], array[0, 0].reshape(()))


def test_tensors_share_memory_where_nothing_is_packed(typed):
    dtype, array = typed
    tensor = pyflame_rt.from_numpy(array)
    assert (tensor.dtype, tensor.shape) == (dtype, [3, 5]) and alike(tensor.numpy(), array)
    assert tensor.size_bytes == (15 * dtype.bits + 7) // 8 == tensor.memory().nbytes
    assert np.shares_memory(tensor.numpy(), array) == np.shares_memory(tensor.memory(), array) == (dtype.bits >= 8)
    assert alike(np.asarray(tensor.clone()), array)
    if dtype.bits < 8:
        with pytest.raises(ValueError, match="read-only"):
            tensor.numpy()[0, 0] = array[0, 1]
    else:
        tensor.numpy()[0, 0] = array[0, 1]
        assert array[0, 0] == array[0, 1]
    tensor.zero()
    assert tensor.memory().any() == 0


def test_packed_bytes_are_those_of_the_standard(ml):
    assert pyflame_rt.from_numpy(np.array([1, -2, 3], ml.int4)).memory().tolist() == [0xE1, 0x03]
    assert pyflame_rt.from_numpy(np.array([1, -2, -1, 0, 1], ml.int2)).memory().tolist() == [0b00111001, 1]


def test_dtypes(typed):
    dtype, array = typed
    assert dtype.numpy == array.dtype and Tensor([2], array.dtype).dtype == Tensor([2], array.dtype.type).dtype == dtype


def test_numbers_become_the_models_type(ml):
    session = pyflame_rt.InferenceSession(same(DType.BFloat16))
    (got,) = session.run(None, {"x": [[1.5, 2]]})
    assert alike(got, np.array([[1.5, 2]], ml.bfloat16))
    session = pyflame_rt.InferenceSession(same(DType.Int4))
    assert alike(session.run(None, {"x": [[-8, 7]]})[0], np.array([[-8, 7]], ml.int4))
    with pytest.raises(pyflame_rt.InputError, match="8 is no number of int4"):
        session.run(None, {"x": [[8]]})


def test_another_type_is_refused_by_name(ml):
    session = pyflame_rt.InferenceSession(same(DType.BFloat16))
    with pytest.raises(pyflame_rt.DTypeMismatchError, match=r"expects bfloat16, got int4; .*ml_dtypes\.bfloat16"):
        session.run(None, {"x": np.zeros((2, 2), ml.int4)})
    with pytest.raises(pyflame_rt.DTypeMismatchError, match="expects bfloat16, got uint16"):
        session.run(None, {"x": np.zeros((2, 2), np.uint16)})
    with pytest.raises(pyflame_rt.DTypeMismatchError, match="float8_e3m4 have no element type"):
        session.run(None, {"x": np.zeros((2, 2), ml.float8_e3m4)})


def test_binding(typed):
    dtype, array = typed
    for package in (pyflame_rt, ort):
        session = package.InferenceSession(same(dtype, (3, 5)))
        binding = session.io_binding()
        binding.bind_cpu_input("x", array)
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        assert alike(binding.get_outputs()[0].numpy(), array) and alike(binding.copy_outputs_to_cpu()[0], array)
        out = np.zeros_like(array)
        if dtype.bits < 8:
            with pytest.raises(pyflame_rt.InvalidArgumentError, match="bind a Tensor"):
                binding.bind_output("y", out)
            out = Tensor([3, 5], dtype)
        binding.bind_output("y", out)
        session.run_with_iobinding(binding)
        assert alike(np.asarray(out), array)


def test_values(typed):
    dtype, array = typed
    value = ort.OrtValue.ortvalue_from_numpy(array)
    assert (value.element_type(), value.shape()) == (TO_ABI[dtype], [3, 5]) and alike(value.numpy(), array)
    turned = array[::-1].copy()
    value.update_inplace(turned)
    assert alike(value.numpy(), turned) and alike(array, turned) == (dtype.bits >= 8)
    assert alike(ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, TO_ABI[dtype]).numpy(), array)
    (out,) = pyflame_rt.InferenceSession(same(dtype)).run_with_ort_values(None, {"x": value})
    assert alike(out.numpy(), value.numpy())


def test_sequences(ml):
    model = onnx_model([node("SequenceConstruct", ["x", "x"], ["s"]), node("Identity", ["s"], ["t"]),
                        node("SequenceAt", ["t", "i"], ["y"])],
                       [port("x", 16, ["N"]), port("i", 7, [])], [port("y", 16, ["N"])], opset=25)
    array = np.array([1, 2], ml.bfloat16)
    assert alike(pyflame_rt.InferenceSession(model).run(None, {"x": array, "i": np.int64(1)})[0], array)


def test_constants_of_graphs(typed):
    dtype, array = typed
    graph = pyflame_rt.Graph("constants")
    graph.add_initializer("c", array)
    assert graph.initializer("c").dtype == dtype and alike(graph.initializer("c").numpy(), array)


def test_python_kernels_take_and_give_arrays(typed):
    dtype, array = typed
    seen = []

    def kernel(inputs, attributes):
        seen.append(inputs[0].numpy().copy())
        return [seen[0][::-1]]

    build("Turn", kernel)
    session = session_of("Turn", [port("x", TO_ABI[dtype], ["N", "M"])], [port("y", TO_ABI[dtype], ["N", "M"])])
    try:
        assert alike(session.run(None, {"x": array})[0], np.ascontiguousarray(array[::-1])) and alike(seen[0], array)
    finally:
        custom.CustomOpRegistry.instance().unregister("Turn")


class Backwards(Backend):
    """Gives the rows of its input from the last to the first."""

    def __init__(self, name):
        self.name = name

    def get_supported_ops(self):
        return ["Identity"]

    def execute(self, graph, input_feed, output_names=()):
        return [tensor.numpy()[::-1] for tensor in input_feed.values()]


def test_backends_take_and_give_arrays(typed):
    dtype, array = typed
    BackendRegistry.instance().register_backend(Backwards("backwards_" + dtype.name))
    options = pyflame_rt.SessionOptions()
    options.optimization_level = pyflame_rt.OptLevel.NONE
    session = pyflame_rt.InferenceSession(same(dtype), options, providers=["backwards_" + dtype.name,
                                                                          "CPUExecutionProvider"])
    assert alike(session.run(None, {"x": array})[0], np.ascontiguousarray(array[::-1]))


def run_alone(program):
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_without_the_package_bytes_are_given(tmp_path):
    for dtype in (DType.BFloat16, DType.Int4):
        (tmp_path / f"{dtype.name}.onnx").write_bytes(same(dtype))
    run_alone(f"""
import sys
sys.modules["ml_dtypes"] = None
import numpy as np, pyflame_rt
from pyflame_rt import Backend, BackendRegistry, DType, Tensor, custom
folder = {str(tmp_path)!r}
for dtype, storage, count in ((DType.BFloat16, np.uint16, 15), (DType.Int4, np.uint8, 8)):
    tensor = Tensor([3, 5], dtype)
    tensor.numpy().reshape(-1)[:] = range(1, count + 1)
    assert dtype.numpy is None and tensor.numpy() is tensor.memory()
    session = pyflame_rt.InferenceSession(folder + "/" + dtype.name + ".onnx")
    for _ in range(2):
        got, = session.run(None, {{"x": tensor}})
        assert got.dtype == storage and got.reshape(-1).tolist() == list(range(1, count + 1)), got
    try:
        session.run(None, {{"x": np.zeros((3, 5), storage)}})
    except pyflame_rt.DTypeMismatchError:
        continue
    raise AssertionError("bytes are taken for elements")
""")


def test_programs_of_numpys_types_do_not_import_it(digits):
    run_alone(f"""
import sys
import numpy as np, pyflame_rt
session = pyflame_rt.InferenceSession({digits!r})
session.run(None, {{"image": np.zeros((1, 1, 8, 8), np.float32)}})
assert "ml_dtypes" not in sys.modules
""")

# SPDX-License-Identifier: Apache-2.0
"""Programs that keep values in OrtValues and bind them."""
import numpy as np
import pytest

from ort_models import ADD, LINEAR, NEG_ABS, SEQUENCE, floats, open_session, ort, row


def test_a_value_from_an_array():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    value = ort.OrtValue.ortvalue_from_numpy(array)
    assert value.device_name() == "cpu" and value.shape() == [2, 3] and value.has_value()
    assert value.data_type() == "tensor(float)" and value.element_type() == 1
    assert np.array_equal(value.numpy(), array)


def test_a_value_says_what_kind_it_is():
    value = ort.OrtValue.ortvalue_from_numpy(floats(1), "cpu", 0)
    assert (value.is_tensor(), value.is_sparse_tensor(), value.is_tensor_sequence()) == (True, False, False)


def test_a_value_of_a_shape_and_type():
    value = ort.OrtValue.ortvalue_from_shape_and_type([3, 2], np.int64, "cpu", 0)
    assert value.shape() == [3, 2] and value.data_type() == "tensor(int64)" and value.element_type() == 7
    assert value.data_ptr() != 0 and value.numpy().dtype == np.int64


def test_a_value_of_a_type_that_numpy_lacks():
    bits = np.array([0x3F80, 0xC000], np.uint16)
    value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16)
    assert value.element_type() == 16 and value.data_type() == "tensor(bfloat16)" and value.shape() == [2]


def test_a_value_is_written_to():
    value = ort.OrtValue.ortvalue_from_numpy(np.zeros((2, 2), np.float32))
    value.update_inplace(np.array([[1, 2], [3, 4]], np.float32))
    assert value.numpy().tolist() == [[1, 2], [3, 4]]
    with pytest.raises((RuntimeError, ValueError)):
        value.update_inplace(floats(1))


def test_a_value_goes_by_dlpack():
    array = row(1, 2, 3)
    value = ort.OrtValue.ortvalue_from_numpy(array)
    assert value.__dlpack_device__() == (1, 0)
    for source in (value, value.__dlpack__(), value._ortvalue.to_dlpack(), array, array.__dlpack__()):
        again = ort.OrtValue.from_dlpack(source)
        assert again.data_ptr() == array.ctypes.data and again.numpy().tolist() == [[1, 2, 3]]
    for shape in ((0,), (1, 8, 0, 128)):
        value = ort.OrtValue.from_dlpack(np.zeros(shape, np.float32).__dlpack__())
        assert value.shape() == list(shape)


def test_booleans_go_by_dlpack():
    value = ort.OrtValue.ortvalue_from_numpy(np.array([True, False]))
    assert ort.OrtValue.from_dlpack(value).numpy().tolist() == [True, False]
    value = ort.OrtValue.from_dlpack(np.array([1, 255], np.uint8))
    assert value.data_type() == "tensor(uint8)" and value.numpy().tolist() == [1, 255]


def test_a_value_is_an_array_where_numpy_takes_one():
    array = row(1, 2)
    value = ort.OrtValue.ortvalue_from_numpy(array)
    assert np.asarray(value).ctypes.data == array.ctypes.data
    assert np.asarray(value, dtype=np.float64).tolist() == [[1, 2]]


def test_a_value_is_fed_like_an_array():
    value = ort.OrtValue.ortvalue_from_numpy(row(1, 2, 3))
    assert open_session(ADD).run(["y"], {"a": value, "b": row(1, 1, 1)})[0].tolist() == [[2, 3, 4]]


def test_from_values_to_values():
    session = open_session(NEG_ABS)
    value, = session.run_with_ort_values(["n"], {"x": ort.OrtValue.ortvalue_from_numpy(floats(-1, 2))})
    assert value.numpy().tolist() == [1, -2] and value.is_tensor()
    both = session.run_with_ort_values(["a", "n"], {"x": value})
    assert [out.numpy().tolist() for out in both] == [[1, 2], [-1, 2]]


def test_a_value_of_a_sequence():
    feeds = {"a": ort.OrtValue.ortvalue_from_numpy(floats(1)), "b": ort.OrtValue.ortvalue_from_numpy(floats(2))}
    value, = open_session(SEQUENCE).run_with_ort_values(["s"], feeds)
    assert value.is_tensor_sequence() and value.data_type() == "seq(tensor(float))"


def test_a_sparse_tensor():
    device = ort.OrtDevice.make("cpu", 0)
    sparse = ort.SparseTensor.sparse_coo_from_numpy(np.array([3, 4], np.int64), floats(5, 7),
                                                    np.array([1, 11], np.int64), device)
    assert sparse.format() == ort.OrtSparseFormat.ORT_SPARSE_COO and list(sparse.dense_shape()) == [3, 4]
    assert sparse.values().tolist() == [5, 7] and sparse.data_type() == "sparse_tensor(float)"
    view = sparse.as_coo_view()
    assert view.indices().tolist() == [1, 11] and sparse.device_name() == "cpu"
    assert not sparse.values().flags.writeable and not view.indices().flags.writeable
    with pytest.raises(RuntimeError):
        sparse.as_csrc_view()
    with pytest.raises(RuntimeError):
        sparse.to_cuda(ort.OrtDevice.make("cuda", 0))


def test_a_sparse_tensor_by_rows():
    device = ort.OrtDevice.make("cpu", 0)
    sparse = ort.SparseTensor.sparse_csr_from_numpy([3, 4], floats(5, 7, 9), np.array([1, 3, 0], np.int64),
                                                    np.array([0, 2, 2, 3], np.int64), device)
    assert sparse.format() == ort.OrtSparseFormat.ORT_SPARSE_CSRC and sparse.dense_shape() == [3, 4]
    assert sparse.values().tolist() == [5, 7, 9]
    view = sparse.as_csrc_view()
    assert view.inner().tolist() == [1, 3, 0] and view.outer().tolist() == [0, 2, 2, 3]
    words = ort.SparseTensor.sparse_csr_from_numpy([1, 2], np.array(["a", "b"]), np.array([0, 1], np.int64),
                                                   np.array([0, 2], np.int64), device)
    assert words.values().tolist() == ["a", "b"] and words.data_type() == "sparse_tensor(string)"
    with pytest.raises(RuntimeError):
        sparse.as_coo_view()


def test_a_sparse_tensor_as_a_value():
    sparse = ort.SparseTensor.sparse_coo_from_numpy(np.array([2, 2], np.int64), floats(1, 2),
                                                    np.array([0, 0, 1, 1], np.int64), ort.OrtDevice.make("cpu", 0))
    value = ort.OrtValue.ort_value_from_sparse_tensor(sparse)
    assert value.is_sparse_tensor() and value.shape() == [2, 2] and value.data_type() == "sparse_tensor(float)"
    assert value.as_sparse_tensor().values().tolist() == [1, 2]


def test_a_device():
    device = ort.OrtDevice.make("cpu", 0)
    assert device.device_id() == 0 and device.device_type() == 0 and device.device_mem_type() == 0
    assert device.device_vendor_id() == ort.OrtDeviceVendorId.NONE
    device = ort.OrtDevice.make("cuda", 0)
    assert device.device_vendor_id() == ort.OrtDeviceVendorId.NVIDIA == 0x10DE


def bound(session, **inputs):
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_cpu_input(name, array)
    return binding


def test_outputs_that_are_allocated():
    session = open_session(ADD)
    binding = bound(session, a=row(1, 2, 3), b=row(1, 1, 1))
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [[2, 3, 4]]
    assert [value.numpy().tolist() for value in binding.get_outputs()] == [[[2, 3, 4]]]


def test_an_output_goes_where_it_is_bound_to():
    session = open_session(ADD)
    value = ort.OrtValue.ortvalue_from_shape_and_type([1, 3], np.float32)
    binding = bound(session, a=row(1, 2, 3), b=row(1, 1, 1))
    binding.bind_ortvalue_output("y", value)
    session.run_with_iobinding(binding, ort.RunOptions())
    assert value.numpy().tolist() == [[2, 3, 4]]
    assert binding.get_outputs()[0].data_ptr() == value.data_ptr()


def test_an_input_value_is_updated_between_runs():
    session = open_session(LINEAR)
    value = ort.OrtValue.ortvalue_from_numpy(np.zeros((1, 3), np.float32))
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_output("y", "cpu", 0)
    seen = []
    for n in (0, 1, 2):
        value.update_inplace(np.full((1, 3), n, np.float32))
        binding.synchronize_inputs()
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        seen.append(binding.copy_outputs_to_cpu()[0].tolist())
    assert seen == [[[10, 20]], [[19, 32]], [[28, 44]]]


def test_memory_bound_by_its_address():
    session, a, out = open_session(ADD), row(1, 2, 3), np.zeros((1, 3), np.float32)
    binding = bound(session, b=row(1, 1, 1))
    binding.bind_input(name="a", device_type="cpu", device_id=0, element_type=np.float32, shape=a.shape,
                       buffer_ptr=a.ctypes.data)
    binding.bind_output("y", "cpu", 0, np.float32, out.shape, out.ctypes.data)
    session.run_with_iobinding(binding)
    assert out.tolist() == [[2, 3, 4]]


def test_results_are_fed_back():
    session = open_session(ADD)
    binding = bound(session, a=row(0, 0, 0), b=row(1, 2, 3))
    for _ in range(5):
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        binding.bind_ortvalue_input("a", binding.get_outputs()[0])
        binding.clear_binding_outputs()
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [[6, 12, 18]]


def test_some_outputs_are_bound():
    session = open_session(NEG_ABS)
    binding = bound(session, x=floats(-1, 2))
    binding.bind_output("a")
    session.run_with_iobinding(binding)
    assert [out.tolist() for out in binding.copy_outputs_to_cpu()] == [[1, 2]]


def test_a_binding_is_cleared():
    session = open_session(NEG_ABS)
    binding = bound(session, x=floats(-1, 2))
    binding.clear_binding_inputs()
    binding.bind_cpu_input("x", floats(5, 6, 7))
    binding.bind_output("n")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [-5, -6, -7]

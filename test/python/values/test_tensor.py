# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import pyflame_rt
from pyflame_rt import DType, Tensor


def test_dtypes_are_numbered_as_in_the_guide():
    names = ["Float32", "Float16", "BFloat16", "Float64", "Int64", "Int32", "Int16", "Int8", "UInt8", "Bool"]
    assert [DType[name].value for name in names] == list(range(10))
    assert str(DType.Float32) == "DType.Float32" and f"{DType.Bool}" == "DType.Bool"


def test_properties():
    tensor = pyflame_rt.from_numpy(np.zeros((2, 3, 4), dtype=np.float32))
    assert (tensor.shape, tensor.dtype, tensor.ndim) == ([2, 3, 4], DType.Float32, 3)
    assert (tensor.num_elements, tensor.size_bytes, tensor.is_valid, tensor.owns_data) == (24, 96, True, True)
    assert repr(tensor) == "Tensor(shape=[2, 3, 4], dtype=DType.Float32)"


def test_shares_memory_with_numpy():
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    tensor = pyflame_rt.from_numpy(array)
    array[0, 0] = 9
    assert tensor.numpy()[0, 0] == 9 and tensor.numpy() is array
    copy = tensor.clone()
    tensor.zero()
    assert array.sum() == 0 and copy.numpy()[0, 0] == 9
    assert pyflame_rt.to_numpy(copy) is copy.numpy()


def test_reshape_is_a_view():
    tensor = Tensor([2, 3, 4], DType.Float32)
    flat = tensor.reshape([6, -1])
    flat.numpy()[5, 3] = 1
    assert flat.shape == [6, 4] and tensor.numpy()[1, 2, 3] == 1
    for shape in ([5, 5], [-1, -1], [-1, 7]):
        with pytest.raises(ValueError, match="24 elements"):
            tensor.reshape(shape)


def test_every_dtype_has_memory():
    for dtype in DType:
        tensor = Tensor([3, 5], dtype)
        assert tensor.dtype == dtype and tensor.num_elements == 15
        if dtype != DType.String:
            assert tensor.size_bytes == (15 * dtype.bits + 7) // 8
    assert Tensor([2], DType.String).numpy().tolist() == ["", ""]
    with pytest.raises(ValueError, match="negative"):
        Tensor([2, -1])


def test_dlpack_both_ways():
    array = np.arange(4, dtype=np.float32)
    tensor = pyflame_rt.from_dlpack(array)
    assert np.shares_memory(tensor.numpy(), array)
    assert np.shares_memory(np.from_dlpack(tensor), array)


def test_tensor_info():
    info = pyflame_rt.TensorInfo()
    info.name, info.dtype = "input", DType.Float32
    assert info.is_dynamic()
    info.shape = [1, 3, None]
    assert info.is_dynamic()
    info.shape = [1, 3, 224]
    assert not info.is_dynamic()


def test_version_is_the_library_s():
    assert pyflame_rt.__version__.count(".") == 2

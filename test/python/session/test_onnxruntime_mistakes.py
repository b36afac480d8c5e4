# SPDX-License-Identifier: Apache-2.0
"""What is answered by ONNX Runtime's names where ONNX Runtime itself answers something else: mistakes, above all."""
import numpy as np
import pytest

import pyflame_rt.onnxruntime as ort
from conftest import FLOAT, node, onnx_model, port
from pyflame_rt.onnxruntime.capi import onnxruntime_pybind11_state as state

ADD = onnx_model([node("Add", ["a", "b"], ["y"])], [port("a", FLOAT, ["N", 3]), port("b", FLOAT, ["N", 3])],
                 [port("y", FLOAT, ["N", 3])])


def floats(*values):
    return np.array(values, np.float32)


def written(path, parameters):
    adapter_format = ort.AdapterFormat()
    adapter_format.set_parameters({name: ort.OrtValue.ortvalue_from_numpy(value) for name, value in parameters.items()})
    adapter_format.export_adapter(str(path))
    adapter = ort.LoraAdapter()
    adapter.Load(str(path))
    return adapter


def test_adapters_feed_every_kind_of_run(tmp_path):
    session, run_options = ort.InferenceSession(ADD), ort.RunOptions()
    run_options.add_active_adapter(written(tmp_path / "adapter", {"b": floats(1, 2, 3).reshape(1, 3)}))
    value = ort.OrtValue.ortvalue_from_numpy(np.ones((1, 3), np.float32))
    assert session.run(None, {"a": value}, run_options)[0].tolist() == [[2, 3, 4]]
    assert session.run(None, {"a": value, "b": np.zeros((1, 3), np.float32)}, run_options)[0].tolist() == [[1, 1, 1]]
    assert session.run_with_ort_values(None, {"a": value}, run_options)[0].numpy().tolist() == [[2, 3, 4]]
    binding = session.io_binding()
    binding.bind_ortvalue_input("a", value)
    with pytest.raises(NotImplementedError, match="bind its tensors"):
        session.run_with_iobinding(binding, run_options)
    with pytest.raises(ValueError, match="is no LoraAdapter"):
        run_options.add_active_adapter({"b": value})


def test_tensors_of_adapters_may_be_of_no_size_and_no_rank(tmp_path):
    parameters = {"none": np.zeros((0, 3), np.float64), "scalar": np.array(5, np.int32), "flags": np.array([True, False])}
    found = written(tmp_path / "adapter", parameters)._parameters
    assert {name: value.numpy().tolist() for name, value in found.items()} == {
        name: value.tolist() for name, value in parameters.items()}
    for wrong in ({"text": ort.OrtValue.ortvalue_from_numpy(np.array(["a"]))}, {"array": floats(1)}):
        with pytest.raises(state.InvalidArgument, match="of a tensor of numbers in host memory"):
            ort.AdapterFormat().set_parameters(wrong)


def test_bytes_are_told_from_other_capsules():
    assert state.is_dlpack_uint8_tensor(np.array([1], np.uint8).__dlpack__())
    assert not state.is_dlpack_uint8_tensor(floats(1).__dlpack__())
    with pytest.raises(state.InvalidArgument, match="is no capsule with a tensor of DLPack"):
        state.is_dlpack_uint8_tensor(3)


def test_an_initializer_needs_a_name():
    with pytest.raises(state.InvalidArgument, match="given once"):
        ort.SessionOptions().add_initializer("", ort.OrtValue.ortvalue_from_numpy(floats(1)))


def test_an_adapter_for_another_model(tmp_path):
    run_options = ort.RunOptions()
    run_options.add_active_adapter(written(tmp_path / "adapter", {"elsewhere": floats(1, 2)}))
    with pytest.raises(state.InvalidArgument, match="elsewhere"):
        ort.InferenceSession(ADD).run(None, {"a": np.ones((1, 3), np.float32)}, run_options)


def test_files_that_are_no_adapters(tmp_path):
    written(tmp_path / "adapter", {"bias": floats(1, 2), "other": floats(1, 2, 3).reshape(1, 3)})
    whole = (tmp_path / "adapter").read_bytes()
    for cut in (*range(0, len(whole), 3), len(whole) - 1):
        (tmp_path / "cut").write_bytes(whole[:cut])
        with pytest.raises((RuntimeError, ValueError)):
            ort.LoraAdapter().Load(str(tmp_path / "cut"))
    with pytest.raises((RuntimeError, OSError)):
        ort.LoraAdapter().Load(str(tmp_path / "nowhere"))
    with pytest.raises((RuntimeError, OSError)):
        ort.AdapterFormat().export_adapter(str(tmp_path / "no folder" / "adapter"))


def test_changed_adapters_are_read_or_refused(tmp_path):
    written(tmp_path / "adapter", {"bias": floats(1, 2)})
    whole = (tmp_path / "adapter").read_bytes()
    for at in range(len(whole)):
        for value in (0, 127, 255):
            (tmp_path / "changed").write_bytes(whole[:at] + bytes([value]) + whole[at + 1:])
            try:
                ort.AdapterFormat.read_adapter(str(tmp_path / "changed"))
            except (RuntimeError, ValueError):
                pass


@pytest.mark.parametrize("providers, options", [
    (3, None), ([3], None), (["CPUExecutionProvider"], 3), (["CPUExecutionProvider"], ["no dict"]),
    (["CPUExecutionProvider"], {"a": 1}), ([("CPUExecutionProvider", {"a": 1})], [{"b": 2}])])
def test_providers_that_are_none(providers, options):
    with pytest.raises(ValueError):
        ort.InferenceSession(ADD, providers=providers, provider_options=options)


@pytest.mark.parametrize("inner, outer", [([1, 3], [0, 2, 3]), ([1, 3, 0], [0, 2]), ([1, 3, 0], [1, 2, 3]),
                                          ([1, 3, 0], [0, 2, 2]), ([1, 4, 0], [0, 2, 3]), ([1, 3, 0], [0, 5, 3])])
def test_rows_that_do_not_fit(inner, outer):
    with pytest.raises((RuntimeError, ValueError)):
        ort.SparseTensor.sparse_csr_from_numpy([2, 4], floats(5, 7, 9), np.array(inner, np.int64),
                                               np.array(outer, np.int64), ort.OrtDevice.make("cpu", 0))


def test_a_capsule_of_dlpack_is_taken_once():
    capsule = floats(1, 2).__dlpack__()
    assert state.OrtValue.from_dlpack(capsule, False).numpy().tolist() == [1, 2]
    for use in (state.is_dlpack_uint8_tensor, lambda taken: state.OrtValue.from_dlpack(taken, False)):
        with pytest.raises(RuntimeError):
            use(capsule)

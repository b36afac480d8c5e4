# SPDX-License-Identifier: Apache-2.0
"""Programs that run models with adapters."""
import numpy as np
import pytest

from ort_models import LINEAR, floats, open_session, ort, row, state


def written(path, parameters):
    adapter_format = ort.AdapterFormat()
    adapter_format.set_adapter_version(3)
    adapter_format.set_model_version(7)
    adapter_format.set_parameters({name: ort.OrtValue.ortvalue_from_numpy(value) for name, value in parameters.items()})
    adapter_format.export_adapter(str(path))
    adapter = ort.LoraAdapter()
    adapter.Load(str(path))
    return adapter


def test_an_adapter_is_read_as_it_was_written(tmp_path):
    parameters = {"bias": floats(1, 2), "a name that is long enough": np.arange(10).reshape(2, 5),
                  "none": np.zeros((0, 3), np.float64), "scalar": np.array(5, np.int32)}
    written(tmp_path / "adapter", parameters)
    adapter_format = ort.AdapterFormat.read_adapter(str(tmp_path / "adapter"))
    assert (adapter_format.get_adapter_version(), adapter_format.get_model_version()) == (3, 7)
    found = adapter_format.get_parameters()
    assert sorted(found) == sorted(parameters)
    for name, wanted in parameters.items():
        assert found[name].shape() == list(wanted.shape) and found[name].numpy().dtype == wanted.dtype
        assert np.array_equal(found[name].numpy(), wanted)


def test_a_run_with_an_adapter(tmp_path):
    session, run_options = open_session(LINEAR), ort.RunOptions()
    run_options.add_active_adapter(written(tmp_path / "adapter", {"bias": floats(1, 2)}))
    assert session.run(None, {"x": row(1, 1, 1)}, run_options)[0].tolist() == [[10, 14]]
    assert session.run(None, {"x": row(1, 1, 1)})[0].tolist() == [[19, 32]]
    value = session.run_with_ort_values(None, {"x": ort.OrtValue.ortvalue_from_numpy(row(1, 1, 1))}, run_options)[0]
    assert value.numpy().tolist() == [[10, 14]]


def test_an_adapter_for_another_model(tmp_path):
    run_options = ort.RunOptions()
    run_options.add_active_adapter(written(tmp_path / "adapter", {"elsewhere": floats(1, 2)}))
    with pytest.raises(state.InvalidArgument, match="elsewhere"):
        open_session(LINEAR).run(None, {"x": row(1, 1, 1)}, run_options)


def test_files_that_are_no_adapters(tmp_path):
    written(tmp_path / "adapter", {"bias": floats(1, 2), "other": row(1, 2, 3)})
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

# SPDX-License-Identifier: Apache-2.0
"""Programs that run models with adapters."""
import numpy as np

from ort_models import LINEAR, floats, open_session, ort, row


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
                  "double": np.array([[5]], np.float64)}
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
    adapter = written(tmp_path / "adapter", {"bias": floats(1, 2)})
    run_options.add_active_adapter(adapter)
    assert session.run(None, {"x": row(1, 1, 1)}, run_options)[0].tolist() == [[10, 14]]
    assert session.run(None, {"x": row(1, 1, 1)})[0].tolist() == [[19, 32]]

# SPDX-License-Identifier: Apache-2.0
"""Programs that open models and ask about them."""
import pathlib

import numpy as np
import pytest

from ort_models import (ABOUT, ADD, CPU, DIGITS, LINEAR, MATMUL, NEG_ABS, SEQUENCE, SQUARE, STRINGS, open_session, ort,
                        row, state)


def test_a_model_by_its_path():
    session = ort.InferenceSession(DIGITS, providers=["CPUExecutionProvider"])
    probabilities = session.run(None, {"image": np.zeros((1, 1, 8, 8), np.float32)})[0]
    assert probabilities.shape == (1, 10) and abs(probabilities.sum() - 1) < 1e-5


def test_a_model_by_a_path_object():
    session = ort.InferenceSession(pathlib.Path(DIGITS), providers=CPU)
    assert session.run(["probabilities"], {"image": np.ones((2, 1, 8, 8), np.float32)})[0].shape == (2, 10)


def test_a_model_from_memory():
    session = ort.InferenceSession(ADD, sess_options=ort.SessionOptions(), providers=CPU)
    assert session.run(None, {"a": row(1, 2, 3), "b": row(1, 1, 1)})[0].tolist() == [[2, 3, 4]]


def test_names_shapes_and_types_of_inputs():
    session = open_session(ADD)
    assert [arg.name for arg in session.get_inputs()] == ["a", "b"]
    arg = session.get_inputs()[0]
    assert arg.shape == ["N", 3] and arg.type == "tensor(float)"
    assert str(arg) == "NodeArg(name='a', type='tensor(float)', shape=['N', 3])"


def test_names_shapes_and_types_of_outputs():
    session = open_session(NEG_ABS)
    assert {arg.name: (arg.shape, arg.type) for arg in session.get_outputs()} == {
        "n": (["N"], "tensor(float)"), "a": (["N"], "tensor(float)")}


def test_types_have_onnx_s_names():
    for model, wanted in ((SQUARE, "tensor(double)"), (STRINGS, "tensor(string)")):
        session = open_session(model)
        assert [arg.type for arg in session.get_inputs() + session.get_outputs()] == [wanted, wanted]
    session = open_session(SEQUENCE)
    for arg in session.get_outputs():
        assert arg.type == "seq(tensor(float))" and arg.shape == []


def test_feeds_made_from_what_the_model_says():
    session = open_session(MATMUL)
    sizes = {"M": 2, "K": 3, "N": 2}
    feeds = {}
    for arg in session.get_inputs():
        assert arg.type == "tensor(float)"
        feeds[arg.name] = np.ones([sizes.get(dim, dim) for dim in arg.shape], np.float32)
    assert session.run([arg.name for arg in session.get_outputs()], feeds)[0].tolist() == [[3, 3], [3, 3]]


def test_what_a_model_says_of_itself():
    meta = open_session(ABOUT).get_modelmeta()
    assert (meta.producer_name, meta.graph_name, meta.domain, meta.version) == ("the tests", "about", "org.example", 7)
    assert meta.description == "says who it is"
    assert meta.custom_metadata_map == {"author": "a person", "classes": "3"}


def test_inputs_with_default_values():
    session = open_session(LINEAR)
    assert [arg.name for arg in session.get_inputs()] == ["x"]
    assert [(arg.name, arg.shape) for arg in session.get_overridable_initializers()] == [("bias", [2])]
    assert session.run(None, {"x": row(1, 1, 1)})[0].tolist() == [[19, 32]]
    assert session.run(None, {"x": row(1, 1, 1), "bias": np.zeros(2, np.float32)})[0].tolist() == [[9, 12]]


def test_providers_of_a_session():
    assert "CPUExecutionProvider" in ort.get_available_providers()
    assert set(ort.get_available_providers()) <= set(ort.get_all_providers())
    assert ort.get_all_providers()[-1] == "CPUExecutionProvider"
    session = ort.InferenceSession(ADD, providers=[("CPUExecutionProvider", {})])
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert "CPUExecutionProvider" in session.get_provider_options()


def test_a_provider_that_is_not_here_is_left_out():
    assert "CUDAExecutionProvider" in ort.get_all_providers()
    if "CUDAExecutionProvider" in ort.get_available_providers():
        pytest.skip("it is here")
    with pytest.warns(UserWarning, match="CUDAExecutionProvider"):
        session = ort.InferenceSession(ADD, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert session.run(None, {"a": row(1, 2, 3), "b": row(4, 5, 6)})[0].tolist() == [[5, 7, 9]]


def test_providers_chosen_anew():
    session = open_session(ADD)
    session.set_providers(["CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert session.run(None, {"a": row(1, 2, 3), "b": row(4, 5, 6)})[0].tolist() == [[5, 7, 9]]


def test_the_module_describes_itself():
    assert ort.get_device() in ("CPU", "GPU")
    assert tuple(int(part) for part in ort.__version__.split(".")[:2]) >= (1, 16)
    assert ort.get_version_string() == ort.__version__ and "Build Info" in ort.get_build_info()


def test_the_logger_may_be_silenced():
    ort.set_default_logger_severity(3)
    ort.set_default_logger_verbosity(0)
    try:
        assert open_session(ADD).run(None, {"a": row(1, 2, 3), "b": row(0, 0, 0)})[0].tolist() == [[1, 2, 3]]
        with pytest.raises((ValueError, RuntimeError, state.InvalidArgument)):
            ort.set_default_logger_severity(17)
    finally:
        ort.set_default_logger_severity(2)


def test_lines_of_the_log_go_to_the_program():
    lines = []
    ort.set_default_logger_callback(lambda *line: lines.append(line), severity=0)
    try:
        open_session(ADD)
        assert lines and all(isinstance(line[0], int) for line in lines)
        assert all(len(line) == 5 and all(isinstance(part, str) for part in line[1:]) for line in lines)
        for callback, severity in ((lines.append, 5), (lines.append, -1), ("no function", 2)):
            with pytest.raises(RuntimeError):
                ort.set_default_logger_callback(callback, severity)

        def raises(*line):
            raise ValueError("the callback's own mistake")

        ort.set_default_logger_callback(raises, severity=0)
        assert open_session(ADD).run(None, {"a": row(1, 2, 3), "b": row(0, 0, 0)})[0].tolist() == [[1, 2, 3]]
    finally:
        ort.set_default_logger_callback(None)
        ort.set_default_logger_severity(2)
    count = len(lines)
    open_session(ADD)
    assert len(lines) == count


def test_memory_of_inputs_and_outputs():
    session = open_session(ADD)
    assert [info.device_id for info in session.get_input_memory_infos()] == [0, 0]
    assert [info.device_id for info in session.get_output_memory_infos()] == [0]
    assert len(session.get_input_epdevices()) == 2


def test_telemetry_may_be_switched_off():
    ort.disable_telemetry_events()
    ort.enable_telemetry_events()
    assert open_session(ADD).run(None, {"a": row(1, 2, 3), "b": row(0, 0, 0)})[0].tolist() == [[1, 2, 3]]

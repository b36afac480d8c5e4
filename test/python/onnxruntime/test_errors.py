# SPDX-License-Identifier: Apache-2.0
"""Programs that do something wrong, and see it."""
import numpy as np
import pytest

from ort_models import ADD, CPU, DANGLING, NEG_ABS, UNKNOWN_OP, floats, open_session, ort, row, state


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(state.NoSuchFile, match="nowhere.onnx"):
        ort.InferenceSession(str(tmp_path / "nowhere.onnx"), providers=CPU)


def test_a_file_that_is_no_model(tmp_path):
    file = tmp_path / "broken.onnx"
    file.write_bytes(b"\xff" * 100)
    with pytest.raises(state.InvalidProtobuf):
        ort.InferenceSession(str(file), providers=CPU)


def test_a_graph_that_is_not_valid():
    with pytest.raises((state.InvalidGraph, state.Fail), match="nowhere"):
        open_session(DANGLING)


def test_an_operator_that_nobody_has():
    with pytest.raises((state.NotImplemented, state.InvalidGraph, state.Fail), match="NoSuchOperator"):
        open_session(UNKNOWN_OP)


def test_an_input_is_missing():
    session = open_session(ADD)
    with pytest.raises(ValueError, match=r"Required inputs \(\['b'\]\) are missing from input feed \(\['a'\]\)"):
        session.run(None, {"a": row(1, 2, 3)})
    assert session.run(None, {"a": row(1, 2, 3), "b": row(1, 1, 1)})[0].tolist() == [[2, 3, 4]]


def test_an_input_that_the_model_does_not_have():
    with pytest.raises((state.InvalidArgument, ValueError), match="wrong"):
        open_session(NEG_ABS).run(None, {"x": floats(1), "wrong": floats(1)})


def test_an_output_that_the_model_does_not_have():
    with pytest.raises(state.InvalidArgument, match="wrong"):
        open_session(NEG_ABS).run(["wrong"], {"x": floats(1)})


def test_a_wrong_element_type():
    with pytest.raises(state.InvalidArgument, match="double|float64"):
        open_session(NEG_ABS).run(None, {"x": np.array([1.0])})


def test_a_wrong_rank():
    with pytest.raises(state.InvalidArgument, match="x"):
        open_session(NEG_ABS).run(None, {"x": row(1, 2, 3)})


def test_a_wrong_size():
    with pytest.raises(state.InvalidArgument):
        open_session(ADD).run(None, {"a": np.zeros((1, 4), np.float32), "b": np.zeros((1, 4), np.float32)})


def test_providers_that_are_no_list():
    with pytest.raises((ValueError, TypeError)):
        ort.InferenceSession(ADD, providers=["CPUExecutionProvider"], provider_options=[{}, {}])


def test_a_provider_that_nobody_has():
    session = open_session(ADD)
    with pytest.raises(RuntimeError, match="Unknown Provider Type: NobodysProvider"):
        session.set_providers(["NobodysProvider"])


def test_a_name_that_is_not_bound():
    binding = open_session(NEG_ABS).io_binding()
    with pytest.raises((RuntimeError, ValueError)):
        binding.bind_cpu_input("wrong", floats(1))

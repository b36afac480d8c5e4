# SPDX-License-Identifier: Apache-2.0
"""The guide's advice for errors, troubleshooting and daily use in Python: its names used in its way.

Numbers are those of guide_snippets.md; "model.pfm" and "model.onnx" are guide_model's.
"""
import logging

import numpy as np
import pytest

import pyflame_rt
from conftest import FLOAT, node, onnx_model, port
from guide_model import images, model_files, right, session, write_pfm


# ------------------------------------------------------------------ Debugging and Troubleshooting


def test_83_model_loading_failures(capsys):
    # Check file exists and format
    import os

    def check(model_path):
        if not os.path.exists(model_path):
            print("Model file not found")
        elif not model_path.endswith('.pfm'):
            print("Unsupported format - use .pfm")
        else:
            try:
                return pyflame_rt.InferenceSession(model_path)
            except pyflame_rt.InvalidModelError as e:
                print(f"Invalid model: {e}")

    assert right(check("model.pfm").run(None, {"input": images()}), images())
    with pytest.raises(pyflame_rt.PyFlameRTError):  # the runtime says so itself
        pyflame_rt.InferenceSession("nowhere.pfm")
    for path in ("nowhere.pfm", "model.onnx"):
        check(path)
    assert capsys.readouterr().out == "Model file not found\nUnsupported format - use .pfm\n"
    open("cut.pfm", "wb").write(open("model.pfm", "rb").read()[:-200])
    check("cut.pfm")
    said = capsys.readouterr().out
    assert said.startswith("Invalid model: ") and "cut.pfm" in said


def test_84_shape_mismatches(session, capsys):
    input_data = images()
    # Check expected vs actual shapes
    inputs = session.get_inputs()
    for inp in inputs:
        print(f"Expected: {inp.name} = {inp.shape}")

    # Verify your input
    print(f"Actual: input = {input_data.shape}")

    # Handle dynamic batch
    if inputs[0].shape[0] is None:
        print("Batch dimension is dynamic")
    assert capsys.readouterr().out == ("Expected: input = [None, 3, 224, 224]\nActual: input = (1, 3, 224, 224)\n"
                                       "Batch dimension is dynamic\n")
    with pytest.raises(pyflame_rt.ShapeMismatchError, match="'input'"):
        session.run(None, {"input": input_data[0]})


def test_85_unsupported_operators(capsys):
    write_pfm("model.pfm", onnx_model([node("NoSuchOperator", ["x"], ["y"])], [port("x", FLOAT, [1])],
                                      [port("y", FLOAT, [1])]))
    try:
        session = pyflame_rt.InferenceSession("model.pfm")
    except pyflame_rt.UnsupportedOperatorError as e:
        print(f"Operator not supported: {e}")
        session = None
    said = capsys.readouterr().out
    assert session is None and said.startswith("Operator not supported: ") and "NoSuchOperator" in said


def test_86_memory_issues(session):
    # For large models, process in smaller batches
    def process_in_batches(session, data, batch_size=32):
        results = []
        for i in range(0, len(data), batch_size):
            batch = data[i:i + batch_size]
            result = session.run(None, {"input": batch})
            results.append(result[0])
        return np.concatenate(results)

    assert right([process_in_batches(session, images(7), 3)], images(7))


def test_87_logging(capfd):
    options = pyflame_rt.SessionOptions()
    options.log_level = "debug"  # Maximum verbosity

    session = pyflame_rt.InferenceSession("model.pfm", options)
    assert right(session.run(None, {"input": images()}), images())
    said = capfd.readouterr().err.splitlines()
    assert "info: session of graph 'classifier'" in said[0] and "debug: run on " in said[-1]
    options.log_level = "error"
    assert right(pyflame_rt.InferenceSession("model.pfm", options).run(None, {"input": images()}), images())
    assert capfd.readouterr().err == ""
    options.log_level = "loud"
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="'loud'.*debug info warning error off"):
        pyflame_rt.InferenceSession("model.pfm", options)


def test_88_graph_validation(capsys):
    invalid = onnx_model([node("Neg", ["w"], ["y"]), node("Neg", ["v"], ["z"])], [],
                         [port("y", FLOAT, [1]), port("z", FLOAT, [1])])
    open("model.pfm", "wb").write(invalid)
    # Validation happens automatically on load
    try:
        session = pyflame_rt.InferenceSession(open("model.pfm", "rb").read())
    except pyflame_rt.ValidationError as e:
        print(f"Graph validation failed:")
        for error in e.errors:
            print(f"  - {error}")
        session = None
    said = capsys.readouterr().out.splitlines()
    assert session is None and said[0] == "Graph validation failed:" and len(said) == 3
    assert "'w'" in said[1] and "'v'" in said[2]


# ------------------------------------------------------------------ Best Practices


def test_89_session_reuse():
    data_loader = [images(1), images(2), images(1)]
    # Good: Create session once, reuse
    session = pyflame_rt.InferenceSession("model.pfm")
    for batch in data_loader:
        results = session.run(None, {"input": batch})
        assert right(results, batch)

    # Avoid: Creating session repeatedly
    for batch in data_loader:
        session = pyflame_rt.InferenceSession("model.pfm")  # Expensive!
        results = session.run(None, {"input": batch})
        assert right(results, batch)


def test_90_input_preparation(session):
    data = images(1)[0].astype(np.float64)
    # Good: Ensure correct dtype upfront
    input_data = data.astype(np.float32)

    # Good: Ensure contiguous memory
    input_data = np.ascontiguousarray(input_data)

    # Good: Match expected shape
    if len(input_data.shape) == 3:
        input_data = input_data[np.newaxis, ...]  # Add batch dim
    assert right(session.run(None, {"input": input_data}), images(1))


def test_91_error_handling(session, caplog):
    logger = logging.getLogger("safe_inference")

    def safe_inference(session, inputs):
        """Run inference with proper error handling."""
        try:
            return session.run(None, inputs)
        except pyflame_rt.InputError as e:
            logger.error(f"Input error: {e}")
            raise
        except pyflame_rt.BackendError as e:
            logger.error(f"Backend error: {e}")
            raise
        except Exception as e:
            logger.error(f"Unexpected error: {e}")
            raise

    assert right(safe_inference(session, {"input": images()}), images())
    for feeds, error in (({}, pyflame_rt.InputError), ({"input": images()[0]}, pyflame_rt.ShapeMismatchError)):
        with pytest.raises(error):
            safe_inference(session, feeds)
    assert [record.message.split(":")[0] for record in caplog.records] == ["Input error", "Unexpected error"]


def test_92_resource_cleanup():
    # Sessions are automatically cleaned up when out of scope
    def process_model(path, data):
        session = pyflame_rt.InferenceSession(path)
        return session.run(None, {"input": data})
    # Session is released here
    assert right(process_model("model.pfm", images()), images())

    # For explicit control, use context managers
    with pyflame_rt.InferenceSession("model.pfm") as session:
        assert right(session.run(None, {"input": images()}), images())
    with pytest.raises(pyflame_rt.PyFlameRTError, match="closed"):
        session.run(None, {"input": images()})


def test_93_type_safety(session):
    data = images().astype(np.float64)
    # Check types match
    input_info = session.get_inputs()[0]
    expected_type = input_info.type

    if "float32" in expected_type:
        data = data.astype(np.float32)
    elif "float16" in expected_type:
        data = data.astype(np.float16)
    assert expected_type == "tensor(float32)" and right(session.run(None, {"input": data}), images())


def test_94_testing():
    """Verify model produces expected outputs."""
    session = pyflame_rt.InferenceSession("model.pfm")

    # Test with known input
    test_input = np.ones((1, 3, 224, 224), dtype=np.float32)
    results = session.run(None, {"input": test_input})

    # Verify output shape
    assert results[0].shape == (1, 1000)

    # Verify output is valid
    assert not np.isnan(results[0]).any()
    assert not np.isinf(results[0]).any()

    # Verify probabilities sum to ~1 for classification
    probs = np.exp(results[0]) / np.exp(results[0]).sum()
    assert np.isclose(probs.sum(), 1.0, atol=1e-5)
    assert right(results, test_input)

# SPDX-License-Identifier: Apache-2.0
"""What the guide shows of tensors and sessions in Python: its names used in its way.

Numbers are those of guide_snippets.md; "model.pfm" and "model.onnx" are guide_model's.
"""
import logging
import re

import numpy as np
import pytest

import pyflame_rt
from conftest import FLOAT, node, onnx_model, port
from guide_model import expected, onnx_bytes, write_pfm


@pytest.fixture(autouse=True)
def a_folder_with_the_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_pfm("model.pfm", onnx_bytes())
    (tmp_path / "model.onnx").write_bytes(onnx_bytes())


@pytest.fixture
def session():
    return pyflame_rt.InferenceSession("model.pfm")


def images(count=1):
    return np.random.default_rng(count).standard_normal((count, 3, 224, 224)).astype(np.float32)


def right(results, input_data):
    return len(results) == 1 and np.allclose(results[0], expected(input_data), rtol=1e-4, atol=1e-5)


# ------------------------------------------------------------------ Getting Started, Core Concepts


def test_01_quick_verification(capsys):
    # Check version
    print(f"PyFlameRT version: {pyflame_rt.__version__}")

    # Test tensor operations
    arr = np.random.randn(2, 3).astype(np.float32)
    tensor = pyflame_rt.from_numpy(arr)
    print(f"Tensor shape: {tensor.shape}, dtype: {tensor.dtype}")

    # Convert back
    result = tensor.numpy()
    assert np.allclose(arr, result)
    out = capsys.readouterr().out
    assert re.fullmatch(r"PyFlameRT version: \d+\.\d+\.\d+\nTensor shape: \[2, 3\], dtype: DType.Float32\n", out)


def test_02_data_types(capsys):
    # Access dtype enum
    print(pyflame_rt.DType.Float32)
    print(pyflame_rt.DType.Float32.value)
    assert capsys.readouterr().out == "DType.Float32\n0\n"
    table = [("Float32", 4, np.float32), ("Float16", 2, np.float16), ("BFloat16", 2, None), ("Float64", 8, np.float64),
             ("Int64", 8, np.int64), ("Int32", 4, np.int32), ("Int16", 2, np.int16), ("Int8", 1, np.int8),
             ("UInt8", 1, np.uint8), ("Bool", 1, np.bool_)]
    for value, (name, size, numpy) in enumerate(table):
        dtype = pyflame_rt.DType[name]
        assert (dtype.value, pyflame_rt.Tensor([5], dtype).size_bytes) == (value, 5 * size)
        assert numpy is None or pyflame_rt.from_numpy(np.zeros(1, numpy)).dtype == dtype


def test_03_creating_tensors():
    # From NumPy array (recommended)
    arr = np.random.randn(1, 3, 224, 224).astype(np.float32)
    tensor = pyflame_rt.from_numpy(arr)
    assert tensor.shape == [1, 3, 224, 224] and np.shares_memory(tensor.numpy(), arr)

    # Create empty tensor
    tensor = pyflame_rt.Tensor([2, 3, 4], pyflame_rt.DType.Float32)
    assert tensor.shape == [2, 3, 4] and not tensor.numpy().any()

    # From existing tensor
    tensor_copy = tensor.clone()  # Deep copy
    tensor_copy.numpy()[0, 0, 0] = 1
    assert tensor.numpy()[0, 0, 0] == 0


def test_04_tensor_properties(capsys):
    tensor = pyflame_rt.from_numpy(np.zeros((2, 3, 4), dtype=np.float32))

    print(tensor.shape)
    print(tensor.dtype)
    print(tensor.ndim)
    print(tensor.num_elements)
    print(tensor.size_bytes)
    print(tensor.is_valid)
    print(tensor.owns_data)
    assert capsys.readouterr().out.split("\n") == ["[2, 3, 4]", "DType.Float32", "3", "24", "96", "True", "True", ""]


def test_05_tensor_operations():
    tensor = pyflame_rt.from_numpy(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    # Convert to NumPy
    arr = tensor.numpy()

    # Clone (deep copy)
    clone = tensor.clone()

    # Reshape
    reshaped = tensor.reshape([6, 4])

    # Zero out
    tensor.zero()
    assert not arr.any() and not reshaped.numpy().any() and reshaped.shape == [6, 4]
    assert clone.numpy().ravel().tolist() == list(range(24))


def test_06_shapes():
    # Static shape: all dimensions known
    static_shape = [1, 3, 224, 224]

    # Dynamic shape: use None for unknown dimensions
    dynamic_shape = [None, 3, 224, 224]  # Dynamic batch
    assert pyflame_rt.Tensor(static_shape, pyflame_rt.DType.UInt8).shape == static_shape
    info = pyflame_rt.TensorInfo("input", pyflame_rt.DType.Float32, static_shape)
    assert not info.is_dynamic()
    info.shape = dynamic_shape
    assert info.is_dynamic()
    assert pyflame_rt.InferenceSession("model.onnx").get_inputs()[0].shape == dynamic_shape


def test_07_tensor_info(capsys):
    # Create tensor info
    info = pyflame_rt.TensorInfo()
    info.name = "input"
    info.dtype = pyflame_rt.DType.Float32
    info.shape = [1, 3, 224, 224]

    # Check properties
    print(info.is_dynamic())  # True if any dim is None
    info.shape[0] = None
    print(info.is_dynamic())
    assert capsys.readouterr().out == "False\nTrue\n"


def test_08_node_arg(session, capsys):
    # Typically obtained from session
    inputs = session.get_inputs()
    for inp in inputs:
        print(f"Name: {inp.name}")
        print(f"Shape: {inp.shape}")
        print(f"Type: {inp.type}")
    assert capsys.readouterr().out == "Name: input\nShape: [None, 3, 224, 224]\nType: tensor(float32)\n"


def test_09_onnx_import():
    # Quick import (recommended)
    session = pyflame_rt.from_onnx("model.onnx")

    # Run inference
    input_data = np.random.randn(1, 3, 224, 224).astype(np.float32)
    results = session.run(None, {"input": input_data})
    assert right(results, input_data)


# ------------------------------------------------------------------ Python API


def test_72_inference_session():
    # Basic usage
    session = pyflame_rt.InferenceSession("model.pfm")
    assert right(session.run(None, {"input": images()}), images())

    # With options
    options = pyflame_rt.SessionOptions()
    options.device = "cpu"
    options.num_threads = 4

    session = pyflame_rt.InferenceSession(
        "model.pfm",
        options=options,
        providers=["CPUExecutionProvider"]
    )
    assert right(session.run(None, {"input": images()}), images())
    assert session.get_providers() == ["CPUExecutionProvider"] and session.get_session_options().num_threads == 4


def test_73_session_methods(session, capsys):
    # Get input/output metadata
    inputs = session.get_inputs()
    outputs = session.get_outputs()

    for inp in inputs:
        print(f"Input '{inp.name}': shape={inp.shape}, type={inp.type}")

    for out in outputs:
        print(f"Output '{out.name}': shape={out.shape}, type={out.type}")

    # Get model metadata
    meta = session.get_modelmeta()
    print(f"Producer: {meta.producer_name} {meta.producer_version}")
    print(f"Graph name: {meta.graph_name}")

    # Get available providers
    providers = session.get_providers()
    print(f"Providers: {providers}")
    assert capsys.readouterr().out == ("Input 'input': shape=[None, 3, 224, 224], type=tensor(float32)\n"
                                       "Output 'output': shape=[None, 1000], type=tensor(float32)\n"
                                       "Producer: guide 1.0\nGraph name: classifier\n"
                                       "Providers: ['CPUExecutionProvider']\n")


def test_74_running_inference(session, capsys):
    # Prepare input
    input_data = np.random.randn(1, 3, 224, 224).astype(np.float32)

    # Run inference - all outputs
    results = session.run(None, {"input": input_data})
    assert right(results, input_data)

    # Run inference - specific outputs
    results = session.run(["output"], {"input": input_data})
    assert right(results, input_data)

    # Run with options
    run_opts = pyflame_rt.RunOptions()
    run_opts.tag = "inference_run_1"
    results = session.run(None, {"input": input_data}, run_opts)
    assert right(results, input_data)

    # Access results
    for i, result in enumerate(results):
        print(f"Output {i}: shape={result.shape}")
    assert capsys.readouterr().out == "Output 0: shape=(1, 1000)\n"


def test_75_session_options():
    options = pyflame_rt.SessionOptions()

    # Device selection
    options.device = "cpu"

    # Threading
    options.num_threads = 0  # 0 = auto-detect

    # Profiling
    options.enable_profiling = True

    # Execution mode
    options.execution_mode = "sequential"  # "sequential" or "parallel"

    # Optimization
    options.optimization_level = pyflame_rt.OptLevel.EXTENDED  # Default
    options.verbose_optimization = False   # Log optimization details

    # Logging
    options.log_level = "warning"   # "debug", "info", "warning", "error"

    # Validate options
    errors = options.validate()
    assert errors == []
    assert right(pyflame_rt.InferenceSession("model.pfm", options).run(None, {"input": images()}), images())
    for mode in ("sequential", "parallel"):
        options.execution_mode = mode
        assert options.validate() == []
    for level in ("debug", "info", "warning", "error"):
        options.log_level = level
        assert options.validate() == []
    options.log_level, options.execution_mode = "loud", "sideways"
    assert len(options.validate()) == 2


def test_76_optimization_levels():
    # Available optimization levels
    levels = [
        pyflame_rt.OptLevel.NONE,      # No optimization (level 0)
        pyflame_rt.OptLevel.BASIC,     # Constant folding, DCE (level 1)
        pyflame_rt.OptLevel.EXTENDED,  # + CSE, Fusion (level 2, default)
        pyflame_rt.OptLevel.ALL,       # + Layout optimization (level 3)
    ]
    assert [int(level) for level in levels] == [0, 1, 2, 3]
    assert pyflame_rt.SessionOptions().optimization_level == pyflame_rt.OptLevel.EXTENDED
    options = pyflame_rt.SessionOptions()
    for options.optimization_level in levels:
        assert right(pyflame_rt.InferenceSession("model.pfm", options).run(None, {"input": images()}), images())


def test_77_run_options(session):
    run_opts = pyflame_rt.RunOptions()

    # Override log level for this run
    run_opts.log_level = "debug"

    # Tag for profiling
    run_opts.tag = "batch_1"

    # Timeout
    run_opts.timeout_ms = 5000  # 5 seconds
    assert right(session.run(None, {"input": images()}, run_opts), images())


def test_78_error_handling(capsys):
    data = images()

    def load(path):
        try:
            return pyflame_rt.InferenceSession(path)
        except pyflame_rt.InvalidModelError as e:
            print(f"Invalid model: {e}")
        except pyflame_rt.UnsupportedFormatError as e:
            print(f"Unsupported format: {e}")
        except pyflame_rt.PyFlameRTError as e:
            print(f"Runtime error: {e}")

    def run(session, feeds):
        try:
            return session.run(None, feeds)
        except pyflame_rt.InputError as e:
            print(f"Input error: {e}")
        except pyflame_rt.ShapeMismatchError as e:
            print(f"Shape mismatch: {e}")
        except pyflame_rt.UnsupportedOperatorError as e:
            print(f"Unsupported op: {e}")

    session = load("model.pfm")
    assert right(run(session, {"input": data}), data)
    broken = open("model.pfm", "rb").read()[:100]
    open("broken.pfm", "wb").write(broken)
    open("model.txt", "w").write("a letter")
    for path in ("broken.pfm", "model.txt", "nowhere.pfm"):
        assert load(path) is None
    assert run(session, {"wrong_name": data}) is None
    assert run(session, {"input": data[:, :2]}) is None
    said = capsys.readouterr().out.splitlines()
    starts = ["Invalid model: ", "Unsupported format: ", "Runtime error: ", "Input error: ", "Shape mismatch: "]
    assert len(said) == 5 and all(line.startswith(start) for line, start in zip(said, starts)), said
    for name in ("InvalidModelError", "UnsupportedFormatError", "UnsupportedOperatorError", "ShapeMismatchError",
                 "DTypeMismatchError", "ValidationError", "BackendError", "InputError"):
        assert issubclass(getattr(pyflame_rt, name), pyflame_rt.PyFlameRTError)


# ------------------------------------------------------------------ Model Format, Performance


def test_79_model_inspection(capsys):
    session = pyflame_rt.InferenceSession("model.pfm")

    print("=== Model Information ===")
    meta = session.get_modelmeta()
    print(f"Graph: {meta.graph_name}")
    print(f"Producer: {meta.producer_name} {meta.producer_version}")

    print("\n=== Inputs ===")
    for inp in session.get_inputs():
        print(f"  {inp.name}: {inp.shape} ({inp.type})")

    print("\n=== Outputs ===")
    for out in session.get_outputs():
        print(f"  {out.name}: {out.shape} ({out.type})")

    print("\n=== Providers ===")
    for provider in session.get_providers():
        print(f"  {provider}")
    assert capsys.readouterr().out.splitlines() == [
        "=== Model Information ===", "Graph: classifier", "Producer: guide 1.0", "",
        "=== Inputs ===", "  input: [None, 3, 224, 224] (tensor(float32))", "",
        "=== Outputs ===", "  output: [None, 1000] (tensor(float32))", "",
        "=== Providers ===", "  CPUExecutionProvider"]


def test_80_threading():
    # CPU threading for parallel operators
    options = pyflame_rt.SessionOptions()
    options.num_threads = 8  # Use 8 threads
    assert right(pyflame_rt.InferenceSession("model.pfm", options).run(None, {"input": images(4)}), images(4))

    # 0 means auto-detect (usually num_cores)
    options.num_threads = 0
    assert right(pyflame_rt.InferenceSession("model.pfm", options).run(None, {"input": images(4)}), images(4))
    options.num_threads = -1
    assert "num_threads" in options.validate()[0]


def test_81_batch_processing(session):
    # Process larger batches for better throughput
    batch_sizes = [1, 4, 16, 32]

    for batch_size in batch_sizes:
        input_data = np.random.randn(batch_size, 3, 224, 224).astype(np.float32)
        results = session.run(None, {"input": input_data})
        assert right(results, input_data)


def test_82_profiling():
    inputs = {"input": images()}
    options = pyflame_rt.SessionOptions()
    options.enable_profiling = True

    session = pyflame_rt.InferenceSession("model.pfm", options)

    # Run with profiling tag
    run_opts = pyflame_rt.RunOptions()
    run_opts.tag = "warmup"
    session.run(None, inputs, run_opts)

    run_opts.tag = "inference"
    for i in range(100):
        session.run(None, inputs, run_opts)
    rows = session.explain()
    assert rows and all(row["measured_ns"] > 0 for row in rows)
    unmeasured = pyflame_rt.InferenceSession("model.pfm")
    unmeasured.run(None, inputs)
    assert all(row["measured_ns"] == 0 for row in unmeasured.explain())


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


def test_87_logging():
    options = pyflame_rt.SessionOptions()
    options.log_level = "debug"  # Maximum verbosity

    session = pyflame_rt.InferenceSession("model.pfm", options)
    assert right(session.run(None, {"input": images()}), images())
    assert session.get_session_options().log_level == "debug"
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

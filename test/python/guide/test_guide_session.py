# SPDX-License-Identifier: Apache-2.0
"""The guide's tensors and sessions in Python: its names used in its way.

Numbers are those of guide_snippets.md; "model.pfm" and "model.onnx" are guide_model's.
"""
import json
import re

import numpy as np

import pyflame_rt
from guide_model import images, model_files, right, session


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


def test_77_run_options(session, capfd):
    run_opts = pyflame_rt.RunOptions()

    # Override log level for this run
    run_opts.log_level = "debug"

    # Tag for profiling
    run_opts.tag = "batch_1"

    # Timeout
    run_opts.timeout_ms = 5000  # 5 seconds
    assert right(session.run(None, {"input": images()}, run_opts), images())
    assert "debug: run 'batch_1' on " in capfd.readouterr().err
    assert right(session.run(None, {"input": images()}), images())
    assert capfd.readouterr().err == ""


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
    with open(session.end_profiling(), encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    tags = [event["args"]["tag"] for event in events if event["name"] == "model_run"]
    assert tags == ["warmup"] + ["inference"] * 100
    unmeasured = pyflame_rt.InferenceSession("model.pfm")
    unmeasured.run(None, inputs)
    assert all(row["measured_ns"] == 0 for row in unmeasured.explain())

# SPDX-License-Identifier: Apache-2.0
"""The guide's Python snippets on importing models, as it writes them. The numbers count its Python snippets."""
import numpy as np
import pytest

import pyflame_rt
from conftest import FLOAT, node, onnx_model, port
from guide_image_model import image_graph, reference


@pytest.fixture(autouse=True)
def model_files(tmp_path, monkeypatch):
    image_graph().save(tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)


def test_10_advanced_options():
    options = pyflame_rt.ImportOptions()
    options.validate = True           # Validate graph structure
    options.infer_shapes = True       # Run shape inference
    options.optimize = True           # Apply basic optimizations

    importer = pyflame_rt.import_module.ONNXImporter()
    result = importer.import_model("model.onnx", options)

    assert result.success and result.error == ""
    assert f"Imported graph: {result.graph.name}" == "Imported graph: images"
    assert f"Nodes: {result.stats.node_count}" == "Nodes: 13"
    sizes = [value.numpy().size for value in image_graph().initializers.values()]
    assert f"Parameters: {result.stats.parameter_count}" == f"Parameters: {sum(sizes)}"
    assert {"Identity", "Dropout", "Exp"} & {n.op for n in result.graph.nodes} == set()

    session = pyflame_rt.InferenceSession(result.graph)
    input_data = np.random.randn(1, 3, 224, 224).astype(np.float32)
    np.testing.assert_allclose(session.run(None, {"input": input_data})[0], reference(input_data), rtol=1e-4, atol=1e-5)

    failed = importer.import_model("absent.onnx", options)
    assert not failed.success
    assert "absent.onnx" in f"Import failed: {failed.error}"


def test_11_import_statistics():
    result = pyflame_rt.import_module.ONNXImporter().import_model("model.onnx")

    stats = result.stats
    assert f"Nodes imported: {stats.node_count}" == "Nodes imported: 13"
    assert f"Initializers: {stats.initializer_count}" == "Initializers: 8"
    assert stats.parameter_count > 0
    assert f"Import time: {stats.import_time_ms:.2f} ms".endswith(" ms") and stats.import_time_ms > 0
    assert isinstance(stats.warnings, list) and all(isinstance(warning, str) for warning in stats.warnings)


def test_12_a_graph_defined_with_add_functions():
    # The weights are a dict of arrays; the importer of the snippet comes with PyTorch files.
    def define_simple_mlp(graph, weights):
        """Define a simple MLP model structure."""
        # Add graph inputs
        graph.add_input("input", [None, 784], pyflame_rt.DType.Float32)

        # Add weights as initializers
        graph.add_initializer("fc1.weight", weights["fc1.weight"])
        graph.add_initializer("fc1.bias", weights["fc1.bias"])
        graph.add_initializer("fc2.weight", weights["fc2.weight"])
        graph.add_initializer("fc2.bias", weights["fc2.bias"])

        # Define operations
        graph.add_node("fc1", "Gemm",
                       inputs=["input", "fc1.weight", "fc1.bias"],
                       outputs=["fc1_out"])
        graph.add_node("relu1", "Relu",
                       inputs=["fc1_out"],
                       outputs=["relu1_out"])
        graph.add_node("fc2", "Gemm",
                       inputs=["relu1_out", "fc2.weight", "fc2.bias"],
                       outputs=["output"])

        # Add graph output
        graph.add_output("output", [None, 10], pyflame_rt.DType.Float32)

    rng = np.random.default_rng(0)
    weights = {name: rng.normal(scale=0.1, size=shape).astype(np.float32) for name, shape in {
        "fc1.weight": (784, 32), "fc1.bias": (32,), "fc2.weight": (32, 10), "fc2.bias": (10,)}.items()}
    graph = pyflame_rt.Graph("mlp")
    define_simple_mlp(graph, weights)
    session = pyflame_rt.InferenceSession(graph)
    x = rng.normal(size=(5, 784)).astype(np.float32)
    hidden = np.maximum(x @ weights["fc1.weight"] + weights["fc1.bias"], 0)
    want = hidden @ weights["fc2.weight"] + weights["fc2.bias"]
    np.testing.assert_allclose(session.run(None, {"input": x})[0], want, rtol=1e-4, atol=1e-4)
    assert session.get_inputs()[0].shape == [None, 784] and session.get_outputs()[0].shape == [None, 10]


def test_15_names_of_inputs_and_outputs():
    # With the ONNX importer: the snippet's own comes with TorchScript files.
    importer = pyflame_rt.import_module.ONNXImporter()
    result = importer.import_model("model.onnx")
    graph = result.graph

    assert [f"Input: {inp.name} - {inp.shape}" for inp in graph.inputs] == ["Input: input - [1, 3, 224, 224]"]
    assert [f"Output: {out.name} - {out.shape}" for out in graph.outputs] == ["Output: output - [1, 10]"]


def test_16_shape_inference():
    options = pyflame_rt.ImportOptions()
    options.infer_shapes = True  # Enable shape inference

    importer = pyflame_rt.import_module.ONNXImporter()
    result = importer.import_model("model.onnx", options)

    shapes = {}
    for node in result.graph.nodes:
        for output in node.outputs:
            info = result.graph.get_tensor_info(output)
            shapes[output] = info.shape
            assert not info.is_dynamic() and info.dtype == pyflame_rt.DType.Float32
    assert shapes["c"] == shapes["n"] == shapes["r"] == [1, 4, 28, 28]
    assert shapes["p"] == [1, 4, 1, 1] and shapes["f"] == [1, 4] and shapes["fc.bias"] == [10]
    assert shapes["output"] == [1, 10]


def broken(path):
    path.write_bytes(b"\x08\x08\x3a\xff\xff no model")


def strange(path):
    path.write_bytes(b"GIF89a is another kind of file")


def unknown_operator(path):
    path.write_bytes(onnx_model([node("NoSuchOperator", ["x"], ["y"])], [port("x", FLOAT, [1])],
                                [port("y", FLOAT, [1])]))


def ill_formed(path):
    path.write_bytes(onnx_model([node("Relu", ["nowhere"], ["y"])], [], [port("y", FLOAT, [1])]))


@pytest.mark.parametrize("name, write, said", [
    ("model.onnx", broken, "Model file is invalid"), ("model.gif", strange, "Format not supported"),
    ("model.onnx", unknown_operator, "Operator not supported"), ("model.onnx", ill_formed, "Graph validation failed")])
def test_17_import_errors(tmp_path, name, write, said):
    write(tmp_path / name)
    text = ""
    try:
        pyflame_rt.from_onnx(name)
    except pyflame_rt.InvalidModelError as e:
        text = f"Model file is invalid: {e}"
    except pyflame_rt.UnsupportedFormatError as e:
        text = f"Format not supported: {e}"
    except pyflame_rt.UnsupportedOperatorError as e:
        text = f"Operator not supported: {e}"
    except pyflame_rt.ValidationError as e:
        text = f"Graph validation failed: {e}"
    assert text.startswith(said) and len(text) > len(said) + 10

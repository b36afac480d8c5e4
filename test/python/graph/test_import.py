# SPDX-License-Identifier: Apache-2.0
"""Import with options, statistics and results."""
import numpy as np
import pytest

import pyflame_rt as rt
from conftest import FLOAT, node, onnx_model, port


@pytest.fixture
def model(tmp_path):
    """y = relu(identity(x) + c) with c = 1 + 1 made of two constants, float32 [N, 3], as a file."""
    nodes = [node("Identity", ["x"], ["x2"]), node("Constant", [], ["one"], value_float=1.0),
             node("Add", ["one", "one"], ["c"]), node("Add", ["x2", "c"], ["s"]), node("Relu", ["s"], ["y"])]
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx_model(nodes, [port("x", FLOAT, ["N", 3])], [port("y", FLOAT, ["N", 3])]))
    return path


def test_a_file_is_imported(model):
    result = rt.import_module.ONNXImporter().import_model(model)
    assert result.success and result.error == ""
    assert [n.op for n in result.graph.nodes] == ["Identity", "Constant", "Add", "Add", "Relu"]
    assert result.graph.name == "made" and result.graph.opsets[""] == 17
    x = np.array([[-5, 0, 1]], np.float32)
    np.testing.assert_array_equal(rt.InferenceSession(result.graph).run(None, {"x": x})[0], [[0, 2, 3]])


def test_statistics_count_what_the_file_holds(digits):
    stats = rt.import_module.ONNXImporter().import_model(digits).stats
    graph = rt.load_model(digits)
    constants = [value.numpy() for value in graph.initializers.values()]
    assert (stats.node_count, stats.initializer_count) == (len(graph.nodes), len(constants))
    assert stats.parameter_count == sum(c.size for c in constants) > 0
    assert stats.parameter_bytes == sum(c.nbytes for c in constants)
    assert stats.import_time_ms > 0 and stats.warnings == []


def test_statistics_count_bodies_and_constant_nodes(tmp_path, model):
    stats = rt.import_module.ONNXImporter().import_model(model).stats
    assert (stats.node_count, stats.initializer_count, stats.parameter_count, stats.parameter_bytes) == (5, 0, 1, 4)
    graph = rt.Graph("choice")
    graph.add_input("c", [], np.bool_)
    graph.add_input("x", [3], np.float32)
    bodies = {}
    for branch in ("then_branch", "else_branch"):
        body = bodies[branch] = graph.create_subgraph(branch)
        body.add_node(f"{branch}_k", "Constant", [], [f"{branch}_k"], {"value_floats": [1.0, 2.0, 3.0]})
        body.add_node(f"{branch}_add", "Add", ["x", f"{branch}_k"], [f"{branch}_y"])
        body.add_output(f"{branch}_y", [3], np.float32)
    graph.add_node("choose", "If", ["c"], ["y"], bodies)
    graph.add_output("y", [3], np.float32)
    path = tmp_path / "choice.onnx"
    rt.save_model(graph, path)
    stats = rt.import_module.ONNXImporter().import_model(path).stats
    assert (stats.node_count, stats.initializer_count, stats.parameter_count, stats.parameter_bytes) == (5, 0, 6, 24)


def test_shapes_are_inferred_only_if_asked(model):
    importer, options = rt.import_module.ONNXImporter(), rt.ImportOptions()
    assert importer.import_model(model, options).graph.get_tensor_info("s").shape == [None, 3]
    options.infer_shapes = False
    assert importer.import_model(model, options).graph.get_tensor_info("s").shape is None


def test_a_graph_is_validated_only_if_asked(tmp_path):
    path = tmp_path / "bad.onnx"
    path.write_bytes(onnx_model([node("Relu", ["nowhere"], ["y"])], [], [port("y", FLOAT, [1])]))
    importer = rt.import_module.ONNXImporter()
    result = importer.import_model(path)
    assert not result.success and result.graph is None and "nowhere" in result.error
    assert result.stats == rt.ImportStats()
    result = importer.import_model(path, rt.ImportOptions(validate=False, infer_shapes=False))
    assert result.success and result.graph.nodes[0].inputs == ["nowhere"]


def test_an_optimised_import_has_folded_constants_and_no_dead_code(model):
    options = rt.ImportOptions()
    assert options == rt.ImportOptions(validate=True, infer_shapes=True, optimize=False)
    options.optimize = True
    result = rt.import_module.ONNXImporter().import_model(model, options)
    assert result.success and sorted(n.op for n in result.graph.nodes) == ["Add", "Relu"]
    assert result.stats.node_count == 5
    x = np.array([[-5, 0, 1]], np.float32)
    np.testing.assert_array_equal(rt.InferenceSession(result.graph).run(None, {"x": x})[0], [[0, 2, 3]])


def test_what_is_no_onnx_file_is_an_error_of_the_result(tmp_path, model):
    importer = rt.import_module.ONNXImporter()
    absent = importer.import_model(tmp_path / "absent.onnx")
    assert not absent.success and "absent.onnx" in absent.error and absent.graph is None
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"\x08\xff no model")
    assert not importer.import_model(broken).success
    pfm = tmp_path / "model.pfm"
    rt.load_model(model).save(pfm)
    result = importer.import_model(pfm)
    assert not result.success and "pfm file, not ONNX: use load_model" in result.error
    assert len(rt.load_model(pfm).nodes) == 5
    with pytest.raises(TypeError):
        importer.import_model(None)


def test_options_that_there_are_not_are_refused():
    with pytest.raises(AttributeError, match="'optimise'.*validate, infer_shapes, optimize"):
        rt.ImportOptions().optimise = True
    with pytest.raises(TypeError):
        rt.ImportOptions(optimise=True)


def test_progress_is_heard(model, tmp_path):
    heard = []
    graph = rt.load_model(model, progress=lambda fraction, stage: heard.append((fraction, stage)))
    fractions = [fraction for fraction, _ in heard]
    assert fractions == sorted(fractions) and fractions[-1] == 1 and len(graph.nodes) == 5
    assert {"import", "check"} <= {stage for _, stage in heard}
    heard.clear()
    rt.save_model(graph, tmp_path / "saved.pfm", progress=lambda fraction, stage: heard.append(stage))
    assert "write" in heard and len(rt.load_model(tmp_path / "saved.pfm").nodes) == 5


def test_progress_stops_loads_and_saves(model, tmp_path):
    def angry(fraction, stage):
        raise LookupError(stage)

    for progress, fault in ((lambda fraction, stage: False, rt.CancelledError), (angry, LookupError)):
        with pytest.raises(fault):
            rt.load_model(model, progress=progress)
        with pytest.raises(fault):
            rt.save_model(rt.load_model(model), tmp_path / "saved.pfm", progress=progress)
        assert not (tmp_path / "saved.pfm").exists()
    result = rt.import_module.ONNXImporter().import_model(model, rt.ImportOptions(progress=lambda *_: False))
    assert not result.success and "cancel" in result.error
    with pytest.raises(LookupError):
        rt.import_module.ONNXImporter().import_model(model, rt.ImportOptions(progress=angry))

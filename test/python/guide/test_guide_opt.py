# SPDX-License-Identifier: Apache-2.0
"""The guide's Python snippets on optimisation, as it writes them. The numbers count its Python snippets."""
import numpy as np
import pytest

import pyflame_rt
from guide_image_model import image_graph, reference
from pyflame_rt import OptLevel, opt

IMAGE = np.random.default_rng(3).normal(size=(1, 3, 224, 224)).astype(np.float32)


@pytest.fixture(autouse=True)
def model_files(tmp_path, monkeypatch):
    image_graph().save(tmp_path / "model.onnx")
    image_graph().save(tmp_path / "model.pfm")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def graph():
    return image_graph()


def check(graph):
    """The graph still computes the same."""
    got = pyflame_rt.InferenceSession(graph).run(None, {"input": IMAGE})[0]
    np.testing.assert_allclose(got, reference(IMAGE), rtol=1e-4, atol=1e-5)


def test_18_enabling_optimization():
    # Default: Extended optimization (level 2)
    session = pyflame_rt.InferenceSession("model.pfm")
    assert session.get_session_options().optimization_level == pyflame_rt.OptLevel.EXTENDED == 2
    default = session.run(None, {"input": IMAGE})[0]

    # Disable optimization
    options = pyflame_rt.SessionOptions()
    options.optimization_level = pyflame_rt.OptLevel.NONE
    session = pyflame_rt.InferenceSession("model.pfm", options)
    np.testing.assert_allclose(session.run(None, {"input": IMAGE})[0], default, rtol=1e-4, atol=1e-5)
    assert len(session.graph(optimized=True).nodes) == 13

    # Enable verbose logging
    options = pyflame_rt.SessionOptions()
    options.optimization_level = pyflame_rt.OptLevel.ALL
    options.verbose_optimization = True
    session = pyflame_rt.InferenceSession("model.pfm", options)
    np.testing.assert_allclose(session.run(None, {"input": IMAGE})[0], default, rtol=1e-4, atol=1e-5)


def test_19_constant_folding(graph):
    config = opt.ConstantFoldingConfig()
    config.max_tensor_bytes = 16 * 1024 * 1024  # Max 16MB tensors
    config.fold_shape_ops = True                 # Fold Shape, Gather, etc.
    config.fold_expensive_ops = False            # Don't fold MatMul, Conv
    config.exclude_ops = ["RandomNormal"]        # Never fold these

    # Apply manually
    result = opt.fold_constants(graph, config)
    assert f"Folded {result.stats.constants_folded} constants" == "Folded 1 constants"
    np.testing.assert_array_equal(graph.initializer("fc.bias"), 2 * image_graph().initializer("half").numpy())
    check(graph)


def test_20_dead_code_elimination(graph):
    config = opt.DCEConfig()
    config.remove_initializers = True  # Remove unused weights
    config.remove_identity = True      # Remove Identity nodes
    config.remove_dropout = True       # Remove Dropout in inference

    result = opt.eliminate_dead_code(graph, config)
    assert f"Removed {result.stats.nodes_removed} nodes" == "Removed 3 nodes"
    assert f"Removed {result.stats.initializers_removed} initializers" == "Removed 1 initializers"
    assert {"Identity", "Dropout", "Exp"} & {n.op for n in graph.nodes} == set()
    check(graph)


def test_21_common_subexpressions(graph):
    config = opt.CSEConfig()
    config.check_attributes = True   # Include attributes in comparison
    config.max_comparisons = 1000    # Limit comparisons per node

    result = opt.eliminate_common_subexpressions(graph, config)
    assert f"Eliminated {result.stats.nodes_removed} redundant nodes" == "Eliminated 1 redundant nodes"
    assert len(set(graph.find_node("sum").inputs)) == 1
    check(graph)


def test_22_operator_fusion(graph):
    config = opt.FusionConfig()
    config.fuse_conv_bn = True               # Conv + BatchNorm
    config.fuse_conv_bn_activation = True    # Conv + BN + Relu
    config.fuse_matmul_add = True            # MatMul + Add -> Gemm
    config.fuse_elementwise_activation = True  # Add/Mul + Relu
    config.check_backend_support = True      # Only fuse if backend supports
    config.target_backend = "cpu"            # Target backend name

    result = opt.fuse_operators(graph, config)
    assert result.stats.nodes_fused >= 1
    assert f"Fused {result.stats.nodes_fused} node patterns" != "Fused 0 node patterns"
    assert "BatchNormalization" not in [n.op for n in graph.nodes]
    check(graph)


def test_23_layout(graph):
    config = opt.LayoutConfig()
    config.conv_layout = opt.Layout.NCHW    # Preferred Conv layout
    config.insert_transposes = True          # Insert transpose nodes
    config.propagate_layout = True           # Propagate through graph
    config.target_backend = "cpu"            # Target backend

    # "Layout optimization is conservative": nothing is to be done here, and nothing is.
    result = opt.optimize_layout(graph, config)
    assert "Transpose" not in [n.op for n in graph.nodes] and result.stats.nodes_added == 0
    check(graph)


def test_24_pass_manager(graph):
    # Create pass manager with configuration
    config = opt.PassManagerConfig()
    config.opt_level = OptLevel.EXTENDED
    config.max_iterations = 10        # Max fixed-point iterations
    config.verbose = True             # Enable logging
    config.validate_after_pass = True  # Validate after each pass

    pm = opt.PassManager(config)
    assert not pm.run(graph).modified  # it has no passes yet

    # Register passes (or use create_default)
    pm = opt.PassManager.create_default(OptLevel.EXTENDED)

    # Run all passes
    result = pm.run(graph)
    assert result.modified and result.stats.constants_folded == 1

    # Run specific pass
    result = pm.run_pass("ConstantFoldingPass", graph)
    assert not result.modified

    # Run until fixed point (no more changes)
    result = pm.run_until_fixed_point(graph)

    # Check results
    assert isinstance(result.modified, bool)
    assert "nodes removed" in f"Stats: {result.stats}"
    assert all(isinstance(warning, str) for warning in result.warnings)
    assert not pm.run_until_fixed_point(graph).modified
    check(graph)


def test_25_statistics(graph):
    before = len(graph.nodes), len(graph.initializers)
    result = opt.optimize(graph, OptLevel.ALL)

    assert result.stats.nodes_removed >= 5
    assert result.stats.nodes_fused >= 1
    assert result.stats.constants_folded == 1
    assert result.stats.initializers_removed >= 1
    assert len(graph.nodes) == before[0] - result.stats.nodes_removed + result.stats.nodes_added
    check(graph)


def test_26_recommended_workflow():
    options = pyflame_rt.SessionOptions()
    options.optimization_level = pyflame_rt.OptLevel.EXTENDED
    options.verbose_optimization = True

    session = pyflame_rt.InferenceSession("model.onnx", options)

    # Verify outputs match unoptimized version
    unoptimized_options = pyflame_rt.SessionOptions()
    unoptimized_options.optimization_level = pyflame_rt.OptLevel.NONE
    unoptimized_session = pyflame_rt.InferenceSession("model.onnx", unoptimized_options)

    test_input = np.random.randn(1, 3, 224, 224).astype(np.float32)
    opt_output = session.run(None, {"input": test_input})[0]
    ref_output = unoptimized_session.run(None, {"input": test_input})[0]

    assert np.allclose(opt_output, ref_output, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(opt_output, reference(test_input), rtol=1e-4, atol=1e-5)

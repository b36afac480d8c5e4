# SPDX-License-Identifier: Apache-2.0
"""The guide's Python snippets on partitioning, as it writes them. The numbers count its Python snippets."""
import numpy as np
import pytest

import pyflame_rt
from pyflame_rt import DType, Graph, partition


@pytest.fixture
def graph():
    """A layer's projections, up and gate, and down."""
    rng = np.random.default_rng(0)
    made = Graph("layer")
    made.add_input("x", [16, 256], DType.Float32)
    for name, taken in (("q", "x"), ("k", "x"), ("v", "x"), ("up", "sum"), ("gate", "sum"), ("down", "both")):
        made.add_initializer(f"w_{name}", rng.normal(size=(256, 256)).astype(np.float32))
        made.add_node(name, "MatMul", inputs=[taken, f"w_{name}"], outputs=[f"{name}_out"])
    made.add_node("add", "Add", inputs=["q_out", "k_out"], outputs=["half"])
    made.add_node("sum", "Add", inputs=["half", "v_out"], outputs=["sum"])
    made.add_node("both", "Mul", inputs=["up_out", "gate_out"], outputs=["both"])
    made.add_output("down_out")
    return made


def test_68_wse_multi_chip(graph):
    from pyflame_rt.partition import wse

    # Configure WSE topology
    chip_config = partition.WSEChipConfig()
    chip_config.topology = [2, 2]                     # 2x2 chip array
    chip_config.inter_chip_bandwidth = 1e12           # 1 TB/s
    chip_config.inter_chip_latency = 100.0            # 100 ns
    chip_config.chip_memory_bytes = 40 * 1024**3      # 40 GB per chip

    # Partition with WSE-aware optimization
    plan = wse.partition_for_wse(graph, chip_config)

    # Optimize for WSE dataflow
    optimized_graph = wse.optimize_for_wse_dataflow(graph)

    assert pyflame_rt.partition.WSEChipConfig is partition.WSEChipConfig and chip_config.total_chips() == 4
    assert plan.node_to_partition.keys() == {node.name for node in graph.nodes} and not plan.unplaced
    x = {"x": np.random.default_rng(1).normal(size=(16, 256)).astype(np.float32)}
    got, want = (pyflame_rt.InferenceSession(one).run(None, x)[0] for one in (optimized_graph, graph))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-2)

# SPDX-License-Identifier: Apache-2.0
"""Graphs on wafer-scale chips, with the wafer-scale provider's simulator."""
import threading
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import pyflame_rt
from pyflame_rt import DType, Graph, InvalidArgumentError, opt, partition
from pyflame_rt.partition import wse

# A product of 256 x 256 gets a square of 64 x 64 PEs: one of them fits on such a chip.
SMALL_CHIP = 64 * 64 * 47_000


def chain(count, rows=16, names=True):
    """Products in a row, then NonZero, which the wafer does not take."""
    rng = np.random.default_rng(0)
    graph = Graph("chain")
    graph.add_input("x", [rows, 256], DType.Float32)
    last = "x"
    for i in range(count):
        graph.add_initializer(f"w{i}", rng.normal(size=(256, 256)).astype(np.float32))
        graph.add_node(f"product{i}" if names else "", "MatMul", inputs=[last, f"w{i}"], outputs=[f"y{i}"])
        last = f"y{i}"
    graph.add_node("positions" if names else "", "NonZero", inputs=[last], outputs=["where"])
    graph.add_output("where")
    return graph


# ------------------------------------------------------------------ plans


def test_one_chip():
    graph = chain(3)
    plan = wse.partition_for_wse(graph)
    assert (plan.machine, plan.simulated, plan.streaming) == ("wse2", True, False)
    one, = plan.partitions
    assert (one.chip, one.nodes) == (0, ["product0", "product1", "product2"])
    assert one.memory_bytes > 3 * 256 * 256 * 2 and one.cycles > 0
    assert one.compute_time_us == pytest.approx(one.cycles / 850)
    assert plan.node_to_partition == {"product0": 0, "product1": 0, "product2": 0} and plan.unplaced == ["positions"]
    assert plan.total_comm_bytes == 0 and plan.load_imbalance == 0
    assert plan.total_latency_us > one.compute_time_us > plan.pipeline_interval_us > 0
    assert plan.text.startswith("simulated wse2") and "product1" in plan.text and str(plan) == plan.text
    assert plan.svg().startswith("<svg") and "svg" not in repr(plan)
    assert [node.name for node in graph.nodes] == ["product0", "product1", "product2", "positions"]


def test_the_picture_is_well_formed_whatever_the_names_are():
    graph = Graph("names")
    graph.add_input("x", [1, 256], DType.Float32)
    for i, name in enumerate(["</svg><script>", "a\nb", "é\u202e\ufffe", "&amp;" * 5000]):
        graph.add_initializer(f"w{i}", np.zeros((256, 256), np.float32))
        graph.add_node(name, "MatMul", inputs=["x" if i == 0 else f"y{i - 1}", f"w{i}"], outputs=[f"y{i}"])
    graph.add_output("y3")
    root = ET.fromstring(wse.partition_for_wse(graph).svg())
    titles = [title.text for title in root.findall(".//{*}rect/{*}title")]
    assert any("</svg><script>: " in title for title in titles) and any("a\ufffdb: " in title for title in titles)
    assert max(map(len, titles)) < 1000 and not root.findall(".//{*}script")


def test_over_the_chips_of_a_grid():
    config = partition.WSEChipConfig(num_chips=4, topology=(2, 2), chip_memory_bytes=SMALL_CHIP)
    plan = wse.partition_for_multi_chip(chain(3), config)
    assert [one.chip for one in plan.partitions] == list(range(len(plan.partitions))) and len(plan.partitions) > 1
    assert sum((one.nodes for one in plan.partitions), []) == ["product0", "product1", "product2"]
    assert plan.total_comm_bytes == (len(plan.partitions) - 1) * 16 * 256 * 2
    loads = [one.cycles for one in plan.partitions]
    assert plan.load_imbalance == pytest.approx(max(loads) / np.mean(loads) - 1)
    config.inter_chip_latency = 1e6
    links = sum([1, 2, 1][:len(plan.partitions) - 1])  # from one chip to the next, row by row
    far = wse.partition_for_multi_chip(chain(3), config)
    assert far.total_latency_us == pytest.approx(plan.total_latency_us + 1000 * links)
    config.inter_chip_latency, config.inter_chip_bandwidth = 0, 1e6
    assert wse.partition_for_wse(chain(3), config).total_latency_us > plan.total_latency_us + 1000


def test_streaming():
    plan = wse.partition_for_wse(chain(3), wse.WSEChipConfig(chip_memory_bytes=200_000))
    one, = plan.partitions
    assert plan.streaming and plan.total_latency_us == plan.pipeline_interval_us
    assert one.memory_bytes < wse.partition_for_wse(chain(3)).partitions[0].memory_bytes


def test_more_rows_take_longer():
    one, few, many, open_dims = (wse.partition_for_wse(chain(2, rows)).total_latency_us for rows in (1, 16, 512, None))
    assert one == open_dims < few < many


def test_machines():
    assert wse.partition_for_wse(chain(1), machine="wse3").machine == "wse3"
    assert wse.partition_for_wse(chain(1), machine="wse3").text.startswith("simulated wse3")


def test_nothing_on_the_wafer():
    plan = wse.partition_for_wse(chain(0))
    assert plan.partitions == [] and plan.unplaced == ["positions"]
    assert plan.total_latency_us == 0 and plan.svg() == "" and "takes no node" in plan.text


def test_nodes_without_names_go_by_their_outputs():
    graph = chain(2, names=False)
    plan = wse.partition_for_wse(graph)
    assert plan.node_to_partition == {"y0": 0, "y1": 0} and plan.unplaced == ["where"]
    assert [node.name for node in graph.nodes] == ["", "", ""]


def test_a_plan_leaves_other_sessions_alone():
    session = pyflame_rt.InferenceSession(chain(1), pyflame_rt.SessionOptions(device="wse2"))
    before = pyflame_rt.Environment.ask("wse", "plan", device="wse2").text
    wse.partition_for_wse(chain(3))
    assert pyflame_rt.Environment.ask("wse", "plan", device="wse2").text == before
    assert session.get_providers()[0] == "WSEExecutionProvider"


def test_from_many_threads():
    plans = {}
    threads = [threading.Thread(target=lambda i=i: plans.update({i: wse.partition_for_wse(chain(i))}))
               for i in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {i: len(plan.node_to_partition) for i, plan in plans.items()} == {i: i for i in range(1, 7)}


# ------------------------------------------------------------------ dataflow


def layer(rank=2, depth=256):
    """A layer of a language model multiplies one input by these: q, k and v, then up and gate."""
    rng = np.random.default_rng(0)
    graph = Graph("layer")
    graph.add_input("x", [1, 16, depth][3 - rank:], DType.Float32)
    widths = {"q": depth, "k": depth // 4, "v": depth // 4, "up": depth, "gate": depth}
    for name, width in widths.items():
        graph.add_initializer(f"w_{name}", rng.normal(size=(depth, width)).astype(np.float32))
        graph.add_node(name, "MatMul", inputs=["x" if name in "qkv" else "q_biased", f"w_{name}"],
                       outputs=[f"{name}_out"])
    graph.add_initializer("bias", rng.normal(size=depth).astype(np.float32))
    graph.add_node("add", "Add", inputs=["q_out", "bias"], outputs=["q_biased"])
    graph.add_node("mul", "Mul", inputs=["up_out", "gate_out"], outputs=["y"])
    for name in ("k_out", "v_out", "y"):
        graph.add_output(name)
    return graph


def ops(graph):
    return [node.op for node in graph.topological_sort()]


@pytest.mark.parametrize("machine", ["wse2", "wse3"])
@pytest.mark.parametrize("rank", [2, 3])
def test_products_of_one_input_become_one(rank, machine):
    graph = layer(rank)
    made = wse.optimize_for_wse_dataflow(graph, machine)
    assert ops(graph).count("MatMul") == 5
    assert sorted(ops(made)) == ["Add", "MatMul", "MatMul", "Mul", "Split", "Split"]
    assert [one.name for one in made.outputs] == ["k_out", "v_out", "y"]
    assert made.validate_all() == []
    x = {"x": np.random.default_rng(1).normal(size=[1, 16, 256][3 - rank:]).astype(np.float32)}
    for got, want in zip(*(pyflame_rt.InferenceSession(one).run(None, x) for one in (made, graph))):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-2)


def test_a_plan_of_the_joined_products_is_shorter():
    graph = layer()
    made = wse.optimize_for_wse_dataflow(graph)
    assert not wse.partition_for_wse(made).unplaced
    cycles = [sum(one.cycles for one in wse.partition_for_wse(each).partitions) for each in (made, graph)]
    assert cycles[0] < cycles[1]


def test_what_takes_no_less_time_is_left():
    assert ops(wse.optimize_for_wse_dataflow(chain(3))) == ops(chain(3))
    result = opt.DataflowPass(opt.DataflowConfig(target_backend="cpu")).run(chain(3))
    assert not result.modified


def test_the_pass_is_of_no_level():
    one = opt.DataflowPass(opt.DataflowConfig("wse", "wse2"))
    assert not any(one.should_run(level) for level in pyflame_rt.OptLevel)
    assert one.description and one.after() == ["ConstantFoldingPass", "CSEPass"]
    assert "DataflowPass" not in opt.PassManager.create_default(pyflame_rt.OptLevel.ALL).passes
    manager = opt.PassManager(opt.PassManagerConfig(extra={"dataflow.target_backend": "wse"}, verify=True))
    manager.register_pass(one)
    graph = layer()
    result = manager.run(graph)
    assert result.stats.rules == {"MergedProducts": 2} and "Split" in ops(graph) and result.warnings == []
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="a built-in pass has that name"):
        class DataflowPass(opt.Pass):
            def run(self, graph):
                return opt.PassResult()
        manager = opt.PassManager()
        manager.register_pass(DataflowPass())
        manager.run(graph)


def test_arguments_of_the_optimisation():
    with pytest.raises(InvalidArgumentError, match="optimising a graph: there is no wafer-scale machine 'cpu'"):
        wse.optimize_for_wse_dataflow(layer(), "cpu")
    with pytest.raises(TypeError, match="optimising str: give a pyflame_rt.Graph"):
        wse.optimize_for_wse_dataflow("model.onnx")
    with pytest.raises(InvalidArgumentError, match="dataflow.device is 'wse9', which WSE.* it opens wse,wse2"):
        opt.DataflowPass(opt.DataflowConfig("wse", "wse9")).run(layer())
    with pytest.raises(pyflame_rt.NotFoundError, match="nobody"):
        opt.DataflowPass(opt.DataflowConfig("nobody")).run(layer())


# ------------------------------------------------------------------ errors


def test_config():
    config = partition.WSEChipConfig()
    assert (config.num_chips, list(config.topology), config.total_chips()) == (1, [1, 1], 1)
    assert (config.inter_chip_bandwidth, config.inter_chip_latency, config.chip_memory_bytes) == (0, 0, 0)
    with pytest.raises(AttributeError, match="no option 'bandwidth'; it has num_chips, topology, "):
        config.bandwidth = 1
    config.topology = np.array([3, 2])
    assert config.total_chips() == 6


@pytest.mark.parametrize("topology", [[2], [2, 2, 2], [0, 2], [2, -1], [2.5, 2], [True, 2], "2x2", None, 4])
def test_topologies_that_there_are_not(topology):
    config = partition.WSEChipConfig(topology=topology)
    for call in (config.total_chips, lambda: wse.partition_for_wse(chain(1), config)):
        with pytest.raises(InvalidArgumentError, match="give two positive whole numbers, columns and rows, as"):
            call()


@pytest.mark.parametrize("name, value", [
    ("inter_chip_bandwidth", -1), ("inter_chip_bandwidth", float("inf")), ("inter_chip_latency", float("nan")),
    ("inter_chip_latency", "100 ns"), ("chip_memory_bytes", None), ("chip_memory_bytes", True)])
def test_numbers_that_there_are_not(name, value):
    config = partition.WSEChipConfig(**{name: value})
    with pytest.raises(InvalidArgumentError, match=f"{name} of wafer-scale chips is .*a number of 0 or more"):
        wse.partition_for_wse(chain(1), config)


def test_num_chips_are_those_of_the_topology():
    config = partition.WSEChipConfig(num_chips=3, topology=[2, 2])
    with pytest.raises(InvalidArgumentError, match=r"num_chips is 3, but topology \[2, 2\] has 4 chips"):
        wse.partition_for_multi_chip(chain(1), config)
    assert wse.partition_for_wse(chain(1), config).partitions
    config.num_chips = 1
    assert wse.partition_for_multi_chip(chain(1), config).partitions
    config.num_chips = 0
    with pytest.raises(InvalidArgumentError, match="num_chips of wafer-scale chips is 0"):
        wse.partition_for_multi_chip(chain(1), config)


def test_arguments():
    with pytest.raises(InvalidArgumentError, match="4,096 wafers at most"):
        wse.partition_for_wse(chain(1), partition.WSEChipConfig(topology=[100, 100]))
    for machine in ("wse9", "cpu", ""):
        with pytest.raises(InvalidArgumentError, match=f"no wafer-scale machine '{machine}'; there are wse, wse2"):
            wse.partition_for_wse(chain(1), machine=machine)
    with pytest.raises(TypeError, match="partitioning InferenceSession: give a pyflame_rt.Graph"):
        wse.partition_for_wse(pyflame_rt.InferenceSession(chain(1)))
    with pytest.raises(TypeError, match="the config is a dict; give a WSEChipConfig"):
        wse.partition_for_wse(chain(1), {"topology": [2, 2]})

# SPDX-License-Identifier: Apache-2.0
"""Passes that declare what they follow, layouts that no graph can say, and fusion of unknown dimensions."""
import numpy as np
import pytest

import pyflame_rt as rt
from pyflame_rt import Graph, OptLevel, opt

ALL = opt.PassManagerConfig(opt_level=OptLevel.ALL)


def dense(rows):
    """y = x * w + b, of |rows| rows."""
    graph = Graph("dense")
    graph.add_input("x", [rows, 4])
    graph.add_initializer("w", np.full((4, 3), 0.25, np.float32))
    graph.add_initializer("b", np.arange(3, dtype=np.float32))
    graph.add_node("product", "MatMul", ["x", "w"], ["p"])
    graph.add_node("sum", "Add", ["p", "b"], ["y"])
    graph.add_output("y")
    return graph


class Follower(opt.Pass):
    def __init__(self, name, *after):
        self._name, self._after = name, list(after)

    @property
    def name(self):
        return self._name

    def after(self):
        return self._after

    def run(self, graph):
        return opt.PassResult()


def ran(*passes):
    manager = opt.PassManager(ALL)
    for one in passes:
        manager.register_pass(one)
    return [report.name for report in manager.run(dense(2)).reports]


def test_passes_run_after_those_that_they_follow():
    found = ran(Follower("Last", "Own", "OperatorFusionPass"), opt.LayoutOptimizationPass(),
                Follower("Own", "CSEPass", "NotHere"), opt.OperatorFusionPass(), opt.CSEPass(),
                opt.ConstantFoldingPass())
    assert found == ["ConstantFoldingPass", "CSEPass", "Own", "OperatorFusionPass", "Last", "LayoutOptimizationPass"]
    assert ran(Follower("B"), Follower("A")) == ["B", "A"] and Follower("A").after() == opt.Pass().after() == []


def test_passes_that_follow_each_other_are_refused():
    with pytest.raises(rt.InvalidArgumentError, match="Own|Last"):
        ran(Follower("Own", "Last"), Follower("Last", "Own"))


def test_built_in_passes_say_what_they_follow():
    """The package says of them what the library does."""
    kinds = {kind.__name__: kind for kind in (opt.ConstantFoldingPass, opt.DeadCodeEliminationPass, opt.CSEPass,
                                              opt.OperatorFusionPass, opt.LayoutOptimizationPass)}
    assert [len(kind().after()) for kind in kinds.values()] == [0, 1, 2, 2, 1]
    for name, kind in kinds.items():
        for first in kind().after():
            assert ran(kind(), kinds[first]()) == [first, name]


def test_a_layout_that_no_graph_can_say_is_refused():
    with pytest.raises(rt.PyFlameRTError, match="NC4HW4|nc4hw4"):
        opt.optimize_layout(dense(2), opt.LayoutConfig(conv_layout=opt.Layout.NC4HW4))


@pytest.mark.parametrize("rows", [None, "N", 2])
@pytest.mark.parametrize("fuse", [opt.fuse_operators, lambda graph: opt.optimize(graph, OptLevel.EXTENDED)],
                         ids=["fuse_operators", "optimize"])
def test_dimensions_fuse_whether_they_are_known_or_not(rows, fuse):
    graph = dense(rows)
    fuse(graph)
    assert [node.op for node in graph.nodes] == ["Gemm"]
    assert graph.inputs[0].shape[0] == (2 if rows == 2 else None)
    assert graph.inputs[0].dim_names == (["N", ""] if rows == "N" else [])
    x = np.ones((2, 4), np.float32)
    assert rt.InferenceSession(graph).run(None, {"x": x})[0].tolist() == [[1, 2, 3], [1, 2, 3]]

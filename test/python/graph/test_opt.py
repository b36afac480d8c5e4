# SPDX-License-Identifier: Apache-2.0
"""Optimisation: the passes, the manager, passes written in Python, patterns."""
import gc
import subprocess
import sys
import threading
import traceback
import weakref

import numpy as np
import pytest

import pyflame_rt as rt
from pyflame_rt import Graph, OptLevel, opt


def ops(graph):
    return sorted(node.op for node in graph.nodes)


def wasteful():
    """y = relu(x @ w + b) with much that is not needed: constants to fold, a dead branch, nodes twice, Identity."""
    rng = np.random.default_rng(1)
    graph = Graph("wasteful")
    graph.add_input("x", ["N", 4])
    graph.add_initializer("w", rng.normal(size=(4, 3)).astype(np.float32))
    graph.add_initializer("half", np.full(3, 0.5, np.float32))
    graph.add_initializer("unused", np.zeros(7, np.float32))
    graph.add_node("fold", "Add", ["half", "half"], ["b"])
    graph.add_node("same", "Identity", ["x"], ["x2"])
    graph.add_node("dead", "Exp", ["x"], ["nobody"])
    graph.add_node("mm1", "MatMul", ["x2", "w"], ["p1"])
    graph.add_node("mm2", "MatMul", ["x2", "w"], ["p2"])
    graph.add_node("add1", "Add", ["p1", "b"], ["s1"])
    graph.add_node("add2", "Add", ["p2", "b"], ["s2"])
    graph.add_node("max", "Max", ["s1", "s2"], ["m"])
    graph.add_node("relu", "Relu", ["m"], ["y"])
    graph.add_output("y", ["N", 3])
    return graph


X = np.random.default_rng(2).normal(size=(5, 4)).astype(np.float32)


def result_of(graph):
    options = rt.SessionOptions()
    options.optimization_level = OptLevel.NONE
    return rt.InferenceSession(graph, options).run(None, {"x": X})[0]


# ------------------------------------------------------------------ built-in passes


def test_constants_are_folded():
    graph = wasteful()
    before = result_of(graph)
    result = opt.fold_constants(graph)
    assert result.modified and result.stats.constants_folded == 1
    assert graph.find_node("fold") is None and "Identity" in ops(graph)
    np.testing.assert_array_equal(graph.initializer("b"), [1, 1, 1])
    np.testing.assert_array_equal(result_of(graph), before)
    again = opt.fold_constants(graph)
    assert not again.modified and again.stats.constants_folded == 0


def test_what_folding_may_not_do_is_not_done():
    for config in (opt.ConstantFoldingConfig(exclude_ops=["Add"]), opt.ConstantFoldingConfig(max_tensor_bytes=4)):
        graph = wasteful()
        assert not opt.fold_constants(graph, config).modified
        assert graph.find_node("fold") is not None


def test_dead_code_goes():
    graph = wasteful()
    before = result_of(graph)
    result = opt.eliminate_dead_code(graph)
    assert result.stats.nodes_removed == 2 and result.stats.initializers_removed == 1
    assert "Exp" not in ops(graph) and "Identity" not in ops(graph) and "unused" not in graph.initializers
    np.testing.assert_array_equal(result_of(graph), before)


def test_dead_code_elimination_keeps_what_it_is_told_to():
    graph = wasteful()
    config = opt.DCEConfig()
    config.remove_identity = config.remove_initializers = False
    result = opt.eliminate_dead_code(graph, config)
    assert result.stats.nodes_removed == 1 and result.stats.initializers_removed == 0
    assert "Identity" in ops(graph) and "unused" in graph.initializers


def test_equal_nodes_are_computed_once():
    graph = wasteful()
    before = result_of(graph)
    result = opt.eliminate_common_subexpressions(graph)
    assert result.stats.nodes_removed >= 2 and ops(graph).count("MatMul") == 1
    np.testing.assert_array_equal(result_of(graph), before)


def test_operators_are_fused():
    graph = wasteful()
    graph.remove_node("max")
    graph.find_node("relu").inputs = ["s1"]
    opt.eliminate_dead_code(graph)
    opt.fold_constants(graph)
    before = result_of(graph)
    apart = graph.clone()
    kept = opt.fuse_operators(apart, opt.FusionConfig(fuse_matmul_add=False, fuse_elementwise_activation=False))
    result = opt.fuse_operators(graph)
    assert "Gemm" in result.stats.rules and "Gemm" not in kept.stats.rules
    assert len(graph.nodes) < len(apart.nodes)
    assert len(graph.nodes) < 3 and result.stats.rules
    np.testing.assert_allclose(rt.InferenceSession(graph).run(None, {"x": X})[0], before, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("batch", [None, "N", 5])
def test_dense_layers_are_fused_whatever_their_batch(batch):
    graph = Graph("dense")
    graph.add_input("x", [batch, 784])
    graph.add_initializer("w", np.ones((784, 10), np.float32))
    graph.add_initializer("b", np.arange(10, dtype=np.float32))
    graph.add_node("product", "MatMul", ["x", "w"], ["p"])
    graph.add_node("sum", "Add", ["p", "b"], ["y"])
    graph.add_output("y", [batch, 10])
    said = graph.inputs[0].shape
    opt.optimize(graph)
    assert ops(graph) == ["Gemm"]
    assert graph.inputs[0].shape == said
    assert (rt.InferenceSession(graph).run(None, {"x": np.zeros((5, 784), np.float32)})[0] == np.arange(10)).all()


def test_blocks_of_four_channels_are_refused():
    with pytest.raises(rt.PyFlameRTError, match="conv_layout NC4HW4: no operator takes tensors in blocks"):
        opt.optimize_layout(wasteful(), opt.LayoutConfig(conv_layout=opt.Layout.NC4HW4))


def test_layout_optimisation_leaves_results_alone():
    graph = Graph()
    graph.add_input("x", [1, 4, 8, 8])
    graph.add_initializer("w", np.random.default_rng(4).normal(size=(4, 4, 3, 3)).astype(np.float32))
    graph.add_node("t1", "Transpose", ["x"], ["a"], {"perm": [0, 2, 3, 1]})
    graph.add_node("t2", "Transpose", ["a"], ["b"], {"perm": [0, 3, 1, 2]})
    graph.add_node("conv", "Conv", ["b", "w"], ["y"], {"pads": [1, 1, 1, 1]})
    graph.add_output("y")
    x = np.random.default_rng(5).normal(size=(1, 4, 8, 8)).astype(np.float32)
    before = rt.InferenceSession(graph).run(None, {"x": x})[0]
    opt.optimize_layout(graph, opt.LayoutConfig(conv_layout=opt.Layout.NCHW))
    np.testing.assert_allclose(rt.InferenceSession(graph).run(None, {"x": x})[0], before, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("level, products, waste", [
    (OptLevel.NONE, 2, True), (OptLevel.BASIC, 2, False), (OptLevel.EXTENDED, 1, False), (OptLevel.ALL, 1, False)])
def test_optimize_does_what_the_level_has(level, products, waste):
    graph = wasteful()
    before = result_of(graph)
    result = opt.optimize(graph, level)
    assert result.modified != waste and ("Exp" in ops(graph)) == ("Identity" in ops(graph)) == waste
    assert sum(op in ("MatMul", "Gemm") or "Fused" in op for op in ops(graph)) == products
    np.testing.assert_allclose(rt.InferenceSession(graph).run(None, {"x": X})[0], before, rtol=1e-5, atol=1e-5)


def test_the_same_graph_object_shows_what_was_done():
    graph = wasteful()
    dead, kept, nodes, attrs = graph.find_node("dead"), graph.find_node("relu"), graph.nodes, graph.inputs
    opt.eliminate_dead_code(graph)
    assert dead not in graph.nodes and dead in nodes and kept in graph.nodes
    with pytest.raises(rt.NotFoundError):
        dead.name
    assert "not in its graph" in repr(dead)
    assert kept.inputs == ["m"] and graph.find_node("mm1").inputs == ["x", "w"]
    assert [i.name for i in graph.inputs] == [i.name for i in attrs]


def test_configs_have_the_guides_defaults_and_no_others():
    assert opt.ConstantFoldingConfig() == opt.ConstantFoldingConfig(16777216, True, False, [])
    assert opt.DCEConfig() == opt.DCEConfig(True, True, True)
    assert opt.CSEConfig() == opt.CSEConfig(True, 1000)
    assert opt.FusionConfig() == opt.FusionConfig(True, True, True, True, True, "cpu")
    assert opt.LayoutConfig() == opt.LayoutConfig(opt.Layout.NCHW, True, True, "cpu")
    assert [layout.name for layout in opt.Layout] == ["NCHW", "NHWC", "NC4HW4"]
    config = opt.PassManagerConfig()
    assert (config.opt_level, config.max_iterations, config.verbose, config.validate_after_pass, config.verify,
            config.skip_passes) == (OptLevel.EXTENDED, 10, False, False, False, [])
    for made in (opt.ConstantFoldingConfig(), opt.PassManagerConfig(), opt.LayoutConfig()):
        with pytest.raises(AttributeError, match="no option 'fuse_conv_bm'; it has"):
            made.fuse_conv_bm = True


def test_wrong_configurations_are_refused():
    graph = wasteful()
    with pytest.raises(TypeError, match="takes a DCEConfig, not CSEConfig"):
        opt.eliminate_dead_code(graph, opt.CSEConfig())
    with pytest.raises(rt.InvalidArgumentError, match="max_tensor_bytes"):
        opt.fold_constants(graph, opt.ConstantFoldingConfig(max_tensor_bytes="many"))
    with pytest.raises(rt.InvalidArgumentError, match="OptLevel"):
        opt.optimize(graph, 9)
    with pytest.raises(rt.PyFlameRTError, match="nonesuch"):
        opt.fuse_operators(graph, opt.FusionConfig(target_backend="nonesuch"))
    with pytest.raises(rt.InvalidArgumentError, match="no_such_key"):
        opt.PassManager(opt.PassManagerConfig(extra={"no_such_key": "1"})).run(graph)
    with pytest.raises(rt.InvalidArgumentError, match="NoSuchPass"):
        opt.PassManager(opt.PassManagerConfig(skip_passes=["NoSuchPass"])).run(graph)
    with pytest.raises(TypeError, match="session.graph"):
        opt.optimize(rt.InferenceSession(graph))
    with pytest.raises(rt.InvalidArgumentError, match="body"):
        opt.optimize(graph.create_subgraph("body"))
    assert len(graph.nodes) == 9


# ------------------------------------------------------------------ the manager


def test_a_default_manager_has_the_passes_of_its_level():
    assert opt.PassManager().passes == []
    basic = ["ConstantFoldingPass", "DeadCodeEliminationPass"]
    extended = basic + ["CSEPass", "OperatorFusionPass"]
    assert opt.PassManager.create_default(OptLevel.NONE).passes == []
    assert opt.PassManager.create_default(OptLevel.BASIC).passes == basic
    assert opt.PassManager.create_default().passes == extended
    config = opt.PassManagerConfig(opt_level=OptLevel.ALL)
    manager = opt.PassManager.create_default(config)
    assert manager.passes == extended + ["LayoutOptimizationPass"] and manager.config is config
    assert "CSEPass" in repr(manager)


def test_results_report_each_pass_and_its_rules():
    graph = wasteful()
    before = len(graph.nodes)
    result = opt.PassManager.create_default(OptLevel.EXTENDED).run_until_fixed_point(graph)
    by_name = {report.name: report for report in result.reports}
    assert list(by_name) == ["ConstantFoldingPass", "DeadCodeEliminationPass", "CSEPass", "OperatorFusionPass"]
    folding = by_name["ConstantFoldingPass"]
    assert folding.modified and folding.runs >= 1 and folding.nodes_before == before and folding.milliseconds > 0
    assert folding.stats.constants_folded == result.stats.constants_folded == 1
    assert sum(r.stats.nodes_removed for r in result.reports) == result.stats.nodes_removed
    known = {rule.name for rule in opt.known_rules()}
    assert result.stats.rules and set(result.stats.rules) <= known
    for rule, count in result.stats.rules.items():
        assert count == sum(r.stats.rules.get(rule, 0) for r in result.reports)
    assert "nodes removed" in str(result.stats) and str(folding).startswith("ConstantFoldingPass: 9 -> ")


def test_a_manager_runs_single_passes_skips_and_counts_rounds():
    manager = opt.PassManager.create_default(OptLevel.BASIC)
    graph = wasteful()
    assert manager.run_pass("ConstantFoldingPass", graph).stats.constants_folded == 1
    assert "Exp" in ops(graph)
    with pytest.raises(rt.NotFoundError, match="NoSuchPass"):
        manager.run_pass("NoSuchPass", graph)
    skipping = opt.PassManagerConfig(opt_level=OptLevel.BASIC, skip_passes=["DeadCodeEliminationPass"])
    assert not opt.PassManager.create_default(skipping).run(graph).modified
    assert manager.run(graph).modified and "Exp" not in ops(graph)
    assert not manager.run_until_fixed_point(graph).modified


def test_passes_of_a_manager_are_configured():
    manager = opt.PassManager(opt.PassManagerConfig(opt_level=OptLevel.ALL, validate_after_pass=True, verify=True))
    manager.register_pass(opt.DeadCodeEliminationPass(opt.DCEConfig(remove_identity=False)))
    graph = wasteful()
    assert manager.run(graph).stats.nodes_removed == 1 and "Identity" in ops(graph)
    manager.register_pass(opt.DeadCodeEliminationPass())
    assert manager.passes == ["DeadCodeEliminationPass"]
    assert manager.run(graph).stats.nodes_removed == 1 and "Identity" not in ops(graph)
    with pytest.raises(TypeError, match="derived from opt.Pass"):
        manager.register_pass(object())
    manager.register_plugin_pass("NoSuchPlugin")
    with pytest.raises(rt.NotFoundError, match="NoSuchPlugin"):
        manager.run(graph)


# ------------------------------------------------------------------ passes in Python


class Rename(opt.Pass):
    """Makes one operator another."""

    def __init__(self, old, new, level=OptLevel.BASIC):
        self.old, self.new, self.level, self.seen = old, new, level, []

    def should_run(self, level):
        return level >= self.level

    def run(self, graph):
        self.seen.append(graph)
        result = opt.PassResult(warnings=[f"{self.old} is not what you want"])
        for node in graph.nodes:
            if node.op == self.old:
                inputs, outputs = node.inputs, node.outputs
                graph.remove_node(node)
                graph.add_node(node.name, self.new, inputs, outputs)
                result.modified = True
                result.stats.nodes_fused += 1
        return result


def manager_of(*passes, level=OptLevel.EXTENDED):
    manager = opt.PassManager(opt.PassManagerConfig(opt_level=level))
    for one in passes:
        manager.register_pass(one)
    return manager


def test_a_python_pass_rewrites_the_graph():
    graph = wasteful()
    result = manager_of(Rename("Max", "Min")).run(graph)
    assert result.modified and result.stats.nodes_fused == 1
    assert result.warnings == ["Max is not what you want"]
    assert [r.name for r in result.reports] == ["Rename"]
    assert graph.producer("m").op == "Min"


def test_edits_of_a_pass_that_says_nothing_was_modified_are_dropped():
    class Liar(Rename):
        name = "liar"

        def run(self, graph):
            super().run(graph)
            return opt.PassResult()

    graph = wasteful()
    result = manager_of(Liar("Max", "Min")).run(graph)
    assert not result.modified and graph.producer("m").op == "Max"
    assert result.reports[0].name == "liar"


def test_a_python_pass_runs_from_its_level_on_and_between_built_in_ones():
    late = Rename("Max", "Min", OptLevel.ALL)
    graph = wasteful()
    assert not manager_of(late).run(graph).modified and late.seen == []
    assert manager_of(late).run_pass("Rename", graph).modified
    manager = opt.PassManager.create_default(OptLevel.BASIC)
    manager.register_pass(Rename("Min", "Max"))
    result = manager.run(graph)
    assert [r.name for r in result.reports] == manager.passes and graph.producer("m").op == "Max"


def test_passes_of_a_manager_run_after_those_that_they_follow():
    class Last(opt.Pass):
        def after(self):
            return ["CSEPass", "Nowhere"]

        def run(self, graph):
            return opt.PassResult()

    manager = opt.PassManager()
    for one in (Last(), opt.CSEPass(), opt.ConstantFoldingPass()):
        manager.register_pass(one)
    assert [report.name for report in manager.run(wasteful()).reports] == ["ConstantFoldingPass", "CSEPass", "Last"]


def test_names_may_be_methods_as_in_cxx():
    class Method(Rename):
        def name(self):
            return "by_method"

    class Nameless(Rename):
        name = ""

    assert manager_of(Method("a", "b")).passes == ["by_method"]
    assert repr(Method("a", "b")) == "<pass by_method>"
    with pytest.raises(rt.InvalidArgumentError, match="Nameless"):
        manager_of(Nameless("a", "b"))


def test_what_a_pass_raises_is_the_cause_of_the_error():
    class Failing(opt.Pass):
        def run(self, graph):
            graph.remove_node(graph.nodes[0])
            raise KeyError("what went wrong")

    graph = wasteful()
    with pytest.raises(rt.PyFlameRTError, match="Failing.*KeyError: 'what went wrong'") as raised:
        manager_of(opt.DeadCodeEliminationPass(), Failing()).run(graph)
    cause = raised.value.__cause__
    assert isinstance(cause, KeyError)
    frames = traceback.extract_tb(cause.__traceback__)
    assert any(frame.name == "run" and frame.filename == __file__ for frame in frames)
    assert len(graph.nodes) == 9


def test_errors_of_this_package_keep_their_type_and_interrupts_stay_interrupts():
    class Raising(opt.Pass):
        def __init__(self, fault):
            self.fault = fault

        def run(self, graph):
            raise self.fault

    graph = wasteful()
    with pytest.raises(rt.ShapeMismatchError, match="three is not four"):
        manager_of(Raising(rt.ShapeMismatchError("three is not four"))).run(graph)
    with pytest.raises(MemoryError):
        manager_of(Raising(MemoryError())).run(graph)
    with pytest.raises(NotImplementedError, match="not yet"):
        manager_of(Raising(NotImplementedError("not yet"))).run(graph)
    with pytest.raises(rt.PyFlameRTError, match=r"ValueError: half of \\ud83d") as raised:
        manager_of(Raising(ValueError("half of \ud83d"))).run(graph)
    assert isinstance(raised.value.__cause__, ValueError)
    with pytest.raises(KeyboardInterrupt):
        manager_of(Raising(KeyboardInterrupt())).run(graph)
    with pytest.raises(rt.PyFlameRTError) as raised:
        graph.remove_node("no such node")
    assert raised.value.__cause__ is None


def test_wrong_results_and_absent_runs_are_errors():
    class Wrong(opt.Pass):
        def run(self, graph):
            return True

    class Empty(opt.Pass):
        pass

    class Never(opt.Pass):
        def should_run(self, level):
            return False

    class Breaking(opt.Pass):
        def run(self, graph):
            graph.remove_node("relu")
            return opt.PassResult(True)

    with pytest.raises(rt.PyFlameRTError, match="'Wrong' returned bool.*PassResult"):
        manager_of(Wrong()).run(wasteful())
    with pytest.raises(NotImplementedError, match="'Empty' has no run"):
        manager_of(Empty()).run(wasteful())
    with pytest.raises(rt.InvalidArgumentError, match="'Never'.*every level"):
        opt.register_pass(Never())
    graph = wasteful()
    with pytest.raises(rt.ValidationError, match="Breaking"):
        manager_of(Breaking()).run(graph)
    assert graph.find_node("relu") is not None


def test_the_graph_of_a_pass_ends_with_the_pass():
    class Keeping(Rename):
        def run(self, graph):
            self.node, self.clone, self.body = graph.nodes[0], graph.clone(), graph.create_subgraph("b")
            return super().run(graph)

    one = Keeping("Max", "Min")
    manager_of(one).run(wasteful())
    assert "pass that is over" in repr(one.seen[0])
    for use in (lambda: one.seen[0].nodes, lambda: one.node.name, lambda: one.body.nodes):
        with pytest.raises(rt.PyFlameRTError, match="lent to a pass"):
            use()
    assert len(one.clone.nodes) == 9


def test_a_manager_lets_its_passes_go():
    one = Rename("Max", "Min")
    alive = weakref.ref(one)
    manager = manager_of(one)
    manager.run(wasteful())
    del one, manager
    gc.collect()
    assert alive() is None


# ------------------------------------------------------------------ passes of sessions


class Swap(opt.Pass):
    """Makes Max Min in graphs of one name alone: passes of sessions are there for good."""

    def __init__(self, graph_name, old, new, name, level=OptLevel.BASIC):
        self.graph_name, self.rename, self._name, self.level, self.calls = (
            graph_name, Rename(old, new), name, level, 0)

    @property
    def name(self):
        return self._name

    def should_run(self, level):
        return level >= self.level

    def run(self, graph):
        if graph.name != self.graph_name:
            return opt.PassResult()
        self.calls += 1
        return self.rename.run(graph)


def session_at(graph, level):
    options = rt.SessionOptions()
    options.optimization_level = level
    return rt.InferenceSession(graph, options)


def pair(name):
    graph = Graph(name)
    graph.add_input("x", [4])
    graph.add_initializer("c", np.float32(0))
    graph.add_node("m", "Max", ["x", "c"], ["y"])
    graph.add_output("y")
    return graph


@pytest.mark.registers_passes
def test_registered_passes_run_in_sessions_by_level_and_order():
    first, last = Swap("order", "Max", "Sum", "order_first"), Swap("order", "Min", "Sum", "order_last")
    between = Swap("order", "Sum", "Min", "order_between", OptLevel.EXTENDED)
    opt.register_pass(first)
    opt.register_pass(last)
    opt.register_pass(between, after="order_first")
    x = np.array([-1, 2, -3, 4], np.float32)
    # Max -> Sum -> Min -> Sum; without the one between Max -> Sum; without any Max.
    for level, calls, want in ((OptLevel.NONE, (0, 0, 0), np.maximum(x, 0)), (OptLevel.BASIC, (1, 0, 1), x),
                               (OptLevel.EXTENDED, (1, 1, 1), x)):
        first.calls = between.calls = last.calls = 0
        session = session_at(pair("order"), level)
        assert (first.calls, between.calls, last.calls) == calls
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], want)
        assert [n.op for n in session.graph().nodes] == ["Max"]
        assert "Max" not in ops(session.graph(optimized=True)) or level == OptLevel.NONE
    with pytest.raises(rt.InvalidArgumentError, match="order_first"):
        opt.register_pass(Swap("order", "a", "b", "order_first"))
    with pytest.raises(rt.NotFoundError, match="order_nowhere"):
        opt.register_pass(Swap("order", "a", "b", "order_lost"), after="order_nowhere")
    manager = opt.PassManager()
    manager.register_plugin_pass("order_first")
    graph = pair("order")
    assert manager.run(graph).modified and ops(graph) == ["Sum"]


@pytest.mark.registers_passes
def test_what_a_registered_pass_raises_is_the_cause_of_the_sessions_error():
    class Failing(opt.Pass):
        def run(self, graph):
            if graph.name == "failing":
                raise ZeroDivisionError("by me")
            return opt.PassResult()

    opt.register_pass(Failing())
    with pytest.raises(rt.PyFlameRTError, match="ZeroDivisionError: by me") as raised:
        rt.InferenceSession(pair("failing"))
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    rt.InferenceSession(pair("not failing"))


@pytest.mark.registers_passes
def test_sessions_made_on_many_threads_run_registered_passes():
    one = Swap("threads", "Max", "Min", "threads_pass")
    opt.register_pass(one)
    got, x = [], np.array([-1, 2, -3, 4], np.float32)

    def work():
        for _ in range(5):
            got.append(rt.InferenceSession(pair("threads")).run(None, {"x": x})[0])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 20
    for y in got:
        np.testing.assert_array_equal(y, np.minimum(x, 0))


def test_the_interpreter_ends_with_passes_and_borrowed_memory_alive():
    program = """
import numpy as np, pyflame_rt as rt
from pyflame_rt import opt
class P(opt.Pass):
    def run(self, graph): return opt.PassResult()
opt.register_pass(P())
graph = rt.Graph('g'); graph.add_input('x', [2]); graph.add_initializer('c', np.ones(2, np.float32))
graph.add_node('n', 'Add', ['x', 'c'], ['y']); graph.add_output('y')
session = rt.InferenceSession(graph)
node = graph.nodes[0]
pattern = opt.Pattern(); pattern.add_node(opt.PatternNode.op('Add', 'add'))
matches = opt.PatternMatcher().find_all(graph, pattern)
print(session.run(None, {'x': np.ones(2, np.float32)})[0].tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "[2.0, 2.0]", "")


# ------------------------------------------------------------------ patterns


def matmul_add():
    pattern = opt.Pattern()
    pattern.add_node(opt.PatternNode.op("MatMul", "matmul"))
    pattern.add_node(opt.PatternNode.op("Add", "add"))
    pattern.add_edge(opt.PatternEdge.output_to_input("matmul", "add", 0))
    pattern.set_root("add")
    return pattern


def test_patterns_are_found():
    graph = wasteful()
    matches = opt.PatternMatcher().find_all(graph, matmul_add())
    assert [(m.get_node("matmul").name, m.get_node("add").name) for m in matches] == [("mm1", "add1"), ("mm2", "add2")]
    assert matches[0].get_node("add") is graph.find_node("add1")
    assert all(m.is_single_consumer("matmul") for m in matches)
    graph.add_node("more", "Neg", ["p1"], ["n"])
    assert [m.is_single_consumer("matmul") for m in matches] == [False, True]
    graph.remove_node("mm2")
    assert matches[1].get_node("matmul") is None and matches[1].get_node("add").name == "add2"
    with pytest.raises(rt.NotFoundError, match="nothing"):
        matches[0].get_node("nothing")


def test_patterns_of_any_node_and_any_input():
    graph = wasteful()
    pattern = opt.Pattern()
    pattern.add_node(opt.PatternNode.any("first"))
    pattern.add_node(opt.PatternNode.op("Max", "max"))
    pattern.add_edge(opt.PatternEdge.output_to_any_input("first", "max"))
    assert [m.get_node("first").op for m in opt.PatternMatcher().find_all(graph, pattern)] == ["Add"]
    second = opt.Pattern()
    second.add_node(opt.PatternNode.op("Add", "add"))
    second.add_node(opt.PatternNode.op("Max", "max"))
    second.add_edge(opt.PatternEdge.output_to_input("add", "max", 1))
    assert [m.get_node("add").name for m in opt.PatternMatcher().find_all(graph, second)] == ["add2"]
    with pytest.raises(rt.InvalidArgumentError, match="from 0"):
        second.add_edge(opt.PatternEdge.output_to_input("add", "max", -1))
    with pytest.raises(rt.PyFlameRTError, match="nowhere"):
        second.add_edge(opt.PatternEdge.output_to_input("nowhere", "max", 0))
    other = opt.Pattern()
    other.add_node(opt.PatternNode.op("Max", "max", domain="com.example"))
    assert opt.PatternMatcher().find_all(graph, other) == []


def test_a_pass_may_use_patterns():
    class Fuse(opt.Pass):
        def run(self, graph):
            result = opt.PassResult()
            for match in opt.PatternMatcher().find_all(graph, matmul_add()):
                if match.is_single_consumer("matmul"):
                    matmul, add = match.get_node("matmul"), match.get_node("add")
                    inputs, outputs = matmul.inputs + add.inputs[1:], add.outputs
                    graph.remove_node(add)
                    graph.remove_node(matmul)
                    graph.add_node(add.name, "Gemm", inputs, outputs)
                    result.modified = True
                    result.stats.nodes_fused += 1
            return result

    graph = wasteful()
    before = result_of(graph)
    result = manager_of(Fuse()).run_until_fixed_point(graph)
    assert result.stats.nodes_fused == 2 and ops(graph).count("Gemm") == 2
    np.testing.assert_allclose(result_of(graph), before, rtol=1e-5, atol=1e-5)


def test_rules_are_known_by_pass_level_and_text():
    rules = opt.known_rules()
    assert {"FoldConstant", "JoinNodes"} <= {rule.name for rule in rules}
    by_name = {rule.pass_name for rule in rules if rule.level == "by name"}
    assert by_name == {"DataflowPass"}
    assert {rule.pass_name for rule in rules} - by_name <= set(opt.PassManager.create_default(OptLevel.ALL).passes)
    assert {rule.level for rule in rules} == {"basic", "extended", "all", "by name"} and all(rule.text for rule in rules)

# SPDX-License-Identifier: Apache-2.0
"""Backends: graphs executed by Python code of the program's own."""
import gc
import subprocess
import sys
import threading

import numpy as np
import pytest

import pyflame_rt
from conftest import FLOAT, INT64, STRING, node, onnx_model, port
from pyflame_rt import Backend, BackendRegistry, DType, Graph, Tensor

X = np.array([1, -2, 3], np.float32)
OPS = {"Relu": lambda x: np.maximum(x, 0), "Neg": np.negative, "Add": np.add, "Mul": np.multiply,
       "NonZero": lambda x: np.array(np.nonzero(x))}


class Interpreter(Backend):
    """Computes graphs node by node with NumPy."""

    def __init__(self, name, ops=tuple(OPS)):
        self.name, self.ops, self.calls = name, list(ops), []
        self.change = lambda results: results

    def get_supported_ops(self):
        return self.ops

    def execute(self, graph, input_feed, output_names=()):
        self.calls.append((graph, list(output_names)))
        values = {name: tensor.numpy() for name, tensor in {**input_feed, **graph.initializers}.items()}
        for one in graph.topological_sort():
            values[one.outputs[0]] = OPS[one.op](*(values[name] for name in one.inputs))
        return self.change([np.array(values[name]) for name in output_names])


@pytest.fixture
def backend(request):
    """A backend of its own for each test: what is registered stays."""
    made = Interpreter(f"numpy_{request.node.name}")
    BackendRegistry.instance().register_backend(made)
    return made


def chain():
    """y = Relu(x) * w - Exp(x)"""
    graph = Graph("chain")
    graph.add_input("x", ["N", 3])
    graph.add_initializer("w", np.array([2, 3, 4], np.float32))
    graph.add_node("relu", "Relu", ["x"], ["r"])
    graph.add_node("mul", "Mul", ["r", "w"], ["m"])
    graph.add_node("exp", "Exp", ["x"], ["e"])
    graph.add_node("sub", "Sub", ["m", "e"], ["y"])
    graph.add_output("y")
    return graph


def session_on(backend, graph, **options):
    return pyflame_rt.InferenceSession(graph, pyflame_rt.SessionOptions(**options),
                                       providers=[backend.name, "CPUExecutionProvider"])


def test_a_backend_runs_what_it_supports(backend):
    session = session_on(backend, chain())
    for rows in (2, 5, 2):
        x = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)
        want = np.maximum(x, 0) * np.array([2, 3, 4], np.float32) - np.exp(x)
        assert np.allclose(session.run(None, {"x": x})[0], want, rtol=1e-6, atol=1e-6)
    graph, names = backend.calls[0]
    assert [one.op for one in graph.nodes] == ["Relu", "Mul"] and names == ["m"]
    assert graph.initializers["w"].numpy().tolist() == [2, 3, 4] and [i.name for i in graph.inputs] == ["x"]
    steps = {step["ops"]: step["provider"] for step in session.explain()}
    assert backend.name in steps.values() and "CPUExecutionProvider" in steps.values()
    assert session.get_providers() == [backend.name, "CPUExecutionProvider"]
    assert len(backend.calls) == 3 and all(call[0] is graph for call in backend.calls)


def test_the_lowest_estimate_wins_whatever_the_order(backend):
    # A backend's nodes cost nothing, as far as the library knows.
    session = pyflame_rt.InferenceSession(chain(), providers=["CPUExecutionProvider", backend.name])
    session.run(None, {"x": np.ones((2, 3), np.float32)})
    assert [[one.op for one in call[0].nodes] for call in backend.calls] == [["Relu", "Mul"]]
    assert session.get_providers() == ["CPUExecutionProvider", backend.name]


def test_the_registry_knows_it(backend):
    registry = BackendRegistry.instance()
    assert registry is BackendRegistry.instance() and registry.has(backend.name)
    assert registry.get(backend.name) is backend and backend.name in registry.list()
    assert registry.get("nobody") is None and not registry.has("nobody")
    assert backend.supports_op("Relu") and not backend.supports_op("Conv")
    assert backend.name in pyflame_rt.get_available_providers()


def test_outputs_whose_shape_only_a_run_tells(backend):
    graph = Graph("found")
    graph.add_input("x", ["N"])
    graph.add_node("where", "NonZero", ["x"], ["y"])
    graph.add_output("y", dtype=DType.Int64)
    session = session_on(backend, graph)
    for x in (X, np.zeros(4, np.float32), np.array([0, 1, 0, 2], np.float32)):
        assert session.run(None, {"x": x})[0].tolist() == [np.nonzero(x)[0].tolist()]
    assert len(backend.calls) == 3


def test_results_may_be_tensors_and_of_any_layout(backend):
    backend.change = lambda results: tuple(pyflame_rt.from_numpy(np.asfortranarray(one)) for one in results)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    want = x * np.array([2, 3, 4], np.float32) - np.exp(x)
    assert np.allclose(session_on(backend, chain()).run(None, {"x": x})[0], want, rtol=1e-6)


def test_strings_and_other_domains_stay_with_others(backend):
    backend.ops.append("Identity")
    made = onnx_model([node("Identity", ["s"], ["t"])], [port("s", STRING, ["N"])], [port("t", STRING, ["N"])])
    assert list(session_on(backend, made).run(None, {"s": np.array(["a", "b"])})[0]) == ["a", "b"]
    assert backend.calls == []


@pytest.mark.parametrize("change, words", [
    (lambda results: results[0], "execute returned ndarray; return a list of 1"),
    (lambda results: [], "execute returned 0 tensors; return a list of 1"),
    (lambda results: [results[0].astype(np.float64)], "execute gave float64 for 'm', which is float32"),
    (lambda results: [results[0][:1]], r"execute gave shape \[1, 3\] for 'm', expected \[2, 3\]"),
    (lambda results: [np.array(["text"])], "execute gave 'm', as ndarray of .*; wanted is a tensor of numbers"),
    (lambda results: 1 / 0, "ZeroDivisionError: division by zero"),
], ids=["no list", "too few", "type", "shape", "text", "raises"])
def test_what_goes_wrong_is_said_and_goes_on_elsewhere(backend, change, words):
    backend.change, x = change, np.ones((2, 3), np.float32)
    session = session_on(backend, chain(), fallback=False)
    with pytest.raises(pyflame_rt.BackendError, match=r"backend '.*': " + words) as caught:
        session.run(None, {"x": x})
    assert backend.name in str(caught.value)
    assert isinstance(caught.value.__cause__, ZeroDivisionError) == ("ZeroDivision" in words)
    assert session.provider_states()[0].condition == "failing"
    # The next provider takes over where it may.
    session = session_on(backend, chain(), log_level="off")
    assert session.provider_states()[0].condition == "active"
    want = x * np.array([2, 3, 4], np.float32) - np.exp(x)
    assert np.allclose(session.run(None, {"x": x})[0], want, rtol=1e-6)
    state = session.provider_states()[0]
    assert (state.name, state.condition, state.failures) == (backend.name, "failed", 1)
    assert state.code == caught.value.code and "backend" in state.reason
    # And it is back when it is asked for.
    backend.change = lambda results: results
    options = pyflame_rt.RunOptions()
    options.cancel()
    with pytest.raises(pyflame_rt.CancelledError, match="cancelled by the caller"):
        session.readmit(backend.name, options)
    assert session.provider_states()[0] == state
    session.readmit(backend.name)
    assert session.provider_states()[0].condition == "recovered"
    assert np.allclose(session.run(None, {"x": x})[0], want, rtol=1e-6)
    with pytest.raises(pyflame_rt.NotFoundError, match="Nobody"):
        session.readmit("Nobody")


def test_supports_op_that_raises_ends_the_making_of_a_session(backend):
    def supports_op(op_type):
        raise KeyError(op_type)
    backend.supports_op = supports_op
    with pytest.raises(pyflame_rt.PyFlameRTError, match="KeyError"):
        session_on(backend, chain(), fallback=False)


def test_inputs_are_lent_for_the_call_alone(backend):
    kept, x = [], np.ones((2, 3), np.float32)
    execute = backend.execute

    def keeping(graph, input_feed, output_names=()):
        with pytest.raises(ValueError, match="read-only"):
            input_feed["x"].numpy()[:] = 0
        kept.append(input_feed["x"].numpy())
        return execute(graph, input_feed, output_names)
    backend.execute = keeping
    with pytest.raises(pyflame_rt.BackendError, match=r"keeps input x beyond the call.*input_feed\['x'\].clone\(\)"):
        session_on(backend, chain(), fallback=False).run(None, {"x": x})
    kept.clear()


def test_one_thread_at_a_time_calls_a_backend(backend):
    inside, most, execute = [], [], backend.execute

    def counting(graph, input_feed, output_names=()):
        inside.append(1)
        most.append(len(inside))
        try:
            return execute(graph, input_feed, output_names)
        finally:
            inside.pop()
    backend.execute = counting
    sessions, faults = [session_on(backend, chain()) for _ in range(2)], []

    def work(session):
        for rows in range(1, 30):
            x = np.full((rows, 3), rows, np.float32)
            want = x * np.array([2, 3, 4], np.float32) - np.exp(x)
            if not np.allclose(session.run(None, {"x": x})[0], want, rtol=1e-6):
                faults.append(rows)
    threads = [threading.Thread(target=work, args=(session,)) for session in sessions * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == [] and max(most) == 1 and len(most) == 4 * 29


def test_a_node_name_that_a_file_holds_twice(backend):
    named = [node("Relu", ["x"], ["a"]), node("Neg", ["a"], ["y"])]
    made = onnx_model([one + b"\x1a\x04same" for one in named], [port("x", FLOAT, ["N"])], [port("y", FLOAT, ["N"])])
    assert session_on(backend, made).run(None, {"x": X})[0].tolist() == [-1, 0, -3]
    assert sum(len(call[0].nodes) for call in backend.calls[:1]) == 2


def test_what_cannot_be_registered_is_refused(backend):
    class Nameless(Interpreter):
        pass
    registry = BackendRegistry.instance()
    for what, words in ((backend, "is taken by.*registered before"), (Nameless(""), "give it a text"),
                        (7, "7 is no Backend"), (Nameless("CPUExecutionProvider"), "taken by plug-in")):
        with pytest.raises(pyflame_rt.InvalidArgumentError, match=words):
            registry.register_backend(what)
    assert "" not in registry.list() and "CPUExecutionProvider" not in registry.list()
    with pytest.raises(TypeError, match="abstract"):
        Backend()


def test_regions_go_with_their_sessions(backend):
    session = session_on(backend, chain())
    session.run(None, {"x": np.ones((2, 3), np.float32)})
    from pyflame_rt._core import callbacks
    from pyflame_rt.backend import _calls
    def held():
        gc.collect()
        return [one for one in callbacks._held.values()
                if isinstance(one, (_calls._Executable, _calls._Program))]
    before = len(held())
    assert before >= 2
    session.close()
    del session
    assert len(held()) <= before - 2


def test_a_process_ends_with_sessions_that_live():
    program = """
import sys, threading
import numpy as np
import pyflame_rt

class Slow(pyflame_rt.Backend):
    name = "slow"
    def get_supported_ops(self):
        return ["Relu"]
    def execute(self, graph, input_feed, output_names=()):
        started.set()
        return [np.maximum(one.numpy(), 0) for one in input_feed.values()]

started = threading.Event()
pyflame_rt.BackendRegistry.instance().register_backend(Slow())
graph = pyflame_rt.Graph()
graph.add_input("x", ["N"])
graph.add_node("relu", "Relu", ["x"], ["y"])
graph.add_output("y")
session = pyflame_rt.InferenceSession(graph, providers=["slow"])
x = np.ones(3, np.float32)
print(session.run(None, {"x": x})[0].tolist())
def forever():
    while True:
        session.run(None, {"x": x})
started.clear()
threading.Thread(target=forever, daemon=True).start()
started.wait()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[1.0, 1.0, 1.0]\n", "")

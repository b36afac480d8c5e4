# SPDX-License-Identifier: Apache-2.0
import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import pyflame_rt
from conftest import FLOAT, STRING, node, onnx_model, port

A, B = np.array([[1, 2, 3]], np.float32), np.array([[10, 20, 30]], np.float32)


class Answers:
    """A callback that keeps what it is told."""

    def __init__(self):
        self.told, self.event = [], threading.Event()

    def __call__(self, results, user_data, error):
        self.told.append((results, user_data, error, threading.current_thread()))
        self.event.set()

    def wait(self):
        assert self.event.wait(60)
        return self.told[-1]


def test_results_come_to_the_callback(add_model):
    answers, mark = Answers(), object()
    pyflame_rt.InferenceSession(add_model).run_async(["y"], {"a": A, "b": B}, answers, mark)
    results, user_data, error, thread = answers.wait()
    assert [r.tolist() for r in results] == [[[11, 22, 33]]] and user_data is mark and error == ""
    assert thread is not threading.main_thread() and len(answers.told) == 1


def test_outputs_of_any_kind():
    model = onnx_model([node("Neg", ["x"], ["n"]), node("Identity", ["s"], ["t"])],
                       [port("x", FLOAT, [2]), port("s", STRING, ["N"])],
                       [port("n", FLOAT, [2]), port("t", STRING, ["N"])])
    feeds, answers = {"x": np.array([1, 2], np.float32), "s": ["a", "b"]}, Answers()
    session = pyflame_rt.InferenceSession(model)
    session.run_async(["t", "n"], feeds, answers)
    assert [r.tolist() for r in answers.wait()[0]] == [["a", "b"], [-1, -2]]
    answers.event.clear()
    session.run_async(None, feeds, answers)
    assert [r.tolist() for r in answers.wait()[0]] == [[-1, -2], ["a", "b"]]


def test_inputs_live_until_the_run_is_over(add_model):
    session, answers = pyflame_rt.InferenceSession(add_model), [Answers() for _ in range(50)]
    for n, answer in enumerate(answers):
        session.run_async(None, {"a": np.full((2000, 3), n, np.float32), "b": np.ones((2000, 3), np.float32)}, answer)
    del session
    gc.collect()
    rubbish = [np.full((2000, 3), -1, np.float32) for _ in range(50)]
    for n, answer in enumerate(answers):
        assert np.array_equal(answer.wait()[0][0], np.full((2000, 3), n + 1, np.float32))
    del rubbish


def test_what_cannot_start_is_raised(add_model):
    session, answers = pyflame_rt.InferenceSession(add_model), Answers()
    with pytest.raises(pyflame_rt.InputError, match="missing: 'b'"):
        session.run_async(None, {"a": A}, answers)
    with pytest.raises(pyflame_rt.InputError, match="output 'z'"):
        session.run_async(["z"], {"a": A, "b": B}, answers)
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="cannot be called"):
        session.run_async(None, {"a": A, "b": B}, "print")
    assert answers.told == []
    session.run_async(None, {"a": A, "b": B}, answers)
    assert answers.wait()[0][0].tolist() == [[11, 22, 33]]


def test_a_shape_that_the_model_does_not_take_is_told(add_model):
    answers = Answers()
    pyflame_rt.InferenceSession(add_model).run_async(None, {"a": np.zeros((1, 4), np.float32), "b": B}, answers)
    results, _, error, _ = answers.wait()
    assert results == [] and "'a'" in error and "[1,4]" in error


def test_a_run_that_is_cancelled_says_so(add_model):
    session, answers, options = pyflame_rt.InferenceSession(add_model), Answers(), pyflame_rt.RunOptions()
    options.cancel()
    try:
        session.run_async(None, {"a": A, "b": B}, answers, "mine", options)
    except pyflame_rt.CancelledError:  # seen before it began
        return
    results, user_data, error, _ = answers.wait()
    assert results == [] and user_data == "mine" and "cancel" in error


def test_what_a_callback_raises_goes_to_the_hook(add_model, monkeypatch):
    session, seen, hooked = pyflame_rt.InferenceSession(add_model), [], threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda args: (seen.append(args), hooked.set()))

    def fails(results, user_data, error):
        raise KeyError("mine")

    session.run_async(None, {"a": A, "b": B}, fails)
    assert hooked.wait(60) and seen[0].exc_type is KeyError
    answers = Answers()
    session.run_async(None, {"a": A, "b": B}, answers)
    assert answers.wait()[2] == ""


def test_a_callback_may_start_the_next_run(add_model):
    session, sums, over = pyflame_rt.InferenceSession(add_model), [], threading.Event()

    def again(results, left, error):
        sums.append(float(results[0].sum()))
        if left:
            session.run_async(None, {"a": results[0], "b": A}, again, left - 1)
        else:
            over.set()

    session.run_async(None, {"a": A, "b": A}, again, 9)
    assert over.wait(60) and sums == [6.0 * n for n in range(2, 12)]


def test_from_many_threads(add_model):
    session, answers = pyflame_rt.InferenceSession(add_model), [Answers() for _ in range(200)]

    def work(first):
        for n in range(first, 200, 4):
            session.run_async(None, {"a": A * n, "b": B}, answers[n])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n, answer in enumerate(answers):
        assert answer.wait()[0][0].tolist() == (A * n + B).tolist() and len(answer.told) == 1


def test_nothing_is_kept_of_runs_that_are_over(add_model):
    session, answers = pyflame_rt.InferenceSession(add_model), [Answers() for _ in range(100)]
    x = A.copy()
    before = sys.getrefcount(x)
    for answer in answers:
        session.run_async(None, {"a": x, "b": B}, answer)
    for answer in answers:
        answer.wait()
    state = pyflame_rt._session.async_runs._state
    for _ in range(5000):  # the last threads are on their way out
        if not (state.running or state.unanswered or state.present) and sys.getrefcount(x) == before:
            return
        time.sleep(0.002)
    raise AssertionError((state.running, state.unanswered, state.present, sys.getrefcount(x), before))


def test_in_a_forked_child(add_model):
    session, answers = pyflame_rt.InferenceSession(add_model), Answers()
    session.run_async(None, {"a": A, "b": B}, answers)
    answers.wait()
    for _ in range(10):
        child = os.fork()
        if child == 0:
            try:
                answers = Answers()
                session.run_async(None, {"a": B, "b": B}, answers)
                os._exit(0 if answers.wait()[0][0].tolist() == [[20, 40, 60]] else 1)
            except BaseException:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# Ends with some runs over, some under way, some waiting, and callbacks of several manners.
ENDING = """
import sys, threading, time, numpy as np, pyflame_rt
session = pyflame_rt.InferenceSession(sys.argv[1])
x = np.ones((int(sys.argv[3]), 3), np.float32)
def quick(results, user_data, error): told.append(error)
def again(results, user_data, error):
    told.append(error)
    if not error: session.run_async(None, {'a': x, 'b': x}, again)
told, begun = [], 300
for n in range(begun):
    session.run_async(None, {'a': x, 'b': x}, {'quick': quick, 'again': again}[sys.argv[2]])
def start():
    try:
        while True: session.run_async(None, {'a': x, 'b': x}, quick)
    except pyflame_rt.PyFlameRTError as fault: told.append(str(fault))
if len(sys.argv) > 4: threading.Thread(target=start, daemon=True).start()
print(session.run(None, {'a': x, 'b': x})[0][0].tolist())
"""


@pytest.mark.parametrize("manner", [["quick", "4"], ["quick", "200000"], ["again", "4"], ["quick", "4", "threads"]])
def test_the_interpreter_ends_with_runs_under_way(add_model, tmp_path, manner):
    file = tmp_path / "add.onnx"
    file.write_bytes(add_model)
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", ENDING, str(file), *manner], capture_output=True, text=True,
                              timeout=60, env={**os.environ, "PYTHONPATH": str(Path(pyflame_rt.__file__).parents[1])})
        assert (done.returncode, done.stdout) == (0, "[2.0, 2.0, 2.0]\n"), done.stderr
        assert "Fatal" not in done.stderr
        if manner[0] == "quick":
            assert done.stderr == ""


def test_every_callback_is_called_before_the_end(add_model, tmp_path):
    file = tmp_path / "add.onnx"
    file.write_bytes(add_model)
    # Registered before the package, so it is called after the package has waited.
    program = "import atexit\natexit.register(lambda: print(len(told)))\n" + ENDING
    done = subprocess.run([sys.executable, "-c", program, str(file), "quick", "200000"], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "PYTHONPATH": str(Path(pyflame_rt.__file__).parents[1])})
    assert (done.returncode, done.stdout, done.stderr) == (0, "[2.0, 2.0, 2.0]\n300\n", "")


def test_a_callback_that_never_returns_does_not_keep_the_process(add_model, tmp_path):
    file = tmp_path / "add.onnx"
    file.write_bytes(add_model)
    program = ("import sys, threading, numpy as np, pyflame_rt, pyflame_rt._session.async_runs\n"
               "pyflame_rt._session.async_runs._PATIENCE = 0.2\n"
               "x, inside = np.ones((1, 3), np.float32), threading.Event()\n"
               "def stuck(results, user_data, error): inside.set(); threading.Event().wait()\n"
               "pyflame_rt.InferenceSession(sys.argv[1]).run_async(None, {'a': x, 'b': x}, stuck)\n"
               "print(inside.wait(60))\n")
    done = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(Path(pyflame_rt.__file__).parents[1])})
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


# ------------------------------------------------------------------ awaited


def counting_graph():
    """Adds 1 to x, n times."""
    graph = pyflame_rt.Graph()
    graph.add_input("n", [], pyflame_rt.DType.Int64)
    graph.add_input("x", [1])
    graph.add_initializer("go", np.array(True))
    body = graph.create_subgraph()
    for name, dtype in (("i", pyflame_rt.DType.Int64), ("c", pyflame_rt.DType.Bool), ("s", pyflame_rt.DType.Float32)):
        body.add_input(name, [1] if name == "s" else [], dtype)
    body.add_initializer("one", np.ones(1, np.float32))
    body.add_node("", "Identity", ["c"], ["d"])
    body.add_node("", "Add", ["s", "one"], ["t"])
    body.add_output("d")
    body.add_output("t")
    graph.add_node("", "Loop", ["n", "go", "x"], ["y"], {"body": body})
    graph.add_output("y")
    return graph


def test_runs_are_awaited(add_model):
    session = pyflame_rt.InferenceSession(add_model)

    async def several():
        return await asyncio.gather(*(session.run_async(["y"], {"a": A * n, "b": B}) for n in range(20)))

    assert [y.tolist() for (y,) in asyncio.run(several())] == [(A * n + B).tolist() for n in range(20)]


def test_what_an_awaited_run_raises_keeps_its_class(add_model):
    session = pyflame_rt.InferenceSession(add_model)

    async def fails(feeds, names=None, options=None):
        with pytest.raises(pyflame_rt.PyFlameRTError) as fault:
            await session.run_async(names, feeds, run_options=options)
        assert (await session.run_async(None, {"a": A, "b": B}))[0].tolist() == (A + B).tolist()
        return fault.value

    shape = asyncio.run(fails({"a": np.zeros((1, 4), np.float32), "b": B}))
    assert isinstance(shape, pyflame_rt.ShapeMismatchError)
    rank = asyncio.run(fails({"a": A[0], "b": B}))
    assert isinstance(rank, pyflame_rt.ShapeMismatchError) and "numpy.expand_dims" in str(rank)
    dtype = asyncio.run(fails({"a": A.astype(np.int64), "b": B}))
    assert isinstance(dtype, pyflame_rt.DTypeMismatchError) and "numpy.asarray" in str(dtype)
    assert isinstance(asyncio.run(fails({"a": A})), pyflame_rt.InputError)
    assert isinstance(asyncio.run(fails({"a": A, "b": B}, ["z"])), pyflame_rt.InputError)
    stopped = pyflame_rt.RunOptions()
    stopped.cancel()
    assert isinstance(asyncio.run(fails({"a": A, "b": B}, None, stopped)), pyflame_rt.CancelledError)


def test_without_a_loop_there_is_nothing_to_await(add_model):
    session = pyflame_rt.InferenceSession(add_model)
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="no event loop runs"):
        session.run_async(None, {"a": A, "b": B})


@pytest.mark.parametrize("with_options", [False, True])
def test_cancelling_stops_the_run(with_options):
    """A loop without end: only a run that is stopped gives the session's thread back."""
    session = pyflame_rt.InferenceSession(counting_graph())
    options = pyflame_rt.RunOptions() if with_options else None
    feeds = {"n": np.array(2**62, np.int64), "x": np.zeros(1, np.float32)}

    async def stopped():
        task = asyncio.ensure_future(session.run_async(None, feeds, run_options=options))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        few = {"n": np.array(3, np.int64), "x": np.zeros(1, np.float32)}
        for _ in range(1000):
            try:
                return (await session.run_async(None, few, run_options=options))[0].tolist()
            except pyflame_rt.CancelledError:  # the options are free again once the stopped run is over
                await asyncio.sleep(0.01)
        return None

    assert asyncio.run(asyncio.wait_for(stopped(), 60)) == [3.0]


def test_a_loop_that_ends_first(add_model):
    session, options = pyflame_rt.InferenceSession(counting_graph()), pyflame_rt.RunOptions()

    async def left():
        session.run_async(None, {"n": np.array(2**62, np.int64), "x": np.zeros(1, np.float32)}, run_options=options)

    asyncio.run(left())
    options.cancel()  # the run goes on until then, and nobody hears of its end
    assert session.run(None, {"n": np.array(2, np.int64), "x": np.zeros(1, np.float32)})[0].tolist() == [2.0]

# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C: a run, or the making of a session, ends with KeyboardInterrupt, and what comes next works."""
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import pyflame_rt
from pyflame_rt._core import interrupt
from conftest import FLOAT, node, onnx_model, port

# A loop that would go on for centuries, and one signal from a thread that knows when it has begun.
PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
import pyflame_rt
from pyflame_rt import DType

graph = pyflame_rt.Graph()
graph.add_input("count", [], DType.Int64)
graph.add_input("x", ["N", 4])
graph.add_initializer("go", np.array(True))
body = graph.create_subgraph()
for name, dtype in (("i", DType.Int64), ("c", DType.Bool), ("s", DType.Float32)):
    body.add_input(name, ["N", 4] if name == "s" else [], dtype)
body.add_node("", "Identity", ["c"], ["d"])
body.add_node("", "Abs", ["s"], ["t"])
body.add_output("d")
body.add_output("t")
graph.add_node("", "Loop", ["count", "go", "x"], ["y"], {"body": body})
graph.add_output("y")
session = pyflame_rt.InferenceSession(graph)

def feed(count, rows):
    return {"count": np.int64(count), "x": np.full((rows, 4), -2, np.float32)}

def interrupt():
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)

def expect_interrupt(work):
    threading.Thread(target=interrupt).start()
    try:
        work()
    except KeyboardInterrupt:
        return
    sys.exit("no KeyboardInterrupt")

for _ in range(5):  # quick ones first
    session.run(None, feed(2, 3))
options = pyflame_rt.RunOptions()
binding = session.io_binding()
for name, value in feed(2**62, 3).items():
    binding.bind_cpu_input(name, value)
binding.bind_output("y")
for rows in (3, 5):
    expect_interrupt(lambda: session.run(None, feed(2**62, rows)))
    expect_interrupt(lambda: session.run(["y"], feed(2**62, rows), options))
    expect_interrupt(lambda: session.run_with_iobinding(binding))
    for other in (rows, rows + 1, 400):
        for given in (None, options):
            (y,) = session.run(None, feed(3, other), given)
            assert y.shape == (other, 4) and (y == 2).all()
binding.bind_cpu_input("count", np.int64(1))
session.run_with_iobinding(binding)
assert (binding.get_outputs()[0].numpy() == 2).all()

# Options that the program cancelled stay so.
def cancel_and_interrupt():
    time.sleep(0.3)
    options.cancel()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=cancel_and_interrupt).start()
try:
    session.run(None, feed(2**62, 3), options)
except (KeyboardInterrupt, pyflame_rt.CancelledError):
    pass
try:
    time.sleep(0.3)
except KeyboardInterrupt:
    pass
try:
    session.run(None, feed(1, 3), options)
    sys.exit("not cancelled")
except pyflame_rt.CancelledError:
    options.reset()
session.run(None, feed(1, 3), options)

# A handler of the program's own decides itself: the run goes on until the handler's flag is seen.
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
threading.Thread(target=interrupt).start()
options.timeout_ms = 1000
try:
    session.run(None, feed(2**62, 3), options)
    sys.exit("no end")
except pyflame_rt.TimeoutError:
    assert seen == [1]
print("done")
"""


def test_runs_end_and_the_next_ones_work():
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=100)
    assert (found.stdout, found.returncode) == ("done\n", 0), found.stderr


@pytest.fixture
def session():
    model = onnx_model([node("Neg", ["x"], ["y"])], [port("x", FLOAT, ["N"])], [port("y", FLOAT, ["N"])])
    return pyflame_rt.InferenceSession(model)


@pytest.mark.parametrize("moment", ["_feed", "_prepare", "_collect", "_run_watched"])
def test_an_interrupt_at_any_moment_leaves_nothing_to_the_next_run(session, monkeypatch, moment):
    session.run(None, {"x": np.ones(7, np.float32)})
    work = getattr(session, moment)

    def interrupted(*args):
        if moment == "_collect":
            raise KeyboardInterrupt
        work(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(session, moment, interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.run(None, {"x": np.ones(9, np.float32)})
    for count in (1 << 20, 9, 7):
        (y,) = session.run(None, {"x": np.ones(count, np.float32)})
        assert y.shape == (count,) and (y == -1).all()


def test_signals_reach_who_was_woken_before(session):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before, handler = signal.set_wakeup_fd(writer), signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        interrupt.stoppable(None, lambda _: os.kill(os.getpid(), signal.SIGUSR1))
        assert os.read(reader, 9) == bytes([signal.SIGUSR1])
        session.run(None, {"x": np.ones(3, np.float32)})
        assert signal.set_wakeup_fd(-1) == writer
    finally:
        signal.signal(signal.SIGUSR1, handler)
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)


def _interrupted_call(options):
    """0 once the call under way was stopped for a signal. Python hears of a signal some time after it came."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for step in (lambda: os.kill(os.getpid(), signal.SIGINT), lambda: time.sleep(0.01)):
            try:
                step()
            except KeyboardInterrupt:
                pass
        if interrupt._state.calls[0].stopped:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            return 0
    return 1


def test_a_forked_child_has_a_listener_of_its_own(session):
    session.run(None, {"x": np.ones(3, np.float32)})
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = interrupt.stoppable(None, _interrupted_call)
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not interrupt._state.calls
    session.run(None, {"x": np.ones(4, np.float32)})

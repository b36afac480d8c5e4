# SPDX-License-Identifier: Apache-2.0
"""Operators with Python kernels among sessions, threads and processes."""
import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import pyflame_rt
from conftest import ROOT
from custom_models import build, custom_node, doubled, model_of, none_stay_registered, same, session_of
from pyflame_rt.custom import CustomOpRegistry

X = np.array([1, -2, 3], np.float32)
pytestmark = pytest.mark.usefixtures(none_stay_registered.__name__)


def test_many_threads_and_sessions_share_an_operator():
    build("Double", doubled, shape=same)
    build("Late", doubled)
    nodes = [custom_node("Double", ["x"], ["m"], name="one"), custom_node("Late", ["m"], ["y"], name="two")]
    made = model_of(nodes, ["x"], ["y"])
    shared, faults = pyflame_rt.InferenceSession(made), []

    def work(n):
        own = pyflame_rt.InferenceSession(made)
        for count in range(1, 40):
            x = np.full(count % 7 + 1, n * 100 + count, np.float32)
            for session in (shared, own):
                if not np.array_equal(session.run(None, {"x": x})[0], 4 * x):
                    faults.append((n, count))
        own.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


def test_kernels_of_independent_steps_run_on_threads_of_the_runtime():
    options, together = pyflame_rt.SessionOptions(), threading.Barrier(2, timeout=30)
    options.execution_mode, options.num_threads = "parallel", 2

    def kernel(inputs, attrs):
        together.wait()  # nobody passes alone
        return [inputs[0]]

    build("Meet", kernel, shape=same)
    nodes = [custom_node("Meet", ["x"], ["a"], name="one"), custom_node("Meet", ["x"], ["b"], name="two")]
    a, b = pyflame_rt.InferenceSession(model_of(nodes, ["x"], ["a", "b"]), options).run(None, {"x": X})
    assert a.tolist() == b.tolist() == X.tolist()


def test_a_kernel_runs_and_closes_other_sessions(add_model):
    def kernel(inputs, attrs):
        x = inputs[0].numpy().reshape(1, 3)
        with pyflame_rt.InferenceSession(add_model) as inner:
            return [inner.run(None, {"a": x, "b": x})[0].reshape(3)]

    build("Nested", kernel, shape=same)
    assert session_of("Nested").run(None, {"x": X})[0].tolist() == (2 * X).tolist()


def test_a_kernel_closes_its_own_session():
    sessions = []

    def kernel(inputs, attrs):
        sessions[0].close()
        return [inputs[0].numpy() + 1]

    build("Close", kernel, shape=same)
    sessions.append(session_of("Close"))
    assert sessions[0].run(None, {"x": X})[0].tolist() == (X + 1).tolist()
    with pytest.raises(pyflame_rt.PyFlameRTError, match="closed"):
        sessions[0].run(None, {"x": X})


def test_an_operator_lives_as_long_as_its_sessions():
    class Kernel:
        def __call__(self, inputs, attrs):
            return [inputs[0].numpy() - 1]

    kernel = Kernel()
    alive = weakref.ref(kernel)
    build("Short", kernel, shape=same)
    del kernel
    session = session_of("Short")
    CustomOpRegistry.instance().unregister("Short")
    assert session.run(None, {"x": X})[0].tolist() == (X - 1).tolist()
    with pytest.raises(pyflame_rt.UnsupportedOperatorError, match="Short"):
        session_of("Short")
    session.close()
    gc.collect()
    assert alive() is None


# ------------------------------------------------------------------ processes


def test_forked_children_call_kernels():
    build("Double", doubled, shape=same)
    session = session_of("Double")
    session.run(None, {"x": X})
    for _ in range(20):
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if session.run(None, {"x": X})[0].tolist() == [2, -4, 6] else 1)
            except BaseException:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


PROGRAM = """
import sys, threading, numpy as np, pyflame_rt
from custom_models import build, doubled, same, session_of
build("Late", doubled)
build("Double", doubled, shape=same)
sessions = [session_of("Late"), session_of("Double")]
x = np.ones(1000, np.float32)
"""


def run_program(text, before=""):
    paths = [str(Path(pyflame_rt.__file__).parents[1]), str(ROOT / "test" / "python")]
    done = subprocess.run([sys.executable, "-c", before + PROGRAM + text], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout


def test_the_interpreter_ends_with_operators_registered():
    assert run_program("print(sum(s.run(None, {'x': x})[0].sum() for s in sessions))") == "4000.0\n"


@pytest.mark.parametrize("making", ["", "session_of('Double')"], ids=["runs", "new sessions"])
def test_the_interpreter_ends_while_kernels_run(making):
    assert run_program(f"""
started = threading.Barrier(5)
def work(n):
    started.wait()
    while True:
        {making}
        sessions[n % 2].run(None, {{'x': x}})
for n in range(4): threading.Thread(target=work, args=(n,), daemon=True).start()
started.wait()
print(sessions[1].run(None, {{'x': x}})[0].sum())
""") == "2000.0\n"


def test_the_interpreter_ends_while_passes_run():
    assert run_program("""
from pyflame_rt import opt
class Look(opt.Pass):
    name = "Look"
    def run(self, graph):
        graph.validate()
        return opt.PassResult()
opt.register_pass(Look())
started = threading.Barrier(5)
def work():
    started.wait()
    while True: session_of('Double')
for _ in range(4): threading.Thread(target=work, daemon=True).start()
started.wait()
print(session_of('Double').run(None, {'x': x})[0].sum())
""") == "2000.0\n"


def test_the_interpreter_ends_while_a_kernel_waits_for_ever():
    assert run_program("""
inside = threading.Event()
def wait(inputs, attrs):
    inside.set()
    threading.Event().wait()
build("Wait", wait)
threading.Thread(target=session_of("Wait").run, args=(None, {'x': x}), daemon=True).start()
inside.wait()
pyflame_rt._core.shutdown._PATIENCE = 0.1
print("ends")
""") == "ends\n"


def test_what_is_run_at_exit_is_refused():
    # Functions of atexit are called in the reverse of their order: this one after the package's own.
    assert run_program("", before="""
import atexit
@atexit.register
def late():
    try:
        sessions[0].run(None, {'x': x})
    except pyflame_rt.PyFlameRTError as fault:
        print('the interpreter is ending' in str(fault))
""") == "True\n"

# SPDX-License-Identifier: Apache-2.0
"""Many of everything: nothing is lost, nothing hangs, nothing crashes.

Each program runs in an interpreter of its own, whose end is looked at too.
"""
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import pyflame_rt
import stress
from conftest import FLOAT, ROOT, node, onnx_model, port

DIGITS = str(ROOT / "samples" / "digits" / "digits.onnx")
IMAGE = np.ones((2, 1, 8, 8), np.float32)
ADD = onnx_model([node("Add", ["a", "b"], ["y"])], [port("a", FLOAT, ["N", 3]), port("b", FLOAT, ["N", 3])],
                 [port("y", FLOAT, ["N", 3])])
X = np.ones((4, 3), np.float32)
FEEDS = {"a": X, "b": X}


def right(session):
    return session.run(None, FEEDS)[0].tolist() == (X + X).tolist()


def sessions_opened_and_closed():
    def work():
        with pyflame_rt.InferenceSession(DIGITS) as session:
            session.run(None, {"image": IMAGE})
            session.explain(), session.get_modelmeta(), session.get_inputs(), repr(session)
        cycle = [pyflame_rt.InferenceSession(ADD)]
        cycle.append(cycle)
        assert right(cycle[0])
        assert right(pickle.loads(pickle.dumps(cycle[0])))
        for model in (b"\xff" * 50, "nowhere.onnx"):
            try:
                pyflame_rt.InferenceSession(model)
                raise AssertionError(model)
            except pyflame_rt.PyFlameRTError:
                pass
        work.count += 1
        if work.count % 50 == 0:
            gc.collect()

    work.count = 0
    return stress.lost(work, 1000 // 3 + 1)


def runs_from_eight_threads():
    def work():
        session, faults = pyflame_rt.InferenceSession(ADD), []

        def run(n):
            options = pyflame_rt.RunOptions()
            for i in range(125):
                x = np.full((i % 5 + 1, 3), n, np.float32)
                if not np.array_equal(session.run(None, {"a": x, "b": x}, options)[0], x + x):
                    faults.append((n, i))
                if i % 25 == 0:
                    refused({"a": x}, pyflame_rt.InputError)
                    refused({"a": x, "b": x.astype(np.float64)}, pyflame_rt.DTypeMismatchError)
                    options.cancel()
                    refused({"a": x, "b": x}, pyflame_rt.CancelledError, options)
                    options.reset()

        def refused(feeds, error, options=None):
            try:
                session.run(None, feeds, options)
                faults.append(feeds)
            except error:
                pass

        threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert faults == []

    return stress.lost(work, 5)


def bindings_and_asynchronous_runs():
    def work():
        session, ended = pyflame_rt.InferenceSession(ADD), threading.Semaphore(0)
        binding = session.io_binding()
        binding.bind_cpu_input("a", X)
        binding.bind_cpu_input("b", X)
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        assert binding.copy_outputs_to_cpu()[0].tolist() == (X + X).tolist()
        found = []

        def callback(results, user_data, error):
            found.append((results[0].tolist() if results else error, user_data))
            ended.release()

        for i in range(10):
            session.run_async(None, FEEDS, callback, i)
        for _ in range(10):
            ended.acquire()
        assert sorted(found, key=lambda pair: pair[1]) == [((X + X).tolist(), i) for i in range(10)]

    return stress.lost(work, 100)


def forks_of_a_busy_process():
    """A server that loads first, runs in its threads, and forks its workers all the while."""
    session, stop = pyflame_rt.InferenceSession(ADD), threading.Event()

    def run():
        while not stop.is_set():
            assert right(session)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    ends = []
    for _ in range(100):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                workers = [threading.Thread(target=right, args=(session,)) for _ in range(2)]
                for worker in workers:
                    worker.start()
                for worker in workers:
                    worker.join()
                fine = right(session) and right(pyflame_rt.InferenceSession(ADD))
                os._exit(0 if fine else 1)
            except BaseException:
                os._exit(2)
        ends.append(os.waitpid(child, 0)[1])
    stop.set()
    for thread in threads:
        thread.join()
    return "" if ends == [0] * 100 and right(session) else str(ends)


PRELOADED = None


def classify(image):
    return PRELOADED.run(None, {"image": image})[0].argmax(axis=1).tolist()


def run_given(session):
    return right(session)


def a_pool_of_a_preloaded_session():
    global PRELOADED
    PRELOADED = pyflame_rt.InferenceSession(DIGITS)
    images = [np.random.RandomState(i).rand(2, 1, 8, 8).astype(np.float32) for i in range(100)]
    expected = [classify(image) for image in images]
    with multiprocessing.get_context("fork").Pool(4) as pool:
        found = pool.map(classify, images, chunksize=3)
    with multiprocessing.get_context("spawn").Pool(2) as pool:  # these get it by path or bytes, and options
        given = pool.map(run_given, [pyflame_rt.InferenceSession(ADD)] * 4)
    return "" if found == expected and given == [True] * 4 else f"{found} instead of {expected}, {given}"


there_is_run_async = pytest.mark.skipif(not hasattr(pyflame_rt.InferenceSession, "run_async"),
                                        reason="there is no run_async yet")


@pytest.mark.parametrize("program", [
    sessions_opened_and_closed, runs_from_eight_threads, forks_of_a_busy_process, a_pool_of_a_preloaded_session,
    pytest.param(bindings_and_asynchronous_runs, marks=there_is_run_async)], ids=lambda program: program.__name__)
def test_nothing_is_lost(program):
    done = python(f"import test_stress; print('lost:', test_stress.{program.__name__}())")
    assert (done.returncode, done.stdout, done.stderr) == (0, "lost: \n", "")


def python(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                          cwd=Path(__file__).resolve().parent)


def test_a_loss_would_be_seen():
    done = python("""
import stress, test_stress, pyflame_rt
def work():
    session = pyflame_rt.InferenceSession(test_stress.ADD)
    session._handle._release = lambda address: None
print(len(stress.lost(work, 100)))""")
    assert done.returncode == 0 and int(done.stdout) > 0, done.stderr


LIVE = """
import atexit, os, sys, threading, time
import pyflame_rt
from test_stress import ADD, FEEDS, right
session = pyflame_rt.InferenceSession(ADD)
def forever():
    while True: right(session)
def start(daemon):
    threads = [threading.Thread(target=forever, daemon=daemon) for _ in range(4)]
    for thread in threads: thread.start()
    right(session)
"""


@pytest.mark.parametrize("end, code", [
    ("start(True)", 0),
    ("start(True); sys.exit(3)", 3),
    ("start(False); os._exit(4)", 4),
    ("cycle = [session]; cycle.append(cycle); del session", 0),
    ("sys.session = session; sys.modules['kept'] = session", 0),
    ("atexit.register(lambda: print(right(session), file=sys.stderr) if not right(session) else None)", 0),
    ("threading.Thread(target=lambda: (time.sleep(0.05), right(session), session.close())).start()", 0),
    ("out = session.run(None, FEEDS); kept = [pyflame_rt.RunOptions(), pyflame_rt.Tensor([2])]; del session", 0),
])
def test_the_interpreter_ends(end, code):
    done = python(LIVE + end)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_the_interpreter_ends_by_an_exception():
    done = python(LIVE + "start(True); raise RuntimeError('on purpose')")
    assert done.returncode == 1 and done.stderr.endswith("RuntimeError: on purpose\n")


@there_is_run_async
@pytest.mark.parametrize("runs, callback", [(1000, "lambda *_: None"), (100, "lambda *_: right(session)"),
                                            (5, "lambda *_: start(True)")])
def test_the_interpreter_ends_with_asynchronous_runs(runs, callback):
    done = python(LIVE + f"for _ in range({runs}): session.run_async(None, FEEDS, {callback}, None)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

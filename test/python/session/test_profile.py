# SPDX-License-Identifier: Apache-2.0
"""Profiles and benchmarks."""
import gc
import importlib.util
import json
import os
import re
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import pyflame_rt
from conftest import ROOT

DIGITS = str(ROOT / "samples/digits/digits.onnx")
FEED = {"image": np.zeros((1, 1, 8, 8), np.float32)}
_spec = importlib.util.spec_from_file_location("check_trace", ROOT / "test/check_trace.py")
check_trace = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check_trace)


def profiled(tmp_path, **options):
    return pyflame_rt.SessionOptions(enable_profiling=True, profile_file_prefix=str(tmp_path / "p"), **options)


def read(path):
    profile = json.loads(Path(path).read_text(encoding="utf-8"))
    assert check_trace.faults_of(profile) == []
    return profile


def test_a_hundred_concurrent_runs(tmp_path):
    # Out of no cache: the model is loaded and optimised here.
    session = pyflame_rt.InferenceSession(DIGITS, profiled(tmp_path, num_threads=2, cache_dir="off"))

    def run_some(tag):
        options = pyflame_rt.RunOptions(tag=tag)
        for _ in range(10):
            session.run(None, FEED, options)

    threads = [threading.Thread(target=run_some, args=(f"worker {i % 5}",)) for i in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    path = session.end_profiling()
    profile = read(path)
    # Sessions of other processes, begun in the same second, have other names.
    assert re.fullmatch(rf"p_\d{{4}}(-\d\d){{2}}_\d\d(-\d\d){{2}}_{os.getpid()}_\d+\.json", Path(path).name)
    assert Path(path).parent == tmp_path
    assert check_trace.runs_by_tag(profile) == {f"worker {i}": 20 for i in range(5)}
    events = profile["traceEvents"]
    runs = {e["args"]["run"]: e for e in events if e["name"] == "model_run"}
    assert sorted(runs) == list(range(1, 101)) and all(e["args"]["status"] == "ok" for e in runs.values())
    steps = [e for e in events if e.get("cat") == "Node"]
    assert set(Counter(e["args"]["run"] for e in steps).values()) == {len(session.explain())}
    for step in steps:
        run = runs[step["args"]["run"]]
        assert run["ts"] <= step["ts"] and step["tid"] == run["tid"]
        assert step["args"]["kernel"] and step["args"]["provider"] == "CPUExecutionProvider"
    names = {e["name"] for e in events}
    assert {"model_loading", "import", "check", "session_initialization", "optimise", "compile", "pack constants",
            "plan"} <= names
    assert any(name.startswith("pass ") for name in names)
    counters = {e["name"]: e["args"] for e in events if e["ph"] == "C"}  # the last of each
    assert counters == {"memory": {"working_bytes": 0, "result_bytes": 0}, "threads": {"at_work": 0},
                        "runs": {"under_way": 0}}
    assert max(e["args"]["working_bytes"] for e in events if e["ph"] == "C" and e["name"] == "memory") > 0
    assert profile["otherData"]["runs"] == 100 and profile["otherData"]["dropped_events"] == 0


def test_the_end_of_a_profile_is_the_end(tmp_path):
    before = time.monotonic_ns()
    session = pyflame_rt.InferenceSession(DIGITS, profiled(tmp_path))
    assert before < session.get_profiling_start_time_ns() < time.monotonic_ns()
    session.run(None, FEED)
    path = session.end_profiling()
    session.run(None, FEED)
    assert session.end_profiling() == path
    assert read(path)["otherData"]["runs"] == 1
    del session
    gc.collect()
    assert [str(file) for file in tmp_path.iterdir()] == [path]


def test_who_writes_a_profile_that_nobody_ends(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for options in (pyflame_rt.SessionOptions(enable_profiling=True), pyflame_rt.SessionOptions()):
        pyflame_rt.InferenceSession(DIGITS, options).run(None, FEED)
        gc.collect()
        assert list(tmp_path.iterdir()) == []
    pyflame_rt.InferenceSession(DIGITS, profiled(tmp_path)).run(None, FEED)
    gc.collect()
    (path,) = tmp_path.iterdir()
    assert read(path)["otherData"]["runs"] == 1


def test_without_a_profile_there_is_no_file():
    session = pyflame_rt.InferenceSession(DIGITS)
    assert session.end_profiling() == "" and session.get_profiling_start_time_ns() == 0


def test_a_profile_that_cannot_be_written(tmp_path):
    options = pyflame_rt.SessionOptions(enable_profiling=True, profile_file_prefix=str(tmp_path / "no" / "p"))
    session = pyflame_rt.InferenceSession(DIGITS, options)
    with pytest.raises(pyflame_rt.PyFlameRTError, match="ending the session's profile.*no/p_"):
        session.end_profiling()
    (tmp_path / "no").mkdir()
    session.run(None, FEED)
    assert read(session.end_profiling())["otherData"]["runs"] == 1


def test_asynchronous_runs_have_waited(tmp_path):
    session = pyflame_rt.InferenceSession(DIGITS, profiled(tmp_path))
    over = threading.Semaphore(0)
    for _ in range(20):
        session.run_async(None, FEED, lambda *_: over.release())
    for _ in range(20):
        over.acquire()
    events = read(session.end_profiling())["traceEvents"]
    assert Counter(e["ph"] for e in events if e["name"] == "queue_wait") == {"b": 20, "e": 20}


def test_a_failed_run_says_so(tmp_path):
    session = pyflame_rt.InferenceSession(DIGITS, profiled(tmp_path))
    with pytest.raises(pyflame_rt.PyFlameRTError):
        session.run(None, {"image": np.zeros((2, 2), np.float32)})
    (run,) = [e for e in read(session.end_profiling())["traceEvents"] if e["name"] == "model_run"]
    assert run["args"]["status"] != "ok"


def test_one_session_has_how_the_model_was_loaded(tmp_path):
    graph = pyflame_rt.load_model(DIGITS)
    session = pyflame_rt.InferenceSession(graph, profiled(tmp_path))
    names = [e["name"] for e in read(session.end_profiling())["traceEvents"]]
    assert names.count("model_loading") == 1


def test_steps_side_by_side(tmp_path):
    session = pyflame_rt.InferenceSession(DIGITS, profiled(tmp_path, num_threads=4, execution_mode="parallel"))
    for _ in range(20):
        session.run(None, FEED)
    assert read(session.end_profiling())["otherData"]["runs"] == 20


def test_the_checker_finds_faults():
    def faults(*events):
        names = [{"ph": "M", "name": kind, "ts": 0, "pid": 1, "tid": 1, "args": {"name": "n"}}
                 for kind in ("process_name", "thread_name")]
        return check_trace.faults_of({"traceEvents": [*names, *events]})

    def span(ts, dur, **more):
        return {"ph": "X", "name": "a", "ts": ts, "dur": dur, "pid": 1, "tid": 1, **more}

    assert faults(span(0, 2), span(0, 1), span(1, 1)) == []
    assert len(faults(span(0, 2), span(1, 2))) == 1
    assert len(faults(span(0, -1))) == 1 and len(faults(span(0, 1, tid=2))) == 1
    assert len(faults({"ph": "b", "name": "w", "cat": "c", "id": "1", "ts": 0, "pid": 1, "tid": 1})) == 1
    assert len(faults({"ph": "X", "name": "a"})) == 1 and len(check_trace.faults_of([])) == 1


def test_a_benchmark():
    benchmark = pyflame_rt.Benchmark(DIGITS)
    runs = benchmark.session.statistics()["runs"]
    figures = benchmark.benchmark(FEED["image"], num_runs=20, warmup_runs=3)
    assert benchmark.session.statistics()["runs"] - runs == 23
    assert set(figures) == {"mean", "std", "min", "max", "p50", "p99"}
    assert 0 < figures["min"] <= figures["p50"] <= figures["p99"] <= figures["max"]
    assert figures["min"] <= figures["mean"] <= figures["max"] and figures["std"] >= 0
    assert pyflame_rt.Benchmark(benchmark.session).benchmark(FEED, 1, 0)["std"] == 0


@pytest.mark.parametrize("arguments", [{"num_runs": 0}, {"num_runs": -1}, {"num_runs": 1.5}, {"num_runs": True},
                                       {"warmup_runs": -1}, {"warmup_runs": "3"}])
def test_a_benchmark_of_nonsense(arguments):
    with pytest.raises(pyflame_rt.InvalidArgumentError, match=f"{next(iter(arguments))} is .*; give a whole number"):
        pyflame_rt.Benchmark(DIGITS).benchmark(FEED, **arguments)


def test_a_benchmark_of_a_session_takes_no_options():
    session = pyflame_rt.InferenceSession(DIGITS)
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="give none"):
        pyflame_rt.Benchmark(session, providers=["cpu"])

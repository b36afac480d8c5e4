# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled models, by itself and under sessions."""
import os
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import pyflame_rt
from pyflame_rt import InferenceSession, SessionOptions


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def model(digits, tmp_path):
    return shutil.copy(digits, tmp_path / "model.onnx")


def run_of(session):
    feed = {arg.name: np.arange(64, dtype=np.float32).reshape([d or 1 for d in arg.shape]) / 64
            for arg in session.get_inputs()}
    return session.run(None, feed)


def stats_of(folder):
    return pyflame_rt.cache.BinaryCache(pyflame_rt.cache.CacheConfig(cache_dir=folder)).get_stats()


def test_sessions_start_from_the_cache_and_give_the_same(model, folder):
    plain = run_of(InferenceSession(model))
    options = SessionOptions(cache_dir=folder)
    first = InferenceSession(model, options)
    assert (stats_of(folder).stores, stats_of(folder).hits) == (1, 0)
    second = InferenceSession(model, options)
    assert (stats_of(folder).stores, stats_of(folder).hits) == (1, 1)
    assert any("put into the cache" in note for note in first.notes())
    assert any("from the cache, entry " in note for note in second.notes())
    for session in (first, second):
        np.testing.assert_array_equal(run_of(session)[0], plain[0])
    key = pyflame_rt.cache.CacheKey.compute(model, options)
    cache = pyflame_rt.cache.BinaryCache(pyflame_rt.cache.CacheConfig(cache_dir=folder))
    assert cache.list_entries() == [key] and cache.has(key)
    assert {n.op_type for n in cache.get(key).nodes} == {n.op_type for n in pyflame_rt.load_model(model).nodes}


def test_keys_change_with_bytes_and_options(model, tmp_path):
    compute = pyflame_rt.cache.CacheKey.compute
    key = compute(model)
    assert key == compute(model, SessionOptions(num_threads=1, log_level="error"))
    assert key == compute(shutil.copy(model, tmp_path / "copy.onnx"))
    assert key != compute(model, SessionOptions(precision="ieee"))
    assert key != compute(model, SessionOptions(optimization_level=pyflame_rt.OptLevel.ALL))
    pyflame_rt.save_model(pyflame_rt.load_model(model), str(tmp_path / "other.onnx"))
    assert key != compute(tmp_path / "other.onnx")


def test_graphs_are_kept_and_compiled(model, folder):
    config = pyflame_rt.cache.CacheConfig(cache_dir=folder, ttl=timedelta(hours=1))
    cache = pyflame_rt.cache.BinaryCache(config)
    made = []

    def compile():
        made.append(1)
        return pyflame_rt.cache.compile_model(model)

    first = cache.get_or_compile(model, None, compile)
    again = cache.get_or_compile(model, None, compile)
    assert made == [1] and len(first.nodes) == len(again.nodes)
    np.testing.assert_array_equal(run_of(InferenceSession(again))[0], run_of(InferenceSession(first))[0])
    stats = cache.get_stats()
    assert stats.stores == 1 and 0 < stats.hit_rate() < 1
    assert cache.remove(cache.list_entries()[0]) and cache.entry_count() == 0
    cache.set_enabled(False)
    cache.put("any key/at all", first)
    assert not cache.has("any key/at all")
    cache.set_enabled(True)
    cache.put("any key/at all", first)
    assert cache.list_entries() == ["any key/at all"]
    options = pyflame_rt.cache.CompileOptions(cache_dir=folder, optimization_level=3)
    kept = pyflame_rt.cache.compile_model(model, options)
    assert len(pyflame_rt.cache.compile_model(model, options).nodes) == len(kept.nodes)


def test_models_are_compiled_for_other_shapes(model, folder):
    compiled, options = pyflame_rt.cache.compile_model, pyflame_rt.cache.CompileOptions
    name = pyflame_rt.load_model(model).inputs[0].name
    rank = len(pyflame_rt.load_model(model).inputs[0].shape)
    fixed = [3, *pyflame_rt.load_model(model).inputs[0].shape[1:]]
    for _ in range(2):  # the second is out of the cache
        assert compiled(model, options(cache_dir=folder, input_shapes={name: fixed})).inputs[0].shape == fixed
        assert compiled(model, options(cache_dir=folder, dynamic_batch=True)).inputs[0].shape == [None, *fixed[1:]]
    assert stats_of(folder).stores == 2
    with pytest.raises(pyflame_rt.ShapeMismatchError, match=f"{rank + 1} dimensions"):
        compiled(model, options(input_shapes={name: [1] * (rank + 1)}))
    with pytest.raises(pyflame_rt.InputError, match="'none', which is no input"):
        compiled(model, options(input_shapes={"none": [1]}))


def test_another_process_starts_from_it(model, folder):
    program = ("import os, sys, pyflame_rt\n"
               "from pyflame_rt.cache import BinaryCache, CacheConfig\n"
               "pyflame_rt.InferenceSession(sys.argv[1])\n"
               "stats = BinaryCache(CacheConfig(cache_dir=os.environ['PFRT_CACHE_DIR'])).get_stats()\n"
               "print(stats.stores, stats.hits)\n")
    env = dict(os.environ, PFRT_CACHE_DIR=str(folder))
    seen = [subprocess.run([sys.executable, "-c", program, model], env=env, capture_output=True, text=True, check=True)
            .stdout.split() for _ in range(2)]
    assert seen == [["1", "0"], ["0", "1"]]


def test_a_model_in_memory_starts_from_it(model, folder):
    data, options = Path(model).read_bytes(), SessionOptions(cache_dir=folder)
    plain = run_of(InferenceSession(model))
    for hits in (0, 1):
        np.testing.assert_array_equal(run_of(InferenceSession(data, options))[0], plain[0])
        assert stats_of(folder).hits == hits


def test_a_model_that_cannot_be_read_does_not_stop_a_warm_up(model, folder, tmp_path):
    (tmp_path / "broken.onnx").write_bytes(b"\0" * 100)
    cache = pyflame_rt.cache.BinaryCache(pyflame_rt.cache.CacheConfig(cache_dir=folder))
    good, bad, absent = cache.warmup([model, tmp_path / "broken.onnx", tmp_path / "absent.onnx"])
    assert good and not bad and not absent and "absent" in absent.error


def test_it_stands_being_mistreated():
    interposed = "0" if "LD_PRELOAD" in os.environ else "6"
    done = subprocess.run([sys.executable, str(Path(__file__).with_name("cache_torture.py")), "--kills", "12", "--flips", "60",
                           "--failures", interposed, "--jumps", interposed], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout

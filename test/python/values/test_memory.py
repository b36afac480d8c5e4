# SPDX-License-Identifier: Apache-2.0
"""Pools, arenas, caches and allocators."""
import ctypes
import gc

import numpy as np
import pytest

import pyflame_rt
from conftest import FLOAT, INT64, node, onnx_model, port
from pyflame_rt import memory


@pytest.fixture
def plain_global_pool():
    yield
    memory.set_global_pool_config(None)


def relu():
    return pyflame_rt.InferenceSession(
        onnx_model([node("Relu", ["x"], ["y"])], [port("x", FLOAT, ["N", 256])], [port("y", FLOAT, ["N", 256])]))


def test_blocks_are_written_and_reused():
    pool = memory.MemoryPool()
    block = pool.allocate(400)
    address = block.address
    array = np.frombuffer(block.view(), np.float32)
    array[:] = 1
    assert array.sum() == 100 and address % 64 == 0 and len(block) == 400
    pool.deallocate(block)
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="free already"):
        pool.deallocate(block)
    assert pool.get_stats().current_usage == 400, "the array looks at it"
    del array
    gc.collect()
    assert pool.get_stats().current_usage == 0
    again = pool.allocate_aligned(500, 512)
    assert again.address % 512 == 0
    assert pool.allocate(512).address == address
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="not of this pool"):
        memory.MemoryPool().deallocate(again)
    larger = pool.reallocate(again, 5000)
    assert len(larger.view()) == 5000 and pool.get_stats().num_frees >= 2


def test_limits_and_wrong_configs():
    pool = memory.MemoryPool(memory.PoolConfig(memory_limit=1 << 20))
    with pytest.raises(pyflame_rt.OutOfMemoryError, match="memory_limit=1048576"):
        pool.allocate(2 << 20)
    with pytest.raises(pyflame_rt.InvalidArgumentError):
        pool.allocate(-1)
    for wrong in ({"alignment": 48}, {"alignment": 0}, {"size_classes": []}, {"size_classes": [0]},
                  {"memory_limit": -1}, {"memory_limit": 1, "initial_pool_size": 2}):
        with pytest.raises(pyflame_rt.InvalidArgumentError):
            memory.MemoryPool(memory.PoolConfig(**wrong))
    fixed = memory.MemoryPool(memory.PoolConfig(initial_pool_size=4096, auto_grow=False))
    kept = fixed.allocate(4000)
    with pytest.raises(pyflame_rt.OutOfMemoryError, match="auto_grow"):
        fixed.allocate(4000)
    assert len(kept) == 4000


def test_arenas():
    arena = memory.Arena(1000)
    kept = arena.allocate(100).view()
    kept[:] = b"k" * 100
    with memory.ScopedArena(arena) as scope:
        assert scope.allocate_aligned(10, 64).address % 64 == 0
        scope.allocate(5000)
        assert arena.overflow_blocks() == 1 and arena.used() > 100
        with memory.ScopedArena(arena):
            arena.allocate(5000)
        assert arena.overflow_blocks() == 1
    assert (arena.used(), arena.remaining(), arena.capacity(), arena.overflow_blocks()) == (100, 900, 1000, 0)
    assert bytes(kept) == b"k" * 100
    arena.reset()
    assert arena.used() == 0
    with pytest.raises(pyflame_rt.InvalidArgumentError):
        arena.allocate_aligned(1, 3)


def test_caches():
    cache = memory.BufferCache(max_buffers=2)
    first = cache.acquire(1000)
    cache.release(first)
    second = cache.acquire(800)
    assert second.obj is first.obj and cache.hits == 1
    cache.release(second)
    with pytest.raises(pyflame_rt.InvalidArgumentError):
        cache.release(second)
    for view in [cache.acquire(10), cache.acquire(20), cache.acquire(30)]:
        cache.release(view)
    assert cache.cached_buffers() == 2 and cache.cached_bytes() == 50
    cache.clear()
    assert cache.cached_bytes() == 0


def test_caches_by_the_other_names():
    cache = memory.global_buffer_cache()
    assert cache is memory.global_buffer_cache()
    first = cache.get_buffer(1000)
    cache.return_buffer(first)
    assert cache.get_buffer(900).obj is first.obj
    stats = cache.get_stats()
    assert (stats.hits, stats.misses, stats.cached_buffers, stats.cached_bytes) == (1, 1, 0, 0)
    assert stats.hit_rate() == 0.5 and memory.BufferCacheStats(0, 0, 0, 0).hit_rate() == 0.0
    cache.clear()


def test_the_global_pool_counts_runs(plain_global_pool):
    session, x = relu(), np.ones((100, 256), np.float32)
    session.run(None, {"x": x})
    before = memory.global_pool().get_stats()
    for _ in range(5):
        session.run(None, {"x": x})
    after = memory.global_pool().get_stats()
    assert after.num_allocations > before.num_allocations
    memory.set_global_pool_config(memory.PoolConfig(memory_limit=4 << 20))
    assert session.run(None, {"x": x})[0].shape == (100, 256)
    with pytest.raises(pyflame_rt.OutOfMemoryError, match="memory_limit=4194304"):
        session.run(None, {"x": np.ones((20000, 256), np.float32)})


def test_an_allocator_in_python():
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]

    class Counting(memory.Allocator):
        alive = calls = 0
        most = 1 << 30

        def alloc(self, size):
            if size > self.most:
                raise MemoryError
            self.alive += 1
            self.calls += 1
            return libc.malloc(size)

        def free(self, address):
            self.alive -= 1
            libc.free(address)

    own = Counting()
    memory.set_allocator(own)
    try:
        session = relu()
        out = session.run(None, {"x": np.full((50, 256), -1, np.float32)})[0]
        assert out.shape == (50, 256) and not out.any() and own.calls > 0
        own.most = 1 << 20
        with pytest.raises(pyflame_rt.OutOfMemoryError):
            session.run(None, {"x": np.ones((5000, 256), np.float32)})
    finally:
        memory.set_allocator(None)
    del session, out
    gc.collect()
    assert own.alive == 0


def test_reports_trimming_and_phases(digits):
    session = pyflame_rt.InferenceSession(digits)
    assert session.phase() == "Ready"
    port = session.get_inputs()[0]
    shape = [size if isinstance(size, int) and size > 0 else 7 for size in port.shape]
    feed = {port.name: np.ones(shape, np.float32)}
    session.run(None, feed)
    report = session.memory_report()
    assert report.idle > 0 and report.peak >= report.idle and report.in_use == 0
    assert report.packed > 0 and f"{port.name}[{','.join(map(str, shape))}]" in report.blocks
    assert session.trim() == report.idle and session.memory_report().idle == 0
    session.run(None, feed)
    assert session.memory_report().idle > 0
    assert pyflame_rt.Environment.trim() > 0 and session.memory_report().idle == 0


def test_a_failed_run_is_a_phase_until_one_succeeds(plain_global_pool):
    session = relu()
    memory.set_global_pool_config(memory.PoolConfig(memory_limit=4 << 20))
    with pytest.raises(pyflame_rt.OutOfMemoryError):
        session.run(None, {"x": np.ones((20000, 256), np.float32)})
    assert session.phase() == "FatalError"
    session.run(None, {"x": np.ones((2, 256), np.float32)})
    assert session.phase() == "Ready"


# ------------------------------------------------------------------ planners, and what sessions are told of memory


def products(options=None):
    """Products of a = x x^T, of which two at a time are needed."""
    nodes = [node("Gemm", ["x", "x"], ["a"], transB=1), node("MatMul", ["a", "a"], ["b"]),
             node("MatMul", ["b", "a"], ["c"]), node("MatMul", ["c", "x"], ["y"])]
    model = onnx_model(nodes, [port("x", FLOAT, ["N", 8])], [port("y", FLOAT, ["N", 8])])
    return pyflame_rt.InferenceSession(model, options)


def side_by_side(request):
    offsets, at = [], 0
    for item in request.items:
        at = -(-at // item.alignment) * item.alignment
        offsets.append(at)
        at += item.bytes
    return memory.MemoryPlan(offsets, at)


@pytest.fixture
def own_planner():
    yield
    memory.set_memory_planner(None)


def test_a_planner_in_python(own_planner):
    x = np.arange(40, dtype=np.float32).reshape(5, 8) / 40
    expected = products().run(None, {"x": x})[0]
    asked = []

    class Planner(memory.MemoryPlanner):
        def create_plan(self, request):
            asked.append(request)
            return side_by_side(request)

    for planner in (Planner(), lambda request: asked.append(request) or side_by_side(request)):
        asked.clear()
        memory.set_memory_planner(planner)
        session = products()
        assert np.array_equal(session.run(None, {"x": x})[0], expected)
        session.run(None, {"x": x})
        assert len(asked) == 1, "a plan is made once for its dimensions"
        assert asked[0].memory == "host" and asked[0].items
        for item in asked[0].items:
            assert item.alignment >= 64 and item.first_step <= item.last_step and item.lives_with(item)
    memory.set_memory_planner(None)
    assert np.array_equal(session.run(None, {"x": np.vstack([x, x])})[0].shape, (10, 8))


def test_planners_that_are_wrong(own_planner):
    x = np.ones((5, 8), np.float32)
    session = products()

    def fails(planner, kind, match):
        memory.set_memory_planner(planner)
        with pytest.raises(kind, match=match) as caught:
            session.run(None, {"x": x})
        return caught.value

    fails(lambda r: memory.MemoryPlan([0] * len(r.items), 1 << 20), pyflame_rt.InvalidArgumentError, "overlap")
    fails(lambda r: memory.MemoryPlan(side_by_side(r).offsets, 1), pyflame_rt.InvalidArgumentError, "not inside of")
    fails(lambda r: memory.MemoryPlan([], 0), pyflame_rt.InvalidArgumentError, "0 offsets for")
    fails(lambda r: memory.MemoryPlan([-1] * len(r.items), 5), pyflame_rt.InvalidArgumentError, "-1")
    fails(lambda r: None, pyflame_rt.InvalidArgumentError, "NoneType")
    fault = fails(lambda r: 1 / 0, pyflame_rt.PyFlameRTError, "ZeroDivisionError")
    assert isinstance(fault.__cause__, ZeroDivisionError)
    fails(memory.MemoryPlanner(), pyflame_rt.UnsupportedError, "no create_plan")
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="a memory planner is"):
        memory.set_memory_planner(5)
    memory.set_memory_planner(None)
    assert session.run(None, {"x": x})[0].shape == (5, 8)


def test_memory_options_of_sessions():
    x = np.ones((5, 8), np.float32)
    expected = products().run(None, {"x": x})[0]
    options = pyflame_rt.SessionOptions(enable_mem_reuse=False, enable_mem_pattern=False, halve_batch=False)
    options.extra["session.use_env_allocators"] = "0"
    assert options.validate() == []
    session = products(options)
    assert np.array_equal(session.run(None, {"x": x})[0], expected)
    assert session.memory_report().idle == 0
    kept = products()
    kept.run(None, {"x": x})
    assert kept.memory_report().idle > 0


def test_a_batch_is_halved_where_memory_is_short():
    nodes = [node("Concat", ["x"] * 8, ["c"], axis=1), node("Softmax", ["c"], ["s"], axis=1),
             node("ArgMax", ["s"], ["y"], axis=1)]
    model = onnx_model(nodes, [port("x", FLOAT, ["N", 4096])], [port("y", INT64, ["N", 1])])
    feeds = {"x": np.random.default_rng(3).standard_normal((64, 4096)).astype(np.float32)}
    little = pyflame_rt.RunOptions(memory_limit=4 << 20)  # what is between has 8 MiB
    whole = pyflame_rt.InferenceSession(model, pyflame_rt.SessionOptions(halve_batch=False))
    expected = whole.run(None, feeds)[0]
    with pytest.raises(pyflame_rt.OutOfMemoryError):
        whole.run(None, feeds, little)
    session = pyflame_rt.InferenceSession(model)
    assert np.array_equal(session.run(None, feeds, little)[0], expected)
    assert session.statistics()["in_parts"] == 1 and session.phase() == "Ready"
    with pytest.raises(pyflame_rt.OutOfMemoryError, match="row 0 of 64 by itself"):
        session.run(None, feeds, pyflame_rt.RunOptions(memory_limit=64 << 10))

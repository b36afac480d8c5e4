# SPDX-License-Identifier: Apache-2.0
"""The guide's Python of batches and asynchronous sessions, as printed. Numbers are those of guide_snippets.md."""
import re

import pytest

from conftest import FLOAT, field, node, port
from guide_model import write_pfm


@pytest.fixture(autouse=True)
def relu_model(tmp_path, monkeypatch):
    """"model.pfm" takes pictures whose channels come last, as these programs give them."""
    monkeypatch.chdir(tmp_path)
    shape = ("N", 224, 224, 3)
    graph = (field(1, node("Relu", ["input"], ["output"])) + field(2, "relu") +
             field(11, port("input", FLOAT, shape)) + field(12, port("output", FLOAT, shape)))
    write_pfm("model.pfm", field(1, 8) + field(7, graph) + field(8, field(2, 17)))


def test_41_dynamic_batching(capsys):
    import numpy as np
    import pyflame_rt

    # Configure batcher
    config = pyflame_rt.batching.BatchConfig()
    config.max_batch_size = 32
    config.max_latency_us = 1000  # 1ms
    config.enable_padding = True

    # Create batcher
    session = pyflame_rt.InferenceSession("model.pfm")
    batcher = pyflame_rt.batching.DynamicBatcher(session, config)

    # Start
    batcher.start()

    # Submit requests
    inputs = {"input": np.random.randn(1, 224, 224, 3).astype(np.float32)}
    future = batcher.submit(inputs)

    # Or blocking
    outputs = batcher.infer(inputs)

    # With callback
    def on_complete(request_id, success, outputs, error):
        if success:
            print(f"Request {request_id} completed")
        else:
            print(f"Request {request_id} failed: {error}")

    batcher.submit_with_callback(inputs, on_complete)

    batcher.flush()
    # Statistics
    stats = batcher.get_stats()
    print(f"Avg batch size: {stats.avg_batch_size:.2f}")
    print(f"Throughput: {stats.throughput_rps:.2f} req/s")

    # Stop
    batcher.stop()

    expected = np.maximum(inputs["input"], 0)
    assert np.array_equal(future.result()["output"], expected) and np.array_equal(outputs["output"], expected)
    said = capsys.readouterr().out
    assert re.fullmatch(r"Request 3 completed\nAvg batch size: 1\.\d\d\nThroughput: \d+\.\d\d req/s\n", said), said


def test_42_asynchronous_sessions(capsys):
    import numpy as np
    import pyflame_rt

    # Configure async options
    options = pyflame_rt.streaming.AsyncOptions()
    options.num_streams = 4
    options.enable_profiling = True

    # Create async session
    session = pyflame_rt.InferenceSession("model.pfm")
    async_session = pyflame_rt.streaming.AsyncSession(session, options)

    # Start
    async_session.start()

    # Submit async request
    inputs = {"input": np.random.randn(1, 224, 224, 3).astype(np.float32)}
    future = async_session.run_async(inputs)

    # Or with callback
    def on_complete(request_id, success, outputs, error):
        if success:
            print(f"Latency: {outputs.get('latency', 0)} us")

    async_session.run_async_callback(inputs, on_complete)

    # Get result
    result = future.result()  # Python future
    if result.success:
        outputs = result.get_outputs()

    async_session.synchronize_all()
    # Statistics
    stats = async_session.get_stats()
    print(f"Completed: {stats.completed_requests}")
    print(f"Avg latency: {stats.avg_latency_us:.2f} us")

    # Stop
    async_session.stop()

    assert np.array_equal(outputs["output"], np.maximum(inputs["input"], 0))
    said = capsys.readouterr().out
    assert re.fullmatch(r"Latency: \d+\.\d+ us\nCompleted: 2\nAvg latency: \d+\.\d\d us\n", said), said


def test_names_and_defaults():
    from pyflame_rt import batching, streaming

    config = batching.BatchConfig()
    assert (config.max_batch_size, config.max_latency_us, config.min_batch_size) == (32, 1000, 1)
    assert (config.preferred_sizes, config.enable_padding) == ([1, 2, 4, 8, 16, 32], True)
    assert (config.num_workers, config.queue_capacity, config.queue_timeout_ms) == (4, 1000, 5000)
    options = streaming.AsyncOptions()
    assert (options.num_streams, options.enable_pipelining, options.callback_threads) == (4, True, 2)
    assert (options.max_pending, options.enable_profiling) == (100, True)
    with pytest.raises(ImportError, match="StreamingInference is not in this version"):
        streaming.StreamingInference

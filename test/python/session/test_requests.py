# SPDX-License-Identifier: Apache-2.0
"""Batchers and asynchronous sessions: results, failures, cancels, coroutines, and the interpreter's end."""
import asyncio
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import pyflame_rt
from conftest import FLOAT, node, onnx_model, port
from pyflame_rt import batching, streaming


def scaled_session(**options):
    """y = 2 x, with x [N, 4]; and a second output z = -x."""
    model = onnx_model([node("Add", ["x", "x"], ["y"]), node("Neg", ["x"], ["z"])], [port("x", FLOAT, ["N", 4])],
                       [port("y", FLOAT, ["N", 4]), port("z", FLOAT, ["N", 4])])
    return pyflame_rt.InferenceSession(model, pyflame_rt.SessionOptions(**options))


def row(number):
    return np.full((1, 4), number, np.float32)


@pytest.fixture
def session():
    return scaled_session()


def test_many_threads_get_their_own(session):
    wrong = []
    with batching.DynamicBatcher(session) as batcher:
        def client(base):
            for i in range(50):
                value = base * 50 + i
                future = batcher.submit({"x": row(value)})
                outputs = batcher.infer({"x": row(value)}) if i % 2 else future.result()
                if (outputs["y"][0, 0], outputs["z"][0, 3], future.result()["y"].shape) != (2 * value, -value, (1, 4)):
                    wrong.append(value)

        threads = [threading.Thread(target=client, args=(base,)) for base in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stats = batcher.get_stats()
    assert not wrong
    assert stats.completed_requests == stats.total_requests == 6 * 75
    assert stats.avg_batch_size >= 1 and stats.unbatched_reason == "" and stats.throughput_rps > 0
    assert set(batcher.batch_times_us()) <= {1, 2, 4, 8, 16, 32} and min(batcher.batch_times_us().values()) > 0


def test_outputs_by_name_and_batches_of_requests(session):
    with batching.DynamicBatcher(session) as batcher:
        assert set(batcher.infer({"x": row(1)}, output_names=["z"])) == {"z"}
        assert set(batcher.submit({"x": row(1)}, output_names=["y"]).result()) == {"y"}
        both = [future.result()["y"][0, 0] for future in batcher.submit_batch([{"x": row(1)}, {"x": row(2)}])]
        assert both == [2, 4]
        with pytest.raises(pyflame_rt.InputError, match="'w'"):
            batcher.submit({"x": row(1)}, output_names=["w"])
        with pytest.raises(pyflame_rt.InputError, match="missing: 'x'"):
            batcher.submit({})


def test_what_a_run_raises_its_future_raises(session):
    with batching.DynamicBatcher(session) as batcher:
        good = batcher.submit({"x": row(3)})
        with pytest.raises(pyflame_rt.ShapeMismatchError, match="'x'"):
            batcher.submit({"x": np.zeros((1, 5), np.float32)}).result()
        with pytest.raises(pyflame_rt.ShapeMismatchError, match="'x'"):
            batcher.infer({"x": np.zeros((1, 5), np.float32)})
        assert good.result()["y"][0, 0] == 6
        told = []
        batcher.submit_with_callback({"x": np.zeros((1, 5), np.float32)}, lambda *all: told.append(all))
        batcher.flush()
        ((request_id, success, outputs, error),) = told
        assert request_id > 0 and not success and outputs == {} and "'x'" in error
    with streaming.AsyncSession(session) as streams:
        result = streams.run_async({"x": np.zeros((1, 5), np.float32)}).result()
        assert not result.success and result.outputs == {} and "'x'" in result.error_message


def test_queues_are_bounded_and_stopped_ones_refuse(session):
    batcher = batching.DynamicBatcher(session, batching.BatchConfig(queue_capacity=2))
    waiting = [batcher.submit({"x": row(i)}) for i in range(2)]
    assert batcher.queue_size() == 2
    with pytest.raises(pyflame_rt.BusyError, match="queue_capacity"):
        batcher.submit({"x": row(3)})
    assert batcher.get_stats().dropped_requests == 1
    batcher.stop()
    for future in waiting:
        with pytest.raises(pyflame_rt.CancelledError, match="stopped"):
            future.result()
    with pytest.raises(pyflame_rt.CancelledError, match="start it again"):
        batcher.infer({"x": row(1)})
    streams = streaming.AsyncSession(session, streaming.AsyncOptions(max_pending=1))
    first = streams.run_async({"x": row(1)})
    with pytest.raises(pyflame_rt.BusyError, match="max_pending"):
        streams.run_async({"x": row(1)})
    streams.start()
    assert first.result().outputs["y"][0, 0] == 2
    streams.stop()


def test_cancel_and_deadlines(session):
    batcher = batching.DynamicBatcher(session)
    first, second = batcher.submit({"x": row(1)}), batcher.submit({"x": row(2)})
    late = batcher.submit({"x": row(3)}, timeout_ms=1)
    assert first.cancel() and first.cancelled()
    batcher.cancel(second.request_id)
    time.sleep(0.005)
    batcher.start()
    with pytest.raises(pyflame_rt.CancelledError, match="by the caller"):
        second.result()
    with pytest.raises(pyflame_rt.TimeoutError, match="deadline"):
        late.result()
    with pytest.raises(pyflame_rt.NotFoundError, match="answered already"):
        batcher.cancel(second.request_id)
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="cancel_all"):
        batcher.cancel(0)
    batcher.flush()
    stats = batcher.get_stats()
    assert (stats.cancelled_requests, stats.expired_requests) == (2, 1)
    batcher.stop()


def test_priorities(session):
    batcher = batching.PriorityBatcher(session, batching.BatchConfig(max_batch_size=1, num_workers=1))
    order = []
    futures = [batcher.submit_priority({"x": row(i)}, priority) for i, priority in enumerate((1, 1000, 500))]
    for i, future in enumerate(futures):
        future.add_done_callback(lambda _, i=i: order.append(i))
    batcher.start()
    assert [future.result()["y"][0, 0] for future in futures] == [0, 2, 4]
    batcher.stop()
    assert order == [1, 2, 0]


def test_streams(session):
    with streaming.AsyncSession(session, streaming.AsyncOptions(num_streams=2)) as streams:
        assert streams.num_streams() == 2 and streams.select_stream() in (0, 1)
        result = streams.run_on_stream(1, {"x": row(5)}, output_names=["z"]).result()
        assert result.success and result.stream_id == 1 and set(result.get_outputs()) == {"z"}
        assert result.latency_us >= result.compute_time_us > 0 and result.request_id > 0
        streams.synchronize(1)
        with pytest.raises(pyflame_rt.InvalidArgumentError, match="there are 2"):
            streams.run_on_stream(2, {"x": row(5)})
        told = []
        streams.run_async_callback({"x": row(6)}, lambda *all: told.append(all))
        streams.synchronize_all()
        ((_, success, outputs, error),) = told
        assert success and error == "" and outputs["y"][0, 0] == 12 and outputs["latency"] > 0
        stats = streams.get_stats()
        assert stats.completed_requests == 2 and len(stats.stream_utilization) == 2
        streams.reset_stats()
        assert streams.get_stats().total_requests == 0


def test_coroutines_await_and_cancel(session):
    async def main():
        with batching.DynamicBatcher(session) as batcher, streaming.AsyncSession(session) as streams:
            outputs = await asyncio.gather(*(batcher.submit({"x": row(i)}) for i in range(20)))
            assert [each["y"][0, 0] for each in outputs] == [2 * i for i in range(20)]
            assert (await streams.run_async({"x": row(4)})).outputs["y"][0, 0] == 8
        waiting = batching.DynamicBatcher(session)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(waiting.submit({"x": row(1)})), 0.02)
        waiting.start()
        waiting.flush()
        assert waiting.get_stats().cancelled_requests == 1
        waiting.stop()

    asyncio.run(main())


def test_settings_are_checked(session):
    with pytest.raises(AttributeError, match="no 'max_latency'; it has max_batch_size"):
        batching.BatchConfig().max_latency = 5
    with pytest.raises(AttributeError, match="AsyncOptions has no 'streams'"):
        streaming.AsyncOptions().streams = 5
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="max_batch_size is 0"):
        batching.DynamicBatcher(session, batching.BatchConfig(max_batch_size=0))
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="takes a BatchConfig, got dict"):
        batching.DynamicBatcher(session, {})
    with pytest.raises(pyflame_rt.InvalidArgumentError, match="takes an InferenceSession, got str"):
        streaming.AsyncSession("model.onnx")
    with batching.DynamicBatcher(session) as batcher:
        with pytest.raises(pyflame_rt.InvalidArgumentError, match="cannot be called"):
            batcher.submit_with_callback({"x": row(1)}, None)


def test_models_that_mix_rows_say_why():
    mixed = onnx_model([node("Softmax", ["x"], ["y"], axis=0)], [port("x", FLOAT, ["N", 4])],
                       [port("y", FLOAT, ["N", 4])])
    with batching.DynamicBatcher(pyflame_rt.InferenceSession(mixed)) as batcher:
        assert "Softmax" in batcher.get_stats().unbatched_reason
        outputs = batcher.infer({"x": np.ones((2, 4), np.float32)})
        assert np.allclose(outputs["y"], 0.5)


@pytest.mark.parametrize("end", ["pass", "raise SystemExit(3)", "del batcher, streams, futures",
                                 "batcher.stop(); streams.stop()"])
def test_the_interpreter_ends_with_requests_under_way(end):
    program = f"""
import sys
import test_requests as own, pyflame_rt
session = own.scaled_session()
batcher, streams = pyflame_rt.batching.DynamicBatcher(session), pyflame_rt.streaming.AsyncSession(session)
batcher.start(); streams.start()
futures = [batcher.submit({{"x": own.row(i)}}) for i in range(200)]
futures += [streams.run_async({{"x": own.row(i)}}) for i in range(50)]
batcher.submit_with_callback({{"x": own.row(1)}}, lambda *_: None)
{end}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert (done.returncode, done.stderr) == (3 if "SystemExit" in end else 0, "")


def test_a_callback_that_raises_is_told_of(session, capsys):
    told = []
    before, threading.excepthook = threading.excepthook, lambda args: told.append(args.exc_value)
    try:
        with batching.DynamicBatcher(session) as batcher:
            batcher.submit_with_callback({"x": row(1)}, lambda *_: 1 / 0)
            batcher.flush()
            assert batcher.infer({"x": row(2)})["y"][0, 0] == 4
    finally:
        threading.excepthook = before
    assert [type(fault) for fault in told] == [ZeroDivisionError]


def test_handlers_of_the_program_run_before_the_package_ends():
    program = """
import atexit, threading, pyflame_rt
def last():
    over = threading.Event()
    session.run_async(None, {"x": own.row(2)}, lambda results, *_: (print(results[0][0, 0]), over.set()))
    over.wait(20)
    print(batcher.infer({"x": own.row(3)})["y"][0, 0])
atexit.register(last)
import test_requests as own
session = own.scaled_session()
batcher = pyflame_rt.batching.DynamicBatcher(session)
batcher.start()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert (done.returncode, done.stdout, done.stderr) == (0, "4.0\n6.0\n", "")

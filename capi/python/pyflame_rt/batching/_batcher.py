# SPDX-License-Identifier: Apache-2.0
"""Batchers and their settings."""
from __future__ import annotations

import ctypes
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from .._core import abi, library as lib
from .._core.errors import InvalidArgumentError
from .._session.feeding import FeedingSession
from .._session.requests import RequestFuture, Requests, Response, fill_options

# Called with (request_id, success, outputs by name, error text).
Callback = Callable[[int, bool, Dict[str, Any], str], Any]


@dataclass
class BatchConfig:
    """Settings of a batcher."""

    max_batch_size: int = 32  # rows that a shared run has at most
    max_latency_us: int = 1000  # that a request waits for others at most, where a run is to spare and waiting pays
    min_batch_size: int = 1  # rows that are waited for, within max_latency_us
    preferred_sizes: List[int] = field(default_factory=lambda: [1, 2, 4, 8, 16, 32])  # sizes that batches have
    enable_padding: bool = True  # batches of other sizes are filled up to a preferred one; results stay the same
    num_workers: int = 4  # threads that run batches and give answers; 0 = the number of processors
    queue_capacity: int = 1000  # requests that may wait; one more raises BusyError
    queue_timeout_ms: int = 5000  # a request that has waited longer fails with TimeoutError; 0 = never

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dataclass_fields__:
            raise AttributeError(f"BatchConfig has no '{name}'; it has " + ", ".join(self.__dataclass_fields__))
        super().__setattr__(name, value)


@dataclass
class BatcherStats:
    """Counts of a batcher since it was made, or since ``reset_stats``."""

    total_requests: int  # that were taken
    completed_requests: int  # answered with success
    failed_requests: int  # whose run failed
    cancelled_requests: int  # by their caller, or by ``stop``
    expired_requests: int  # whose time was over
    dropped_requests: int  # refused, as the queue was full
    total_batches: int  # runs
    avg_batch_size: float  # rows of requests in a run
    padded_rows: int  # that were added to fill batches up
    avg_latency_us: float  # of completed requests, from submit to their answer
    throughput_rps: float  # completed requests a second since the start
    queue_depth: int  # requests that wait now
    unbatched_reason: str  # why requests do not share runs; "" where they do


def _receiver(callback: Callback) -> Callable[[Response], Any]:
    if not callable(callback):
        raise InvalidArgumentError(f"the callback is {callback!r}, which cannot be called; give a function of "
                                   "(request_id, success, outputs, error)")

    def receive(response: Response) -> None:
        fault = response.fault
        callback(response.request_id, fault is None, response.outputs, "" if fault is None else str(fault))
    return receive


def _settle(future: RequestFuture, response: Response) -> None:
    if response.fault is None:
        future.set_result(response.outputs)
    else:
        future.set_exception(response.fault)


class DynamicBatcher:
    """Runs requests of many threads together. Any thread may call it. Outputs are dicts of arrays by name.

    Every call that submits takes ``output_names`` (None = all) and ``timeout_ms``, after which the request fails with
    TimeoutError. It raises BusyError where the queue is full, and CancelledError after ``stop``. Inputs must not be
    written to until the request is answered.
    """

    _BY_PRIORITY = False

    def __init__(self, session: FeedingSession, config: Optional[BatchConfig] = None) -> None:
        self._config = BatchConfig() if config is None else config
        if not isinstance(self._config, BatchConfig):
            raise InvalidArgumentError(f"{type(self).__name__} takes a BatchConfig, got {type(config).__name__}")
        options = fill_options(abi.OPTIONS_BATCHER, {**asdict(self._config), "by_priority": self._BY_PRIORITY})
        self._requests = Requests(type(self).__name__, lib.batcher, session, options)

    def start(self) -> None:
        """Starts the threads. Requests that came before wait for it."""
        self._requests.start()

    def stop(self) -> None:
        """Ends the threads. Runs under way end as they would; requests that wait fail with CancelledError."""
        self._requests.stop()

    def __enter__(self) -> "DynamicBatcher":
        self.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop()

    def submit(self, inputs: Mapping[str, Any], *, output_names: Optional[Sequence[str]] = None,
               timeout_ms: int = 0) -> RequestFuture:
        """Submits a request. Its future gives the outputs; it may be awaited in a coroutine, and cancelled."""
        return self._requests.future(inputs, self._requests.desc(output_names, 0, timeout_ms, 0), _settle)

    def submit_batch(self, requests: Sequence[Mapping[str, Any]]) -> List[RequestFuture]:
        """Submits several requests."""
        return [self.submit(inputs) for inputs in requests]

    def submit_with_callback(self, inputs: Mapping[str, Any], callback: Callback, *,
                             output_names: Optional[Sequence[str]] = None, timeout_ms: int = 0) -> int:
        """Submits a request and returns its number; ``callback(request_id, success, outputs, error)`` is called once, on
        a thread of the batcher's, which meanwhile runs nothing else."""
        return self._requests.submit(inputs, _receiver(callback),
                                     self._requests.desc(output_names, 0, timeout_ms, 0))

    def infer(self, inputs: Mapping[str, Any], *, output_names: Optional[Sequence[str]] = None,
              timeout_ms: int = 0) -> Dict[str, Any]:
        """Submits a request and waits for its outputs. Where nothing else is there, the calling thread runs it."""
        return self._requests.infer(inputs, self._requests.desc(output_names, 0, timeout_ms, 0))

    def cancel(self, request_id: int) -> None:
        """Ends a request with CancelledError; NotFoundError where it is answered already."""
        if request_id == 0:
            raise InvalidArgumentError("request 0 was never submitted; cancel_all ends all requests")
        self._requests.cancel(request_id)

    def cancel_all(self) -> None:
        """Ends every request that is not answered."""
        self._requests.cancel(0)

    def flush(self) -> None:
        """Waits until every request that was submitted before is answered."""
        lib.check(lib.batcher.flush(self._requests.handle))

    def queue_size(self) -> int:
        """The number of requests that wait."""
        return self.get_stats().queue_depth

    def get_stats(self) -> BatcherStats:
        """The counts so far."""
        out = abi.BatcherStatistics(struct_size=ctypes.sizeof(abi.BatcherStatistics))
        lib.check(lib.batcher.statistics(self._requests.handle, ctypes.byref(out)))
        return BatcherStats(
            out.submitted, out.completed, out.failed, out.cancelled, out.late, out.refused, out.batches,
            out.rows / out.batches if out.batches else 0.0, out.padded_rows,
            out.latency_ns / out.completed / 1e3 if out.completed else 0.0,
            out.completed / out.seconds if out.seconds else 0.0, out.queued, lib.read(out.unshared))

    def reset_stats(self) -> None:
        """Sets the counts to zero."""
        lib.check(lib.batcher.reset_statistics(self._requests.handle))

    def batch_times_us(self) -> Dict[int, float]:
        """How long runs take by their rows, in microseconds, as it was measured while they happened."""
        count = ctypes.c_size_t()
        lib.check(lib.batcher.times(self._requests.handle, None, 0, ctypes.byref(count)))
        times = (abi.BatchTime * max(count.value, 1))()
        for each in times:
            each.struct_size = ctypes.sizeof(abi.BatchTime)
        lib.check(lib.batcher.times(self._requests.handle, times, count.value, ctypes.byref(count)))
        return {each.rows: each.ns / 1e3 for each in times[:count.value] if each.runs}


class PriorityBatcher(DynamicBatcher):
    """A batcher whose requests of higher priority go first. Each step of priority counts as 10 ms of waiting, so that
    the others go too."""

    _BY_PRIORITY = True

    def submit_priority(self, inputs: Mapping[str, Any], priority: int, *,
                        output_names: Optional[Sequence[str]] = None, timeout_ms: int = 0) -> RequestFuture:
        """Submits a request of ``priority``, 0 or more; ``submit`` gives 0."""
        return self._requests.future(inputs, self._requests.desc(output_names, priority, timeout_ms, 0), _settle)

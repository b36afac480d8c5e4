# SPDX-License-Identifier: Apache-2.0
"""Asynchronous sessions and their settings."""
from __future__ import annotations

import ctypes
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from .._core import abi, library as lib
from .._core.errors import InvalidArgumentError
from .._session.feeding import FeedingSession
from .._session.requests import RequestFuture, Requests, Response, fill_options

# Called with (request_id, success, outputs by name, error text).
Callback = Callable[[int, bool, Dict[str, Any], str], Any]


@dataclass
class AsyncOptions:
    """Settings of an asynchronous session."""

    num_streams: int = 4  # queues, each with a thread that runs its requests
    enable_pipelining: bool = True  # runs of different streams overlap; False = one run at a time
    callback_threads: int = 2  # threads that give answers; 0 = the stream's own gives them
    max_pending: int = 100  # requests that may be unanswered; one more raises BusyError
    enable_profiling: bool = True  # results and statistics have the times in the queue and of the run

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dataclass_fields__:
            raise AttributeError(f"AsyncOptions has no '{name}'; it has " + ", ".join(self.__dataclass_fields__))
        super().__setattr__(name, value)


@dataclass
class AsyncResult:
    """What became of a request."""

    success: bool  # whether the run succeeded
    outputs: Dict[str, Any]  # arrays by name; empty after a failure
    request_id: int  # its number
    stream_id: int  # the stream that ran it
    error_message: str  # "" after success
    latency_us: float  # from the call to the answer
    queue_time_us: float  # of these, until the run began; 0 without enable_profiling
    compute_time_us: float  # of the run; 0 without enable_profiling

    def get_outputs(self) -> Dict[str, Any]:
        """The outputs, arrays by name."""
        return self.outputs


@dataclass
class AsyncStats:
    """Counts since the session was made, or since ``reset_stats``."""

    total_requests: int  # that were taken
    completed_requests: int  # answered with success
    failed_requests: int  # whose run failed, or whose time was over
    cancelled_requests: int  # by their caller, or by ``stop``
    dropped_requests: int  # refused, as max_pending were not answered
    pending_requests: int  # now
    avg_latency_us: float  # of completed requests
    avg_queue_time_us: float  # of that, until the run began
    avg_compute_time_us: float  # of that, in the run
    throughput_rps: float  # completed requests a second since the start
    stream_utilization: List[float]  # the share of the time that each stream has run


def _result(response: Response) -> AsyncResult:
    fault = response.fault
    return AsyncResult(fault is None, response.outputs, response.request_id, response.stream_id,
                       "" if fault is None else str(fault), response.latency_us, response.queued_us, response.ran_us)


class AsyncSession:
    """Streams of runs of one session. Any thread may call it. Outputs are dicts of arrays by name.

    Calls that start a run take ``output_names`` (None = all), ``timeout_ms``, after which it fails, and ``priority``:
    in its stream a higher one goes first, where each step counts as 10 ms of waiting. They raise BusyError where
    max_pending requests are not answered, and CancelledError after ``stop``. Inputs must not be written to until then.
    """

    def __init__(self, session: FeedingSession, options: Optional[AsyncOptions] = None) -> None:
        self._options = AsyncOptions() if options is None else options
        if not isinstance(self._options, AsyncOptions):
            raise InvalidArgumentError(f"AsyncSession takes AsyncOptions, got {type(options).__name__}")
        self._requests = Requests("AsyncSession", lib.streams, session,
                                  fill_options(abi.OPTIONS_STREAMS, asdict(self._options)))

    def start(self) -> None:
        """Starts the threads. Requests that came before wait for it."""
        self._requests.start()

    def stop(self) -> None:
        """Ends the threads. Runs under way end as they would; requests that wait fail as cancelled."""
        self._requests.stop()

    def __enter__(self) -> "AsyncSession":
        self.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop()

    def _future(self, inputs: Mapping[str, Any], desc: Any) -> RequestFuture:
        return self._requests.future(inputs, desc, lambda future, response: future.set_result(_result(response)))

    def run_async(self, inputs: Mapping[str, Any], *, output_names: Optional[Sequence[str]] = None, timeout_ms: int = 0,
                  priority: int = 0) -> RequestFuture:
        """Starts a run on the least busy stream. Its future gives an AsyncResult, after a failure too; it may be awaited
        in a coroutine, and cancelled, whether the run waits or is under way."""
        return self._future(inputs, self._requests.desc(output_names, priority, timeout_ms, 0))

    def run_on_stream(self, stream: int, inputs: Mapping[str, Any], *, output_names: Optional[Sequence[str]] = None,
                      timeout_ms: int = 0, priority: int = 0) -> RequestFuture:
        """Starts a run on stream |stream|, from 0 on."""
        return self._future(inputs, self._requests.desc(output_names, priority, timeout_ms, self._stream(stream)))

    def run_async_callback(self, inputs: Mapping[str, Any], callback: Callback, *,
                           output_names: Optional[Sequence[str]] = None, timeout_ms: int = 0, priority: int = 0) -> int:
        """Starts a run and returns its number; ``callback(request_id, success, outputs, error)`` is called once, on one
        of the callback threads. After success ``outputs`` also has the latency in microseconds as "latency", where the
        model has no output of that name."""
        if not callable(callback):
            raise InvalidArgumentError(f"the callback is {callback!r}, which cannot be called; give a function of "
                                       "(request_id, success, outputs, error)")

        def receive(response: Response) -> None:
            result = _result(response)
            outputs = {"latency": result.latency_us, **result.outputs} if result.success else {}
            callback(result.request_id, result.success, outputs, result.error_message)

        return self._requests.submit(inputs, receive, self._requests.desc(output_names, priority, timeout_ms, 0))

    def _stream(self, stream: int) -> int:
        if isinstance(stream, bool) or not isinstance(stream, int) or not 0 <= stream < self.num_streams():
            raise InvalidArgumentError(f"stream {stream!r}: there are {self.num_streams()}, from 0 on")
        return stream + 1

    def num_streams(self) -> int:
        """The number of streams."""
        return int(lib.streams.count(self._requests.handle))

    def select_stream(self) -> int:
        """The stream with the fewest requests that are not answered."""
        return int(lib.streams.select(self._requests.handle))

    def synchronize(self, stream: int) -> None:
        """Waits until what a stream was given before is answered."""
        lib.check(lib.streams.synchronize(self._requests.handle, self._stream(stream)))

    def synchronize_all(self) -> None:
        """Waits until what every stream was given before is answered."""
        lib.check(lib.streams.synchronize(self._requests.handle, 0))

    def cancel(self, request_id: int) -> None:
        """Ends a request, whether it waits or runs; NotFoundError where it is answered already."""
        if request_id == 0:
            raise InvalidArgumentError("request 0 was never submitted; cancel_all ends all requests")
        self._requests.cancel(request_id)

    def cancel_all(self) -> None:
        """Ends every request that is not answered."""
        self._requests.cancel(0)

    def get_stats(self) -> AsyncStats:
        """The counts so far."""
        out = abi.StreamsStatistics(struct_size=ctypes.sizeof(abi.StreamsStatistics))
        lib.check(lib.streams.statistics(self._requests.handle, ctypes.byref(out)))
        shares = (ctypes.c_double * self.num_streams())()
        lib.check(lib.streams.utilization(self._requests.handle, shares, len(shares)))
        done = out.completed or 1
        return AsyncStats(out.submitted, out.completed, out.failed + out.late, out.cancelled, out.refused, out.pending,
                          out.latency_ns / done / 1e3, out.queued_ns / done / 1e3, out.ran_ns / done / 1e3,
                          out.completed / out.seconds if out.seconds else 0.0, list(shares))

    def reset_stats(self) -> None:
        """Sets the counts to zero."""
        lib.check(lib.streams.reset_statistics(self._requests.handle))

# SPDX-License-Identifier: Apache-2.0
"""Measurement of the time that runs of a model take."""
from __future__ import annotations

import time
from typing import Any, Dict, Mapping, Optional, Union

import numpy as np

from .._core.errors import InvalidArgumentError
from .._graph.graph import Graph
from .._graph.source import ModelSource
from .run_options import GivenRunOptions, given_options
from .session import InferenceSession, Providers
from .session_options import SessionOptions


def _count(name: str, given: Any, least: int) -> int:
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < least:
        raise InvalidArgumentError(f"{name} is {given!r}; give a whole number, {least} at least")
    return int(given)


class Benchmark:
    """Times runs of a model, one after another.

    >>> figures = Benchmark("model.onnx").benchmark(array)
    >>> print(f"{figures['p50'] * 1e3:.3f} ms")

    Parameters
    ----------
    model: what ``InferenceSession`` takes, or a session, for which options and providers are not given.
    options, providers: as ``InferenceSession`` takes them.

    The session is ``session``. An object is used by one thread at a time.
    """

    def __init__(self, model: Union[InferenceSession, ModelSource, Graph], options: Optional[SessionOptions] = None,
                 providers: Optional[Providers] = None) -> None:
        if isinstance(model, InferenceSession):
            if options is not None or providers is not None:
                raise InvalidArgumentError("a benchmark of a session has the options and providers of that; give none, "
                                           "or the model")
            self.session = model
        else:
            self.session = InferenceSession(model, options, providers)

    def benchmark(self, input_data: Any, num_runs: int = 100, warmup_runs: int = 10,
                  run_options: GivenRunOptions = None) -> Dict[str, float]:
        """Runs the model ``warmup_runs`` times, then ``num_runs`` times with a clock.

        Parameters
        ----------
        input_data: the model's input, where it has one; else a dict of all by name.
        num_runs: 1 at least.
        warmup_runs: 0 at least; the first run of new shapes also plans them.
        run_options: of each run.

        Returns seconds of a run: ``mean``, ``std`` (of all runs, not estimated of more), ``min``, ``max``, and the
        quantiles ``p50`` and ``p99``, which lie between two runs where they have to. Raises InvalidArgumentError for
        numbers of runs, and what ``InferenceSession.run`` does.
        """
        num_runs, warmup_runs = _count("num_runs", num_runs, 1), _count("warmup_runs", warmup_runs, 0)
        feeds: Mapping[str, Any] = input_data if isinstance(input_data, Mapping) else self._feeds(input_data)
        options = given_options(run_options)
        for _ in range(warmup_runs):
            self.session.run(None, feeds, options)
        taken = np.empty(num_runs, np.float64)
        for i in range(num_runs):
            start = time.perf_counter_ns()
            self.session.run(None, feeds, options)
            taken[i] = (time.perf_counter_ns() - start) / 1e9
        return {"mean": float(taken.mean()), "std": float(taken.std()), "min": float(taken.min()),
                "max": float(taken.max()), "p50": float(np.quantile(taken, 0.5)),
                "p99": float(np.quantile(taken, 0.99))}

    def _feeds(self, input_data: Any) -> Dict[str, Any]:
        names = [arg.name for arg in self.session.get_inputs()]
        if len(names) != 1:
            raise InvalidArgumentError(f"the model has {len(names)} inputs; give a dict of them by name: "
                                       + (", ".join(map(repr, names)) or "an empty one"))
        return {names[0]: input_data}

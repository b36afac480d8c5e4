# SPDX-License-Identifier: Apache-2.0
"""Finds how the kernel of one operator divides its work best, through a session of that operator alone."""
from __future__ import annotations

import os
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from .._core.errors import InvalidArgumentError
from .._graph.graph import Graph
from .._session.benchmark import Benchmark
from .._session.session import InferenceSession
from .._session.session_options import SessionOptions, TuneSearch
from .._values.dtype import DType, dtype_of
from .._values.tensor import Tensor

_WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")


@dataclass
class OpKernelInfo:
    """An operator, as it stands in a model.

    op_type: "Conv"; of the domain ai.onnx where ``domain`` is empty.
    attributes: as the standard has them; those that are missing have its defaults.
    dtypes: of its inputs; the last one counts for those that follow, none means float32.
    constant_inputs: inputs, by position, that are constants, as weights are. None = all but the first of Conv,
        ConvTranspose, Gemm and MatMul, none of others.
    opset: of the domain; 0 = the newest.
    epilogue: operators of one input that follow, as "Relu" does: kernels do their work on the way, and such a step is
        another one.
    """

    op_type: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""
    dtypes: Sequence[Any] = ()
    constant_inputs: Optional[Sequence[int]] = None
    opset: int = 0
    epilogue: Sequence[str] = ()


@dataclass
class KernelConfig:
    """A kernel, and how it divides its work.

    int_params: by the kernel's own names, as "band" and "positions"; empty where it has nothing to choose.
    float_params: likewise; the kernels of today have none.
    kernel_name: as the provider names it, with what it does on the way: "conv_direct+relu".
    performance_score: 1 / mean microseconds of a run; higher is better.
    gain: the default's time by that of these parameters, where they were measured; 1 = they are the default.
    measured: forms that were measured; 0 = it was known, or there is nothing to choose.
    note: what became of it: "tuned: band 14 -> 28, 6 % faster (remembered)", or why it was not tuned.
    """

    int_params: Dict[str, int] = field(default_factory=dict)
    float_params: Dict[str, float] = field(default_factory=dict)
    kernel_name: str = ""
    performance_score: float = 0.0
    gain: float = 1.0
    measured: int = 0
    note: str = ""


class AutoTuner:
    """Finds kernel configurations. Calls on several threads disturb each other's measurements.

    Attributes, which are also the keywords of a new object
    ----------
    search: "model" measures ten forms that are usually worth it, then those of many more of which a Gaussian process of
        the times expects the largest improvement; "random" ten and then some at random; or "race", the usual ones.
    budget_s: seconds that one call may measure for; 0 = 3.
    max_iterations: forms that are measured after the first ten, at most.
    benchmark_iterations: runs by which the score is measured.
    form_runs: runs by which each form is; 0 = some milliseconds of them.
    cache_dir: where it is remembered; None = the folder of PFRT_CACHE_DIR or, where there is none, only for the process.
    session: what else a session of a model would have, as precision and threads.
    """

    def __init__(self, *, search: TuneSearch = "model", budget_s: float = 0.0, max_iterations: int = 30,
                 benchmark_iterations: int = 20, form_runs: int = 0,
                 cache_dir: "Union[str, os.PathLike[str], None]" = None, session: Optional[SessionOptions] = None) -> None:
        self.search: TuneSearch = search
        self.budget_s: float = budget_s
        self.max_iterations: int = max_iterations
        self.benchmark_iterations: int = benchmark_iterations
        self.form_runs: int = form_runs
        self.cache_dir: "Union[str, os.PathLike[str], None]" = cache_dir
        self.session: SessionOptions = session or SessionOptions()

    def tune_kernel(self, kernel_info: Union[OpKernelInfo, str], input_shapes: Sequence[Sequence[int]]) -> KernelConfig:
        """The best configuration of the operator's kernel for inputs of these shapes, measured now or before.

        kernel_info: the operator, or its name alone. One that has nothing to choose has its default, with the score.
        Raises InvalidArgumentError for options and dtypes that there are not, and what making a session of such a model
        and running it raise.
        """
        if self.benchmark_iterations < 1 or self.max_iterations < 0 or self.form_runs < 0:
            raise InvalidArgumentError(
                f"AutoTuner: benchmark_iterations is {self.benchmark_iterations}, max_iterations {self.max_iterations}, "
                f"form_runs {self.form_runs}; give 1, 0 and 0 at least")
        info = OpKernelInfo(kernel_info) if isinstance(kernel_info, str) else kernel_info
        graph, feed = _graph_of(info, input_shapes)
        session = InferenceSession(graph, self._session_options())
        times = Benchmark(session).benchmark(feed, num_runs=self.benchmark_iterations, warmup_runs=1)
        return _config_of(session.explain(), times["mean"])

    TuneKernel = tune_kernel

    def _session_options(self) -> SessionOptions:
        options = copy(self.session)
        options.tune = "on"
        options.tune_search = self.search
        options.tune_budget_s = float(self.budget_s)
        options.tune_iterations = self.max_iterations
        options.tune_repeats = self.form_runs
        if self.cache_dir is not None:
            options.cache_dir = self.cache_dir
        return options


def _made_up(shape: Sequence[int], dtype: DType, random: "np.random.Generator") -> Tensor:
    """Floats of magnitude 0.5 to 1, so that no sum of them is out of the ordinary; integers 0 and 1."""
    tensor = Tensor(shape, dtype)
    elements = tensor.memory()
    if dtype in (DType.Float32, DType.Float64, DType.Float16, DType.BFloat16):
        values = random.uniform(0.5, 1, elements.shape) * random.choice((-1.0, 1.0), elements.shape)
        bits = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        elements[...] = bits if dtype == DType.BFloat16 else values
    elif dtype == DType.String:
        raise InvalidArgumentError("AutoTuner: the operator takes strings, which no kernel is tuned for")
    else:
        elements[...] = random.integers(0, 2, elements.shape)
    return tensor


def _graph_of(info: OpKernelInfo, shapes: Sequence[Sequence[int]]) -> Tuple[Graph, Dict[str, Tensor]]:
    """A graph of the operator and of what follows it, and its inputs."""
    graph = Graph("tuning")
    feed: Dict[str, Tensor] = {}
    names: List[str] = []
    if info.opset > 0:
        graph.set_opset(info.domain, info.opset)
    weighted = not info.domain and info.op_type in _WEIGHTED
    constants = info.constant_inputs if info.constant_inputs is not None else range(weighted, len(shapes) * weighted)
    random = np.random.default_rng(7)
    for i, shape in enumerate(shapes):
        dtype = dtype_of(info.dtypes[min(i, len(info.dtypes) - 1)]) if info.dtypes else DType.Float32
        names.append(f"input{i}")
        tensor = _made_up(shape, dtype, random)
        if i in constants:
            graph.add_initializer(names[-1], tensor)
        else:
            graph.add_input(names[-1], list(shape), dtype)
            feed[names[-1]] = tensor
    graph.add_node("tuned", info.op_type, names, ["output"], attributes=dict(info.attributes), domain=info.domain)
    last = "output"
    for op in info.epilogue:
        graph.add_node("", op, [last], ["after_" + last])
        last = "after_" + last
    graph.add_output(last)
    return graph, feed


def _config_of(steps: List[Dict[str, Any]], mean_s: float) -> KernelConfig:
    """The configuration of the step that was tuned or, where there is none, of the one with the most work."""
    config = KernelConfig(performance_score=1e-6 / mean_s)
    if not steps:
        config.note = "the operator was computed beforehand: no step is left to tune"
        return config
    best = max(steps, key=lambda step: (step["tuning"] != "", step["flops"]))
    config.kernel_name = best["kernel"]
    config.note = next((part for part in best["reason"].split("; ") if "tuned: " in part),
                       "the kernel has nothing to choose")
    for name, text in (word.split("=") for word in best["tuning"].split()):
        number = float(text)
        if name == "gain":
            config.gain = number
        elif name == "measured":
            config.measured = int(number)
        elif number.is_integer():
            config.int_params[name] = int(number)
        else:
            config.float_params[name] = number
    return config

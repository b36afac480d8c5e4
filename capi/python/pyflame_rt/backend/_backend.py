# SPDX-License-Identifier: Apache-2.0
"""Execution of graphs by Python code of the program's own."""
from __future__ import annotations

import abc
from typing import Any, Dict, List, Sequence

from .._graph.graph import Graph
from .._values.tensor import Tensor


class Backend(abc.ABC):
    """A backend runs nodes. A registered one is a provider: sessions that name it give it the stretches of their graph
    that it supports, and what it does not support goes to the next provider of the list.

    >>> class Numpy(Backend):
    ...     name = "numpy"
    ...     def get_supported_ops(self):
    ...         return ["Relu"]
    ...     def execute(self, graph, input_feed, output_names=()):
    ...         ...
    >>> BackendRegistry.instance().register_backend(Numpy())
    >>> session = InferenceSession("model.onnx", providers=["numpy", "CPUExecutionProvider"])
    """

    # Sessions name it by this.
    name: str = ""

    @abc.abstractmethod
    def get_supported_ops(self) -> List[str]:
        """Operators of ONNX's domain, as of the newest opset."""

    def supports_op(self, op_type: str) -> bool:
        """Tells whether it runs the operator; it is asked when a session is made, on any thread."""
        return op_type in self.get_supported_ops()

    @abc.abstractmethod
    def execute(self, graph: Graph, input_feed: Dict[str, Tensor], output_names: Sequence[str] = ()) -> List[Any]:
        """Computes the values |output_names|, the graph's outputs, in that order: a Tensor or array for each.

        The graph holds supported operators alone, its constants as initializers, and is the same object each time: it
        is not to be edited. Tensors of |input_feed| are read-only and live during the call. One thread at a time calls
        it. What it raises fails the run, or lets the next provider take over where the session's ``fallback`` is on.
        """

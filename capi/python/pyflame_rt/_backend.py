# SPDX-License-Identifier: Apache-2.0
"""Execution of graphs by Python code of the program's own."""
from __future__ import annotations

import abc
import ctypes
import threading
from typing import Any, Dict, List, Optional, Sequence

from . import _abi, _backend_calls as calls, _callbacks, _exit, _library as lib
from ._errors import InvalidArgumentError
from ._graph import Graph
from ._tensor import Tensor


class Backend(abc.ABC):
    """What runs nodes. A registered one is a provider: sessions that name it give it the stretches of their graph that
    it supports, and what it does not support goes to the next provider of the list.

    >>> class Numpy(Backend):
    ...     name = "numpy"
    ...     def get_supported_ops(self):
    ...         return ["Relu"]
    ...     def execute(self, graph, input_feed, output_names=()):
    ...         ...
    >>> BackendRegistry.instance().register_backend(Numpy())
    >>> session = InferenceSession("model.onnx", providers=["numpy", "CPUExecutionProvider"])
    """

    # What sessions name it by.
    name: str = ""

    @abc.abstractmethod
    def get_supported_ops(self) -> List[str]:
        """Operators of ONNX's domain, as of the newest opset."""

    def supports_op(self, op_type: str) -> bool:
        """Whether it runs the operator; asked when a session is made, on any thread."""
        return op_type in self.get_supported_ops()

    @abc.abstractmethod
    def execute(self, graph: Graph, input_feed: Dict[str, Tensor], output_names: Sequence[str] = ()) -> List[Any]:
        """Computes the values |output_names|, the graph's outputs, in that order: a Tensor or array for each.

        The graph holds supported operators alone, its constants as initializers, and is the same object each time: it
        is not to be edited. Tensors of |input_feed| are read-only and live during the call. One thread at a time calls
        it. What it raises fails the run, or lets the next provider take over where the session's ``fallback`` is on.
        """


class BackendRegistry:
    """The backends of the process, by name."""

    _the: Optional["BackendRegistry"] = None
    _lock = threading.Lock()

    def __init__(self) -> None:
        self._backends: Dict[str, Backend] = {}

    @classmethod
    def instance(cls) -> "BackendRegistry":
        """The one of the process."""
        with cls._lock:
            if cls._the is None:
                cls._the = cls()
            return cls._the

    def register_backend(self, backend: Backend) -> None:
        """Sessions may name it from now on; it is kept until the process ends.

        InvalidArgumentError when it has no name, or that of another provider.
        """
        if not isinstance(backend, Backend):
            raise InvalidArgumentError(f"register_backend: {backend!r} is no Backend; derive its class from Backend")
        name = backend.name
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError(f"register_backend: the name of {backend!r} is {name!r}; give it a text")
        with self._lock:
            if name in self._backends:
                raise InvalidArgumentError(f"register_backend: the name '{name}' is taken by {self._backends[name]!r}, "
                                           "which was registered before")
            _exit.count_calls()
            source = calls.Source(name, backend)
            struct = _abi.ClientProvider(
                struct_size=ctypes.sizeof(_abi.ClientProvider), abi=_abi.ABI_VERSION, name=lib.text(name),
                table=ctypes.addressof(source.table), open=calls.OPEN, release=_callbacks.RELEASE,
                user=_callbacks.hold(source))
            lib.check(lib.env.register_provider(lib.default_env().address, ctypes.byref(struct)))
            self._backends[name] = backend

    def get(self, name: str) -> Optional[Backend]:
        """None when there is none."""
        with self._lock:
            return self._backends.get(name)

    def has(self, name: str) -> bool:
        """Whether one of this name is registered."""
        return self.get(name) is not None

    def list(self) -> List[str]:
        """Names, sorted."""
        with self._lock:
            return sorted(self._backends)

    def __repr__(self) -> str:
        return f"BackendRegistry({', '.join(self.list())})"

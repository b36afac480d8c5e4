# SPDX-License-Identifier: Apache-2.0
"""PyFlameRT: loads a model, optimises its graph and runs it on the execution providers there are.

>>> session = pyflame_rt.InferenceSession("model.onnx")
>>> outputs = session.run(None, {"input": array})
"""
import importlib
from typing import TYPE_CHECKING, Any

from ._core.absent import absent_modules
from ._core.errors import (BackendError, BusyError, CancelledError, DataError, DTypeMismatchError, InputError,
                           InvalidArgumentError, InvalidModelError, ModelNotFoundError, NotFoundError,
                           OutOfMemoryError, PyFlameRTError, ShapeMismatchError, TimeoutError, UnsupportedError,
                           UnsupportedFormatError, UnsupportedOperatorError, ValidationError)
from ._core.library import version as _version

if TYPE_CHECKING:  # the same names as in _LATER
    from . import backend, batching, cache, custom, import_module, memory, opt, partition, streaming, tuning
    from ._core.options import OptLevel
    from ._graph.attributes import TypeText
    from ._graph.files import load_model, save_model
    from ._graph.graph import Graph
    from ._graph.model_info import ImportStats, ModelMetadata
    from ._graph.node import Node
    from ._graph.source import ModelSource
    from ._graph.weights import Weights
    from ._session.ask import Answer
    from ._session.benchmark import Benchmark
    from ._session.binding import IOBinding
    from ._session.environment import Environment, KernelInfo, OperatorInfo, PluginInfo, ProviderInfo, ProviderOption
    from ._session.memory_report import MemoryReport
    from ._session.ort_value import OrtValue
    from ._session.providers import ProviderState, get_available_providers
    from ._session.run_options import RunOptions
    from ._session.service import Service
    from ._session.session import InferenceSession
    from ._session.session_options import SessionOptions
    from ._session.state import State
    from ._values.dtype import DType, dtype_from_name, dtype_name, dtype_size
    from ._values.info import NodeArg, TensorInfo, is_dynamic_shape, shape_num_elements, shape_to_string
    from ._values.memory import SparseTensor
    from ._values.tensor import Tensor, from_dlpack, from_numpy, to_numpy
    from .backend import Backend, BackendRegistry
    from .import_module import ImportOptions, ImportResult

__version__: str = _version

__all__ = [
    "Answer", "Backend", "BackendError", "BackendRegistry", "Benchmark", "BusyError", "CancelledError", "DType",
    "DTypeMismatchError", "DataError", "Environment", "Graph", "IOBinding", "ImportOptions", "ImportResult",
    "ImportStats", "InferenceSession", "InputError", "InvalidArgumentError", "InvalidModelError", "KernelInfo",
    "MemoryReport", "ModelMetadata", "ModelNotFoundError", "Node", "NodeArg", "NotFoundError", "OperatorInfo",
    "OptLevel", "OrtValue", "OutOfMemoryError", "PluginInfo", "ProviderInfo", "ProviderOption", "ProviderState",
    "PyFlameRTError", "RunOptions", "Service", "SessionOptions", "ShapeMismatchError", "SparseTensor", "State",
    "Tensor", "TensorInfo", "TimeoutError", "TypeText", "UnsupportedError", "UnsupportedFormatError",
    "UnsupportedOperatorError", "ValidationError", "Weights", "backend", "batching", "cache", "custom",
    "dtype_from_name", "dtype_name", "dtype_size", "from_dlpack", "from_numpy", "from_onnx", "get_available_providers", "import_module",
    "is_dynamic_shape", "load_model", "memory", "opt", "partition", "save_model", "shape_num_elements",
    "shape_to_string", "streaming", "to_numpy", "tuning",
]

# Modules that are loaded when they are first asked for, and names that come from modules which are loaded then.
_MODULES = frozenset(("backend", "batching", "cache", "custom", "import_module", "memory", "opt", "partition",
                      "streaming", "tuning"))
_LATER = {name: module for module, names in (
    ("_core.options", "OptLevel"),
    ("_graph.attributes", "TypeText"),
    ("_graph.files", "load_model save_model"),
    ("_graph.graph", "Graph"),
    ("_graph.model_info", "ImportStats ModelMetadata"),
    ("_graph.node", "Node"),
    ("_graph.source", "ModelSource"),
    ("_graph.weights", "Weights"),
    ("_session.ask", "Answer"),
    ("_session.benchmark", "Benchmark"),
    ("_session.binding", "IOBinding"),
    ("_session.environment", "Environment KernelInfo OperatorInfo PluginInfo ProviderInfo ProviderOption"),
    ("_session.memory_report", "MemoryReport"),
    ("_session.ort_value", "OrtValue"),
    ("_session.providers", "ProviderState get_available_providers"),
    ("_session.run_options", "RunOptions"),
    ("_session.service", "Service"),
    ("_session.session", "InferenceSession"),
    ("_session.session_options", "SessionOptions"),
    ("_session.state", "State"),
    ("_values.dtype", "DType dtype_from_name dtype_name dtype_size"),
    ("_values.info", "NodeArg TensorInfo is_dynamic_shape shape_num_elements shape_to_string"),
    ("_values.memory", "SparseTensor"),
    ("_values.tensor", "Tensor from_dlpack from_numpy to_numpy"),
    ("backend", "Backend BackendRegistry"),
    ("import_module", "ImportOptions ImportResult"),
) for name in names.split()}

globals().update(absent_modules(__name__))


if not TYPE_CHECKING:  # it would let type checkers take any name

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return importlib.import_module("." + name, __name__)
        if name in _LATER:
            value = globals()[name] = getattr(importlib.import_module("." + _LATER[name], __name__), name)
            return value
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> "list[str]":
    return sorted({*globals(), *_MODULES, *_LATER})


def from_onnx(path: "ModelSource", options: "SessionOptions | None" = None) -> "InferenceSession":
    """A session of an ONNX file."""
    from ._session.session import InferenceSession as Session
    return Session(path, options)

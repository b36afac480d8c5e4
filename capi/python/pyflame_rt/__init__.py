# SPDX-License-Identifier: Apache-2.0
"""PyFlameRT: loads a model, optimises its graph and runs it on the execution providers there are.

>>> session = pyflame_rt.InferenceSession("model.onnx")
>>> outputs = session.run(None, {"input": array})
"""
from . import _library, cache, custom, import_module, memory, opt, partition, tuning
from ._ask import Answer
from ._attrs import TypeText
from ._backend import Backend, BackendRegistry
from ._benchmark import Benchmark
from ._binding import IOBinding
from ._dtype import DType, dtype_from_name, dtype_name, dtype_size
from ._environment import Environment, KernelInfo, OperatorInfo, PluginInfo, ProviderInfo, ProviderOption
from ._errors import (BackendError, BusyError, CancelledError, DataError, DTypeMismatchError, InputError, InvalidArgumentError,
                      InvalidModelError, ModelNotFoundError, NotFoundError, OutOfMemoryError, PyFlameRTError,
                      ShapeMismatchError, TimeoutError, UnsupportedError, UnsupportedFormatError,
                      UnsupportedOperatorError, ValidationError)
from ._graph import Graph
from ._info import ModelMetadata, NodeArg, TensorInfo, is_dynamic_shape, shape_num_elements, shape_to_string
from ._memory_report import MemoryReport
from ._model import ImportStats, ModelSource, load_model, save_model
from ._node import Node
from ._options import OptLevel, RunOptions, SessionOptions
from ._ort_value import OrtValue
from ._providers import ProviderState, get_available_providers
from ._service import Service
from ._session import InferenceSession
from ._state import State
from ._tensor import Tensor, from_dlpack, from_numpy, to_numpy
from ._values import SparseTensor
from .import_module import ImportOptions, ImportResult

__version__: str = _library.version

__all__ = [
    "Answer", "Backend", "BackendError", "BackendRegistry", "Benchmark", "BusyError", "CancelledError", "DType",
    "DTypeMismatchError", "DataError", "Environment", "Graph", "IOBinding", "ImportOptions", "ImportResult",
    "ImportStats", "InferenceSession", "InputError", "InvalidArgumentError", "InvalidModelError", "KernelInfo",
    "MemoryReport", "ModelMetadata", "ModelNotFoundError", "Node", "NodeArg", "NotFoundError", "OperatorInfo", "OptLevel", "OrtValue",
    "OutOfMemoryError", "PluginInfo", "ProviderInfo", "ProviderOption", "ProviderState", "PyFlameRTError", "RunOptions",
    "Service", "SessionOptions", "ShapeMismatchError", "SparseTensor", "State", "Tensor", "TensorInfo", "TimeoutError",
    "TypeText", "UnsupportedError", "UnsupportedFormatError", "UnsupportedOperatorError", "ValidationError", "cache", "custom",
    "dtype_from_name", "dtype_name", "dtype_size", "from_dlpack", "from_numpy", "from_onnx", "get_available_providers",
    "import_module", "is_dynamic_shape", "load_model", "memory", "opt", "partition", "save_model", "shape_num_elements",
    "shape_to_string", "to_numpy", "tuning",
]


def from_onnx(path: ModelSource, options: "SessionOptions | None" = None) -> InferenceSession:
    """A session of an ONNX file."""
    return InferenceSession(path, options)

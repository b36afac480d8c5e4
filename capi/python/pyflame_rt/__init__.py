# SPDX-License-Identifier: Apache-2.0
"""PyFlameRT: loads a model, optimises its graph and runs it on the execution providers there are.

>>> session = pyflame_rt.InferenceSession("model.onnx")
>>> outputs = session.run(None, {"input": array})
"""
from . import _library, custom, import_module, opt
from ._attrs import TypeText
from ._binding import IOBinding
from ._dtype import DType
from ._errors import (BackendError, CancelledError, DataError, DTypeMismatchError, InputError, InvalidArgumentError,
                      InvalidModelError, ModelNotFoundError, NotFoundError, OutOfMemoryError, PyFlameRTError,
                      ShapeMismatchError, TimeoutError, UnsupportedError, UnsupportedFormatError,
                      UnsupportedOperatorError, ValidationError)
from ._graph import Graph
from ._info import ModelMetadata, NodeArg, TensorInfo
from ._model import ImportStats, ModelSource, load_model, save_model
from ._node import Node
from ._options import OptLevel, RunOptions, SessionOptions
from ._ort_value import OrtValue
from ._providers import get_available_providers
from ._session import InferenceSession
from ._tensor import Tensor, from_dlpack, from_numpy, to_numpy
from ._values import SparseTensor
from .import_module import ImportOptions, ImportResult

__version__: str = _library.version

__all__ = [
    "BackendError", "CancelledError", "DType", "DTypeMismatchError", "DataError", "Graph", "IOBinding", "ImportOptions",
    "ImportResult", "ImportStats", "InferenceSession", "InputError", "InvalidArgumentError", "InvalidModelError",
    "ModelMetadata", "ModelNotFoundError", "Node", "NodeArg", "NotFoundError", "OptLevel", "OrtValue",
    "OutOfMemoryError", "PyFlameRTError", "RunOptions", "SessionOptions", "ShapeMismatchError", "SparseTensor",
    "Tensor", "TensorInfo", "TimeoutError", "TypeText", "UnsupportedError", "UnsupportedFormatError",
    "UnsupportedOperatorError", "ValidationError", "custom", "from_dlpack", "from_numpy", "from_onnx",
    "get_available_providers", "import_module", "load_model", "opt", "save_model", "to_numpy",
]


def from_onnx(path: ModelSource, options: "SessionOptions | None" = None) -> InferenceSession:
    """A session of an ONNX file."""
    return InferenceSession(path, options)

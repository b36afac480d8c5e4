# SPDX-License-Identifier: Apache-2.0
"""The exceptions, and classes that are imported from here."""
# Names are full: a program that puts the package into sys.modules as 'onnxruntime' gets the same classes.
from pyflame_rt._graph.model_info import ModelMetadata
from pyflame_rt._session.providers import get_available_providers
from pyflame_rt.onnxruntime._adapters import LoraAdapter
from pyflame_rt.onnxruntime._environment import (disable_telemetry_events, enable_telemetry_events, get_all_providers,
                                                 get_build_info, get_device, get_version_string,
                                                 set_default_logger_callback, set_default_logger_severity,
                                                 set_default_logger_verbosity, set_seed)
from pyflame_rt.onnxruntime._exceptions import (EngineError, EPFail, Fail, InvalidArgument, InvalidGraph,
                                                InvalidProtobuf, ModelLoadCanceled, ModelLoaded,
                                                ModelRequiresCompilation, NoModel, NoSuchFile, NotFound,
                                                NotImplemented, RuntimeException)
from pyflame_rt.onnxruntime._memory import (OrtAllocatorType, OrtArenaCfg, OrtDeviceMemoryType, OrtMemoryInfo,
                                            OrtMemoryInfoDeviceType, OrtMemType, create_and_register_allocator)
from pyflame_rt.onnxruntime._options import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions,
                                             SessionOptions)
from pyflame_rt.onnxruntime._session import InferenceSession, NodeArg
from pyflame_rt.onnxruntime._values import (IOBinding, OrtDevice, OrtSparseFormat, OrtValue, OrtValueVector,
                                            SparseTensor, is_dlpack_uint8_tensor)

SessionIOBinding = IOBinding

__all__ = [
    "EPFail", "EngineError", "ExecutionMode", "ExecutionOrder", "Fail", "GraphOptimizationLevel",
    "InferenceSession", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "LoraAdapter", "ModelLoadCanceled", "ModelLoaded",
    "ModelMetadata", "ModelRequiresCompilation", "NoModel", "NoSuchFile", "NodeArg", "NotFound", "NotImplemented",
    "OrtAllocatorType", "OrtArenaCfg", "OrtDevice", "OrtDeviceMemoryType", "OrtMemType", "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType", "OrtSparseFormat", "OrtValue", "OrtValueVector", "RunOptions", "RuntimeException",
    "SessionIOBinding", "SessionOptions", "SparseTensor", "create_and_register_allocator", "disable_telemetry_events",
    "enable_telemetry_events", "get_all_providers", "get_available_providers", "get_build_info", "get_device",
    "get_version_string", "is_dlpack_uint8_tensor", "set_default_logger_callback", "set_default_logger_severity",
    "set_default_logger_verbosity", "set_seed",
]

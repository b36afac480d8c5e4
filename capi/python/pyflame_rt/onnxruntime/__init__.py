# SPDX-License-Identifier: Apache-2.0
"""PyFlameRT by the names of ONNX Runtime's Python API: ``import pyflame_rt.onnxruntime as onnxruntime``.

Programs written for ``onnxruntime`` run with their import changed. What they get is this library's: its results, its
plug-ins, and its errors, which are that API's exceptions (``capi.onnxruntime_pybind11_state``), pyflame_rt's and
Python's own at once: a wrong shape is InvalidArgument, pyflame_rt.ShapeMismatchError and ValueError.

``__version__`` is the version of that API which is followed; ``pyflame_rt.__version__`` is the library's.

{options}
Providers that this library does not have are warned of and left out. pyflame_rt's own SessionOptions and RunOptions
are taken too. Names of that API that are not here raise AttributeError and say what there is instead.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyflame_rt._graph.model_info import ModelMetadata
from pyflame_rt._session.providers import get_available_providers

from . import _options, capi
from ._adapters import AdapterFormat, LoraAdapter
from ._environment import (disable_telemetry_events, enable_telemetry_events, get_all_providers, get_build_info,
                           get_device, get_version_string, preload_dlls, set_default_logger_callback,
                           set_default_logger_severity, set_default_logger_verbosity, set_seed)
from ._install import install_as_onnxruntime
from ._memory import (OrtAllocatorType, OrtArenaCfg, OrtDeviceMemoryType, OrtMemoryInfo, OrtMemoryInfoDeviceType,
                      OrtMemType, create_and_register_allocator)
from ._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from ._session import InferenceSession, NodeArg
from ._values import IOBinding, OrtDevice, OrtDeviceVendorId, OrtSparseFormat, OrtValue, SparseTensor

__version__: str = get_version_string()

__all__ = [
    "AdapterFormat", "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession",
    "LoraAdapter", "ModelMetadata", "NodeArg", "OrtAllocatorType", "OrtArenaCfg", "OrtDevice", "OrtDeviceMemoryType",
    "OrtDeviceVendorId", "OrtMemType", "OrtMemoryInfo", "OrtMemoryInfoDeviceType", "OrtSparseFormat", "OrtValue",
    "RunOptions", "SessionOptions", "SparseTensor", "capi", "create_and_register_allocator", "disable_telemetry_events",
    "enable_telemetry_events", "get_all_providers", "get_available_providers", "get_build_info", "get_device",
    "get_version_string", "install_as_onnxruntime", "preload_dlls", "set_default_logger_callback",
    "set_default_logger_severity", "set_default_logger_verbosity", "set_seed",
]

_ABSENT = {
    "ModelCompiler": "models need no compiling beforehand",
    "get_ep_devices": "providers have a device each; see get_available_providers",
    "quantization": "it makes models, and does not run them; what it makes can be loaded",
    "register_execution_provider_library": "plug-ins are found in the folders of PFRT_PLUGIN_PATH",
    "training": "sessions run inference",
}


if not TYPE_CHECKING:  # it would let type checkers take any name
    def __getattr__(name: str) -> Any:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'" +
                             (f": {_ABSENT[name]}" if name in _ABSENT else ""))


def _listing() -> str:
    """The part of the help that the tables of options give."""
    def rows(title: str, pairs: Any) -> str:
        return title + "\n" + "".join(f"    {name}: {why}\n" for name, why in pairs)
    entries = {**_options.CONFIG_NO_MEANING, **_options.RUN_CONFIG_NO_MEANING}
    return "\n".join((
        rows("Options without a meaning here, each warned of once, by name:", _options.NO_MEANING.items()),
        rows("Options whose wish is always fulfilled:", _options.ALWAYS_SO.items()),
        rows("Configuration entries without a meaning here:", ((name, why) for name, (_, why) in entries.items())),
        rows("Refused, because results or files would be others than asked for:", (
            ("RunOptions.training_mode", "a session runs inference"),
            *((name, why) for name, (_, why) in _options.CONFIG_REFUSED.items()))),
        rows("Methods of SessionOptions that are not here:", _options.ABSENT.items())))


__doc__ = (__doc__ or "").replace("{options}\n", _listing() + "\n")

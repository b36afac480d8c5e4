# SPDX-License-Identifier: Apache-2.0
"""A model's description of itself, and figures of what its file holds."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Dict, List

from .._core import abi, library as lib


@dataclass
class ImportStats:
    """Figures of what a model file holds, and the time that the import took.

    ``node_count`` and ``initializer_count`` are with those of bodies; ``parameter_count`` parameters, which are the
    elements of initializers and of Constant nodes, have ``parameter_bytes`` bytes. ``import_time_ms`` is in
    milliseconds; ``warnings`` has a sentence for what was read otherwise than it stands in the file.
    """

    node_count: int = 0
    initializer_count: int = 0
    parameter_count: int = 0
    parameter_bytes: int = 0
    import_time_ms: float = 0.0
    warnings: List[str] = field(default_factory=list)


def model_stats(model: int) -> ImportStats:
    info = abi.ModelInfo(struct_size=ctypes.sizeof(abi.ModelInfo))
    lib.check(lib.model.info(model, ctypes.byref(info)))
    warning, warnings = abi.String(), []
    for i in range(lib.model.warning_count(model)):
        lib.check(lib.model.warning_at(model, i, ctypes.byref(warning)))
        warnings.append(lib.read(warning))
    return ImportStats(info.node_count, info.initializer_count, info.parameter_count, info.parameter_bytes,
                       info.import_ms, warnings)


@dataclass
class ModelMetadata:
    """A model's description of itself; what it does not say is "", 0 or empty.

    ``graph_name`` and ``description`` are the graph's; ``producer_name`` and ``producer_version`` say what wrote the
    file, ``domain`` and ``version`` which model it is. ``format`` is "onnx", "pfm" or "graph" (made by a program);
    ``custom_metadata_map`` has the model's own keys.
    """

    graph_name: str = ""
    description: str = ""
    producer_name: str = ""
    producer_version: str = ""
    domain: str = ""
    version: int = 0
    format: str = ""
    custom_metadata_map: Dict[str, str] = field(default_factory=dict)


def read_metadata(model: int) -> ModelMetadata:
    info = abi.ModelInfo(struct_size=ctypes.sizeof(abi.ModelInfo))
    lib.check(lib.model.info(model, ctypes.byref(info)))
    entry, custom = abi.KeyValue(), {}
    for i in range(lib.model.metadata_count(model)):
        lib.check(lib.model.metadata_at(model, i, ctypes.byref(entry)))
        custom[lib.read(entry.key)] = lib.read(entry.value)
    texts = {name: lib.read(getattr(info, name)) for name in (
        "graph_name", "description", "producer_name", "producer_version", "domain", "format")}
    return ModelMetadata(**texts, version=info.model_version, custom_metadata_map=custom)

# SPDX-License-Identifier: Apache-2.0
"""Models: what lies between files, graphs and sessions."""
from __future__ import annotations

import ctypes
import os
import tempfile
from dataclasses import dataclass, field
from typing import Any, List, Optional

from . import _abi, _library as lib
from ._errors import ModelNotFoundError, NotFoundError
from ._graph import Graph
from ._options import NativeOptions


@dataclass
class ImportStats:
    """What a model file holds, and how long the import took; parameters are the elements of its constants."""

    node_count: int = 0
    initializer_count: int = 0
    parameter_count: int = 0
    parameter_bytes: int = 0
    import_time_ms: float = 0.0
    warnings: List[str] = field(default_factory=list)


def model_stats(model: int) -> ImportStats:
    info = _abi.ModelInfo(struct_size=ctypes.sizeof(_abi.ModelInfo))
    lib.check(lib.model.info(model, ctypes.byref(info)))
    warning, warnings = _abi.String(), []
    for i in range(lib.model.warning_count(model)):
        lib.check(lib.model.warning_at(model, i, ctypes.byref(warning)))
        warnings.append(lib.read(warning))
    return ImportStats(info.node_count, info.initializer_count, info.parameter_count, info.parameter_bytes,
                       info.import_ms, warnings)


def load_options(validate: bool, infer_shapes: bool) -> NativeOptions:
    options = NativeOptions(_abi.OPTIONS_LOAD)
    options.set("validate", validate)
    options.set("infer_shapes", infer_shapes)
    return options


def model_of_file(path: Any, options: Optional[NativeOptions] = None) -> lib.Handle:
    given = None if options is None else options.address
    try:
        return lib.make(lib.model.load_file, lib.model.release, lib.default_env().address, lib.text(os.fspath(path)),
                        given)
    except NotFoundError as fault:
        raise ModelNotFoundError(str(fault), fault.code) from None


def model_of_bytes(data: bytes, options: Optional[NativeOptions] = None) -> lib.Handle:
    return lib.make(lib.model.load_memory, lib.model.release, lib.default_env().address, data, len(data), _abi.COPY,
                    None, None, None if options is None else options.address)


def model_of_graph(graph: Graph, options: Optional[NativeOptions] = None) -> lib.Handle:
    """A model with a copy of the graph; constants are shared."""
    with graph._lock:
        return lib.make(lib.model.from_graph, lib.model.release, lib.default_env().address, graph._at(),
                        None if options is None else options.address)


def graph_of_model(model: int) -> Graph:
    """An editable copy of a model's graph; constants are shared."""
    return Graph._of(lib.make(lib.model.graph, lib.graph.release, model))


def load_model(path: Any, validate: bool = True, infer_shapes: bool = True) -> Graph:
    """The graph of a model file, its format found by the extension, then by the content.

    Raises ModelNotFoundError, InvalidModelError, UnsupportedFormatError, and ValidationError if |validate|.
    """
    model = model_of_file(path, load_options(validate, infer_shapes))
    assert model.address
    return graph_of_model(model.address)


def save_model(graph: Graph, path: Any) -> None:
    """Writes a graph to a .pfm or .onnx file, by the extension.

    ValidationError when it is not well formed, UnsupportedFormatError for another extension. The old file stays until
    the new one is whole.
    """
    _save(model_of_graph(graph), path)


def _save(model: lib.Handle, path: Any) -> None:
    lib.check(lib.model.save(lib.default_env().address, model.address, lib.text(os.fspath(path))))


def graph_to_bytes(graph: Graph) -> bytes:
    """The graph as a .pfm file has it, as it is: nothing checked, nothing inferred."""
    model = model_of_graph(graph, load_options(False, False))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.pfm")
        _save(model, path)
        with open(path, "rb") as file:
            return file.read()


def graph_of_bytes(data: bytes) -> Graph:
    model = model_of_bytes(data, load_options(False, False))
    assert model.address
    return graph_of_model(model.address)

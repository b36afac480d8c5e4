# SPDX-License-Identifier: Apache-2.0
"""Models of the library: they lie between files, graphs and sessions."""
from __future__ import annotations

import os
import tempfile
from typing import Any, Literal, Optional

from .._core import abi, library as lib
from .._core.errors import ModelNotFoundError, NotFoundError
from .._core.options import NativeOptions
from .._core.progress import Progress, ProgressCall
from .protocols import GraphHandle
from .source import source_of

Confine = Literal["links", "strict"]


class LoadCall(ProgressCall):
    """A load or save."""

    def __init__(self, validate: bool = True, infer_shapes: bool = True, progress: Optional[Progress] = None,
                 confine: Confine = "links", memory_limit: int = 0, cache_dir: str = "") -> None:
        super().__init__(NativeOptions(abi.OPTIONS_LOAD), progress)
        self.native.set("validate", validate)
        self.native.set("infer_shapes", infer_shapes)
        self.native.set("confine", confine)
        self.native.set("memory_limit", memory_limit)
        if cache_dir:
            self.native.set("cache_dir", cache_dir)


def _model(create: Any, call: Optional[LoadCall], *args: Any) -> lib.Handle:
    return (call or LoadCall())(lambda options: lib.make(create, lib.model.release, lib.default_env().address, *args,
                                                         options))


def model_of_file(path: Any, call: Optional[LoadCall] = None) -> lib.Handle:
    try:
        return _model(lib.model.load_file, call, lib.text(os.fspath(path)))
    except NotFoundError as fault:
        raise ModelNotFoundError(str(fault), fault.code) from None


def model_of_source(source: Any, call: Optional[LoadCall] = None) -> lib.Handle:
    """A model of whatever ``source_of`` takes."""
    found = source_of(source)
    return model_of_file(found, call) if isinstance(found, str) else model_of_bytes(found, call)


def model_of_bytes(data: bytes, call: Optional[LoadCall] = None) -> lib.Handle:
    return _model(lib.model.load_memory, call, data, len(data), abi.COPY, None, None)


def model_of_graph(graph: GraphHandle, call: Optional[LoadCall] = None) -> lib.Handle:
    """A model with a copy of the graph; constants are shared."""
    with graph._lock:
        return _model(lib.model.from_graph, call, graph._at())


def write_model(model: lib.Handle, path: Any, call: LoadCall) -> None:
    call(lambda options: lib.check(lib.model.save(lib.default_env().address, model.address,
                                                  lib.text(os.fspath(path)), options)))


def graph_to_bytes(graph: GraphHandle) -> bytes:
    """The graph as a .pfm file has it, as it is: nothing checked, nothing inferred."""
    model = model_of_graph(graph, LoadCall(False, False))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.pfm")
        write_model(model, path, LoadCall())
        with open(path, "rb") as file:
            return file.read()

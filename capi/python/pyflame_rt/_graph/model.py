# SPDX-License-Identifier: Apache-2.0
"""Models of the library: they lie between files, graphs and sessions."""
from __future__ import annotations

import os
from typing import Any, Callable, Literal, Mapping, Optional, TypeVar

from .._core import abi, callbacks, library as lib
from .._core.errors import ModelNotFoundError, NotFoundError
from .._core.options import NativeOptions
from .._core.progress import Progress, ProgressCall
from .protocols import GraphHandle
from .source import source_of

Confine = Literal["links", "strict"]
T = TypeVar("T")


def _define(user: int, address: int) -> int:
    definition = abi.Definition.from_address(address)

    def fail(code: int, message: str) -> int:
        given: int = definition.fail(address, code, lib.text(message))
        return given

    return callbacks.guard(fail, callbacks.held(user), definition)


_DEFINE = callbacks.permanent_function(abi.DefineFn, _define)


class LoadCall(ProgressCall):
    """A load or save. |define| fills the graph of a file that has weights alone; it is called with an abi.Definition."""

    def __init__(self, validate: bool = True, infer_shapes: bool = True, progress: Optional[Progress] = None,
                 confine: Confine = "links", memory_limit: int = 0, cache_dir: str = "",
                 define: Optional[Callable[[Any], None]] = None, entry: str = "",
                 options: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(NativeOptions(abi.OPTIONS_LOAD), progress)
        self._define = define
        self.native.set("validate", validate)
        self.native.set("infer_shapes", infer_shapes)
        self.native.set("confine", confine)
        self.native.set("memory_limit", memory_limit)
        if cache_dir:
            self.native.set("cache_dir", cache_dir)
        if entry:
            self.native.set("entry", entry)
        for key, value in (options or {}).items():
            self.native.set(key, value)

    def __call__(self, work: Callable[..., T], *args: Any) -> T:
        if self._define is None:
            return super().__call__(work, *args)
        user = callbacks.hold(self._define)
        try:
            lib.check(lib.options.set_definer(self.native.address, _DEFINE, user))
            return super().__call__(work, *args)
        finally:
            callbacks.let_go(user)


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
    import tempfile  # which brings compression and random numbers, for this alone
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.pfm")
        write_model(model, path, LoadCall())
        with open(path, "rb") as file:
            return file.read()

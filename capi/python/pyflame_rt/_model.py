# SPDX-License-Identifier: Apache-2.0
"""Models: what lies between files, graphs and sessions."""
from __future__ import annotations

import ctypes
import io
import os
import tempfile
from dataclasses import dataclass, field
from typing import IO, Any, Callable, List, Literal, Optional, TypeVar, Union

from . import _abi, _callbacks, _library as lib
from ._errors import ModelNotFoundError, NotFoundError, PyFlameRTError
from ._graph import Graph
from ._options import NativeOptions

T = TypeVar("T")
ModelSource = Union[str, "os.PathLike[str]", IO[bytes], bytes, bytearray, memoryview]
Confine = Literal["links", "strict"]



@dataclass
class ImportStats:
    """What a model file holds, and how long the import took.

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
    info = _abi.ModelInfo(struct_size=ctypes.sizeof(_abi.ModelInfo))
    lib.check(lib.model.info(model, ctypes.byref(info)))
    warning, warnings = _abi.String(), []
    for i in range(lib.model.warning_count(model)):
        lib.check(lib.model.warning_at(model, i, ctypes.byref(warning)))
        warnings.append(lib.read(warning))
    return ImportStats(info.node_count, info.initializer_count, info.parameter_count, info.parameter_bytes,
                       info.import_ms, warnings)


# progress(fraction, stage) hears how far a load or save is, from 0 to 1, and what is being done. Returning False stops
# it with CancelledError, raising with what was raised.
Progress = Callable[[float, str], Optional[bool]]


def _hear(user: int, fraction: float, stage: Any) -> None:
    call = _callbacks.held(user)
    try:
        if call.progress(fraction, lib.read(stage)) is False:
            lib.options.cancel(call.native.address)
    except BaseException as fault:
        call.raised = call.raised or fault
        lib.options.cancel(call.native.address)


_HEAR = _callbacks.permanent_function(_abi.ProgressFn, _hear)


class ProgressCall:
    """Options of a call that tells how far it is, and what its progress callback raised."""

    def __init__(self, native: NativeOptions, progress: Optional[Progress]) -> None:
        self.native = native
        self.progress = progress
        self.raised: Optional[BaseException] = None

    def __call__(self, work: Callable[..., T], *args: Any) -> T:
        """work(*args, address of the options)"""
        if self.progress is None:
            return work(*args, self.native.address)
        user = _callbacks.hold(self)
        try:
            lib.check(lib.options.set_progress(self.native.address, _HEAR, user))
            return work(*args, self.native.address)
        except PyFlameRTError:
            if self.raised is None:
                raise
        finally:
            _callbacks.let_go(user)
        raise self.raised


class LoadCall(ProgressCall):
    """A load or save."""

    def __init__(self, validate: bool = True, infer_shapes: bool = True, progress: Optional[Progress] = None,
                 confine: Confine = "links", memory_limit: int = 0, cache_dir: str = "") -> None:
        super().__init__(NativeOptions(_abi.OPTIONS_LOAD), progress)
        self.native.set("validate", validate)
        self.native.set("infer_shapes", infer_shapes)
        self.native.set("confine", confine)
        self.native.set("memory_limit", memory_limit)
        if cache_dir:
            self.native.set("cache_dir", cache_dir)


def _model(create: Any, call: Optional[LoadCall], *args: Any) -> lib.Handle:
    return (call or LoadCall())(lambda options: lib.make(create, lib.model.release, lib.default_env().address, *args,
                                                         options))


def source_of(model: Any) -> Union[str, bytes]:
    """The path or the bytes of a model.

    A file that is open at its beginning stands for its path, so that files beside it are found; of any other stream
    the model is what is left to read.
    """
    if isinstance(model, str):
        return str(model)
    if hasattr(model, "__fspath__"):
        return os.fsdecode(model)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if not callable(getattr(model, "read", None)):
        raise TypeError(f"a model is a path, an open file, bytes or a Graph, got {type(model).__name__}")
    if isinstance(model, io.TextIOBase):
        raise TypeError(f"the file {getattr(model, 'name', model)!r} is open for text; open it with "
                                 "open(path, 'rb'), or give the path")
    path = _path_of(model)
    if path is not None:
        return path
    data = model.read()
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"reading the model: {type(model).__name__}.read() gave {type(data).__name__}, not "
                                 "bytes; open it in binary mode")
    return bytes(data)


def _path_of(file: Any) -> Optional[str]:
    """The path of a file that is open at its beginning and still lies there."""
    try:
        name: Any = file.name
        if not isinstance(name, str) or file.tell() != 0 or not os.path.samestat(os.stat(name), os.fstat(file.fileno())):
            return None
        if file.writable():
            file.flush()
        return str(os.path.abspath(name))
    except (AttributeError, OSError, ValueError):
        return None


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
    return _model(lib.model.load_memory, call, data, len(data), _abi.COPY, None, None)


def model_of_graph(graph: Graph, call: Optional[LoadCall] = None) -> lib.Handle:
    """A model with a copy of the graph; constants are shared."""
    with graph._lock:
        return _model(lib.model.from_graph, call, graph._at())


def graph_of_model(model: int) -> Graph:
    """An editable copy of a model's graph; constants are shared."""
    return Graph._of(lib.make(lib.model.graph, lib.graph.release, model))


def load_model(path: ModelSource, validate: bool = True, infer_shapes: bool = True,
               progress: Optional[Progress] = None, confine: Confine = "links", memory_limit: int = 0) -> Graph:
    """The graph of a model file, its format found by the extension, then by the content. An open file or the bytes of a
    model will do too.

    |confine| says where files beside the model may be: "links" = in the model's folder or, where its path is a symbolic
    link, in the folder of the file it leads to; "strict" = in the folder that the path names, which no link may leave.

    |memory_limit|: bytes of host memory that the model's constants may take, mapped files not counted; 0 = no limit.

    |progress| is called with how far the load is, from 0 to 1, and what is being done; it stops the load by returning
    False (CancelledError) or by raising. Raises ModelNotFoundError, InvalidModelError, UnsupportedFormatError, and
    ValidationError if |validate|.
    """
    model = model_of_source(path, LoadCall(validate, infer_shapes, progress, confine, memory_limit))
    assert model.address
    return graph_of_model(model.address)


def save_model(graph: Graph, path: Any, progress: Optional[Progress] = None) -> None:
    """Writes a graph to a .pfm or .onnx file, by the extension; |progress| as in load_model.

    ValidationError when it is not well formed, UnsupportedFormatError for another extension. The old file stays until
    the new one is whole, also when the save is stopped.
    """
    _save(model_of_graph(graph), path, LoadCall(progress=progress))


def _save(model: lib.Handle, path: Any, call: LoadCall) -> None:
    call(lambda options: lib.check(lib.model.save_with(lib.default_env().address, model.address,
                                                       lib.text(os.fspath(path)), options)))


def graph_to_bytes(graph: Graph) -> bytes:
    """The graph as a .pfm file has it, as it is: nothing checked, nothing inferred."""
    model = model_of_graph(graph, LoadCall(False, False))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.pfm")
        _save(model, path, LoadCall())
        with open(path, "rb") as file:
            return file.read()


def graph_of_bytes(data: bytes) -> Graph:
    model = model_of_bytes(data, LoadCall(False, False))
    assert model.address
    return graph_of_model(model.address)

# SPDX-License-Identifier: Apache-2.0
"""InferenceSession by ONNX Runtime's names."""
from __future__ import annotations

import copy
import json
import os
from typing import Any, Container, Dict, List, Mapping, Optional, Sequence, Union

import numpy as np

import pyflame_rt
from pyflame_rt._core import abi
from pyflame_rt._core.errors import InvalidArgumentError, PyFlameRTError, ShapeMismatchError, UnsupportedError
from pyflame_rt._graph.model_info import ModelMetadata
from pyflame_rt._graph.source import source_of
from pyflame_rt._session.ort_value import OrtValue as NativeOrtValue
from pyflame_rt._values.info import PortInfo

from ._environment import chosen_providers, no_meaning, warn
from ._exceptions import translate, translates
from ._external import Initializers, denoted_dimensions, least_bytes, move_initializers, with_initializers
from ._memory import OrtAllocatorType, OrtMemoryInfo, OrtMemType
from ._options import EXTERNAL_FILE, EXTERNAL_LEAST, SessionOptions
from ._types import type_text
from ._values import IOBinding, OrtValue, OrtValueVector

# Further arguments of that API's constructor, and why they have no meaning here.
_ARGUMENTS = {
    "disabled_optimizers": "the passes here have names of their own; pyflame_rt.SessionOptions.skip_passes leaves them "
                           "out",
    "read_config_from_model": "a model brings no options",
}


class NodeArg:
    """An input or output of a model: ``name``, ``type`` as in "tensor(float)", and ``shape``, a list.

    A dimension is an int, a str where it has a name, or None. The list is empty where the rank is not known, and for
    what is no tensor. ``dim_names`` is empty: names are in the shape.
    """

    dim_names: Sequence[str] = ()  # they are in the shape

    def __init__(self, name: str, type: str, shape: List[Union[int, str, None]]) -> None:
        self.name, self.type, self.shape = name, type, shape

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


@translates
class InferenceSession(pyflame_rt.InferenceSession):
    """A model ready to run, by ONNX Runtime's names. Free to use from many threads at once.

    A profile that ``end_profiling`` writes is a list of events with the names, categories and arguments of ONNX
    Runtime's; one that is written because the session goes is an object with that list as its "traceEvents".

    ``providers`` that this library does not have are warned of and left out, the CPU takes what others leave.

    Raises NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented for operators and options, InvalidArgument,
    NotFound for a provider that nobody has.
    """

    def __init__(self, path_or_bytes: Any, sess_options: Any = None,
                 providers: Optional[Sequence[Any]] = None,
                 provider_options: Optional[Sequence[Mapping[str, Any]]] = None, *, enable_fallback: Any = True,
                 **kwargs: Any) -> None:
        for name, value in kwargs.items():
            if name not in _ARGUMENTS:
                raise TypeError(f"InferenceSession has no argument '{name}'")
            if value:
                no_meaning(name, _ARGUMENTS[name])
        self._given = sess_options if sess_options is not None else SessionOptions()
        native = self._given._to_native() if isinstance(self._given, SessionOptions) else copy.copy(self._given)
        self._fallback = bool(enable_fallback)
        if not self._fallback:
            native.fallback = False
        if not providers and isinstance(self._given, SessionOptions):
            providers = self._given._providers
        is_path = isinstance(path_or_bytes, (str, os.PathLike))
        self._model_path = os.fspath(path_or_bytes) if is_path else None
        self._model_bytes = path_or_bytes if isinstance(path_or_bytes, bytes) else None
        self._chosen = dict(chosen_providers(providers, provider_options))
        self._free_dimensions: Dict[str, int] = dict(getattr(self._given, "_free_dimensions", {}))
        self._denoted: Dict[str, Dict[int, int]] = {}
        if getattr(self._given, "_denoted", {}) and not isinstance(path_or_bytes, pyflame_rt.Graph):
            self._denoted = denoted_dimensions(source_of(path_or_bytes), self._given._denoted)
        given = getattr(self._given, "_initializers", Initializers())
        if given and not isinstance(path_or_bytes, pyflame_rt.Graph):
            path_or_bytes = with_initializers(source_of(path_or_bytes), given)
        super().__init__(path_or_bytes, native, list(self._chosen.items()))
        for port in self._inputs:
            for axis, dim in enumerate(port.dims or ()):
                size = self._denoted.get(port.name, {}).get(axis, dim)
                if dim not in (size, -1):
                    raise InvalidArgumentError(f"input '{port.name}' is of shape {list(port.dims or ())}; its dimension "
                                               f"{axis} cannot be overridden to {size}")
        path = getattr(self._given, "optimized_model_filepath", "")
        if path:
            self._save_optimized(path)
        names = {name for port in self._inputs for name in port.dim_names}
        for name in self._free_dimensions:
            if name not in names:
                warn(f"no input has the dimension '{name}' that is overridden; dimensions are: "
                     f"{', '.join(sorted(names - {''})) or 'none'}")

    def _save_optimized(self, path: str) -> None:
        self.graph(optimized=True).save(path)
        config = getattr(self._given, "_config", {})
        if config.get(EXTERNAL_FILE):
            if not path.endswith(".onnx"):
                raise UnsupportedError(f"saving '{path}' with external initializers: only .onnx files have them")
            move_initializers(path, config[EXTERNAL_FILE], least_bytes(config.get(EXTERNAL_LEAST, "")))

    def end_profiling(self) -> str:
        """Writes the profile and closes it; returns the file's path, the same again when it is called again."""
        path = super().end_profiling()
        if path:
            with open(path, encoding="utf-8") as file:
                profile = json.load(file)
            if isinstance(profile, dict):
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(profile["traceEvents"], file)
        return path

    # ------------------------------------------------------------------ what it is

    @property
    def _sess(self) -> "_Below":
        """The session below this one in ONNX Runtime's package."""
        return _Below(self)

    @property
    def inputs_meta(self) -> List[NodeArg]:
        """get_inputs()"""
        return self.get_inputs()

    @property
    def outputs_meta(self) -> List[NodeArg]:
        """get_outputs()"""
        return self.get_outputs()

    @property
    def overridable_initializers(self) -> List[NodeArg]:
        """get_overridable_initializers()"""
        return self.get_overridable_initializers()

    @property
    def model_meta(self) -> ModelMetadata:
        """get_modelmeta()"""
        return self.get_modelmeta()

    _inputs_meta, _outputs_meta, _model_meta = inputs_meta, outputs_meta, model_meta

    @property
    def _sess_options(self) -> Any:
        return self._given

    def _node_arg(self, port: PortInfo) -> NodeArg:
        shape: List[Union[int, str, None]] = []
        dims = port.dims if port.kind in (abi.VALUE_TENSOR, abi.VALUE_SPARSE) else None
        sizes = self._denoted.get(port.name, {})
        for axis, (dim, name) in enumerate(zip(dims or (), port.dim_names)):
            size = dim if dim >= 0 else self._free_dimensions.get(name, sizes.get(axis, dim))
            shape.append(size if size >= 0 else name or None)
        return NodeArg(port.name, type_text(port), shape)

    def get_inputs(self) -> List[NodeArg]:  # type: ignore[override]
        """The inputs that a run must be fed."""
        return [self._node_arg(port) for port in self._inputs if not port.has_initializer]

    def get_overridable_initializers(self) -> List[NodeArg]:  # type: ignore[override]
        """Inputs with a default value, which a run may be fed."""
        return [self._node_arg(port) for port in self._inputs if port.has_initializer]

    def get_outputs(self) -> List[NodeArg]:  # type: ignore[override]
        """The model's outputs."""
        return [self._node_arg(port) for port in self._outputs]

    def get_input_memory_infos(self) -> List[OrtMemoryInfo]:
        """The memory that a run takes each of get_inputs() from: the host's."""
        return [_host_memory() for _ in self.get_inputs()]

    def get_output_memory_infos(self) -> List[OrtMemoryInfo]:
        """The memory that a run writes each of get_outputs() to: the host's."""
        return [_host_memory() for _ in self.get_outputs()]

    def get_input_epdevices(self) -> List[None]:
        """None for each of get_inputs(): they are in host memory, no device of a provider's."""
        return [None for _ in self.get_inputs()]

    def get_session_options(self) -> Any:
        """The options that the session was made with."""
        return self._given

    def get_provider_options(self) -> Dict[str, Dict[str, str]]:
        """The options that each provider in use was given."""
        return {name: dict(self._chosen.get(name, {})) for name in self.get_providers()}

    def set_providers(self, providers: Optional[Sequence[Any]] = None,
                      provider_options: Optional[Sequence[Mapping[str, Any]]] = None) -> None:
        """Makes the session anew with other providers; no other thread may use it meanwhile."""
        self._make_anew(providers=providers, provider_options=provider_options)

    def enable_fallback(self) -> None:
        """Has a failing provider's nodes go to the next one; it is so from the beginning."""
        self._make_anew(enable_fallback=True)

    def disable_fallback(self) -> None:
        """Has the run fail where a provider fails. It makes the session anew."""
        self._make_anew(enable_fallback=False)

    def _make_anew(self, **changes: Any) -> None:
        self.__dict__.update(InferenceSession(**{**self.__getstate__(), **changes}).__dict__)

    def __getstate__(self) -> Dict[str, Any]:
        return {"path_or_bytes": super().__getstate__()["source"], "sess_options": self._given,
                "providers": list(self._chosen.items()), "enable_fallback": self._fallback}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    # ------------------------------------------------------------------ running it

    def run(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
            run_options: Any = None) -> List[Any]:
        """Runs the model once; returns arrays, lists and dicts in the order of the names, None or [] for all.

        Raises InvalidArgument for a name that is missing or unknown, and for a wrong shape or element type.
        """
        try:
            if getattr(run_options, "_adapters", None):
                input_feed = _with_adapters(input_feed, run_options)
            if self._free_dimensions or self._denoted:
                self._check_feeds(input_feed)
            return super().run(output_names, input_feed, run_options)
        except PyFlameRTError as fault:
            raise translate(fault) from fault.__cause__

    __call__ = run

    def run_async(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any], callback: Any = None,
                  user_data: Any = None, run_options: Any = None) -> Any:
        """Starts a run; ``callback(results, user_data, error_text)`` is called once when it is over, on another thread.

        ``error_text`` is "" or says why there are no results. Arrays must not be written to before. Without a callback
        what it returns is awaited.
        """
        input_feed = _with_adapters(input_feed, run_options)
        self._check_feeds(input_feed)
        future: Any = super().run_async(output_names, input_feed, callback, user_data, run_options)
        return None if future is None else self._translated(future)

    @staticmethod
    async def _translated(future: Any) -> Any:
        try:
            return await future
        except PyFlameRTError as fault:
            raise translate(fault) from fault.__cause__

    def io_binding(self) -> IOBinding:
        """Inputs and outputs of this session to be bound once for many runs."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: Any, run_options: Any = None) -> None:
        """Runs the model on what is bound; makes those outputs that are bound."""
        if getattr(run_options, "_adapters", None):
            raise UnsupportedError("run_with_iobinding with an adapter: bind its tensors, which "
                                   "AdapterFormat.read_adapter gives, or use run")
        super().run_with_iobinding(iobinding, run_options)

    def run_with_ort_values(  # type: ignore[override]
            self, output_names: Optional[Sequence[str]], input_dict_ort_values: Mapping[str, Any],
            run_options: Any = None) -> List[OrtValue]:
        """Does what ``run`` does, from OrtValues to OrtValues."""
        feeds = _with_adapters(input_dict_ort_values, run_options)
        out: Any = super().run_with_ort_values(output_names, feeds, run_options)
        return out  # type: ignore[no-any-return]

    def _feed_fault(self, feeds: Mapping[str, Any], lent: Container[str]) -> str:
        missing = [port.name for port in self._inputs
                   if not port.has_initializer and port.name not in feeds and port.name not in lent]
        begin = f"Required inputs ({missing}) are missing from input feed ({list(feeds)}): " if missing else ""
        return begin + super()._feed_fault(feeds, lent)

    def _check_feeds(self, feeds: Mapping[str, Any]) -> None:
        for name, value in feeds.items():
            self._check_free_dimensions(name, value)

    def _check_free_dimensions(self, name: str, value: Any) -> None:
        index = self._input_index.get(name)
        if not (self._free_dimensions or self._denoted) or index is None:
            return
        sizes = self._denoted.get(name, {})
        shape = value.shape() if isinstance(value, NativeOrtValue) else np.shape(value)
        for axis, (dim, found) in enumerate(zip(self._inputs[index].dim_names, shape)):
            wanted = self._free_dimensions.get(dim, sizes.get(axis, found))
            if found != wanted:
                raise ShapeMismatchError(f"input '{name}' is of shape {list(shape)}; its dimension {dim or axis!r} is "
                                         f"overridden to {wanted}")


class _Below:
    """The session that InferenceSession is over in ONNX Runtime's package: here the same one, but for the order of
    arguments where that one has another."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def run_with_ort_values(self, feeds: Mapping[str, Any], output_names: Optional[Sequence[str]],
                            run_options: Any = None) -> OrtValueVector:
        return OrtValueVector(self._session.run_with_ort_values(output_names, feeds, run_options))


def _with_adapters(feeds: Mapping[str, Any], run_options: Any) -> Mapping[str, Any]:
    """What is fed with an options' adapters, the first of which comes first."""
    for adapter in getattr(run_options, "_adapters", ()):
        feeds = {**adapter._parameters, **feeds}
    return feeds


def _host_memory() -> OrtMemoryInfo:
    return OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 0, OrtMemType.DEFAULT)

# SPDX-License-Identifier: Apache-2.0
"""SessionOptions and RunOptions by ONNX Runtime's names.

Every option of that API is one of these: it is set; it has no meaning here (warned of once, by name; configuration
entries and options of the CPU's are taken and told to the logger "pyflame_rt.onnxruntime"); what it asks for is always
so; or it is refused, because results or files would be others than asked for.
"""
from __future__ import annotations

import enum
import operator
import os
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Sequence, Tuple, Union

from pyflame_rt._core import abi
from pyflame_rt._core.errors import InvalidArgumentError, NotFoundError, PyFlameRTError, UnsupportedError
from pyflame_rt._core.options import NativeOptions, OptLevel
from pyflame_rt._session.environment import Environment
from pyflame_rt._session.ort_value import OrtValue
from pyflame_rt._session.run_options import NativeRunOptions
from pyflame_rt._session.session_options import SessionOptions as NativeSessionOptions

from ._adapters import LoraAdapter
from ._environment import level_of, log_no_meaning, no_meaning
from ._exceptions import Fail, translates, translating
from ._external import Initializers


class GraphOptimizationLevel(enum.IntEnum):
    """The levels up to which a session optimises its graph."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """The modes say whether independent steps of a run go on at once."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """The orders in which nodes run; they have no meaning here, the plan has the order."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


_OPT_LEVELS = {GraphOptimizationLevel.ORT_DISABLE_ALL: OptLevel.NONE, GraphOptimizationLevel.ORT_ENABLE_BASIC:
               OptLevel.BASIC, GraphOptimizationLevel.ORT_ENABLE_EXTENDED: OptLevel.EXTENDED,
               GraphOptimizationLevel.ORT_ENABLE_LAYOUT: OptLevel.ALL, GraphOptimizationLevel.ORT_ENABLE_ALL:
               OptLevel.ALL}
_ENUMS: Dict[str, Any] = {"graph_optimization_level": GraphOptimizationLevel, "execution_mode": ExecutionMode,
                          "execution_order": ExecutionOrder}
_DEFAULTS: Dict[str, Any] = {
    "enable_cpu_mem_arena": True, "enable_mem_pattern": True, "enable_mem_reuse": True, "enable_profiling": False,
    "execution_mode": ExecutionMode.ORT_SEQUENTIAL, "execution_order": ExecutionOrder.DEFAULT,
    "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL, "inter_op_num_threads": 0,
    "intra_op_num_threads": 0, "log_severity_level": -1, "log_verbosity_level": 0, "logid": "",
    "optimized_model_filepath": "", "profile_file_prefix": "onnxruntime_profile_", "use_deterministic_compute": False,
    "use_per_session_threads": True,
}
# Options without a meaning here, and why.
NO_MEANING = {
    "enable_cpu_mem_arena": "memory is pooled by size, and given back",
    "execution_order": "the plan has the order",
    "inter_op_num_threads": "steps that run at once share the threads of intra_op_num_threads",
    "log_verbosity_level": "log_severity_level alone chooses lines of the log",
    "logid": "lines of the log carry no name of their session",
}
# Values of theirs that many programs set, and that ask for no more than there is.
_HARMLESS: Dict[str, Tuple[Any, ...]] = {"enable_cpu_mem_arena": (False,), "inter_op_num_threads": (1,)}
# Options whose wish is always fulfilled.
ALWAYS_SO = {
    "use_deterministic_compute": "results are the same bits for any number of threads",
    "use_per_session_threads": "sessions share threads, each uses as many as it says",
}
# Entries of add_session_config_entry: values that are so anyway, and why others have no meaning.
CONFIG_NO_MEANING: Dict[str, Tuple[Tuple[str, ...], str]] = {
    "session.intra_op.allow_spinning": (("0",), "threads sleep between runs"),
    "session.inter_op.allow_spinning": (("0",), "threads sleep between runs"),
    "session.force_spinning_stop": (("1",), "threads sleep between runs"),
    "session.disable_prepacking": (("0",), "weights are packed once and shared"),
    "session.use_device_allocator_for_initializers": (("0",), "memory is pooled by size"),
    "session.dynamic_block_base": (("0",), "work is cut so that results are the same for any number of threads"),
    "session.intra_op_thread_affinities": (("",), "threads are bound to no processor"),
    "session.strict_shape_type_inference": (("0",), "types are always checked"),
    "session.disable_aot_function_inlining": (("0",), "how functions of a model are run is not chosen"),
    "session.save_external_prepacked_constant_initializers": (("0",), "weights are packed when a session is made"),
    "session.use_ort_model_bytes_directly": (("0",), "it is about another format of models"),
    "session.use_ort_model_bytes_for_initializers": (("0",), "it is about another format of models"),
    "optimization.disable_specified_optimizers": (("",), "the passes here have names of their own; "
                                                         "pyflame_rt.SessionOptions.skip_passes leaves them out"),
    "mlas.enable_gemm_fastmath_arm64_bfloat16": (("0",), "it is about another processor"),
    "mlas.disable_kleidiai": (("0", "1"), "it is about another processor"),
}
# Entries that would change results or files: the values that do not, and why others are refused.
CONFIG_REFUSED: Dict[str, Tuple[Tuple[str, ...], str]] = {
    "session.load_model_format": (("", "ONNX"), "models are read in ONNX's format and the library's own"),
    "session.save_model_format": (("", "ONNX"), "models are written in ONNX's format and the library's own"),
    "session.disable_cpu_ep_fallback": (("0",), "nodes that a provider leaves go to the CPU"),
    "session.disable_quant_qdq": (("0",), "how quantised operators are joined cannot be chosen"),
    "session.enable_quant_qdq_cleanup": (("0",), "how quantised operators are joined cannot be chosen"),
    "session.model_external_initializers_file_folder_path": (("",), "data beside a model is read beside its path; give "
                                                                    "the path of the model"),
    "optimization.enable_gelu_approximation": (("0",), "Gelu is computed as the model has it"),
    "ep.context_enable": (("0",), "no compiled model is written"),
}
# Entries about the file of optimized_model_filepath: where initializers of how many bytes go.
EXTERNAL_FILE = "session.optimized_model_external_initializers_file_name"
EXTERNAL_LEAST = "session.optimized_model_external_initializers_min_size_in_bytes"
RUN_DEFAULTS: Dict[str, Any] = {"log_severity_level": -1, "log_verbosity_level": 0, "logid": "", "terminate": False,
                                "only_execute_path_to_fetches": False, "training_mode": False}
RUN_CONFIG_NO_MEANING: Dict[str, Tuple[Tuple[str, ...], str]] = {
    "memory.enable_memory_arena_shrinkage": (("",), "memory is given back without being asked"),
    "disable_synchronize_execution_providers": (("0",), "a run waits only for what it reads"),
    "gpu_graph_id": (("-1",), "plans are kept for every set of dimensions"),
}
# Methods that are not here, and what there is instead.
ABSENT = {
    "add_provider_for_devices": "name the provider; use add_provider",
    "set_provider_selection_policy": "name providers in the order of preference",
}


def _size(dimension: str, value: Any) -> int:
    size: int = _as_type(int, value, f"the dimension '{dimension}'")
    if size < 0:
        raise InvalidArgumentError(f"the dimension '{dimension}' cannot be {value!r}; give a number from 0 on")
    return size


def _expect_value(name: str, value: Any) -> None:
    if not isinstance(value, OrtValue):
        raise InvalidArgumentError(f"the value of initializer '{name}' is a {type(value).__name__}; give an OrtValue")


def _text(key: Any, value: Any) -> Tuple[str, str]:
    if not isinstance(key, str) or not isinstance(value, str):
        raise TypeError(f"a configuration entry is a pair of strings, not {key!r}: {value!r}")
    return key, value


def _is_known(native: NativeOptions, key: str) -> bool:
    try:
        native.get(key)
    except PyFlameRTError:
        return False
    return True


def _set_config(key: str, value: str, meaningless: Mapping[str, Tuple[Tuple[str, ...], str]],
                refused: Mapping[str, Tuple[Tuple[str, ...], str]], native: Any) -> bool:
    """Sets an entry that is one of the library's own in |native|, and tells whether it is."""
    if key in meaningless:
        if value not in meaningless[key][0]:
            log_no_meaning(key, meaningless[key][1])
        return False
    if key in refused:
        if value not in refused[key][0]:
            raise UnsupportedError(f"the configuration entry '{key}' = '{value}' is refused: {refused[key][1]}")
        return False
    if "." in key and isinstance(native, NativeOptions) and not _is_known(native, key):
        log_no_meaning(key, "there is no such entry")  # it is one of another version of that API
        return False
    try:
        native.set(key, value)
    except PyFlameRTError as fault:
        raise InvalidArgumentError(f"the configuration entry '{key}' = '{value}' is not known here; the library says: "
                                   f"{fault}") from None
    return True


@translates
class SessionOptions:
    """Options of a session, by ONNX Runtime's names; the module's help says which have no meaning here.

    Set: graph_optimization_level, execution_mode, intra_op_num_threads (0 = as many as the process may use),
    enable_mem_pattern, enable_mem_reuse, enable_profiling, profile_file_prefix, optimized_model_filepath (.onnx or
    .pfm, written when a session is made), log_severity_level (0 verbose to 4 fatal; -1 = the default logger's), free
    dimensions by name and denotation, initializers and files of external ones, and by add_session_config_entry any key of
    the library's own schema ("precision") and session.optimized_model_external_initializers_file_name and
    .._min_size_in_bytes.

    register_custom_ops_library takes a plug-in of this library's of kind "ops".

    Without a meaning: enable_cpu_mem_arena, execution_order, inter_op_num_threads, log_verbosity_level, logid. Always
    so: use_deterministic_compute, use_per_session_threads.
    """

    enable_cpu_mem_arena: bool
    enable_mem_pattern: bool
    enable_mem_reuse: bool
    enable_profiling: bool
    execution_mode: ExecutionMode
    execution_order: ExecutionOrder
    graph_optimization_level: GraphOptimizationLevel
    inter_op_num_threads: int
    intra_op_num_threads: int
    log_severity_level: int
    log_verbosity_level: int
    logid: str
    optimized_model_filepath: str
    profile_file_prefix: str
    use_deterministic_compute: bool
    use_per_session_threads: bool
    _config: Dict[str, str]
    _denoted: Dict[str, int]
    _extra: Dict[str, str]
    _free_dimensions: Dict[str, int]
    _initializers: Initializers
    _providers: List[Tuple[str, Dict[str, str]]]

    def __init__(self) -> None:
        self.__dict__.update(_DEFAULTS)
        self.__dict__.update(_config={}, _denoted={}, _extra={}, _free_dimensions={}, _initializers=Initializers(),
                             _providers=[])

    if not TYPE_CHECKING:  # it would let type checkers take any name

        @translating
        def __setattr__(self, name: str, value: Any) -> None:
            if name not in _DEFAULTS:
                raise AttributeError(f"SessionOptions has no option '{name}'; it has " + ", ".join(_DEFAULTS))
            if name in _ENUMS:
                value = _member(_ENUMS[name], value, name)
            else:
                value = _as_type(type(_DEFAULTS[name]), value, f"SessionOptions.{name}")
            if name == "log_severity_level":
                level_of(value, "SessionOptions.log_severity_level")
            if name.endswith("num_threads") and value < 0:
                raise InvalidArgumentError(f"SessionOptions.{name} is {value}; give a number from 0 on")
            if name in NO_MEANING and value not in (_DEFAULTS[name], *_HARMLESS.get(name, ())):
                no_meaning(name, NO_MEANING[name])
            self.__dict__[name] = value

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Sets an entry, of that API or of the library's own schema; both are text."""
        key, value = _text(key, value)
        if key not in (EXTERNAL_FILE, EXTERNAL_LEAST) and _set_config(key, value, CONFIG_NO_MEANING, CONFIG_REFUSED,
                                                                      NativeOptions(abi.OPTIONS_SESSION)):
            self._extra[key] = value
        self._config[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """The value that an entry was set to."""
        if key not in self._config:
            raise Fail(f"SessionOptions does not have configuration with key: {key}")
        return self._config[key]

    def add_free_dimension_override_by_name(self, dim_name: str, dim_value: int) -> None:
        """Fixes a named dimension of inputs: it reads so in get_inputs, and a run takes no other."""
        self._free_dimensions[dim_name] = _size(dim_name, dim_value)

    def add_free_dimension_override_by_denotation(self, dim_denotation: str, dim_value: int) -> None:
        """Fixes the dimensions of inputs that a model says to be of a kind, as "DATA_BATCH": they read so in get_inputs,
        and a run takes no others."""
        self._denoted[dim_denotation] = _size(dim_denotation, dim_value)

    def add_external_initializers(self, external_initializer_names: Sequence[str],
                                  external_initializer_values: Sequence[OrtValue]) -> None:
        """Gives values, tensors in host memory, of initializers that a model names and that lie outside of its file.
        Their memory is used, not copied."""
        names, values = list(external_initializer_names), list(external_initializer_values)
        if len(names) != len(values):
            raise InvalidArgumentError(f"{len(values)} values are given for {len(names)} external initializers; give one "
                                       "for each")
        known = self._initializers.external
        if not all(isinstance(name, str) for name in names) or len({*names, *known}) != len(names) + len(known):
            raise InvalidArgumentError(f"the names of external initializers are {names!r}; each is a text and is given "
                                       "once")
        for name, value in zip(names, values):
            _expect_value(name, value)
        known.update(zip(names, values))

    def register_custom_ops_library(self, library: "Union[str, os.PathLike[str]]") -> None:
        """Opens a plug-in of this library's of kind "ops", whatever folder it lies in: every session that is made later
        finds its operators. A library with RegisterCustomOps, of that API's interface, is refused."""
        try:
            opened = Environment.instance().open_plugin(library)
        except NotFoundError:
            raise
        except PyFlameRTError as fault:
            raise UnsupportedError(f"register_custom_ops_library: {fault}; libraries that export RegisterCustomOps are "
                                   "of another interface: build the operators as a plug-in of kind 'ops'") from fault
        if opened.kind != "ops":
            raise InvalidArgumentError(f"register_custom_ops_library: '{opened.path}' is a plug-in of kind "
                                       f"'{opened.kind}'; operators come from those of kind 'ops'")

    def add_initializer(self, name: str, ort_value: OrtValue) -> None:
        """Gives the value, a tensor in host memory, of an initializer that models may have: it takes the place of theirs
        and has to be of its type and shape. Its memory is used, not copied. Models without one are as they were."""
        if not isinstance(name, str) or not name or name in self._initializers.own:
            raise InvalidArgumentError(f"the name of an initializer is {name!r}; it is a text and is given once")
        _expect_value(name, ort_value)
        self._initializers.own[name] = ort_value

    def add_external_initializers_from_files_in_memory(self, file_names: Sequence[str], file_buffers: Sequence[Any],
                                                       file_lengths: Sequence[int]) -> None:
        """Gives the contents, bytes or another buffer, of files that hold external initializers, by the names that
        models have them under. Memory is used, not copied, and must not be written to."""
        names, buffers, lengths = list(file_names), list(file_buffers), list(file_lengths)
        if not len(names) == len(buffers) == len(lengths):
            raise InvalidArgumentError(f"{len(names)} names, {len(buffers)} buffers and {len(lengths)} lengths of files "
                                       "are given; give one of each for a file")
        for name, buffer, length in zip(names, buffers, lengths):
            try:
                data = memoryview(buffer).cast("B")
            except TypeError as fault:
                raise InvalidArgumentError(f"the contents of the file {name!r}: {fault}; give bytes") from None
            if not isinstance(name, str) or name in self._initializers.files or not 0 <= length <= len(data):
                raise InvalidArgumentError(f"the file {name!r} is given with {len(data)} bytes and the length "
                                           f"{length!r}; names are text and given once, and a length is no more than "
                                           "there is")
            self._initializers.files[name] = data[:length]

    def add_provider(self, provider_name: str, provider_options: Mapping[str, str]) -> None:
        """Adds an execution provider, for sessions that are not given a list of them."""
        self._providers.append((provider_name, dict(provider_options)))

    def has_providers(self) -> bool:
        """Tells whether a provider was added by ``add_provider``."""
        return bool(self._providers)

    if not TYPE_CHECKING:  # it would let type checkers take any name

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"SessionOptions has no '{name}'" + (f": {ABSENT[name]}" if name in ABSENT else ""))

    def _to_native(self) -> NativeSessionOptions:
        out = NativeSessionOptions()
        out.optimization_level = _OPT_LEVELS[self.graph_optimization_level]
        out.execution_mode = "parallel" if self.execution_mode == ExecutionMode.ORT_PARALLEL else "sequential"
        out.num_threads = self.intra_op_num_threads
        out.enable_mem_pattern = self.enable_mem_pattern
        out.enable_mem_reuse = self.enable_mem_reuse
        out.enable_profiling = self.enable_profiling
        out.profile_file_prefix = self.profile_file_prefix
        out.log_level = level_of(self.log_severity_level, "SessionOptions.log_severity_level")
        out.extra.update(self._extra)
        return out

    def __repr__(self) -> str:
        return "SessionOptions(" + ", ".join(f"{name}={getattr(self, name)!r}" for name in _changed(self)) + ")"


def _changed(options: SessionOptions) -> List[str]:
    return [name for name, default in _DEFAULTS.items() if getattr(options, name) != default]


@translates
class RunOptions:
    """Options of one run, by ONNX Runtime's names.

    Set: log_severity_level, logid (the run's name in logs), terminate (True stops runs that use these options, now and
    later; False lets them run again), and by add_run_config_entry those of pyflame_rt.RunOptions that are numbers or text
    ("timeout_ms"). Always so: only_execute_path_to_fetches is about time alone. Without a meaning: log_verbosity_level.
    Refused: training_mode.
    """

    log_severity_level: int
    log_verbosity_level: int
    logid: str
    terminate: bool
    only_execute_path_to_fetches: bool
    training_mode: bool
    _options: NativeRunOptions
    _config: Dict[str, str]
    _adapters: List[LoraAdapter]

    def __init__(self) -> None:
        self.__dict__.update(RUN_DEFAULTS)
        self.__dict__.update(_options=NativeRunOptions(), _config={}, _adapters=[])

    if not TYPE_CHECKING:  # it would let type checkers take any name

        @translating
        def __setattr__(self, name: str, value: Any) -> None:
            if name not in RUN_DEFAULTS:
                raise AttributeError(f"RunOptions has no option '{name}'; it has " + ", ".join(RUN_DEFAULTS))
            value = _as_type(type(RUN_DEFAULTS[name]), value, f"RunOptions.{name}")
            if name == "log_severity_level":
                self._options.set("log_level", level_of(value, "RunOptions.log_severity_level"))
            elif name == "logid":
                self._options.set("tag", value)
            elif name == "terminate":
                (self._options.cancel if value else self._options.reset_cancel)()
            elif name == "training_mode" and value:
                raise UnsupportedError("RunOptions.training_mode is refused: a session runs inference")
            elif name == "log_verbosity_level" and value:
                no_meaning(f"RunOptions.{name}", NO_MEANING[name])
            self.__dict__[name] = value

    def add_active_adapter(self, adapter: LoraAdapter) -> None:
        """Has runs feed the tensors of an adapter, beside what they are given; what a run is given itself comes first."""
        if not isinstance(adapter, LoraAdapter):
            raise InvalidArgumentError(f"RunOptions.add_active_adapter: {adapter!r} is no LoraAdapter")
        self._adapters.append(adapter)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Sets an entry, of that API or of pyflame_rt.RunOptions; both are text."""
        key, value = _text(key, value)
        _set_config(key, value, RUN_CONFIG_NO_MEANING, {}, self._options)
        self._config[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """The value that an entry was set to."""
        if key not in self._config:
            raise Fail(f"RunOptions does not have configuration with key: {key}")
        return self._config[key]

    def __repr__(self) -> str:
        changed = [name for name, default in RUN_DEFAULTS.items() if getattr(self, name) != default]
        return "RunOptions(" + ", ".join(f"{name}={getattr(self, name)!r}" for name in changed) + ")"


def _as_type(kind: type, value: Any, name: str) -> Any:
    """The value as a bool, int or str, from what is one: NumPy's numbers too."""
    if kind is str and isinstance(value, str):
        return value
    if kind is bool and str(value) in ("True", "False", "0", "1") and not isinstance(value, str):
        return bool(value)
    if kind is int and hasattr(value, "__index__") and not isinstance(value, bool):
        return operator.index(value)
    raise TypeError(f"{name} is of type {kind.__name__}, not {value!r}")


def _member(kind: Any, value: Any, name: str) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise InvalidArgumentError(f"{name} is {value!r}; it is one of " + ", ".join(
            f"{kind.__name__}.{member.name}" for member in kind)) from None

# SPDX-License-Identifier: Apache-2.0
"""Sessions: models ready to run."""
from __future__ import annotations

import ctypes
import html
import os
import time
from typing import Any, Callable, Container, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _abi, _async, _interrupt, _library as lib
from ._binding import IOBinding, run_values
from ._dtype import ABI_OF_NUMPY, FROM_ABI, OWN_NUMPY, TO_ABI, DType
from ._errors import (DTypeMismatchError, InputError, InvalidArgumentError, NotFoundError, OutOfMemoryError,
                      PyFlameRTError, ShapeMismatchError)
from ._graph import Graph
from ._graph_text import shape_text as _shape_text
from ._info import ModelMetadata, NodeArg, ports, read_metadata
from ._model import LoadCall, ModelSource, graph_of_model, model_of_bytes, model_of_file, model_of_graph, source_of
from ._options import RunOptions, SessionOptions, check_run
from ._ort_value import OrtValue
from ._memory_report import MemoryReport, memory_report, phase_of, trimmed
from ._providers import ProviderState, provider_states, word_of
from ._state import Pair, State, create_state
from ._tensor import Tensor, from_numpy
from ._values import (TENSOR_SIZE, SparseTensor, address_of, array_over, as_array, check_tensor, number_array, plain,
                      string_tensor, taken, value_of)

_IO_SIZE = ctypes.sizeof(_abi.Io)
# Without argument types, which would be looked at in every call: all that is passed has to be of ctypes or None.
_run = ctypes.CFUNCTYPE(ctypes.c_void_p)(ctypes.cast(lib.session.run, ctypes.c_void_p).value or 0)
_addressof, _empty = ctypes.addressof, np.empty
_buffer_of: Any = ctypes.c_char.from_buffer
_ProviderOptions = Optional[Mapping[str, Any]]
Providers = Union[str, Sequence[Union[str, Tuple[str, _ProviderOptions]]], Mapping[str, _ProviderOptions]]


# An Io struct in words of 8 bytes: what a run changes of it.
_WORDS = _IO_SIZE // 8
_FLAGS, _TENSOR, _VALUE = 1, _abi.Io.tensor.offset // 8, _abi.Io.value.offset // 8
_DTYPE, _RANK, _DATA, _BYTES, _DIMS = (_TENSOR + at // 8 for at in (
    0, _abi.Tensor.rank.offset, _abi.Tensor.data.offset, _abi.Tensor.bytes.offset, _abi.Tensor.dims.offset))
_MISSING = object()
_QUICK, _FEW = 0.001, 16  # seconds of a run, elements of a tensor


class _Frame:
    """The arrays of one run, kept for the next: a run takes a frame that no other has.

    They are written as words, which costs a tenth of writing fields of ctypes.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        self.inputs = (_abi.Io * max(inputs, 1))()
        self.outputs = (_abi.Io * max(outputs, 1))()
        for io in [*self.inputs, *self.outputs]:
            io.struct_size = _IO_SIZE
            io.tensor.struct_size = TENSOR_SIZE
        self.input_count, self.output_count = ctypes.c_size_t(inputs), ctypes.c_size_t(outputs)
        self.in_words = memoryview(self.inputs).cast("B").cast("Q")
        self.out_words = memoryview(self.outputs).cast("B").cast("Q")
        # Of the array that each input was last: what is equal need not be written again.
        self.shapes: List[Any] = [None] * inputs
        self.dtypes: List[Any] = [None] * inputs
        self.dims: List[Any] = [None] * (inputs + outputs)
        self.lent: Container[str] = ()  # inputs that a state has
        # The outputs wanted last, and of those the ones to allocate: index, word of the address, shape, dtype.
        self.names: Any = _MISSING
        self.wanted: Sequence[int] = ()
        self.allocated: List[Tuple[int, int, Tuple[int, ...], Any]] = []
        # Whether the last run was of these shapes and over at once, and nothing but them says how long the next takes.
        self.quick = False

    def discard(self) -> None:
        """Lets go what a run left that was broken off between its end and the taking of its results."""
        for i in range(self.output_count.value):
            value, self.outputs[i].value = self.outputs[i].value, None
            if value:
                lib.value.release(value)


def _put(words: Any, at: int, dtype: int, shape: Tuple[int, ...], size: int) -> Any:
    """Describes a tensor in an Io's words; what it returns has to stay."""
    dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    words[at + _DTYPE] = dtype << 32 | TENSOR_SIZE
    words[at + _RANK] = len(shape)
    words[at + _BYTES] = size
    words[at + _DIMS] = ctypes.addressof(dims)
    return dims


class InferenceSession:
    """A model planned for its providers, ready to run. Free to use from many threads at once.

    Parameters
    ----------
    model: a path, a file that is open for binary reading, the bytes of a model, or a Graph, which is copied (constants
        are shared).
    options, sess_options: SessionOptions (two names for one parameter).
    providers: execution providers, names or (name, options) pairs or a dict of these; or one name; None = the CPU's.
        "cpu" stands for "CPUExecutionProvider", and so on. A node goes to the one that estimates the lowest cost; the
        order decides between equal ones, and who takes over where one fails.
    provider_options: a dict for each provider, or one for all by name.

    Raises
    ------
    ModelNotFoundError, InvalidModelError, UnsupportedFormatError, UnsupportedOperatorError, ValidationError,
    NotFoundError for a provider that there is not, InvalidArgumentError for options.
    """

    def __init__(self, model: Union[ModelSource, Graph], options: Optional[SessionOptions] = None,
                 providers: Optional[Providers] = None,
                 provider_options: Union[Sequence[Mapping[str, Any]], Mapping[str, Mapping[str, Any]], None] = None,
                 *, sess_options: Optional[SessionOptions] = None) -> None:
        if options is not None and sess_options is not None:
            raise InvalidArgumentError("options and sess_options are one parameter under two names; give one of them")
        self._source: Any = model if isinstance(model, Graph) else source_of(model)
        chosen = options if options is not None else sess_options
        if chosen is not None and not isinstance(chosen, SessionOptions):
            raise InvalidArgumentError(f"options of a session are SessionOptions, got {type(chosen).__name__}; providers "
                                       "are named by providers=[...]")
        self._options = chosen or SessionOptions()
        self._providers: Optional[List[Any]] = None if providers is None else [providers] if isinstance(
            providers, str) else list(providers.items() if isinstance(providers, Mapping) else providers)
        self._provider_options = provider_options
        self._handle = self._create(_load(self._source, self._options))
        if isinstance(self._source, Graph):
            self._source = None  # may be edited from now on
        self._describe()

    # ------------------------------------------------------------------ making one

    def _create(self, model: lib.Handle) -> lib.Handle:
        names, settings = _named_providers(self._providers, self._provider_options)
        native = self._options._native(names)
        for name, pairs in settings:
            for key, value in pairs.items():
                native.set(f"provider.{name}.{key}", str(value))
        extra = lib.texts(self._options.extra_outputs)
        samples, kept = _samples(self._options.samples)
        desc = _abi.SessionDesc(struct_size=ctypes.sizeof(_abi.SessionDesc), model=model.address,
                                options=native.address, extra_outputs=ctypes.cast(extra, ctypes.c_void_p),
                                extra_output_count=len(extra), samples=ctypes.cast(samples, ctypes.c_void_p),
                                sample_count=len(samples))
        made: lib.Handle = _interrupt.stoppable(native, lambda _: lib.make(
            lib.session.create, lib.session.release, lib.default_env().address, ctypes.byref(desc)))
        del kept  # what the description points into
        return made

    def _describe(self) -> None:
        session = self._handle.address
        assert session
        self._pointer = ctypes.c_void_p(session)
        self._inputs = ports(session, lib.session.input_count, lib.session.input_at)
        self._outputs = ports(session, lib.session.output_count, lib.session.output_at)
        self._input_index = {port.name: i for i, port in enumerate(self._inputs)}
        self._output_index = {port.name: i for i, port in enumerate(self._outputs)}
        # Outputs whose memory can be had before the run: (shape, NumPy dtype, ABI dtype).
        self._known: List[Optional[Tuple[Tuple[int, ...], Any, int]]] = []
        for port in self._outputs:
            dtype = FROM_ABI.get(port.dtype)
            fixed = port.kind == _abi.VALUE_TENSOR and port.dims is not None and all(d > 0 for d in port.dims)
            numpy = OWN_NUMPY.get(dtype) if dtype is not None and dtype != DType.String else None
            self._known.append((tuple(port.dims or ()), numpy, port.dtype) if fixed and numpy is not None else None)
        self._all_outputs = range(len(self._outputs))
        self._frames: List[_Frame] = []

    # ------------------------------------------------------------------ what it is

    def get_inputs(self) -> List[NodeArg]:
        """The inputs that a run must be fed; those with a default value are get_overridable_initializers'."""
        return [port.node_arg() for port in self._inputs if not port.has_initializer]

    def get_overridable_initializers(self) -> List[NodeArg]:
        """Inputs with a default value, which a run may be fed."""
        return [port.node_arg() for port in self._inputs if port.has_initializer]

    def get_outputs(self) -> List[NodeArg]:
        """The model's outputs, then SessionOptions.extra_outputs."""
        return [port.node_arg() for port in self._outputs]

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says of itself."""
        session = self._alive()
        return read_metadata(lib.session.model(session))

    def graph(self, optimized: bool = False) -> Graph:
        """A copy of the model's graph, as loaded; constants are shared.

        |optimized|: as the passes of the session's options leave it (``optimization_level``, ``skip_passes``, passes
        that were registered), written in standard operators.
        """
        session = self._alive()
        graph = graph_of_model(lib.session.model(session))
        if optimized:
            from .opt._manager import optimize_as_session
            optimize_as_session(graph, self._options, self.get_providers())
        return graph

    def get_initializer(self, name: str, optimized: bool = False) -> Union[Tensor, SparseTensor]:
        """A constant of the model by name, not copied and not to be written; |optimized| as in ``graph``.

        NotFoundError when there is none of the name, which optimisation may bring about.
        """
        return self.graph(optimized).initializer(name)

    def get_providers(self) -> List[str]:
        """The execution providers in use, in the order of ``providers``."""
        session = self._alive()
        return [lib.read(lib.session.provider_at(session, i)) for i in range(lib.session.provider_count(session))]

    def provider_states(self) -> List[ProviderState]:
        """Every provider that was asked for, also those that did not open, and what became of it. Runs on other threads
        may change it."""
        return provider_states(self._alive())

    def readmit(self, provider: str) -> None:
        """Takes a provider that was set aside after a failure into use again: its device is opened and the graph planned
        anew, while runs go on as before. Nothing is done where it is in use.

        NotFoundError when the session was made without it; what opening and planning say, and it stays aside.
        """
        lib.check(lib.session.readmit(self._alive(), lib.text(provider)))

    def statistics(self) -> Dict[str, int]:
        """What runs have done so far: runs, failures, plans (made for shapes that were not seen before, or were forgotten),
        planning_ns, the nanoseconds that this took, and in_parts, the runs that were done in parts for want of memory."""
        out = _abi.SessionStatistics(struct_size=ctypes.sizeof(_abi.SessionStatistics))
        lib.check(lib.session.statistics(self._alive(), ctypes.byref(out)))
        return {name: int(getattr(out, name)) for name in ("runs", "failures", "plans", "planning_ns", "in_parts")}

    def memory_report(self) -> MemoryReport:
        """What the session takes, in bytes."""
        return memory_report(self._alive())

    def trim(self) -> int:
        """Gives idle blocks back, and returns how many bytes this was; the next run takes memory again."""
        return trimmed(lib.session.trim, self._alive())

    def phase(self) -> str:
        """Where the session stands: "Initializing", "Ready", "Executing", "InitError", "RuntimeError", "MemoryError",
        "DeviceError", "Recovering", "MemoryRecovery", "DeviceRecovery", "FatalError" (the last run failed; the next that
        succeeds ends it) or "Cleanup". Runs on other threads change it."""
        return phase_of(self._alive())

    def get_session_options(self) -> SessionOptions:
        """The options that the session was made with; changing them changes nothing."""
        return self._options

    def explain(self) -> List[Dict[str, Any]]:
        """The steps of a run in order: nodes, ops, provider, kernel, bytes, flops, times in nanoseconds, and why.
        "tuning" is how the work is divided, where it was tuned, as "band=28 positions=512 gain=1.12 measured=9": names are
        the kernel's, gain is the default's time by this one's, measured counts the forms that were measured for this plan.

        The steps are those of the last run's shapes; the list is empty before the first run of a model whose shapes
        may vary.
        """
        handle = lib.make(lib.session.explain, lib.report.release, self._alive())
        row, rows = _abi.ReportRow(struct_size=ctypes.sizeof(_abi.ReportRow)), []
        for i in range(lib.report.row_count(handle.address)):
            lib.check(lib.report.row_at(handle.address, i, ctypes.byref(row)))
            texts = {name: lib.read(getattr(row, name)) for name in (
                "nodes", "ops", "provider", "kernel", "reason", "refused", "tuning")}
            rows.append({**texts, "bytes": row.bytes, "flops": row.flops, "estimated_ns": row.estimated_ns,
                         "measured_ns": row.measured_ns, "started_ns": row.started_ns, "lane": row.lane})
        return rows

    def notes(self) -> List[str]:
        """What else there is to say of how the graph is run, a sentence each: passes and precisions, memory, whether it
        came out of the cache of compiled models."""
        handle = lib.make(lib.session.explain, lib.report.release, self._alive())
        count = lib.report.note_count(handle.address)
        return [lib.read(lib.report.note_at(handle.address, i)) for i in range(count)]

    def counters(self) -> List[Dict[str, Any]]:
        """Figures that devices counted by themselves in the last run: first_step and step_count, which say of which steps
        of explain(), provider, name, unit and value."""
        handle = lib.make(lib.session.explain, lib.report.release, self._alive())
        row, rows = _abi.ReportCounter(struct_size=ctypes.sizeof(_abi.ReportCounter)), []
        for i in range(lib.report.counter_count(handle.address)):
            lib.check(lib.report.counter_at(handle.address, i, ctypes.byref(row)))
            texts = {name: lib.read(getattr(row, name)) for name in ("provider", "name", "unit")}
            rows.append({"first_step": row.first_row, "step_count": row.row_count, **texts, "value": row.value})
        return rows

    def end_profiling(self) -> str:
        """Writes the profile that ``SessionOptions.enable_profiling`` opened and closes it; returns the file's path, the
        same again when it is called again, and "" without a profile.

        The file is an object whose "traceEvents" ui.perfetto.dev draws, of the Trace Event format; times are in
        microseconds. Events with "ph" "X" last "dur": runs are named "model_run", with their tag among "args"; steps have
        "cat" "Node" and "op_name", "provider", "kernel", "bytes" and "flops" among "args"; stages of loading the model,
        making the session and planning have "cat" "Session". "C" are memory, threads at work and runs under way over
        time, "b" and "e" the wait of an asynchronous run. Any thread may call this; what runs under way have not done is
        missing.

        Raises PyFlameRTError where it cannot be written, and the profile stays open.
        """
        path = _abi.String()
        lib.check(lib.session.end_profiling(self._alive(), ctypes.byref(path)))
        return lib.read(path)

    def get_profiling_start_time_ns(self) -> int:
        """When the profile began, in nanoseconds on the clock of ``time.monotonic_ns``; 0 = there is none."""
        return int(lib.session.profiling_start_ns(self._alive()))

    def _provider_of(self, device: str) -> str:
        """The name of the provider in use whose device has this word."""
        words = {word_of(name): name for name in self.get_providers()}
        if word_of(device) not in words:
            raise NotFoundError(f"the session uses no device '{device}'; it uses " + ", ".join(map(repr, words)))
        return words[word_of(device)]

    def _alive(self) -> lib.Handle:
        """What the library is given. Whoever holds it holds the library's session, also when this one is closed."""
        handle = self._handle
        if not handle.address:
            raise PyFlameRTError("the session is closed")
        return handle

    def close(self) -> None:
        """Lets the model go now, not when the object goes. Runs that are under way end as if nothing happened."""
        self._handle = lib.Handle(0, None)

    def __enter__(self) -> "InferenceSession":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __getstate__(self) -> Dict[str, Any]:
        return {"source": self.graph() if self._source is None else self._source, "options": self._options,
                "providers": self._providers,
                "provider_options": self._provider_options}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__init__(state["source"], state["options"], state["providers"],  # type: ignore[misc]
                      state["provider_options"])

    def __repr__(self) -> str:
        def side(args: List[NodeArg]) -> str:
            return ", ".join(f"{a.name}: {_shape_text(a)} {a.type}" for a in args)
        what = f"<{len(self._source)} bytes>" if isinstance(self._source, bytes) else repr(
            self._source or self.get_modelmeta().graph_name)
        return f"InferenceSession({what}: {side(self.get_inputs())} -> {side(self.get_outputs())})"

    def _repr_html_(self) -> str:
        rows = []
        for kind, args in (("input", self.get_inputs()), ("output", self.get_outputs())):
            for arg in args:
                cells = (kind, arg.name, _shape_text(arg), arg.type)
                rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
        return (f"<p>InferenceSession on {html.escape(', '.join(self.get_providers()))}</p><table><tr><th></th><th>name"
                f"</th><th>shape</th><th>type</th></tr>{''.join(rows)}</table>")

    # ------------------------------------------------------------------ running it

    def run(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
            run_options: Optional[RunOptions] = None) -> List[Any]:
        """Runs the model once.

        Parameters
        ----------
        output_names: the outputs wanted, in any order; None or [] = all.
        input_feed: a value for each input by name: an array or Tensor (not copied when it is row-major), for other
            kinds of values a list (sequence), a dict (map) or None (empty optional). Anything that NumPy makes arrays
            of will do.
        run_options: RunOptions.

        Returns the outputs in the order wanted: arrays, lists, dicts. They are the caller's.

        Raises InputError for a name that is missing or unknown, ShapeMismatchError, DTypeMismatchError, and what the
        providers report.
        """
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = _Frame(len(self._inputs), len(self._outputs))
        handle = self._alive()
        try:
            # Alive until the run is over.
            kept = self._feed(frame, input_feed, None if run_options is None else run_options._options.state)
            made, wanted = self._prepare(frame, output_names)
            if frame.quick:
                status = _run(self._pointer, frame.inputs, frame.input_count, frame.outputs, frame.output_count,
                              None if run_options is None else ctypes.c_void_p(run_options._options.address))
            else:
                status = self._run_watched(frame, kept, run_options)
            if status:
                self._fail(status, kept, run_options)
            del kept, handle  # which stayed alive for as long as the library used them
            results = self._collect(frame.out_words, made, wanted)
        except BaseException:
            # Ctrl-C may have come in the midst of filling it in: no later run gets it.
            frame.discard()
            raise
        self._frames.append(frame)
        return results

    def _run_watched(self, frame: _Frame, fed: List[Any], run_options: Optional[RunOptions]) -> Any:
        """A run that Ctrl-C stops, which costs a few system calls."""
        began = time.perf_counter()
        status = _interrupt.stoppable(
            None if run_options is None else run_options._options,
            lambda options: _run(self._pointer, frame.inputs, frame.input_count, frame.outputs, frame.output_count,
                                 ctypes.c_void_p(options)))
        # A few integers may be how often a loop goes round, or a shape.
        frame.quick = time.perf_counter() - began < _QUICK and all(
            type(array) is np.ndarray and (array.dtype.kind not in "iu" or array.size > _FEW) for array in fed)
        return status

    __call__ = run

    def _fail(self, status: int, fed: List[Any], run_options: Optional[RunOptions]) -> None:
        """Raises what a run's status says; of an input that will not do, with what to give instead."""
        try:
            check_run(status, run_options)
        except (DTypeMismatchError, ShapeMismatchError):
            for port, value in zip(self._inputs, fed):
                check_tensor(port, value)
            raise

    def run_async(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any], callback: _async.Callback,
                  user_data: Any = None, run_options: Optional[RunOptions] = None) -> None:
        """Starts a run and returns; ``callback(results, user_data, error_text)`` is called once when it is over.

        ``results`` is what ``run`` returns and ``error_text`` is "", or the list is empty and the text says why. The
        callback is called on a thread of the package's, one after another; what it raises goes to
        ``threading.excepthook``. Arrays that are fed stay alive until the run is over and must not be written to
        meanwhile. Runs that are under way when the interpreter ends are cancelled, and their callbacks told so.

        Raises what ``run`` does when nothing could be started; the callback is then not called.
        """
        _async.run(self, output_names, input_feed, callback, user_data, run_options)

    def create_state(self, pairs: Union[Mapping[str, str], Iterable[Pair], None] = None) -> State:
        """What runs of this session leave for the next, for ``RunOptions(state=...)``.

        Parameters
        ----------
        pairs: which output of a run is which input of the next: ``{input: output}``, or (input, output) and, where the
            dimensions' names do not tell, the axis along which the value grows, or None where it is replaced. None: the
            names tell, as "past_0" and "present_0", "past_key_values.0.key" and "present.0.key", "h" and "h_out" or "hN"
            do.

        Until it is set or a run has left one, a value is of zeros, with nothing along the axis that it grows along.

        Raises NotFoundError for names that the session does not have, InvalidArgumentError for pairs that do not fit.
        """
        return create_state(self._alive(), pairs)

    def io_binding(self) -> IOBinding:
        """Inputs and outputs of this session to be bound once for many runs."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Optional[RunOptions] = None) -> None:
        """Runs the model on what is bound; makes those outputs that are bound. Raises what ``run`` does."""
        iobinding._run(self, run_options)

    def run_with_ort_values(self, output_names: Optional[Sequence[str]], input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: Optional[RunOptions] = None) -> List[OrtValue]:
        """As ``run``, from OrtValues to OrtValues."""
        return run_values(self, output_names, input_dict_ort_values, run_options)

    def _take_frame(self) -> _Frame:
        try:
            return self._frames.pop()
        except IndexError:
            return _Frame(len(self._inputs), len(self._outputs))

    def _feed(self, frame: _Frame, feeds: Mapping[str, Any], state: Optional[State] = None) -> List[Any]:
        """Fills in the inputs but for the state's; what it returns has to stay until the run is over."""
        frame.lent = () if state is None else state._inputs
        kept: List[Any] = []
        words, shapes, dtypes = frame.in_words, frame.shapes, frame.dtypes
        try:
            get = feeds.get
        except AttributeError:
            raise InputError(f"input_feed is a dict with a value for each input by name, got {type(feeds).__name__}; "
                             "the model takes " + ", ".join(f"'{name}'" for name in self._input_index)) from None
        i, missing = 0, 0
        for name in self._input_index:
            what = get(name, _MISSING)
            if (type(what) is np.ndarray and what.dtype is dtypes[i] and what.shape == shapes[i] and
                    (what.flags.carray or what.flags.c_contiguous and what.flags.aligned)):
                try:
                    words[i * _WORDS + _DATA] = _addressof(_buffer_of(what))
                except (TypeError, ValueError, BufferError):  # read-only, or without elements
                    words[i * _WORDS + _DATA] = address_of(what)
            else:
                missing += what is _MISSING
                what = self._feed_one(frame, i, what, feeds)
            kept.append(what)
            i += 1
        if i - missing != len(feeds):
            raise InputError(self._feed_fault(feeds, frame.lent))
        return kept

    def _feed_one(self, frame: _Frame, i: int, what: Any, feeds: Mapping[str, Any]) -> Any:
        """An input that is not as it was in the frame's last run."""
        port, words, at = self._inputs[i], frame.in_words, i * _WORDS
        frame.dtypes[i], frame.quick = None, False
        words[at + _VALUE] = 0
        if what is _MISSING:
            if not port.has_initializer and port.name not in frame.lent:
                raise InputError(self._feed_fault(feeds, frame.lent))
            words[at + _DTYPE] = TENSOR_SIZE
            return None
        if type(what) is not np.ndarray or what.dtype not in ABI_OF_NUMPY:
            what, value = self._convert(port, what)
            if value is not None:
                words[at + _VALUE] = value.address or 0
                return value
            if isinstance(what, Tensor):
                memory = what.memory()
                frame.dims[i] = _put(words, at, TO_ABI[what.dtype], tuple(what.shape), memory.nbytes)
                words[at + _DATA] = address_of(memory)
                return what
        what = plain(what)
        frame.dims[i] = _put(words, at, ABI_OF_NUMPY[what.dtype], what.shape, what.nbytes)
        frame.shapes[i], frame.dtypes[i] = what.shape, what.dtype
        words[at + _DATA] = address_of(what)
        return what

    def _convert(self, port: Any, what: Any) -> Tuple[Any, Optional[lib.Handle]]:
        """An array or, of bytes that only their Tensor tells the type of, a Tensor to view; or a value of the library's."""
        if isinstance(what, OrtValue):
            if what._handle is not None:
                return None, what._handle
            what = what._host
        if isinstance(what, Tensor):
            if what.dtype != DType.String:
                return plain(what.memory()) if what.dtype in OWN_NUMPY else what, None
            what = what.memory()
        if port.kind not in (_abi.VALUE_TENSOR, _abi.VALUE_UNSET):
            return None, value_of(what, port.name, FROM_ABI.get(port.dtype), FROM_ABI.get(port.key_dtype))
        dtype = FROM_ABI.get(port.dtype)
        if dtype is not None:
            what = number_array(what, dtype, port.name)
        array = as_array(what, port.name)
        if array.dtype.kind in "OUS":
            return None, string_tensor(array, port.name)
        return array if array.dtype in ABI_OF_NUMPY else from_numpy(array), None

    def _feed_fault(self, feeds: Mapping[str, Any], lent: Container[str]) -> str:
        names = [port.name for port in self._inputs]
        missing = [port.name for port in self._inputs
                   if not port.has_initializer and port.name not in feeds and port.name not in lent]
        unknown = [str(name) for name in feeds if name not in self._input_index]
        faults = []
        if missing:
            faults.append("missing: " + ", ".join(f"'{name}'" for name in missing))
        if unknown:
            faults.append("unknown: " + ", ".join(f"'{name}'" for name in unknown))
        return f"inputs of a run are {'; '.join(faults)}; the model takes " + ", ".join(f"'{n}'" for n in names)

    def _prepare(self, frame: _Frame, names: Optional[Sequence[str]]) -> Tuple[List[Any], Sequence[int]]:
        """Says where outputs go: into arrays made beforehand where their shape is known."""
        if names != frame.names:
            self._choose(frame, names)
        words = frame.out_words
        made: List[Any] = [None] * len(self._outputs)
        try:
            for i, at, shape, dtype in frame.allocated:
                made[i] = array = _empty(shape, dtype)
                words[at] = _addressof(_buffer_of(array))
        except (MemoryError, ValueError) as fault:  # NumPy has a largest size of its own
            raise OutOfMemoryError(f"running: no memory for output '{self._outputs[i].name}' of shape {list(shape)}: "
                                   f"{fault}; feed smaller inputs or ask for fewer outputs") from fault
        return made, frame.wanted

    def _choose(self, frame: _Frame, names: Optional[Sequence[str]]) -> None:
        """Has the frame's runs make other outputs than it did."""
        frame.quick = False
        wanted: Sequence[int] = self._all_outputs
        if names:
            try:
                wanted = [self._output_index[name] for name in names]
            except (KeyError, TypeError):
                given = ", ".join(f"'{port.name}'" for port in self._outputs)
                if isinstance(names, str) or not isinstance(names, Iterable):
                    raise InputError(f"output_names is a list of names, got {names!r}; the model gives "
                                     f"{given}") from None
                unknown = next(name for name in names if name not in list(self._output_index))
                raise InputError(f"output {unknown!r} is none of the model's: {given}") from None
        frame.names, frame.wanted = list(names) if names else names, wanted
        frame.allocated = []
        for i in self._all_outputs:
            known, at = self._known[i], i * _WORDS
            frame.out_words[at + _FLAGS] = 0 if i in wanted else _abi.IO_SKIP
            if known is not None and i in wanted:
                frame.allocated.append((i, at + _DATA, known[0], known[1]))
                size = int(np.prod(known[0], dtype=np.int64)) * known[1].itemsize
                frame.dims[len(self._inputs) + i] = _put(frame.out_words, at, known[2], known[0], size)

    def _collect(self, words: Any, made: List[Any], wanted: Sequence[int]) -> List[Any]:
        for i, array in enumerate(made):
            if array is None:
                value = words[i * _WORDS + _VALUE]
                if value:
                    words[i * _WORDS + _VALUE] = 0
                    made[i] = taken(value)
        return made if wanted is self._all_outputs else [made[i] for i in wanted]


def _load(source: Any, options: SessionOptions) -> lib.Handle:
    if isinstance(source, Graph):
        return model_of_graph(source)
    call = LoadCall(cache_dir=os.fspath(options.cache_dir)) if options.cache_dir else None
    return model_of_bytes(source, call) if isinstance(source, bytes) else model_of_file(source, call)


def _samples(samples: Sequence[Mapping[str, Any]]) -> Tuple[Any, List[Any]]:
    """The library's form of samples, and what has to stay while it is read."""
    out: Any = (_abi.Sample * len(samples))()
    kept: List[Any] = []
    for at, sample in zip(out, samples):
        if not isinstance(sample, Mapping):
            raise InputError(f"a sample is a dict with a value for each input by name, got {type(sample).__name__}")
        values = [value_of(value, name) for name, value in sample.items()]
        names = lib.texts(sample)
        addresses = (ctypes.c_void_p * len(values))(*(value.address for value in values))
        at.names, at.values = ctypes.cast(names, ctypes.c_void_p), ctypes.cast(addresses, ctypes.c_void_p)
        at.struct_size, at.count = ctypes.sizeof(_abi.Sample), len(values)
        kept += [values, names, addresses]
    return out, kept


def _named_providers(providers: Optional[Sequence[Any]],
                     options: Any) -> Tuple[List[str], List[Tuple[str, Mapping[str, Any]]]]:
    """The names to list, and options by the names that they are given for."""
    names: List[str] = []
    settings: List[Tuple[str, Mapping[str, Any]]] = []
    for one in providers or []:
        name, own = one if isinstance(one, (tuple, list)) and len(one) == 2 else (one, None)
        if not isinstance(name, str) or not (own is None or isinstance(own, Mapping)):
            raise InvalidArgumentError(f"providers has {one!r}; its elements are names, as 'CPUExecutionProvider', or "
                                       "(name, options) pairs")
        names.append(name)
        settings.append((name, own or {}))
    if isinstance(options, Mapping):
        by_word = {word_of(name): name for name in names}
        for name, given in options.items():
            if word_of(name) not in by_word:
                raise InvalidArgumentError(f"provider_options name {name!r}, which is not among the providers")
            settings.append((by_word[word_of(name)], given or {}))
    elif options is not None:
        if len(options) != len(names):
            raise InvalidArgumentError(f"{len(options)} provider_options for {len(names)} providers; give one for each")
        settings += [(name, given or {}) for name, given in zip(names, options)]
    return names, settings

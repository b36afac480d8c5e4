# SPDX-License-Identifier: Apache-2.0
"""Sessions: models ready to run."""
from __future__ import annotations

import ctypes
import os
import time
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union, overload

import numpy as np

from .._core import abi, interrupt, library as lib, shutdown
from .._core.errors import DTypeMismatchError, InputError, InvalidArgumentError, ShapeMismatchError
from .._core.progress import ProgressCall, ProgressLine
from .._graph.graph import Graph, graph_of_model
from .._graph.model import LoadCall, model_of_bytes, model_of_file, model_of_graph
from .._graph.source import ModelSource, source_of
from .._graph.text import shape_text
from .._values.info import NodeArg
from .._values.memory import SparseTensor
from .._values.strings import StringTensor
from .._values.tensor import Tensor
from .._values.value import check_tensor, value_of
from .async_runs import Callback, awaited_run, run_async
from .binding import IOBinding, run_values
from .feeding import FeedingSession, Frame
from .ort_value import OrtValue
from .providers import ProviderState, provider_states, word_of
from .run_options import GivenRunOptions, RunOptions, check_run, given_options
from .session_calls import SourceCall, samples_in_c, set_log
from .session_options import SessionOptions
from .state import Pair, State, create_state

if TYPE_CHECKING:  # loaded by the methods that need them: most programs call none of these
    import asyncio

    from .._graph.model_info import ModelMetadata
    from .memory_report import MemoryReport

# Without argument types, which would be looked at in every call: all that is passed has to be of ctypes or None.
_run = ctypes.CFUNCTYPE(ctypes.c_void_p)(lib.session.address_of("run"))
_QUICK, _FEW = 0.001, 16  # seconds of a run, elements of a tensor
_ProviderOptions = Optional[Mapping[str, Any]]
Providers = Union[str, Sequence[Union[str, Tuple[str, _ProviderOptions]]], Mapping[str, _ProviderOptions]]


def _count_runs() -> None:
    global _run
    _run = lib.session.run


shutdown.when_counting(_count_runs)


class InferenceSession(FeedingSession):
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
        self._hold(self._create(_load(self._source, self._options)))
        if isinstance(self._source, Graph):
            self._source = None  # may be edited from now on

    # ------------------------------------------------------------------ making one

    def _create(self, model: lib.Handle) -> lib.Handle:
        names, settings = _named_providers(self._providers, self._provider_options)
        native = self._options._native(names)
        for name, pairs in settings:
            for key, value in pairs.items():
                native.set(f"provider.{name}.{key}", str(value))
        extra = lib.texts(self._options.extra_outputs)
        samples, kept = samples_in_c(self._options.samples)
        desc = abi.SessionDesc(struct_size=ctypes.sizeof(abi.SessionDesc), model=model.address,
                               options=native.address, extra_outputs=ctypes.cast(extra, ctypes.c_void_p),
                               extra_output_count=len(extra), samples=ctypes.cast(samples, ctypes.c_void_p),
                               sample_count=len(samples))
        source = SourceCall(self._options.sample_source)
        set_log(desc, self._options.logger)

        def create(_: Optional[int]) -> lib.Handle:
            return lib.make(lib.session.create, lib.session.release, lib.default_env().address, ctypes.byref(desc))

        def work(_: Optional[int]) -> lib.Handle:
            made: lib.Handle = source(desc, lambda: interrupt.stoppable(native, create))
            return made

        progress, line = self._options.progress, ProgressLine()
        if progress is None and self._options.precision == "auto" and line.can_be_seen():
            progress = line  # many sessions are made and measured
        try:
            session = ProgressCall(native, progress)(work)
        finally:
            line.clear()
        del kept  # what the description points into
        return session

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
        """The model's description of itself."""
        from .._graph.model_info import read_metadata
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
            options = self._options
            from ..opt._manager import optimize_as_session  # few programs need it
            optimize_as_session(graph, options.optimization_level, options.skip_passes, options.verify,
                                options.extra_outputs, self.get_providers())
        return graph

    def get_initializer(self, name: str, optimized: bool = False) -> Union[Tensor, SparseTensor]:
        """A constant of the model by name, not copied and not to be written; |optimized| as in ``graph``.

        NotFoundError when there is none of the name, which optimisation may bring about.
        """
        return self.graph(optimized).initializer(name)

    def provider_states(self) -> List[ProviderState]:
        """Every provider that was asked for, also those that did not open, and what became of it. Runs on other threads
        may change it."""
        return provider_states(self._alive())

    def readmit(self, provider: str, run_options: GivenRunOptions = None) -> None:
        """Takes a provider that was set aside after a failure into use again: its device is opened and the graph planned
        anew, while runs go on as before. Nothing is done where it is in use.

        NotFoundError when the session was made without it; what opening and planning say, and it stays aside. So it does
        when |run_options| stop it, by ``timeout_ms`` (TimeoutError) or ``cancel()`` (CancelledError).
        """
        session = self._alive()
        options = given_options(run_options)
        lib.check(interrupt.stoppable(None if options is None else options._options,
                                      lambda options: lib.session.readmit(session, lib.text(provider), options)))

    def statistics(self) -> Dict[str, int]:
        """Figures of the runs so far: runs, failures, plans (made for shapes that were not seen before, or were
        forgotten), planning_ns, the nanoseconds that this took, and in_parts, the runs that were done in parts for want
        of memory."""
        out = abi.SessionStatistics(struct_size=ctypes.sizeof(abi.SessionStatistics))
        lib.check(lib.session.statistics(self._alive(), ctypes.byref(out)))
        return {name: int(getattr(out, name)) for name in ("runs", "failures", "plans", "planning_ns", "in_parts")}

    def memory_report(self) -> MemoryReport:
        """The memory that the session takes, in bytes."""
        from .memory_report import memory_report
        return memory_report(self._alive())

    def trim(self) -> int:
        """Gives idle blocks back, and returns how many bytes this was; the next run takes memory again."""
        from .memory_report import trimmed
        return trimmed(lib.session.trim, self._alive())

    def phase(self) -> str:
        """The session's phase: "Initializing", "Ready", "Executing", "InitError", "RuntimeError", "MemoryError",
        "DeviceError", "Recovering", "MemoryRecovery", "DeviceRecovery", "FatalError" (the last run failed; the next that
        succeeds ends it) or "Cleanup". Runs on other threads change it."""
        from .memory_report import phase_of
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
        row, rows = abi.ReportRow(struct_size=ctypes.sizeof(abi.ReportRow)), []
        for i in range(lib.report.row_count(handle.address)):
            lib.check(lib.report.row_at(handle.address, i, ctypes.byref(row)))
            texts = {name: lib.read(getattr(row, name)) for name in (
                "nodes", "ops", "provider", "kernel", "reason", "refused", "tuning")}
            rows.append({**texts, "bytes": row.bytes, "flops": row.flops, "estimated_ns": row.estimated_ns,
                         "measured_ns": row.measured_ns, "started_ns": row.started_ns, "lane": row.lane})
        return rows

    def notes(self) -> List[str]:
        """Notes on how the graph is run besides, a sentence each: passes and precisions, memory, whether it came out of
        the cache of compiled models."""
        handle = lib.make(lib.session.explain, lib.report.release, self._alive())
        count = lib.report.note_count(handle.address)
        return [lib.read(lib.report.note_at(handle.address, i)) for i in range(count)]

    def counters(self) -> List[Dict[str, Any]]:
        """Figures that devices counted by themselves in the last run: first_step and step_count, which say of which steps
        of explain(), provider, name, unit and value."""
        handle = lib.make(lib.session.explain, lib.report.release, self._alive())
        row, rows = abi.ReportCounter(struct_size=ctypes.sizeof(abi.ReportCounter)), []
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
        path = abi.String()
        lib.check(lib.session.end_profiling(self._alive(), ctypes.byref(path)))
        return lib.read(path)

    def get_profiling_start_time_ns(self) -> int:
        """The start of the profile, in nanoseconds on the clock of ``time.monotonic_ns``; 0 = there is none."""
        return int(lib.session.profiling_start_ns(self._alive()))

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
            return ", ".join(f"{a.name}: {shape_text(a)} {a.type}" for a in args)
        what = f"<{len(self._source)} bytes>" if isinstance(self._source, bytes) else repr(
            self._source or self.get_modelmeta().graph_name)
        return f"InferenceSession({what}: {side(self.get_inputs())} -> {side(self.get_outputs())})"

    def _repr_html_(self) -> str:
        import html
        rows = []
        for kind, args in (("input", self.get_inputs()), ("output", self.get_outputs())):
            for arg in args:
                cells = (kind, arg.name, shape_text(arg), arg.type)
                rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
        return (f"<p>InferenceSession on {html.escape(', '.join(self.get_providers()))}</p><table><tr><th></th><th>name"
                f"</th><th>shape</th><th>type</th></tr>{''.join(rows)}</table>")

    # ------------------------------------------------------------------ running it

    def run(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
            run_options: GivenRunOptions = None) -> List[Any]:
        """Runs the model once.

        Parameters
        ----------
        output_names: the outputs wanted, in any order; None or [] = all.
        input_feed: a value for each input by name: an array or Tensor (not copied when it is row-major), for other
            kinds of values a list (sequence), a dict (map) or None (empty optional). Anything that NumPy makes arrays
            of will do.
        run_options: RunOptions, or a dict of them.

        Returns the outputs in the order wanted: arrays, lists, dicts. They are the caller's.

        Raises InputError for a name that is missing or unknown, ShapeMismatchError, DTypeMismatchError, and what the
        providers report.
        """
        if run_options is not None:
            run_options = given_options(run_options)
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = Frame(len(self._inputs), len(self._outputs))
        handle = self._alive()
        try:
            # Alive until the run is over.
            kept = self._feed(frame, input_feed, None if run_options is None else run_options._options.state)
            made, wanted = self._prepare(frame, output_names)
            if frame.quick:
                status = _run(self._pointer, frame.inputs, frame.input_count, frame.outputs, frame.output_count,
                              None if run_options is None else run_options._options.pointer)
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

    def _run_watched(self, frame: Frame, fed: List[Any], run_options: Optional[RunOptions]) -> Any:
        """A run that Ctrl-C stops, which costs a few system calls."""
        began = time.perf_counter()
        status = interrupt.stoppable(
            None if run_options is None else run_options._options,
            lambda options: _run(self._pointer, frame.inputs, frame.input_count, frame.outputs, frame.output_count,
                                 ctypes.c_void_p(options)))
        # A few integers may be how often a loop goes round, or a shape.
        frame.quick = time.perf_counter() - began < _QUICK and all(
            type(array) is np.ndarray and (array.dtype.kind not in "iu" or array.size > _FEW) or
            type(array) is StringTensor for array in fed)
        return status

    __call__ = run

    def _fail(self, status: int, fed: List[Any], run_options: Optional[RunOptions]) -> None:
        """Raises what a run's status says; of an input that will not do, with what to give instead."""
        try:
            check_run(status, run_options)
        except (DTypeMismatchError, ShapeMismatchError):
            self._check_tensors(fed)
            raise

    def _check_tensors(self, fed: List[Any]) -> None:
        for port, value in zip(self._inputs, fed):
            check_tensor(port, value)

    @overload
    def run_async(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any], callback: Callback,
                  user_data: Any = None, run_options: GivenRunOptions = None) -> None: ...

    @overload
    def run_async(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any], callback: None = None,
                  user_data: None = None, run_options: GivenRunOptions = None) -> "asyncio.Future[List[Any]]": ...

    def run_async(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
                  callback: Optional[Callback] = None, user_data: Any = None,
                  run_options: GivenRunOptions = None) -> "Optional[asyncio.Future[List[Any]]]":
        """Starts a run and returns; ``callback(results, user_data, error_text)`` is called once when it is over.

        >>> (y,) = await session.run_async(None, feeds)

        Without a callback what it returns is awaited, in a coroutine, for what ``run`` returns or raises. To cancel it
        stops the run, and others that were given the same ``run_options``.

        ``results`` is what ``run`` returns and ``error_text`` is "", or the list is empty and the text says why. The
        callback is called on a thread of the package's, one after another; what it raises goes to
        ``threading.excepthook``. Arrays that are fed stay alive until the run is over and must not be written to
        meanwhile. Runs that are under way when the interpreter ends are cancelled, and their callbacks told so.

        Raises what ``run`` does when nothing could be started; the callback is then not called.
        """
        options = given_options(run_options)
        if callback is None:
            return awaited_run(self, output_names, input_feed, options, self._check_tensors)
        run_async(self, output_names, input_feed, callback, user_data, options)
        return None

    def create_state(self, pairs: Union[Mapping[str, str], Iterable[Pair], None] = None) -> State:
        """A state, which keeps what runs of this session leave for the next, for ``RunOptions(state=...)``.

        Parameters
        ----------
        pairs: which output of a run is which input of the next: ``{input: output}``, or (input, output) and, where the
            dimensions' names do not tell, the axis along which the value grows, None where it is replaced, or "in_place"
            for a cache with room for the longest sequence, which runs write into where it is. A fourth part says how
            much room there is: a length along the axis, whose memory is then had at once, and for "in_place"
            (axis, length), as long as which the cache is made. None: the names tell, as "past_0" and "present_0",
            "past_key_values.0.key" and "present.0.key", "h" and "h_out" or "hN" do.

        Until it is set or a run has left one, a value is of zeros, with nothing along the axis that it grows along.

        Raises NotFoundError for names that the session does not have, InvalidArgumentError for pairs that do not fit.
        """
        return create_state(self._alive(), pairs)

    def io_binding(self) -> IOBinding:
        """Inputs and outputs of this session to be bound once for many runs."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: GivenRunOptions = None) -> None:
        """Runs the model on what is bound; makes those outputs that are bound. Raises what ``run`` does."""
        iobinding._run(self, given_options(run_options))

    def run_with_ort_values(self, output_names: Optional[Sequence[str]], input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: GivenRunOptions = None) -> List[OrtValue]:
        """Does what ``run`` does, from OrtValues to OrtValues."""
        return run_values(self.io_binding(), output_names, input_dict_ort_values, given_options(run_options))



def _load(source: Any, options: SessionOptions) -> lib.Handle:
    if isinstance(source, Graph):
        return model_of_graph(source)
    call = LoadCall(cache_dir=os.fspath(options.cache_dir)) if options.cache_dir else None
    return model_of_bytes(source, call) if isinstance(source, bytes) else model_of_file(source, call)


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

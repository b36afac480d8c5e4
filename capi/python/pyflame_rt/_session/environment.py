# SPDX-License-Identifier: Apache-2.0
"""The environment: what there is to run models with, the search for plug-ins, and where log lines go."""
from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from .._core import abi, library as lib
from .._core.errors import InvalidArgumentError
from .._core.log_lines import Logger, set_logger
from .._core.options import LogLevel, NativeOptions
from .ask import Answer, ask
from .memory_report import trimmed

_TYPES = {abi.OPTION_BOOL: "bool", abi.OPTION_INT: "int", abi.OPTION_FLOAT: "float", abi.OPTION_STRING: "string",
          abi.OPTION_STRINGS: "strings"}


@dataclass
class PluginInfo:
    """The file ``path`` in the plug-in folders, which brings ``name``, of the plug-in's own ``version``.

    ``loaded`` when it was accepted; ``abi_major`` and ``abi_minor`` are what it was built with. ``kind`` is
    "provider", "import", "ops", "pass", "service" or "executor", or another word where the file was rejected for it.
    """

    kind: str
    name: str
    path: str
    version: str
    reason: str  # why it was rejected, or ""
    loaded: bool
    abi_major: int
    abi_minor: int


@dataclass
class ProviderInfo:
    """The execution provider ``name``; ``available`` when its plug-in can be opened."""

    name: str
    devices: List[str]  # their words, as in SessionOptions.device
    path: str  # of its plug-in; "" for one that the program registered
    reason: str  # why it is not available, or ""
    available: bool


@dataclass
class ProviderOption:
    """An option that a provider adds to ``SessionOptions.extra``, an importer to the ``options`` of ``load_model``, or that
    a service takes.

    ``default_value`` is text, ``doc`` a sentence.
    """

    key: str  # as it is given there
    type: str  # "bool", "int", "float", "string" or "strings"
    default_value: str
    choices: List[str]  # empty: any
    doc: str


@dataclass
class KernelInfo:
    """The row ``name`` of a provider's kernel table: operator ``op`` of ``domain``, for element ``types``, on ``isa``.

    ``since`` and ``until`` are opsets; ``until`` 0: still current.
    """

    op: str
    domain: str
    types: str
    name: str
    isa: str
    since: int
    until: int


@dataclass
class OperatorInfo:
    """Operator ``op`` of ``domain``, which models may use from opset ``since`` to ``until``; 0: still current.

    Registered operators are listed once for each version and each list of ``types``.
    """

    op: str
    domain: str
    runs_in: str  # "provider" or "host"
    note: str  # what was followed where the standard and its implementations differ, or ""
    types: str  # element types that a registered operator is for, "float32, any -> bool"; "" = any
    since: int
    until: int


def _plugin(row: Any) -> PluginInfo:
    return PluginInfo(**_texts(row, "kind", "name", "path", "version", "reason"), loaded=bool(row.loaded),
                      abi_major=row.abi_major, abi_minor=row.abi_minor)


def option_of(row: Any) -> ProviderOption:
    """A row of the library's list of options."""
    return ProviderOption(**_texts(row, "key", "default_value", "doc"), type=_TYPES.get(row.type, ""),
                          choices=lib.read(row.choices).split())


class Environment:
    """The environment that sessions of the process share. It is made when it is first needed and never ends.

    >>> for plugin in Environment.instance().plugins():
    ...     print(plugin.path, plugin.reason or "loaded")
    """

    _the: Optional["Environment"] = None

    def __init__(self) -> None:
        raise InvalidArgumentError("there is one environment a process: Environment.instance() gives it")

    @classmethod
    def instance(cls, *, plugin_path: str = "", log_level: Optional[LogLevel] = None, num_threads: int = 0,
                 executor: str = "", extra: Optional[Mapping[str, str]] = None) -> "Environment":
        """The one of the process.

        Parameters, for the call that makes it, before the first session, model or graph file
        ----------
        plugin_path: folders, separated by colons, that are searched before those of PFRT_PLUGIN_PATH.
        log_level: "debug", "info", "warning", "error" or "off"; None = "warning".
        num_threads: threads that runs may use unless their session says otherwise; 0 = as many as the process may use.
        executor: whose threads loops of runs use; "" or "pool" = the library's own, "tbb" = oneTBB's, in the arena of the
        calling thread, for processes whose other parts are built on oneTBB. Another word is that of a plug-in of kind
        executor; NotFoundError where there is none of it.
        extra: further options by the keys of the library's schema, as text: ``memory_limit``, ``memory_pressure``,
        ``memory_idle_s`` and others.

        InvalidArgumentError for options that come too late or are not there.
        """
        if plugin_path or log_level is not None or num_threads or executor or extra:
            options = NativeOptions(abi.OPTIONS_ENV)
            given = {"plugin_path": plugin_path, "log_level": log_level, "threads": num_threads, "executor": executor}
            for key, value in {**{k: v for k, v in given.items() if v}, **(extra or {})}.items():
                options.set(key, value)
            if not lib.begin_env(options.address):
                raise InvalidArgumentError("options of the environment: there is one already, which what was called "
                                           "before has made; give them first of all, or PFRT_PLUGIN_PATH for folders")
        lib.default_env()
        if cls._the is None:
            cls._the = cls.__new__(cls)
        return cls._the

    @staticmethod
    def has_instance() -> bool:
        """Tells whether it was made already: options would come too late."""
        return lib.has_default_env()

    # ------------------------------------------------------------------ what there is

    def refresh_plugins(self) -> None:
        """Looks through the folders again, and opens what is there, so that each row says whether it would load."""
        lib.check(lib.env.refresh_plugins(_env()))

    def plugins(self) -> List[PluginInfo]:
        """Every file in the plug-in folders, and those of open_plugin."""
        return [_plugin(row) for row in _rows(abi.PluginInfo, lib.env.plugin_count(_env()), lib.env.plugin_at, _env())]

    def open_plugin(self, path: "Union[str, os.PathLike[str]]") -> PluginInfo:
        """Opens the plug-in of a file, whatever folder it lies in; sessions that are made later find what it brings.
        NotFoundError where there is no such file, PyFlameRTError with the reason where it is not usable."""
        row = abi.PluginInfo(struct_size=ctypes.sizeof(abi.PluginInfo))
        lib.check(lib.env.open_plugin(_env(), lib.text(os.fspath(path)), ctypes.byref(row)))
        return _plugin(row)

    def providers(self) -> List[ProviderInfo]:
        """Every provider that sessions can name."""
        found = []
        for row in _rows(abi.ProviderInfo, lib.env.provider_count(_env()), lib.env.provider_at, _env()):
            words = lib.read(row.devices)
            found.append(ProviderInfo(**_texts(row, "name", "path", "reason"), available=bool(row.available),
                                      devices=words.split(",") if words else []))
        return found

    def kernels(self, provider: str) -> List[KernelInfo]:
        """The kernel table of a provider, by its name; NotFoundError when there is none of it."""
        name = lib.text(provider)
        count = _count(lib.env.kernel_count, name)
        return [KernelInfo(**_texts(row, "op", "domain", "types", "name", "isa"), since=row.since, until=row.until)
                for row in _rows(abi.KernelInfo, count, lib.env.kernel_at, _env(), name)]

    def provider_options(self, provider: str) -> List[ProviderOption]:
        """The options that a provider, by its name, adds to those of sessions; NotFoundError for an unknown name."""
        return _plugin_options(provider, lib.env.provider_option_count, lib.env.provider_option_at)

    def importer_options(self, importer: str) -> List[ProviderOption]:
        """The options that an importer, by its name, adds to those of loads; NotFoundError for an unknown name."""
        return _plugin_options(importer, lib.env.importer_option_count, lib.env.importer_option_at)

    @staticmethod
    def operators() -> List[OperatorInfo]:
        """The built-in operators."""
        return [_operator(row) for row in _rows(abi.OperatorInfo, lib.env.operator_count(), lib.env.operator_at)]

    def custom_operators(self) -> List[OperatorInfo]:
        """The operators that the program registered, and those of plug-ins of kind ops, which are opened."""
        return [_operator(row) for row in _rows(abi.OperatorInfo, _count(lib.env.custom_operator_count),
                                                lib.env.custom_operator_at, _env())]

    @staticmethod
    def trim() -> int:
        """Gives back what can be made again: plans and idle blocks of all sessions, idle memory of the global pool and of
        the C library; how many bytes of blocks and pools this was."""
        return trimmed(lib.env.trim, lib.default_env())

    # ------------------------------------------------------------------ questions

    @staticmethod
    def ask(provider: str, verb: str, request: str = "", tensors: Sequence[Any] = (), *, device: str = "",
            options: Optional[Mapping[str, Any]] = None, timeout_ms: int = 0,
            progress: Optional[Callable[[float], Optional[bool]]] = None) -> Answer:
        """Asks the device of a provider, which needs no model, and returns its answer.

        Parameters
        ----------
        provider: its name, or short, as "cpu".
        verb, request: what to do, in the provider's own word, and how, in the form that the verb wants.
        tensors: arrays that the verb works on.
        device: which device of the provider, by its word; "" = the first.
        options: the provider's own, by their keys without "provider.<word>.".
        timeout_ms: TimeoutError after so many milliseconds; 0 = never.
        progress: hears how far it is, from 0 to 1; returning False stops it with CancelledError.

        UnsupportedError when the provider takes no questions or does not know the verb, NotFoundError when there is no
        such provider.
        """
        return ask(provider, verb, request, tensors, device, options, timeout_ms, progress)

    # ------------------------------------------------------------------ log lines

    def set_logger(self, logger: Optional[Logger]) -> None:
        """Log lines go to ``logger(level, message)`` instead of ``sys.stderr``; None restores it.

        It is called from any thread, several at once; what it raises is lost with the line. It may use this package, and
        set another logger, but not the model or session that the line's call is at work on; lines that it causes go to
        the process's stderr, as all do once the interpreter ends.
        """
        if logger is not None and not callable(logger):
            raise InvalidArgumentError(f"set_logger: {logger!r} cannot be called; give a function of (level, message), "
                                       "or None")
        set_logger(logger)

    def __repr__(self) -> str:
        return f"Environment({len(self.plugins())} plug-ins, {', '.join(one.name for one in self.providers())})"


def _env() -> Optional[int]:
    return lib.default_env().address


def _count(function: Any, *args: Any) -> int:
    out = ctypes.c_size_t()
    lib.check(function(_env(), *args, ctypes.byref(out)))
    return out.value


def _rows(struct: Any, count: int, at: Any, *args: Any) -> List[Any]:
    found = []
    for i in range(count):
        row = struct(struct_size=ctypes.sizeof(struct))
        lib.check(at(*args, i, ctypes.byref(row)))
        found.append(row)
    return found


def _texts(row: Any, *fields: str) -> Dict[str, Any]:
    return {field: lib.read(getattr(row, field)) for field in fields}


def _plugin_options(plugin: str, count: Any, at: Any) -> List[ProviderOption]:
    name, found = lib.text(plugin), []
    for row in _rows(abi.OptionInfo, _count(count, name), at, _env(), name):
        found.append(option_of(row))
    return found


def _operator(row: Any) -> OperatorInfo:
    return OperatorInfo(**_texts(row, "op", "domain", "runs_in", "note", "types"), since=row.since, until=row.until)

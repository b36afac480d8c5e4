# SPDX-License-Identifier: Apache-2.0
"""The built-in passes, the manager that runs passes over graphs, and passes for sessions."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .._core import abi, library as lib
from .._core.options import NativeOptions, OptLevel
from .._core.progress import ProgressCall
from .._graph.graph import Graph
from ._config import (ConstantFoldingConfig, CSEConfig, DataflowConfig, DCEConfig, FusionConfig, LayoutConfig,
                      PassManagerConfig, level_of, optimizer_options)
from ._pass import Pass, PassResult, custom_pass, name_of, take_result


def _optimizer(options: NativeOptions) -> lib.Handle:
    return lib.make(lib.optimizer.create, lib.optimizer.release, lib.default_env().address, options.address)


def _run(optimizer: lib.Handle, graph: Graph, only: str = "", until_fixed_point: bool = False) -> PassResult:
    if not isinstance(graph, Graph):
        raise TypeError(f"optimising {type(graph).__name__}: give a pyflame_rt.Graph, for example session.graph()")
    out = ctypes.c_void_p()
    with graph._lock:
        graph._names = None  # passes make nodes
        lib.check(lib.optimizer.run(optimizer.address, graph._at(), lib.text(only), int(until_fixed_point),
                                    ctypes.byref(out)))
    return take_result(out.value or 0)


# ------------------------------------------------------------------ built-in passes


class _BuiltInPass(Pass):
    _LEVEL = OptLevel.BASIC
    _CONFIG: Any = None
    _AFTER: Tuple[str, ...] = ()  # as the library has it

    def __init__(self, config: Any = None) -> None:
        if config is not None and not isinstance(config, self._CONFIG):
            raise TypeError(f"{type(self).__name__} takes a {self._CONFIG.__name__}, not {type(config).__name__}")
        self.config = config or self._CONFIG()

    @property
    def description(self) -> str:
        """The description of what the pass does, in a line."""
        return (type(self).__doc__ or "").strip().splitlines()[0]

    def should_run(self, level: OptLevel) -> bool:
        """Tells whether the pass is one of that level."""
        return level >= self._LEVEL

    def after(self) -> List[str]:
        """Names of the passes that it follows, where they are there too."""
        return list(self._AFTER)

    def _options(self) -> NativeOptions:
        return optimizer_options(PassManagerConfig(opt_level=OptLevel.ALL), self.config)

    def run(self, graph: Graph) -> PassResult:
        """The pass alone, once, whatever its level."""
        optimizer = _optimizer(self._options())
        lib.check(lib.optimizer.add_pass(optimizer.address, lib.text(self.name), None))
        return _run(optimizer, graph, self.name)


class ConstantFoldingPass(_BuiltInPass):
    """Computes beforehand what follows from constants."""

    _CONFIG = ConstantFoldingConfig


class DeadCodeEliminationPass(_BuiltInPass):
    """Removes what no output depends on."""

    _CONFIG = DCEConfig
    _AFTER = ("ConstantFoldingPass",)


class CSEPass(_BuiltInPass):
    """Computes once what several nodes compute alike."""

    _LEVEL = OptLevel.EXTENDED
    _CONFIG = CSEConfig
    _AFTER = ("ConstantFoldingPass", "DeadCodeEliminationPass")


class OperatorFusionPass(_BuiltInPass):
    """Makes one operator of several."""

    _LEVEL = OptLevel.EXTENDED
    _CONFIG = FusionConfig
    _AFTER = ("ConstantFoldingPass", "CSEPass")


class LayoutOptimizationPass(_BuiltInPass):
    """Moves layouts to where they cost least."""

    _LEVEL = OptLevel.ALL
    _CONFIG = LayoutConfig
    _AFTER = ("OperatorFusionPass",)


class DataflowPass(_BuiltInPass):
    """Joins operators where a provider says that they take less time together.

    It is of no level: it runs by itself, or in a PassManager that it is given to.
    """

    _CONFIG = DataflowConfig
    _AFTER = ("ConstantFoldingPass", "CSEPass")

    def should_run(self, level: OptLevel) -> bool:
        """Tells that it runs at no level."""
        return False


_BUILT_IN = (ConstantFoldingPass, DeadCodeEliminationPass, CSEPass, OperatorFusionPass, LayoutOptimizationPass)


def fold_constants(graph: Graph, config: Optional[ConstantFoldingConfig] = None) -> PassResult:
    """Computes beforehand what follows from constants; |graph| is rewritten."""
    return ConstantFoldingPass(config).run(graph)


def eliminate_dead_code(graph: Graph, config: Optional[DCEConfig] = None) -> PassResult:
    """Removes nodes and constants that no output depends on; |graph| is rewritten."""
    return DeadCodeEliminationPass(config).run(graph)


def eliminate_common_subexpressions(graph: Graph, config: Optional[CSEConfig] = None) -> PassResult:
    """Computes once what several nodes compute alike; |graph| is rewritten."""
    return CSEPass(config).run(graph)


def fuse_operators(graph: Graph, config: Optional[FusionConfig] = None) -> PassResult:
    """Makes one operator of several; |graph| is rewritten."""
    return OperatorFusionPass(config).run(graph)


def optimize_layout(graph: Graph, config: Optional[LayoutConfig] = None) -> PassResult:
    """Moves layouts to where they cost least; |graph| is rewritten."""
    return LayoutOptimizationPass(config).run(graph)


def optimize(graph: Graph, level: OptLevel = OptLevel.EXTENDED) -> PassResult:
    """All built-in passes of a level, until nothing changes; |graph| is rewritten."""
    return PassManager.create_default(level).run_until_fixed_point(graph)


# ------------------------------------------------------------------ the manager


class PassManager:
    """Runs passes over graphs, in the order of their registration, but that each follows those of its ``after``.

    On failure a graph is as it was: whatever one pass did before another failed is undone.
    """

    def __init__(self, config: Optional[PassManagerConfig] = None) -> None:
        self.config = config if config is not None else PassManagerConfig()
        self._passes: Dict[str, Optional[Pass]] = {}  # None: a plug-in's

    @classmethod
    def create_default(cls, level: Any = OptLevel.EXTENDED) -> "PassManager":
        """A manager with the built-in passes of |level|, an OptLevel or a PassManagerConfig."""
        config = level if isinstance(level, PassManagerConfig) else PassManagerConfig(opt_level=level_of(level))
        manager = cls(config)
        for kind in _BUILT_IN:
            one = kind()
            if one.should_run(level_of(config.opt_level)):
                manager.register_pass(one)
        return manager

    def register_pass(self, one: Pass) -> None:
        """Adds a pass at the end; one of the same name is replaced in its place."""
        if not isinstance(one, Pass):
            raise TypeError(f"register_pass takes an object of a class derived from opt.Pass, not {one!r}")
        self._passes[name_of(one)] = one

    def register_plugin_pass(self, name: str) -> None:
        """Adds a pass that a plug-in brings, or one that was registered for sessions."""
        self._passes[name] = None

    @property
    def passes(self) -> List[str]:
        """The names of the passes, in the order of their registration."""
        return list(self._passes)

    def run(self, graph: Graph) -> PassResult:
        """Each pass of the level that is not skipped, once."""
        return self._run(graph, "", False)

    def run_pass(self, name: str, graph: Graph) -> PassResult:
        """Runs one pass, whatever its level. NotFoundError when there is none of that name."""
        return self._run(graph, name, False)

    def run_until_fixed_point(self, graph: Graph) -> PassResult:
        """All of them, until none changes anything or ``config.max_iterations`` is reached."""
        return self._run(graph, "", True)

    def _run(self, graph: Graph, only: str, until_fixed_point: bool) -> PassResult:
        native = optimizer_options(self.config)
        optimizer = _optimizer(native)
        level = level_of(self.config.opt_level)
        for name, one in self._passes.items():
            if one is None:
                lib.check(lib.optimizer.add_pass(optimizer.address, lib.text(name), None))
            elif isinstance(one, _BuiltInPass):
                options = one._options()
                lib.check(lib.optimizer.add_pass(optimizer.address, lib.text(name), options.address))
            elif only == name or (not only and one.should_run(level)):
                custom = custom_pass(one, ",".join(one.after()))
                lib.check(lib.optimizer.add_custom_pass(optimizer.address, ctypes.byref(custom)))
        return ProgressCall(native, self.config.progress)(lambda _: _run(optimizer, graph, only, until_fixed_point))

    def __repr__(self) -> str:
        return f"PassManager({', '.join(self._passes) or 'no passes'}; {self.config!r})"


@dataclass(frozen=True)
class RuleInfo:
    """A rewrite called ``name`` that the built-in passes know: ``pass_name`` does it, from ``level`` on ("by name": where
    the pass is given to a manager); ``text`` says what becomes of what.
    """

    name: str
    pass_name: str
    level: str
    text: str


def known_rules() -> List[RuleInfo]:
    """All rewrites of the built-in passes; ``result.stats.rules`` counts them by name."""
    out = []
    for i in range(lib.optimizer.known_rule_count()):
        name, one, level, text = abi.String(), abi.String(), abi.String(), abi.String()
        lib.check(lib.optimizer.known_rule_at(i, ctypes.byref(one), ctypes.byref(name), ctypes.byref(level),
                                              ctypes.byref(text)))
        out.append(RuleInfo(lib.read(name), lib.read(one), lib.read(level), lib.read(text)))
    return out


# ------------------------------------------------------------------ sessions

_registered: List[Tuple[str, Pass]] = []  # in the order that sessions run them


def register_pass(one: Pass, after: str = "") -> None:
    """A pass for all sessions that are made later, but for those of OptLevel.NONE: for good.

    It runs on the model as loaded, before the built-in passes, from the lowest level on at which ``should_run`` says
    so, and right after the registered pass |after|; "" = last. Sessions may be made on any thread, and so may it be
    called. InvalidArgumentError when there is a pass of its name, NotFoundError when there is none named |after|.
    """
    if not isinstance(one, Pass):
        raise TypeError(f"register_pass takes an object of a class derived from opt.Pass, not {one!r}")
    custom = custom_pass(one, after)
    lib.check(lib.env.register_pass(lib.default_env().address, ctypes.byref(custom)))
    names = [name for name, _ in _registered]
    _registered.insert(names.index(after) + 1 if after in names else len(names), (name_of(one), one))


def optimize_as_session(graph: Graph, opt_level: OptLevel, skip_passes: Sequence[str], verify: bool,
                        extra_outputs: Sequence[str], providers: Sequence[str]) -> None:
    """Does to a model's graph as loaded what a session with these options does."""
    for name in extra_outputs:
        graph.add_output(name)
    level = level_of(opt_level)
    if level == OptLevel.NONE:
        return
    config = PassManagerConfig(opt_level=level, skip_passes=list(skip_passes), verify=verify)
    native = optimizer_options(config)
    native.set("providers", list(providers))
    optimizer = _optimizer(native)
    for name, one in _registered:
        if one.should_run(level):
            own = _optimizer(native)
            lib.check(lib.optimizer.add_pass(own.address, lib.text(name), None))
            _run(own, graph, name)
    lib.check(lib.optimizer.add_default_passes(optimizer.address))
    _run(optimizer, graph, until_fixed_point=True)

# SPDX-License-Identifier: Apache-2.0
"""Passes: what one is, what it reports, and how the library calls one that is written in Python."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any, Dict, List

from .._core import abi, callbacks, library as lib, shutdown
from .._core.errors import InvalidArgumentError
from .._core.options import OptLevel
from .._graph.graph import Graph

_COUNTS = ("nodes_removed", "nodes_added", "nodes_fused", "constants_folded", "initializers_removed")


@dataclass
class PassStats:
    """Numbers of what passes did: ``nodes_removed``, ``nodes_added``, ``constants_folded``, ``initializers_removed``.

    ``nodes_fused`` counts patterns; ``rules`` has rewrites by name and how often each was done.
    """

    nodes_removed: int = 0
    nodes_added: int = 0
    nodes_fused: int = 0
    constants_folded: int = 0
    initializers_removed: int = 0
    rules: Dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return (f"{self.nodes_removed} nodes removed, {self.nodes_added} added, {self.nodes_fused} fused, "
                f"{self.constants_folded} constants folded, {self.initializers_removed} initializers removed")


@dataclass
class PassReport:
    """A report of what the pass ``name`` did over all its ``runs``, and how many ``milliseconds`` they took.

    ``nodes_before`` the first and ``nodes_after`` the last, bodies included; ``modified`` when the graph is another;
    ``stats`` as totals.
    """

    name: str = ""
    runs: int = 0
    milliseconds: float = 0.0
    nodes_before: int = 0
    nodes_after: int = 0
    modified: bool = False
    stats: PassStats = field(default_factory=PassStats)

    def __str__(self) -> str:
        return (f"{self.name}: {self.nodes_before} -> {self.nodes_after} nodes in {self.runs} runs, "
                f"{self.milliseconds:.2f} ms; {self.stats}")


@dataclass
class PassResult:
    """The result of a run: ``modified`` when the graph is another, ``stats`` of all passes together, one of ``reports``
    for each pass of a PassManager, a sentence in ``warnings`` for each thing that a person should know.
    """

    modified: bool = False
    stats: PassStats = field(default_factory=PassStats)
    warnings: List[str] = field(default_factory=list)
    reports: List[PassReport] = field(default_factory=list)


class Pass:
    """A rewrite of graphs. Derive from it, define ``run``, and give it to a PassManager or to ``register_pass``.

    >>> class DropNoise(opt.Pass):
    ...     def run(self, graph):
    ...         result = opt.PassResult()
    ...         for node in graph.nodes:
    ...             if node.op == "Noise":
    ...                 graph.replace_uses(node.outputs[0], node.inputs[0])
    ...                 graph.remove_node(node)
    ...                 result.modified = True
    ...         return result
    """

    @property
    def name(self) -> str:
        """The name that it is registered, skipped and reported by; the class's name unless it is another."""
        return type(self).__name__

    @property
    def description(self) -> str:
        """The description of what it does, in a line; "" unless it is defined."""
        return ""

    def run(self, graph: Graph) -> PassResult:
        """Rewrites |graph| in place and keeps its inputs and outputs.

        ``modified`` of the result says whether anything was done: edits are dropped when it is False. The graph can be
        used only while the pass runs, and is in the newest opset, attributes decoded, where built-in passes run too.
        What is raised becomes the error of the call, and its cause.
        """
        raise NotImplementedError(f"pass '{name_of(self)}' has no run(graph)")

    def should_run(self, level: OptLevel) -> bool:
        """Tells whether it is for sessions and managers of that level; it then is for those above."""
        return level >= OptLevel.BASIC

    def after(self) -> List[str]:
        """Names of passes that it follows in its manager, where they are there too, whatever the order of their
        registration. Passes that follow each other are an InvalidArgumentError of the run."""
        return []

    def __repr__(self) -> str:
        return f"<pass {name_of(self)}>"


def name_of(one: Pass) -> str:
    """The name of a pass, which may be a property, an attribute or a method."""
    name = one.name
    name = name() if callable(name) else name
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"a pass of class {type(one).__name__} has the name {name!r}; give it a string")
    return name


# ------------------------------------------------------------------ the library calls


def _run(user: int, address: int) -> int:
    call = abi.PassCall.from_address(address)
    sink = abi.Sink.from_address(call.sink)

    def fail(code: int, message: str) -> int:
        return int(sink.fail(call.sink, code, abi.NO_INDEX, lib.text(message)))

    def work() -> None:
        one = callbacks.held(user)
        lib.graph.retain(call.graph)
        graph = Graph._of(lib.Handle(call.graph, lib.graph.release))
        try:
            result = one.run(graph)
        finally:
            graph._close()
        if not isinstance(result, PassResult):
            raise TypeError(f"run of pass '{name_of(one)}' returned {type(result).__name__}; it is to return a "
                            "PassResult, whose .modified says whether the graph is another")
        stats = abi.PassStats.from_address(call.stats)
        stats.modified = bool(result.modified)
        for count in _COUNTS:
            setattr(stats, count, getattr(result.stats, count))
        for warning in result.warnings:
            sink.log(call.sink, abi.LOG_WARNING, lib.text(warning))

    return callbacks.guard(fail, work)


_RUN = callbacks.permanent(abi.CustomPass, "run", shutdown.callback(_run))


def custom_pass(one: Pass, after: str = "") -> Any:
    """|one| as a CustomPass struct, which the library releases once it is given to it."""
    name = name_of(one)
    levels = [level for level in (OptLevel.BASIC, OptLevel.EXTENDED, OptLevel.ALL) if one.should_run(level)]
    if not levels:
        raise InvalidArgumentError(f"pass '{name}': should_run says no at every level")
    shutdown.count_calls()
    texts = lib.text(name), lib.text(after)
    out = abi.CustomPass(struct_size=ctypes.sizeof(abi.CustomPass), abi=abi.ABI_VERSION, name=texts[0],
                         after=texts[1], level=int(levels[0]), release=callbacks.RELEASE, run=_RUN,
                         user=callbacks.hold(one))
    out.kept = texts
    return out


# ------------------------------------------------------------------ results


def _stats(counts: Any) -> PassStats:
    return PassStats(*(getattr(counts, name) for name in _COUNTS))


def take_result(address: int) -> PassResult:
    """Reads a result of the library's and lets go of it."""
    handle = lib.Handle(address, lib.optimizer.release_result)
    totals = abi.PassStats(struct_size=ctypes.sizeof(abi.PassStats))
    lib.check(lib.optimizer.totals(address, ctypes.byref(totals)))
    out = PassResult(bool(totals.modified), _stats(totals))
    report = abi.PassReport(struct_size=ctypes.sizeof(abi.PassReport))
    rule, count = abi.String(), ctypes.c_uint64()
    for i in range(lib.optimizer.report_count(address)):
        lib.check(lib.optimizer.report_at(address, i, ctypes.byref(report)))
        stats = abi.PassStats.from_address(report.stats)
        one = PassReport(lib.read(getattr(report, "pass")), report.runs, report.milliseconds, report.nodes_before,
                         report.nodes_after, bool(stats.modified), _stats(stats))
        for r in range(lib.optimizer.rule_count(address, i)):
            lib.check(lib.optimizer.rule_at(address, i, r, ctypes.byref(rule), ctypes.byref(count)))
            one.stats.rules[lib.read(rule)] = count.value
            out.stats.rules[lib.read(rule)] = out.stats.rules.get(lib.read(rule), 0) + count.value
        out.reports.append(one)
    out.warnings = [lib.read(lib.optimizer.warning_at(address, i))
                    for i in range(lib.optimizer.warning_count(address))]
    handle.close()
    return out

# SPDX-License-Identifier: Apache-2.0
"""Graphs on wafer-scale chips, as the wafer-scale provider places them on its simulator.

>>> config = wse.WSEChipConfig(topology=[2, 2], inter_chip_bandwidth=1e12, inter_chip_latency=100.0)
>>> plan = wse.partition_for_wse(graph, config)
>>> print(plan)
"""
from __future__ import annotations

import threading
from typing import List, Optional

from .._core.errors import InvalidArgumentError, NotFoundError
from .._core.options import OptLevel
from .._graph.graph import Graph
from .._session.environment import Environment
from .._session.session import InferenceSession
from .._session.session_options import SessionOptions
from ..opt import DataflowConfig, DataflowPass
from ._wse_plan import WSEChipConfig, WSEPartition, WSEPlan, plan_from

__all__ = ["WSEChipConfig", "WSEPartition", "WSEPlan", "optimize_for_wse_dataflow", "partition_for_multi_chip",
           "partition_for_wse"]

_PROVIDER = "WSEExecutionProvider"
# A device has one plan, that of the session made last: from the session until it has answered.
_lock = threading.Lock()


def partition_for_wse(graph: Graph, config: Optional[WSEChipConfig] = None, machine: str = "wse2") -> WSEPlan:
    """Plans where the nodes of |graph| lie on chips of |machine|, "wse2" or "wse3", and what a run takes.

    Each product begins a stage with what follows it; stages lie side by side, in the order in which they run, first on
    one chip and then on the next. Dimensions that the graph leaves open count 128, or 1 where they come first. The
    graph stays as it is. Nothing is computed.

    InvalidArgumentError for a config or machine that there is not, NotFoundError where the wafer-scale provider is not
    there.
    """
    config = _check(graph, config, machine)
    part = graph.clone()
    names = _name_nodes(part)
    options = config._options()
    with _lock:
        session = InferenceSession(part, SessionOptions(
            device=machine, optimization_level=OptLevel.NONE,
            extra={f"provider.wse.{key}": value for key, value in options.items()}))
        with session:
            if all(step["provider"] != _PROVIDER for step in session.explain()):
                return WSEPlan(machine, unplaced=names, text=f"simulated {machine}: it takes no node of the graph\n")
            ask = Environment.instance().ask
            answer = ask("wse", "plan", "text", device=machine, options=options)
            svg = ask("wse", "plan", "svg", device=machine, options=options).text
    return plan_from(answer, machine, names, svg)


def partition_for_multi_chip(graph: Graph, config: WSEChipConfig, machine: str = "wse2") -> WSEPlan:
    """Does what ``partition_for_wse`` does; ``config.num_chips``, if more than 1, has to be what its topology has.

    InvalidArgumentError names both when they differ.
    """
    _check(graph, config, machine)._need_num_chips()
    return partition_for_wse(graph, config, machine)


def optimize_for_wse_dataflow(graph: Graph, machine: str = "wse2") -> Graph:
    """A graph that computes the same, with products of one input joined where |machine| takes less time for that.

    MatMuls of one input with constant matrices, as those for queries, keys and values, or up and gate, become one with
    the matrices side by side, and a Split: the wafer then sums up over its rows once, not once for each. The results
    differ from those of |graph|, which stays as it is, in the rounding of sums at most.

    InvalidArgumentError for a machine that there is not, NotFoundError where the wafer-scale provider is not there.
    """
    _need_graph(graph, "optimising")
    _need_machine(machine, "optimising a graph")
    made = graph.clone()
    DataflowPass(DataflowConfig(target_backend=_PROVIDER, device=machine)).run(made)
    return made


def _need_graph(graph: Graph, doing: str) -> None:
    if not isinstance(graph, Graph):
        raise TypeError(f"{doing} {type(graph).__name__}: give a pyflame_rt.Graph, for example session.graph()")


def _check(graph: Graph, config: Optional[WSEChipConfig], machine: str) -> WSEChipConfig:
    _need_graph(graph, "partitioning")
    if config is not None and not isinstance(config, WSEChipConfig):
        raise TypeError(f"partitioning a graph: the config is a {type(config).__name__}; give a WSEChipConfig")
    _need_machine(machine, "partitioning a graph")
    return config or WSEChipConfig()


def _need_machine(machine: str, doing: str) -> None:
    for provider in Environment.instance().providers():
        if provider.name != _PROVIDER:
            continue
        if not provider.available:
            raise NotFoundError(f"{doing} for {machine!r}: {_PROVIDER} cannot be used: {provider.reason}")
        if machine not in provider.devices:
            raise InvalidArgumentError(f"{doing}: there is no wafer-scale machine {machine!r}; there are " +
                                       ", ".join(provider.devices))
        return
    raise NotFoundError(f"{doing} for {machine!r}: there is no {_PROVIDER}; put libpyflamert_provider_wse.so into a "
                        "folder of PFRT_PLUGIN_PATH")


def _name_nodes(graph: Graph) -> List[str]:
    """Gives each node a name of its own; those of all that compute something, in order."""
    nodes = graph.topological_sort()
    given = [node.name for node in nodes]
    taken, seen, names = set(given), set(), []
    for node, name in zip(nodes, given):
        if not name or name in seen:
            name = next((value for value in node.outputs if value), node.op)
            while name in taken:
                name += "_"
            node.name = name
            taken.add(name)
        seen.add(name)
        if node.op != "Constant" or node.domain:
            names.append(name)
    return names

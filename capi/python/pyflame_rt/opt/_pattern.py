# SPDX-License-Identifier: Apache-2.0
"""Patterns of nodes, for passes of one's own: named nodes, edges between them, and a root that leads to the others."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import List, Optional

from .._core import abi, library as lib
from .._core.errors import InvalidArgumentError
from .._graph.graph import Graph
from .._graph.node import Node


@dataclass(frozen=True)
class PatternNode:
    """A node called ``name`` in a pattern: operator ``op_type`` of a domain ("" = ONNX's own), or any if ""."""

    op_type: str
    name: str
    domain: str = ""

    @classmethod
    def op(cls, op_type: str, name: str, domain: str = "") -> "PatternNode":
        """A node of operator |op_type|, called |name| in the pattern."""
        return cls(op_type, name, domain)

    @classmethod
    def any(cls, name: str) -> "PatternNode":
        """A node of any operator."""
        return cls("", name)


@dataclass(frozen=True)
class PatternEdge:
    """Output |output| of node |source| is input |input| of node |target|; input None = any."""

    source: str
    target: str
    input: Optional[int] = None
    output: int = 0

    @classmethod
    def output_to_input(cls, source: str, target: str, input: int, output: int = 0) -> "PatternEdge":
        """An edge to input |input| of |target|, counted from 0."""
        return cls(source, target, input, output)

    @classmethod
    def output_to_any_input(cls, source: str, target: str, output: int = 0) -> "PatternEdge":
        """An edge to whichever input of |target|."""
        return cls(source, target, None, output)


class Pattern:
    """Nodes and edges to be looked for.

    >>> pattern = opt.Pattern()
    >>> pattern.add_node(opt.PatternNode.op("MatMul", "matmul"))
    >>> pattern.add_node(opt.PatternNode.op("Add", "add"))
    >>> pattern.add_edge(opt.PatternEdge.output_to_input("matmul", "add", 0))
    >>> matches = opt.PatternMatcher().find_all(graph, pattern)
    """

    def __init__(self) -> None:
        self._handle = lib.make(lib.pattern.create, lib.pattern.release)

    def add_node(self, node: PatternNode) -> None:
        """Adds a node. InvalidArgumentError when its name is taken in the pattern."""
        lib.check(lib.pattern.add_node(self._handle.address, lib.text(node.op_type), lib.text(node.domain),
                                       lib.text(node.name)))

    def add_edge(self, edge: PatternEdge) -> None:
        """Adds an edge between nodes that were added. NotFoundError when there is no such node."""
        number = abi.ANY_INPUT if edge.input is None else edge.input
        if edge.output < 0 or number < 0:
            raise InvalidArgumentError(f"{edge}: inputs and outputs are counted from 0")
        lib.check(lib.pattern.add_edge(self._handle.address, lib.text(edge.source), edge.output,
                                       lib.text(edge.target), number))

    def set_root(self, name: str) -> None:
        """The node from which the others are reached along edges; the last one added unless it is set."""
        lib.check(lib.pattern.set_root(self._handle.address, lib.text(name)))


class Match:
    """A place where a pattern was found, in the graph as it is now."""

    def __init__(self, graph: Graph, matches: lib.Handle, index: int) -> None:
        self._graph = graph
        self._matches = matches
        self._index = index

    def get_node(self, name: str) -> Optional[Node]:
        """The node that is |name| in the pattern; None once it was removed. NotFoundError for another name."""
        number = ctypes.c_uint32()
        with self._graph._lock:
            self._graph._at()
            lib.check(lib.pattern.node(self._matches.address, self._index, lib.text(name), ctypes.byref(number)))
            return self._graph._some(number.value)

    def is_single_consumer(self, name: str) -> bool:
        """Tells whether one node of the match alone uses what the node makes, as the graph is now."""
        yes = ctypes.c_uint32()
        with self._graph._lock:
            self._graph._at()
            lib.check(lib.pattern.is_single_consumer(self._matches.address, self._index, lib.text(name),
                                                     ctypes.byref(yes)))
        return bool(yes.value)


class PatternMatcher:
    """Looks for patterns in graphs."""

    def find_all(self, graph: Graph, pattern: Pattern) -> List[Match]:
        """The matches, one for each node that can be the root, producers first; they may share other nodes."""
        with graph._lock:
            matches = lib.make(lib.pattern.find_all, lib.pattern.release_matches, pattern._handle.address, graph._at())
        return [Match(graph, matches, i) for i in range(lib.pattern.match_count(matches.address))]

# SPDX-License-Identifier: Apache-2.0
"""Graphs as the modules below ``Graph`` see them: each protocol has what one of them asks of a graph."""
from __future__ import annotations

from typing import Any, Mapping, Protocol, Sequence

from .._values.info import TensorInfo


class GraphHandle(Protocol):
    """A graph that the library is given."""

    _lock: Any  # held while the library reads or edits the graph

    def _at(self) -> int: ...

    def create_subgraph(self, name: str = "") -> "GraphHandle":
        """A body for an attribute of one of its nodes."""


class NodeOwner(GraphHandle, Protocol):
    """A graph that a node is part of."""

    def _call(self, function: Any, *args: Any) -> None: ...

    def _body(self, address: int) -> GraphHandle: ...

    def _need_name(self, name: str, doing: str) -> None: ...

    def _note_name(self, name: str) -> None: ...


class ShownGraph(Protocol):
    """A graph that can be written as text."""

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> Sequence[TensorInfo]: ...

    @property
    def outputs(self) -> Sequence[TensorInfo]: ...

    @property
    def initializers(self) -> Mapping[str, Any]: ...

    @property
    def nodes(self) -> Sequence[Any]: ...

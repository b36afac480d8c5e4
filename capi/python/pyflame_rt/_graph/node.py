# SPDX-License-Identifier: Apache-2.0
"""Nodes of graphs."""
from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import Any, Dict, Iterator, List, MutableMapping, Optional, Sequence

from .._core import abi, library as lib
from .._core.errors import NotFoundError
from .attributes import AttributeValue, decode, encode
from .protocols import NodeOwner

_NODE_SIZE = ctypes.sizeof(abi.Node)


def names_of(address: Optional[int], count: int) -> List[str]:
    return [lib.read(s) for s in (abi.String * count).from_address(address)] if count and address else []


def _attrs_of(node: Any) -> Iterator[Any]:
    # A library newer than this package has larger structs: they say how far apart they are.
    apart = abi.Attr.from_address(node.attrs).struct_size if node.attr_count else 0
    for i in range(node.attr_count):
        yield abi.Attr.from_address(node.attrs + i * apart)


class Attributes(MutableMapping[str, Any]):
    """The attributes of a node by name. What is set or deleted here is set or deleted in the graph."""

    __slots__ = ("_node",)

    def __init__(self, node: "Node") -> None:
        self._node = node

    def __getitem__(self, name: str) -> Any:
        with self._node._graph._lock:
            for attr in _attrs_of(self._node._read()):
                if lib.read(attr.name) == name:
                    return decode(attr, self._node._graph._body)
        raise KeyError(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self._node.set_attr(name, value)

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        self._node.remove_attr(name)

    def __iter__(self) -> Iterator[str]:
        with self._node._graph._lock:
            return iter([lib.read(attr.name) for attr in _attrs_of(self._node._read())])

    def __len__(self) -> int:
        with self._node._graph._lock:
            return int(self._node._read().attr_count)

    def __repr__(self) -> str:
        return repr(dict(self))


class Node:
    """An operation of a graph: its operator, the names of its inputs and outputs, its attributes.

    A node is made by ``Graph.add_node``. It shows what the graph has now, and what is set here is set in the graph. A
    node that was removed with ``Graph.remove_node`` keeps what it was; one that went otherwise (an optimiser fused it)
    raises NotFoundError.
    """

    __slots__ = ("_graph", "_id", "_was", "__weakref__")

    def __init__(self, graph: NodeOwner, number: int) -> None:
        self._graph = graph
        self._id = number
        self._was: Optional[Dict[str, Any]] = None  # once it is removed

    def _read(self) -> Any:
        """The Node struct, good until the graph is edited: with the graph's lock held."""
        out = abi.Node(struct_size=_NODE_SIZE)
        lib.check(lib.graph.node_by_id(self._graph._at(), self._id, ctypes.byref(out)))
        return out

    def _text(self, field: str) -> str:
        if self._was is not None:
            return str(self._was[field])
        with self._graph._lock:
            return lib.read(getattr(self._read(), field))

    def _names(self, field: str) -> List[str]:
        if self._was is not None:
            return list(self._was[field + "s"])
        with self._graph._lock:
            node = self._read()
            return names_of(getattr(node, field + "s"), getattr(node, field + "_count"))

    def _freeze(self) -> Dict[str, Any]:
        """The node's parts, to be kept when it is removed."""
        return {"name": self.name, "op": self.op, "domain": self.domain, "doc": self.doc, "inputs": self.inputs,
                "outputs": self.outputs, "attrs": MappingProxyType(dict(self.attrs))}

    def _need_graph(self, doing: str) -> int:
        if self._was is not None:
            raise NotFoundError(f"{doing} node '{self._was['name']}': it was removed from its graph")
        return self._graph._at()

    @property
    def id(self) -> Optional[int]:
        """A number that stays while the node is in its graph and is never given again; None once it is removed."""
        return self._id if self._was is None else None

    @property
    def name(self) -> str:
        """The node's name. It may be "", and may be set once the node is in a graph."""
        return self._text("name")

    @name.setter
    def name(self, name: str) -> None:
        """Renames the node; InvalidArgumentError for a name that another node has."""
        self._need_graph("renaming")
        with self._graph._lock:
            was = self.name
            if name != was:
                self._graph._need_name(name, f"renaming node '{was}' to '{name}'")
                self._graph._note_name(name)
            self._graph._call(lib.graph.rename_node, self._id, lib.text(name))

    @property
    def op(self) -> str:
        """The operator: "Conv"."""
        return self._text("op")

    @property
    def op_type(self) -> str:
        """``op`` by its other name."""
        return self.op

    @property
    def domain(self) -> str:
        """The operator's domain; "" is ONNX's own."""
        return self._text("domain")

    @property
    def doc(self) -> str:
        """The model's own description of the node."""
        return self._text("doc")

    @property
    def inputs(self) -> List[str]:
        """Names of the values it takes, "" for an optional one that is absent. A copy: assign a list to change them."""
        return self._names("input")

    @inputs.setter
    def inputs(self, names: Sequence[str]) -> None:
        self._put(lib.graph.set_node_inputs, names, "setting inputs of")

    @property
    def outputs(self) -> List[str]:
        """Names of the values it makes, "" for one that nobody wants. A copy: assign a list to change them.

        An output that something else makes is a ValidationError.
        """
        return self._names("output")

    @outputs.setter
    def outputs(self, names: Sequence[str]) -> None:
        self._put(lib.graph.set_node_outputs, names, "setting outputs of")

    def _put(self, function: Any, names: Sequence[str], doing: str) -> None:
        self._need_graph(doing)
        if isinstance(names, str):
            raise TypeError(f"{doing} node '{self.name}': give a list of names, not the string {names!r}")
        array = lib.texts(names)
        self._graph._call(function, self._id, array, len(array))

    @property
    def attrs(self) -> MutableMapping[str, Any]:
        """The attributes by name: ints, floats, strings (bytes where they are no text), Tensors, Graphs and lists.

        ``node.attrs["axis"] = 1`` sets one, ``del node.attrs["axis"]`` removes it.
        """
        if self._was is None:
            return Attributes(self)
        kept: MutableMapping[str, Any] = self._was["attrs"]  # of a removed node: to be read only
        return kept

    @property
    def attributes(self) -> MutableMapping[str, Any]:
        """``attrs`` by its other name."""
        return self.attrs

    def set_attr(self, name: str, value: AttributeValue) -> None:
        """Sets an attribute by the type that |value| has; InvalidArgumentError where it is of none."""
        self._need_graph(f"setting attribute '{name}' of")
        attr = encode(name, value)
        self._graph._call(lib.graph.set_attr, self._id, ctypes.byref(attr))

    def get_attr(self, name: str, default: Any = None) -> Any:
        """The attribute of that name, or |default|."""
        return self.attrs.get(name, default)

    def has_attr(self, name: str) -> bool:
        """Tells whether the node has an attribute of this name."""
        return name in self.attrs

    def remove_attr(self, name: str) -> None:
        """Removes an attribute; NotFoundError when there is no such one."""
        self._need_graph(f"removing attribute '{name}' of")
        self._graph._call(lib.graph.remove_attr, self._id, lib.text(name))

    def __repr__(self) -> str:
        try:
            return f"Node({self})"
        except NotFoundError:
            return f"Node(id {self._id}, not in its graph any more)"

    def __str__(self) -> str:
        operator = f"{self.domain}.{self.op}" if self.domain else self.op
        attrs = ", ".join(f"{key}={_short(value)}" for key, value in self.attrs.items())
        call = f"{operator}({', '.join(self.inputs)})" + (f" {{{attrs}}}" if attrs else "")
        return f"{self.name or '(unnamed)'}: {call} -> {', '.join(self.outputs)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

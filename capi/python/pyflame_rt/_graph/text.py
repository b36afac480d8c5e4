# SPDX-License-Identifier: Apache-2.0
"""Graphs as a person wants to see them."""
from __future__ import annotations

from typing import Any, Iterable, List, Sequence

from .._values.info import TensorInfo
from .protocols import ShownGraph

_HTML_NODES = 200


def shape_text(info: Any) -> str:
    """[N, 3, ?], of a TensorInfo or NodeArg."""
    if info.shape is None:
        return "[...]"
    names = info.dim_names or [""] * len(info.shape)
    return "[" + ", ".join(str(dim) if dim is not None else name or "?" for dim, name in zip(info.shape, names)) + "]"


def _type_text(info: TensorInfo) -> str:
    dtype = "?" if info.dtype is None else info.dtype.text
    return dtype if info.kind == "tensor" else f"{info.kind} of {dtype}"


def _ports(infos: Iterable[TensorInfo]) -> str:
    return ", ".join(f"{info.name}: {shape_text(info)} {_type_text(info)}" for info in infos)


def graph_line(graph: ShownGraph) -> str:
    return (f"Graph({graph.name!r}: {len(graph.nodes)} nodes, {len(graph.initializers)} initializers, "
            f"{_ports(graph.inputs)} -> {_ports(graph.outputs)})")


def graph_tree(graph: ShownGraph) -> str:
    """The graph as the guide draws it, all of it."""
    parts: List[Any] = [
        ("Inputs", [f"{i.name}: {shape_text(i)} {_type_text(i)}" for i in graph.inputs]),
        ("Outputs", [f"{o.name}: {shape_text(o)} {_type_text(o)}" for o in graph.outputs]),
        ("Initializers", [f"{name}: {list(value.shape)} {value.dtype.text if hasattr(value, 'dtype') else 'sparse'}"
                          for name, value in graph.initializers.items()]),
        ("Nodes", [str(node) for node in graph.nodes]),
    ]
    lines = [f'Graph: "{graph.name}"']
    for title, rows in parts:
        last_part = title == parts[-1][0]
        lines.append(f"{'└' if last_part else '├'}── {title}:")
        for i, row in enumerate(rows):
            lines.append(f"{' ' if last_part else '│'}   {'└' if i + 1 == len(rows) else '├'}── {row}")
    return "\n".join(lines)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    import html

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
    return f"<table>{line(head, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"


def graph_html(graph: ShownGraph) -> str:
    import html
    nodes = graph.nodes
    ports = [(kind, info.name, shape_text(info), _type_text(info))
             for kind, infos in (("input", graph.inputs), ("output", graph.outputs)) for info in infos]
    rows = [(n.name, n.op, ", ".join(n.inputs), ", ".join(n.outputs)) for n in nodes[:_HTML_NODES]]
    more = f"<p>and {len(nodes) - _HTML_NODES} nodes more</p>" if len(nodes) > _HTML_NODES else ""
    return (f"<p>Graph {html.escape(graph.name)}: {len(nodes)} nodes, {len(graph.initializers)} initializers</p>" +
            _table(("", "name", "shape", "type"), ports) + _table(("node", "operator", "inputs", "outputs"), rows) +
            more)

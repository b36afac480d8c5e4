# SPDX-License-Identifier: Apache-2.0
"""Custom operators: what nodes that use one look like."""
from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Sequence

from .._graph.op_call import ATTRIBUTES
from .._values.dtype import DType

KernelFn = Callable[[List[Any], Dict[str, Any]], Sequence[Any]]
ShapeInferenceFn = Callable[[List[Any]], Sequence[Sequence[Optional[int]]]]
TypeInferenceFn = Callable[[List[Optional[DType]]], Sequence[Any]]
GradientFn = Callable[[List[Any], List[Any]], Sequence[Any]]


class BackendType(enum.Enum):
    """The hardware that a kernel runs on. Kernels written in Python run on the CPU."""

    CPU = "cpu"
    WSE = "wse"
    CUDA = "cuda"


@dataclass
class OpPort:
    """An input or output called ``name``. ``dtype`` None means any type; an output then has the type of input 0.

    Only the last input may be ``variadic``: nodes give it one or more times, or none if it is also ``optional``.
    """

    name: str
    dtype: Optional[DType] = None
    optional: bool = False
    variadic: bool = False


@dataclass
class OpAttribute:
    """An attribute called ``name``. ``type`` is "float", "int", "string", "floats", "ints", "strings" or "tensor".

    A node without a ``required`` attribute is refused.
    """

    name: str
    type: str
    required: bool = False
    default_value: Any = None  # None: a node without the attribute stays without it


@dataclass
class OpSchema:
    """The form of nodes that use operator ``name`` of ``domain``: ``inputs``, ``outputs``, ``attributes``.

    ``doc`` says what it does; ``version`` is the first opset of the domain in which models may use it.
    """

    name: str
    domain: str = "custom"
    version: int = 1
    doc: str = ""
    inputs: List[OpPort] = field(default_factory=list)
    outputs: List[OpPort] = field(default_factory=list)
    attributes: List[OpAttribute] = field(default_factory=list)

    def full_name(self) -> str:
        """Domain and name: "custom::MyOp"."""
        return f"{self.domain}::{self.name}"

    def copy(self) -> "OpSchema":
        """A copy that shares no list and no entry with this schema."""
        return OpSchema(self.name, self.domain, self.version, self.doc, [OpPort(**vars(one)) for one in self.inputs],
                        [OpPort(**vars(one)) for one in self.outputs],
                        [OpAttribute(**vars(one)) for one in self.attributes])

    def validate(self) -> List[str]:
        """The faults of the schema, a sentence each; the list is empty when there are none."""
        faults = []
        if not isinstance(self.name, str) or not self.name or not isinstance(self.domain, str):
            faults.append("name and domain are texts, and the name is not empty")
        if isinstance(self.version, bool) or not isinstance(self.version, int) or not 0 < self.version < 1 << 31:
            faults.append(f"its version is {self.version!r}; it is the number of an opset, 1 or above")
        if not self.outputs:
            faults.append("it has no output; give it one")
        for port in self.inputs[:-1]:
            if port.variadic:
                faults.append(f"input '{port.name}' is variadic and not the last; put it after the others")
        for port in self.outputs:
            if port.variadic or port.optional:
                faults.append(f"output '{port.name}' is variadic or optional, which only inputs can be; a node may "
                              "leave out any output")
        for kind, names in (("inputs", [port.name for port in self.inputs]),
                            ("outputs", [port.name for port in self.outputs]),
                            ("attributes", [attribute.name for attribute in self.attributes])):
            faults += [f"two of its {kind} are called '{name}'" for i, name in enumerate(names)
                       if names.index(name) < i]
        for attribute in self.attributes:
            if attribute.type not in ATTRIBUTES.values():
                faults.append(f"attribute '{attribute.name}' is of type {attribute.type!r}; there are " +
                              ", ".join(ATTRIBUTES.values()))
            if attribute.required and attribute.default_value is not None:
                faults.append(f"attribute '{attribute.name}' is required and has a default value; drop one of "
                              "the two")
        return faults

# SPDX-License-Identifier: Apache-2.0
"""Custom operators: what nodes that use one look like."""
from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Sequence

from .._graph.op_call import ATTRIBUTES
from .._values.dtype import DType
from .._values.tensor import Tensor

KernelFn = Callable[[List[Any], Dict[str, Any]], Sequence[Any]]
NodeKernelFn = Callable[[List[Any]], Sequence[Any]]
ShapeInferenceFn = Callable[[List[Any]], Sequence[Sequence[Optional[int]]]]
TypeInferenceFn = Callable[[List[Optional[DType]]], Sequence[Any]]
GradientFn = Callable[[List[Any], List[Any]], Sequence[Any]]


@dataclass
class OpNode:
    """A node that a kernel is made for.

    ``name`` may be empty; ``opset`` is what the model imports of the domain, 0 for none. ``attributes`` have the
    defaults of those that the node leaves out. ``input_dtypes`` and ``output_dtypes`` are None where they are not known,
    and for an input left out. ``constants`` has a copy of each input that is a constant, and None for the others.
    """

    name: str
    opset: int
    attributes: Dict[str, Any]
    input_dtypes: List[Optional[DType]]
    output_dtypes: List[Optional[DType]]
    constants: List[Optional[Tensor]]


NodeKernelMaker = Callable[[OpNode], NodeKernelFn]


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

    ``doc`` says what it does; models may use it from opset ``version`` of the domain to ``until``, 0: still current.
    """

    name: str
    domain: str = "custom"
    version: int = 1
    doc: str = ""
    inputs: List[OpPort] = field(default_factory=list)
    outputs: List[OpPort] = field(default_factory=list)
    attributes: List[OpAttribute] = field(default_factory=list)
    until: int = 0

    def full_name(self) -> str:
        """Domain and name: "custom::MyOp"."""
        return f"{self.domain}::{self.name}"

    def copy(self) -> "OpSchema":
        """A copy that shares no list and no entry with this schema."""
        return OpSchema(self.name, self.domain, self.version, self.doc, [OpPort(**vars(one)) for one in self.inputs],
                        [OpPort(**vars(one)) for one in self.outputs],
                        [OpAttribute(**vars(one)) for one in self.attributes], self.until)

    def validate(self) -> List[str]:
        """The faults of the schema, a sentence each; the list is empty when there are none."""
        faults = []
        if not isinstance(self.name, str) or not self.name or not isinstance(self.domain, str):
            faults.append("name and domain are texts, and the name is not empty")
        if isinstance(self.version, bool) or not isinstance(self.version, int) or not 0 < self.version < 1 << 31:
            faults.append(f"its version is {self.version!r}; it is the number of an opset, 1 or above")
        elif isinstance(self.until, bool) or not isinstance(self.until, int) or (
                self.until and not self.version <= self.until < 1 << 31):
            faults.append(f"it is known from version {self.version} to {self.until!r}; the last is an opset not before "
                          "the first, or 0 where there is none")
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

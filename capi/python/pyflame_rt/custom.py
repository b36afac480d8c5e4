# SPDX-License-Identifier: Apache-2.0
"""Operators with kernels written in Python.

>>> def double(inputs, attrs):
...     return [pyflame_rt.from_numpy(2 * pyflame_rt.to_numpy(inputs[0]))]
>>> custom.register_custom_op(name="Double", input_names=["X"], output_names=["Y"], kernel_fn=double)

Models use an operator by its domain and name. Those loaded and sessions made from then on know it.

A kernel gets its inputs as a list of Tensor and the node's attributes as a dict, and returns a list with a tensor or
array for each output. Inputs lie in the runtime's memory: they are read-only and live during the call only. An input
that a node leaves out is None. Attributes are int, float, str (bytes where they are no UTF-8), lists of these, or
Tensor. Outputs hold numbers or bools. Kernels are called from threads of the runtime, several at once; they may run
other sessions, but not the one that they are called for. What a kernel raises ends the run with an error that names
node and operator and has the exception as its ``__cause__``.

A shape inference gets the inputs' shapes, lists with None where a dimension is not known (None for an input left out),
and returns the outputs'; once the inputs' are known, the outputs' must be. It is called when all inputs' ranks are
known, has to give equal answers to equal questions, and saves the copy of an output that the run cannot place before.
"""
from __future__ import annotations

import copy
import ctypes
import enum
import threading
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence

from . import _abi, _callbacks, _custom_calls as calls, _exit, _library as lib
from ._dtype import DType, dtype_of
from ._errors import InputError, InvalidArgumentError, NotFoundError, error_of
from ._tensor import Tensor, from_numpy

__all__ = ["BackendType", "CustomOp", "CustomOpBuilder", "CustomOpRegistry", "OpAttribute", "OpPort",
           "register_custom_op"]

KernelFn = Callable[[List[Any], Dict[str, Any]], Sequence[Any]]
ShapeInferenceFn = Callable[[List[Any]], Sequence[Sequence[Optional[int]]]]


class BackendType(enum.Enum):
    """Where a kernel runs."""

    CPU = "cpu"


@dataclass(frozen=True)
class OpPort:
    """An input or output of an operator. ``dtype`` None: any; an output then has the type of input 0."""

    name: str
    dtype: Optional[DType] = None
    optional: bool = False


@dataclass(frozen=True)
class OpAttribute:
    """An attribute of an operator. ``type`` is "float", "int", "string", "floats", "ints", "strings" or "tensor"."""

    name: str
    type: str
    required: bool = False
    default_value: Any = None  # None: absent stays absent


class CustomOp:
    """An operator that was built; calling it calls the kernel, without a session."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.domain = "custom"
        self.version = 1
        self.doc = ""
        self.inputs: List[OpPort] = []
        self.outputs: List[OpPort] = []
        self.attributes: List[OpAttribute] = []
        self._kernel: Optional[KernelFn] = None
        self._shape_inference: Optional[ShapeInferenceFn] = None

    def full_name(self) -> str:
        """Domain and name: "custom::MyOp"."""
        return f"{self.domain}::{self.name}"

    def __call__(self, inputs: Sequence[Any], attrs: Optional[Dict[str, Any]] = None) -> List[Tensor]:
        """Checks the arguments and calls the kernel.

        Parameters
        ----------
        inputs: a Tensor or array for each input; None, or nothing at the end, for optional ones left out.
        attrs: attributes by name; defaults are filled in.

        Raises InputError, DTypeMismatchError, and what the kernel raises.
        """
        tensors = [None if given is None else given if isinstance(given, Tensor) else from_numpy(given)
                   for given in inputs]
        most = len(self.inputs)
        least = max((i + 1 for i, port in enumerate(self.inputs) if not port.optional), default=0)
        if not least <= len(tensors) <= most:
            raise InputError(f"{self.full_name()} takes {most if least == most else f'{least} to {most}'} inputs, got "
                             f"{len(tensors)}")
        tensors += [None] * (most - len(tensors))
        try:
            for i, tensor in enumerate(tensors):
                if tensor is None:
                    self._check_absent(i)
                else:
                    self._check_dtype(i, tensor.dtype)
            complete = self._complete(dict(attrs or {}))
        except _callbacks.Refusal as fault:
            raise error_of(fault.code, f"{self.full_name()}: {fault}") from None
        assert self._kernel is not None
        return [made if isinstance(made, Tensor) else from_numpy(made) for made in self._kernel(tensors, complete)]

    def _check_dtype(self, index: int, dtype: Optional[DType]) -> None:
        """None: not known yet."""
        port = self.inputs[index]
        if dtype is not None and port.dtype is not None and dtype != port.dtype:
            raise calls.refusal(f"input {index}, '{port.name}', is {dtype.text}, expected {port.dtype.text}",
                                _abi.CODE_DTYPE_MISMATCH)

    def _check_absent(self, index: int) -> None:
        port = self.inputs[index]
        if not port.optional:
            raise calls.refusal(f"input {index}, '{port.name}', is required, and absent", _abi.CODE_INPUT)

    def _complete(self, attrs: Dict[str, Any]) -> Dict[str, Any]:
        """Fills in defaults; what is required must be there."""
        for attribute in self.attributes:
            if attribute.name in attrs:
                continue
            if attribute.required:
                raise calls.refusal(f"attribute '{attribute.name}' is required, and absent", _abi.CODE_INPUT)
            if attribute.default_value is not None:
                default = attribute.default_value
                attrs[attribute.name] = list(default) if isinstance(default, (list, tuple)) else default
        return attrs

    def __repr__(self) -> str:
        def side(ports: List[OpPort]) -> str:
            return ", ".join(port.name + ("?" if port.optional else "") +
                             (f": {port.dtype.text}" if port.dtype is not None else "") for port in ports)
        attributes = "".join(f", {a.name}: {a.type}" + (" (required)" if a.required else "") for a in self.attributes)
        return f"CustomOp({self.full_name()}: {side(self.inputs)}{attributes} -> {side(self.outputs)})"

    def _register(self) -> None:
        _exit.count_calls()
        name, domain = lib.text(self.name), lib.text(self.domain)
        # The library wants every input up to the least number; which of the others are there is looked at here.
        least = next((i for i, port in enumerate(self.inputs) if port.optional), len(self.inputs))
        struct = _abi.CustomOp(
            struct_size=ctypes.sizeof(_abi.CustomOp), abi=_abi.ABI_VERSION, name=name, domain=domain,
            since_version=self.version, min_inputs=least, max_inputs=len(self.inputs), min_outputs=1,
            max_outputs=len(self.outputs), flags=0 if self._shape_inference else _abi.OP_DATA_DEPENDENT,
            infer=calls.INFER, compute=calls.COMPUTE, release=_callbacks.RELEASE, user=_callbacks.hold(self))
        lib.check(lib.env.register_operator(lib.default_env().address, ctypes.byref(struct)))


class CustomOpRegistry:
    """The operators that were built, by name ("MyOp") or full name ("custom::MyOp")."""

    _the: Optional["CustomOpRegistry"] = None
    _lock = threading.Lock()

    def __init__(self) -> None:
        self._ops: Dict[str, CustomOp] = {}

    @classmethod
    def instance(cls) -> "CustomOpRegistry":
        """The one of the process."""
        with cls._lock:
            if cls._the is None:
                cls._the = cls()
            return cls._the

    def list(self) -> List[str]:
        """Full names, sorted."""
        with self._lock:
            return sorted(self._ops)

    def has(self, name: str) -> bool:
        return self.get(name) is not None

    def get(self, name: str) -> Optional[CustomOp]:
        """None when there is none."""
        with self._lock:
            return self._find(name)

    def unregister(self, name: str) -> None:
        """Models loaded and sessions made later do not know it; those that exist keep it.

        Raises NotFoundError when there is none.
        """
        with self._lock:
            op = self._find(name)
            if op is None:
                known = ", ".join(f"'{full}'" for full in sorted(self._ops)) or "none"
                raise NotFoundError(f"unregister: no custom operator '{name}'; there are {known}")
            lib.check(lib.env.unregister_operator(lib.default_env().address, lib.text(op.domain), lib.text(op.name)))
            del self._ops[op.full_name()]

    def _find(self, name: str) -> Optional[CustomOp]:
        if name in self._ops:
            return self._ops[name]
        return next((op for full, op in sorted(self._ops.items()) if op.name == name), None)

    def _add(self, op: CustomOp) -> None:
        with self._lock:
            if op.full_name() in self._ops:
                raise InvalidArgumentError(f"custom operator '{op.full_name()}' is registered already; unregister it "
                                           "first, or give this one another name or domain")
            op._register()
            self._ops[op.full_name()] = op

    def __repr__(self) -> str:
        return f"CustomOpRegistry({', '.join(self.list())})"


class CustomOpBuilder:
    """Describes an operator step by step; ``build`` registers it.

    >>> op = (CustomOpBuilder("FusedBiasRelu").input("X", DType.Float32).input("bias", DType.Float32)
    ...       .output("Y", DType.Float32).kernel(fused_bias_relu).build())
    """

    def __init__(self, name: str) -> None:
        self._op = CustomOp(name)

    def domain(self, value: str) -> "CustomOpBuilder":
        """"custom" unless it is set."""
        self._op.domain = value
        return self

    def version(self, value: int) -> "CustomOpBuilder":
        """The first opset of the domain in which models may use it."""
        self._op.version = value
        return self

    def doc(self, value: str) -> "CustomOpBuilder":
        self._op.doc = value
        return self

    def input(self, name: str, dtype: Any = None, optional: bool = False) -> "CustomOpBuilder":
        """The next input; ``dtype`` None takes any. A node may leave out an optional one: the kernel gets None."""
        self._op.inputs.append(OpPort(name, None if dtype is None else dtype_of(dtype), optional))
        return self

    def output(self, name: str, dtype: Any = None) -> "CustomOpBuilder":
        """The next output; ``dtype`` None: that of input 0, or what the graph declares where there is no input."""
        self._op.outputs.append(OpPort(name, None if dtype is None else dtype_of(dtype)))
        return self

    def attr_float(self, name: str, required: bool = False, default_value: Optional[float] = None) -> "CustomOpBuilder":
        return self._attribute(name, "float", required, default_value)

    def attr_int(self, name: str, required: bool = False, default_value: Optional[int] = None) -> "CustomOpBuilder":
        return self._attribute(name, "int", required, default_value)

    def attr_string(self, name: str, required: bool = False, default_value: Optional[str] = None) -> "CustomOpBuilder":
        return self._attribute(name, "string", required, default_value)

    def attr_floats(self, name: str, required: bool = False,
                    default_value: Optional[Sequence[float]] = None) -> "CustomOpBuilder":
        return self._attribute(name, "floats", required, default_value)

    def attr_ints(self, name: str, required: bool = False,
                  default_value: Optional[Sequence[int]] = None) -> "CustomOpBuilder":
        return self._attribute(name, "ints", required, default_value)

    def attr_strings(self, name: str, required: bool = False,
                     default_value: Optional[Sequence[str]] = None) -> "CustomOpBuilder":
        return self._attribute(name, "strings", required, default_value)

    def attr_tensor(self, name: str, required: bool = False,
                    default_value: Optional[Tensor] = None) -> "CustomOpBuilder":
        return self._attribute(name, "tensor", required, default_value)

    def _attribute(self, name: str, kind: str, required: bool, default_value: Any) -> "CustomOpBuilder":
        self._op.attributes.append(OpAttribute(name, kind, required, default_value))
        return self

    def kernel(self, function: KernelFn, backend: BackendType = BackendType.CPU) -> "CustomOpBuilder":
        """What computes the outputs: function(inputs, attrs) -> list of Tensor or arrays."""
        if backend is not BackendType.CPU:
            raise InvalidArgumentError(f"custom operator '{self._op.name}': no kernel runs on {backend!r}; Python "
                                       "kernels run on BackendType.CPU")
        self._op._kernel = function
        return self

    def shape_inference(self, function: ShapeInferenceFn) -> "CustomOpBuilder":
        """What tells the outputs' shapes before a run: function(input_shapes) -> list of shapes."""
        self._op._shape_inference = function
        return self

    def build(self) -> CustomOp:
        """Registers the operator.

        Raises InvalidArgumentError when its name is taken or something is missing.
        """
        fault = self._fault()
        if fault:
            raise InvalidArgumentError(f"custom operator '{self._op.name}': {fault}")
        op = copy.copy(self._op)  # what the builder is told afterwards is another operator's
        op.inputs, op.outputs, op.attributes = list(op.inputs), list(op.outputs), list(op.attributes)
        CustomOpRegistry.instance()._add(op)
        return op

    def _fault(self) -> str:
        op = self._op
        if not isinstance(op.name, str) or not op.name or not isinstance(op.domain, str):
            return "name and domain are texts, and the name is not empty"
        if isinstance(op.version, bool) or not isinstance(op.version, int) or not 0 < op.version < 1 << 31:
            return f"its version is {op.version!r}; it is the number of an opset, 1 or above"
        if not op.outputs:
            return "it has no output; add .output(name)"
        if not callable(op._kernel):
            return f"its kernel is {op._kernel!r}; give it a function with .kernel(function)"
        if op._shape_inference is not None and not callable(op._shape_inference):
            return f"its shape inference is {op._shape_inference!r}, which cannot be called"
        for kind, names in (("inputs", [port.name for port in op.inputs]),
                            ("outputs", [port.name for port in op.outputs]),
                            ("attributes", [attribute.name for attribute in op.attributes])):
            twice = [name for i, name in enumerate(names) if name in names[:i]]
            if twice:
                return f"two of its {kind} are called '{twice[0]}'"
        for attribute in op.attributes:
            if attribute.required and attribute.default_value is not None:
                return f"attribute '{attribute.name}' is required and has a default value; it can be one of them"
        return ""


def register_custom_op(name: str, domain: str = "custom", input_names: Sequence[str] = (),
                       output_names: Sequence[str] = (), kernel_fn: Optional[KernelFn] = None,
                       shape_inference_fn: Optional[ShapeInferenceFn] = None, doc: str = "",
                       version: int = 1) -> CustomOp:
    """Registers an operator on inputs of any element type, whose outputs have that of input 0.

    Parameters
    ----------
    name, domain: what models call it.
    input_names, output_names: one for each.
    kernel_fn: function(inputs, attrs) -> list of Tensor or arrays.
    shape_inference_fn: function(input_shapes) -> list of shapes.
    doc: what it does.
    version: the first opset of the domain in which models may use it.

    Raises InvalidArgumentError when the name is taken or something is missing.
    """
    builder = CustomOpBuilder(name).domain(domain).version(version).doc(doc)
    for kind, names in (("input_names", input_names), ("output_names", output_names)):
        if isinstance(names, str):
            raise InvalidArgumentError(f"custom operator '{name}': {kind} is a list of names, got {names!r}")
    for one in input_names:
        builder.input(one)
    for one in output_names:
        builder.output(one)
    if kernel_fn is not None:
        builder.kernel(kernel_fn)
    if shape_inference_fn is not None:
        builder.shape_inference(shape_inference_fn)
    return builder.build()

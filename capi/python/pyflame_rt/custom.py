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

A type inference gets the inputs' element types, a DType or None where one is not known or the input is left out, and
returns the outputs'. Without it an output has the type that it declares, or that of input 0.

A gradient, ``function(inputs, grad_outputs)``, returns a tensor or array for each input, None where there is none. It
is what ``CustomOp.gradient`` calls; sessions only infer.
"""
from __future__ import annotations

import threading
from typing import Any, Dict, List, Optional, Sequence

from . import _library as lib
from ._custom_op import (BackendType, CustomOp, GradientFn, KernelFn, OpAttribute, OpPort, OpSchema, ShapeInferenceFn,
                         TypeInferenceFn, checked_kernel)
from ._dtype import dtype_of
from ._errors import InvalidArgumentError, NotFoundError
from ._tensor import Tensor

__all__ = ["BackendType", "CustomOp", "CustomOpBuilder", "CustomOpRegistry", "OpAttribute", "OpPort", "OpSchema",
           "register_custom_op"]


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

    def size(self) -> int:
        """How many there are."""
        with self._lock:
            return len(self._ops)

    def has(self, name: str) -> bool:
        """Whether an operator of this name, or full name, is registered."""
        return self.get(name) is not None

    def get(self, name: str) -> Optional[CustomOp]:
        """None when there is none."""
        with self._lock:
            return self._find(name)

    def register_op(self, schema: OpSchema, kernel: Optional[KernelFn] = None, *,
                    shape_inference: Optional[ShapeInferenceFn] = None,
                    type_inference: Optional[TypeInferenceFn] = None,
                    gradient: Optional[GradientFn] = None) -> CustomOp:
        """Registers an operator of a copy of |schema|; the functions as in ``CustomOpBuilder``.

        One without a kernel can be used in models and not run before ``CustomOp.set_kernel`` gave it one. Raises
        InvalidArgumentError when its name is taken or something is wrong with it.
        """
        op = CustomOp(schema.copy())
        faults = op._schema.validate()
        if faults:
            raise InvalidArgumentError(f"custom operator '{schema.name}': " + "; ".join(faults))
        for what, function in (("shape inference", shape_inference), ("type inference", type_inference),
                               ("gradient", gradient)):
            if function is not None and not callable(function):
                raise InvalidArgumentError(f"custom operator '{schema.name}': its {what} is {function!r}, which cannot "
                                           "be called")
        if kernel is not None:
            op.set_kernel(kernel)
        op._shape_inference, op._type_inference, op._gradient = shape_inference, type_inference, gradient
        with self._lock:
            if op.full_name() in self._ops:
                raise InvalidArgumentError(f"custom operator '{op.full_name()}' is registered already; unregister it "
                                           "first, or give this one another name or domain")
            op._register()
            self._ops[op.full_name()] = op
        return op

    def unregister(self, name: str) -> None:
        """Models loaded and sessions made later do not know it; those that exist keep it.

        Raises NotFoundError when there is none.
        """
        with self._lock:
            op = self._find(name)
            if op is None:
                known = ", ".join(f"'{full}'" for full in sorted(self._ops)) or "none"
                raise NotFoundError(f"unregister: no custom operator '{name}'; there are {known}")
            self._remove(op)

    unregister_op = unregister

    def clear(self) -> None:
        """Unregisters all of them."""
        with self._lock:
            for op in [*self._ops.values()]:
                self._remove(op)

    def _remove(self, op: CustomOp) -> None:
        lib.check(lib.env.unregister_operator(lib.default_env().address, lib.text(op.domain), lib.text(op.name)))
        del self._ops[op.full_name()]

    def _find(self, name: str) -> Optional[CustomOp]:
        if name in self._ops:
            return self._ops[name]
        return next((op for full, op in sorted(self._ops.items()) if op.name == name), None)

    def __repr__(self) -> str:
        return f"CustomOpRegistry({', '.join(self.list())})"


class CustomOpBuilder:
    """Describes an operator step by step; ``build`` registers it.

    >>> op = (CustomOpBuilder("FusedBiasRelu").input("X", DType.Float32).input("bias", DType.Float32)
    ...       .output("Y", DType.Float32).kernel(fused_bias_relu).build())
    """

    def __init__(self, name: str) -> None:
        self._schema = OpSchema(name)
        self._kernel: Optional[KernelFn] = None
        self._shape_inference: Optional[ShapeInferenceFn] = None
        self._type_inference: Optional[TypeInferenceFn] = None
        self._gradient: Optional[GradientFn] = None

    def domain(self, value: str) -> "CustomOpBuilder":
        """"custom" unless it is set."""
        self._schema.domain = value
        return self

    def version(self, value: int) -> "CustomOpBuilder":
        """The first opset of the domain in which models may use it."""
        self._schema.version = value
        return self

    def doc(self, value: str) -> "CustomOpBuilder":
        """What the operator does, in words."""
        self._schema.doc = value
        return self

    def input(self, name: str, dtype: Any = None, optional: bool = False) -> "CustomOpBuilder":
        """The next input; ``dtype`` None takes any. A node may leave out an optional one: the kernel gets None."""
        self._schema.inputs.append(OpPort(name, None if dtype is None else dtype_of(dtype), optional))
        return self

    def variadic_input(self, name: str, dtype: Any = None, optional: bool = False) -> "CustomOpBuilder":
        """The last input, which a node gives once or more often, |optional|: or not at all. The kernel gets each
        in its list of inputs; a gradient and the inferences do too."""
        self._schema.inputs.append(OpPort(name, None if dtype is None else dtype_of(dtype), optional, variadic=True))
        return self

    def output(self, name: str, dtype: Any = None) -> "CustomOpBuilder":
        """The next output; ``dtype`` None: that of input 0, or what the graph declares where there is no input."""
        self._schema.outputs.append(OpPort(name, None if dtype is None else dtype_of(dtype)))
        return self

    def attr_float(self, name: str, required: bool = False, default_value: Optional[float] = None) -> "CustomOpBuilder":
        """A float attribute; absent and without a default value it is not among the kernel's attrs."""
        return self._attribute(name, "float", required, default_value)

    def attr_int(self, name: str, required: bool = False, default_value: Optional[int] = None) -> "CustomOpBuilder":
        """An int attribute; as ``attr_float``."""
        return self._attribute(name, "int", required, default_value)

    def attr_string(self, name: str, required: bool = False, default_value: Optional[str] = None) -> "CustomOpBuilder":
        """A str attribute; as ``attr_float``."""
        return self._attribute(name, "string", required, default_value)

    def attr_floats(self, name: str, required: bool = False,
                    default_value: Optional[Sequence[float]] = None) -> "CustomOpBuilder":
        """A list of float; as ``attr_float``."""
        return self._attribute(name, "floats", required, default_value)

    def attr_ints(self, name: str, required: bool = False,
                  default_value: Optional[Sequence[int]] = None) -> "CustomOpBuilder":
        """A list of int; as ``attr_float``."""
        return self._attribute(name, "ints", required, default_value)

    def attr_strings(self, name: str, required: bool = False,
                     default_value: Optional[Sequence[str]] = None) -> "CustomOpBuilder":
        """A list of str; as ``attr_float``."""
        return self._attribute(name, "strings", required, default_value)

    def attr_tensor(self, name: str, required: bool = False,
                    default_value: Optional[Tensor] = None) -> "CustomOpBuilder":
        """A Tensor; as ``attr_float``."""
        return self._attribute(name, "tensor", required, default_value)

    def _attribute(self, name: str, kind: str, required: bool, default_value: Any) -> "CustomOpBuilder":
        self._schema.attributes.append(OpAttribute(name, kind, required, default_value))
        return self

    def kernel(self, function: KernelFn, backend: BackendType = BackendType.CPU) -> "CustomOpBuilder":
        """What computes the outputs: function(inputs, attrs) -> list of Tensor or arrays."""
        self._kernel = checked_kernel(self._schema.name, function, backend)
        return self

    def shape_inference(self, function: ShapeInferenceFn) -> "CustomOpBuilder":
        """What tells the outputs' shapes before a run: function(input_shapes) -> list of shapes."""
        self._shape_inference = function
        return self

    def type_inference(self, function: TypeInferenceFn) -> "CustomOpBuilder":
        """What tells the outputs' element types: function(input_dtypes) -> list of DType, None = as declared."""
        self._type_inference = function
        return self

    def gradient(self, function: GradientFn) -> "CustomOpBuilder":
        """What ``CustomOp.gradient`` calls: function(inputs, grad_outputs) -> list with a tensor for each input."""
        self._gradient = function
        return self

    def build(self) -> CustomOp:
        """Registers the operator.

        Raises InvalidArgumentError when its name is taken or something is missing.
        """
        if self._kernel is None:
            raise InvalidArgumentError(f"custom operator '{self._schema.name}': its kernel is None; give it a function "
                                       "with .kernel(function)")
        return CustomOpRegistry.instance().register_op(
            self._schema, self._kernel, shape_inference=self._shape_inference, type_inference=self._type_inference,
            gradient=self._gradient)


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

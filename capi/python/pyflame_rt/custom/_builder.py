# SPDX-License-Identifier: Apache-2.0
"""Custom operators, described step by step."""
from __future__ import annotations

from typing import Any, Optional, Sequence

from .._core.errors import InvalidArgumentError
from .._values.dtype import dtype_of
from .._values.tensor import Tensor
from ._op import CustomOp, checked_kernel
from ._registry import CustomOpRegistry
from ._schema import (BackendType, GradientFn, KernelFn, NodeKernelMaker, OpAttribute, OpPort, OpSchema,
                      ShapeInferenceFn, TypeInferenceFn)


class CustomOpBuilder:
    """Describes an operator step by step; ``build`` registers it.

    >>> op = (CustomOpBuilder("FusedBiasRelu").input("X", DType.Float32).input("bias", DType.Float32)
    ...       .output("Y", DType.Float32).kernel(fused_bias_relu).build())
    """

    def __init__(self, name: str) -> None:
        self._schema = OpSchema(name)
        self._kernel: Optional[KernelFn] = None
        self._maker: Optional[NodeKernelMaker] = None
        self._shape_inference: Optional[ShapeInferenceFn] = None
        self._type_inference: Optional[TypeInferenceFn] = None
        self._gradient: Optional[GradientFn] = None

    def domain(self, value: str) -> "CustomOpBuilder":
        """"custom" unless it is set."""
        self._schema.domain = value
        return self

    def version(self, since: int, until: int = 0) -> "CustomOpBuilder":
        """The first and the last opset of the domain in which models may use it; 0: it is still current.

        So an operator changes its meaning: the old one ends where the new one, of the same name, begins.
        """
        self._schema.version, self._schema.until = since, until
        return self

    def doc(self, value: str) -> "CustomOpBuilder":
        """Says what the operator does, in words."""
        self._schema.doc = value
        return self

    def input(self, name: str, dtype: Any = None, optional: bool = False) -> "CustomOpBuilder":
        """The next input; ``dtype`` None takes any. A node may leave out an optional one: the kernel gets None.

        Operators of one name for other types stand beside each other; each node gets the one for its types.
        """
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
        """Sets what computes the outputs: function(inputs, attrs) -> list of Tensor or arrays."""
        self._kernel = checked_kernel(self._schema.name, function, backend)
        self._maker = None
        return self

    def node_kernel(self, maker: NodeKernelMaker) -> "CustomOpBuilder":
        """Sets what makes the kernel of a node, in place of ``kernel``: function(node) -> function(inputs) -> list.

        It is called once for each node, an ``OpNode``, when a session is made: here a pattern is compiled, a table
        built, a vocabulary read, and what it raises is the error of the session. A class will do, with
        ``__init__(self, node)`` and ``__call__(self, inputs)``; calls may come from several threads at once. The kernel
        is dropped after the session's last run.
        """
        self._maker, self._kernel = maker, None
        return self

    def shape_inference(self, function: ShapeInferenceFn) -> "CustomOpBuilder":
        """Sets what tells the outputs' shapes before a run: function(input_shapes) -> list of shapes."""
        self._shape_inference = function
        return self

    def type_inference(self, function: TypeInferenceFn) -> "CustomOpBuilder":
        """Sets what tells the outputs' element types: function(input_dtypes) -> list of DType, None = as declared."""
        self._type_inference = function
        return self

    def gradient(self, function: GradientFn) -> "CustomOpBuilder":
        """Sets what ``CustomOp.gradient`` calls: function(inputs, grad_outputs) -> list of a tensor for each input."""
        self._gradient = function
        return self

    def build(self) -> CustomOp:
        """Registers the operator.

        Raises InvalidArgumentError when its name is taken or something is missing.
        """
        if self._kernel is None and self._maker is None:
            raise InvalidArgumentError(f"custom operator '{self._schema.name}': its kernel is None; give it a function "
                                       "with .kernel(function)")
        return CustomOpRegistry.instance().register_op(
            self._schema, self._kernel, node_kernel=self._maker, shape_inference=self._shape_inference,
            type_inference=self._type_inference, gradient=self._gradient)


def register_custom_op(name: str, domain: str = "custom", input_names: Sequence[str] = (),
                       output_names: Sequence[str] = (), kernel_fn: Optional[KernelFn] = None,
                       shape_inference_fn: Optional[ShapeInferenceFn] = None, doc: str = "",
                       version: int = 1, until: int = 0) -> CustomOp:
    """Registers an operator on inputs of any element type, whose outputs have that of input 0.

    Parameters
    ----------
    name, domain: what models call it.
    input_names, output_names: one for each.
    kernel_fn: function(inputs, attrs) -> list of Tensor or arrays.
    shape_inference_fn: function(input_shapes) -> list of shapes.
    doc: what it does.
    version, until: the first and the last opset of the domain in which models may use it; 0: it is still current.

    Raises InvalidArgumentError when the name is taken or something is missing.
    """
    builder = CustomOpBuilder(name).domain(domain).version(version, until).doc(doc)
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

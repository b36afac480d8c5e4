# SPDX-License-Identifier: Apache-2.0
"""Operators with kernels written in Python.

>>> def double(inputs, attrs):
...     return [pyflame_rt.from_numpy(2 * pyflame_rt.to_numpy(inputs[0]))]
>>> custom.register_custom_op(name="Double", input_names=["X"], output_names=["Y"], kernel_fn=double)

Models use an operator by its domain and name. Those loaded and sessions made from then on know it.

A kernel gets its inputs as a list of Tensor and the node's attributes as a dict, and returns a list with a tensor or
array for each output. Inputs lie in the runtime's memory: they are read-only and live during the call only. An input
that a node leaves out is None. Attributes are int, float, str (bytes where they are no UTF-8), lists of these, or
Tensor. Outputs hold numbers, bools or texts. Kernels are called from threads of the runtime, several at once; they may run
other sessions, but not the one that they are called for. What a kernel raises ends the run with an error that names
node and operator and has the exception as its ``__cause__``.

What all runs of a node share, such as a compiled pattern, is prepared by ``CustomOpBuilder.node_kernel``:

>>> class Match:
...     def __init__(self, node):
...         self.pattern = re.compile(node.attributes["pattern"])
...     def __call__(self, inputs):
...         return [numpy.array([bool(self.pattern.fullmatch(text)) for text in inputs[0].numpy()])]
>>> custom.CustomOpBuilder("Match").input("X", DType.String).output("Y", DType.Bool).node_kernel(Match).build()

Several operators may have one name: those known at other opsets (``CustomOpBuilder.version``), among which the opset
that a model imports of the domain chooses, and those whose ports have other element types, among which the types of a
node choose.

A shape inference gets the inputs' shapes, lists with None where a dimension is not known (None for an input left out),
and returns the outputs'; once the inputs' are known, the outputs' must be. It is called when all inputs' ranks are
known, has to give equal answers to equal questions, and saves the copy of an output that the run cannot place before.

A type inference gets the inputs' element types, a DType or None where one is not known or the input is left out, and
returns the outputs'. Without it an output has the type that it declares, or that of input 0.

A gradient, ``function(inputs, grad_outputs)``, returns a tensor or array for each input, None where there is none. It
is what ``CustomOp.gradient`` calls; sessions only infer.
"""
from ._builder import CustomOpBuilder, register_custom_op
from ._definition import CustomOpDef
from ._op import CustomOp
from ._registry import CustomOpRegistry
from ._schema import (BackendType, GradientFn, KernelFn, NodeKernelFn, NodeKernelMaker, OpAttribute, OpNode, OpPort,
                      OpSchema, ShapeInferenceFn, TypeInferenceFn)

__all__ = ["BackendType", "CustomOp", "CustomOpBuilder", "CustomOpDef", "CustomOpRegistry", "OpAttribute", "OpNode",
           "OpPort", "OpSchema", "register_custom_op"]

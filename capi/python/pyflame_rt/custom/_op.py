# SPDX-License-Identifier: Apache-2.0
"""Custom operators: a schema with its functions."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

from .._core import abi, callbacks
from .._core.errors import (DTypeMismatchError, InputError, InvalidArgumentError, ShapeMismatchError, UnsupportedError,
                            error_of)
from .._graph.op_call import refusal
from .._values.dtype import DType, dtype_of
from .._values.tensor import Tensor, from_numpy
from ._schema import (BackendType, GradientFn, KernelFn, NodeKernelFn, NodeKernelMaker, OpAttribute, OpNode, OpPort,
                      OpSchema, ShapeInferenceFn, TypeInferenceFn)


class CustomOp:
    """An operator that is registered; calling it calls the kernel, without a session."""

    def __init__(self, schema: OpSchema) -> None:
        self._schema = schema
        self._kernel: Optional[KernelFn] = None
        self._maker: Optional[NodeKernelMaker] = None
        self._shape_inference: Optional[ShapeInferenceFn] = None
        self._type_inference: Optional[TypeInferenceFn] = None
        self._gradient: Optional[GradientFn] = None

    # ------------------------------------------------------------------ what it is

    @property
    def schema(self) -> OpSchema:
        """A copy. Changing it does not change this operator; ``CustomOpRegistry.register_op`` takes it for another."""
        return self._schema.copy()

    @property
    def name(self) -> str:
        """The name without the domain."""
        return self._schema.name

    @property
    def domain(self) -> str:
        """"custom" unless the builder set it."""
        return self._schema.domain

    @property
    def version(self) -> int:
        """The first opset of the domain in which models may use it."""
        return self._schema.version

    @property
    def until(self) -> int:
        """The last opset of the domain in which models may use it; 0: it is still current."""
        return self._schema.until

    @property
    def doc(self) -> str:
        """The description of what it does."""
        return self._schema.doc

    @property
    def inputs(self) -> List[OpPort]:
        """Copies of the inputs' ports, in the order of a node's inputs."""
        return self.schema.inputs

    @property
    def outputs(self) -> List[OpPort]:
        """Copies of the outputs' ports, in the order of a node's outputs."""
        return self.schema.outputs

    @property
    def attributes(self) -> List[OpAttribute]:
        """Copies of the attributes, in the order in which they were declared."""
        return self.schema.attributes

    def full_name(self) -> str:
        """Domain and name: "custom::MyOp"."""
        return self._schema.full_name()

    def has_gradient(self) -> bool:
        """Tells whether it was given a gradient."""
        return self._gradient is not None

    def supports_backend(self, backend: BackendType) -> bool:
        """Tells whether it has a kernel that runs there."""
        return backend in self.get_supported_backends()

    def get_supported_backends(self) -> List[BackendType]:
        """The backends that its kernel runs on."""
        return [] if self._kernel is None and self._maker is None else [BackendType.CPU]

    def set_kernel(self, function: KernelFn, backend: BackendType = BackendType.CPU) -> None:
        """Sets function(inputs, attrs) -> list, which computes the outputs from now on, in existing sessions too, but
        for nodes that have a kernel of their own."""
        self._kernel = checked_kernel(self.name, function, backend)

    # ------------------------------------------------------------------ calls without a session

    def execute(self, inputs: Sequence[Any], attributes: Optional[Dict[str, Any]] = None) -> List[Tensor]:
        """Checks the arguments and calls the kernel. One for a node is made for the call, all inputs being constants.

        Parameters
        ----------
        inputs: a Tensor or array for each input; None for an optional one left out, or nothing if it is at the end.
        attributes: by name; defaults are filled in.

        Raises InputError, DTypeMismatchError, UnsupportedOperatorError without a kernel, and what the kernel raises.
        """
        try:
            tensors = self._tensors(inputs)
            complete = self._complete(dict(attributes or {}))
            if self._maker is not None:
                dtypes = [None if tensor is None else tensor.dtype for tensor in tensors]
                node = OpNode(self.name, 0, complete, dtypes, self._output_dtypes(dtypes), list(tensors))
                return [tensor_of(made) for made in self._make_kernel(node)(tensors)]
            kernel = self._need_kernel()
        except callbacks.Refusal as fault:
            raise error_of(fault.code, f"{self.full_name()}: {fault}") from None
        return [tensor_of(made) for made in kernel(tensors, complete)]

    __call__ = execute

    def infer_output_shapes(self, input_shapes: Sequence[Any]) -> List[Optional[List[Optional[int]]]]:
        """The outputs' shapes for given shapes of the inputs. A shape is a list, with None for an unknown dimension.

        A shape that only the kernel can tell is None. Without a shape inference function all of them are.
        """
        if self._shape_inference is None:
            return [None] * len(self._schema.outputs)
        shapes = [None if shape is None else list(shape) for shape in input_shapes]
        fixed = all(shape is None or None not in shape for shape in shapes)
        try:
            return list(self._shapes_of(shapes, len(self._schema.outputs), fixed))
        except callbacks.Refusal as fault:
            raise error_of(fault.code, f"{self.full_name()}: {fault}") from None

    def infer_output_dtypes(self, input_dtypes: Sequence[Any]) -> List[Optional[DType]]:
        """The outputs' element types for given types of the inputs. These are DTypes or what NumPy takes as one; None
        stands for a type that is not known."""
        dtypes = [None if one is None else dtype_of(one) for one in input_dtypes]
        try:
            for i, dtype in enumerate(dtypes):
                self._check_dtype(i, dtype)
            return self._output_dtypes(dtypes)
        except callbacks.Refusal as fault:
            raise error_of(fault.code, f"{self.full_name()}: {fault}") from None

    def gradient(self, inputs: Sequence[Any], grad_outputs: Sequence[Any]) -> List[Optional[Tensor]]:
        """The gradient of a loss with respect to each input, from those with respect to the outputs.

        Parameters
        ----------
        inputs: as for ``execute``.
        grad_outputs: a Tensor or array for each output; None for one that the loss does not depend on.

        Returns a Tensor of the input's shape and type for each of |inputs|, None where there is no gradient.

        Raises UnsupportedError for an operator without one, InputError, DTypeMismatchError, ShapeMismatchError.
        """
        if self._gradient is None:
            raise UnsupportedError(f"{self.full_name()} has no gradient; register it with "
                                   "CustomOpBuilder.gradient(function)")
        try:
            tensors = self._tensors(inputs)
        except callbacks.Refusal as fault:
            raise error_of(fault.code, f"{self.full_name()}: {fault}") from None
        if len(grad_outputs) != len(self._schema.outputs):
            raise InputError(f"the gradient of {self.full_name()} takes {len(self._schema.outputs)} gradients of "
                             f"outputs, got {len(grad_outputs)}")
        made = self._gradient(tensors, [None if one is None else tensor_of(one) for one in grad_outputs])
        if not isinstance(made, (list, tuple)) or len(made) != len(tensors):
            what = f"{len(made)} tensors" if isinstance(made, (list, tuple)) else type(made).__name__
            raise InputError(f"the gradient of {self.full_name()} returned {what}; return a list of {len(tensors)}, "
                             "one for each input, None where there is no gradient")
        return [self._gradient_of(i, tensor, one) for i, (tensor, one) in enumerate(zip(tensors, made))]

    def _gradient_of(self, index: int, tensor: Optional[Tensor], made: Any) -> Optional[Tensor]:
        if made is None or tensor is None:
            return None
        found = tensor_of(made)
        where = f"the gradient of {self.full_name()} for input {index}, '{self._port(index).name}',"
        if found.shape != tensor.shape:
            raise ShapeMismatchError(f"{where} has shape {found.shape}, expected the input's {tensor.shape}")
        if found.dtype != tensor.dtype:
            raise DTypeMismatchError(f"{where} is {found.dtype.text}, expected the input's {tensor.dtype.text}")
        return found

    # ------------------------------------------------------------------ checks, for calls with a session too

    def _port(self, index: int) -> OpPort:
        """The port of input |index|. A variadic port is that of all inputs from its position on."""
        return self._schema.inputs[min(index, len(self._schema.inputs) - 1)]

    def _variadic(self) -> bool:
        return bool(self._schema.inputs) and self._schema.inputs[-1].variadic

    def _singles(self) -> int:
        """The number of inputs before a variadic one."""
        return len(self._schema.inputs) - self._variadic()

    def _tensors(self, inputs: Sequence[Any]) -> List[Optional[Tensor]]:
        """A tensor, or None, for each input."""
        tensors = [None if given is None else tensor_of(given) for given in inputs]
        ports, most = self._schema.inputs, len(self._schema.inputs)
        least = max((i + 1 for i, port in enumerate(ports) if not port.optional), default=0)
        if len(tensors) < least or len(tensors) > most and not self._variadic():
            wanted = f"{least} or more" if self._variadic() else most if least == most else f"{least} to {most}"
            raise InputError(f"{self.full_name()} takes {wanted} inputs, got {len(tensors)}")
        tensors += [None] * (self._singles() - len(tensors))
        for i, tensor in enumerate(tensors):
            if tensor is None:
                self._check_absent(i)
            else:
                self._check_dtype(i, tensor.dtype)
        return tensors

    def _need_kernel(self) -> KernelFn:
        if self._kernel is None:
            raise refusal("it has no kernel; give it one with op.set_kernel(function)",
                          abi.CODE_UNSUPPORTED_OPERATOR)
        return self._kernel

    def _make_kernel(self, node: OpNode) -> NodeKernelFn:
        assert self._maker is not None
        made = self._maker(node)
        if not callable(made):
            raise refusal(f"what makes its kernel returned {type(made).__name__} for the node; return a function of "
                          "the inputs")
        return made

    def _output_dtypes(self, dtypes: Sequence[Optional[DType]]) -> List[Optional[DType]]:
        first = dtypes[0] if dtypes else None
        declared = [first if port.dtype is None else port.dtype for port in self._schema.outputs]
        if self._type_inference is None:
            return declared
        answer = self._type_inference(list(dtypes))
        if not isinstance(answer, (list, tuple)) or len(answer) != len(declared):
            raise refusal(f"its type inference returned {answer!r}; return a list of {len(declared)}, one "
                          "element type for each output")
        found = [None if one is None else dtype_of(one) for one in answer]
        for port, dtype in zip(self._schema.outputs, found):
            if port.dtype is not None and dtype is not None and dtype != port.dtype:
                raise refusal(f"its type inference returned {dtype.text} for output '{port.name}', which is "
                              f"{port.dtype.text}", abi.CODE_DTYPE_MISMATCH)
        return [port.dtype if dtype is None else dtype for port, dtype in zip(self._schema.outputs, found)]

    def _shapes_of(self, given: List[Optional[List[Optional[int]]]], wanted: int,
                   fixed: bool) -> List[List[Optional[int]]]:
        """The answer of the shape inference to the inputs' shapes, checked; |fixed|: these are all known."""
        assert self._shape_inference is not None
        results: Any = self._shape_inference(given)
        if not isinstance(results, (list, tuple)) or not wanted <= len(results) <= len(self._schema.outputs):
            what = f"{len(results)} shapes" if isinstance(results, (list, tuple)) else type(results).__name__
            raise refusal(f"its shape inference returned {what}; return a list of {len(self._schema.outputs)}, one for "
                          "each output")
        shapes = []
        for port, shape in zip(self._schema.outputs, results):
            answer = f"its shape inference returned {shape!r} as the shape of output '{port.name}'"
            if not isinstance(shape, (list, tuple)):
                raise refusal(f"{answer}; return a list of ints, with None where a dimension is not known")
            try:
                shapes.append([None if dim is None else dim.__index__() for dim in shape])
            except AttributeError:
                raise refusal(f"{answer}, and a dimension is an int or None") from None
            if any(dim is not None and not 0 <= dim < 1 << 63 for dim in shapes[-1]):
                raise refusal(f"{answer}, and a dimension is None or not below 0")
            if fixed and None in shapes[-1]:
                raise refusal(f"{answer} and so leaves dimensions open, though all of the inputs are known; register it "
                              "without shape_inference if only the kernel can tell")
        return shapes

    def _check_dtype(self, index: int, dtype: Optional[DType]) -> None:
        """Refuses a wrong type for input |index|. |dtype| None is a type that is not known yet."""
        port = self._port(index)
        if dtype is not None and port.dtype is not None and dtype != port.dtype:
            raise refusal(f"input {index}, '{port.name}', is {dtype.text}, expected {port.dtype.text}",
                          abi.CODE_DTYPE_MISMATCH)

    def _check_absent(self, index: int) -> None:
        port = self._port(index)
        if not port.optional:
            raise refusal(f"input {index}, '{port.name}', is required, and absent", abi.CODE_INPUT)

    def _complete(self, attrs: Dict[str, Any]) -> Dict[str, Any]:
        """Fills in defaults. Refuses a node without a required attribute."""
        for attribute in self._schema.attributes:
            if attribute.name in attrs:
                continue
            if attribute.required:
                raise refusal(f"attribute '{attribute.name}' is required, and absent", abi.CODE_INPUT)
            if attribute.default_value is not None:
                default = attribute.default_value
                attrs[attribute.name] = list(default) if isinstance(default, (list, tuple)) else default
        return attrs

    def __repr__(self) -> str:
        def side(ports: List[OpPort]) -> str:
            return ", ".join(port.name + ("..." if port.variadic else "") + ("?" if port.optional else "") +
                             (f": {port.dtype.text}" if port.dtype is not None else "") for port in ports)
        attributes = "".join(f", {a.name}: {a.type}" + (" (required)" if a.required else "") for a in self.attributes)
        return f"CustomOp({self.full_name()}: {side(self.inputs)}{attributes} -> {side(self.outputs)})"


def tensor_of(what: Any) -> Tensor:
    return what if isinstance(what, Tensor) else from_numpy(what)


def checked_kernel(name: str, function: KernelFn, backend: BackendType) -> KernelFn:
    """|function|. Raises InvalidArgumentError if it cannot be called, or if |backend| is not the CPU."""
    if backend is not BackendType.CPU:
        raise InvalidArgumentError(f"custom operator '{name}': no kernel runs on {backend!r}; Python kernels run on "
                                   "BackendType.CPU")
    if not callable(function):
        raise InvalidArgumentError(f"custom operator '{name}': its kernel is {function!r}; give it a function with "
                                   ".kernel(function)")
    return function

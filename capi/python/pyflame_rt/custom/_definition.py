# SPDX-License-Identifier: Apache-2.0
"""An operator by ONNX Runtime's description of one: its name, its domain, and the types of its ports by position."""
from __future__ import annotations

import enum
from typing import Any, Callable, List, Sequence

from .._core.errors import InvalidArgumentError
from .._values.dtype import DType, dtype_of
from .._values.tensor import Tensor
from ._builder import CustomOpBuilder
from ._op import CustomOp


class TensorType(enum.IntEnum):
    """Element types by ONNX's numbers."""

    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    BFLOAT16 = 16


def _dtype(what: Any) -> DType:
    return dtype_of("float32" if what is TensorType.FLOAT else
                    "float64" if what is TensorType.DOUBLE else
                    what.name.lower() if isinstance(what, TensorType) else what)


class CustomOpDef:
    """An operator that models use by ``domain`` and ``op_type`` once ``register`` has given it a kernel.

    >>> class Doubled:
    ...     def compute(self, input_data):
    ...         return input_data * 2.0
    >>> CustomOpDef(op_type="Doubled", domain="custom.domain", inputs=[CustomOpDef.TensorType.FLOAT],
    ...             outputs=[CustomOpDef.TensorType.FLOAT]).register(Doubled())

    ``inputs`` and ``outputs`` are the element types of its ports: a TensorType, a DType, or what a DType is made of.
    """

    TensorType = TensorType

    def __init__(self, op_type: str, domain: str = "custom", inputs: Sequence[Any] = (),
                 outputs: Sequence[Any] = ()) -> None:
        if not outputs:
            raise InvalidArgumentError(f"CustomOpDef '{op_type}' has no outputs; give the type of one at least")
        self.op_type, self.domain = op_type, domain
        self.inputs: List[DType] = [_dtype(each) for each in inputs]
        self.outputs: List[DType] = [_dtype(each) for each in outputs]

    def register(self, kernel: Any) -> CustomOp:
        """Registers the operator with what computes it: a function of arrays, or an object with one named ``compute``.

        It gets an array for each input and returns an array, or a list or tuple with one for each output; what it
        returns is converted to the types of the outputs. It is called from threads of the runtime, several at once.
        Raises InvalidArgumentError when the name is taken or the kernel cannot be called.
        """
        compute: Callable[..., Any] = getattr(kernel, "compute", kernel)
        if not callable(compute):
            raise InvalidArgumentError(f"CustomOpDef '{self.op_type}': {kernel!r} cannot be called and has no 'compute'; "
                                       "give a function of arrays")

        def run(inputs: List[Tensor], _attrs: Any) -> List[Any]:
            made = compute(*(None if each is None else each.numpy() for each in inputs))
            results = list(made) if isinstance(made, (list, tuple)) else [made]
            return [each if dtype.numpy is None or not hasattr(each, "astype") else each.astype(dtype.numpy, copy=False)
                    for each, dtype in zip(results, self.outputs)] + results[len(self.outputs):]

        builder = CustomOpBuilder(self.op_type).domain(self.domain).kernel(run)
        for i, dtype in enumerate(self.inputs):
            builder.input(f"input_{i}", dtype)
        for i, dtype in enumerate(self.outputs):
            builder.output(f"output_{i}", dtype)
        return builder.build()

    def __repr__(self) -> str:
        ports = ", ".join(each.text for each in self.inputs), ", ".join(each.text for each in self.outputs)
        return f"CustomOpDef({self.domain}.{self.op_type}: {ports[0]} -> {ports[1]})"

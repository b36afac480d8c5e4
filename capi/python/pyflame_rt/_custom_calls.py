# SPDX-License-Identifier: Apache-2.0
"""Calls of the library for operators with Python kernels: arguments as tensors and a dict, results copied back."""
from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from . import _abi, _callbacks, _exit, _library as lib
from ._dtype import FROM_ABI, TO_ABI, DType, numpy_name
from ._op_call import Leases, attributes_of, forget_frames, list_of, refusal, result_of
from ._tensor import Tensor
from ._values import address_of

if TYPE_CHECKING:
    from ._custom_op import CustomOp

# No dimension of an input has this number, so it is one that is not known.
_OPEN = -(1 << 63)


# ------------------------------------------------------------------ attributes


def _attributes(op: "CustomOp", node: Any, size: int) -> Dict[str, Any]:
    """The node's attributes by name, with the defaults of those that it leaves out."""
    declared = {attribute.name: attribute.type for attribute in op._schema.attributes}
    found: Dict[str, Any] = {}
    for name, kind, value in attributes_of(node, size):
        if declared.get(name, kind) != kind:
            raise refusal(f"attribute '{name}' is of type {kind}, expected {declared[name]}", _abi.CODE_INPUT)
        found[name] = value
    return op._complete(found)


# ------------------------------------------------------------------ shapes


def _infer(op: "CustomOp", call: Any, address: int) -> None:
    _attributes(op, _abi.SnapshotNode.from_address(call.node), call.attr_size)
    shapes: List[Optional[List[Optional[int]]]] = []
    dtypes: List[Optional[DType]] = []
    ranked, fixed = True, True
    for i in range(call.input_count):
        value = _abi.SnapshotValue.from_address(call.inputs + i * call.value_size)
        if not value.name.size:
            op._check_absent(i)
            shapes.append(None)
            dtypes.append(None)
            continue
        dtypes.append(FROM_ABI.get(value.dtype))
        op._check_dtype(i, dtypes[i])
        ranked = ranked and value.rank >= 0
        dims = list_of(ctypes.c_int64, value.dims, max(value.rank, 0))
        fixed = fixed and all(dim >= 0 for dim in dims)
        shapes.append([dim if dim >= 0 else None for dim in dims])
    for i in range(call.input_count, len(op._schema.inputs)):
        op._check_absent(i)
        if i < op._singles():
            shapes.append(None)
            dtypes.append(None)
    results = None
    if op._shape_inference is not None and ranked:
        results = shapes_of(op, shapes, call.output_count, fixed)
    for i, dtype in enumerate(op._output_dtypes(dtypes)[:call.output_count]):
        if dtype is None:
            continue  # the graph may say
        dims = [] if results is None else [_OPEN if dim is None else dim for dim in results[i]]
        code = call.set_output(address, i, TO_ABI[dtype], -1 if results is None else len(dims),
                               (ctypes.c_int64 * max(len(dims), 1))(*dims))
        if code:
            raise refusal("", code)  # the library has said why


def shapes_of(op: "CustomOp", given: List[Optional[List[Optional[int]]]], wanted: int,
              fixed: bool) -> List[List[Optional[int]]]:
    """What its shape inference returns for the inputs' shapes, checked; |fixed|: all dimensions of those are known."""
    assert op._shape_inference is not None
    results: Any = op._shape_inference(given)
    if not isinstance(results, (list, tuple)) or not wanted <= len(results) <= len(op._schema.outputs):
        what = f"{len(results)} shapes" if isinstance(results, (list, tuple)) else type(results).__name__
        raise refusal(f"its shape inference returned {what}; return a list of {len(op._schema.outputs)}, one for each "
                      "output")
    shapes = []
    for port, shape in zip(op._schema.outputs, results):
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


# ------------------------------------------------------------------ kernels


def _inputs(op: "CustomOp", call: Any, leases: Leases) -> List[Optional[Tensor]]:
    tensors: List[Optional[Tensor]] = []
    for i, view in enumerate((_abi.Tensor * call.input_count).from_address(call.inputs) if call.input_count else ()):
        if not view.dtype:
            op._check_absent(i)
            tensors.append(None)
            continue
        op._check_dtype(i, FROM_ABI[view.dtype])
        tensors.append(leases.lend(i, view))
    return tensors + [None] * (op._singles() - len(tensors))


def _compute(op: "CustomOp", call: Any, address: int) -> None:
    if _exit.closing:
        raise refusal("the interpreter is ending, and its kernel is Python code", _abi.CODE_CANCELLED)
    attrs, leases = _attributes(op, _abi.SnapshotNode.from_address(call.node), call.attr_size), Leases()
    tensors = _inputs(op, call, leases)
    try:
        results = op._need_kernel()(tensors, attrs)
    except BaseException as fault:
        forget_frames(fault)
        raise
    _give(op, call, address, results)
    del tensors, results
    leases.check("its kernel", "inputs")


def _give(op: "CustomOp", call: Any, address: int, results: Any) -> None:
    """Copies what a kernel returned to where the runtime wants it."""
    if not isinstance(results, (list, tuple)):
        raise refusal(f"its kernel returned {type(results).__name__}; return a list with a tensor for each output")
    outputs = (_abi.Tensor * call.output_count).from_address(call.outputs)
    if len(results) > len(op._schema.outputs):
        raise refusal(f"its kernel returned {len(results)} tensors, and it has {len(op._schema.outputs)} outputs")
    for i, output in enumerate(outputs):
        if not output.dtype:
            continue  # nobody wants it
        name = op._schema.outputs[i].name
        if i >= len(results) or results[i] is None:
            raise refusal(f"its kernel returned {len(results)} tensors, output {i}, '{name}', is not among them")
        array, dtype, dims = result_of(results[i], f"output {i}, '{name}'", "its kernel")
        if TO_ABI[dtype] != output.dtype:
            wanted = FROM_ABI[output.dtype]
            numpy = numpy_name(wanted)
            nearest = "a Tensor of that type" if numpy is None else f"it with .astype({numpy})"
            raise refusal(f"its kernel gave {dtype.text} for output {i}, '{name}', which is {wanted.text}; return "
                          f"{nearest}", _abi.CODE_DTYPE_MISMATCH)
        if array.nbytes != (math.prod(dims) * dtype.bits + 7) // 8:
            raise refusal(f"its kernel gave {array.nbytes} bytes as {dtype.text} {list(dims)} for output {i}, '{name}'")
        memory = ctypes.c_void_p()
        code = call.alloc_output(address, i, output.dtype, (ctypes.c_int64 * max(len(dims), 1))(*dims), len(dims),
                                 ctypes.byref(memory))
        if code:
            raise refusal("", code)  # the library has said why
        if array.nbytes and memory.value:
            ctypes.memmove(memory.value, address_of(array), array.nbytes)


# ------------------------------------------------------------------ what the library calls


def _entry(struct: Any, work: Any) -> Any:
    def enter(user: int, address: int) -> int:
        call = struct.from_address(address)

        def fail(code: int, message: str) -> int:
            # An exception that is none of the package's is the kernel's, which is the operator's provider here.
            code = _abi.CODE_PROVIDER if code == _abi.CODE_INTERNAL else code
            call.fail(address, code, lib.text(message))
            return code
        return _callbacks.guard(fail, work, _callbacks.held(user), call, address)
    return enter


INFER = _callbacks.permanent(_abi.CustomOp, "infer", _exit.callback(_entry(_abi.OpInfer, _infer)))
COMPUTE = _callbacks.permanent(_abi.CustomOp, "compute", _exit.callback(_entry(_abi.OpCompute, _compute)))

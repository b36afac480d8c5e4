# SPDX-License-Identifier: Apache-2.0
"""Calls of the library for operators with Python kernels: arguments as tensors and a dict, results copied back."""
from __future__ import annotations

import ctypes
import math
from typing import Any, Dict, List, Optional, Sequence

from .._core import abi, callbacks, library as lib, shutdown
from .._graph.op_call import Leases, attributes_of, forget_frames, list_of, refusal, result_of, texts_of
from .._values.arrays import address_of
from .._values.dtype import FROM_ABI, TO_ABI, DType, numpy_name
from .._values.memory import dims_of, memory_of_view
from .._values.tensor import Tensor
from ._op import CustomOp
from ._schema import OpNode, OpPort

# No dimension of an input has this number, so it is one that is not known.
_OPEN = -(1 << 63)


# ------------------------------------------------------------------ attributes


def _attributes(op: CustomOp, node: Any, size: int) -> Dict[str, Any]:
    """The node's attributes by name, with the defaults of those that it leaves out."""
    declared = {attribute.name: attribute.type for attribute in op._schema.attributes}
    found: Dict[str, Any] = {}
    for name, kind, value in attributes_of(node, size):
        if declared.get(name, kind) != kind:
            raise refusal(f"attribute '{name}' is of type {kind}, expected {declared[name]}", abi.CODE_INPUT)
        found[name] = value
    return op._complete(found)


# ------------------------------------------------------------------ shapes


def _infer(op: CustomOp, call: Any, address: int) -> None:
    _attributes(op, abi.SnapshotNode.from_address(call.node), call.attr_size)
    shapes: List[Optional[List[Optional[int]]]] = []
    dtypes: List[Optional[DType]] = []
    ranked, fixed = True, True
    for i in range(call.input_count):
        value = abi.SnapshotValue.from_address(call.inputs + i * call.value_size)
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
        results = op._shapes_of(shapes, call.output_count, fixed)
    for i, dtype in enumerate(op._output_dtypes(dtypes)[:call.output_count]):
        if dtype is None:
            continue  # the graph may say
        dims = [] if results is None else [_OPEN if dim is None else dim for dim in results[i]]
        code = call.set_output(address, i, TO_ABI[dtype], -1 if results is None else len(dims),
                               (ctypes.c_int64 * max(len(dims), 1))(*dims))
        if code:
            raise refusal("", code)  # the library has said why


# ------------------------------------------------------------------ kernels of nodes


def _constant(value: Any) -> Optional[Tensor]:
    if not value.flags & abi.SNAPSHOT_CONSTANT:
        return None
    view = abi.Tensor(struct_size=ctypes.sizeof(abi.Tensor), dtype=value.dtype, rank=value.rank, data=value.data,
                      bytes=value.bytes, dims=value.dims)
    return Tensor._over(memory_of_view(view, None), FROM_ABI[view.dtype], dims_of(view)).clone()


def _create(op: CustomOp, call: Any, _address: int, out: int) -> None:
    node = abi.SnapshotNode.from_address(call.node)
    sides = [[abi.SnapshotValue.from_address(values + i * call.value_size) for i in range(count)]
             for values, count in ((call.inputs, call.input_count), (call.outputs, call.output_count))]
    input_dtypes, output_dtypes = ([FROM_ABI.get(value.dtype) for value in side] for side in sides)
    made = op._make_kernel(OpNode(lib.read(node.name), node.opset, _attributes(op, node, call.attr_size), input_dtypes,
                                  output_dtypes, [_constant(value) for value in sides[0]]))
    ctypes.c_void_p.from_address(out).value = callbacks.hold(made)


# ------------------------------------------------------------------ kernels


def _inputs(op: CustomOp, call: Any, leases: Leases) -> List[Optional[Tensor]]:
    tensors: List[Optional[Tensor]] = []
    for i, view in enumerate((abi.Tensor * call.input_count).from_address(call.inputs) if call.input_count else ()):
        if not view.dtype:
            op._check_absent(i)
            tensors.append(None)
            continue
        op._check_dtype(i, FROM_ABI[view.dtype])
        tensors.append(leases.lend(i, view))
    return tensors + [None] * (op._singles() - len(tensors))


def _compute(op: CustomOp, call: Any, address: int) -> None:
    if shutdown.closing:
        raise refusal("the interpreter is ending, and its kernel is Python code", abi.CODE_CANCELLED)
    leases = Leases()
    attrs = {} if call.state else _attributes(op, abi.SnapshotNode.from_address(call.node), call.attr_size)
    tensors = _inputs(op, call, leases)
    try:
        results = callbacks.held(call.state)(tensors) if call.state else op._need_kernel()(tensors, attrs)
    except BaseException as fault:
        forget_frames(fault)
        raise
    _give(op, call, address, results)
    del tensors, results
    leases.check("its kernel", "inputs")


def _give(op: CustomOp, call: Any, address: int, results: Any) -> None:
    """Copies what a kernel returned to where the runtime wants it."""
    if not isinstance(results, (list, tuple)):
        raise refusal(f"its kernel returned {type(results).__name__}; return a list with a tensor for each output")
    outputs = (abi.Tensor * call.output_count).from_address(call.outputs)
    if len(results) > len(op._schema.outputs):
        raise refusal(f"its kernel returned {len(results)} tensors, and it has {len(op._schema.outputs)} outputs")
    for i, output in enumerate(outputs):
        if not output.dtype:
            continue  # nobody wants it
        name = op._schema.outputs[i].name
        if i >= len(results) or results[i] is None:
            raise refusal(f"its kernel returned {len(results)} tensors, output {i}, '{name}', is not among them")
        if output.dtype == abi.DTYPE_STRING:
            texts, shape = texts_of(results[i], f"output {i}, '{name}'", "its kernel")
            _memory_for(call, address, i, output.dtype, shape)
            code = call.set_strings(address, i, 0, texts, math.prod(shape))
            if code:
                raise refusal("", code)
            continue
        array, dtype, dims = result_of(results[i], f"output {i}, '{name}'", "its kernel")
        if TO_ABI[dtype] != output.dtype:
            wanted = FROM_ABI[output.dtype]
            numpy = numpy_name(wanted)
            nearest = "a Tensor of that type" if numpy is None else f"it with .astype({numpy})"
            raise refusal(f"its kernel gave {dtype.text} for output {i}, '{name}', which is {wanted.text}; return "
                          f"{nearest}", abi.CODE_DTYPE_MISMATCH)
        if array.nbytes != (math.prod(dims) * dtype.bits + 7) // 8:
            raise refusal(f"its kernel gave {array.nbytes} bytes as {dtype.text} {list(dims)} for output {i}, '{name}'")
        memory = _memory_for(call, address, i, output.dtype, dims)
        if array.nbytes and memory:
            ctypes.memmove(memory, address_of(array), array.nbytes)


def _memory_for(call: Any, address: int, index: int, dtype: int, dims: Sequence[int]) -> Optional[int]:
    memory = ctypes.c_void_p()
    code = call.alloc_output(address, index, dtype, (ctypes.c_int64 * max(len(dims), 1))(*dims), len(dims),
                             ctypes.byref(memory))
    if code:
        raise refusal("", code)  # the library has said why
    return memory.value


# ------------------------------------------------------------------ what the library calls


def _entry(struct: Any, work: Any) -> Any:
    def enter(user: int, address: int, *out: int) -> int:
        call = struct.from_address(address)

        def fail(code: int, message: str) -> int:
            # An exception that is none of the package's is the kernel's, which is the operator's provider here.
            code = abi.CODE_PROVIDER if code == abi.CODE_INTERNAL else code
            call.fail(address, code, lib.text(message))
            return code
        return callbacks.guard(fail, work, callbacks.held(user), call, address, *out)
    return enter


INFER = callbacks.permanent(abi.CustomOp, "infer", shutdown.callback(_entry(abi.OpInfer, _infer)))
COMPUTE = callbacks.permanent(abi.CustomOp, "compute", shutdown.callback(_entry(abi.OpCompute, _compute)))

CREATE = callbacks.permanent(abi.CustomOp, "create_state", shutdown.callback(_entry(abi.OpCreate, _create)))
RELEASE_STATE = callbacks.permanent(abi.CustomOp, "release_state",
                                    lambda user, state, drop=callbacks.let_go: drop(state))


def _types(ports: List[OpPort]) -> Any:
    return (ctypes.c_uint32 * max(len(ports), 1))(
        *(abi.DTYPE_UNSET if port.dtype is None else TO_ABI[port.dtype] for port in ports))


def register(op: CustomOp) -> None:
    """Tells the library of an operator, which is kept until the library lets go of it."""
    shutdown.count_calls()
    schema = op._schema
    # The library checks the inputs before the first optional one. Whether required ones after it are there is
    # checked by _check_absent.
    least = next((i for i, port in enumerate(schema.inputs) if port.optional), len(schema.inputs))
    input_types, output_types = _types(schema.inputs), _types(schema.outputs)
    struct = abi.CustomOp(
        struct_size=ctypes.sizeof(abi.CustomOp), abi=abi.ABI_VERSION, name=lib.text(schema.name),
        domain=lib.text(schema.domain), since_version=schema.version, until_version=schema.until,
        input_types=ctypes.addressof(input_types), input_type_count=len(schema.inputs),
        output_types=ctypes.addressof(output_types), output_type_count=len(schema.outputs), min_inputs=least,
        max_inputs=abi.ANY_NUMBER if op._variadic() else len(schema.inputs), min_outputs=1,
        max_outputs=len(schema.outputs), flags=0 if op._shape_inference else abi.OP_DATA_DEPENDENT,
        infer=INFER, compute=COMPUTE, release=callbacks.RELEASE, user=callbacks.hold(op))
    if op._maker is not None:
        struct.create_state, struct.release_state = CREATE, RELEASE_STATE
    lib.check(lib.env.register_operator(lib.default_env().address, ctypes.byref(struct)))

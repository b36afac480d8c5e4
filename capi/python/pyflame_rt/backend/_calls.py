# SPDX-License-Identifier: Apache-2.0
"""Calls of the library for providers that are Python objects: regions of a model as graphs, each run as one step."""
from __future__ import annotations

import ctypes
import threading
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .._core import abi, callbacks, library as lib, shutdown
from .._graph import op_call
from .._graph.graph import Graph
from .._values.arrays import address_of
from .._values.dtype import FROM_ABI, DType
from .._values.info import TensorInfo
from .._values.memory import TENSOR_SIZE, memory_of_view
from .._values.tensor import Tensor
from ._backend import Backend


class Source:
    """A backend as the library has it."""

    def __init__(self, name: str, backend: Backend) -> None:
        self.name, self.backend = name, backend
        self.lock = threading.Lock()  # of execute
        self.word = lib.text(name)
        self.table = abi.ProviderTable(
            struct_size=ctypes.sizeof(abi.ProviderTable), abi=abi.ABI_VERSION, devices=self.word, close=_CLOSE,
            claim=_CLAIM, compile=_COMPILE, release_executable=callbacks.RELEASE, specialise=_SPECIALISE,
            release_program=_RELEASE_PROGRAM)


# ------------------------------------------------------------------ snapshots


class _Snapshot:
    """The arrays of a snapshot by index."""

    def __init__(self, address: int) -> None:
        self._table = abi.Snapshot.from_address(address)
        self.node_count: int = self._table.node_count
        self.attr_size: int = self._table.attr_size

    def node(self, index: int) -> Any:
        return abi.SnapshotNode.from_address(self._table.nodes + index * self._table.node_size)

    def value(self, index: int) -> Any:
        return abi.SnapshotValue.from_address(self._table.values + index * self._table.value_size)

    def name(self, index: int) -> str:
        return "" if index == abi.NO_INDEX else lib.read(self.value(index).name)


def _uses(node: Any) -> Tuple[List[int], List[int]]:
    """Value indices of a node's inputs and outputs."""
    return (op_call.list_of(ctypes.c_uint32, node.inputs, node.input_count),
            op_call.list_of(ctypes.c_uint32, node.outputs, node.output_count))


# ------------------------------------------------------------------ claims


def _claim(source: Source, snapshot_at: int, claims_at: int) -> None:
    snapshot, claims = _Snapshot(snapshot_at), abi.Claims.from_address(claims_at)
    for i in range(snapshot.node_count):
        refused = _refusal(source, snapshot, snapshot.node(i))
        if refused:
            claims.refuse(claims_at, i, lib.text(refused))
        else:
            claims.accept(claims_at, i, 0.0, 0)


def _refusal(source: Source, snapshot: _Snapshot, node: Any) -> str:
    for index in (one for side in _uses(node) for one in side if one != abi.NO_INDEX):
        value = snapshot.value(index)
        if value.flags & abi.SNAPSHOT_NOT_TENSOR or FROM_ABI.get(value.dtype) == DType.String:
            return "backends compute tensors of numbers"
    if node.domain.size or not source.backend.supports_op(lib.read(node.op)):
        return "supports_op says no"
    return ""


# ------------------------------------------------------------------ regions


class _Port:
    """An input or output of a region."""

    def __init__(self, snapshot: _Snapshot, index: int) -> None:
        value = snapshot.value(index)
        self.index, self.name, self.number = index, lib.read(value.name), value.dtype
        self.dtype = FROM_ABI[value.dtype]
        dims = op_call.list_of(ctypes.c_int64, value.dims, max(value.rank, 0))
        shape: Any = None if value.rank < 0 else [dim if dim >= 0 else None for dim in dims]
        self.info = TensorInfo(self.name, self.dtype, shape)


class _Executable:
    """A region as a graph."""

    def __init__(self, source: Source, region: Any) -> None:
        self.source = source
        snapshot = _Snapshot(region.snapshot)
        self.graph = Graph(source.name)
        self.inputs = [_Port(snapshot, i) for i in op_call.list_of(ctypes.c_uint32, region.inputs, region.input_count)]
        self.outputs = [_Port(snapshot, i)
                        for i in op_call.list_of(ctypes.c_uint32, region.outputs, region.output_count)]
        self.nodes = op_call.list_of(ctypes.c_uint32, region.nodes, region.node_count)
        for port in self.inputs:
            self.graph.add_input(port.info)
        for port in self.outputs:
            self.graph.add_output(port.info)
        for number in self.nodes:
            self._add_node(snapshot, snapshot.node(number))

    def _add_node(self, snapshot: _Snapshot, node: Any) -> None:
        inputs, outputs = _uses(node)
        for index in inputs:
            if index != abi.NO_INDEX and snapshot.value(index).flags & abi.SNAPSHOT_CONSTANT:
                self._add_constant(snapshot.name(index), snapshot.value(index))
        # Names are the model's, whose file may hold one twice.
        self.graph._append_node(lib.read(node.name), lib.read(node.op), [snapshot.name(i) for i in inputs],
                                [snapshot.name(i) for i in outputs],
                                {name: value for name, _, value in op_call.attributes_of(node, snapshot.attr_size)})

    def _add_constant(self, name: str, value: Any) -> None:
        """Adds a copy of the data, which the library keeps for as long as the region alone."""
        if self.graph.has_initializer(name):
            return
        view = abi.Tensor(struct_size=TENSOR_SIZE, dtype=value.dtype, rank=value.rank, data=value.data,
                          bytes=value.bytes, dims=value.dims)
        dims = op_call.list_of(ctypes.c_int64, value.dims, value.rank)
        self.graph.add_initializer(name, Tensor._over(memory_of_view(view, None), FROM_ABI[value.dtype], dims).clone())


class _Program:
    """A region at one signature: one step."""

    def __init__(self, executable: _Executable, shapes_at: int) -> None:
        self.executable = executable
        shapes = abi.Shapes.from_address(shapes_at)
        ports = [*executable.inputs, *executable.outputs]
        self.shapes = [_shape_of(shapes, port.index) for port in ports]
        inputs = len(executable.inputs)
        self._buffers = (abi.Buffer * max(len(ports), 1))()
        for i, (port, shape) in enumerate(zip(ports, self.shapes)):
            size = TensorInfo("", port.dtype, None if shape is None else [*shape]).size_bytes()
            self._buffers[i].kind = abi.BUFFER_IN if i < inputs else abi.BUFFER_OUT
            self._buffers[i].index = i if i < inputs else i - inputs
            self._buffers[i].bytes = _BYTES_UNKNOWN if size is None else size
        self._reads = (ctypes.c_uint32 * max(inputs, 1))(*range(inputs))
        self._writes = (ctypes.c_uint32 * max(len(executable.outputs), 1))(*range(inputs, len(ports)))
        self._nodes = (ctypes.c_uint32 * len(executable.nodes))(*executable.nodes)
        self._step = abi.Step(
            run=_RUN, reads=ctypes.addressof(self._reads), writes=ctypes.addressof(self._writes), read_count=inputs,
            write_count=len(executable.outputs), nodes=ctypes.addressof(self._nodes),
            node_count=len(executable.nodes), kernel=executable.source.word)

    def fill(self, out: Any) -> None:
        """Describes itself in a Program struct, which holds it."""
        number = callbacks.hold(self)
        self._step.state = out.handle = number
        out.buffer_size, out.step_size = ctypes.sizeof(abi.Buffer), ctypes.sizeof(abi.Step)
        out.buffer_count, out.step_count = len(self.shapes), 1
        out.buffers, out.steps = ctypes.addressof(self._buffers), ctypes.addressof(self._step)

    def run(self, context: Any, address: int) -> None:
        executable, source = self.executable, self.executable.source
        buffers = (ctypes.c_void_p * max(len(self.shapes), 1)).from_address(context.buffers)
        feed: Dict[str, Tensor] = {}
        leases = op_call.Leases()
        for i, port in enumerate(executable.inputs):
            feed[port.name] = leases.lend(port.name, _view(port, self.shapes[i] or [], buffers[i]))
        try:
            with source.lock:
                results = source.backend.execute(executable.graph, feed, [port.name for port in executable.outputs])
        except BaseException as fault:
            op_call.forget_frames(fault)
            raise
        self._give(context, address, buffers, results)
        feed.clear()
        del results
        leases.check("execute", "input_feed")

    def _give(self, context: Any, address: int, buffers: Any, results: Any) -> None:
        ports, first = self.executable.outputs, len(self.executable.inputs)
        if not isinstance(results, (list, tuple)) or len(results) != len(ports):
            what = f"{len(results)} tensors" if isinstance(results, (list, tuple)) else type(results).__name__
            raise op_call.refusal(f"execute returned {what}; return a list of {len(ports)}, one for each of "
                                  "output_names")
        for i, (port, made) in enumerate(zip(ports, results), first):
            array, dtype, dims = op_call.result_of(made, f"'{port.name}'", "execute")
            if dtype != port.dtype:
                raise op_call.refusal(f"execute gave {dtype.text} for '{port.name}', which is {port.dtype.text}")
            shape, to = self.shapes[i], buffers[i]
            if shape is None:
                memory = ctypes.c_void_p()
                code = context.alloc_output(address, i, (ctypes.c_int64 * max(len(dims), 1))(*dims), len(dims),
                                            ctypes.byref(memory))
                if code:
                    raise op_call.refusal("", code)  # the library has said why
                to = memory.value
            elif list(dims) != shape:
                raise op_call.refusal(f"execute gave shape {list(dims)} for '{port.name}', expected {shape}")
            if array.nbytes and to:
                ctypes.memmove(to, address_of(array), array.nbytes)


_BYTES_UNKNOWN = (1 << 64) - 1


def _shape_of(shapes: Any, index: int) -> Optional[List[int]]:
    rank = ctypes.c_int32.from_address(shapes.ranks + 4 * index).value
    if rank < 0:
        return None
    return op_call.list_of(ctypes.c_int64, ctypes.c_void_p.from_address(shapes.dims + 8 * index).value, rank)


def _view(port: _Port, shape: Sequence[int], data: Optional[int]) -> Any:
    dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    size = TensorInfo("", port.dtype, [*shape]).size_bytes() or 0
    view = abi.Tensor(struct_size=TENSOR_SIZE, dtype=port.number, rank=len(shape), data=data, bytes=size,
                      dims=ctypes.addressof(dims))
    view.kept = dims
    return view


# ------------------------------------------------------------------ what the library calls


def _sunk(work: Any, at: int) -> Any:
    """A callback whose argument |at| is a sink, which hears what |work| raises."""
    def enter(*args: Any) -> int:
        def fail(code: int, message: str) -> int:
            code = abi.CODE_PROVIDER if code == abi.CODE_INTERNAL else code
            sink = abi.Sink.from_address(args[at])
            return int(sink.fail(args[at], code, abi.NO_INDEX, lib.text(message)))
        return callbacks.guard(fail, work, *args)
    return shutdown.callback(enter)


def _open(user: int, _device: Any, _options: Any, _count: int, _sink: int, out: int) -> int:
    ctypes.c_void_p.from_address(out).value = user
    return abi.CODE_OK


def _claim_entry(provider: int, snapshot: int, claims: int, _sink: int) -> None:
    _claim(callbacks.held(provider), snapshot, claims)


def _compile_entry(provider: int, regions: int, size: int, count: int, _sink: int, out: int, out_region: int) -> None:
    source, made = callbacks.held(provider), []
    for i in range(count):
        ctypes.c_size_t.from_address(out_region).value = i
        made.append(_Executable(source, abi.Region.from_address(regions + i * size)))
    for i, executable in enumerate(made):
        ctypes.c_void_p.from_address(out + i * ctypes.sizeof(ctypes.c_void_p)).value = callbacks.hold(executable)


def _specialise_entry(executable: int, shapes: int, _sink: int, out: int) -> None:
    _Program(callbacks.held(executable), shapes).fill(abi.Program.from_address(out))


# Its globals may be gone when a session of a process that ends lets go of it.
def _release_program(_executable: int, program: int, struct: Any = abi.Program,
                     let_go: Any = callbacks.let_go) -> None:
    let_go(struct.from_address(program).handle)


def _run_entry(state: int, address: int) -> int:
    program: _Program = callbacks.held(state)
    context = abi.StepContext.from_address(address)

    def fail(code: int, message: str) -> int:
        code = abi.CODE_PROVIDER if code == abi.CODE_INTERNAL else code
        if message:
            context.fail(address, code, lib.text(f"backend '{program.executable.source.name}': {message}"))
        return code

    def work() -> None:
        if shutdown.closing:
            raise op_call.refusal("the interpreter is ending, and the backend is Python code", abi.CODE_CANCELLED)
        program.run(context, address)
    return callbacks.guard(fail, work)


OPEN = callbacks.permanent(abi.ClientProvider, "open", shutdown.callback(_open))
_CLOSE = callbacks.permanent(abi.ProviderTable, "close", lambda provider: None)
_CLAIM = callbacks.permanent(abi.ProviderTable, "claim", _sunk(_claim_entry, 3))
_COMPILE = callbacks.permanent(abi.ProviderTable, "compile", _sunk(_compile_entry, 4))
_SPECIALISE = callbacks.permanent(abi.ProviderTable, "specialise", _sunk(_specialise_entry, 2))
_RELEASE_PROGRAM = callbacks.permanent(abi.ProviderTable, "release_program", _release_program)
_RUN = callbacks.permanent(abi.Step, "run", shutdown.callback(_run_entry))

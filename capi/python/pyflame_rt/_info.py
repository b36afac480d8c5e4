# SPDX-License-Identifier: Apache-2.0
"""What is known of values and models without their data."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from . import _abi, _library as lib
from ._dtype import FROM_ABI, DType

_KINDS = {_abi.VALUE_SEQUENCE: "seq", _abi.VALUE_OPTIONAL: "optional", _abi.VALUE_SPARSE: "sparse_tensor"}


@dataclass
class NodeArg:
    """An input or output of a model.

    ``shape`` holds ints, None where a dimension may vary; None instead of a list when the rank is not known.
    ``dim_names`` has a name, or "", for each dimension. ``type`` reads "tensor(float32)".
    """

    name: str
    type: str
    shape: Optional[List[Optional[int]]]
    dim_names: List[str] = field(default_factory=list)


@dataclass
class TensorInfo:
    """Name, element type and shape of a tensor. ``shape`` as in NodeArg."""

    name: str = ""
    dtype: Optional[DType] = None
    shape: Optional[List[Optional[int]]] = None

    def is_dynamic(self) -> bool:
        """Whether the shape is not known, or a dimension of it may vary."""
        return self.shape is None or any(dim is None for dim in self.shape)


@dataclass
class ModelMetadata:
    """What a model says of itself."""

    graph_name: str = ""
    description: str = ""
    producer_name: str = ""
    producer_version: str = ""
    domain: str = ""
    version: int = 0
    format: str = ""
    custom_metadata_map: Dict[str, str] = field(default_factory=dict)


@dataclass
class PortInfo:
    """An input or output as the library describes it."""

    name: str
    kind: int
    dtype: int
    key_dtype: int
    dims: Optional[List[int]]  # -1 where dynamic
    dim_names: List[str]
    has_initializer: bool

    def node_arg(self) -> NodeArg:
        shape = None if self.dims is None else [dim if dim >= 0 else None for dim in self.dims]
        return NodeArg(self.name, self.type_text(), shape, self.dim_names)

    def type_text(self) -> str:
        element = FROM_ABI[self.dtype].text if self.dtype in FROM_ABI else "?"
        if self.kind == _abi.VALUE_MAP:
            return f"map({FROM_ABI[self.key_dtype].text},tensor({element}))"
        if self.kind == _abi.VALUE_SPARSE:
            return f"sparse_tensor({element})"
        outer = _KINDS.get(self.kind)
        return f"{outer}(tensor({element}))" if outer else f"tensor({element})"


def read_info(info: Any) -> PortInfo:
    rank = info.rank
    dims = None if rank < 0 else list((ctypes.c_int64 * rank).from_address(info.dims)) if rank else []
    names: List[str] = []
    if rank > 0 and info.dim_names:
        names = [lib.read(name) for name in (_abi.String * rank).from_address(info.dim_names)]
    return PortInfo(lib.read(info.name), info.kind, info.dtype, info.key_dtype, dims, names or [""] * max(rank, 0),
                    bool(info.has_initializer))


def ports(session: int, count: Any, at: Any) -> List[PortInfo]:
    out = []
    info = _abi.ValueInfo(struct_size=ctypes.sizeof(_abi.ValueInfo))
    for i in range(count(session)):
        lib.check(at(session, i, ctypes.byref(info)))
        out.append(read_info(info))
    return out


def read_metadata(model: int) -> ModelMetadata:
    info = _abi.ModelInfo(struct_size=ctypes.sizeof(_abi.ModelInfo))
    lib.check(lib.model.info(model, ctypes.byref(info)))
    entry, custom = _abi.KeyValue(), {}
    for i in range(lib.model.metadata_count(model)):
        lib.check(lib.model.metadata_at(model, i, ctypes.byref(entry)))
        custom[lib.read(entry.key)] = lib.read(entry.value)
    return ModelMetadata(*(lib.read(getattr(info, name)) for name in (
        "graph_name", "description", "producer_name", "producer_version", "domain")), info.model_version,
        lib.read(info.format), custom)

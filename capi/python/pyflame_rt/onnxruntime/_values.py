# SPDX-License-Identifier: Apache-2.0
"""OrtValue, IOBinding, SparseTensor and OrtDevice by ONNX Runtime's names."""
from __future__ import annotations

import enum
from typing import Any, List, Optional, Sequence

import numpy as np

from pyflame_rt._core.errors import InvalidArgumentError, ShapeMismatchError, UnsupportedError
from pyflame_rt._session.binding import IOBinding as NativeIOBinding
from pyflame_rt._session.handle import SessionHandle
from pyflame_rt._session.ort_value import OrtValue as NativeOrtValue
from pyflame_rt._values.dtype import FROM_ABI, TO_ABI, DType, dtype_of
from pyflame_rt._values.memory import SparseTensor as NativeSparseTensor

from ._exceptions import translates
from ._types import element_text


def element_dtype(element_type: Any) -> DType:
    """A DType from ONNX's number, or anything that NumPy takes as a dtype."""
    if isinstance(element_type, int) and not isinstance(element_type, DType):
        if element_type not in FROM_ABI:
            raise InvalidArgumentError(f"{element_type} is none of ONNX's element types")
        return FROM_ABI[element_type]
    return dtype_of(element_type)


def _no_vendor(vendor_id: int) -> None:
    if vendor_id != -1:
        raise UnsupportedError(f"the vendor {vendor_id:#x} of a device: devices are named by their word alone; leave "
                               "vendor_id out")


@translates
class OrtDevice:
    """A device by its word and number."""

    def __init__(self, name: str, index: int) -> None:
        self._name, self._index = name, index

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> "OrtDevice":
        """The device of a word ("cpu") and number; a vendor cannot be asked for."""
        _no_vendor(vendor_id)
        return OrtDevice(ort_device_name, device_id)

    @staticmethod
    def cpu() -> int:
        """The type that ``device_type`` gives for the CPU."""
        return 0

    def device_id(self) -> int:
        """The number of the device among those of its word."""
        return self._index

    def device_type(self) -> int:
        """0 for the CPU. NotImplemented for others, which have no number here."""
        if self._name != "cpu":
            raise UnsupportedError(f"the device '{self._name}' has no number here; use its word")
        return self.cpu()

    def device_name(self) -> str:
        """The word of the device: "cpu"."""
        return self._name

    def __repr__(self) -> str:
        return f"OrtDevice({self._name!r}, {self._index})"


class OrtSparseFormat(enum.IntEnum):
    """Forms of a sparse tensor: coordinates alone."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1


class SparseCooView:
    """The indices of a sparse tensor."""

    def __init__(self, indices: np.ndarray) -> None:
        self._indices = indices

    def indices(self) -> np.ndarray:
        """The indices, int64: [nnz] of places in the flat tensor, or [nnz, rank]."""
        return self._indices


@translates
class SparseTensor:
    """A sparse tensor in coordinate form, made by ``sparse_coo_from_numpy``."""

    def __init__(self, sparse_tensor: NativeSparseTensor) -> None:
        self._native = sparse_tensor

    @staticmethod
    def sparse_coo_from_numpy(dense_shape: Any, values: np.ndarray, coo_indices: np.ndarray,
                              ort_device: Optional[OrtDevice] = None) -> "SparseTensor":
        """``values`` [nnz] at ``coo_indices``: [nnz] of places in the flat tensor, or [nnz, rank], flat or not."""
        if ort_device is not None and ort_device.device_name() != "cpu":
            raise UnsupportedError(f"a sparse tensor on {ort_device}: they are in host memory; use 'cpu'")
        shape, values = tuple(int(dim) for dim in dense_shape), np.asarray(values)
        indices = np.asarray(coo_indices, np.int64)
        if indices.size == values.size * len(shape):
            indices = indices.reshape(values.size, len(shape))
        elif indices.shape != values.shape:
            raise ShapeMismatchError(f"{values.size} values of a sparse tensor of rank {len(shape)} need {values.size} "
                                     f"or {values.size * len(shape)} indices, not {indices.size}")
        return SparseTensor(NativeSparseTensor(values, indices, shape))

    def values(self) -> np.ndarray:
        """The values that are not zero, [nnz]."""
        return self._native.values

    def as_coo_view(self) -> SparseCooView:
        """The indices of the values."""
        return SparseCooView(self._native.indices)

    def dense_shape(self) -> np.ndarray:
        """The dimensions of the tensor, int64 [rank]."""
        return np.array(self._native.shape, np.int64)

    def format(self) -> OrtSparseFormat:
        """ORT_SPARSE_COO: no other form is kept."""
        return OrtSparseFormat.ORT_SPARSE_COO

    def data_type(self) -> str:
        """The type as NodeArg.type has it: "sparse_tensor(float)"."""
        return f"sparse_tensor({element_text(TO_ABI[dtype_of(self._native.values.dtype)])})"

    def device_name(self) -> str:
        """The word "cpu": sparse tensors are in host memory."""
        return "cpu"


@translates
class OrtValue(NativeOrtValue):
    """A tensor in host memory or a device's, or a value of another kind; made by the functions ``ortvalue_from_...``.
    """

    __slots__ = ()

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: Any, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1, *,
                            session: Optional[SessionHandle] = None) -> "OrtValue":
        """A tensor over the array's memory; on a device of |session|, a copy of it."""
        _no_vendor(vendor_id)
        return super().ortvalue_from_numpy(  # type: ignore[return-value]
            numpy_obj, device_type, device_id, session=session)

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: Any = np.float32,
                                     device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1, *,
                                     session: Optional[SessionHandle] = None) -> "OrtValue":
        """A tensor of memory of its own; ``element_type`` is a NumPy dtype or ONNX's number."""
        _no_vendor(vendor_id)
        return super().ortvalue_from_shape_and_type(  # type: ignore[return-value]
            shape, element_dtype(element_type), device_type, device_id, session=session)

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: SparseTensor) -> "OrtValue":
        """A value of a SparseTensor; its elements are copied."""
        return super().ort_value_from_sparse_tensor(sparse_tensor._native)  # type: ignore[return-value]

    def as_sparse_tensor(self) -> SparseTensor:
        """The sparse tensor that the value holds; an error for another kind."""
        return SparseTensor(super().as_sparse_tensor())

    def element_type(self) -> int:
        """ONNX's number of the element type: 1 for float."""
        return TO_ABI[self._dtype()]

    def data_type(self) -> str:
        """The type as NodeArg.type has it: "tensor(float)"."""
        return self._type_text(element_text(TO_ABI[self._dtype()]))


@translates
class IOBinding(NativeIOBinding):
    """Inputs and outputs of a session, bound once for many runs: results are written straight into the memory bound."""

    _value_class = OrtValue

    def bind_ortvalue_input(self, name: str, ortvalue: NativeOrtValue) -> None:
        """Binds a value, on the host or a device."""
        super().bind_ortvalue_input(name, ortvalue)
        self._session._check_free_dimensions(name, ortvalue)  # type: ignore[attr-defined]

    def get_outputs(self) -> List[OrtValue]:  # type: ignore[override]
        """The last run's results, in the order in which outputs were bound."""
        return super().get_outputs()  # type: ignore[return-value]

    def _dtype_of(self, element_type: Any) -> DType:
        return element_dtype(element_type)

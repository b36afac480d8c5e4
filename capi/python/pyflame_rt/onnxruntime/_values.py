# SPDX-License-Identifier: Apache-2.0
"""OrtValue, IOBinding, SparseTensor and OrtDevice by ONNX Runtime's names."""
from __future__ import annotations

import ctypes
import enum
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from pyflame_rt._core.errors import InvalidArgumentError, ShapeMismatchError, UnsupportedError
from pyflame_rt._session.binding import IOBinding as NativeIOBinding
from pyflame_rt._session.handle import SessionHandle
from pyflame_rt._session.ort_value import OrtValue as NativeOrtValue
from pyflame_rt._values.dtype import FROM_ABI, TO_ABI, DType, dtype_of
from pyflame_rt._values.memory import SparseTensor as NativeSparseTensor

from ._exceptions import translates, translating
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


class OrtDeviceVendorId(enum.IntEnum):
    """Makers of devices, by their numbers on the PCI bus."""

    NONE = 0
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


_VENDOR_OF = {"cuda": OrtDeviceVendorId.NVIDIA, "dml": OrtDeviceVendorId.MICROSOFT, "cann": OrtDeviceVendorId.HUAWEI}


@translates
class OrtDevice:
    """A device by its word, number and maker. It is a name: devices of words that are not here can be named too."""

    def __init__(self, name: str, index: int, vendor_id: int = -1) -> None:
        self._name, self._index = name, index
        self._vendor = _VENDOR_OF.get(name, OrtDeviceVendorId.NONE) if vendor_id == -1 else vendor_id

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> "OrtDevice":
        """The device of a word ("cpu") and number; -1 is the maker that the word stands for."""
        return OrtDevice(ort_device_name, device_id, vendor_id)

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

    def device_vendor_id(self) -> int:
        """The number of the device's maker, as OrtDeviceVendorId has it."""
        return self._vendor

    def device_mem_type(self) -> int:
        """0: the device's own memory, the only one that is named here."""
        return 0

    def __repr__(self) -> str:
        return f"OrtDevice({self._name!r}, {self._index})"


class OrtSparseFormat(enum.IntEnum):
    """Forms of a sparse tensor: coordinates, or rows with the columns of their elements."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2


class SparseCooView:
    """The indices of a sparse tensor."""

    def __init__(self, indices: np.ndarray) -> None:
        self._indices = indices

    def indices(self) -> np.ndarray:
        """The indices, int64: [nnz] of places in the flat tensor, or [nnz, rank]."""
        return self._indices


class SparseCsrcView:
    """The indices of a sparse matrix by rows."""

    def __init__(self, inner: np.ndarray, outer: np.ndarray) -> None:
        self._inner, self._outer = inner, outer

    def inner(self) -> np.ndarray:
        """The column of each value, int64 [nnz]."""
        return self._inner

    def outer(self) -> np.ndarray:
        """Where the values of each row begin, and the number of all, int64 [rows + 1]."""
        return self._outer


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


@translates
class SparseTensor:
    """A sparse tensor, made by ``sparse_coo_from_numpy`` or ``sparse_csr_from_numpy``. Arrays that it gives are
    read-only. Runs take one of either form; what an OrtValue gives back is in coordinate form."""

    def __init__(self, sparse_tensor: NativeSparseTensor,
                 csr: Optional[Tuple[np.ndarray, np.ndarray]] = None) -> None:
        self._native, self._csr = sparse_tensor, csr

    @staticmethod
    def sparse_coo_from_numpy(dense_shape: Any, values: np.ndarray, coo_indices: np.ndarray,
                              ort_device: Optional[OrtDevice] = None) -> "SparseTensor":
        """``values`` [nnz] at ``coo_indices``: [nnz] of places in the flat tensor, or [nnz, rank], flat or not."""
        _expect_host(ort_device)
        shape, values = tuple(int(dim) for dim in dense_shape), np.asarray(values)
        indices = np.asarray(coo_indices, np.int64)
        if indices.size == values.size * len(shape):
            indices = indices.reshape(values.size, len(shape))
        elif indices.shape != values.shape:
            raise ShapeMismatchError(f"{values.size} values of a sparse tensor of rank {len(shape)} need {values.size} "
                                     f"or {values.size * len(shape)} indices, not {indices.size}")
        return SparseTensor(NativeSparseTensor(values, indices, shape))

    @staticmethod
    def sparse_csr_from_numpy(dense_shape: Any, values: np.ndarray, inner_indices: np.ndarray,
                              outer_indices: np.ndarray, ort_device: Optional[OrtDevice] = None) -> "SparseTensor":
        """A matrix of ``values`` [nnz] row by row: ``inner_indices`` [nnz] are their columns, ``outer_indices``
        [rows + 1] say where each row begins, and how many values there are in all."""
        _expect_host(ort_device)
        shape, values = tuple(int(dim) for dim in dense_shape), np.asarray(values)
        inner, outer = np.asarray(inner_indices, np.int64), np.asarray(outer_indices, np.int64)
        if len(shape) != 2 or values.shape != inner.shape or inner.ndim != 1 or outer.shape != (shape[0] + 1,):
            raise ShapeMismatchError(f"a sparse tensor by rows, of shape {list(shape)}, with values of shape "
                                     f"{list(values.shape)}, inner indices {list(inner.shape)} and outer indices "
                                     f"{list(outer.shape)}; it is a matrix with as many inner indices as values, and an "
                                     "outer index more than rows")
        lengths, fits = np.diff(outer), ((0 <= inner) & (inner < shape[1])).all()
        if outer[0] != 0 or outer[-1] != inner.size or (lengths < 0).any() or not fits:
            raise InvalidArgumentError(f"a sparse tensor by rows: outer indices rise from 0 to {inner.size}, inner ones "
                                       f"are columns below {shape[1]}; got {outer.tolist()} and {inner.tolist()}")
        places = np.repeat(np.arange(shape[0], dtype=np.int64), lengths) * shape[1] + inner
        return SparseTensor(NativeSparseTensor(values, places, shape), (inner, outer))

    def values(self) -> np.ndarray:
        """The values that are not zero, [nnz]."""
        return _read_only(self._native.values)

    def as_coo_view(self) -> SparseCooView:
        """The indices of the values."""
        self._expect(OrtSparseFormat.ORT_SPARSE_COO)
        return SparseCooView(_read_only(self._native.indices))

    def as_csrc_view(self) -> SparseCsrcView:
        """The indices of the values by rows; an error for a tensor in coordinate form."""
        self._expect(OrtSparseFormat.ORT_SPARSE_CSRC)
        assert self._csr is not None
        return SparseCsrcView(_read_only(self._csr[0]), _read_only(self._csr[1]))

    def _expect(self, form: OrtSparseFormat) -> None:
        if self.format() != form:
            raise InvalidArgumentError(f"the sparse tensor is of the form {self.format().name}, not {form.name}")

    def to_cuda(self, ort_device: OrtDevice) -> "SparseTensor":
        """Is not there: NotImplemented."""
        raise UnsupportedError(f"a sparse tensor on {ort_device}: they are in host memory")

    def dense_shape(self) -> List[int]:
        """The dimensions of the tensor."""
        return [int(dim) for dim in self._native.shape]

    def format(self) -> OrtSparseFormat:
        """The form that the tensor was made in."""
        return OrtSparseFormat.ORT_SPARSE_COO if self._csr is None else OrtSparseFormat.ORT_SPARSE_CSRC

    def data_type(self) -> str:
        """The type as NodeArg.type has it: "sparse_tensor(float)"."""
        return f"sparse_tensor({element_text(TO_ABI[dtype_of(self._native.values.dtype)])})"

    def device_name(self) -> str:
        """The word "cpu": sparse tensors are in host memory."""
        return "cpu"


def _expect_host(device: Optional[OrtDevice]) -> None:
    if device is not None and device.device_name() != "cpu":
        raise UnsupportedError(f"a sparse tensor on {device}: they are in host memory; use 'cpu'")


class _CapsuleHeader(ctypes.Structure):
    """The first fields of what a DLPack capsule points to."""

    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("rank", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


# Where that is in memory that DLPack's two versions of capsules point to, by their names.
_OFFSETS = {b"dltensor": 0, b"dltensor_versioned": 32}


def _header_of(capsule: Any) -> Any:
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    try:
        found = name(capsule)
    except ValueError:
        found = None
    if found not in _OFFSETS:
        raise InvalidArgumentError(f"{capsule!r} is no capsule with a tensor of DLPack, or its tensor was taken already")
    return _CapsuleHeader.from_address(pointer(capsule, found) + _OFFSETS[found])


class _OfCapsule:
    """What NumPy asks for DLPack's capsule, where there is the capsule alone."""

    def __init__(self, capsule: Any) -> None:
        _header_of(capsule)
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> Tuple[int, int]:
        header = _header_of(self._capsule)
        return header.device[0], header.device[1]


@translating
def is_dlpack_uint8_tensor(capsule: Any) -> bool:
    """Tells whether the elements of a DLPack capsule are bytes, which booleans may have been made."""
    header = _header_of(capsule)
    return bool(header.code == 1 and header.bits == 8 and header.lanes == 1)


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

    @classmethod
    def from_dlpack(cls, data: Any, is_bool_tensor: bool = False) -> "OrtValue":
        """A tensor over the memory of anything that speaks DLPack, or of a capsule of it, on the CPU; bytes may be read
        as booleans."""
        if isinstance(data, NativeOrtValue) and not is_bool_tensor:  # NumPy has had DLPack's booleans since 1.25
            return cls(data._on_host("from_dlpack"))
        source = _OfCapsule(data) if type(data).__name__ == "PyCapsule" else data
        return super().from_dlpack(source, is_bool_tensor)  # type: ignore[return-value]

    @property
    def _ortvalue(self) -> "OrtValue":
        """The value below this one in ONNX Runtime's package; here it is one and the same."""
        return self

    def _get_c_value(self) -> "OrtValue":
        return self

    def as_sparse_tensor(self) -> SparseTensor:
        """The sparse tensor that the value holds; an error for another kind."""
        return SparseTensor(super().as_sparse_tensor())

    def element_type(self) -> int:
        """ONNX's number of the element type: 1 for float."""
        return TO_ABI[self._dtype()]

    def data_type(self) -> str:
        """The type as NodeArg.type has it: "tensor(float)"."""
        return self._type_text(element_text(TO_ABI[self._dtype()]))


class OrtValueVector(list):
    """A list of OrtValues."""


@translates
class IOBinding(NativeIOBinding):
    """Inputs and outputs of a session, bound once for many runs: results are written straight into the memory bound."""

    _value_class = OrtValue

    @property
    def _iobinding(self) -> "IOBinding":
        """The binding below this one in ONNX Runtime's package; here it is one and the same."""
        return self

    def bind_ortvalue_input(self, name: str, ortvalue: NativeOrtValue) -> None:
        """Binds a value, on the host or a device."""
        super().bind_ortvalue_input(name, ortvalue)
        self._session._check_free_dimensions(name, ortvalue)  # type: ignore[attr-defined]

    def get_outputs(self) -> List[OrtValue]:  # type: ignore[override]
        """The last run's results, in the order in which outputs were bound."""
        return super().get_outputs()  # type: ignore[return-value]

    def _dtype_of(self, element_type: Any) -> DType:
        return element_dtype(element_type)

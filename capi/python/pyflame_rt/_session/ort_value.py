# SPDX-License-Identifier: Apache-2.0
"""Values that stay where they are from run to run."""
from __future__ import annotations

import ctypes
from typing import Any, List, Optional, Sequence

import numpy as np

from .._core import abi, library as lib
from .._core.errors import DTypeMismatchError, InvalidArgumentError, ShapeMismatchError, UnsupportedError
from .._values.arrays import address_of
from .._values.dtype import FROM_ABI, TO_ABI, DType, dtype_of, memory_dtype
from .._values.memory import TENSOR_SIZE, dims_of, memory_of_view, python_of
from .._values.tensor import Tensor, from_dlpack, from_numpy
from .._values.strings import string_tensor
from .._values.value import value_of
from .handle import SessionHandle

_KINDS = {abi.VALUE_SEQUENCE: "seq({})", abi.VALUE_OPTIONAL: "optional({})", abi.VALUE_MAP: "map(?,{})"}


class OrtValue:
    """A tensor in host memory or a device's, or a value of another kind, made by the functions ``ortvalue_from_...``.

    A run reads one where it lies, and one that is bound to an output is written to where it lies. ``device_type`` is
    "cpu" or the word of a device ("wse"); a device's memory belongs to a session, which is then needed too.
    """

    __slots__ = ("_host", "_handle", "_device", "__weakref__")

    def __init__(self, host: Optional[Tensor], handle: Optional[lib.Handle] = None, device: str = "cpu") -> None:
        self._host = host  # a tensor in host memory
        self._handle = handle  # anything else
        self._device = device

    # ------------------------------------------------------------------ making one

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: Any, device_type: str = "cpu", device_id: int = 0, *,
                            session: Optional[SessionHandle] = None) -> "OrtValue":
        """A tensor over the array's memory; a copy on a device and where ``from_numpy`` copies."""
        expect_first(device_type, device_id)
        host = from_numpy(numpy_obj)
        if device_type == "cpu":
            return cls(host)
        out = cls._on_device(host.shape, host.dtype, device_type, session)
        out._copy_from(host)
        return out

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, onnx_element_type: int) -> "OrtValue":
        """A tensor of the element type that ONNX numbers so, over an array of integers of the same size or of the type's
        own dtype in ml_dtypes.

        For types that NumPy does not have: bfloat16 (16) over uint16, the float8 types (17 to 20) over uint8.
        """
        dtype = FROM_ABI.get(int(onnx_element_type))
        if dtype is not None and data.dtype == dtype.numpy:
            return cls(from_numpy(data))
        if dtype is None or dtype.bits < 8 or dtype.bits != 8 * data.itemsize or data.dtype.kind not in "iuf":
            raise DTypeMismatchError(f"an array of {data.dtype} cannot hold ONNX's element type {onnx_element_type}" +
                                     (f" ({dtype.text}, {dtype.bits} bits)" if dtype is not None else ""))
        host = from_numpy(data)
        array = host.memory().view(memory_dtype(dtype))
        return cls(Tensor._over(array, dtype, host.shape))

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: Any = np.float32,
                                     device_type: str = "cpu", device_id: int = 0, *,
                                     session: Optional[SessionHandle] = None) -> "OrtValue":
        """A tensor of memory of its own: zeros in host memory, undefined on a device.

        ``element_type`` is anything that NumPy takes as a dtype, a DType, or its text.
        """
        expect_first(device_type, device_id)
        dtype = dtype_of(element_type)
        if device_type == "cpu":
            return cls(Tensor(shape, dtype))
        return cls._on_device(shape, dtype, device_type, session)

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: Any) -> "OrtValue":
        """A value of a SparseTensor; its elements are copied."""
        return cls(None, value_of(sparse_tensor, "a sparse tensor"))

    @classmethod
    def from_dlpack(cls, data: Any, is_bool_tensor: bool = False) -> "OrtValue":
        """A tensor over the memory of anything that speaks DLPack, on the CPU; bytes may be read as booleans."""
        host = from_dlpack(data)
        if is_bool_tensor:
            if host.dtype not in (DType.UInt8, DType.Bool):
                raise DTypeMismatchError(f"from_dlpack: booleans are bytes, the tensor given is of {host.dtype.text}")
            host = from_numpy(host.memory().view(np.bool_))
        return cls(host)

    @classmethod
    def _on_device(cls, shape: Sequence[int], dtype: DType, device: str,
                   session: Optional[SessionHandle]) -> "OrtValue":
        if session is None:
            raise UnsupportedError(f"a tensor in the memory of '{device}': a device is open for a session; give it as "
                                   "session=, or use 'cpu'")
        provider = session._provider_of(device)
        dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        handle = lib.make(lib.value.create_on, lib.value.release, session._alive(), lib.text(provider), TO_ABI[dtype],
                          dims, len(shape))
        return cls(None, handle, device)

    @classmethod
    def _of_handle(cls, handle: lib.Handle, device: str = "cpu") -> "OrtValue":
        """A value that a run made."""
        if lib.value.kind(handle.address) != abi.VALUE_TENSOR:
            return cls(None, handle)
        view = _view(handle)
        if view.memory != abi.MEMORY_HOST:
            return cls(None, handle, device)
        return cls(Tensor._over(memory_of_view(view, handle), FROM_ABI[view.dtype], dims_of(view)))

    # ------------------------------------------------------------------ what it is

    def _kind(self) -> int:
        return abi.VALUE_TENSOR if self._handle is None else int(lib.value.kind(self._handle.address))

    def _dtype(self) -> DType:
        if self._host is not None:
            return self._host.dtype
        assert self._handle is not None
        return FROM_ABI[lib.value.dtype(self._handle.address)]

    def has_value(self) -> bool:
        """Tells whether there is a value: an optional may be without one."""
        return self._kind() != abi.VALUE_OPTIONAL or self._python() is not None

    def is_tensor(self) -> bool:
        """Tells whether it is a dense tensor."""
        return self._kind() == abi.VALUE_TENSOR

    def is_sparse_tensor(self) -> bool:
        """Tells whether it is a sparse tensor."""
        return self._kind() == abi.VALUE_SPARSE

    def is_tensor_sequence(self) -> bool:
        """Tells whether it is a sequence of tensors."""
        return self._kind() == abi.VALUE_SEQUENCE

    def shape(self) -> List[int]:
        """The dimensions of a tensor or sparse tensor."""
        if self._host is not None:
            return self._host.shape
        if self.is_tensor():
            return list(dims_of(_view(self._handle)))
        if self.is_sparse_tensor():
            return list(self._python().shape)
        raise InvalidArgumentError(f"the value is a {self.data_type()}, which has no shape")

    def element_type(self) -> Any:
        """The DType of the elements."""
        return self._dtype()

    def data_type(self) -> str:
        """The type as NodeArg.type has it: "tensor(float32)"."""
        return self._type_text(self._dtype().text)

    def _type_text(self, element: str) -> str:
        kind = self._kind()
        if kind == abi.VALUE_SPARSE:
            return f"sparse_tensor({element})"
        return _KINDS.get(kind, "{}").format(f"tensor({element})")

    def device_name(self) -> str:
        """The word of the device whose memory it is in."""
        return self._device

    def data_ptr(self) -> int:
        """The address of a tensor's first element, 0 when it has none; on a device, the device's address."""
        if self._host is not None:
            return address_of(self._host.memory()) if self._host.num_elements else 0
        if not self.is_tensor():
            raise InvalidArgumentError(f"the value is a {self.data_type()}; only tensors have an address")
        return int(_view(self._handle).data or 0)

    def tensor_size_in_bytes(self) -> int:
        """Bytes of a tensor's elements; InputError for what is no tensor."""
        if self._host is not None:
            return self._host.size_bytes
        if not self.is_tensor():
            raise InvalidArgumentError(f"the value is a {self.data_type()}, no tensor")
        return int(_view(self._handle).bytes)

    # ------------------------------------------------------------------ its elements

    def numpy(self) -> np.ndarray:
        """A tensor's elements as ``Tensor.numpy`` gives them, from a device a copy."""
        if self._host is not None:
            return self._host.numpy()
        if not self.is_tensor():
            raise InvalidArgumentError(f"the value is a {self.data_type()}; only tensors become one array")
        host = Tensor(self.shape(), self._dtype())
        _copy(self._handle, _wrap(host))
        return host.numpy()

    def as_sparse_tensor(self) -> Any:
        """A SparseTensor of its elements."""
        if not self.is_sparse_tensor():
            raise InvalidArgumentError(f"the value is a {self.data_type()}, no sparse tensor")
        return self._python()

    def to_dlpack(self) -> Any:
        """A DLPack capsule over a tensor in host memory."""
        return self._on_host("to_dlpack").__dlpack__()

    def __dlpack__(self, **arguments: Any) -> Any:
        return self._on_host("__dlpack__").__dlpack__(**arguments)

    def __dlpack_device__(self) -> Any:
        return self._on_host("__dlpack_device__").__dlpack_device__()

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        array = self.numpy() if dtype is None else self.numpy().astype(dtype, copy=False)
        return array.copy() if copy else array

    def update_inplace(self, np_arr: Any) -> None:
        """Writes the array's elements into the tensor's memory; shape and element type have to be the tensor's."""
        host = from_numpy(np_arr)
        if not self.is_tensor():
            raise InvalidArgumentError(f"update_inplace: the value is a {self.data_type()}, no tensor")
        if host.shape != self.shape():
            raise ShapeMismatchError(f"update_inplace: the tensor is of shape {self.shape()}, the array {host.shape}")
        if host.dtype != self._dtype():
            raise DTypeMismatchError(f"update_inplace: the tensor is of {self._dtype().text}, the array of "
                                     f"{host.dtype.text}; convert it with .astype")
        self._copy_from(host)

    def _copy_from(self, host: Tensor) -> None:
        if self._host is not None:
            array = self._host.memory()
            if not array.flags.writeable:
                raise InvalidArgumentError("update_inplace: the tensor is over a read-only array; make it of a copy")
            np.copyto(array, host.memory())
        else:
            _copy(_wrap(host), self._handle)

    def _on_host(self, what: str) -> Tensor:
        if self._host is not None:
            return self._host
        where = f"in the memory of '{self._device}'" if self.is_tensor() else f"a {self.data_type()}"
        raise UnsupportedError(f"{what}: the value is {where}; only tensors in host memory can be shared")

    def _python(self) -> Any:
        """The arrays, lists or dicts that a run gives for it."""
        if self.is_tensor():
            return self.numpy()
        assert self._handle is not None
        return python_of(self._handle)

    def __repr__(self) -> str:
        if not self.is_tensor():
            return f"{type(self).__name__}({self.data_type()})"
        return f"{type(self).__name__}({self.data_type()}, shape={self.shape()}, device={self._device!r})"


def expect_first(device_type: str, device_id: int) -> None:
    """There is one device of each word."""
    if device_id:
        raise UnsupportedError(f"device {device_id} of '{device_type}': a session has one of each word; use device 0")


def describe(io: Any, value: OrtValue, name: str) -> Any:
    """Writes a value into an Io of a run; what it returns has to stay until the run is over."""
    io.tensor.data = io.tensor.dims = io.value = None
    io.tensor.dtype = io.tensor.rank = io.tensor.bytes = 0
    handle, host = value._handle, value._host
    if host is not None and host.dtype == DType.String:
        handle = string_tensor(host.memory(), name)
    if handle is not None:
        io.value = handle.address
        return handle
    assert host is not None
    array, shape = host.memory(), host.shape
    dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    io.tensor.dtype, io.tensor.rank = TO_ABI[host.dtype], len(shape)
    io.tensor.data, io.tensor.bytes, io.tensor.dims = address_of(array), array.nbytes, ctypes.addressof(dims)
    return array, dims


def _view(handle: Any) -> Any:
    view = abi.Tensor(struct_size=TENSOR_SIZE)
    lib.check(lib.value.tensor(handle.address, ctypes.byref(view)))
    return view


def _wrap(host: Tensor) -> lib.Handle:
    """A value of the library's over a tensor's memory; the tensor has to stay for as long."""
    if host.dtype == DType.String:
        raise UnsupportedError("strings cannot live in a device's memory")
    dims = (ctypes.c_int64 * max(host.ndim, 1))(*host.shape)
    view = abi.Tensor(struct_size=TENSOR_SIZE, dtype=TO_ABI[host.dtype], rank=host.ndim, data=address_of(host.memory()),
                      bytes=host.size_bytes, dims=ctypes.addressof(dims))
    return lib.make(lib.value.wrap_tensor, lib.value.release, ctypes.byref(view), None, None)


def _copy(source: Any, target: Any) -> None:
    lib.check(lib.value.copy(source.address, target.address))

# SPDX-License-Identifier: Apache-2.0
"""Constants of graphs."""
from __future__ import annotations

import ctypes
from typing import Any, Union

from .._core import abi, callbacks, library as lib
from .._core.errors import DTypeMismatchError
from .arrays import address_of
from .dtype import FROM_ABI, TO_ABI, DType
from .memory import TENSOR_SIZE, SparseTensor, dims_of, memory_of_view, python_of, view_of
from .tensor import Tensor, from_numpy
from .strings import string_tensor
from .value import tensor_value, value_of


def tensor_at(address: int, writeable: bool = False) -> Union[Tensor, SparseTensor]:
    """A constant of the library's, not copied, that stays for as long as what is returned."""
    lib.value.retain(address)
    handle = lib.Handle(address, lib.value.release)
    if lib.value.kind(address) == abi.VALUE_SPARSE:
        sparse: SparseTensor = python_of(handle)
        return sparse
    view = view_of(handle)
    array = memory_of_view(view, handle)
    array.flags.writeable = writeable
    return Tensor._over(array, FROM_ABI[view.dtype], dims_of(view))


def value_of_constant(what: Any, doing: str, share: bool) -> lib.Handle:
    """A value from a Tensor, a SparseTensor or what NumPy makes arrays of; |share|: over its memory where it can be."""
    if isinstance(what, SparseTensor):
        return value_of(what, doing)
    tensor = what
    if not isinstance(what, Tensor):
        try:
            tensor = from_numpy(what)
        except TypeError as fault:
            raise DTypeMismatchError(f"{doing}: {fault}") from None
    array, dtype = tensor.memory(), TO_ABI[tensor.dtype]
    if tensor.dtype == DType.String:
        wrong = next((e for e in array.ravel().tolist() if not isinstance(e, (str, bytes))), None)
        if wrong is not None:
            raise DTypeMismatchError(f"{doing}: an array of objects with {type(wrong).__name__} in it is no tensor; "
                                     "give numbers a numeric dtype, for example with .astype(numpy.float32)")
        return string_tensor(array, doing)
    if not share:
        return tensor_value(array, dtype, tensor.shape)
    dims = (ctypes.c_int64 * max(tensor.ndim, 1))(*tensor.shape)
    view = abi.Tensor(struct_size=TENSOR_SIZE, dtype=dtype, rank=tensor.ndim, data=address_of(array),
                      bytes=array.nbytes, dims=ctypes.addressof(dims))
    return lib.make(lib.value.wrap_tensor, lib.value.release, ctypes.byref(view), callbacks.RELEASE_MEMORY,
                    callbacks.hold(array))

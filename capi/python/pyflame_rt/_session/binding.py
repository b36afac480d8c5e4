# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs bound once for many runs."""
from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union, overload

import numpy as np

from .._core import abi, interrupt, library as lib
from .._core.errors import InputError, InvalidArgumentError, UnsupportedError
from .._values.dtype import DType, dtype_of, memory_dtype
from .._values.memory import TENSOR_SIZE, array_over
from .._values.tensor import Tensor
from .handle import SessionHandle
from .ort_value import OrtValue, describe, expect_first
from .run_options import RunOptions, check_run

_IO_SIZE = ctypes.sizeof(abi.Io)


class IOBinding:
    """Inputs and outputs of a session, bound once for many runs: results are written straight into the memory bound.

    Used by one thread at a time. Inputs are read when the session runs, so what is written into a bound array counts
    in the next run.

    >>> binding = session.io_binding()
    >>> binding.bind_cpu_input("x", array)
    >>> binding.bind_output("y")
    >>> session.run_with_iobinding(binding)
    >>> y = binding.get_outputs()[0].numpy()
    """

    _value_class = OrtValue

    def __init__(self, session: SessionHandle) -> None:
        self._session = session
        self._inputs = (abi.Io * max(len(session._inputs), 1))()
        self._outputs = (abi.Io * max(len(session._outputs), 1))()
        for io in [*self._inputs, *self._outputs]:
            io.struct_size = _IO_SIZE
            io.tensor.struct_size = TENSOR_SIZE
        self.clear_binding_inputs()
        self.clear_binding_outputs()

    # ------------------------------------------------------------------ inputs

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Binds an array; it is not copied when it is row-major. InputError for a name that the model does not have."""
        self.bind_ortvalue_input(name, self._value_class.ortvalue_from_numpy(arr_on_cpu))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value, on the host or a device."""
        _expect_value(ortvalue, f"input '{name}'")
        index = _find(self._session._input_index, name, "input")
        self._kept[name] = (describe(self._inputs[index], ortvalue, name), ortvalue)

    @overload
    def bind_input(self, name: str, device_type: Union["np.ndarray", Tensor, OrtValue]) -> None: ...

    @overload
    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int],
                   buffer_ptr: int) -> None: ...

    def bind_input(self, name: str, device_type: Any, device_id: int = 0, element_type: Any = None,
                   shape: Optional[Sequence[int]] = None, buffer_ptr: Optional[int] = None) -> None:
        """Binds an array or value, like bind_cpu_input and bind_ortvalue_input; or row-major memory of the host by its
        address. The memory has to stay valid as long as it is bound."""
        if not isinstance(device_type, str):
            if (element_type, shape, buffer_ptr) != (None, None, None):
                raise InvalidArgumentError(f"binding input '{name}' to a {type(device_type).__name__}, which says type, "
                                           "shape and address itself; give them only with a device, such as 'cpu'")
            if isinstance(device_type, (OrtValue, Tensor)):
                self.bind_ortvalue_input(name, device_type if isinstance(device_type, OrtValue) else
                                         self._value_class(device_type))
            else:
                self.bind_cpu_input(name, device_type)
            return
        if element_type is None or shape is None or buffer_ptr is None:
            raise InvalidArgumentError(f"binding input '{name}' on '{device_type}': element_type, shape or buffer_ptr is "
                                       f"missing; give all three, or an array: bind_input('{name}', array)")
        expect_first(device_type, device_id)
        self.bind_ortvalue_input(name, self._at(f"input '{name}'", device_type, element_type, shape, buffer_ptr))

    def synchronize_inputs(self) -> None:
        """Does nothing: inputs can be read by a run once they are bound. For programs written for ONNX Runtime."""

    def clear_binding_inputs(self) -> None:
        """Unbinds all inputs."""
        self._kept: Dict[str, Any] = {}
        for io in self._inputs:
            io.value = io.tensor.data = None
            io.tensor.dtype = 0

    # ------------------------------------------------------------------ outputs

    def bind_output(self, name: str, device_type: Union[str, "np.ndarray", Tensor, OrtValue] = "cpu",
                    device_id: int = 0, element_type: Any = None, shape: Optional[Sequence[int]] = None,
                    buffer_ptr: Optional[int] = None) -> None:
        """Binds an output to a value or array that runs write to, or to memory by its address. Otherwise each run
        allocates the output anew, on the host or the device.

        With an address, ``element_type`` and ``shape`` have to be those of the result, and the memory has to stay valid
        as long as it is bound. Without an address they are ignored.
        """
        if not isinstance(device_type, str):
            if (element_type, shape, buffer_ptr) != (None, None, None):
                raise InvalidArgumentError(f"binding output '{name}' to a {type(device_type).__name__}, which says type, "
                                           "shape and address itself; give them only with a device, such as 'cpu'")
            self.bind_ortvalue_output(name, self._written(name, device_type))
            return
        expect_first(device_type, device_id)
        if buffer_ptr is not None:
            if element_type is None or shape is None:
                raise InvalidArgumentError(f"binding output '{name}' to an address: element_type and shape are missing")
            self.bind_ortvalue_output(name, self._at(f"output '{name}'", device_type, element_type, shape, buffer_ptr))
            return
        index = _find(self._session._output_index, name, "output")
        if device_type != "cpu":
            self._session._provider_of(device_type)
        self._forget(name)
        io = self._outputs[index]
        io.flags = abi.IO_ON_DEVICE if device_type != "cpu" else 0
        io.value = io.tensor.data = None
        self._allocated[name] = device_type

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a tensor, on the host or a device, which must have the result's type and size."""
        _expect_value(ortvalue, f"output '{name}'")
        index = _find(self._session._output_index, name, "output")
        host = ortvalue._host
        if not ortvalue.is_tensor() or ortvalue._dtype() == DType.String:
            raise UnsupportedError(f"binding output '{name}' to a {ortvalue.data_type()}: only tensors of numbers have "
                                   f"memory to write to; use bind_output('{name}')")
        if host is not None and not host.memory().flags.writeable:
            raise InvalidArgumentError(f"binding output '{name}' to a read-only array; bind a copy of it")
        self._forget(name)
        io = self._outputs[index]
        self._given[name] = describe(io, ortvalue, name)
        io.flags = 0
        self._results[name] = ortvalue

    def synchronize_outputs(self) -> None:
        """Does nothing: outputs are written when the run returns. For programs written for ONNX Runtime."""

    def clear_binding_outputs(self) -> None:
        """Unbinds all outputs, and releases the last run's results."""
        self._given: Dict[str, Any] = {}
        self._allocated: Dict[str, str] = {}
        self._results: Dict[str, Optional[OrtValue]] = {}  # in the order in which they were bound
        for io in self._outputs:
            io.flags, io.value = abi.IO_SKIP, None

    def get_outputs(self) -> List[OrtValue]:
        """The last run's results, in the order in which outputs were bound."""
        missing = [name for name, value in self._results.items() if value is None]
        if missing:
            raise InputError(f"output '{missing[0]}' has no result yet; run the session with this binding first")
        return [value for value in self._results.values() if value is not None]

    def get_outputs_as_ortvaluevector(self) -> List[OrtValue]:
        """Does the same as ``get_outputs``."""
        return self.get_outputs()

    def copy_outputs_to_cpu(self) -> List[Any]:
        """The last run's results as ``run`` returns them; copied where the next run would write over them."""
        out = []
        for name, value in zip(self._results, self.get_outputs()):
            result = value._python()
            out.append(result.copy() if name in self._given and value._host is not None else result)
        return out

    # ------------------------------------------------------------------ inside

    def _forget(self, name: str) -> None:
        self._given.pop(name, None)
        self._allocated.pop(name, None)
        self._results.setdefault(name, None)
        self._results[name] = None

    def _written(self, name: str, value: Any) -> OrtValue:
        """A value in the memory of the array or Tensor itself: results written to a copy would be lost."""
        if isinstance(value, OrtValue):
            return value
        if isinstance(value, Tensor):
            return self._value_class(value)
        if not isinstance(value, np.ndarray) or not (value.flags.c_contiguous and value.flags.aligned and
                                                     value.dtype.isnative):
            raise InvalidArgumentError(f"binding output '{name}': runs write to row-major NumPy arrays, Tensors and "
                                       f"OrtValues, got {type(value).__name__}; make one by numpy.empty(shape, dtype)")
        made = self._value_class.ortvalue_from_numpy(value)
        if 0 < made._dtype().bits < 8:
            raise InvalidArgumentError(f"binding output '{name}' to an array of {value.dtype}, whose elements are a byte "
                                       "each, where runs write packed ones; bind a Tensor")
        return made

    def _at(self, what: str, device_type: str, element_type: Any, shape: Sequence[int], address: int) -> OrtValue:
        if device_type != "cpu":
            raise UnsupportedError(f"binding {what} to an address on '{device_type}': values know where they are; use "
                                   "bind_ortvalue_input or bind_ortvalue_output")
        dtype = self._dtype_of(element_type)
        if dtype.bits == 0:
            raise UnsupportedError(f"binding {what} to an address: a tensor of strings has none")
        count = int(np.prod(shape, dtype=np.int64))
        size = (count * dtype.bits + 7) // 8
        if count and not address:
            raise InvalidArgumentError(f"binding {what} to the address 0, with {count} elements")
        dims = tuple(shape) if dtype.bits >= 8 else (size,)
        array = array_over(None, int(address), size, memory_dtype(dtype), dims)
        return self._value_class(Tensor._over(array, dtype, shape))

    def _dtype_of(self, element_type: Any) -> DType:
        return dtype_of(element_type)

    def _run(self, session: SessionHandle, run_options: Optional[RunOptions]) -> None:
        if session is not self._session:
            raise InvalidArgumentError("run_with_iobinding: the binding is of another session; use io_binding() of "
                                       "this one")
        unbound = [port.name for port in session._inputs if not port.has_initializer and port.name not in self._kept]
        if unbound:
            raise InputError("run_with_iobinding: inputs that are not bound: " + ", ".join(map(repr, unbound)))
        if not self._results:
            raise InputError("run_with_iobinding: no output is bound; use bind_output")
        handle = session._alive()
        for name in self._allocated:  # Ctrl-C at the end of a run may have left a value here
            io = self._outputs[session._output_index[name]]
            left, io.value = io.value, None
            if left:
                lib.value.release(left)
        check_run(interrupt.stoppable(
            None if run_options is None else run_options._options,
            lambda options: lib.session.run(handle, self._inputs, len(session._inputs), self._outputs,
                                            len(session._outputs), options)), run_options)
        for name, device in self._allocated.items():
            io = self._outputs[session._output_index[name]]
            handle, io.value = lib.Handle(io.value, lib.value.release), None
            self._results[name] = self._value_class._of_handle(handle, device)

    def __repr__(self) -> str:
        return f"IOBinding(inputs={list(self._kept)}, outputs={list(self._results)})"


def run_values(binding: IOBinding, output_names: Optional[Sequence[str]], feeds: Mapping[str, OrtValue],
               run_options: Optional[RunOptions]) -> List[OrtValue]:
    """Does the work of InferenceSession.run_with_ort_values with a new binding."""
    for name, value in feeds.items():
        binding.bind_ortvalue_input(name, value)
    names = list(output_names or binding._session._output_index)
    for name in dict.fromkeys(names):
        binding.bind_output(name)
    binding._run(binding._session, run_options)
    made = dict(zip(binding._results, binding.get_outputs()))
    return [made[name] for name in names]


def _find(index: Mapping[str, int], name: str, side: str) -> int:
    found = index.get(name)
    if found is None:
        raise InputError(f"binding: the model has no {side} '{name}'; it has " + ", ".join(map(repr, index)))
    return found


def _expect_value(value: Any, what: str) -> None:
    if not isinstance(value, OrtValue):
        raise InvalidArgumentError(f"binding {what}: {type(value).__name__} is no OrtValue; make one by "
                                   "OrtValue.ortvalue_from_numpy")

# SPDX-License-Identifier: Apache-2.0
"""Runs of a session, from inputs by name to outputs in order."""
from __future__ import annotations

import ctypes
from typing import Any, Container, Iterable, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from .._core import abi, library as lib
from .._core.errors import InputError, OutOfMemoryError
from .._values.arrays import address_of, as_array, number_array, plain
from .._values.dtype import ABI_OF_NUMPY, FROM_ABI, OWN_NUMPY, TO_ABI, DType
from .._values.memory import TENSOR_SIZE, results_of
from .._values.strings import StringTensor, string_tensor
from .._values.tensor import Tensor, from_numpy
from .._values.value import value_of
from .handle import SessionHandle
from .ort_value import OrtValue
from .state import State

_IO_SIZE = ctypes.sizeof(abi.Io)
_addressof, _empty = ctypes.addressof, np.empty
_buffer_of: Any = ctypes.c_char.from_buffer

# An Io struct in words of 8 bytes: what a run changes of it.
_WORDS = _IO_SIZE // 8
_FLAGS, _TENSOR, _VALUE = 1, abi.Io.tensor.offset // 8, abi.Io.value.offset // 8
_DTYPE, _RANK, _DATA, _BYTES, _DIMS = (_TENSOR + at // 8 for at in (
    0, abi.Tensor.rank.offset, abi.Tensor.data.offset, abi.Tensor.bytes.offset, abi.Tensor.dims.offset))
_MISSING = object()


class Frame:
    """The arrays of one run, kept for the next: a run takes a frame that no other has.

    They are written as words, which costs a tenth of writing fields of ctypes.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        self.inputs = (abi.Io * max(inputs, 1))()
        self.outputs = (abi.Io * max(outputs, 1))()
        for io in [*self.inputs, *self.outputs]:
            io.struct_size = _IO_SIZE
            io.tensor.struct_size = TENSOR_SIZE
        self.input_count, self.output_count = ctypes.c_size_t(inputs), ctypes.c_size_t(outputs)
        self.in_words = memoryview(self.inputs).cast("B").cast("Q")
        self.out_words = memoryview(self.outputs).cast("B").cast("Q")
        # The shapes and types that inputs had last need not be written again while they are equal.
        self.shapes: List[Any] = [None] * inputs
        self.dtypes: List[Any] = [None] * inputs
        self.dims: List[Any] = [None] * (inputs + outputs)
        self.lent: Container[str] = ()  # inputs that a state has
        # The outputs wanted last, and of those the ones to allocate: index, word of the address, shape, dtype.
        self.names: Any = _MISSING
        self.wanted: Sequence[int] = ()
        self.allocated: List[Tuple[int, int, Tuple[int, ...], Any]] = []
        # Whether the last run was of these shapes and over at once, and nothing but them says how long the next takes.
        self.quick = False

    def discard(self) -> None:
        """Lets go what a run left that was broken off between its end and the taking of its results."""
        for i in range(self.output_count.value):
            value, self.outputs[i].value = self.outputs[i].value, None
            if value:
                lib.value.release(value)


def _put(words: Any, at: int, dtype: int, shape: Tuple[int, ...], size: int) -> Any:
    """Describes a tensor in an Io's words; what it returns has to stay."""
    dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    words[at + _DTYPE] = dtype << 32 | TENSOR_SIZE
    words[at + _RANK] = len(shape)
    words[at + _BYTES] = size
    words[at + _DIMS] = ctypes.addressof(dims)
    return dims


class FeedingSession(SessionHandle):
    """A session that fills frames with the inputs of a run, and takes the results out of them."""

    def _hold(self, handle: lib.Handle) -> None:
        super()._hold(handle)
        # Outputs whose memory can be had before the run: (shape, NumPy dtype, ABI dtype).
        self._known: List[Optional[Tuple[Tuple[int, ...], Any, int]]] = []
        for port in self._outputs:
            dtype = FROM_ABI.get(port.dtype)
            fixed = port.kind == abi.VALUE_TENSOR and port.dims is not None and all(d > 0 for d in port.dims)
            numpy = OWN_NUMPY.get(dtype) if dtype is not None and dtype != DType.String else None
            self._known.append((tuple(port.dims or ()), numpy, port.dtype) if fixed and numpy is not None else None)
        self._all_outputs = range(len(self._outputs))
        self._frames: List[Frame] = []

    def _take_frame(self) -> Frame:
        try:
            return self._frames.pop()
        except IndexError:
            return Frame(len(self._inputs), len(self._outputs))

    def _feed(self, frame: Frame, feeds: Mapping[str, Any], state: Optional[State] = None) -> List[Any]:
        """Fills in the inputs but for the state's; what it returns has to stay until the run is over."""
        frame.lent = () if state is None else state._inputs
        kept: List[Any] = []
        words, shapes, dtypes = frame.in_words, frame.shapes, frame.dtypes
        try:
            get = feeds.get
        except AttributeError:
            raise InputError(f"input_feed is a dict with a value for each input by name, got {type(feeds).__name__}; "
                             "the model takes " + ", ".join(f"'{name}'" for name in self._input_index)) from None
        i, missing = 0, 0
        for name in self._input_index:
            what = get(name, _MISSING)
            if (type(what) is np.ndarray and what.dtype is dtypes[i] and what.shape == shapes[i] and
                (what.flags.carray or what.flags.c_contiguous and what.flags.aligned)):
                try:
                    words[i * _WORDS + _DATA] = _addressof(_buffer_of(what))
                except (TypeError, ValueError, BufferError):  # read-only, or without elements
                    words[i * _WORDS + _DATA] = address_of(what)
            else:
                missing += what is _MISSING
                what = self._feed_one(frame, i, what, feeds)
            kept.append(what)
            i += 1
        if i - missing != len(feeds):
            raise InputError(self._feed_fault(feeds, frame.lent))
        return kept

    def _feed_one(self, frame: Frame, i: int, what: Any, feeds: Mapping[str, Any]) -> Any:
        """An input that is not as it was in the frame's last run."""
        port, words, at, quick = self._inputs[i], frame.in_words, i * _WORDS, frame.quick
        frame.dtypes[i], frame.quick = None, False
        words[at + _VALUE] = 0
        if what is _MISSING:
            if not port.has_initializer and port.name not in frame.lent:
                raise InputError(self._feed_fault(feeds, frame.lent))
            words[at + _DTYPE] = TENSOR_SIZE
            return None
        if type(what) is not np.ndarray or what.dtype not in ABI_OF_NUMPY:
            what, value = self._convert(port, what)
            if value is not None:
                words[at + _VALUE] = value.address or 0
                if type(value) is StringTensor:
                    frame.quick = quick and value.size_class == frame.shapes[i]
                    frame.shapes[i] = value.size_class
                return value
            if isinstance(what, Tensor):
                memory = what.memory()
                frame.dims[i] = _put(words, at, TO_ABI[what.dtype], tuple(what.shape), memory.nbytes)
                words[at + _DATA] = address_of(memory)
                return what
        what = plain(what)
        frame.dims[i] = _put(words, at, ABI_OF_NUMPY[what.dtype], what.shape, what.nbytes)
        frame.shapes[i], frame.dtypes[i] = what.shape, what.dtype
        words[at + _DATA] = address_of(what)
        return what

    def _convert(self, port: Any, what: Any) -> Tuple[Any, Optional[lib.Handle]]:
        """An array or, of bytes that only their Tensor tells the type of, a Tensor to view; or a value of the library's."""
        if isinstance(what, OrtValue):
            if what._handle is not None:
                return None, what._handle
            what = what._host
        if isinstance(what, Tensor):
            if what.dtype != DType.String:
                return plain(what.memory()) if what.dtype in OWN_NUMPY else what, None
            what = what.memory()
        if port.kind not in (abi.VALUE_TENSOR, abi.VALUE_UNSET):
            return None, value_of(what, port.name, FROM_ABI.get(port.dtype), FROM_ABI.get(port.key_dtype))
        dtype = FROM_ABI.get(port.dtype)
        if dtype is not None:
            what = number_array(what, dtype, port.name)
        array = as_array(what, port.name)
        if array.dtype.kind in "OUS":
            return None, string_tensor(array, port.name)
        return array if array.dtype in ABI_OF_NUMPY else from_numpy(array), None

    def _feed_fault(self, feeds: Mapping[str, Any], lent: Container[str]) -> str:
        names = [port.name for port in self._inputs]
        missing = [port.name for port in self._inputs
                   if not port.has_initializer and port.name not in feeds and port.name not in lent]
        unknown = [str(name) for name in feeds if name not in self._input_index]
        faults = []
        if missing:
            faults.append("missing: " + ", ".join(f"'{name}'" for name in missing))
        if unknown:
            faults.append("unknown: " + ", ".join(f"'{name}'" for name in unknown))
        return f"inputs of a run are {'; '.join(faults)}; the model takes " + ", ".join(f"'{n}'" for n in names)

    def _prepare(self, frame: Frame, names: Optional[Sequence[str]]) -> Tuple[List[Any], Sequence[int]]:
        """Says where outputs go: into arrays made beforehand where their shape is known."""
        if names != frame.names:
            self._choose(frame, names)
        words = frame.out_words
        made: List[Any] = [None] * len(self._outputs)
        try:
            for i, at, shape, dtype in frame.allocated:
                made[i] = array = _empty(shape, dtype)
                words[at] = _addressof(_buffer_of(array))
        except (MemoryError, ValueError) as fault:  # NumPy has a largest size of its own
            raise OutOfMemoryError(f"running: no memory for output '{self._outputs[i].name}' of shape {list(shape)}: "
                                   f"{fault}; feed smaller inputs or ask for fewer outputs") from fault
        return made, frame.wanted

    def _choose(self, frame: Frame, names: Optional[Sequence[str]]) -> None:
        """Has the frame's runs make other outputs than it did."""
        frame.quick = False
        wanted: Sequence[int] = self._all_outputs
        if names:
            try:
                wanted = [self._output_index[name] for name in names]
            except (KeyError, TypeError):
                given = ", ".join(f"'{port.name}'" for port in self._outputs)
                if isinstance(names, str) or not isinstance(names, Iterable):
                    raise InputError(f"output_names is a list of names, got {names!r}; the model gives "
                                     f"{given}") from None
                unknown = next(name for name in names if name not in list(self._output_index))
                raise InputError(f"output {unknown!r} is none of the model's: {given}") from None
        frame.names, frame.wanted = list(names) if names else names, wanted
        frame.allocated = []
        for i in self._all_outputs:
            known, at = self._known[i], i * _WORDS
            frame.out_words[at + _FLAGS] = 0 if i in wanted else abi.IO_SKIP
            if known is not None and i in wanted:
                frame.allocated.append((i, at + _DATA, known[0], known[1]))
                size = int(np.prod(known[0], dtype=np.int64)) * known[1].itemsize
                frame.dims[len(self._inputs) + i] = _put(frame.out_words, at, known[2], known[0], size)

    def _collect(self, words: Any, made: List[Any], wanted: Sequence[int]) -> List[Any]:
        got = [i for i, array in enumerate(made) if array is None and words[i * _WORDS + _VALUE]]
        if got:
            for i, result in zip(got, results_of([words[i * _WORDS + _VALUE] for i in got])):
                made[i] = result
            for i in got:
                value, words[i * _WORDS + _VALUE] = words[i * _WORDS + _VALUE], 0
                lib.value.release(value)
        return made if wanted is self._all_outputs else [made[i] for i in wanted]

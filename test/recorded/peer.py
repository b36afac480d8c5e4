# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime by its C table: one model, named inputs, all outputs. Slots never move; see its C header."""
import ctypes
import functools

import numpy as np

(GET_MESSAGE, CREATE_ENV, FROM_ARRAY, RUN, CREATE_OPTIONS, SET_LEVEL, SET_THREADS) = (2, 3, 8, 9, 10, 23, 24)
(OUTPUT_COUNT, OUTPUT_NAME, TENSOR_ON_HEAP, TENSOR, TENSOR_DATA, FILL_STRINGS) = (31, 37, 48, 49, 51, 52)
(STRINGS_LENGTH, STRINGS, ELEMENT_TYPE, RANK, DIMS, COUNT, TYPE_AND_SHAPE) = (53, 54, 60, 61, 62, 64, 65)
(KIND, CPU_MEMORY, ALLOCATOR, GET_VALUE, VALUE_COUNT, CREATE_VALUE, HAS_VALUE) = (67, 69, 78, 80, 81, 82, 192)
(FREE, DROP_STATUS, DROP_SESSION, DROP_VALUE, DROP_INFO, DROP_OPTIONS) = (76, 93, 95, 96, 99, 100)
NEWEST_API = 30
ERRORS_ONLY = 3
FATAL_ONLY = 4
STRING = 8
KINDS = {1: "tensor", 2: "sequence", 3: "map", 6: "optional"}
# NumPy's types by ONNX's numbers; a type that NumPy lacks travels as bits.
NUMPY = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
         10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64, 14: np.complex64, 15: np.complex128}
BITS = {16: np.uint16, 17: np.uint8, 18: np.uint8, 19: np.uint8, 20: np.uint8, 24: np.uint8}
PACKED = {21: 2, 22: 2, 23: 2, 25: 4, 26: 4}  # elements a byte
OWN_NUMBERS = {25: 24, 26: 25}  # the peer's numbers for uint2 and int2


class Bits:
    """A tensor of a type that NumPy lacks: its element type, dimensions and packed bytes."""

    def __init__(self, dtype, dims, data):
        self.dtype, self.dims, self.data = dtype, list(dims), bytes(data)


def dtype_of(array):
    if array.dtype.kind in "OUS":
        return STRING
    return next(number for number, dtype in NUMPY.items() if array.dtype == dtype)


class Peer:
    """|severity|: what it logs at least, besides what its statuses say."""

    def __init__(self, library, severity=ERRORS_ONLY):
        self._library = ctypes.CDLL(library)
        self._library.OrtGetApiBase.restype = ctypes.POINTER(ctypes.c_void_p)
        base = self._library.OrtGetApiBase()
        get_api = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32)(base[0])
        self.version = ctypes.CFUNCTYPE(ctypes.c_char_p)(base[1])().decode()
        self._table = get_api(NEWEST_API)
        if not self._table:
            raise RuntimeError(f"{library} {self.version} has no C API {NEWEST_API}")
        self._env = self._new(CREATE_ENV, ctypes.c_int(severity), b"record")
        self._memory = self._new(CPU_MEMORY, ctypes.c_int(1), ctypes.c_int(0))
        self._allocator = self._new(ALLOCATOR)
        self._keep, self._held = [], []

    @functools.lru_cache(maxsize=None)
    def _function(self, slot, result, *types):
        return ctypes.CFUNCTYPE(result, *types)(self._table[slot])

    def _call(self, slot, *args):
        types = [type(a) if isinstance(a, ctypes._SimpleCData) else ctypes.c_void_p for a in args]
        status = self._function(slot, ctypes.c_void_p, *types)(*args)
        if status:
            message = self._function(GET_MESSAGE, ctypes.c_char_p, ctypes.c_void_p)(status)
            self._drop(DROP_STATUS, status)
            raise RuntimeError(message.decode(errors="replace"))

    def _drop(self, slot, *handle):
        self._function(slot, None, *[ctypes.c_void_p] * len(handle))(*handle)

    def _hold(self, slot, handle):
        """|handle|, which is released by the function in |slot| when the run is over."""
        self._held.append((slot, handle))
        return handle

    def _new(self, slot, *args):
        out = ctypes.c_void_p()
        self._call(slot, *args, ctypes.addressof(out))
        return out.value

    def _number(self, slot, *args, of=ctypes.c_size_t):
        out = of()
        self._call(slot, *args, ctypes.addressof(out))
        return out.value

    def _tensor(self, value):
        if not isinstance(value, Bits):
            value = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
        dims = value.dims if isinstance(value, Bits) else value.shape
        shape = (ctypes.c_int64 * max(1, len(dims)))(*dims)
        self._keep.append(shape)
        rank = ctypes.c_size_t(len(dims))
        if isinstance(value, Bits):
            data = ctypes.create_string_buffer(value.data, max(1, len(value.data)))
            self._keep.append(data)
            return self._hold(DROP_VALUE, self._new(
                TENSOR, self._memory, ctypes.addressof(data), ctypes.c_size_t(len(value.data)),
                ctypes.addressof(shape), rank, ctypes.c_int(OWN_NUMBERS.get(value.dtype, value.dtype))))
        if dtype_of(value) == STRING:
            tensor = self._hold(DROP_VALUE, self._new(
                TENSOR_ON_HEAP, self._allocator, ctypes.addressof(shape), rank, ctypes.c_int(STRING)))
            texts = [t if isinstance(t, bytes) else str(t).encode() for t in value.reshape(-1)]
            array = (ctypes.c_char_p * max(1, len(texts)))(*texts)
            self._call(FILL_STRINGS, tensor, ctypes.addressof(array), ctypes.c_size_t(len(texts)))
            return tensor
        self._keep.append(value)
        return self._hold(DROP_VALUE, self._new(
            TENSOR, self._memory, value.ctypes.data, ctypes.c_size_t(value.nbytes), ctypes.addressof(shape), rank,
            ctypes.c_int(dtype_of(value))))

    def _value(self, value):
        if isinstance(value, dict):
            keys, entries = list(value), list(value.values())
            parts = (ctypes.c_void_p * 2)(*[self._tensor(np.array(part, dtype=object if isinstance(
                part[0], (str, bytes)) else None)) for part in (keys, entries)])
            return self._hold(DROP_VALUE, self._new(
                CREATE_VALUE, ctypes.addressof(parts), ctypes.c_size_t(2), ctypes.c_int(3)))
        if not isinstance(value, (list, tuple)):
            return self._tensor(value)
        parts = (ctypes.c_void_p * max(1, len(value)))(*[self._value(v) for v in value])
        return self._hold(DROP_VALUE, self._new(
            CREATE_VALUE, ctypes.addressof(parts), ctypes.c_size_t(len(value)), ctypes.c_int(2)))

    def _read_tensor(self, value):
        info = self._hold(DROP_INFO, self._new(TYPE_AND_SHAPE, value))
        dtype = self._number(ELEMENT_TYPE, info, of=ctypes.c_int)
        dtype = next((number for number, own in OWN_NUMBERS.items() if own == dtype), dtype)
        rank = self._number(RANK, info)
        dims = (ctypes.c_int64 * max(1, rank))()
        self._call(DIMS, info, ctypes.addressof(dims), ctypes.c_size_t(rank))
        dims, count = list(dims)[:rank], self._number(COUNT, info)
        if dtype == STRING:
            length = self._number(STRINGS_LENGTH, value)
            text, offsets = ctypes.create_string_buffer(max(1, length)), (ctypes.c_size_t * (count + 1))()
            self._call(STRINGS, value, ctypes.addressof(text), ctypes.c_size_t(length), ctypes.addressof(offsets),
                       ctypes.c_size_t(count))
            ends = list(offsets)[1:count] + [length] * (count > 0)
            texts = [text.raw[begin:end] for begin, end in zip(list(offsets), ends)]
            return np.array(texts, dtype=object).reshape(dims)
        size = -(-count // PACKED[dtype]) if dtype in PACKED else count * np.dtype(
            NUMPY.get(dtype) or BITS[dtype]).itemsize
        data = ctypes.string_at(self._new(TENSOR_DATA, value), size) if size else b""
        if dtype in NUMPY:
            return np.frombuffer(data, dtype=NUMPY[dtype]).reshape(dims).copy()
        return Bits(dtype, dims, data)

    def _read(self, value):
        kind = KINDS[self._number(KIND, value, of=ctypes.c_int)]
        if kind == "optional" and not self._number(HAS_VALUE, value, of=ctypes.c_int):
            return None
        if kind in ("tensor", "optional"):
            return self._read_tensor(value)
        parts = [self._read(self._hold(DROP_VALUE, self._new(GET_VALUE, value, ctypes.c_int(i), self._allocator)))
                 for i in range(self._number(VALUE_COUNT, value))]
        if kind == "sequence":
            return parts
        return dict(zip(*[p.reshape(-1).tolist() for p in parts]))

    def run(self, model, inputs):
        """The outputs in order: arrays, Bits, lists (sequences) and dicts (maps)."""
        try:
            return self._run(model, inputs)
        finally:
            for slot, handle in reversed(self._held):
                self._drop(slot, handle)
            self._held, self._keep = [], []

    def _run(self, model, inputs):
        options = self._hold(DROP_OPTIONS, self._new(CREATE_OPTIONS))
        self._call(SET_LEVEL, options, ctypes.c_int(0))
        self._call(SET_THREADS, options, ctypes.c_int(1))
        session = self._hold(DROP_SESSION, self._new(
            FROM_ARRAY, self._env, ctypes.cast(ctypes.c_char_p(model), ctypes.c_void_p), ctypes.c_size_t(len(model)),
            options))
        count = self._number(OUTPUT_COUNT, session)
        names = (ctypes.c_char_p * count)()
        for i in range(count):
            name = self._new(OUTPUT_NAME, session, ctypes.c_size_t(i), self._allocator)
            names[i] = ctypes.string_at(name)
            self._call(FREE, self._allocator, name)
        given = (ctypes.c_char_p * max(1, len(inputs)))(*[name.encode() for name in inputs])
        values = (ctypes.c_void_p * max(1, len(inputs)))(*[self._value(v) for v in inputs.values()])
        results = (ctypes.c_void_p * count)()
        try:
            self._call(RUN, session, None, ctypes.addressof(given), ctypes.addressof(values),
                       ctypes.c_size_t(len(inputs)), ctypes.addressof(names), ctypes.c_size_t(count),
                       ctypes.addressof(results))
        finally:
            for result in results:
                if result:
                    self._hold(DROP_VALUE, result)
        return [self._read(results[i]) if results[i] else None for i in range(count)]

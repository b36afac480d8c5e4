# SPDX-License-Identifier: Apache-2.0
"""Inputs of runs: right results, or an error that says what to give instead."""
import array
import decimal

import numpy as np
import pytest

import pyflame_rt
from conftest import BOOL, DOUBLE, FLOAT, INT64, STRING, UINT8, node, onnx_model, port
from pyflame_rt import DType, Tensor

X = np.arange(6, dtype=np.float32).reshape(2, 3)
ONE = np.ones((2, 3), np.float32)
# ONNX's numbers
DTYPES = [("float32", FLOAT), ("float64", DOUBLE), ("float16", 10), ("int8", 3), ("uint8", UINT8), ("int16", 5),
          ("uint16", 4), ("int32", 6), ("int64", INT64), ("uint32", 12), ("uint64", 13), ("bool", BOOL),
          ("complex64", 14), ("complex128", 15)]


@pytest.fixture
def session(add_model):
    return pyflame_rt.InferenceSession(add_model)


def same(dtype, dims=("N",)):
    """A session of y = x."""
    return pyflame_rt.InferenceSession(onnx_model([node("Identity", ["x"], ["y"])], [port("x", dtype, list(dims))],
                                                  [port("y", dtype, list(dims))]))


class Subclass(np.ndarray):
    """A subclass that says of itself what is not so."""

    @property
    def shape(self):
        return (1000, 3)

    @property
    def nbytes(self):
        return 12000


class ByArray:
    def __array__(self, dtype=None, copy=None):
        return X


class ByInterface:
    def __init__(self, array):
        self.keep, self.__array_interface__ = array, array.__array_interface__


class ByDlpack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def unaligned(given):
    return np.frombuffer(b"\0" + given.tobytes(), np.uint8)[1:].view(given.dtype).reshape(given.shape)


def memory_mapped(folder, mode):
    file = folder / "x.npy"
    np.save(file, X)
    return np.load(file, mmap_mode=mode)


# ------------------------------------------------------------------ arrays that will do


@pytest.mark.parametrize("x", [
    X.copy().view(np.matrix), np.ma.array(X), np.ma.array(X, mask=False), X.copy().view(Subclass),
    X[::-1, ::-1][::-1, ::-1], np.asfortranarray(X), X.astype(">f4"), X[::-1].astype(">f4")[::-1], unaligned(X),
    np.repeat(X, 2, axis=1)[:, ::2], np.broadcast_to(X, (4, 2, 3))[3], X.tolist(), list(X), tuple(map(tuple, X)),
    [[np.float64(v) for v in row] for row in X], memoryview(X), ByArray(), ByInterface(X.copy()), ByDlpack(X.copy()),
    pyflame_rt.from_numpy(X), pyflame_rt.from_dlpack(X), X.astype(np.int64).tolist(),
    X.astype(np.dtype("f4", metadata={"unit": "m"})),
], ids=["matrix", "masked", "mask of none", "subclass that lies", "negative strides", "fortran", "big-endian",
        "big-endian strided", "unaligned", "strided", "broadcast", "list", "list of arrays", "tuples", "numpy scalars",
        "memoryview", "__array__", "__array_interface__", "__dlpack__", "Tensor", "from_dlpack", "ints", "metadata"])
def test_these_are_the_same(session, x):
    for _ in range(2):  # a second run meets the first one's preparations
        assert session.run(None, {"a": x, "b": ONE})[0].tolist() == (X + 1).tolist()


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_memory_mapped_arrays(session, tmp_path, mode):
    assert session.run(None, {"a": memory_mapped(tmp_path, mode), "b": ONE})[0].tolist() == (X + 1).tolist()


def test_strides_beyond_the_memory_that_are_never_taken(session):
    far = np.lib.stride_tricks.as_strided(np.arange(3, dtype=np.float32), (1, 3), (1 << 50, 4))
    assert session.run(None, {"a": far, "b": ONE[:1]})[0].tolist() == [[1, 2, 3]]
    still = np.broadcast_to(np.float32(5), (2, 3))
    assert still.strides == (0, 0) and session.run(None, {"a": still, "b": ONE})[0].tolist() == (0 * X + 6).tolist()
    back = np.arange(7, dtype=np.float32)[:0:-1].reshape(2, 3)
    assert session.run(None, {"a": back, "b": ONE})[0].tolist() == [[7, 6, 5], [4, 3, 2]]


def test_the_array_fed_is_never_written(session):
    frozen = X.copy()
    frozen.flags.writeable = False
    for x in (X.copy(), frozen, X.astype(">f4"), np.asfortranarray(X)):
        before = x.tobytes()
        session.run(None, {"a": x, "b": x})
        assert x.tobytes() == before


@pytest.mark.parametrize("nothing", [np.empty((0, 3), np.float32), np.empty((0, 3), ">f4"),
                                     np.zeros((0, 3, 2), np.float32)[..., 0], np.empty((4, 3), np.float32)[4:],
                                     Tensor([0, 3])])
def test_empty_arrays(session, nothing):
    assert session.run(None, {"a": nothing, "b": nothing})[0].shape == (0, 3)
    assert session.run(None, {"a": X, "b": ONE})[0].tolist() == (X + 1).tolist()


@pytest.mark.parametrize("x", [2.5, np.float64(2.5), np.array(2.5), np.array(2.5, ">f8"), Tensor([], DType.Float64),
                               unaligned(np.array(2.5))],
                         ids=["float", "scalar", "array", "big-endian", "Tensor", "unaligned"])
def test_arrays_without_dimensions(x):
    if isinstance(x, Tensor):
        x.numpy()[()] = 2.5
    out = same(DOUBLE, []).run(None, {"x": x})[0]
    assert out == 2.5 and out.shape == ()


@pytest.mark.parametrize("name, dtype", DTYPES)
def test_every_element_type(name, dtype):
    session, x = same(dtype), np.array([0, 1, 2, 100]).astype(name)
    for given in (x, x.astype(x.dtype.newbyteorder(">")), np.repeat(x, 2)[::2], pyflame_rt.from_numpy(x), x.tolist()):
        out = session.run(None, {"x": given})[0]
        assert out.dtype == x.dtype and out.dtype.isnative and out.tolist() == x.tolist()
    other = np.zeros(4, np.float32 if name != "float32" else np.int32)
    with pytest.raises(pyflame_rt.DTypeMismatchError, match=f"'x' expects {name}, got .*numpy.asarray.*numpy.{name}"):
        session.run(None, {"x": other})


@pytest.mark.parametrize("name, long", [("int64", np.longlong), ("uint64", np.ulonglong)])
def test_c_types_of_one_size_are_one(name, long):
    assert same(dict(DTYPES)[name]).run(None, {"x": np.array([1, 2], long)})[0].tolist() == [1, 2]


# ------------------------------------------------------------------ texts


@pytest.mark.parametrize("texts", [
    ["a", "", "déjà \U0001f600"], np.array(["a", "", "déjà \U0001f600"]),
    np.array(["a", "", "déjà \U0001f600"], object), np.char.encode(["a", "", "déjà \U0001f600"], "utf-8"),
    np.array(["a", "", "déjà \U0001f600"])[::-1][::-1], np.array(["a", "", "déjà \U0001f600"]).astype(">U8"),
    [np.str_("a"), "", "déjà \U0001f600"], ["a", b"", "déjà \U0001f600".encode()],
], ids=["list", "U", "O", "S", "strided", "big-endian", "numpy str", "bytes among them"])
def test_texts(texts):
    given = np.array(texts, object) if isinstance(texts, list) and b"" in texts else texts
    assert same(STRING).run(None, {"x": given})[0].tolist() == ["a", "", "déjà \U0001f600"]


def test_texts_without_elements_or_dimensions():
    assert same(STRING).run(None, {"x": np.array([], object)})[0].shape == (0,)
    assert same(STRING, []).run(None, {"x": "one"})[0].tolist() == "one"


def test_long_texts_and_nul_bytes():
    texts = np.array(["x" * 100000, "a\0b"], object)
    assert same(STRING).run(None, {"x": texts})[0].tolist() == texts.tolist()


@pytest.mark.parametrize("texts, error, words", [
    (np.array(["a", None], object), pyflame_rt.DTypeMismatchError, "element 1 of an object array is NoneType"),
    (np.array(["a", 1.5], object), pyflame_rt.DTypeMismatchError, "element 1 of an object array is float"),
    (np.array([b"\xff"], object), pyflame_rt.InputError, "element 0 is no text that UTF-8 has"),
    (np.array([b"a", b"\xff"]), pyflame_rt.InputError, "element 1 is no text that UTF-8 has"),
    (["\ud800"], pyflame_rt.InputError, "element 0 is no text that UTF-8 has"),
    (np.array([1, 2]), pyflame_rt.DTypeMismatchError, "'x' expects string, got int64; give an array of str"),
    ([1.5], pyflame_rt.DTypeMismatchError, "'x' expects string, got float64; give an array of str"),
])
def test_what_is_no_text(texts, error, words):
    with pytest.raises(error, match=words):
        same(STRING).run(None, {"x": texts})


# ------------------------------------------------------------------ what will not do


@pytest.mark.parametrize("x, error, words", [
    (X.astype(np.float64), "DTypeMismatchError",
     r"'a' expects float32, got float64; .*numpy.asarray\(value, numpy.float32\)"),
    (X.astype(">f8"), "DTypeMismatchError", "expects float32, got float64"),
    (X.astype(np.float16), "DTypeMismatchError", "expects float32, got float16"),
    (X.astype(np.int32), "DTypeMismatchError", "expects float32, got int32"),
    (X > 1, "DTypeMismatchError", "expects float32, got bool"),
    ((X > 1).tolist(), "DTypeMismatchError", "expects float32, got bool"),
    (X.astype(np.complex64), "DTypeMismatchError", "expects float32, got complex64"),
    ([[1j, 2, 3]], "DTypeMismatchError", "expects float32, got complex128"),
    (X.astype(np.longdouble), "DTypeMismatchError", "float128 have no element type here; convert it.*astype"),
    (np.zeros((2, 3), [("a", "f4")]), "DTypeMismatchError", "have no element type here; convert it.*astype"),
    (np.zeros((2, 3), "V4"), "DTypeMismatchError", "have no element type here; convert it.*astype"),
    (np.zeros((2, 3), "m8[s]"), "DTypeMismatchError", "timedelta64.* have no element type here; convert it.*astype"),
    (np.array([["1", "2", "3"]]), "DTypeMismatchError", "expects float32, got string; .*numpy.asarray"),
    (np.array([[b"1", b"2", b"3"]]), "DTypeMismatchError", "expects float32, got string"),
    (X.astype(object), "DTypeMismatchError", "element 0 of an object array is float.*astype"),
    ([[decimal.Decimal(1)] * 3], "DTypeMismatchError", "element 0 of an object array is Decimal.*astype"),
    ([[10 ** 30] * 3], "DTypeMismatchError", "element 0 of an object array is int.*astype"),
    (Tensor([2, 3], DType.BFloat16), "DTypeMismatchError", "expects float32, got bfloat16; .*numpy.asarray"),
    (Tensor([2, 3], DType.String), "DTypeMismatchError", "expects float32, got string; .*numpy.asarray"),
    (X[0], "ShapeMismatchError", r"expects \[N,3\], got \[3\] \(rank 1 instead of 2\); numpy.expand_dims"),
    (X[None], "ShapeMismatchError", r"got \[1,2,3\] \(rank 3 instead of 2\); numpy.squeeze"),
    (1.5, "ShapeMismatchError", r"got \[\] \(rank 0 instead of 2\); numpy.reshape"),
    (np.float32(1.5), "ShapeMismatchError", r"got \[\] \(rank 0 instead of 2\)"),
    ([], "ShapeMismatchError", r"got \[0\] \(rank 1 instead of 2\)"),
    ([[]], "ShapeMismatchError", r"expects \[N,3\], got \[1,0\]"),
    (X[:, :2], "ShapeMismatchError", r"expects \[N,3\], got \[2,2\]"),
    (array.array("f", [1, 2, 3]), "ShapeMismatchError", r"got \[3\] \(rank 1 instead of 2\)"),
    ([[1, 2], [3]], "InputError", "'a': NumPy makes no array of this list: .*; give .*lists of equal length"),
    (np.ma.array(X, mask=X > 3), "InputError", r"'a' is an array with masked elements.*\.filled\(value\)"),
    (None, "InputError", "'a': NumPy makes no array of this NoneType; give an array, a Tensor"),
    ({1: 2}, "InputError", "'a': NumPy makes no array of this dict; give an array, a Tensor"),
    ({1.5, 2.5}, "InputError", "'a': NumPy makes no array of this set"),
    ((v for v in (1, 2)), "InputError", "'a': NumPy makes no array of this generator"),
    (object(), "InputError", "'a': NumPy makes no array of this object"),
    (pyflame_rt.SparseTensor(X[0], np.arange(3), (3,)), "InputError", "NumPy makes no array of this SparseTensor"),
    (np.broadcast_to(np.float32(1), (1 << 44, 3)), "OutOfMemoryError", "is not row-major and has to be copied"),
], ids=lambda value: value if isinstance(value, str) and value.endswith("Error") else "")
def test_what_will_not_do(session, x, error, words):
    for _ in range(2):
        with pytest.raises(getattr(pyflame_rt, error), match=words):
            session.run(None, {"a": x, "b": ONE})
    assert session.run(None, {"a": X, "b": ONE})[0].tolist() == (X + 1).tolist()


def test_objects_that_fail_to_become_arrays(session):
    class Broken:
        def __array__(self, dtype=None, copy=None):
            raise TypeError("it lies on a device; use .cpu()")

    class OnDevice:
        def __dlpack__(self, **arguments):
            raise AssertionError("nobody may ask for it")

        def __dlpack_device__(self):
            return (2, 0)

    with pytest.raises(pyflame_rt.InputError, match="'a': .* this Broken: it lies on a device; use .cpu()") as caught:
        session.run(None, {"a": Broken(), "b": ONE})
    assert isinstance(caught.value.__cause__, TypeError)
    with pytest.raises(pyflame_rt.InputError, match="'a': .* this OnDevice: .*; give an array in the host's memory"):
        session.run(None, {"a": OnDevice(), "b": ONE})


@pytest.mark.parametrize("dtype, numbers, words", [
    (UINT8, [1, 256], "'x': 256 is no number of uint8"), (UINT8, [-1], "-1 is no number of uint8"),
    (6, [1 << 40], "1099511627776 is no number of int32"), (13, [-5], "-5 is no number of uint64"),
    (10, [1e6], "1000000.0 is no number of float16"), (FLOAT, [1e300], "1e[+]300 is no number of float32"),
])
def test_numbers_that_the_element_type_does_not_have(dtype, numbers, words):
    with pytest.raises(pyflame_rt.InputError, match=words):
        same(dtype).run(None, {"x": numbers})


@pytest.mark.parametrize("dtype, numbers", [
    (UINT8, [0, 255]), (6, [-(1 << 31), (1 << 31) - 1]), (13, [(1 << 64) - 1]), (10, [65504.0, -2]),
    (INT64, [-(1 << 63)]), (FLOAT, [float("inf"), -float("inf"), 3e38]), (BOOL, [True, False]),
])
def test_numbers_at_the_ends_of_an_element_type(dtype, numbers):
    out = same(dtype).run(None, {"x": numbers})[0]
    assert out.tolist() == np.array(numbers).astype(out.dtype).tolist()


# ------------------------------------------------------------------ names


@pytest.mark.parametrize("feeds, words", [
    ([X, ONE], "input_feed is a dict .* got list; the model takes 'a', 'b'"),
    (X, "input_feed is a dict .* got ndarray"),
    (None, "input_feed is a dict .* got NoneType"),
    ({}, "missing: 'a', 'b'"),
    ({"A": X, "b": ONE}, "missing: 'a'; unknown: 'A'; the model takes 'a', 'b'"),
    ({b"a": X, "b": ONE}, "missing: 'a'"),
    ({"a": X, "b": ONE, 3: X}, "unknown: '3'"),
])
def test_feeds_of_another_kind(session, feeds, words):
    with pytest.raises(pyflame_rt.InputError, match=words):
        session.run(None, feeds)


@pytest.mark.parametrize("names, words", [
    ("total", "output_names is a list of names, got 'total'; the model gives 'y'"),
    (["y", "total"], "output 'total' is none of the model's: 'y'"),
    ([3], "output 3 is none of the model's: 'y'"),
    ([["y"]], "is none of the model's: 'y'"),
    (7, "output_names is a list of names, got 7"),
])
def test_outputs_that_there_are_not(session, names, words):
    with pytest.raises(pyflame_rt.InputError, match=words):
        session.run(names, {"a": X, "b": ONE})


def test_an_output_may_be_asked_for_twice(session):
    first, second = session.run(["y", "y"], {"a": X, "b": ONE})
    assert first.tolist() == second.tolist() == (X + 1).tolist()


def test_void_arrays_are_texts_of_one_length():
    session = pyflame_rt.InferenceSession(onnx_model([node("Identity", ["x"], ["y"])], [port("x", STRING, ["N", "M"])],
                                                     [port("y", STRING, ["N", "M"])]))
    words = np.array([b"must", b"have", b"same", b"size"], np.void).reshape(2, 2)
    assert session.run(None, {"x": words})[0].tolist() == [["must", "have"], ["same", "size"]]
    assert session.run(None, {"x": words.T})[0].tolist() == [["must", "same"], ["have", "size"]]


def test_bfloat16_of_torch_is_told_the_way(add_model):
    class Tensor:
        dtype = "torch.bfloat16"

        def __array__(self, *_args, **_kwargs):
            raise TypeError("Got unsupported ScalarType BFloat16")

    with pytest.raises(pyflame_rt.InputError, match=r"view\(torch.int16\).numpy\(\).view\(ml_dtypes.bfloat16\)"):
        pyflame_rt.InferenceSession(add_model).run(None, {"a": Tensor(), "b": Tensor()})

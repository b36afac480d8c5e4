# SPDX-License-Identifier: Apache-2.0
"""The exceptions: those of the C++ API by name, base and code, and Python's own."""
import builtins
import re

import numpy as np
import pytest

import pyflame_rt
from conftest import ROOT
from pyflame_rt._core import abi, errors

BASES = {
    "InputError": "PyFlameRTError", "InvalidArgumentError": "InputError", "ShapeMismatchError": "PyFlameRTError",
    "DTypeMismatchError": "PyFlameRTError", "NotFoundError": "PyFlameRTError", "ModelNotFoundError": "NotFoundError",
    "InvalidModelError": "PyFlameRTError", "UnsupportedFormatError": "PyFlameRTError",
    "UnsupportedOperatorError": "PyFlameRTError", "ValidationError": "PyFlameRTError",
    "UnsupportedError": "PyFlameRTError", "BackendError": "PyFlameRTError", "CancelledError": "BackendError",
    "TimeoutError": "BackendError", "OutOfMemoryError": "PyFlameRTError", "BusyError": "PyFlameRTError", "DataError": "PyFlameRTError",
}


def header():
    return (ROOT / "cxxapi" / "pyflame_rt" / "error.hpp").read_text()


def test_the_types_of_python_and_of_cxx_are_the_same():
    assert dict(re.findall(r"class (\w+) : public (\w+Error) {", header())) == BASES
    for name, base in BASES.items():
        assert getattr(pyflame_rt, name).__bases__[0] is getattr(pyflame_rt, base)
        assert name in pyflame_rt.__all__


def test_each_code_has_the_same_type_in_python_and_in_cxx():
    cases = re.findall(r"((?:    case PFRT_CODE_\w+:\n)+)(?:.*\n)??      throw (\w+)\(", header())
    found = {code: name for codes, name in cases for code in re.findall(r"PFRT_(CODE_\w+)", codes)}
    codes = {name: number for name, number in vars(abi).items() if name.startswith("CODE_") and name != "CODE_OK"}
    assert len(codes) == 20
    for code, number in codes.items():
        assert type(errors.error_of(number, "text")).__name__ == found.get(code, "PyFlameRTError"), code
        assert errors.error_of(number, "text").code == number


@pytest.mark.parametrize("ours, python", [
    ("InputError", ValueError), ("InvalidArgumentError", ValueError), ("ShapeMismatchError", ValueError),
    ("DTypeMismatchError", TypeError), ("NotFoundError", LookupError), ("ModelNotFoundError", FileNotFoundError),
    ("UnsupportedError", NotImplementedError), ("BackendError", RuntimeError), ("TimeoutError", builtins.TimeoutError),
    ("OutOfMemoryError", MemoryError), ("DataError", OSError)])
def test_pythons_own_exceptions_catch_them(ours, python):
    fault = getattr(pyflame_rt, ours)("what was attempted")
    assert isinstance(fault, python) and str(fault) == "what was attempted"


def test_a_run_that_is_stopped_is_a_backend_error(digits):
    session, options = pyflame_rt.InferenceSession(digits), pyflame_rt.RunOptions()
    options.cancel()
    with pytest.raises(pyflame_rt.BackendError) as caught:
        session.run(None, {"image": np.zeros((1, 1, 8, 8), np.float32)}, options)
    assert type(caught.value) is pyflame_rt.CancelledError and caught.value.code == abi.CODE_CANCELLED


def test_files_that_cannot_be_written_and_that_there_are_not(digits, tmp_path):
    graph, folder = pyflame_rt.load_model(digits), tmp_path / "model.pfm"
    folder.mkdir()
    with pytest.raises(pyflame_rt.DataError, match="model.pfm"):
        graph.save(folder)
    with pytest.raises(pyflame_rt.ModelNotFoundError, match="absent.onnx"):
        pyflame_rt.load_model("absent.onnx")

# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's exceptions. What is raised here is also one of pyflame_rt's, and of Python's own; and a RuntimeError,
which that API raises for some mistakes of the same kinds."""
from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Dict, Sequence, Tuple, Type, TypeVar

from pyflame_rt._core import abi
from pyflame_rt._core.errors import ModelNotFoundError, PyFlameRTError

_C = TypeVar("_C", bound=type)
# Users import them from this module.
_MODULE = "pyflame_rt.onnxruntime.capi.onnxruntime_pybind11_state"


class Fail(PyFlameRTError, RuntimeError):
    """Anything that has no other exception: a run that was stopped, a file that could not be written."""


class InvalidArgument(PyFlameRTError, ValueError, RuntimeError):
    """An argument, option, input or output that the call does not take, or of a wrong type or shape."""


class NoSuchFile(PyFlameRTError, FileNotFoundError):
    """A model file that there is not."""


class NoModel(PyFlameRTError, RuntimeError):
    """A session without a model; never raised here."""


class EngineError(PyFlameRTError, RuntimeError):
    """Never raised here."""


class RuntimeException(PyFlameRTError, RuntimeError):
    """A fault of the library, or memory that could not be had."""


class InvalidProtobuf(PyFlameRTError, ValueError):
    """A model file that is malformed, cut short, or of a format that is not read."""


class ModelLoaded(PyFlameRTError, RuntimeError):
    """Never raised here."""


class NotImplemented(PyFlameRTError, NotImplementedError):
    """An operator, device or option that is not available here."""


class InvalidGraph(PyFlameRTError, ValueError):
    """A model whose graph is not valid; ``faults`` has every fault."""


class EPFail(PyFlameRTError, RuntimeError):
    """An execution provider or its device failed."""


class ModelLoadCanceled(PyFlameRTError, RuntimeError):
    """Never raised here."""


class ModelRequiresCompilation(PyFlameRTError, RuntimeError):
    """Never raised here: models need no compiling beforehand."""


class NotFound(PyFlameRTError, LookupError, RuntimeError):
    """A provider, option or name that there is not."""


EXCEPTIONS = (Fail, InvalidArgument, NoSuchFile, NoModel, EngineError, RuntimeException, InvalidProtobuf, ModelLoaded,
              NotImplemented, InvalidGraph, EPFail, ModelLoadCanceled, ModelRequiresCompilation, NotFound)
for _class in EXCEPTIONS:
    _class.__module__ = _MODULE

# The library's code: the exception, and the number and word that its message begins with.
_INVALID, _FAIL = (InvalidArgument, "2 : INVALID_ARGUMENT"), (Fail, "1 : FAIL")
_BY_CODE: Dict[int, Tuple[Type[PyFlameRTError], str]] = {
    abi.CODE_INVALID_ARGUMENT: _INVALID,
    abi.CODE_INPUT: _INVALID,
    abi.CODE_SHAPE_MISMATCH: _INVALID,
    abi.CODE_DTYPE_MISMATCH: _INVALID,
    abi.CODE_NOT_FOUND: (NotFound, "14 : NOT_FOUND"),
    abi.CODE_INVALID_MODEL: (InvalidProtobuf, "7 : INVALID_PROTOBUF"),
    abi.CODE_UNSUPPORTED_FORMAT: (InvalidProtobuf, "7 : INVALID_PROTOBUF"),
    abi.CODE_UNSUPPORTED_OPERATOR: (NotImplemented, "9 : NOT_IMPLEMENTED"),
    abi.CODE_VALIDATION: (InvalidGraph, "10 : INVALID_GRAPH"),
    abi.CODE_UNSUPPORTED: (NotImplemented, "9 : NOT_IMPLEMENTED"),
    abi.CODE_PROVIDER: (EPFail, "11 : EP_FAIL"),
    abi.CODE_PLUGIN: (EPFail, "11 : EP_FAIL"),
    abi.CODE_DEVICE_LOST: (EPFail, "11 : EP_FAIL"),
    abi.CODE_CANCELLED: _FAIL,
    abi.CODE_DEADLINE: _FAIL,
    abi.CODE_DATA_LOSS: _FAIL,
    abi.CODE_IO: _FAIL,
}
_OTHER = (RuntimeException, "6 : RUNTIME_EXCEPTION")


_made: Dict[Tuple[type, type], Any] = {}


def _joined(theirs: Type[PyFlameRTError], ours: Type[PyFlameRTError]) -> Type[PyFlameRTError]:
    """A class that is both, and reads as theirs."""
    if ours is PyFlameRTError:
        return theirs
    if (theirs, ours) not in _made:
        _made[theirs, ours] = type(theirs.__name__, (theirs, ours), {
            "__module__": _MODULE, "__doc__": theirs.__doc__,
            "__reduce__": lambda self: (_again, (theirs, ours, str(self), self.code, self.faults))})
    out: Type[PyFlameRTError] = _made[theirs, ours]
    return out


def _again(theirs: Type[PyFlameRTError], ours: Type[PyFlameRTError], message: str, code: int,
           faults: Sequence[PyFlameRTError]) -> PyFlameRTError:
    return _joined(theirs, ours)(message, code, faults)


def translate(fault: PyFlameRTError) -> PyFlameRTError:
    """ONNX Runtime's exception for one of pyflame_rt's."""
    if isinstance(fault, EXCEPTIONS):
        return fault
    theirs, words = _BY_CODE.get(fault.code, _OTHER)
    if isinstance(fault, ModelNotFoundError):
        theirs, words = NoSuchFile, "3 : NO_SUCHFILE"
    out = _joined(theirs, type(fault))(f"[ONNXRuntimeError] : {words} : {fault}", fault.code, fault.faults)
    out.__cause__ = fault.__cause__
    return out


def translating(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose errors are ONNX Runtime's."""
    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except PyFlameRTError as fault:
            out = translate(fault)
            if out is fault:
                raise
            raise out.with_traceback(fault.__traceback__) from out.__cause__
    return call


def translates(kind: _C) -> _C:
    """A class whose public methods, inherited ones too, raise ONNX Runtime's exceptions; ``run`` does so by itself."""
    for name in dir(kind):
        if (name.startswith("_") and name != "__init__") or name == "run":
            continue
        what = inspect.getattr_static(kind, name)
        if isinstance(what, (classmethod, staticmethod)):
            setattr(kind, name, type(what)(translating(what.__func__)))
        elif inspect.isfunction(what):
            setattr(kind, name, translating(what))
    return kind

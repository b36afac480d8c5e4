# SPDX-License-Identifier: Apache-2.0
"""The exceptions, and how the library's statuses become them.

They are those of the C++ API (error.hpp) by name, base and code; Python's own exceptions that fit are bases too.
"""
from __future__ import annotations

import builtins
from typing import List, Optional, Sequence

from . import _abi


class PyFlameRTError(Exception):
    """Base of all errors of this package.

    ``code`` is the library's number for the kind of error, ``faults`` lists the single faults where there are
    several (a graph that is invalid in more than one way).
    """

    code: int = _abi.CODE_INTERNAL

    def __init__(self, message: str = "", code: Optional[int] = None,
                 faults: Sequence["PyFlameRTError"] = ()) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        self.faults = list(faults)


class InputError(PyFlameRTError, ValueError):
    """A caller's mistake: inputs of a run that are missing, unknown or of a kind that is no tensor."""

    code = _abi.CODE_INPUT


class InvalidArgumentError(InputError):
    """An argument or option that the call does not take."""

    code = _abi.CODE_INVALID_ARGUMENT


class ShapeMismatchError(PyFlameRTError, ValueError):
    """A tensor of another shape than the model takes."""

    code = _abi.CODE_SHAPE_MISMATCH


class DTypeMismatchError(PyFlameRTError, TypeError):
    """A tensor of another element type than the model takes."""

    code = _abi.CODE_DTYPE_MISMATCH


class NotFoundError(PyFlameRTError, LookupError):
    """A provider, option, value or name that there is not."""

    code = _abi.CODE_NOT_FOUND


class ModelNotFoundError(NotFoundError, FileNotFoundError):
    """A model file that there is not."""


class InvalidModelError(PyFlameRTError, ValueError):
    """A model file that is malformed or cut short, or that changed while it was in use."""

    code = _abi.CODE_INVALID_MODEL


class UnsupportedFormatError(PyFlameRTError, ValueError):
    """A file of a format that no importer reads."""

    code = _abi.CODE_UNSUPPORTED_FORMAT


class UnsupportedOperatorError(PyFlameRTError, NotImplementedError):
    """An operator that no provider of the session runs."""

    code = _abi.CODE_UNSUPPORTED_OPERATOR


class ValidationError(PyFlameRTError, ValueError):
    """A graph that is not valid; ``faults`` has every fault."""

    code = _abi.CODE_VALIDATION

    @property
    def errors(self) -> List[str]:
        """A sentence for each fault."""
        return [str(fault) for fault in self.faults] or [str(self)]


class UnsupportedError(PyFlameRTError, NotImplementedError):
    """Something known that is not available here."""

    code = _abi.CODE_UNSUPPORTED


class BackendError(PyFlameRTError, RuntimeError):
    """A provider or its device failed, a plug-in was rejected, or a run was stopped."""

    code = _abi.CODE_PROVIDER


class CancelledError(BackendError):
    """Work that was cancelled."""

    code = _abi.CODE_CANCELLED


class TimeoutError(BackendError, builtins.TimeoutError):
    """A run that took longer than its ``timeout_ms``."""

    code = _abi.CODE_DEADLINE


class OutOfMemoryError(PyFlameRTError, MemoryError):
    """Memory that could not be had."""

    code = _abi.CODE_OUT_OF_MEMORY


class BusyError(PyFlameRTError):
    """Something is in use by a run, or as many runs wait as may: later it will do."""

    code = _abi.CODE_BUSY


class DataError(PyFlameRTError, OSError):
    """A file that could not be read or written."""

    code = _abi.CODE_IO


_BY_CODE = {
    _abi.CODE_INVALID_ARGUMENT: InvalidArgumentError,
    _abi.CODE_INPUT: InputError,
    _abi.CODE_SHAPE_MISMATCH: ShapeMismatchError,
    _abi.CODE_DTYPE_MISMATCH: DTypeMismatchError,
    _abi.CODE_NOT_FOUND: NotFoundError,
    _abi.CODE_INVALID_MODEL: InvalidModelError,
    _abi.CODE_UNSUPPORTED_FORMAT: UnsupportedFormatError,
    _abi.CODE_UNSUPPORTED_OPERATOR: UnsupportedOperatorError,
    _abi.CODE_VALIDATION: ValidationError,
    _abi.CODE_UNSUPPORTED: UnsupportedError,
    _abi.CODE_PROVIDER: BackendError,
    _abi.CODE_PLUGIN: BackendError,
    _abi.CODE_CANCELLED: CancelledError,
    _abi.CODE_DEADLINE: TimeoutError,
    _abi.CODE_OUT_OF_MEMORY: OutOfMemoryError,
    _abi.CODE_DATA_LOSS: InvalidModelError,
    _abi.CODE_DEVICE_LOST: BackendError,
    _abi.CODE_IO: DataError,
    _abi.CODE_BUSY: BusyError,
}


def error_of(code: int, message: str, faults: Sequence[PyFlameRTError] = ()) -> PyFlameRTError:
    """The exception for a code of the library."""
    return _BY_CODE.get(code, PyFlameRTError)(message, code, faults)

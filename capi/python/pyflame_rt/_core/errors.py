# SPDX-License-Identifier: Apache-2.0
"""The exceptions, and how the library's statuses become them.

They are those of the C++ API (error.hpp) by name, base and code; Python's own exceptions that fit are bases too.
"""
from __future__ import annotations

import builtins
from typing import List, Optional, Sequence

from . import abi


class PyFlameRTError(Exception):
    """Base of all errors of this package.

    ``code`` is the library's number for the kind of error, ``faults`` lists the single faults where there are
    several (a graph that is invalid in more than one way).
    """

    code: int = abi.CODE_INTERNAL

    def __init__(self, message: str = "", code: Optional[int] = None,
                 faults: Sequence["PyFlameRTError"] = ()) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        self.faults = list(faults)


class InputError(PyFlameRTError, ValueError):
    """A caller's mistake: inputs of a run that are missing, unknown or of a kind that is no tensor."""

    code = abi.CODE_INPUT


class InvalidArgumentError(InputError):
    """An argument or option that the call does not take."""

    code = abi.CODE_INVALID_ARGUMENT


class ShapeMismatchError(PyFlameRTError, ValueError):
    """A tensor of another shape than the model takes."""

    code = abi.CODE_SHAPE_MISMATCH


class DTypeMismatchError(PyFlameRTError, TypeError):
    """A tensor of another element type than the model takes."""

    code = abi.CODE_DTYPE_MISMATCH


class NotFoundError(PyFlameRTError, LookupError):
    """A provider, option, value or name that there is not."""

    code = abi.CODE_NOT_FOUND


class ModelNotFoundError(NotFoundError, FileNotFoundError):
    """A model file that there is not."""


class InvalidModelError(PyFlameRTError, ValueError):
    """A model file that is malformed or cut short, or that changed while it was in use."""

    code = abi.CODE_INVALID_MODEL


class UnsupportedFormatError(PyFlameRTError, ValueError):
    """A file of a format that no importer reads."""

    code = abi.CODE_UNSUPPORTED_FORMAT


class UnsupportedOperatorError(PyFlameRTError, NotImplementedError):
    """An operator that no provider of the session runs."""

    code = abi.CODE_UNSUPPORTED_OPERATOR


class ValidationError(PyFlameRTError, ValueError):
    """A graph that is not valid; ``faults`` has every fault."""

    code = abi.CODE_VALIDATION

    @property
    def errors(self) -> List[str]:
        """A sentence for each fault."""
        return [str(fault) for fault in self.faults] or [str(self)]


class UnsupportedError(PyFlameRTError, NotImplementedError):
    """Something known that is not available here."""

    code = abi.CODE_UNSUPPORTED


class BackendError(PyFlameRTError, RuntimeError):
    """A provider or its device failed, a plug-in was rejected, or a run was stopped."""

    code = abi.CODE_PROVIDER


class CancelledError(BackendError):
    """Work that was cancelled."""

    code = abi.CODE_CANCELLED


class TimeoutError(BackendError, builtins.TimeoutError):
    """A run that took longer than its ``timeout_ms``."""

    code = abi.CODE_DEADLINE


class OutOfMemoryError(PyFlameRTError, MemoryError):
    """Memory that could not be had."""

    code = abi.CODE_OUT_OF_MEMORY


class BusyError(PyFlameRTError):
    """Something is in use by a run, or as many runs wait as may: later it will do."""

    code = abi.CODE_BUSY


class DataError(PyFlameRTError, OSError):
    """A file that could not be read or written."""

    code = abi.CODE_IO


_BY_CODE = {
    abi.CODE_INVALID_ARGUMENT: InvalidArgumentError,
    abi.CODE_INPUT: InputError,
    abi.CODE_SHAPE_MISMATCH: ShapeMismatchError,
    abi.CODE_DTYPE_MISMATCH: DTypeMismatchError,
    abi.CODE_NOT_FOUND: NotFoundError,
    abi.CODE_INVALID_MODEL: InvalidModelError,
    abi.CODE_UNSUPPORTED_FORMAT: UnsupportedFormatError,
    abi.CODE_UNSUPPORTED_OPERATOR: UnsupportedOperatorError,
    abi.CODE_VALIDATION: ValidationError,
    abi.CODE_UNSUPPORTED: UnsupportedError,
    abi.CODE_PROVIDER: BackendError,
    abi.CODE_PLUGIN: BackendError,
    abi.CODE_CANCELLED: CancelledError,
    abi.CODE_DEADLINE: TimeoutError,
    abi.CODE_OUT_OF_MEMORY: OutOfMemoryError,
    abi.CODE_DATA_LOSS: InvalidModelError,
    abi.CODE_DEVICE_LOST: BackendError,
    abi.CODE_IO: DataError,
    abi.CODE_BUSY: BusyError,
}


def error_of(code: int, message: str, faults: Sequence[PyFlameRTError] = ()) -> PyFlameRTError:
    """The exception for a code of the library."""
    return _BY_CODE.get(code, PyFlameRTError)(message, code, faults)

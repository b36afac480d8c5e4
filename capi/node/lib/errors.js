// SPDX-License-Identifier: Apache-2.0
// The library's status codes (types.h) and the exceptions they become, named as in the C++ and Python APIs.
'use strict';

const CODES = ['OK', 'INVALID_ARGUMENT', 'INPUT', 'SHAPE_MISMATCH', 'DTYPE_MISMATCH', 'NOT_FOUND', 'INVALID_MODEL',
               'UNSUPPORTED_FORMAT', 'UNSUPPORTED_OPERATOR', 'VALIDATION', 'UNSUPPORTED', 'PROVIDER', 'PLUGIN',
               'CANCELLED', 'DEADLINE', 'OUT_OF_MEMORY', 'DATA_LOSS', 'DEVICE_LOST', 'IO', 'INTERNAL', 'BUSY'];

class PyFlameRTError extends Error {
  // |code| is a word of CODES; |faults| are the messages of single faults where there are several.
  constructor(message, code = 'INTERNAL', faults = []) {
    super(message);
    this.name = new.target.name;
    this.code = code;
    this.faults = faults;
  }
}
class InputError extends PyFlameRTError {}
class ShapeMismatchError extends PyFlameRTError {}
class DTypeMismatchError extends PyFlameRTError {}
class InvalidModelError extends PyFlameRTError {}
class UnsupportedFormatError extends PyFlameRTError {}
class UnsupportedOperatorError extends PyFlameRTError {}
class ValidationError extends PyFlameRTError {}
class BackendError extends PyFlameRTError {}

const CLASSES = {
  INVALID_ARGUMENT: InputError,
  INPUT: InputError,
  SHAPE_MISMATCH: ShapeMismatchError,
  DTYPE_MISMATCH: DTypeMismatchError,
  INVALID_MODEL: InvalidModelError,
  DATA_LOSS: InvalidModelError,
  UNSUPPORTED_FORMAT: UnsupportedFormatError,
  UNSUPPORTED_OPERATOR: UnsupportedOperatorError,
  VALIDATION: ValidationError,
  PROVIDER: BackendError,
  DEVICE_LOST: BackendError,
  CANCELLED: BackendError,
  DEADLINE: BackendError,
};

// The exception for a code, given as the ABI's number or as a word.
function makeError(code, message, faults) {
  const word = typeof code === 'number' ? (CODES[code] ?? 'INTERNAL') : code;
  return new (CLASSES[word] ?? PyFlameRTError)(message, word, faults);
}

module.exports = {
  CODES, makeError, PyFlameRTError, InputError, ShapeMismatchError, DTypeMismatchError, InvalidModelError,
  UnsupportedFormatError, UnsupportedOperatorError, ValidationError, BackendError,
};

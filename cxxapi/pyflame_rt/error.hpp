// SPDX-License-Identifier: Apache-2.0
//
// The exception types of the C++ API, which are those of the Python package by name, base and code.
// Every failure of the runtime becomes one of them; code() is the C code it came from. Exceptions
// own their text and may cross threads.
#pragma once

#include <pyflame_rt/types.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace pyflame_rt {

// Base of all exceptions of the API. what() says what was attempted, on what, what was found and
// the nearest fix.
class PyFlameRTError : public std::runtime_error {
 public:
  explicit PyFlameRTError(const std::string& message, pfrt_code code = PFRT_CODE_INTERNAL)
      : std::runtime_error(message), code_(code) {}
  // The C code of the failure, finer than the exception's type.
  pfrt_code code() const noexcept { return code_; }

 private:
  pfrt_code code_;
};

// A model file that is malformed, truncated or changed while it was read.
class InvalidModelError : public PyFlameRTError {
 public:
  explicit InvalidModelError(const std::string& message, pfrt_code code = PFRT_CODE_INVALID_MODEL)
      : PyFlameRTError(message, code) {}
};

// A file in a format that no importer reads.
class UnsupportedFormatError : public PyFlameRTError {
 public:
  explicit UnsupportedFormatError(const std::string& message,
                                  pfrt_code code = PFRT_CODE_UNSUPPORTED_FORMAT)
      : PyFlameRTError(message, code) {}
};

// A node that no provider runs.
class UnsupportedOperatorError : public PyFlameRTError {
 public:
  explicit UnsupportedOperatorError(const std::string& message,
                                    pfrt_code code = PFRT_CODE_UNSUPPORTED_OPERATOR)
      : PyFlameRTError(message, code) {}
};

// A tensor whose shape is not the one that is needed.
class ShapeMismatchError : public PyFlameRTError {
 public:
  explicit ShapeMismatchError(const std::string& message, pfrt_code code = PFRT_CODE_SHAPE_MISMATCH)
      : PyFlameRTError(message, code) {}
};

// A tensor whose element type is not the one that is needed.
class DTypeMismatchError : public PyFlameRTError {
 public:
  explicit DTypeMismatchError(const std::string& message, pfrt_code code = PFRT_CODE_DTYPE_MISMATCH)
      : PyFlameRTError(message, code) {}
};

// A graph that is not well formed; errors() has a sentence for each fault.
class ValidationError : public PyFlameRTError {
 public:
  explicit ValidationError(const std::string& message, std::vector<std::string> errors = {},
                           pfrt_code code = PFRT_CODE_VALIDATION)
      : PyFlameRTError(message, code), errors_(std::move(errors)) {}
  // A sentence for each fault.
  const std::vector<std::string>& errors() const noexcept { return errors_; }

 private:
  std::vector<std::string> errors_;
};

// A failed provider, a lost device, a rejected plug-in, or a run that was stopped.
class BackendError : public PyFlameRTError {
 public:
  explicit BackendError(const std::string& message, pfrt_code code = PFRT_CODE_PROVIDER)
      : PyFlameRTError(message, code) {}
};

// A caller's mistake: a missing or unknown input.
class InputError : public PyFlameRTError {
 public:
  explicit InputError(const std::string& message, pfrt_code code = PFRT_CODE_INPUT)
      : PyFlameRTError(message, code) {}
};

// An argument or an option that the call does not take.
class InvalidArgumentError : public InputError {
 public:
  explicit InvalidArgumentError(const std::string& message,
                                pfrt_code code = PFRT_CODE_INVALID_ARGUMENT)
      : InputError(message, code) {}
};

// Work that was cancelled.
class CancelledError : public BackendError {
 public:
  explicit CancelledError(const std::string& message, pfrt_code code = PFRT_CODE_CANCELLED)
      : BackendError(message, code) {}
};

// A run that took longer than its timeout.
class TimeoutError : public BackendError {
 public:
  explicit TimeoutError(const std::string& message, pfrt_code code = PFRT_CODE_DEADLINE)
      : BackendError(message, code) {}
};

// An unknown provider, option, value or name.
class NotFoundError : public PyFlameRTError {
 public:
  explicit NotFoundError(const std::string& message, pfrt_code code = PFRT_CODE_NOT_FOUND)
      : PyFlameRTError(message, code) {}
};

// A model file that does not exist.
class ModelNotFoundError : public NotFoundError {
 public:
  explicit ModelNotFoundError(const std::string& message, pfrt_code code = PFRT_CODE_NOT_FOUND)
      : NotFoundError(message, code) {}
};

// Something known that is not available here.
class UnsupportedError : public PyFlameRTError {
 public:
  explicit UnsupportedError(const std::string& message, pfrt_code code = PFRT_CODE_UNSUPPORTED)
      : PyFlameRTError(message, code) {}
};

// Memory that could not be allocated.
class OutOfMemoryError : public PyFlameRTError {
 public:
  explicit OutOfMemoryError(const std::string& message, pfrt_code code = PFRT_CODE_OUT_OF_MEMORY)
      : PyFlameRTError(message, code) {}
};

// A file that could not be read or written.
class DataError : public PyFlameRTError {
 public:
  explicit DataError(const std::string& message, pfrt_code code = PFRT_CODE_IO)
      : PyFlameRTError(message, code) {}
};

// An object that a run uses, or a full queue of runs. A later call may succeed.
class BusyError : public PyFlameRTError {
 public:
  explicit BusyError(const std::string& message, pfrt_code code = PFRT_CODE_BUSY)
      : PyFlameRTError(message, code) {}
};

namespace detail {

// Throws the exception type of a code. Codes without a type of their own become the base class.
[[noreturn]] inline void throw_error(pfrt_code code, const std::string& message,
                                     std::vector<std::string> faults = {}) {
  switch (code) {
    case PFRT_CODE_INVALID_ARGUMENT:
      throw InvalidArgumentError(message, code);
    case PFRT_CODE_INPUT:
      throw InputError(message, code);
    case PFRT_CODE_SHAPE_MISMATCH:
      throw ShapeMismatchError(message, code);
    case PFRT_CODE_DTYPE_MISMATCH:
      throw DTypeMismatchError(message, code);
    case PFRT_CODE_NOT_FOUND:
      throw NotFoundError(message, code);
    case PFRT_CODE_INVALID_MODEL:
    case PFRT_CODE_DATA_LOSS:
      throw InvalidModelError(message, code);
    case PFRT_CODE_UNSUPPORTED_FORMAT:
      throw UnsupportedFormatError(message, code);
    case PFRT_CODE_UNSUPPORTED_OPERATOR:
      throw UnsupportedOperatorError(message, code);
    case PFRT_CODE_UNSUPPORTED:
      throw UnsupportedError(message, code);
    case PFRT_CODE_VALIDATION:
      if (faults.empty()) faults.push_back(message);
      throw ValidationError(message, std::move(faults), code);
    case PFRT_CODE_PROVIDER:
    case PFRT_CODE_PLUGIN:
    case PFRT_CODE_DEVICE_LOST:
      throw BackendError(message, code);
    case PFRT_CODE_CANCELLED:
      throw CancelledError(message, code);
    case PFRT_CODE_DEADLINE:
      throw TimeoutError(message, code);
    case PFRT_CODE_OUT_OF_MEMORY:
      throw OutOfMemoryError(message, code);
    case PFRT_CODE_IO:
      throw DataError(message, code);
    case PFRT_CODE_BUSY:
      throw BusyError(message, code);
    default:
      throw PyFlameRTError(message, code);
  }
}

}  // namespace detail
}  // namespace pyflame_rt

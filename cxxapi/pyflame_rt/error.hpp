// SPDX-License-Identifier: Apache-2.0
//
// The exception types of the C++ API. Every failure of the runtime becomes one of them; code() is
// the C code it came from. Exceptions own their text and may cross threads.
#pragma once

#include <pyflame_rt/types.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace pyflame_rt {

class PyFlameRTError : public std::runtime_error {
 public:
  explicit PyFlameRTError(const std::string& message, pfrt_code code = PFRT_CODE_INTERNAL)
      : std::runtime_error(message), code_(code) {}
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

class UnsupportedFormatError : public PyFlameRTError {
 public:
  explicit UnsupportedFormatError(const std::string& message,
                                  pfrt_code code = PFRT_CODE_UNSUPPORTED_FORMAT)
      : PyFlameRTError(message, code) {}
};

class UnsupportedOperatorError : public PyFlameRTError {
 public:
  explicit UnsupportedOperatorError(const std::string& message,
                                    pfrt_code code = PFRT_CODE_UNSUPPORTED_OPERATOR)
      : PyFlameRTError(message, code) {}
};

class ShapeMismatchError : public PyFlameRTError {
 public:
  explicit ShapeMismatchError(const std::string& message, pfrt_code code = PFRT_CODE_SHAPE_MISMATCH)
      : PyFlameRTError(message, code) {}
};

class DTypeMismatchError : public PyFlameRTError {
 public:
  explicit DTypeMismatchError(const std::string& message, pfrt_code code = PFRT_CODE_DTYPE_MISMATCH)
      : PyFlameRTError(message, code) {}
};

// A graph that is not well formed; errors() has one sentence a fault.
class ValidationError : public PyFlameRTError {
 public:
  explicit ValidationError(const std::string& message, std::vector<std::string> errors = {},
                           pfrt_code code = PFRT_CODE_VALIDATION)
      : PyFlameRTError(message, code), errors_(std::move(errors)) {}
  const std::vector<std::string>& errors() const noexcept { return errors_; }

 private:
  std::vector<std::string> errors_;
};

// A provider that failed, a lost device, a cancelled run or one past its deadline.
class BackendError : public PyFlameRTError {
 public:
  explicit BackendError(const std::string& message, pfrt_code code = PFRT_CODE_PROVIDER)
      : PyFlameRTError(message, code) {}
};

// A caller's mistake: a missing or unknown input, an argument or an option that makes no sense.
class InputError : public PyFlameRTError {
 public:
  explicit InputError(const std::string& message, pfrt_code code = PFRT_CODE_INPUT)
      : PyFlameRTError(message, code) {}
};

namespace detail {

// The one place where codes become types. Codes without a type of their own are the base class.
[[noreturn]] inline void throw_error(pfrt_code code, const std::string& message,
                                     std::vector<std::string> faults = {}) {
  switch (code) {
    case PFRT_CODE_INVALID_ARGUMENT:
    case PFRT_CODE_INPUT:
      throw InputError(message, code);
    case PFRT_CODE_SHAPE_MISMATCH:
      throw ShapeMismatchError(message, code);
    case PFRT_CODE_DTYPE_MISMATCH:
      throw DTypeMismatchError(message, code);
    case PFRT_CODE_INVALID_MODEL:
    case PFRT_CODE_DATA_LOSS:
      throw InvalidModelError(message, code);
    case PFRT_CODE_UNSUPPORTED_FORMAT:
      throw UnsupportedFormatError(message, code);
    case PFRT_CODE_UNSUPPORTED_OPERATOR:
      throw UnsupportedOperatorError(message, code);
    case PFRT_CODE_VALIDATION:
      if (faults.empty()) faults.push_back(message);
      throw ValidationError(message, std::move(faults), code);
    case PFRT_CODE_PROVIDER:
    case PFRT_CODE_DEVICE_LOST:
    case PFRT_CODE_CANCELLED:
    case PFRT_CODE_DEADLINE:
      throw BackendError(message, code);
    default:
      throw PyFlameRTError(message, code);
  }
}

}  // namespace detail
}  // namespace pyflame_rt

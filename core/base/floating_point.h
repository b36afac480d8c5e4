// SPDX-License-Identifier: Apache-2.0
//
// The floating-point environment of a call: round to nearest, exceptions masked, denormals as they
// are, whatever the caller has set. The caller's own, flags included, returns at the end. SSE's
// alone: nothing here computes with x87. Belongs to one thread.
#pragma once

#include <xmmintrin.h>

namespace pfrt {

class FloatingPointScope {
 public:
  FloatingPointScope() : saved_(_mm_getcsr()) {
    if (saved_ != kDefault) _mm_setcsr(kDefault);
  }
  ~FloatingPointScope() {
    if (_mm_getcsr() != saved_) _mm_setcsr(saved_);
  }
  FloatingPointScope(const FloatingPointScope&) = delete;
  FloatingPointScope& operator=(const FloatingPointScope&) = delete;

 private:
  static constexpr unsigned kDefault = 0x1f80;
  const unsigned saved_;
};

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// Sets the floating-point environment of a call: round to nearest, exceptions masked, denormals
// kept unless |control| says otherwise, whatever the caller has set. The caller's own, flags
// included, returns at the end. Belongs to one thread.
#pragma once

#include "core/base/os/cpu_control.h"

namespace pfrt {

class FloatingPointScope {
 public:
  explicit FloatingPointScope(os::FpControl control = os::kDefaultFpControl)
      : saved_(os::fp_control()) {
    if (saved_ != control) os::set_fp_control(control);
  }
  ~FloatingPointScope() {
    if (os::fp_control() != saved_) os::set_fp_control(saved_);
  }
  FloatingPointScope(const FloatingPointScope&) = delete;
  FloatingPointScope& operator=(const FloatingPointScope&) = delete;

 private:
  const os::FpControl saved_;
};

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// What commands and the readers of their input throw when they cannot begin.
#pragma once

#include <stdexcept>

namespace cli {

// Something in the command line or the input that makes the command impossible: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace cli

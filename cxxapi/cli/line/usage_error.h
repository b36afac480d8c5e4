// SPDX-License-Identifier: Apache-2.0
//
// The exception of commands, and of the readers of their input, that cannot begin.
#pragma once

#include <stdexcept>

namespace cli {

// A fault in the command line or the input that makes the command impossible: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace cli

// SPDX-License-Identifier: Apache-2.0
//
// Samples of a model's inputs that are read one by one, so that they need not be in memory at once.
// Used by one thread.
#pragma once

#include <optional>

#include "core/model/ports.h"

namespace pfrt {

class SampleSource {
 public:
  virtual ~SampleSource() = default;
  // Lets next() begin with the first sample; called before each reading.
  virtual Status rewind() = 0;
  // The next sample; nothing where there are no more.
  virtual Result<std::optional<NamedValues>> next() = 0;
};

}  // namespace pfrt

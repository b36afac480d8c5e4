// SPDX-License-Identifier: Apache-2.0
//
// Keeps what an operator of the host prepares from a node's attributes, such as a table of words.
// The first run that needs it makes it, for all runs of the node. Thread-safe.
#pragma once

#include <memory>

#include "core/base/made_once.h"
#include "core/exec/run/control.h"

namespace pfrt::host {

class Prepared {
 public:
  // |make| gives a Result<std::shared_ptr<const T>>, the same type and contents each time. A run
  // that is stopped meanwhile, or fails, leaves nothing.
  template <typename T, typename Make>
  Result<std::shared_ptr<const T>> get(const RunControl& control, Make make) {
    const auto made_here = [&]() -> Result<std::shared_ptr<const void>> {
      PFRT_ASSIGN(std::shared_ptr<const void> made, make());
      return made;
    };
    const auto stopped = [&] { return control.stopped(); };
    PFRT_ASSIGN(const auto kept, made_.get(0, stopped, made_here));
    return std::static_pointer_cast<const T>(kept);
  }

 private:
  MadeOnce<int, std::shared_ptr<const void>> made_{1};
};

}  // namespace pfrt::host

// SPDX-License-Identifier: Apache-2.0
//
// Many cases in a process of their own, which goes on with the next case in another one when a
// signal ends it. To be called before the calling process has threads.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace pfrt_empty {

struct Fault {
  size_t index;
  std::string text;
};

// Calls fn(i) for every i < |count|, which returns what is wrong or nothing. A case that takes
// |seconds| is ended.
std::vector<Fault> run_isolated(size_t count, unsigned seconds,
                                const std::function<std::string(size_t)>& fn);

}  // namespace pfrt_empty

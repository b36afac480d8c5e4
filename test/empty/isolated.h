// SPDX-License-Identifier: Apache-2.0
//
// Runs many cases in a child process; when a signal ends it, another child goes on with the next
// case. To be called before the calling process has threads.
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

// Calls fn(i) for every i < |count|; it returns a description of the fault, or nothing. A case that
// takes |seconds| is ended.
std::vector<Fault> run_isolated(size_t count, unsigned seconds,
                                const std::function<std::string(size_t)>& fn);

}  // namespace pfrt_empty

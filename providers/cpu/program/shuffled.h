// SPDX-License-Identifier: Apache-2.0
//
// Shuffles of channels that a kernel undoes as it reads: Reshape to [batch, groups, channels of a
// group, ...], Transpose of those two, Reshape back, and then one node alone, whose row takes its
// image so (KernelRequest::shuffle_groups). Pure; thread-safe.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "providers/cpu/compile/executable.h"

namespace pfrt::cpu {

struct Shuffles {
  std::unordered_map<uint32_t, int64_t> groups;  // by the node that reads
  std::unordered_set<uint32_t> transposes;       // nodes that do nothing then
};

Shuffles find_shuffles(const Executable& executable, const pfrt_shapes& shapes);

}  // namespace pfrt::cpu

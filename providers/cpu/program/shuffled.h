// SPDX-License-Identifier: Apache-2.0
//
// Shuffles of channels that a kernel does as it reads. A shuffle is a Reshape to [batch, groups,
// channels of a group, ...], a Transpose of groups and channels, and a Reshape back. One node alone
// reads the result, and its row takes the image unshuffled (KernelRequest::shuffle_groups). Pure;
// thread-safe.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "providers/cpu/compile/executable.h"

namespace pfrt::cpu {

struct Shuffles {
  std::unordered_map<uint32_t, int64_t> groups;  // by the node that reads
  std::unordered_set<uint32_t> transposes;       // nodes that need no step then
};

Shuffles find_shuffles(const Executable& executable, const pfrt_shapes& shapes);

}  // namespace pfrt::cpu

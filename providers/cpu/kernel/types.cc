// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernel/types.h"

#include <bit>

#include "core/base/dtype.h"

namespace pfrt::cpu {

std::string Types::text() const {
  constexpr size_t kTypicalName = 8;
  std::string out;
  out.reserve(kTypicalName * static_cast<size_t>(std::popcount(bits_)));
  for (pfrt_dtype d = 0; d < 64; ++d) {
    if (!has(d)) continue;
    if (!out.empty()) out += ' ';
    out += dtype_name(d);
  }
  return out;
}

size_t stored_size(pfrt_dtype dtype) { return kSubByte.has(dtype) ? size_t{1} : dtype_size(dtype); }

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
//
// A packed form may keep the constant as it was, for results that the packed form cannot give: so
// the constant itself need not be in memory. It is on pages of its own behind the packed form,
// which take no memory while nobody reads them from a cache's file.
#pragma once

#include <cstdint>

#include "providers/cpu/elements/ceil_div.h"

namespace pfrt::cpu {

// Offset in bytes at which the constant begins behind |packed| bytes.
constexpr int64_t source_behind(int64_t packed) {
  constexpr int64_t kPage = 4096;
  return ceil_div(packed, kPage) * kPage;
}
// Bytes of the packed form and the constant together, in whole cache lines.
constexpr uint64_t bytes_with_source(int64_t packed, int64_t source) {
  return static_cast<uint64_t>(source_behind(packed) + ceil_div(source, 64) * 64);
}

}  // namespace pfrt::cpu

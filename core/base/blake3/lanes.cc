// SPDX-License-Identifier: Apache-2.0
#include "core/base/blake3/lanes.h"

#include <bit>
#include <cstring>

namespace pfrt::blake3 {
namespace {

// Word of the block that each round takes at each place.
constexpr unsigned char kSchedule[7][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                            {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8},
                                            {3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1},
                                            {10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6},
                                            {12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4},
                                            {9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7},
                                            {11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13}};

using Quad [[gnu::vector_size(16)]] = uint32_t;
using Octet [[gnu::vector_size(32)]] = uint32_t;

namespace four {
#define PFRT_LANES 4
#include "core/base/blake3/lanes.inc"
#undef PFRT_LANES
}  // namespace four

#ifdef __x86_64__

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
namespace eight {
#define PFRT_LANES 8
#include "core/base/blake3/lanes.inc"
#undef PFRT_LANES
}  // namespace eight
#ifdef __clang__
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl")
#endif
namespace sixteen {
#define PFRT_LANES 16
#include "core/base/blake3/lanes.inc"
#undef PFRT_LANES
}  // namespace sixteen
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif

constexpr Lanes kFour{four::kLanes, four::compress};
#ifdef __x86_64__
constexpr Lanes kEight{eight::kLanes, eight::compress};
constexpr Lanes kSixteen{sixteen::kLanes, sixteen::compress};
#endif

}  // namespace

const Lanes& lanes([[maybe_unused]] size_t most) {
#ifdef __x86_64__
  if (most >= 16 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
    return kSixteen;
  if (most >= 8 && __builtin_cpu_supports("avx2")) return kEight;
#endif
  return kFour;
}

}  // namespace pfrt::blake3

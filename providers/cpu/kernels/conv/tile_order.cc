// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/tile_order.h"

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/jit/dot_tile_microkernel.h"

namespace pfrt::cpu {

ChunkOrder tile_order(int64_t channels, int64_t taps_y, int64_t taps_x, int64_t dilation_x) {
  constexpr int64_t kPiece = 16, kMostLine = 64;
  if (channels < kPiece) return ChunkOrder::of(channels, taps_y, taps_x, dilation_x);
  const int64_t blocks = ceil_div(channels, kMostLine);
  const int64_t line = ceil_div(ceil_div(channels, blocks), kPiece) * kPiece;
  if (blocks > 1) return {channels, taps_y, taps_x, false, line};
  return {line, taps_y, taps_x, dilation_x == 1 || taps_x == 1, line};
}

TileParts TileParts::of(int64_t steps) {
  const int64_t parts = ceil_div(steps, DotTileMicrokernel::kMostSteps);
  return {parts, ceil_div(steps, parts)};
}

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
//
// Sums of a convolution of bytes on tiles. Positions that are neighbours in the band are rows of
// tiles, in tiles of about equal height, so that few shapes are set up; two tiles are multiplied
// together, of one row of positions or of two. k is done in passes: the weights of one stay in the
// first-level cache.
#include <algorithm>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/kernels/conv/dot_plan.h"
#include "providers/cpu/kernels/conv/tile_order.h"
#include "providers/cpu/kernels/matmul/dot_tiles.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kSide = DotTileMicrokernel::kSide;
constexpr int64_t kPassParts = 16;  // products of tiles of k in a pass
constexpr int64_t kStepBytes = 64;  // of a panel

struct RowTile {
  int64_t rows;
  const uint8_t* a;
  int32_t* c;
  const int32_t* start;  // of positions
};

}  // namespace

void DotConvPlan::sums_on_tiles(const uint8_t* pixels, const void* packed, int64_t group,
                                int64_t panel, int64_t panels, int64_t begin, int64_t end,
                                const Start& start, int32_t* out, int64_t out_panel) const {
  constexpr int64_t kMostPanels = DotTileMicrokernel::kMostPanels / 2;
  const TileParts parts = TileParts::of(weights.microkernel->steps(weights.order().depth()));
  const auto chunks = static_cast<int64_t>(offsets.size());
  const int64_t passes = ceil_div(chunks, std::max<int64_t>(kPassParts / parts.parts, 1));
  const int64_t pass = ceil_div(chunks, passes), across = this->across();
  DotTileMicrokernel::Scope scope;
  DotTileMicrokernel::Blocks p{};
  p.a_row = step_bytes;
  p.parts = parts.parts, p.depth = parts.depth;
  p.b_panel = weights.panel_bytes();
  p.c_row = kPanel, p.c_panel = out_panel;
  p.start_panel = kPanel;
  for (int64_t q = 0; q < panels; q += kMostPanels)
    for (int64_t chunk = 0; chunk < chunks; chunk += pass) {
      p.offsets = offsets.data() + chunk;
      p.chunks = std::min(pass, chunks - chunk);
      p.b = weights.panel(packed, group, panel + q) + chunk * parts.steps() * kStepBytes;
      p.ahead = p.b;
      const bool begins = chunk == 0, by_position = start.positions != nullptr;
      const int32_t* const channels = start.channels + q * kPanel;
      p.start = begins && !by_position ? channels : nullptr;
      const auto begin_sums = [&](const RowTile& tile) {
        if (begins && by_position)
          begin_tile_sums(channels, tile.start, tile.rows, std::min(kMostPanels, panels - q),
                          kPanel, out_panel, tile.c);
      };
      const auto multiply = [&](const RowTile& first, const RowTile& second) {
        p.a = first.a, p.c = first.c;
        p.a_tile = second.rows > 0 ? second.a - first.a : 0;
        p.c_tile = second.rows > 0 ? second.c - first.c : 0;
        begin_sums(first);
        begin_sums(second);
        tiles->run(scope, first.rows, second.rows, std::min(kMostPanels, panels - q), x_signed, p);
      };
      RowTile waiting{};
      int32_t* to = out + q * out_panel;
      int64_t y = begin / across, x = begin % across;
      for (int64_t left = end - begin, n; left > 0; left -= n, ++y, x = 0) {
        n = std::min(across - x, left);
        const int64_t each = ceil_div(n, ceil_div(n, kSide));
        for (int64_t i = 0; i < n; i += each) {
          const RowTile tile{std::min(each, n - i), pixels + y * row_bytes + (x + i) * step_bytes,
                             to + i * kPanel,
                             by_position ? start.positions + (end - left) + i : nullptr};
          if (waiting.rows > 0) multiply(waiting, tile);
          waiting = waiting.rows > 0 ? RowTile{} : tile;
        }
        to += n * kPanel;
      }
      if (waiting.rows > 0) multiply(waiting, {});
    }
}

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/dot_tiles.h"

#include <algorithm>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/isa/target.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kSide = DotTileMicrokernel::kSide, kMostSteps = DotTileMicrokernel::kMostSteps;
constexpr int64_t kStepBytes = 64;  // of a panel
// A panel's part of so many products of tiles; those of two panels stay in the first-level cache
// while all rows are multiplied by them.
constexpr int64_t kPassParts = 16;

// Steps [first, first + parts * depth) of k.
struct Pass {
  int64_t first, parts, depth;

  int64_t bytes() const { return parts * depth * kStepBytes; }  // of a panel
};

// Passes of products of equal depth, and a last one of what is left.
class Passes {
 public:
  explicit Passes(int64_t steps) : steps_(steps) {
    const int64_t parts = ceil_div(steps, kMostSteps);
    const bool even = steps % parts == 0;
    depth_ = even ? steps / parts : kMostSteps;
    parts_ = even ? parts : parts - 1;
    pass_parts_ = ceil_div(parts_, ceil_div(parts_, kPassParts));
  }
  Pass first() const { return at(0); }
  bool last(const Pass& pass) const { return pass.first + pass.parts * pass.depth == steps_; }
  Pass after(const Pass& pass) const { return at(pass.first / depth_ + pass.parts); }

 private:
  Pass at(int64_t part) const {
    if (part == parts_) return {part * depth_, 1, steps_ - part * depth_};
    return {part * depth_, std::min(pass_parts_, parts_ - part), depth_};
  }
  int64_t steps_, depth_, parts_, pass_parts_;
};

// Memory that is fetched into the second-level cache: |bytes| of each of |panels| panels.
class Ahead {
 public:
  Ahead(const char* from, int64_t panels, int64_t panel_bytes, int64_t bytes)
      : from_(from), panels_(from == nullptr ? 0 : panels), apart_(panel_bytes), bytes_(bytes) {}

  // Sets what the next product fetches, up to |most| bytes.
  void take(int64_t most, DotTileMicrokernel::Blocks& blocks) {
    blocks.ahead = from_ + fetched_;
    blocks.ahead_step = panels_ > 0 ? kStepBytes : 0;
    fetched_ += most;
    if (fetched_ < bytes_ || panels_ == 0) return;
    fetched_ = 0;
    from_ += apart_;
    --panels_;
  }

 private:
  const char* from_;
  int64_t panels_, apart_, bytes_, fetched_ = 0;
};

}  // namespace

PFRT_AVX2 void begin_tile_sums(const int32_t* start, const int32_t* row_start, int64_t rows,
                               int64_t panels, int64_t stride, int64_t panel_stride,
                               int32_t* sums) {
  for (int64_t p = 0; p < panels; ++p)
    for (int64_t r = 0; r < rows; ++r) {
      const auto row = static_cast<uint32_t>(row_start[r]);
      int32_t* const to = sums + r * stride + p * panel_stride;
      for (int64_t j = 0; j < kSide; ++j)
        to[j] = static_cast<int32_t>(row + static_cast<uint32_t>(start[p * kSide + j]));
    }
}

void multiply_tiles(const DotTileMicrokernel& microkernel, DotTileMicrokernel::Scope& scope,
                    const DotTileProduct& product) {
  constexpr int64_t kOffset = 0;
  const Passes passes(product.steps);
  for (Pass pass = passes.first();; pass = passes.after(pass)) {
    const bool last = passes.last(pass);
    const Pass next = last ? passes.first() : passes.after(pass);
    const char* const panels = last ? product.next : product.columns;
    Ahead ahead(panels == nullptr ? nullptr : panels + next.first * kStepBytes, product.panels,
                product.panel_bytes, next.bytes());
    DotTileMicrokernel::Blocks p{};
    p.offsets = &kOffset;
    p.a_row = product.row_bytes, p.a_tile = kSide * product.row_bytes;
    p.chunks = 1, p.parts = pass.parts, p.depth = pass.depth;
    p.b = product.columns + pass.first * kStepBytes;
    p.b_panel = product.panel_bytes;
    p.c_row = product.stride, p.c_tile = kSide * product.stride, p.c_panel = product.panel_stride;
    const bool begins = pass.first == 0, by_row = product.row_start != nullptr;
    p.start = begins && !by_row ? product.start : nullptr;
    p.start_panel = kSide;
    for (int64_t row = 0; row < product.count; row += 2 * kSide) {
      const int64_t first = std::min(kSide, product.count - row),
                    second = std::min(kSide, product.count - row - first);
      p.a = product.rows + row * product.row_bytes + pass.first * 4;
      p.c = product.sums + row * product.stride;
      if (begins && by_row)
        begin_tile_sums(product.start, product.row_start + row, first + second, product.panels,
                        product.stride, product.panel_stride, p.c);
      ahead.take(DotTileMicrokernel::bytes_ahead(second > 0 ? 2 : 1, product.panels, pass.parts),
                 p);
      microkernel.run(scope, first, second, product.panels, product.signed_rows, p);
    }
    if (last) return;
  }
}

}  // namespace pfrt::cpu

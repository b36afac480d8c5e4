// SPDX-License-Identifier: Apache-2.0
//
// The innermost product of bytes on tiles, emulated where the machine has none. It gives the exact
// sums, modulo 2^32, for any number of rows, panels, chunks and parts, and touches nothing but its
// operands.
#include "providers/cpu/jit/dot_tile_microkernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "test/providers/cpu/code/tile_emulator.h"
#include "test/providers/cpu/guarded.h"

namespace pfrt::test {
namespace {

using cpu::DotTileMicrokernel;

struct TileShape {
  int64_t first, second, panels, chunks, parts, depth;
  bool signed_rows, from_c;
};

class TileOperands {
 public:
  static constexpr int64_t kPanel = 16;

  explicit TileOperands(const TileShape& shape)
      : s_(shape), random_(static_cast<uint64_t>(shape.first + 17 * shape.second)) {
    for (int64_t i = 0; i < s_.chunks; ++i)
      offsets_.push_back(i * 12 * s_.depth % (8 * s_.depth + 3));
    const int64_t last =
        s_.second > 0 ? a_tile() + (s_.second - 1) * a_row() : (s_.first - 1) * a_row();
    a_ = numbers(last + *std::max_element(offsets_.begin(), offsets_.end()) + chunk() * 4);
    b_ = numbers(s_.panels * steps() * kPanel * 4);
    c_ = numbers((s_.first + s_.second) * row() * 4);
    start_ = numbers((s_.panels - 1) * start_panel() * 4 + kPanel * 4);
  }

  std::vector<uint32_t> compute(const DotTileMicrokernel& microkernel,
                                DotTileMicrokernel::Scope& scope) const {
    Guarded a = guarded(a_, 1), b = guarded(b_, 4), c = guarded(c_, 4), start = guarded(start_, 4);
    for (Guarded* operand : {&a, &b, &start}) operand->make_read_only();
    DotTileMicrokernel::Blocks p{};
    p.a = a.data();
    p.offsets = offsets_.data();
    p.a_row = a_row(), p.a_tile = a_tile();
    p.chunks = s_.chunks, p.parts = s_.parts, p.depth = s_.depth;
    p.b = b.data();
    p.b_panel = steps() * kPanel * 4;
    p.c = reinterpret_cast<int32_t*>(c.data());
    p.c_row = row(), p.c_tile = s_.first * row(), p.c_panel = kPanel;
    if (!s_.from_c) p.start = reinterpret_cast<const int32_t*>(start.data());
    p.start_panel = start_panel();
    p.ahead = b.data();
    p.ahead_step = 64;
    microkernel.run(scope, s_.first, s_.second, s_.panels, s_.signed_rows, p);
    return words({c.data(), c.data() + c.size()});
  }

  std::vector<uint32_t> exact() const {
    std::vector<uint32_t> out = words(c_);
    const std::vector<uint32_t> start = words(start_);
    for (int64_t r = 0; r < s_.first + s_.second; ++r)
      for (int64_t j = 0; j < row(); ++j) {
        uint32_t& sum = out[static_cast<size_t>(r * row() + j)];
        if (!s_.from_c) sum = start[static_cast<size_t>(j / kPanel * start_panel() + j % kPanel)];
        const int64_t at = r < s_.first ? r * a_row() : a_tile() + (r - s_.first) * a_row();
        for (int64_t i = 0; i < 4 * steps(); ++i) {
          const auto a = static_cast<uint8_t>(a_[static_cast<size_t>(
              at + offsets_[static_cast<size_t>(i / 4 / chunk())] + i % (4 * chunk()))]);
          const auto b = static_cast<int8_t>(b_[static_cast<size_t>(
              ((j / kPanel * steps() + i / 4) * kPanel + j % kPanel) * 4 + i % 4)]);
          sum += static_cast<uint32_t>((s_.signed_rows ? static_cast<int8_t>(a) : int{a}) * b);
        }
      }
    return out;
  }

 private:
  int64_t chunk() const { return s_.parts * s_.depth; }  // in steps
  int64_t a_row() const { return 4 * chunk() + 7; }
  int64_t a_tile() const { return s_.first * a_row() + 5; }
  int64_t row() const { return s_.panels * kPanel; }
  int64_t steps() const { return s_.chunks * chunk(); }
  int64_t start_panel() const { return 2 * kPanel; }

  std::vector<char> numbers(int64_t n) {
    std::vector<char> out(static_cast<size_t>(n));
    for (char& x : out) x = static_cast<char>(random_());
    return out;
  }
  static std::vector<uint32_t> words(const std::vector<char>& bytes) {
    std::vector<uint32_t> out(bytes.size() / 4);
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  static Guarded guarded(const std::vector<char>& from, size_t alignment) {
    Guarded out(from.size(), Placed::kAtEnd, alignment);
    std::memcpy(out.data(), from.data(), out.size());
    return out;
  }

  TileShape s_;
  std::mt19937_64 random_;
  std::vector<int64_t> offsets_;
  std::vector<char> a_, b_, c_, start_;
};

TEST(DotTileMicrokernel, is_exact) {
  const TileEmulator emulator;
  const DotTileMicrokernel* const microkernel = DotTileMicrokernel::get();
  if (microkernel == nullptr) GTEST_SKIP() << "PFRT_ISA excludes tiles";
  constexpr struct {
    int64_t chunks, parts, depth;
  } kSums[] = {{1, 1, 1}, {1, 1, 16}, {1, 3, 16}, {9, 1, 4}, {3, 2, 7}, {2, 1, 13}};
  constexpr struct {
    int64_t first, second;
  } kRows[] = {{16, 16}, {16, 3}, {16, 0}, {3, 0}, {1, 0}, {14, 14}, {5, 9}};
  // Shapes stay set up from one product to the next.
  DotTileMicrokernel::Scope scope;
  const uint64_t before = TileEmulator::byte_products();
  for (const auto& sums : kSums)
    for (const auto& rows : kRows)
      for (int64_t panels = 1; panels <= (rows.second > 0 ? 2 : 4); ++panels)
        for (const bool signed_rows : {false, true}) {
          const TileShape s{rows.first, rows.second, panels,      sums.chunks,
                            sums.parts, sums.depth,  signed_rows, (rows.first + panels) % 2 == 0};
          const TileOperands operands(s);
          ASSERT_EQ(operands.compute(*microkernel, scope), operands.exact())
              << rows.first << " and " << rows.second << " rows, " << panels << " panels, signed "
              << signed_rows << ", " << sums.chunks << " chunks of " << sums.parts << " x "
              << sums.depth;
        }
  if (!emulator.native()) {
    EXPECT_GT(TileEmulator::byte_products(), before);
  }
}

}  // namespace
}  // namespace pfrt::test

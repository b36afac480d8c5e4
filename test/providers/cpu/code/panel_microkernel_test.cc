// SPDX-License-Identifier: Apache-2.0
//
// The innermost matmul of packed panels, by itself. It is near the exact sums for any number of
// rows, panels, chunks and chains, gives a row the same bits among any other rows, and touches
// nothing but its operands.
#include "providers/cpu/jit/panel_microkernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "test/providers/cpu/guarded.h"

namespace pfrt::test {
namespace {

using cpu::PanelMicrokernel;

struct Shape {
  int64_t rows, panels, chunks, depth, chain;
  enum class From { kC, kOneRow, kRows } from = From::kC;
};

class Operands {
 public:
  Operands(const Shape& shape, uint64_t seed) : s_(shape), random_(seed) {
    for (int64_t i = 0; i < s_.chunks; ++i) offsets_.push_back(i * 3 * s_.depth % (2 * s_.depth));
    a_row_ = 3 * s_.depth + 1;
    a_ = numbers((s_.rows - 1) * a_row_ + *std::max_element(offsets_.begin(), offsets_.end()) +
                 s_.depth);
    b_ = numbers(s_.panels * s_.chunks * s_.depth * kPanel);
    start_ = numbers((s_.rows + 1) * kCols * 2);
    c_ = numbers(s_.rows * s_.panels * kPanel);
  }

  enum class How { kPlain, kAhead, kStreams, kPacked };
  // Computes |count| rows from |first| on, into a copy of C.
  std::vector<float> compute(int64_t first, int64_t count, How how = How::kPlain) const {
    const int64_t row = s_.panels * kPanel;
    const bool packed = how == How::kPacked;
    const std::vector<int64_t> offsets = packed ? packed_offsets() : offsets_;
    const int64_t a_row = packed ? 1 : a_row_;
    Guarded a = guarded(packed ? packed_rows() : a_), b = guarded(b_), start = guarded(start_),
            c = guarded(c_);
    for (Guarded* operand : {&a, &b, &start}) operand->make_read_only();
    PanelMicrokernel::Blocks p{};
    p.a = floats(a) + first * a_row;
    p.offsets = offsets.data();
    p.a_row = a_row;
    p.chunks = s_.chunks, p.depth = s_.depth, p.chain = s_.chain;
    p.b = floats(b);
    p.b_panel = s_.chunks * s_.depth * kPanel;
    p.c = floats(c) + first * row;
    p.c_row = row, p.c_panel = kPanel;
    if (s_.from != Shape::From::kC) p.start = floats(start) + first * start_row();
    p.start_row = start_row();
    p.ahead = how == How::kAhead ? floats(b) : nullptr;
    p.ahead_end = how == How::kAhead ? floats(b) + s_.depth * kPanel : nullptr;
    if (how == How::kStreams)
      PanelMicrokernel::get()->run_streams(count, p);
    else if (packed)
      PanelMicrokernel::get()->run_packed(count, s_.panels, p);
    else
      PanelMicrokernel::get()->run(PanelMicrokernel::get()->row_blocks(count), s_.panels, p);
    EXPECT_EQ(p.a, floats(a) + (first + count) * a_row);
    EXPECT_EQ(p.c, floats(c) + (first + count) * row);
    EXPECT_EQ(p.start,
              s_.from == Shape::From::kC ? nullptr : floats(start) + (first + count) * start_row());
    return {floats(c), floats(c) + c_.size()};
  }

  // Largest error of an element, relative to the size of its terms.
  double largest_error(const std::vector<float>& c) const {
    double largest = 0;
    for (int64_t r = 0; r < s_.rows; ++r)
      for (int64_t j = 0; j < s_.panels * kPanel; ++j) {
        const size_t at = static_cast<size_t>(r * s_.panels * kPanel + j);
        double exact = static_cast<double>(
            s_.from == Shape::From::kC ? c_[at] : start_[static_cast<size_t>(r * start_row() + j)]);
        double size = std::fabs(exact);
        for (int64_t i = 0; i < s_.chunks * s_.depth; ++i) {
          const int64_t offset = offsets_[static_cast<size_t>(i / s_.depth)] + i % s_.depth;
          const int64_t in_panel = j / kPanel * s_.chunks * s_.depth + i;
          const double term =
              static_cast<double>(a_[static_cast<size_t>(r * a_row_ + offset)]) *
              static_cast<double>(b_[static_cast<size_t>(in_panel * kPanel + j % kPanel)]);
          exact += term;
          size += std::fabs(term);
        }
        largest = std::max(largest, std::fabs(static_cast<double>(c[at]) - exact) / size);
      }
    return largest;
  }

 private:
  static constexpr int64_t kPanel = PanelMicrokernel::kPanel;
  static constexpr int64_t kCols = PanelMicrokernel::kMostStreams * kPanel;

  // Returns A in the layout of run_packed, chunk by chunk: 16 rows of one k after another.
  std::vector<float> packed_rows() const {
    std::vector<float> out(static_cast<size_t>(s_.chunks * s_.depth * kPanel));
    for (int64_t i = 0; i < s_.chunks * s_.depth; ++i)
      for (int64_t r = 0; r < s_.rows; ++r)
        out[static_cast<size_t>(i * kPanel + r)] = a_[static_cast<size_t>(
            r * a_row_ + offsets_[static_cast<size_t>(i / s_.depth)] + i % s_.depth)];
    return out;
  }
  std::vector<int64_t> packed_offsets() const {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < s_.chunks; ++i) out.push_back(i * s_.depth * kPanel);
    return out;
  }
  int64_t start_row() const { return s_.from == Shape::From::kRows ? 2 * kCols : 0; }
  std::vector<float> numbers(int64_t n) {
    std::normal_distribution<float> normal;
    std::vector<float> out(static_cast<size_t>(n));
    for (float& x : out) x = normal(random_);
    return out;
  }
  static Guarded guarded(const std::vector<float>& from) {
    Guarded out(from.size() * sizeof(float), Placed::kAtEnd, sizeof(float));
    std::memcpy(out.data(), from.data(), out.size());
    return out;
  }
  static float* floats(Guarded& g) { return reinterpret_cast<float*>(g.data()); }

  Shape s_;
  std::mt19937_64 random_;
  std::vector<int64_t> offsets_;
  int64_t a_row_ = 0;
  std::vector<float> a_, b_, start_, c_;
};

// Chunks are deeper and shallower than a turn of the loop; there is one chain, or more than are
// kept apart.
constexpr struct {
  int64_t chunks, depth, chain;
} kSums[] = {{1, 1, 1}, {1, 8, 1},  {1, 67, 1}, {4, 64, 1}, {9, 3, 1},
             {6, 5, 2}, {12, 8, 1}, {15, 9, 3}, {7, 16, 7}, {40, 11, 2}};

TEST(PanelMicrokernel, is_near_the_exact_sums) {
  const PanelMicrokernel* const microkernel = PanelMicrokernel::get();
  if (microkernel == nullptr) GTEST_SKIP() << "needs avx2";
  for (const auto& sums : kSums)
    for (int64_t rows = 1; rows <= microkernel->rows(); ++rows)
      for (int64_t panels = 1; panels <= microkernel->panels(rows); ++panels)
        for (const auto from : {Shape::From::kC, Shape::From::kOneRow, Shape::From::kRows}) {
          const Shape shape{rows, panels, sums.chunks, sums.depth, sums.chain, from};
          const Operands operands(shape, static_cast<uint64_t>(rows));
          const double longest = static_cast<double>(
              sums.chain * sums.depth + sums.chunks / sums.chain + 1);  // additions to a term
          EXPECT_LE(operands.largest_error(operands.compute(0, rows)), longest * 0x1p-24)
              << rows << " rows, " << panels << " panels, " << sums.chunks << " chunks of "
              << sums.depth << ", " << sums.chain << " a chain";
        }
}

TEST(PanelMicrokernel, gives_a_row_the_same_bits_alone_in_any_part_and_whatever_is_fetched) {
  const PanelMicrokernel* const microkernel = PanelMicrokernel::get();
  if (microkernel == nullptr) GTEST_SKIP() << "needs avx2";
  const int64_t most = microkernel->rows();
  for (const auto& sums : kSums)
    for (const int64_t rows : {most, 2 * most, 4 * most - 3})
      for (const auto from : {Shape::From::kC, Shape::From::kOneRow, Shape::From::kRows}) {
        const Shape shape{rows, 1, sums.chunks, sums.depth, sums.chain, from};
        const Operands operands(shape, 3);
        const std::vector<float> all = operands.compute(0, rows, Operands::How::kAhead);
        EXPECT_EQ(all, operands.compute(0, rows));
        for (int64_t r = 0; r < rows; ++r) {
          const std::vector<float> one = operands.compute(r, 1);
          const auto begin = r * PanelMicrokernel::kPanel, end = begin + PanelMicrokernel::kPanel;
          EXPECT_TRUE(std::equal(one.begin() + begin, one.begin() + end, all.begin() + begin))
              << "row " << r << " of " << rows << ", " << sums.chunks << " chunks of "
              << sums.depth;
        }
      }
}

TEST(PanelMicrokernel, shares_of_parts_are_all_of_them) {
  for (int64_t rows = 1; rows < 100; ++rows)
    for (int64_t shares = 1; shares < 5; ++shares) {
      const PanelMicrokernel::RowBlocks all = PanelMicrokernel::row_blocks(rows, 6);
      int64_t count = 0, total = 0;
      for (int64_t i = 0; i < shares; ++i) {
        const PanelMicrokernel::RowBlocks some = all.share(i, shares);
        count += some.count;
        total += some.count * some.rows + some.more;
      }
      EXPECT_EQ(count, all.count);
      EXPECT_EQ(total, rows);
    }
}

TEST(PanelMicrokernel, of_packed_rows_has_the_bits_of_rows) {
  const PanelMicrokernel* const microkernel = PanelMicrokernel::get();
  if (microkernel == nullptr) GTEST_SKIP() << "needs avx2";
  for (const auto& sums : kSums)
    for (int64_t rows = 1; rows <= PanelMicrokernel::kPanel; ++rows)
      for (int64_t panels = 1; panels <= microkernel->packed_panels(); ++panels)
        for (const auto from : {Shape::From::kC, Shape::From::kOneRow, Shape::From::kRows}) {
          const Operands operands({rows, panels, sums.chunks, sums.depth, sums.chain, from}, 7);
          const std::vector<float> got = operands.compute(0, rows, Operands::How::kPacked);
          for (int64_t r = 0; r < rows; ++r) {
            const std::vector<float> one = operands.compute(r, 1);
            const auto begin = r * panels * PanelMicrokernel::kPanel,
                       end = begin + panels * PanelMicrokernel::kPanel;
            EXPECT_TRUE(std::equal(one.begin() + begin, one.begin() + end, got.begin() + begin))
                << "row " << r << " of " << rows << ", " << panels << " panels, " << sums.chunks
                << " chunks of " << sums.depth;
          }
        }
}

TEST(PanelMicrokernel, by_streams_is_near_the_exact_sums) {
  const PanelMicrokernel* const microkernel = PanelMicrokernel::get();
  if (microkernel == nullptr) GTEST_SKIP() << "needs avx2";
  for (const auto& sums : kSums)
    for (int64_t rows = 1; rows <= microkernel->stream_rows(); ++rows)
      for (const auto from : {Shape::From::kC, Shape::From::kOneRow, Shape::From::kRows}) {
        const int64_t panels = microkernel->streams(rows);
        const Shape shape{rows, panels, sums.chunks, sums.depth, sums.chain, from};
        const Operands operands(shape, static_cast<uint64_t>(rows));
        const std::vector<float> got = operands.compute(0, rows, Operands::How::kStreams);
        const double longest =
            static_cast<double>(sums.chain * sums.depth + sums.chunks / sums.chain + 1);
        EXPECT_LE(operands.largest_error(got), longest * 0x1p-24)
            << rows << " rows, " << sums.chunks << " chunks of " << sums.depth;
      }
}

}  // namespace
}  // namespace pfrt::test

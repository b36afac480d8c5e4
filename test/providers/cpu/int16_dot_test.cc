// SPDX-License-Identifier: Apache-2.0
//
// The innermost product of pairs of int16: the exact sums, modulo 2^32, for any number of rows,
// panels, chunks and chains, and nothing but its operands touched.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "providers/cpu/jit/panel_microkernel.h"
#include "test/providers/cpu/guarded.h"

namespace pfrt::test {
namespace {

using cpu::PanelMicrokernel;

constexpr int64_t kPanel = PanelMicrokernel::kPanel;

struct Shape {
  int64_t rows, panels, chunks, depth, chain;
  bool half;
};

class Operands {
 public:
  explicit Operands(const Shape& shape) : s_(shape), random_(static_cast<uint64_t>(shape.rows)) {
    for (int64_t i = 0; i < s_.chunks; ++i) offsets_.push_back(i * 3 * s_.depth % (2 * s_.depth));
    a_ = numbers((s_.rows - 1) * a_row() + *std::max_element(offsets_.begin(), offsets_.end()) +
                 s_.depth);
    b_ = numbers(s_.panels * depth() * kPanel);
    c_ = numbers(s_.rows * row());
  }

  std::vector<uint32_t> compute() const {
    Guarded a = guarded(a_), b = guarded(b_), c = guarded(c_);
    for (Guarded* operand : {&a, &b}) operand->make_read_only();
    PanelMicrokernel::Blocks p{};
    p.a = reinterpret_cast<const float*>(a.data());
    p.offsets = offsets_.data();
    p.a_row = a_row();
    p.chunks = s_.chunks, p.depth = s_.depth, p.chain = s_.chain;
    p.b = reinterpret_cast<const float*>(b.data());
    p.b_panel = depth() * kPanel;
    p.c = reinterpret_cast<float*>(c.data());
    p.c_row = row(), p.c_panel = kPanel;
    const PanelMicrokernel* const microkernel = PanelMicrokernel::get_int16_dot();
    if (s_.half)
      microkernel->run_half(PanelMicrokernel::row_blocks(s_.rows, microkernel->half_rows()), p);
    else
      microkernel->run(microkernel->row_blocks(s_.rows), s_.panels, p);
    std::vector<uint32_t> out(c_.size());
    std::memcpy(out.data(), c.data(), c.size());
    return out;
  }

  // Half a panel leaves the other alone.
  std::vector<uint32_t> exact() const {
    std::vector<uint32_t> out = c_;
    for (int64_t r = 0; r < s_.rows; ++r)
      for (int64_t j = 0; j < (s_.half ? kPanel / 2 : row()); ++j)
        for (int64_t i = 0; i < depth(); ++i) {
          const int64_t offset = offsets_[static_cast<size_t>(i / s_.depth)] + i % s_.depth;
          out[static_cast<size_t>(r * row() + j)] +=
              product(a_[static_cast<size_t>(r * a_row() + offset)],
                      b_[static_cast<size_t>((j / kPanel * depth() + i) * kPanel + j % kPanel)]);
        }
    return out;
  }

 private:
  int64_t a_row() const { return 3 * s_.depth + 1; }
  int64_t row() const { return s_.panels * kPanel; }
  int64_t depth() const { return s_.chunks * s_.depth; }
  static uint32_t product(uint32_t a, uint32_t b) {
    const auto half = [](uint32_t x) { return int32_t{static_cast<int16_t>(x & 0xffff)}; };
    return static_cast<uint32_t>(half(a) * half(b)) +
           static_cast<uint32_t>(half(a >> 16) * half(b >> 16));
  }
  std::vector<uint32_t> numbers(int64_t n) {
    std::vector<uint32_t> out(static_cast<size_t>(n));
    for (uint32_t& x : out) x = static_cast<uint32_t>(random_());
    return out;
  }
  static Guarded guarded(const std::vector<uint32_t>& from) {
    Guarded out(from.size() * sizeof(uint32_t), Placed::kAtEnd, sizeof(uint32_t));
    std::memcpy(out.data(), from.data(), out.size());
    return out;
  }

  Shape s_;
  std::mt19937_64 random_;
  std::vector<int64_t> offsets_;
  std::vector<uint32_t> a_, b_, c_;
};

TEST(Int16Dot, is_exact) {
  const PanelMicrokernel* const microkernel = PanelMicrokernel::get_int16_dot();
  if (microkernel == nullptr) GTEST_SKIP() << "needs avx2";
  constexpr struct {
    int64_t chunks, depth, chain;
  } kSums[] = {{1, 1, 1}, {1, 8, 1},  {1, 67, 1}, {4, 64, 1}, {9, 3, 1},
               {6, 5, 2}, {12, 8, 1}, {15, 9, 3}, {7, 16, 7}, {40, 11, 2}};
  const auto check = [](const Shape& s) {
    const Operands operands(s);
    EXPECT_EQ(operands.compute(), operands.exact())
        << s.rows << " rows, " << s.panels << " panels, half " << s.half << ", " << s.chunks
        << " chunks of " << s.depth << ", " << s.chain << " a chain";
  };
  for (const auto& sums : kSums) {
    for (int64_t rows = 1; rows <= microkernel->rows(); ++rows)
      for (int64_t panels = 1; panels <= microkernel->panels(rows); ++panels)
        check({rows, panels, sums.chunks, sums.depth, sums.chain, false});
    for (int64_t rows = 1; rows <= microkernel->half_rows(); ++rows)
      check({rows, 1, sums.chunks, sums.depth, sums.chain, true});
  }
}

}  // namespace
}  // namespace pfrt::test

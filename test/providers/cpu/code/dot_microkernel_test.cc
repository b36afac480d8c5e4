// SPDX-License-Identifier: Apache-2.0
//
// The innermost product of integers gives the exact sums, modulo 2^32, for any number of rows,
// panels and chunks, and touches nothing but its operands.
#include "providers/cpu/jit/dot_microkernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "providers/cpu/elements/requantize.h"
#include "providers/cpu/kernels/matmul/dot_columns.h"
#include "test/providers/cpu/guarded.h"

namespace pfrt::test {
namespace {

using cpu::DotMicrokernel;

struct DotShape {
  int64_t rows, panels, chunks, depth;
  bool flipped;
  enum { kFromC, kFromColumns, kFromBoth } start;
};

class DotOperands {
 public:
  static constexpr int64_t kPanel = DotMicrokernel::kPanel;

  DotOperands(const DotMicrokernel& microkernel, const DotShape& shape)
      : microkernel_(microkernel), s_(shape), random_(static_cast<uint64_t>(shape.rows)) {
    for (int64_t i = 0; i < s_.chunks; ++i) offsets_.push_back(i * 12 * s_.depth % (8 * s_.depth));
    a_ = factors((s_.rows - 1) * a_row() + *std::max_element(offsets_.begin(), offsets_.end()) +
                 4 * s_.depth);
    b_ = factors(s_.panels * steps() * kPanel * 4);
    c_ = numbers(s_.rows * row() * 4);
    start_ = numbers((s_.panels - 1) * start_panel() * 4 + kPanel * 4);
    row_start_ = numbers(s_.rows * 4);
  }

  std::vector<uint32_t> compute() const {
    return multiply([](DotMicrokernel::Blocks&) {});
  }

  // Returns the sums as bytes, with a scale for each column, panel by panel of each row, and a gap
  // after each row.
  std::vector<uint8_t> bytes(const std::vector<float>& scales, int32_t zero, bool is_signed) const {
    Guarded by(scales.size() * sizeof(float), Placed::kAtEnd, 4);
    std::memcpy(by.data(), scales.data(), by.size());
    by.make_read_only();
    Guarded out(static_cast<size_t>((s_.rows - 1) * out_row() + row()), Placed::kAtEnd, 1);
    const DotMicrokernel::Bytes form(zero, is_signed);
    multiply([&](DotMicrokernel::Blocks& p) {
      p.out = reinterpret_cast<uint8_t*>(out.data());
      p.out_row = out_row(), p.out_panel = kPanel;
      p.scales = reinterpret_cast<const float*>(by.data());
      p.bytes = &form;
    });
    return {out.data(), out.data() + out.size()};
  }

  std::vector<uint8_t> exact_bytes(const std::vector<float>& scales, int32_t zero,
                                   bool is_signed) const {
    std::vector<uint8_t> out(static_cast<size_t>((s_.rows - 1) * out_row() + row()), 0xcd);
    const std::vector<uint32_t> sums = exact();
    const auto fns = cpu::requantize_fns(is_signed ? PFRT_DTYPE_INT8 : PFRT_DTYPE_UINT8);
    for (int64_t r = 0; r < s_.rows; ++r)
      fns.columns(reinterpret_cast<const int32_t*>(sums.data()) + r * row(), scales.data(), zero,
                  row(), out.data() + r * out_row());
    return out;
  }
  int64_t columns() const { return row(); }

  std::vector<uint32_t> exact() const {
    std::vector<uint32_t> out = words(c_);
    const std::vector<uint32_t> start = words(start_);
    const std::vector<uint32_t> row_start = words(row_start_);
    for (int64_t r = 0; r < s_.rows; ++r)
      for (int64_t j = 0; j < row(); ++j) {
        uint32_t& sum = out[static_cast<size_t>(r * row() + j)];
        if (s_.start != DotShape::kFromC)
          sum = start[static_cast<size_t>(j / kPanel * start_panel() + j % kPanel)];
        if (s_.start == DotShape::kFromBoth) sum += row_start[static_cast<size_t>(r)];
        for (int64_t i = 0; i < steps(); i += microkernel_.crosswise() ? 2 : 1) {
          const int64_t offset = offsets_[static_cast<size_t>(i / s_.depth)] + i % s_.depth * 4;
          const char* const x = &a_[static_cast<size_t>(r * a_row() + offset)];
          sum += microkernel_.crosswise() ? crosswise(x, column(j, i + 1), column(j, i))
                                          : product(x, column(j, i));
        }
      }
    return out;
  }

 private:
  // Returns C after the product; |more| fills in the rest of the arguments.
  template <typename F>
  std::vector<uint32_t> multiply(F&& more) const {
    Guarded a = guarded(a_, 1), b = guarded(b_, 4), c = guarded(c_, 4), start = guarded(start_, 4);
    Guarded row_start = guarded(row_start_, 4);
    for (Guarded* operand : {&a, &b, &start, &row_start}) operand->make_read_only();
    DotMicrokernel::Blocks p{};
    p.a = a.data();
    p.offsets = offsets_.data();
    p.a_row = a_row();
    p.chunks = s_.chunks, p.depth = s_.depth;
    p.b = b.data();
    p.b_panel = steps() * kPanel * 4;
    p.c = reinterpret_cast<int32_t*>(c.data());
    p.c_row = row(), p.c_panel = kPanel;
    if (s_.start != DotShape::kFromC) p.start = reinterpret_cast<const int32_t*>(start.data());
    if (s_.start == DotShape::kFromBoth)
      p.row_start = reinterpret_cast<const int32_t*>(row_start.data());
    p.start_panel = start_panel();
    more(p);
    microkernel_.run(microkernel_.row_blocks(s_.rows), s_.panels, s_.flipped, p);
    return words({c.data(), c.data() + c.size()});
  }

  int64_t out_row() const { return row() + 3; }
  int64_t a_row() const { return 12 * s_.depth + 3; }
  int64_t row() const { return s_.panels * kPanel; }
  int64_t steps() const { return s_.chunks * s_.depth; }
  int64_t start_panel() const { return 2 * kPanel; }

  // Factors of column |j| in step |i|, where the layout has them: crosswise multiplication
  // exchanges two steps.
  const char* column(int64_t j, int64_t i) const {
    return &b_[static_cast<size_t>(
        ((j / kPanel * steps() + microkernel_.line(i)) * kPanel + j % kPanel) * 4)];
  }
  uint32_t product(const char* a, const char* b) const {
    int64_t sum = 0;
    if (!microkernel_.bytes()) {
      int16_t x[2], y[2];
      std::memcpy(x, a, sizeof x);
      std::memcpy(y, b, sizeof y);
      return static_cast<uint32_t>(int64_t{x[0]} * y[0] + int64_t{x[1]} * y[1]);
    }
    for (int i = 0; i < 4; ++i)
      sum +=
          int64_t{static_cast<uint8_t>(a[i] ^ (s_.flipped ? 0x80 : 0))} * static_cast<int8_t>(b[i]);
    return static_cast<uint32_t>(sum);
  }
  // Sum of the products of two steps of a row and a column, and of the products within each.
  static uint32_t crosswise(const char* a, const char* second, const char* first) {
    int16_t x[4], y[4];
    std::memcpy(x, a, sizeof x);
    std::memcpy(y, first, sizeof y / 2);
    std::memcpy(y + 2, second, sizeof y / 2);
    int64_t sum = 0;
    for (int i = 0; i < 4; ++i) sum += int64_t{x[i]} * y[i];
    for (int i = 0; i < 2; ++i) sum += int64_t{x[i]} * x[i + 2] + int64_t{y[i]} * y[i + 2];
    return static_cast<uint32_t>(sum);
  }
  // Random factors; sums of two int16 factors stay within int16.
  std::vector<char> factors(int64_t bytes) {
    std::vector<char> out = numbers(bytes);
    for (size_t i = 0; !microkernel_.bytes() && i < out.size(); ++i)
      out[i] = static_cast<char>(static_cast<signed char>(out[i]) / 2);
    return out;
  }
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

  const DotMicrokernel& microkernel_;
  DotShape s_;
  std::mt19937_64 random_;
  std::vector<int64_t> offsets_;
  std::vector<char> a_, b_, c_, start_, row_start_;
};

// Parameters: an instruction set, and whether int16 are multiplied plainly instead of crosswise.
class DotMicrokernels : public testing::TestWithParam<std::tuple<const char*, bool>> {};

TEST_P(DotMicrokernels, are_exact) {
  const auto [isa, plain] = GetParam();
  const char* const set = std::getenv("PFRT_ISA");
  const std::string before = set == nullptr ? "" : set;
  setenv("PFRT_ISA", isa, 1);
  const DotMicrokernel* const microkernel = plain ? DotMicrokernel::plain() : DotMicrokernel::get();
  setenv("PFRT_ISA", before.c_str(), 1);
  if (microkernel == nullptr) GTEST_SKIP() << "needs avx2";
  ASSERT_EQ(microkernel->crosswise(), !plain && !microkernel->bytes());
  constexpr struct {
    int64_t chunks, depth;
  } kSums[] = {{1, 1}, {1, 4}, {1, 7}, {1, 67}, {1, 70}, {3, 2}, {9, 4}, {2, 13}, {1, 6}};
  for (const auto& sums : kSums)
    for (int64_t rows = 1; rows <= microkernel->rows() + 2; ++rows)
      for (int64_t panels = 1; panels <= DotMicrokernel::kMostPanels; ++panels)
        for (const bool flipped : {false, true}) {
          if (panels > microkernel->panels(microkernel->row_blocks(rows).first())) continue;
          if (flipped && !microkernel->bytes()) continue;
          if (microkernel->crosswise() && sums.depth % 2 != 0) continue;
          DotShape s{rows, panels, sums.chunks, sums.depth, flipped, DotShape::kFromC};
          if ((rows + panels) % 2 != 0) s.start = DotShape::kFromColumns;
          if ((rows + panels) % 3 == 0) s.start = DotShape::kFromBoth;
          const DotOperands operands(*microkernel, s);
          EXPECT_EQ(operands.compute(), operands.exact())
              << rows << " rows, " << panels << " panels, flipped " << flipped << ", "
              << sums.chunks << " chunks of " << sums.depth;
          if (!microkernel->requantizes()) continue;
          std::vector<float> scales(static_cast<size_t>(operands.columns()));
          for (size_t j = 0; j < scales.size(); ++j)
            scales[j] = std::ldexp(j % 3 == 0 ? -0.7F : 0.9F, -static_cast<int>(j * 5 % 32));
          const bool is_signed = rows % 2 == 0;
          const int32_t zero = is_signed ? -101 : 37;
          EXPECT_EQ(operands.bytes(scales, zero, is_signed),
                    operands.exact_bytes(scales, zero, is_signed))
              << rows << " rows of bytes, " << panels << " panels, " << sums.chunks << " chunks of "
              << sums.depth;
        }
}

// Rows of all lengths are summed, and copied with their padding.
TEST_P(DotMicrokernels, rows_are_summed_and_copied) {
  const char* const set = std::getenv("PFRT_ISA");
  const std::string before = set == nullptr ? "" : set;
  setenv("PFRT_ISA", std::get<0>(GetParam()), 1);
  const DotMicrokernel* const microkernel = DotMicrokernel::get();
  setenv("PFRT_ISA", before.c_str(), 1);
  if (microkernel == nullptr) GTEST_SKIP() << "needs avx2";
  if (std::get<1>(GetParam())) GTEST_SKIP() << "matmuls have no rows for it";
  std::mt19937_64 random(9);
  for (int64_t k = 1; k <= 300; k += k < 150 ? 1 : 7)
    for (const pfrt_dtype dtype : {PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8}) {
      const cpu::DotRows rows(k, dtype, *microkernel);
      Guarded row(static_cast<size_t>(k)), copy(static_cast<size_t>(rows.row_bytes()));
      std::vector<int64_t> values;
      int64_t sum = 0;
      for (int64_t i = 0; i < k; ++i) {
        const auto byte = static_cast<uint8_t>(k % 3 == 0 ? 255 : random());
        row.data()[i] = static_cast<char>(byte);
        values.push_back(dtype == PFRT_DTYPE_INT8 ? static_cast<int8_t>(byte) : int64_t{byte});
        sum += values.back() + rows.shift();
      }
      row.make_read_only();
      EXPECT_EQ(rows.sum(row.data()), sum) << k;
      const uint32_t own = rows.copy(row.data(), copy.data());
      if (microkernel->bytes()) {
        EXPECT_EQ(std::memcmp(copy.data(), row.data(), row.size()), 0) << k;
        EXPECT_EQ(own, 0U);
        continue;
      }
      values.resize(static_cast<size_t>(rows.row_bytes()) / sizeof(int16_t));
      int64_t expected = 0;
      for (size_t i = 0; i < values.size(); i += 4)
        expected += values[i] * values[i + 2] + values[i + 1] * values[i + 3];
      const auto* const wide = reinterpret_cast<const int16_t*>(copy.data());
      EXPECT_TRUE(std::equal(values.begin(), values.end(), wide)) << k;
      EXPECT_EQ(own, static_cast<uint32_t>(expected)) << k;
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, DotMicrokernels,
    testing::Combine(testing::Values("avx2", "avx_vnni", "avx512", "avx512_vnni"), testing::Bool()),
    [](const auto& test) {
      return std::string(std::get<0>(test.param)) + (std::get<1>(test.param) ? "_plain" : "");
    });

}  // namespace
}  // namespace pfrt::test

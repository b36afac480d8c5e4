// SPDX-License-Identifier: Apache-2.0
//
// Whole products and convolutions of bytes on tiles, emulated where the machine has none, have the
// bits of the reference rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/code/tile_emulator.h"
#include "test/providers/cpu/graph.h"
#include "test/providers/cpu/one_node.h"

namespace pfrt::test {
namespace tile_products {
namespace {

const cpu::KernelRow& row_named(std::string_view name) {
  for (std::span<const cpu::KernelRow> family : cpu::kernels())
    for (const cpu::KernelRow& row : family)
      if (row.name == name) return row;
  std::abort();
}

const cpu::KernelRow& nbits_row() {
  for (std::span<const cpu::KernelRow> family : cpu::kernels())
    for (const cpu::KernelRow& row : family)
      if (row.op == "MatMulNBits") return row;
  std::abort();
}

// Returns the result of |fn| with a PFRT_ISA that excludes tiles.
template <typename Fn>
auto in_vectors(Fn&& fn) {
  const char* const set = std::getenv("PFRT_ISA");
  const std::string word = set == nullptr ? "" : set;
  setenv("PFRT_ISA", "avx512_vnni", 1);
  auto result = fn();
  setenv("PFRT_ISA", word.c_str(), 1);
  return result;
}

class TileProducts : public testing::Test {
 protected:
  void SetUp() override {
    if (cpu::isa() < cpu::Isa::kAmx)
      GTEST_SKIP() << "PFRT_ISA has no tiles, or the machine not what comes before them";
  }

  // Compares the rows' bits. Returns whether tiles were used; on a machine with tiles it cannot
  // tell and returns true.
  bool check(std::string_view row, std::string_view reference, const Case& c,
             uint32_t workers = 1) {
    const uint64_t before = TileEmulator::byte_products();
    const Outcome got = run(row_named(row), c, {.workers = workers});
    const bool used = TileEmulator::byte_products() > before;
    const Outcome want = run(row_named(reference), c);
    EXPECT_EQ(got.refused + got.fault + want.refused + want.fault, "") << c.text();
    if (testing::Test::HasFailure()) return false;
    const Guarded &x = got.outputs[0], &y = want.outputs[0];
    const bool same = x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size()) == 0;
    EXPECT_TRUE(same) << row << ": " << c.text();
    for (size_t i = 0; i < x.size(); ++i) {
      const auto byte = static_cast<uint8_t>(x.data()[i]);
      bytes_ += 1;
      at_ends_ += byte == 0 || byte == 0x7f || byte == 0x80 || byte == 0xff;
    }
    return used || emulator_.native();
  }

  Data numbers(pfrt_dtype dtype, Dims dims, bool constant) {
    const bool is_signed = dtype == PFRT_DTYPE_INT8;
    Data data = random_.data(dtype, std::move(dims), is_signed ? -128 : 0, is_signed ? 127 : 255);
    data.constant = constant;
    return data;
  }
  Data scale(double least, Dims dims) {
    Data data = random_.data(PFRT_DTYPE_FLOAT32, std::move(dims), least, 2 * least);
    data.constant = true;
    return data;
  }
  // Zero points: none, a single one, or one for each row or column.
  Data zeros(pfrt_dtype dtype, int64_t lines, int form) {
    if (form == 0) return {};
    return numbers(dtype, form == 1 ? Dims{} : Dims{lines}, true);
  }
  // Errors would be hidden if most results were the least or the greatest byte.
  void expect_ordinary_bytes() const { EXPECT_LT(2 * at_ends_, bytes_); }
  static constexpr std::array<pfrt_dtype, 2> kBytes{PFRT_DTYPE_UINT8, PFRT_DTYPE_INT8};

  TileEmulator emulator_;
  Random random_{7};
  uint64_t bytes_ = 0, at_ends_ = 0;
};

constexpr std::array<int64_t, 3> kProducts[] = {  // m, k, n
    {8, 64, 32},    {16, 4, 8},     {17, 63, 40},   {33, 65, 64},
    {130, 100, 16}, {40, 1030, 70}, {32, 2112, 33}, {12, 768, 200}};

TEST_F(TileProducts, matmul_integer) {
  int form = 0;
  for (const auto& [m, k, n] : kProducts)
    for (const pfrt_dtype a : kBytes)
      for (const pfrt_dtype b : kBytes)
        for (const bool constant : {false, true}) {
          Case c;
          c.inputs = {numbers(a, {m, k}, false), numbers(b, {k, n}, constant),
                      zeros(a, m, form % 3), zeros(b, n, form / 3 % 3)};
          c.outputs = {expected(PFRT_DTYPE_INT32, {m, n}, {})};
          ++form;
          EXPECT_TRUE(check("matmul_integer_dots", "matmul_integer_packed", c)) << c.text();
        }
}

TEST_F(TileProducts, qlinear_matmul) {
  int form = 0;
  for (const auto& [m, k, n] : kProducts)
    for (const pfrt_dtype a : kBytes)
      for (const pfrt_dtype b : kBytes) {
        const pfrt_dtype y = kBytes[static_cast<size_t>(form % 2)];
        Case c;
        c.inputs = {numbers(a, {m, k}, false),
                    scale(0.01, form % 3 == 0 ? Dims{m} : Dims{}),
                    zeros(a, m, 1),
                    numbers(b, {k, n}, form % 5 != 0),
                    scale(0.02, form % 2 == 0 ? Dims{n} : Dims{}),
                    zeros(b, n, form / 2 % 2 + 1),
                    scale(0.05 * static_cast<double>(k), {}),
                    zeros(y, 1, 1)};
        c.outputs = {expected(y, {m, n}, {})};
        ++form;
        EXPECT_TRUE(check("qlinear_matmul_dots", "qlinear_matmul_packed", c)) << c.text();
      }
  expect_ordinary_bytes();
}

TEST_F(TileProducts, batches_on_any_number_of_threads) {
  for (const uint32_t workers : {1u, 2u, 4u}) {
    Case c;
    c.inputs = {numbers(PFRT_DTYPE_INT8, {3, 300, 90}, false),
                numbers(PFRT_DTYPE_UINT8, {90, 270}, true), zeros(PFRT_DTYPE_INT8, 1, 1)};
    c.outputs = {expected(PFRT_DTYPE_INT32, {3, 300, 270}, {})};
    EXPECT_TRUE(check("matmul_integer_dots", "matmul_integer_packed", c, workers));
  }
}

TEST_F(TileProducts, few_rows_stay_in_vectors) {
  if (emulator_.native()) GTEST_SKIP() << "only an emulator sees what was used";
  Case c;
  c.inputs = {numbers(PFRT_DTYPE_INT8, {4, 64}, false), numbers(PFRT_DTYPE_INT8, {64, 96}, true)};
  c.outputs = {expected(PFRT_DTYPE_INT32, {4, 96}, {})};
  EXPECT_FALSE(check("matmul_integer_dots", "matmul_integer_packed", c));
}

struct ConvShape {
  int64_t channels, outs, groups, height, width, taps_y, taps_x, stride, pad, dilation;

  int64_t positions(int64_t size, int64_t taps) const {
    return (size + 2 * pad - (taps - 1) * dilation - 1) / stride + 1;
  }
  Dims x() const { return {2, channels, height, width}; }
  Dims w() const { return {outs, channels / groups, taps_y, taps_x}; }
  Dims y() const { return {2, outs, positions(height, taps_y), positions(width, taps_x)}; }
  std::vector<Attr> attrs() const {
    return {{"pads", Dims{pad, pad, pad, pad}},
            {"strides", Dims{stride, stride}},
            {"dilations", Dims{dilation, dilation}},
            {"group", groups}};
  }
};

constexpr ConvShape kConvs[] = {
    {64, 32, 1, 14, 14, 3, 3, 1, 1, 1},   // rows of an image in two tiles
    {64, 40, 1, 9, 28, 3, 3, 1, 1, 1},    // a row in two tiles
    {320, 24, 1, 6, 17, 3, 3, 1, 1, 1},   // tiles of different height; several passes
    {3, 32, 1, 21, 30, 7, 7, 2, 3, 1},    // few channels
    {16, 16, 1, 8, 11, 3, 3, 1, 1, 1},    // a chunk is a row of taps
    {24, 16, 1, 8, 11, 5, 5, 1, 2, 1},    // channels fill up a line
    {32, 48, 1, 10, 10, 3, 3, 1, 2, 2},   // dilated
    {80, 16, 1, 7, 7, 1, 1, 1, 0, 1},     // lines of 48; positions are neighbours
    {256, 64, 1, 12, 12, 1, 1, 1, 0, 1},  // a single tap
    {128, 32, 1, 13, 15, 1, 1, 2, 0, 1},  // a tap that sees some of the pixels
    {96, 32, 2, 9, 9, 3, 3, 2, 1, 1},     // groups
    {7, 8, 1, 5, 40, 1, 17, 1, 0, 1},     // steps fill up a chunk
    {16, 16, 1, 30, 3, 3, 3, 1, 1, 1},    // too narrow for tiles
};

TEST_F(TileProducts, conv_integer) {
  int form = 0;
  for (const ConvShape& s : kConvs)
    for (const pfrt_dtype x : kBytes)
      for (const pfrt_dtype w : kBytes) {
        Case c;
        c.inputs = {numbers(x, s.x(), false), numbers(w, s.w(), true), zeros(x, 1, form / 2 % 2),
                    zeros(w, s.outs, form % 3)};
        c.outputs = {expected(PFRT_DTYPE_INT32, s.y(), {})};
        c.attrs = s.attrs();
        ++form;
        EXPECT_EQ(check("conv_integer_dots", "conv_integer_implicit_gemm", c), s.y()[3] >= 4)
            << c.text();
      }
}

TEST_F(TileProducts, qlinear_conv_on_any_number_of_threads) {
  int form = 0;
  for (const ConvShape& s : kConvs)
    for (const pfrt_dtype x : kBytes) {
      const pfrt_dtype w = kBytes[static_cast<size_t>(form / 2 % 2)],
                       y = kBytes[static_cast<size_t>(form / 4 % 2)];
      Case c;
      c.inputs = {
          numbers(x, s.x(), false),
          scale(0.01, {}),
          zeros(x, 1, 1),
          numbers(w, s.w(), true),
          scale(0.02, {s.outs}),
          zeros(w, s.outs, form % 3),
          scale(0.01 * static_cast<double>(s.channels / s.groups * s.taps_y * s.taps_x), {}),
          zeros(y, 1, 1)};
      if (form % 2 == 0) {
        c.inputs.push_back(random_.data(PFRT_DTYPE_INT32, {s.outs}, -2000, 2000));
      }
      c.outputs = {expected(y, s.y(), {})};
      c.attrs = s.attrs();
      ++form;
      const auto workers = static_cast<uint32_t>(1 + form % 3);
      EXPECT_EQ(check("qlinear_conv_dots", "qlinear_conv_implicit_gemm", c, workers), s.y()[3] >= 4)
          << c.text();
    }
}

// With weights of a few bits, results are equal without tiles and with them.
TEST_F(TileProducts, weights_of_a_few_bits_on_any_number_of_threads) {
  uint32_t form = 0;
  for (const int64_t bits : {2, 4, 8})
    for (const int64_t block : {16, 32, 64, 128, 256})
      for (const bool zero_points : {false, true}) {
        const int64_t m = 16 + 23 * (form % 5), n = 24 + 13 * (form % 4), k = 40 + 170 * (form % 3),
                      blocks = (k + block - 1) / block;
        Case c;
        c.inputs = {random_.data(PFRT_DTYPE_FLOAT32, {m, k}, -2, 2),
                    random_.data(PFRT_DTYPE_UINT8, {n, blocks, block * bits / 8}, 0, 255),
                    random_.data(PFRT_DTYPE_FLOAT32, {n, blocks}, -1, 1),
                    zero_points
                        ? random_.data(PFRT_DTYPE_UINT8, {n, (blocks * bits + 7) / 8}, 0, 255)
                        : Data{},
                    Data{},
                    form % 2 == 0 ? random_.data(PFRT_DTYPE_FLOAT32, {n}) : Data{}};
        for (size_t i = 1; i < 4; ++i) c.inputs[i].constant = true;
        c.attrs = {{"K", k},
                   {"N", n},
                   {"bits", bits},
                   {"block_size", block},
                   {"accuracy_level", int64_t{4}}};
        c.outputs = {expected(PFRT_DTYPE_FLOAT32, {m, n}, {})};
        const uint64_t before = TileEmulator::byte_products();
        const cpu::KernelRow& row = nbits_row();
        const Outcome tiles = run(row, c, {.workers = 1 + form % 3});
        EXPECT_TRUE(emulator_.native() ||
                    (TileEmulator::byte_products() > before) == (bits < 8 || !zero_points))
            << c.text();
        const Outcome vectors = in_vectors([&] { return run(row, c); });
        ++form;
        ASSERT_EQ(tiles.refused + tiles.fault + vectors.refused + vectors.fault, "") << c.text();
        EXPECT_EQ(std::memcmp(tiles.outputs[0].data(), vectors.outputs[0].data(),
                              tiles.outputs[0].size()),
                  0)
            << c.text();
      }
}

// Images of convolutions in nChw16c are copied to longer lines, or read in place.
TEST_F(TileProducts, nchw16c_has_the_bits_of_vectors) {
  Graph graph;
  const auto add = [&](Data data) { return graph.add(std::move(data)); };
  Dims dims{1, 64, 12, 24};
  uint32_t value = add(numbers(PFRT_DTYPE_UINT8, dims, false));
  const auto conv = [&](int64_t outs, int64_t taps_y, int64_t taps_x, int64_t pad, int64_t stride) {
    const ConvShape s{dims[1], outs, 1, dims[2], dims[3], taps_y, taps_x, stride, pad, 1};
    Data w = numbers(PFRT_DTYPE_INT8, s.w(), true);
    const auto sum_scale = 1 / (200 * std::sqrt(static_cast<double>(dims[1] * taps_y * taps_x)));
    dims = s.y();
    dims[0] = 1;
    const uint32_t one = add(scale(1, {}));
    const auto zero = [&](pfrt_dtype dtype, double point) {
      return add(Data{dtype, {}, {point}, true});
    };
    value =
        graph.add("QLinearConv",
                  {value, add(scale(sum_scale, {})), zero(PFRT_DTYPE_UINT8, 125), add(std::move(w)),
                   one, zero(PFRT_DTYPE_INT8, 1), one, zero(PFRT_DTYPE_UINT8, 130)},
                  dims, s.attrs());
    graph.values[value].dtype = PFRT_DTYPE_UINT8;
  };
  conv(96, 1, 1, 0, 1);
  conv(80, 3, 3, 1, 1);
  conv(16, 1, 1, 0, 1);
  conv(16, 3, 3, 0, 1);
  conv(64, 1, 17, 0, 1);
  conv(128, 1, 1, 0, 2);
  conv(32, 3, 3, 1, 1);
  graph.outputs = {value};
  const uint64_t before = TileEmulator::byte_products();
  const GraphOutcome tiles = run(graph, 2);
  ASSERT_EQ(tiles.fault, "");
  EXPECT_TRUE(TileEmulator::byte_products() > before || emulator_.native());
  const bool blocked = std::ranges::any_of(
      tiles.kernels, [](const std::string& name) { return name.find("nchw16c") != name.npos; });
  EXPECT_TRUE(blocked) << testing::PrintToString(tiles.kernels);
  const GraphOutcome vectors = in_vectors([&] { return run(graph); });
  ASSERT_EQ(vectors.fault, "");
  EXPECT_EQ(tiles.outputs, vectors.outputs);
  EXPECT_NE(std::ranges::adjacent_find(tiles.outputs[0], std::not_equal_to<>()),
            tiles.outputs[0].end());
}

}  // namespace
}  // namespace tile_products
}  // namespace pfrt::test

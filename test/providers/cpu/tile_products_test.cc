// SPDX-License-Identifier: Apache-2.0
//
// Whole products and convolutions of bytes on tiles, emulated where the machine has none, against
// the reference rows: the same bits.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/cases.h"
#include "test/providers/cpu/one_node.h"
#include "test/providers/cpu/tile_emulator.h"

namespace pfrt::test {
namespace tile_products {
namespace {

const cpu::KernelRow& row_named(std::string_view name) {
  for (std::span<const cpu::KernelRow> family : cpu::kernels())
    for (const cpu::KernelRow& row : family)
      if (row.name == name) return row;
  std::abort();
}

class TileProducts : public testing::Test {
 protected:
  void SetUp() override {
    if (cpu::isa() < cpu::Isa::kAmx)
      GTEST_SKIP() << "PFRT_ISA has no tiles, or the machine not what comes before them";
  }

  // Whether tiles were used, as far as can be told.
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
  // Of a row or a column each, of all, or none.
  Data zeros(pfrt_dtype dtype, int64_t lines, int form) {
    if (form == 0) return {};
    return numbers(dtype, form == 1 ? Dims{} : Dims{lines}, true);
  }
  static constexpr std::array<pfrt_dtype, 2> kBytes{PFRT_DTYPE_UINT8, PFRT_DTYPE_INT8};

  TileEmulator emulator_;
  Random random_{7};
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

}  // namespace
}  // namespace tile_products
}  // namespace pfrt::test

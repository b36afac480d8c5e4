// SPDX-License-Identifier: Apache-2.0
//
// Compares the emulator of tiles with plain loops. On a machine with tiles the machine itself is
// tested.
#include "test/providers/cpu/code/tile_emulator.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <limits>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "providers/cpu/isa/amx.h"

namespace pfrt::test {
namespace tile_emulator_test {
namespace {

// With PFRT_TEST_EMULATE_TILES=1 all tests of the process run as on a machine with tiles.
class EmulatedTiles : public testing::Environment {
  void SetUp() override {
    const char* const wanted = std::getenv("PFRT_TEST_EMULATE_TILES");
    if (wanted != nullptr && std::string_view(wanted) == "1")
      emulator_ = std::make_unique<TileEmulator>();
  }
  void TearDown() override {
    if (emulator_ != nullptr)
      std::cout << "tile instructions: " << TileEmulator::executed()
                << "; products of bytes: " << TileEmulator::byte_products()
                << "; of bfloat16: " << TileEmulator::bfloat16_products() << "\n";
    emulator_.reset();
  }

  std::unique_ptr<TileEmulator> emulator_;
};
[[maybe_unused]] testing::Environment* const emulated_tiles =
    testing::AddGlobalTestEnvironment(new EmulatedTiles);

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes[16] = {};
  uint8_t rows[16] = {};

  void set(int tile, int tile_rows, int tile_bytes) {
    rows[tile] = static_cast<uint8_t>(tile_rows);
    bytes[tile] = static_cast<uint16_t>(tile_bytes);
  }
};

void load_config(const TileConfig& config) { __asm__ volatile("ldtilecfg %0" ::"m"(config)); }
void release_tiles() { __asm__ volatile("tilerelease"); }

class TileEmulatorTest : public testing::Test {
 protected:
  void SetUp() override {
    emulator_ = std::make_unique<TileEmulator>();
    if (!cpu::amx_usable()) GTEST_SKIP() << "PFRT_ISA excludes tiles";
  }
  void TearDown() override {
    if (cpu::amx_usable()) release_tiles();
  }

  std::vector<uint8_t> bytes(size_t n) {
    std::vector<uint8_t> out(n);
    for (uint8_t& x : out) x = static_cast<uint8_t>(random_());
    return out;
  }
  int upto(int n) { return 1 + static_cast<int>(random_() % static_cast<uint64_t>(n)); }

  std::unique_ptr<TileEmulator> emulator_;
  std::mt19937_64 random_{1};
};

enum class Signs { kUnsigned, kOfB, kOfA, kBoth };

void multiply(Signs signs) {
  switch (signs) {
    case Signs::kUnsigned:
      __asm__ volatile("tdpbuud %tmm7, %tmm3, %tmm1");
      break;
    case Signs::kOfB:
      __asm__ volatile("tdpbusd %tmm7, %tmm3, %tmm1");
      break;
    case Signs::kOfA:
      __asm__ volatile("tdpbsud %tmm7, %tmm3, %tmm1");
      break;
    case Signs::kBoth:
      __asm__ volatile("tdpbssd %tmm7, %tmm3, %tmm1");
      break;
  }
}

TEST_F(TileEmulatorTest, multiplies_bytes_of_any_sign_in_tiles_of_any_shape) {
  for (int i = 0; i < 200; ++i) {
    const auto signs = static_cast<Signs>(i % 4);
    const int m = upto(16), k = upto(16), n = upto(16);
    const size_t a_row = 4 * static_cast<size_t>(k) + random_() % 9, b_row = 64 + random_() % 5,
                 c_row = 64 + random_() % 7;
    const std::vector<uint8_t> a = bytes(16 * a_row + 64), b = bytes(16 * b_row + 64);
    std::vector<uint8_t> c = bytes(16 * c_row + 64), want = c;
    for (size_t r = 0; r < static_cast<size_t>(m); ++r)
      for (size_t j = 0; j < static_cast<size_t>(n); ++j) {
        uint32_t sum;
        std::memcpy(&sum, &want[r * c_row + 4 * j], 4);
        for (size_t l = 0; l < 4 * static_cast<size_t>(k); ++l) {
          const uint8_t x = a[r * a_row + l], y = b[l / 4 * b_row + 4 * j + l % 4];
          const bool x_signed = signs == Signs::kOfA || signs == Signs::kBoth,
                     y_signed = signs == Signs::kOfB || signs == Signs::kBoth;
          sum += static_cast<uint32_t>((x_signed ? static_cast<int8_t>(x) : int{x}) *
                                       (y_signed ? static_cast<int8_t>(y) : int{y}));
        }
        std::memcpy(&want[r * c_row + 4 * j], &sum, 4);
      }
    TileConfig config;
    config.set(1, m, 4 * n), config.set(3, m, 4 * k), config.set(7, k, 4 * n);
    load_config(config);
    __asm__ volatile("tileloadd (%0,%1), %%tmm1" ::"r"(c.data()), "r"(c_row) : "memory");
    __asm__ volatile("tileloaddt1 (%0,%1), %%tmm3" ::"r"(a.data()), "r"(a_row) : "memory");
    __asm__ volatile("tileloadd (%0,%1), %%tmm7" ::"r"(b.data()), "r"(b_row) : "memory");
    multiply(signs);
    __asm__ volatile("tilestored %%tmm1, (%0,%1)" ::"r"(c.data()), "r"(c_row) : "memory");
    ASSERT_EQ(c, want) << m << " x " << k << " x " << n << ", signs " << i % 4;
  }
}

// The tile does not depend on the registers and displacements of the address.
TEST_F(TileEmulatorTest, addresses_in_all_their_forms) {
  TileConfig config;
  config.set(2, 5, 12);
  load_config(config);
  const std::vector<uint8_t> from = bytes(4096);
  const auto loaded = [&] {
    std::vector<uint8_t> out(5 * 12);
    __asm__ volatile("tilestored %%tmm2, (%0,%1)" ::"r"(out.data()), "r"(int64_t{12}) : "memory");
    return out;
  };
  const auto want = [&](size_t at, size_t stride) {
    std::vector<uint8_t> out;
    for (size_t r = 0; r < 5; ++r)
      out.insert(out.end(), &from[at + r * stride], &from[at + r * stride + 12]);
    return out;
  };
  const uint8_t* const base = from.data();
  const int64_t seven = 7;
  __asm__ volatile("tileloadd (%0,%1,8), %%tmm2" ::"r"(base), "r"(seven) : "memory");
  EXPECT_EQ(loaded(), want(0, 56));
  __asm__ volatile("mov %0, %%r13; mov %1, %%r12; tileloadd 100(%%r13,%%r12,2), %%tmm2" ::"r"(base),
                   "r"(seven)
                   : "memory", "r12", "r13");
  EXPECT_EQ(loaded(), want(100, 14));
  __asm__ volatile("mov %0, %%r12; mov %1, %%r13; tileloadd 1000(%%r12,%%r13), %%tmm2" ::"r"(base),
                   "r"(seven)
                   : "memory", "r12", "r13");
  EXPECT_EQ(loaded(), want(1000, 7));
  __asm__ volatile("tileloadd -8(%0,%1,4), %%tmm2" ::"r"(base + 8), "r"(-seven + 14) : "memory");
  EXPECT_EQ(loaded(), want(0, 28));
  // Without an index all rows are equal.
  __asm__ volatile("tileloadd 50(%0), %%tmm2" ::"r"(base) : "memory");
  EXPECT_EQ(loaded(), want(50, 0));
}

TEST_F(TileEmulatorTest, a_new_configuration_and_tilezero_clear) {
  TileConfig config;
  config.set(0, 16, 64), config.set(5, 3, 8);
  load_config(config);
  const std::vector<uint8_t> ones(1024, 1), zeros(1024);
  std::vector<uint8_t> out(1024, 2);
  const auto store = [&] {
    __asm__ volatile("tilestored %%tmm0, (%0,%1)" ::"r"(out.data()), "r"(int64_t{64}) : "memory");
  };
  const auto load = [&] {
    __asm__ volatile("tileloadd (%0,%1), %%tmm0" ::"r"(ones.data()), "r"(int64_t{64}) : "memory");
  };
  load();
  store();
  EXPECT_EQ(out, ones);
  __asm__ volatile("tilezero %tmm0");
  store();
  EXPECT_EQ(out, zeros);
  load();
  load_config(config);
  store();
  EXPECT_EQ(out, zeros);
}

uint16_t bfloat16(float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); }

// Returns |sum| plus the product of a row and a column of pairs.
float product_of_pairs(const std::vector<float>& a, const std::vector<float>& b, float sum) {
  alignas(64) uint16_t rows[32] = {}, columns[16][32] = {};
  for (size_t i = 0; i < a.size(); ++i) {
    rows[i] = bfloat16(a[i]);
    columns[i / 2][i % 2] = bfloat16(b[i]);
  }
  TileConfig config;
  const int steps = static_cast<int>(a.size() / 2);
  config.set(1, 1, 4), config.set(3, 1, 4 * steps), config.set(7, steps, 4);
  load_config(config);
  float c[16] = {sum};
  __asm__ volatile("tileloadd (%0), %%tmm1" ::"r"(c) : "memory");
  __asm__ volatile("tileloadd (%0), %%tmm3" ::"r"(rows) : "memory");
  __asm__ volatile("tileloadd (%0,%1), %%tmm7" ::"r"(columns), "r"(int64_t{64}) : "memory");
  __asm__ volatile("tdpbf16ps %tmm7, %tmm3, %tmm1");
  __asm__ volatile("tilestored %%tmm1, (%0)" ::"r"(c) : "memory");
  return c[0];
}

TEST_F(TileEmulatorTest, pairs_of_bfloat16_are_rounded_in_the_order_of_the_manual) {
  EXPECT_EQ(product_of_pairs({1, 2, 3, 4}, {5, 6, 7, 8}, 0.5f), 70.5f);
  // First and second products of all pairs are summed separately: 1 is lost beside 2^24, 1 + 1 is
  // not.
  EXPECT_EQ(product_of_pairs({16777216, 1, 1, 1}, {1, 1, 1, 1}, 0), 16777218.0f);
  // A product is not rounded before it is added.
  const float x = 1 + 0x1p-7f;
  EXPECT_EQ(product_of_pairs({1, 0, x, 0}, {-1, 0, x, 0}, 0), 0x1p-6f + 0x1p-14f);
  // Numbers below the normal range are 0, as factors and as sums.
  const float least = std::numeric_limits<float>::min();
  EXPECT_EQ(product_of_pairs({least / 2, 0}, {1024, 0}, 0), 0);
  EXPECT_EQ(product_of_pairs({least, 0}, {0.5f, 0}, 0), 0);
  EXPECT_EQ(product_of_pairs({least, 0}, {2, 0}, 0), 2 * least);
  EXPECT_EQ(product_of_pairs({1, 0}, {0, 0}, least / 2), 0);
}

TEST_F(TileEmulatorTest, counts_what_it_carries_out) {
  const uint64_t all = TileEmulator::executed(), pairs = TileEmulator::bfloat16_products();
  product_of_pairs({1, 1}, {1, 1}, 0);
  EXPECT_EQ(TileEmulator::executed() - all, emulator_->native() ? 0u : 6u);
  EXPECT_EQ(TileEmulator::bfloat16_products() - pairs, emulator_->native() ? 0u : 1u);
}

using TileEmulatorDeathTest = TileEmulatorTest;

TEST_F(TileEmulatorDeathTest, what_no_machine_knows_is_still_illegal) {
  EXPECT_EXIT(__asm__ volatile("ud2"), testing::KilledBySignal(SIGILL), "");
  // tdpbssd with VEX.W
  EXPECT_EXIT(__asm__ volatile(".byte 0xc4, 0xe2, 0xc3, 0x5e, 0xcb"),
              testing::KilledBySignal(SIGILL), "");
}

TEST_F(TileEmulatorDeathTest, tiles_that_are_not_configured_are_illegal) {
  EXPECT_EXIT((release_tiles(), multiply(Signs::kBoth)), testing::KilledBySignal(SIGILL), "");
}

TEST_F(TileEmulatorDeathTest, shapes_that_do_not_fit_are_illegal) {
  TileConfig config;
  config.set(1, 4, 16), config.set(3, 4, 8), config.set(7, 3, 16);
  EXPECT_EXIT((load_config(config), multiply(Signs::kBoth)), testing::KilledBySignal(SIGILL), "");
  config.set(7, 2, 12);
  EXPECT_EXIT((load_config(config), multiply(Signs::kBoth)), testing::KilledBySignal(SIGILL), "");
  config.set(7, 2, 16), config.set(3, 3, 8);
  EXPECT_EXIT((load_config(config), multiply(Signs::kBoth)), testing::KilledBySignal(SIGILL), "");
}

}  // namespace
}  // namespace tile_emulator_test
}  // namespace pfrt::test

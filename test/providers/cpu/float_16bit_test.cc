// SPDX-License-Identifier: Apache-2.0
//
// Conversions of lines of float16 and bfloat16 have the bits of single conversions, and touch
// nothing else.
#include "providers/cpu/elements/float_16bit.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "core/base/half.h"
#include "test/providers/cpu/guarded.h"

namespace pfrt::test {
namespace {

struct Type {
  pfrt_dtype dtype;
  float (*widen)(uint16_t);
  uint16_t (*narrow)(float);
};
constexpr Type kTypes[] = {{PFRT_DTYPE_FLOAT16, float16_to_float, float_to_float16},
                           {PFRT_DTYPE_BFLOAT16, bfloat16_to_float, float_to_bfloat16}};

TEST(Float16Bit, every_number_is_widened_as_one_is) {
  std::vector<uint16_t> in(0x10000);
  std::iota(in.begin(), in.end(), uint16_t{0});
  std::vector<float> out(in.size());
  for (const Type& type : kTypes) {
    cpu::widen_fn(type.dtype)(in.data(), out.data(), static_cast<int64_t>(in.size()));
    for (size_t i = 0; i < in.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(out[i]), std::bit_cast<uint32_t>(type.widen(in[i])))
          << "type " << type.dtype << ", bits " << in[i];
  }
}

TEST(Float16Bit, numbers_are_rounded_as_one_is) {
  std::mt19937 random(1);
  std::vector<float> in;
  for (uint32_t high = 0; high < 0x10000; ++high)
    for (const uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu,
                               static_cast<uint32_t>(random() & 0xffff), 0x1000u, 0x2000u, 0x3000u})
      in.push_back(std::bit_cast<float>(high << 16 | low));
  std::vector<uint16_t> out(in.size());
  for (const Type& type : kTypes) {
    cpu::narrow_fn(type.dtype)(in.data(), out.data(), static_cast<int64_t>(in.size()));
    for (size_t i = 0; i < in.size(); ++i)
      ASSERT_EQ(out[i], type.narrow(in[i]))
          << "type " << type.dtype << ", bits " << std::bit_cast<uint32_t>(in[i]);
  }
}

TEST(Float16Bit, lines_of_any_length_stay_in_their_memory) {
  for (const Type& type : kTypes)
    for (size_t n = 0; n <= 33; ++n)
      for (const Placed placed : {Placed::kAtEnd, Placed::kAtStart}) {
        Guarded memory(n * sizeof(uint16_t), placed, sizeof(uint16_t));
        Guarded floats(n * sizeof(float), placed, sizeof(float));
        auto* const short_floats = reinterpret_cast<uint16_t*>(memory.data());
        auto* const wide = reinterpret_cast<float*>(floats.data());
        for (size_t i = 0; i < n; ++i) short_floats[i] = type.narrow(static_cast<float>(i) - 7.5f);
        cpu::widen_fn(type.dtype)(short_floats, wide, static_cast<int64_t>(n));
        for (size_t i = 0; i < n; ++i) ASSERT_EQ(wide[i], type.widen(short_floats[i])) << n;
        const std::vector<uint16_t> before(short_floats, short_floats + n);
        for (size_t i = 0; i < n; ++i) short_floats[i] = 0;
        cpu::narrow_fn(type.dtype)(wide, short_floats, static_cast<int64_t>(n));
        ASSERT_EQ(std::vector<uint16_t>(short_floats, short_floats + n), before) << n;
      }
}

TEST(Float16Bit, other_types_have_no_lines) {
  EXPECT_EQ(cpu::widen_fn(PFRT_DTYPE_FLOAT32), nullptr);
  EXPECT_EQ(cpu::narrow_fn(PFRT_DTYPE_INT16), nullptr);
}

}  // namespace
}  // namespace pfrt::test

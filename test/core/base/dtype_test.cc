// SPDX-License-Identifier: Apache-2.0
#include "core/base/dtype.h"

#include <gtest/gtest.h>

#include <vector>

namespace pfrt {
namespace {

TEST(Dtype, every_row_of_the_table_is_found_by_name) {
#define PFRT_X(name, number, guide, bits, phrase, onnx) \
  EXPECT_TRUE(dtype_known(PFRT_DTYPE_##name));          \
  EXPECT_EQ(dtype_name(PFRT_DTYPE_##name), phrase);     \
  EXPECT_EQ(dtype_onnx_name(PFRT_DTYPE_##name), onnx);  \
  EXPECT_EQ(dtype_from_name(phrase), pfrt_dtype{PFRT_DTYPE_##name});
  PFRT_DTYPE_TABLE(PFRT_X)
#undef PFRT_X
  EXPECT_FALSE(dtype_known(0));
  EXPECT_FALSE(dtype_known(27));
  EXPECT_EQ(dtype_from_name("float31"), 0u);
  EXPECT_EQ(dtype_size(PFRT_DTYPE_INT4), 0u);
  EXPECT_EQ(dtype_size(PFRT_DTYPE_COMPLEX128), 16u);
}

int64_t count(const std::vector<int64_t>& dims) { return element_count(dims.data(), dims.size()); }

TEST(Dtype, counts_elements_without_overflow) {
  EXPECT_EQ(count({}), 1);
  EXPECT_EQ(count({2, 3}), 6);
  EXPECT_EQ(count({2, 0, 3}), 0);
  EXPECT_EQ(count({-1}), -1);
  EXPECT_EQ(count({0, -1}), -1);
  EXPECT_EQ(count({-1, 0}), -1);
  EXPECT_EQ(count({int64_t{1} << 32, int64_t{1} << 32}), -1);
  EXPECT_EQ(count({INT64_MAX, INT64_MAX}), -1);
  EXPECT_EQ(count({INT64_MIN}), -1);
}

TEST(Dtype, bytes_of_packed_elements_round_up) {
  EXPECT_EQ(tensor_bytes(PFRT_DTYPE_INT4, 5), 3u);
  EXPECT_EQ(tensor_bytes(PFRT_DTYPE_UINT2, 5), 2u);
  EXPECT_EQ(tensor_bytes(PFRT_DTYPE_FLOAT32, 5), 20u);
  EXPECT_EQ(tensor_bytes(PFRT_DTYPE_BOOL, 0), 0u);
  EXPECT_EQ(tensor_bytes(99, 1), UINT64_MAX);
  EXPECT_EQ(tensor_bytes(PFRT_DTYPE_COMPLEX128, int64_t{1} << 61), UINT64_MAX);
}

}  // namespace
}  // namespace pfrt

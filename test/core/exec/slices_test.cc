// SPDX-License-Identifier: Apache-2.0
#include "core/exec/host/slices.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace pfrt {
namespace {

constexpr int kCases = 500;

// Returns element |i| of a tensor as a text, for any type; all types here hold 0 to 15, or a text.
std::string element(const Tensor& t, int64_t i) {
  const auto at = static_cast<size_t>(i);
  if (t.dtype == PFRT_DTYPE_STRING) return std::string(view(t.strings()[at]));
  const uint8_t* bytes = t.as<uint8_t>();
  if (t.dtype == PFRT_DTYPE_UINT4) return std::to_string(bytes[at / 2] >> (at % 2 * 4) & 15);
  if (t.dtype == PFRT_DTYPE_UINT8) return std::to_string(bytes[at]);
  return std::to_string(t.as<int64_t>()[at]);
}

Tensor tensor(pfrt_dtype dtype, const Dims& dims, std::mt19937& random) {
  Tensor t = Tensor::allocate(dtype, dims).take();
  for (int64_t i = 0; i < t.count(); ++i) {
    const auto at = static_cast<size_t>(i);
    const auto value = static_cast<uint8_t>(random() % 4);
    if (dtype == PFRT_DTYPE_STRING) {
      EXPECT_TRUE(t.buffer->set_string(at, std::string(value, 'x') + std::to_string(i)).ok());
    } else if (dtype == PFRT_DTYPE_UINT4) {
      t.as<uint8_t>()[at / 2] =
          static_cast<uint8_t>(t.as<uint8_t>()[at / 2] | (value + 7) << (at % 2 * 4));
    } else if (dtype == PFRT_DTYPE_UINT8) {
      t.as<uint8_t>()[at] = value;
    } else {
      t.as<int64_t>()[at] = value;
    }
  }
  return t;
}

// Returns the place of an index in row-major order.
int64_t place(const Dims& dims, const Dims& index) {
  int64_t at = 0;
  for (size_t i = 0; i < dims.size(); ++i) at = at * dims[i] + index[i];
  return at;
}

// Calls |visit| with every index of |dims|.
template <typename Visit>
void for_each_index(const Dims& dims, Visit visit) {
  const int64_t count = element_count(dims.data(), dims.size());
  Dims index(dims.size());
  for (int64_t i = 0; i < count; ++i) {
    visit(index);
    for (size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
}

const RunControl control;  // nobody stops it

constexpr pfrt_dtype kTypes[] = {PFRT_DTYPE_UINT8, PFRT_DTYPE_INT64, PFRT_DTYPE_UINT4,
                                 PFRT_DTYPE_STRING};

TEST(Slices, of_a_tensor_make_it_again) {
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Dims dims(random() % 3 + 1);
    for (int64_t& d : dims) d = static_cast<int64_t>(random() % 4 + 1);
    const size_t axis = random() % dims.size();
    const Tensor whole = tensor(kTypes[seed % 4], dims, random);
    const int64_t begin = static_cast<int64_t>(random()) % dims[axis];
    auto first = slice(control, whole, axis, 0, begin),
         second = slice(control, whole, axis, begin, dims[axis] - begin);
    ASSERT_TRUE(first.ok() && second.ok());
    for_each_index(second->dims, [&](const Dims& index) {
      Dims there = index;
      there[axis] += begin;
      EXPECT_EQ(element(*second, place(second->dims, index)), element(whole, place(dims, there)));
    });
    const Tensor parts[] = {first.take(), second.take()};
    auto again = concat(control, parts, axis);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->dims, dims);
    for (int64_t i = 0; i < whole.count(); ++i) EXPECT_EQ(element(*again, i), element(whole, i));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Slices, a_stack_puts_slices_along_an_axis) {
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Dims dims(random() % 3);
    for (int64_t& d : dims) d = static_cast<int64_t>(random() % 4);
    const int64_t count = static_cast<int64_t>(random() % 4 + 1);
    const auto axis = static_cast<size_t>(random() % (dims.size() + 1));
    const bool back = random() % 2, counted = back || random() % 2;
    const int64_t written =
        static_cast<int64_t>(axis) - (random() % 2 ? static_cast<int64_t>(dims.size()) + 1 : 0);
    Stack stack(counted ? count : -1, written, back);
    std::vector<Tensor> slices;
    for (int64_t t = 0; t < count; ++t) {
      slices.push_back(tensor(kTypes[seed % 4], dims, random));
      ASSERT_TRUE(stack.add(*Value::of(slices.back())).ok());
    }
    auto whole = stack.finish(control, {});
    ASSERT_TRUE(whole.ok());
    Dims expected = dims;
    expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(axis), count);
    ASSERT_EQ(whole->dims, expected);
    for_each_index(expected, [&](const Dims& index) {
      Dims inside = index;
      inside.erase(inside.begin() + static_cast<std::ptrdiff_t>(axis));
      const auto t = static_cast<size_t>(back ? count - 1 - index[axis] : index[axis]);
      EXPECT_EQ(element(*whole, place(expected, index)), element(slices[t], place(dims, inside)));
    });
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Slices, of_nothing_take_no_time) {
  auto nothing = Tensor::allocate(PFRT_DTYPE_FLOAT32, {int64_t{1} << 40, 0});
  ASSERT_TRUE(nothing.ok());
  EXPECT_EQ(slice(control, *nothing, 1, 0, 0)->dims, nothing->dims);
  const Tensor parts[] = {*nothing, *nothing};
  EXPECT_EQ(concat(control, parts, 1)->dims, nothing->dims);
  Stack stack(-1, 1, false);
  ASSERT_TRUE(stack.add(*Value::of(*nothing)).ok());
  EXPECT_EQ(stack.finish(control, {})->dims, (Dims{int64_t{1} << 40, 1, 0}));
}

TEST(Slices, end_with_the_run) {
  const uint32_t cancelled = 1;
  RunControl stopped;
  stopped.cancelled = &cancelled;
  std::mt19937 random(1);
  const Tensor narrow = tensor(PFRT_DTYPE_UINT8, {100'000, 2}, random);
  EXPECT_EQ(slice(stopped, narrow, 1, 0, 1).status().code(), Code::kCANCELLED);
  const Tensor parts[] = {narrow, narrow};
  EXPECT_EQ(concat(stopped, parts, 1).status().code(), Code::kCANCELLED);
  Stack stack(2, 1, false);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(stack.add(*Value::of(narrow)).ok());
  EXPECT_EQ(stack.finish(stopped, {}).status().code(), Code::kCANCELLED);
}

TEST(Slices, slices_of_two_shapes_are_refused) {
  std::mt19937 random(1);
  for (const int64_t count : {int64_t{-1}, int64_t{2}}) {
    Stack stack(count, 0, false);
    ASSERT_TRUE(stack.add(*Value::of(tensor(PFRT_DTYPE_UINT8, {2}, random))).ok());
    const Status status = stack.add(*Value::of(tensor(PFRT_DTYPE_UINT8, {3}, random)));
    ASSERT_EQ(status.code(), Code::kSHAPE_MISMATCH);
    EXPECT_NE(status.message().find("uint8[3]"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("uint8[2]"), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace pfrt

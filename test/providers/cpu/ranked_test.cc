// SPDX-License-Identifier: Apache-2.0
//
// Kernels that rank, look up or put single elements: TopK, NonMaxSuppression, NonZero,
// GatherElements and ScatterElements, with what sorts and compares in its own way.
#include "providers/cpu/elements/ranked.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/cases/cases.h"

namespace pfrt::test::ranking {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

const cpu::KernelRow& row_named(std::string_view name) {
  for (const auto family : cpu::kernels())
    for (const cpu::KernelRow& row : family)
      if (row.name == name) return row;
  throw std::runtime_error(std::string(name));
}

TEST(Ranked, integers_order_as_numbers_do) {
  const float in_order[] = {-INFINITY, -1e30f, -1, -1e-40f, 0, 1e-40f, 1, 1e30f, INFINITY, NAN};
  for (size_t i = 0; i + 1 < std::size(in_order); ++i)
    EXPECT_LT(cpu::ordered_bits(in_order[i]), cpu::ordered_bits(in_order[i + 1])) << in_order[i];
  EXPECT_EQ(cpu::ordered_bits(0.0f), cpu::ordered_bits(-0.0f));
  EXPECT_EQ(cpu::ordered_bits(NAN), cpu::ordered_bits(-NAN));
  EXPECT_LT(cpu::ranked(2, true, 7), cpu::ranked(1, true, 3));
  EXPECT_LT(cpu::ranked(1, false, 7), cpu::ranked(2, false, 3));
  EXPECT_LT(cpu::ranked(1, true, 3), cpu::ranked(1, true, 7));
  EXPECT_EQ(cpu::index_of(cpu::ranked(-3, true, 0xffffffff)), 0xffffffff);
}

TEST(TopK, lines_with_equal_numbers_and_nan) {
  Random random(11);
  for (const int64_t n : {1, 7, 300, 5000, 40000})
    for (const int64_t k : {int64_t{0}, int64_t{1}, n / 3, n})
      for (const int64_t largest : {0, 1})
        for (const bool rising : {false, true}) {
          Data x{PFRT_DTYPE_FLOAT32, {n}, {}};
          const double special[] = {0, -0.0, kNaN, kInfinity, -kInfinity, 1, 2};
          for (int64_t i = 0; i < n; ++i)
            x.values.push_back(rising              ? static_cast<double>(i / 2)
                               : random.once_in(3) ? special[random.below(7)]
                                                   : static_cast<double>(random.below(n)));
          std::vector<int64_t> order(static_cast<size_t>(n));
          std::iota(order.begin(), order.end(), 0);
          std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
            if (largest == 0) std::swap(i, j);
            const double a = x.values[static_cast<size_t>(i)], b = x.values[static_cast<size_t>(j)];
            if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
            return a > b;
          });
          Case c;
          c.inputs = {x, integers({1}, {k})};
          c.attrs = {{"largest", largest}};
          Values values, indices;
          for (int64_t i = 0; i < k; ++i) {
            const int64_t at = order[static_cast<size_t>(i)];
            values.push_back(x.values[static_cast<size_t>(at)]);
            indices.push_back(static_cast<double>(at));
          }
          c.outputs = {{PFRT_DTYPE_FLOAT32, {k}, values}, {PFRT_DTYPE_INT64, {k}, indices}};
          const Outcome got = run(row_named("top_k_select"), c);
          ASSERT_EQ(got.refused + got.fault, "");
          ASSERT_EQ(load(PFRT_DTYPE_INT64, got.outputs[1].data(), indices.size()), indices)
              << n << " " << k << " " << largest;
        }
}

double overlap_of(const double* a, const double* b) {
  const auto low = [](const double* box, int d) { return std::min(box[d], box[d + 2]); };
  const auto high = [](const double* box, int d) { return std::max(box[d], box[d + 2]); };
  double shared = 1, areas[] = {1, 1};
  for (int d = 0; d < 2; ++d) {
    shared *= std::max(0.0, std::min(high(a, d), high(b, d)) - std::max(low(a, d), low(b, d)));
    areas[0] *= high(a, d) - low(a, d);
    areas[1] *= high(b, d) - low(b, d);
  }
  return shared > 0 ? shared / (areas[0] + areas[1] - shared) : 0;
}

// Corners are multiples of 1/8 below 64, so that overlaps are the same in float32 but for one
// rounding, which no threshold is near.
TEST(NonMaxSuppression, many_boxes_are_taken_as_one_by_one) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const int64_t n = random.from_to(1, 400);
    Data boxes{PFRT_DTYPE_FLOAT32, {1, n, 4}, {}}, scores{PFRT_DTYPE_FLOAT32, {1, 1, n}, {}};
    for (int64_t i = 0; i < 4 * n; ++i)
      boxes.values.push_back(static_cast<double>(random.below(512)) / 8);
    for (int64_t i = 0; i < n; ++i)
      scores.values.push_back(random.once_in(20)   ? kNaN
                              : random.once_in(10) ? 0.5
                                                   : static_cast<double>(random.below(100)) / 128);
    const double threshold = rounded(PFRT_DTYPE_FLOAT32, {random.uniform(0.05, 0.6)})[0];
    std::vector<int64_t> order;
    for (int64_t i = 0; i < n; ++i)
      if (!std::isnan(scores.values[static_cast<size_t>(i)])) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
      return scores.values[static_cast<size_t>(i)] > scores.values[static_cast<size_t>(j)];
    });
    Values kept;
    std::vector<int64_t> taken;
    for (const int64_t i : order) {
      if (std::any_of(taken.begin(), taken.end(), [&](int64_t j) {
            return overlap_of(&boxes.values[static_cast<size_t>(4 * i)],
                              &boxes.values[static_cast<size_t>(4 * j)]) > threshold;
          }))
        continue;
      taken.push_back(i);
      kept.insert(kept.end(), {0, 0, static_cast<double>(i)});
    }
    Case c;
    c.inputs = {boxes, scores, integers({1}, {n}), {PFRT_DTYPE_FLOAT32, {1}, {threshold}}};
    c.outputs = {{PFRT_DTYPE_INT64, {static_cast<int64_t>(taken.size()), 3}, kept, false, true}};
    const Outcome got = run(row_named("non_max_suppression_ref"), c);
    ASSERT_EQ(got.refused + got.fault, "");
    ASSERT_EQ(difference(c, got), "") << seed;
  }
}

TEST(NonMaxSuppression, boxes_of_nan_and_infinite_ones_overlap_nothing) {
  Data boxes{PFRT_DTYPE_FLOAT32, {1, 24, 4}, {}}, scores{PFRT_DTYPE_FLOAT32, {1, 1, 24}, {}};
  Values kept;
  for (int i = 0; i < 24; ++i) {
    const double odd[] = {kNaN, kInfinity, 1};
    for (int d = 0; d < 4; ++d) boxes.values.push_back(i % 4 == 3 ? d / 2 : odd[i % 3]);
    scores.values.push_back(1 - i / 32.0);
    if (i % 4 != 3 || i == 3) kept.insert(kept.end(), {0, 0, static_cast<double>(i)});
  }
  Case c;
  c.inputs = {boxes, scores, integers({1}, {100}), {PFRT_DTYPE_FLOAT32, {1}, {0.5}}};
  c.outputs = {{PFRT_DTYPE_INT64, {static_cast<int64_t>(kept.size()) / 3, 3}, kept, false, true}};
  const Outcome got = run(row_named("non_max_suppression_ref"), c);
  ASSERT_EQ(got.refused + got.fault, "");
  EXPECT_EQ(difference(c, got), "");
}

TEST(NonZero, sparse_elements_of_bytes_and_floats) {
  for (const pfrt_dtype dtype :
       {PFRT_DTYPE_BOOL, PFRT_DTYPE_UINT8, PFRT_DTYPE_INT8, PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16})
    for (const int64_t once : {1, 3, 50, 100000})
      for (const Dims& dims :
           {Dims{3, 1, 7}, Dims{40000}, Dims{41, 997}, Dims{5, 0}, Dims{9, 3, 4, 11}}) {
        Random random(12);
        const size_t n = static_cast<size_t>(count(dims));
        Data x{dtype, dims, Values(n)};
        for (double& v : x.values)
          v = random.once_in(once) ? 1 : dtype == PFRT_DTYPE_FLOAT16 ? -0.0 : 0;
        std::vector<Values> columns(dims.size());
        for_each_index(dims, [&](const Dims& at) {
          if (x.values[position(at, dims)] == 0) return;
          for (size_t d = 0; d < dims.size(); ++d) columns[d].push_back(static_cast<double>(at[d]));
        });
        Case c;
        Values all;
        for (const Values& column : columns) all.insert(all.end(), column.begin(), column.end());
        c.inputs = {x};
        c.outputs = {{PFRT_DTYPE_INT64,
                      {static_cast<int64_t>(dims.size()), static_cast<int64_t>(columns[0].size())},
                      all,
                      false,
                      true}};
        const Outcome got = run(row_named("non_zero_sets"), c, {.workers = 3});
        ASSERT_EQ(got.refused + got.fault, "") << c.text();
        ASSERT_EQ(difference(c, got), "") << c.text();
      }
}

// Rows of the last two dimensions have one index each, but for some in which one element differs.
TEST(ElementIndices, slices_and_slices_with_another_element_are_scattered) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const pfrt_dtype types[] = {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16, PFRT_DTYPE_INT64,
                                PFRT_DTYPE_UINT8};
    const pfrt_dtype dtype = types[random.below(4)];
    const int64_t outer = random.from_to(1, 3), size = random.from_to(1, 6),
                  updates = random.from_to(1, 8), a = random.from_to(1, 20),
                  b = random.once_in(5) ? 300 : random.from_to(1, 20);
    const Dims in{outer, size, a, b}, some{outer, updates, a, b};
    const bool adds = random.once_in(2);
    const Data x = random.data(dtype, in, 0, 15), u = random.data(dtype, some, 0, 15);
    Data indices{random.once_in(2) ? PFRT_DTYPE_INT64 : PFRT_DTYPE_INT32, some, {}};
    for (int64_t row = 0; row < outer * updates; ++row) {
      const double index = static_cast<double>(random.from_to(-size, size - 1));
      indices.values.insert(indices.values.end(), static_cast<size_t>(a * b), index);
      if (random.once_in(3))
        indices.values[indices.values.size() - 1 - static_cast<size_t>(random.below(a * b))] =
            static_cast<double>(random.from_to(-size, size - 1));
    }
    Values y = x.values;
    for_each_index(some, [&](const Dims& at) {
      Dims to = at;
      const double index = indices.values[position(at, some)];
      to[1] = static_cast<int64_t>(index < 0 ? index + static_cast<double>(size) : index);
      double& element = y[position(to, in)];
      element = u.values[position(at, some)] + (adds ? element : 0);
    });
    Case c;
    c.inputs = {x, indices, u};
    c.outputs = {{x.dtype, in, y}};
    c.attrs = {{"axis", int64_t{1}}, {"reduction", std::string(adds ? "add" : "none")}};
    c.absolute = adds ? 200 * epsilon(dtype) : 0;
    const Outcome got = run(row_named("scatter_elements_ref"), c, {.workers = 3});
    ASSERT_EQ(got.refused + got.fault, "") << c.text();
    ASSERT_EQ(difference(c, got), "") << c.text();
    for (const bool whole_row : {true, false}) {
      const size_t bad = static_cast<size_t>(random.below(outer * updates) * a * b);
      for (size_t i = bad; i < bad + static_cast<size_t>(whole_row ? a * b : 1); ++i)
        c.inputs[1].values[i] = static_cast<double>(size);
      const Outcome failed = run(row_named("scatter_elements_ref"), c);
      EXPECT_NE(failed.fault.find("ScatterElements: index " + std::to_string(size) + " (element "),
                failed.fault.npos)
          << failed.fault;
    }
  }
}

// Indices are looked through in pieces.
TEST(ElementIndices, the_first_that_is_outside_is_named) {
  const int64_t n = 300000;
  for (const bool scatter : {false, true})
    for (const int64_t at : {0, 262143, 262144, 299999})
      for (const double bad : {5.0, -6.0}) {
        Case c;
        Data indices{at % 2 == 0 ? PFRT_DTYPE_INT64 : PFRT_DTYPE_INT32, {n}, Values(n, -5)};
        indices.values[static_cast<size_t>(at)] = bad;
        c.inputs = {{PFRT_DTYPE_FLOAT32, {5}, Values(5)}, indices};
        if (scatter) c.inputs.push_back({PFRT_DTYPE_FLOAT32, {n}, Values(n)});
        const int64_t out = scatter ? 5 : n;
        c.outputs = {{PFRT_DTYPE_FLOAT32, {out}, Values(static_cast<size_t>(out))}};
        const Outcome got =
            run(row_named(scatter ? "scatter_elements_ref" : "gather_elements_ref"), c);
        EXPECT_NE(got.fault.find("(element " + std::to_string(at) + ") is outside [-5, 5)"),
                  got.fault.npos)
            << got.fault;
      }
}

}  // namespace
}  // namespace pfrt::test::ranking

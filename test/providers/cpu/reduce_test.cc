// SPDX-License-Identifier: Apache-2.0
//
// Reductions of float32 by vectors: over any axes, as exact as sums of eight float32 and then
// float64 are, in the whole range of results, and with bits that neither other rows nor the number
// of threads changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>

#include "core/base/status.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test::reductions {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// What a reduction does to an element, to two results, and at the end.
struct Reduction {
  const char* op;
  const char* row;
  double (*map)(double);
  double (*join)(double, double);
  double (*finish)(double all, double count);
  double identity;
};

double same(double x) { return x; }
double square(double x) { return x * x; }
double exponential(double x) { return std::exp(x); }
double magnitude(double x) { return std::fabs(x); }
double sum(double a, double b) { return a + b; }
double product(double a, double b) { return a * b; }
double greatest_of(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double least_of(double a, double b) { return std::isnan(a) || a < b ? a : b; }
double whole(double all, double) { return all; }
double mean(double all, double count) { return all / count; }
double root(double all, double) { return std::sqrt(all); }
double logarithm(double all, double) { return std::log(all); }

constexpr Reduction kReductions[] = {
    {"ReduceSum", "reduce_sum_vectors", same, sum, whole, 0},
    {"ReduceMean", "reduce_mean_vectors", same, sum, mean, 0},
    {"ReduceMax", "reduce_max_vectors", same, greatest_of, whole, -kInfinity},
    {"ReduceMin", "reduce_min_vectors", same, least_of, whole, kInfinity},
    {"ReduceProd", "reduce_prod_vectors", same, product, whole, 1},
    {"ReduceL1", "reduce_l1_vectors", magnitude, sum, whole, 0},
    {"ReduceL2", "reduce_l2_vectors", square, sum, root, 0},
    {"ReduceSumSquare", "reduce_sum_square_vectors", square, sum, whole, 0},
    {"ReduceLogSum", "reduce_log_sum_vectors", same, sum, logarithm, 0},
    {"ReduceLogSumExp", "reduce_log_sum_exp_lines", exponential, sum, logarithm, 0},
};

bool is_exact(const Reduction& r) { return r.join == greatest_of || r.join == least_of; }

const cpu::KernelRow& row_of(const Reduction& reduction) {
  for (const auto family : cpu::kernels())
    for (const cpu::KernelRow& row : family)
      if (row.name == reduction.row) return row;
  throw std::runtime_error(reduction.row);
}

struct Wanted {
  Case c;
  Values reach;  // error allowed of each output
};

// The node with its results in float64, and with errors of sums of up to eight float32.
Wanted wanted(const Reduction& r, Data x, const Dims& axes) {
  const size_t rank = x.dims.size();
  Dims kept = x.dims;
  if (axes.empty()) kept.assign(rank, 1);
  for (const int64_t a : axes)
    kept[static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(rank) : a)] = 1;
  const auto outputs = static_cast<size_t>(count(kept));
  const double reduced = static_cast<double>(count(x.dims)) / static_cast<double>(outputs);
  Values all(outputs, r.identity), size(outputs, 0);
  for_each_index(x.dims, [&](const Dims& index) {
    const size_t to = position(index, kept);
    const double value = r.map(x.values[position(index, x.dims)]);
    all[to] = r.join(all[to], value);
    size[to] += std::fabs(value);
  });
  Wanted out;
  constexpr double kHalfUnit = 0x1p-24;
  for (size_t i = 0; i < outputs; ++i) {
    const double value = r.finish(all[i], reduced);
    double error = 9 * kHalfUnit * size[i];  // of the sum
    if (r.finish == mean) error /= reduced;
    if (r.finish == logarithm) error /= std::fabs(all[i]);
    if (r.finish == root) error = value > 0 ? error / value : 0;
    if (r.join == product) error = 0x1p-40 * std::fabs(value);
    if (is_exact(r)) error = 0;
    out.reach.push_back(error + epsilon(x.dtype) * std::fabs(value) * 1.0001);
    all[i] = value;
  }
  out.c.outputs = {expected(x.dtype, kept, all)};
  out.c.inputs = {std::move(x)};
  if (!axes.empty()) out.c.inputs.push_back(integers({static_cast<int64_t>(axes.size())}, axes));
  out.c.attrs = {{"keepdims", int64_t{1}}};
  return out;
}

void check(const Reduction& r, const Wanted& want, const RunForm& form = {}) {
  const Outcome got = run(row_of(r), want.c, form);
  ASSERT_EQ(got.refused + got.fault, "") << r.op << " " << want.c.text();
  const Values& values = want.c.outputs[0].values;
  const pfrt_dtype dtype = want.c.outputs[0].dtype;
  const Values results = load(dtype, got.outputs[0].data(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = rounded(dtype, {values[i]})[0];
    if (results[i] == expected || (std::isnan(results[i]) && std::isnan(expected))) continue;
    ASSERT_LE(std::fabs(results[i] - values[i]), want.reach[i])
        << r.op << " " << want.c.text() << ", element " << i << " is " << results[i] << ", not "
        << values[i];
  }
}

class ReduceVectors : public testing::Test {
 protected:
  void SetUp() override {
    if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "vectors need avx2";
  }
};

double low_of(const Reduction& r) {
  return r.finish == logarithm ? 0.5 : r.join == product ? 0.99 : -3;
}
double high_of(const Reduction& r) { return r.join == product ? 1.01 : 3; }

TEST_F(ReduceVectors, are_the_first_choice) {
  for (const Reduction& r : kReductions) {
    const cpu::KernelRow* first = nullptr;
    for (const auto family : cpu::kernels())
      for (const cpu::KernelRow& row : family)
        if (row.op == r.op && first == nullptr) first = &row;
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(first->name, r.row);
  }
}

TEST_F(ReduceVectors, squeeze_and_excite_has_no_reference_kernel) {
  Graph g;
  Random random(1);
  const auto weights = [&](Dims dims) {
    Data data = random.data(PFRT_DTYPE_FLOAT32, std::move(dims));
    data.constant = true;
    return g.add(std::move(data));
  };
  const Dims image{1, 32, 9, 9}, one{1, 32, 1, 1}, narrow{1, 8, 1, 1};
  const uint32_t x = g.add(random.data(PFRT_DTYPE_FLOAT32, image));
  const uint32_t axes = g.add(integers({2}, {2, 3}));
  const uint32_t mean = g.add("ReduceMean", {x, axes}, one, {{"keepdims", int64_t{1}}});
  const uint32_t squeezed = g.add("Conv", {mean, weights({8, 32, 1, 1})}, narrow);
  const uint32_t relu = g.add("Relu", {squeezed}, narrow);
  const uint32_t excited = g.add("Conv", {relu, weights({32, 8, 1, 1})}, one);
  const uint32_t gate = g.add("Sigmoid", {excited}, one);
  g.outputs = {g.add("Mul", {x, gate}, image)};
  const GraphOutcome got = run(g);
  ASSERT_EQ(got.fault, "");
  EXPECT_FALSE(got.kernels.empty());
  for (const std::string& kernel : got.kernels)
    EXPECT_EQ(kernel.find("_ref"), kernel.npos) << kernel;
}

TEST_F(ReduceVectors, any_axes_of_any_rank) {
  constexpr int64_t kSizes[] = {1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 64, 65, 97, 130};
  for (uint64_t seed = 1; seed <= 150; ++seed)
    for (const Reduction& r : kReductions) {
      Random random(seed);
      Dims dims(static_cast<size_t>(random.below(7)));
      int64_t left = 9000;
      for (int64_t& d : dims) {
        do d = kSizes[random.below(std::size(kSizes))];
        while (d > left);
        left /= d;
      }
      std::shuffle(dims.begin(), dims.end(), std::mt19937(static_cast<uint32_t>(seed)));
      Dims axes;
      for (size_t i = 0; i < dims.size(); ++i)
        if (random.once_in(2))
          axes.push_back(static_cast<int64_t>(i) -
                         (random.once_in(2) ? static_cast<int64_t>(dims.size()) : 0));
      const Data x = random.data(PFRT_DTYPE_FLOAT32, dims, low_of(r), high_of(r));
      RunForm form;
      form.placed = seed % 2 == 0 ? Placed::kAtEnd : Placed::kAtStart;
      check(r, wanted(r, x, axes), form);
      if (HasFatalFailure()) return;
    }
}

TEST_F(ReduceVectors, rows_and_columns_of_every_length) {
  for (int64_t n = 1; n <= 150; n += n < 75 ? 1 : 7)
    for (const Reduction& r : kReductions)
      for (const int64_t others : {int64_t{1}, int64_t{5}, int64_t{19}})
        for (const int64_t axis : {0, 1}) {
          Random random(static_cast<uint64_t>(n));
          const Dims dims = axis == 0 ? Dims{n, others} : Dims{others, n};
          check(r, wanted(r, random.data(PFRT_DTYPE_FLOAT32, dims, low_of(r), high_of(r)), {axis}));
          if (HasFatalFailure()) return;
        }
}

TEST_F(ReduceVectors, long_reductions_on_several_threads) {
  const std::pair<Dims, Dims> kShapes[] = {
      {{100'003}, {0}},    {{3, 40'001}, {1}},      {{9001, 11}, {0}},       {{300, 700}, {0}},
      {{3, 5000, 7}, {1}}, {{130, 3, 300}, {0, 2}}, {{17, 200, 30}, {0, 2}}, {{40, 33'000}, {1}}};
  for (const auto& [dims, axes] : kShapes)
    for (const Reduction& r : kReductions) {
      Random random(4);
      const bool product_of_many = r.join == product;
      const Wanted want =
          wanted(r,
                 random.data(PFRT_DTYPE_FLOAT32, dims, product_of_many ? 0.999 : low_of(r),
                             product_of_many ? 1.001 : high_of(r)),
                 axes);
      check(r, want);
      if (HasFatalFailure()) return;
      const Outcome one = run(row_of(r), want.c, {});
      for (const uint32_t workers : {2u, 3u}) {
        RunForm form;
        form.workers = workers;
        const Outcome more = run(row_of(r), want.c, form);
        ASSERT_EQ(std::memcmp(one.outputs[0].data(), more.outputs[0].data(), one.outputs[0].size()),
                  0)
            << r.op << " " << want.c.text() << " differs on " << workers << " threads";
      }
    }
}

// They are put at positions of whole vectors, of tails and of the last line.
TEST_F(ReduceVectors, nan_and_infinities_reach_the_result) {
  for (const Reduction& r : kReductions)
    for (const int64_t n : {1, 3, 8, 13, 64, 71, 200})
      for (const int64_t axis : {0, 1})
        for (int64_t at = 0; at<n; at += n> 20 ? 7 : 1) {
          Random random(5);
          const Dims dims = axis == 0 ? Dims{n, 11} : Dims{11, n};
          Data x = random.data(PFRT_DTYPE_FLOAT32, dims, 0.5, 1.5);
          const auto put = [&](int64_t other, double value) {
            const int64_t i = axis == 0 ? at * 11 + other : other * n + at;
            x.values[static_cast<size_t>(i)] = value;
          };
          put(2, kNaN);
          put(5, kInfinity);
          put(10, -kInfinity);
          check(r, wanted(r, x, {axis}));
          if (HasFatalFailure()) return;
        }
}

// Float32 has not the range for parts of these.
TEST_F(ReduceVectors, only_results_have_to_be_in_range) {
  const auto row = [](std::initializer_list<double> pattern, int64_t n) {
    Values out;
    for (int64_t i = 0; i < n; ++i) out.push_back(std::data(pattern)[i % std::ssize(pattern)]);
    return rounded(PFRT_DTYPE_FLOAT32, out);
  };
  const std::initializer_list<double> kPatterns[] = {{3e38, 3e38, -3e38, -3e38},
                                                     {3e38, -2e38, 3e38, -4e38},
                                                     {1e-30, -1e-30},
                                                     {2e19, -1e19},
                                                     {1e-30, 1e30},
                                                     {0},
                                                     {1e-45, 0, 0},
                                                     {-0.0},
                                                     {1e20, 1e-20}};
  for (const Reduction& r : kReductions) {
    if (r.finish == logarithm) continue;
    for (const auto& pattern : kPatterns)
      for (const int64_t n : {4, 12, 60, 64, 300})
        for (const int64_t axis : {0, 1}) {
          if (r.join == product && n > 12) continue;  // float64 has not the range either
          // Others beside it are not made again with it.
          Data x{PFRT_DTYPE_FLOAT32, axis == 0 ? Dims{n, 3} : Dims{3, n}, {}, false};
          x.values.assign(static_cast<size_t>(3 * n), 1.5);
          const Values special = row(pattern, n);
          for (int64_t i = 0; i < n; ++i)
            x.values[static_cast<size_t>(axis == 0 ? 3 * i + 1 : n + i)] =
                special[static_cast<size_t>(i)];
          check(r, wanted(r, x, {axis}));
          if (HasFatalFailure()) return;
        }
  }
}

TEST_F(ReduceVectors, floats_of_16_bits_are_rounded_once) {
  const std::pair<Dims, Dims> kShapes[] = {
      {{3, 2500}, {1}},   {{2500, 3}, {0}},     {{9, 1100}, {0}},  {{700, 5}, {1}},
      {{2, 33'000}, {1}}, {{5, 40, 7}, {0, 2}}, {{6, 40, 9}, {1}}, {{1500}, {0}}};
  for (const pfrt_dtype dtype : {PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16})
    for (const auto& [dims, axes] : kShapes)
      for (const Reduction& r : kReductions) {
        Random random(7);
        const bool near_one = r.join == product;
        const double low = near_one || r.finish == logarithm ? 1 : -1;
        const Data x = random.data(dtype, dims, low, near_one ? 1.001 : 1.25);
        check(r, wanted(r, x, axes));
        if (HasFatalFailure()) return;
      }
}

TEST_F(ReduceVectors, a_row_has_the_same_bits_alone_and_among_others) {
  const std::pair<Dims, Dims> kShapes[] = {{{13, 49}, {1}},           {{13, 197, 20}, {1}},
                                           {{13, 20, 197}, {2}},      {{13, 2, 33'000}, {2}},
                                           {{13, 17'000, 2}, {1}},    {{13, 3, 4, 5, 6}, {1, 3}},
                                           {{13, 3, 20, 20}, {2, 3}}, {{13, 40, 1100}, {1}}};
  for (const auto& [dims, axes] : kShapes)
    for (const Reduction& r : kReductions) {
      Random random(6);
      const Data all = random.data(PFRT_DTYPE_FLOAT32, dims, low_of(r), high_of(r));
      const int64_t of_row = count(dims) / dims[0];
      const auto bytes_of = [&, &shape = dims, &over = axes](int64_t first, int64_t rows) {
        Data x{PFRT_DTYPE_FLOAT32, shape, {}, false};
        x.dims[0] = rows;
        x.values.assign(all.values.begin() + first * of_row,
                        all.values.begin() + (first + rows) * of_row);
        Case c;
        Dims kept = x.dims;
        for (const int64_t a : over) kept[static_cast<size_t>(a)] = 1;
        c.inputs = {std::move(x), integers({std::ssize(over)}, over)};
        c.outputs = {expected(PFRT_DTYPE_FLOAT32, kept, {})};
        const Outcome got = run(row_of(r), c, {});
        EXPECT_EQ(got.refused + got.fault, "");
        return std::vector<char>(got.outputs[0].data(),
                                 got.outputs[0].data() + got.outputs[0].size());
      };
      const std::vector<char> whole_batch = bytes_of(0, dims[0]);
      const auto bytes = std::ssize(whole_batch) / dims[0];
      for (const auto& [first, rows] : {std::pair<int64_t, int64_t>{0, 1}, {4, 2}, {5, 1}, {12, 1}})
        ASSERT_EQ(bytes_of(first, rows),
                  std::vector<char>(whole_batch.begin() + first * bytes,
                                    whole_batch.begin() + (first + rows) * bytes))
            << r.op << ", " << rows << " rows from " << first;
    }
}

}  // namespace
}  // namespace pfrt::test::reductions

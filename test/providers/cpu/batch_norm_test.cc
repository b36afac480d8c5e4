// SPDX-License-Identifier: Apache-2.0
//
// BatchNormalization of planes that are smaller and larger than a task, for any number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/cases/cases.h"

namespace pfrt::test {
namespace {

TEST(BatchNorm, planes_of_all_sizes_are_normalised_by_their_channels) {
  const Dims all[] = {{3000, 7},    {1, 20000},    {5, 9000},     {1200, 7, 3},
                      {3, 5, 9000}, {1, 3, 40000}, {30, 40, 4, 5}};
  Random random(37);
  for (const Dims& dims : all)
    for (const pfrt_dtype dtype : {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16, PFRT_DTYPE_FLOAT64}) {
      const int64_t channels = dims[1], pixels = count(dims) / dims[0] / channels;
      Case c;
      c.inputs = {random.data(dtype, dims), random.data(dtype, {channels}),
                  random.data(dtype, {channels}), random.data(dtype, {channels}),
                  random.data(dtype, {channels}, 0.5, 2)};
      c.outputs = {{dtype, dims, Values(static_cast<size_t>(count(dims))), false}};
      for (std::span<const cpu::KernelRow> family : cpu::kernels())
        for (const cpu::KernelRow& row : family) {
          if (row.name != "batch_norm_planes") continue;
          const Outcome one = run(row, c), many = run(row, c, {.workers = 4});
          ASSERT_EQ(one.fault + many.fault, "") << c.text();
          EXPECT_EQ(
              std::memcmp(one.outputs[0].data(), many.outputs[0].data(), one.outputs[0].size()), 0)
              << c.text();
          const Values got = load(dtype, one.outputs[0].data(), static_cast<size_t>(count(dims)));
          for (size_t i = 0; i < got.size(); ++i) {
            const size_t k = i / static_cast<size_t>(pixels) % static_cast<size_t>(channels);
            const double want = (c.inputs[0].values[i] - c.inputs[3].values[k]) *
                                    c.inputs[1].values[k] /
                                    std::sqrt(c.inputs[4].values[k] + double{1e-5f}) +
                                c.inputs[2].values[k];
            ASSERT_NEAR(got[i], want, 8 * epsilon(dtype) * (8 + std::fabs(want))) << c.text() << i;
          }
        }
    }
}

}  // namespace
}  // namespace pfrt::test

// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "providers/cpu/elements/greater.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/pool/make.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kChunk = 256;  // elements converted at a time

enum class Kind { kAverage, kMax, kNorm };

// Four sums, so that additions do not wait for each other; their order depends on the length alone.
double sum_of(const double* v, int64_t n) {
  double s[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int64_t j = 0; j < 4; ++j) s[j] += v[i + j];
  for (; i < n; ++i) s[i & 3] += v[i];
  return (s[0] + s[1]) + (s[2] + s[3]);
}

double reduce(Pace& pace, Kind kind, double p, LoadFn<double> load, const void* data, int64_t first,
              int64_t n) {
  double total = kind == Kind::kMax ? -std::numeric_limits<double>::infinity() : 0;
  for (int64_t i = 0; i < n && !pace.stopped(kChunk); i += kChunk) {
    double block[kChunk];
    const int64_t count = std::min(kChunk, n - i);
    load(block, data, first + i, 1, count);
    if (kind == Kind::kMax) {
      for (int64_t j = 0; j < count; ++j) total = greater_or_nan(block[j], total);
      continue;
    }
    if (kind == Kind::kNorm)
      for (int64_t j = 0; j < count; ++j)
        block[j] = p == 2 ? block[j] * block[j] : std::pow(std::fabs(block[j]), p);
    total += sum_of(block, count);
  }
  if (kind == Kind::kAverage) return total / static_cast<double>(n);
  return kind == Kind::kNorm ? std::pow(total, 1 / p) : total;
}

Result<Kernel> make_global(const SnapshotNode& node, Kind kind, double p) {
  PFRT_TRY(need(node, 1, 1));
  const auto dims = node.input_dims(0);
  if (dims.size() < 2)
    return kernel_error("X needs a batch and channels, found rank ", dims.size());
  const int64_t planes = dims[0] * dims[1], pixels = SnapshotNode::elements(dims.subspan(2));
  if (node.output_elements(0) != planes)
    return kernel_error("output 0 was planned with ", node.output_elements(0), " elements but has ",
                        planes);
  const pfrt_dtype dtype = node.input_dtype(0);
  Kernel kernel;
  kernel.flops = static_cast<double>(node.input_elements(0));
  kernel.run = [=](const Run& run) -> pfrt_code {
    const LoadFn<double> load = load_fn<double>(dtype);
    const StoreFn<double> store = store_fn<double>(dtype);
    run.blocks(planes, std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(pixels, 1)),
               [&](int64_t begin, int64_t end) {
                 Pace pace(run);
                 for (int64_t i = begin; i < end; ++i) {
                   const double value =
                       reduce(pace, kind, p, load, run.input(0), i * pixels, pixels);
                   store(run.output(0), i, &value, 1);
                 }
                 run.apply_epilogue(begin, end);
               });
    return run.stop();
  };
  return kernel;
}

}  // namespace

Result<Kernel> make_global_average_pool(const KernelRequest& node) {
  return make_global(node, Kind::kAverage, 0);
}
Result<Kernel> make_global_max_pool(const KernelRequest& node) {
  return make_global(node, Kind::kMax, 0);
}

Result<Kernel> make_global_lp_pool(const KernelRequest& node) {
  const int64_t p = node.attr_int("p", 2);
  if (p < 1) return kernel_error("p is ", p, ", expected at least 1");
  return make_global(node, Kind::kNorm, static_cast<double>(p));
}

}  // namespace pfrt::cpu

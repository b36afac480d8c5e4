// SPDX-License-Identifier: Apache-2.0
//
// Determinants of batches of square matrices, by elimination with partial pivoting in double
// precision.
#include <algorithm>
#include <cmath>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernel/stop_poll.h"
#include "providers/cpu/kernels/vision/vision.h"

namespace pfrt::cpu {
namespace {

struct Matrices {
  pfrt_dtype dtype;
  int64_t count, n;
};

Result<Matrices> read_matrices(const SnapshotNode& node) {
  PFRT_TRY(need(node, 1, 1));
  const auto dims = node.input_dims(0);
  if (dims.size() < 2 || dims[dims.size() - 1] != dims[dims.size() - 2])
    return kernel_error("input ", dims_text(dims), " is not a batch of square matrices");
  if (node.output_dtype(0) != node.input_dtype(0))
    return error(Code::kDTYPE_MISMATCH, "the output is ", dtype_name(node.output_dtype(0)),
                 ", the input ", dtype_name(node.input_dtype(0)));
  return Matrices{node.input_dtype(0), SnapshotNode::elements(dims.first(dims.size() - 2)),
                  dims.back()};
}

// The row from |k| on with the greatest element in column |k|.
int64_t pivot_row(const double* a, int64_t n, int64_t width, int64_t k) {
  int64_t best = k;
  for (int64_t r = k + 1; r < n; ++r)
    if (std::fabs(a[r * width + k]) > std::fabs(a[best * width + k])) best = r;
  return best;
}

// The result is of no use once the run is stopped.
double determinant(Pace& pace, double* a, int64_t n) {
  double product = 1;
  for (int64_t k = 0; k < n && !pace.stopped(n - k); ++k) {
    const int64_t p = pivot_row(a, n, n, k);
    if (p != k) {
      std::swap_ranges(a + k * n, a + (k + 1) * n, a + p * n);
      product = -product;
    }
    const double pivot = a[k * n + k];
    product *= pivot;
    if (pivot == 0) return 0;
    for (int64_t r = k + 1; r < n && !pace.stopped(n - k); ++r) {
      const double factor = a[r * n + k] / pivot;
      for (int64_t c = k + 1; c < n; ++c) a[r * n + c] -= factor * a[k * n + c];
    }
  }
  return product;
}

// Matrices of a task, so that small ones are taken many at a time.
int64_t group_of(const Matrices& m) {
  return std::max<int64_t>(1, 4096 / std::max<int64_t>(1, m.n * m.n));
}

}  // namespace

Result<Kernel> make_det(const KernelRequest& node) {
  PFRT_ASSIGN(const Matrices m, read_matrices(node));
  if (node.output_elements(0) != m.count)
    return kernel_error("output 0 was planned with ", node.output_elements(0), " elements but has ",
                        m.count);
  Kernel kernel;
  const double n = static_cast<double>(m.n);
  kernel.flops = static_cast<double>(m.count) * n * n * n * 2 / 3;
  kernel.scratch_bytes = static_cast<uint64_t>(m.n) * static_cast<uint64_t>(m.n) * sizeof(double);
  kernel.run = [m](const Run& run) {
    const int64_t group = group_of(m), size = m.n * m.n;
    run.parallel((m.count + group - 1) / group, [&](int64_t task, uint32_t worker) {
      Pace pace(run);
      double* const a = run.scratch<double>(worker);
      for (int64_t i = task * group; i < std::min(m.count, (task + 1) * group); ++i) {
        if (run.stopped()) return;
        load_block(m.dtype, element(m.dtype, run.input(0), i * size), size, a);
        const double value = determinant(pace, a, m.n);
        store_block(m.dtype, &value, 1, element(m.dtype, run.output(0), i));
      }
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu

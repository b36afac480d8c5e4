// SPDX-License-Identifier: Apache-2.0
//
// Normalisations whose elements are not contiguous: along one axis, over chosen axes.
#include <algorithm>
#include <cmath>

#include "providers/cpu/elements/strided.h"
#include "providers/cpu/epilogue/norm_rows.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernel/stop_poll.h"
#include "providers/cpu/kernels/norm/make.h"

namespace pfrt::cpu {
namespace {

// Offsets of every combination of |dims| steps, the last fastest.
std::vector<int64_t> combinations(const std::vector<int64_t>& dims,
                                  const std::vector<int64_t>& strides) {
  std::vector<int64_t> all{0};
  for (size_t d = 0; d < dims.size(); ++d) {
    std::vector<int64_t> next;
    for (int64_t base : all)
      for (int64_t i = 0; i < dims[d]; ++i) next.push_back(base + i * strides[d]);
    all = std::move(next);
  }
  return all;
}

// Groups of elements: group g holds elements starts[g] + r * row stride..., in rows of |length|
// elements |step| apart.
struct Groups {
  std::vector<int64_t> starts, rows;
  int64_t length = 1, step = 1;
  int64_t size() const { return static_cast<int64_t>(rows.size()) * length; }
};

Groups groups_of(std::span<const int64_t> dims, const std::vector<bool>& reduced) {
  const std::vector<int64_t> strides = dense_strides(dims);
  std::vector<int64_t> kept, kept_strides, inner, inner_strides;
  for (size_t d = 0; d < dims.size(); ++d) {
    (reduced[d] ? inner : kept).push_back(dims[d]);
    (reduced[d] ? inner_strides : kept_strides).push_back(strides[d]);
  }
  Groups g;
  if (!inner.empty()) {
    g.length = inner.back();
    g.step = inner_strides.back();
    inner.pop_back();
    inner_strides.pop_back();
  }
  g.starts = combinations(kept, kept_strides);
  g.rows = combinations(inner, inner_strides);
  return g;
}

// Copies every group to contiguous memory in double, calls change(pace, values, count) on it, and
// writes the values back.
template <typename Fn>
Kernel groups_kernel(const SnapshotNode& node, Groups groups, Fn change) {
  const pfrt_dtype dtype = node.input_dtype(0);
  Kernel kernel;
  kernel.flops = 8.0 * static_cast<double>(node.input_elements(0));
  kernel.scratch_bytes = static_cast<uint64_t>(groups.size()) * sizeof(double);
  kernel.run = [dtype, change, g = std::move(groups)](const Run& run) -> pfrt_code {
    if (g.size() == 0) return 0;
    const LoadFn<double> load = load_fn<double>(dtype);
    const StoreFn<double> store = store_fn<double>(dtype);
    const int64_t count = static_cast<int64_t>(g.starts.size());
    const int64_t block = std::max<int64_t>(1, (1 << 12) / g.size());
    run.parallel((count + block - 1) / block, [&](int64_t b, uint32_t worker) {
      Pace pace(run);
      double* const values = run.scratch<double>(worker);
      for (int64_t i = b * block; i < std::min(count, (b + 1) * block); ++i) {
        const int64_t start = g.starts[static_cast<size_t>(i)];
        for (size_t r = 0; r < g.rows.size() && !pace.stopped(2 * g.length); ++r)
          in_chunks(pace, g.length, [&](int64_t begin, int64_t end) {
            load(values + static_cast<int64_t>(r) * g.length + begin, run.input(0),
                 start + g.rows[r] + begin * g.step, g.step, end - begin);
          });
        if (run.stopped()) return;
        change(pace, values, g.size());
        for (size_t r = 0; r < g.rows.size() && !pace.stopped(2 * g.length); ++r) {
          const double* const row = values + static_cast<int64_t>(r) * g.length;
          if (g.step == 1) {
            in_chunks(pace, g.length, [&](int64_t begin, int64_t end) {
              store(run.output(0), start + g.rows[r] + begin, row + begin, end - begin);
            });
          } else {
            for (int64_t k = 0; k < g.length; ++k)
              store(run.output(0), start + g.rows[r] + k * g.step, row + k, 1);
          }
        }
      }
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace

Result<Kernel> make_lp_norm(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  const auto dims = node.input_dims(0);
  PFRT_TRY(need_output_dims(node, 0, dims));
  PFRT_ASSIGN(const int64_t axis, axis_of(node.attr_int("axis", -1), dims.size()));
  const int64_t p = node.attr_int("p", 2);
  if (p != 1 && p != 2) return kernel_error("p is ", p, ", expected 1 or 2");
  std::vector<bool> reduced(dims.size());
  reduced[static_cast<size_t>(axis)] = true;
  return groups_kernel(node, groups_of(dims, reduced), [p](Pace& pace, double* v, int64_t n) {
    const double norm = p == 1 ? row_magnitudes(pace, v, n) : std::sqrt(row_squares(pace, v, n, 0));
    in_chunks(pace, n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) v[i] = norm == 0 ? 0 : v[i] / norm;
    });
  });
}

Result<Kernel> make_mean_variance_norm(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  const auto dims = node.input_dims(0);
  PFRT_TRY(need_output_dims(node, 0, dims));
  static constexpr int64_t kDefault[] = {0, 2, 3};
  const auto axes =
      node.attr("axes") != nullptr ? node.attr_ints("axes") : std::span<const int64_t>(kDefault);
  std::vector<bool> reduced(dims.size());
  for (int64_t a : axes) {
    PFRT_ASSIGN(const int64_t axis, axis_of(a, dims.size()));
    reduced[static_cast<size_t>(axis)] = true;
  }
  return groups_kernel(node, groups_of(dims, reduced), [](Pace& pace, double* v, int64_t n) {
    constexpr double kEpsilon = 1e-9;  // the standard's, added to the deviation
    const double mean = row_sum(pace, v, n) / static_cast<double>(n);
    const double deviation =
        std::sqrt(row_squares(pace, v, n, mean) / static_cast<double>(n)) + kEpsilon;
    in_chunks(pace, n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) v[i] = (v[i] - mean) / deviation;
    });
  });
}

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
//
// CDist: the distance of every row of A to every row of B, summed from differences (the expanded
// square loses digits where points are near). Inverse: Gauss-Jordan with the largest pivot of each
// column, in double.
#include <algorithm>
#include <cmath>
#include <vector>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/contrib/make.h"

namespace pfrt::cpu {
namespace {

template <typename T>
T squared_distance(const T* a, const T* b, int64_t n) {
  constexpr int64_t kLanes = 8;
  T sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t j = 0; j < kLanes; ++j) {
      const T d = a[i + j] - b[i + j];
      sums[j] += d * d;
    }
  T sum = 0;
  for (; i < n; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  for (const T lane : sums) sum += lane;
  return sum;
}

template <typename T>
Kernel cdist_kernel(int64_t m, int64_t k, int64_t n, bool root) {
  constexpr int64_t kTask = 64;  // distances between two looks
  const int64_t stretches = (k + kTask - 1) / kTask;
  Kernel kernel;
  kernel.flops = 3.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
  kernel.run = [=](const Run& run) {
    const T *const a = run.input<T>(0), *const b = run.input<T>(1);
    T* const out = run.output<T>(0);
    run.parallel(m * stretches, [&](int64_t task, uint32_t) {
      if (run.stopped()) return;
      const int64_t i = task / stretches, first = task % stretches * kTask;
      for (int64_t j = first; j < std::min(k, first + kTask); ++j) {
        const T square = squared_distance(a + i * n, b + j * n, n);
        out[i * k + j] = root ? std::sqrt(square) : square;
      }
    });
    return run.stop();
  };
  return kernel;
}

// Turns |a| (n by n, row after row) into its inverse; false when it has none.
bool invert(std::vector<double>& a, std::vector<double>& out, size_t n, const Run& run) {
  std::fill(out.begin(), out.end(), 0.0);
  for (size_t i = 0; i < n; ++i) out[i * n + i] = 1;
  for (size_t c = 0; c < n; ++c) {
    if (run.stopped()) return true;
    size_t pivot = c;
    for (size_t r = c + 1; r < n; ++r)
      if (std::fabs(a[r * n + c]) > std::fabs(a[pivot * n + c])) pivot = r;
    const double top = a[pivot * n + c];
    if (top == 0) return false;
    for (size_t j = 0; j < n; ++j) {
      if (pivot != c) {
        std::swap(a[pivot * n + j], a[c * n + j]);
        std::swap(out[pivot * n + j], out[c * n + j]);
      }
      a[c * n + j] /= top;
      out[c * n + j] /= top;
    }
    for (size_t r = 0; r < n; ++r) {
      const double factor = a[r * n + c];
      if (r == c || factor == 0) continue;
      for (size_t j = 0; j < n; ++j) {
        a[r * n + j] -= factor * a[c * n + j];
        out[r * n + j] -= factor * out[c * n + j];
      }
    }
  }
  return true;
}

}  // namespace

Result<Kernel> make_cdist(const KernelRequest& node) {
  PFRT_TRY(need(node, 2, 1));
  const auto a = node.input_dims(0), b = node.input_dims(1);
  if (a.size() != 2 || b.size() != 2 || a[1] != b[1])
    return kernel_error("points are ", dims_text(a), " and ", dims_text(b),
                        ": two matrices with rows of one length");
  const pfrt_dtype dtype = node.input_dtype(0);
  if (node.input_dtype(1) != dtype || node.output_dtype(0) != dtype)
    return error(Code::kDTYPE_MISMATCH, "both inputs and the output must be ", dtype_name(dtype));
  const int64_t dims[] = {a[0], b[0]};
  PFRT_TRY(need_output_dims(node, 0, dims));
  const bool root = node.attr_string("metric", "") == "euclidean";
  return dtype == PFRT_DTYPE_FLOAT64 ? cdist_kernel<double>(a[0], b[0], a[1], root)
                                     : cdist_kernel<float>(a[0], b[0], a[1], root);
}

Result<Kernel> make_inverse(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  PFRT_TRY(need_like_output(node, 0));
  const auto dims = node.input_dims(0);
  if (dims.size() < 2 || dims[dims.size() - 2] != dims.back())
    return kernel_error("the input is ", dims_text(dims), ": square matrices");
  const int64_t n = dims.back(), size = n * n;
  if (n > (int64_t{1} << 20)) return kernel_error("a matrix of ", n, " rows is too large");
  const int64_t count = size == 0 ? 0 : node.input_elements(0) / size;
  const pfrt_dtype dtype = node.input_dtype(0);
  Kernel kernel;
  kernel.flops =
      2.0 * static_cast<double>(count) * static_cast<double>(size * 2) * static_cast<double>(n);
  kernel.run = [=](const Run& run) -> pfrt_code {
    std::vector<uint8_t> singular(static_cast<size_t>(count), 0);
    run.parallel(count, [&](int64_t i, uint32_t) {
      std::vector<double> a(static_cast<size_t>(size)), out(static_cast<size_t>(size));
      std::vector<float> narrow;
      if (dtype == PFRT_DTYPE_FLOAT64) {
        load_block(dtype, element(dtype, run.input(0), i * size), size, a.data());
      } else {
        narrow.resize(a.size());
        load_block(dtype, element(dtype, run.input(0), i * size), size, narrow.data());
        std::copy(narrow.begin(), narrow.end(), a.begin());
      }
      if (!invert(a, out, static_cast<size_t>(n), run)) singular[static_cast<size_t>(i)] = 1;
      void* to = element(dtype, run.output(0), i * size);
      if (dtype == PFRT_DTYPE_FLOAT64) {
        store_block(dtype, out.data(), size, to);
      } else {
        std::transform(out.begin(), out.end(), narrow.begin(),
                       [](double v) { return static_cast<float>(v); });
        store_block(dtype, narrow.data(), size, to);
      }
    });
    for (size_t i = 0; i < singular.size(); ++i)
      if (singular[i])
        return run.fail(Code::kINVALID_ARGUMENT, "matrix ", i, " of the input has no inverse");
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu

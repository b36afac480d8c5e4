// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/matmul/columns.h"
#include "providers/cpu/kernels/matmul/make.h"

namespace pfrt::cpu {
namespace {

struct Form {
  int64_t m, n, k;
  bool trans_a, trans_b, has_c;
  int64_t c_row, c_col;  // strides of C, 0 where it is broadcast
  float alpha, beta;
  pfrt_dtype dtype;
};

Result<Form> read(const SnapshotNode& node) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_types(node, {1, 2}, Types{node.input_dtype(0)}));
  const auto a = node.input_dims(0), b = node.input_dims(1);
  if (a.size() != 2 || b.size() != 2)
    return kernel_error("A and B must be matrices, found ranks ", a.size(), " and ", b.size());
  Form f{};
  f.trans_a = node.attr_int("transA", 0) != 0;
  f.trans_b = node.attr_int("transB", 0) != 0;
  f.alpha = node.attr_float("alpha", 1.0f);
  f.beta = node.attr_float("beta", 1.0f);
  f.dtype = node.input_dtype(0);
  f.m = a[f.trans_a ? 1 : 0];
  f.k = a[f.trans_a ? 0 : 1];
  f.n = b[f.trans_b ? 0 : 1];
  const int64_t kb = b[f.trans_b ? 1 : 0];
  if (f.k != kb) return kernel_error("inner dimensions differ: ", f.k, " of A, ", kb, " of B");
  const int64_t dims[] = {f.m, f.n};
  PFRT_TRY(need_output_dims(node, 0, dims));
  f.has_c = node.has_input(2) && f.beta != 0.0f;
  if (!f.has_c) return f;
  const auto c = node.input_dims(2);
  const int64_t cols = c.empty() ? 1 : c.back(), rows = c.size() < 2 ? 1 : c[c.size() - 2];
  if (c.size() > 2 || (rows != 1 && rows != f.m) || (cols != 1 && cols != f.n))
    return kernel_error("C must broadcast to ", f.m, " x ", f.n, ", found rank ", c.size(),
                        " ending in ", rows, " x ", cols);
  f.c_row = rows == 1 ? 0 : cols;
  f.c_col = cols == 1 ? 0 : 1;
  return f;
}

template <typename T>
Result<Kernel> make_typed(const SnapshotNode& node, StoreFn<T> store) {
  PFRT_ASSIGN(const Form f, read(node));
  if constexpr (!std::is_floating_point_v<T>) {
    if (f.alpha != std::nearbyint(f.alpha) || f.beta != std::nearbyint(f.beta))
      return error(Code::kUNSUPPORTED, "alpha ", f.alpha, " and beta ", f.beta,
                   " must be whole numbers for integers");
  }
  const Gemm<T> gemm(f.m, f.n, f.k);
  Kernel kernel;
  kernel.flops =
      2.0 * static_cast<double>(f.m) * static_cast<double>(f.n) * static_cast<double>(f.k);
  kernel.scratch_bytes = gemm_scratch(gemm, store != nullptr) +
                         static_cast<uint64_t>(gemm.max_tile_elements()) * sizeof(T);
  kernel.run = [gemm, f, store](const Run& run) -> pfrt_code {
    const StridedSource<T> a(run.input(0), f.dtype, 0, f.trans_a ? 1 : f.k, f.trans_a ? f.m : 1);
    const StridedSource<T> b(run.input(1), f.dtype, 0, f.trans_b ? f.k : 1, f.trans_b ? 1 : f.n);
    const GemmOut<T> out{run.output(0), store, 0, f.n};
    const LoadFn<T> load = load_fn<T>(f.dtype);
    const T alpha = static_cast<T>(f.alpha), beta = static_cast<T>(f.beta);
    run.parallel(gemm.tiles(), [&](int64_t i, uint32_t worker) {
      T* const scratch = run.scratch<T>(worker);
      T* const line = scratch + gemm_scratch(gemm, store != nullptr) / sizeof(T);
      compute_gemm_tile(run, gemm, gemm.tile(i), a, b, out, scratch,
                        [&](T* row, int64_t r, int64_t c, int64_t n) {
                          if (alpha != T{1})
                            for (int64_t j = 0; j < n; ++j) row[j] *= alpha;
                          if (!f.has_c) return;
                          load(line, run.input(2), r * f.c_row + c * f.c_col, f.c_col, n);
                          for (int64_t j = 0; j < n; ++j) row[j] += beta * line[j];
                        });
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace

std::optional<PackedInput> pack_gemm(const SnapshotNode& node) {
  const auto a = node.input_dims(0), b = node.input_dims(1);
  if (a.size() != 2 || b.size() != 2) return std::nullopt;
  const bool trans_b = node.attr_int("transB", 0) != 0;
  if (node.attr_int("transA", 0) != 0) return std::nullopt;
  const int64_t n = b[trans_b ? 0 : 1], k = b[trans_b ? 1 : 0];
  return pack_columns(node, std::max<int64_t>(a[0], 1), a[0] < 0,
                      {n, k, trans_b ? k : 1, trans_b ? 1 : n});
}

Result<Kernel> make_packed_gemm(const KernelRequest& node, const PackedInput& packed) {
  PFRT_ASSIGN(const Form f, read(node));
  if (!reads_packed(packed, node, f.m)) return make_gemm(node);
  return packed_matmul(packed, node, f.m, {f.n, f.k, f.trans_b ? f.k : 1, f.trans_b ? 1 : f.n},
                       {"gemm_tiles", "gemm_panels", "gemm_bf16_rows", "gemm_bf16_panels",
                        "gemm_bf16_dot", "gemm_f16_rows", "gemm_f16_panels"},
                       [f](const Run& run) -> Finish {
                         const float* const c = f.has_c ? run.input<float>(2) : nullptr;
                         if (f.alpha == 1.0f && c == nullptr) return nullptr;
                         return [f, c](float* row, int64_t i, int64_t j, int64_t n) {
                           if (f.alpha != 1.0f)
                             for (int64_t x = 0; x < n; ++x) row[x] *= f.alpha;
                           if (c == nullptr) return;
                           const float* const from = c + i * f.c_row + j * f.c_col;
                           for (int64_t x = 0; x < n; ++x) row[x] += f.beta * from[x * f.c_col];
                         };
                       });
}

Result<Kernel> make_gemm(const KernelRequest& node) {
  return in_compute_type(node.input_dtype(0),
                         [&]<typename T>(StoreFn<T> store) { return make_typed<T>(node, store); });
}

}  // namespace pfrt::cpu

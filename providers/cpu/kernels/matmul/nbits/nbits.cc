// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft MatMulNBits: Y = A W' + bias, for weights that are not packed beforehand
// (packed.cc). A row of W is widened while it is packed for the matmul.
#include <algorithm>

#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/matmul/make.h"
#include "providers/cpu/kernels/matmul/matmul.h"
#include "providers/cpu/kernels/matmul/nbits/form.h"

namespace pfrt::cpu {
namespace {

class NBitsSource final : public PanelSource<float> {
 public:
  NBitsSource(const NBitsForm& form, const Run& run)
      : f_(form),
        data_(run.input<uint8_t>(1)),
        scales_(run.input(2)),
        zeros_(form.zero_dtype == PFRT_DTYPE_UNSET ? nullptr : run.input(3)),
        groups_(form.has_groups ? run.input<int32_t>(4) : nullptr) {}

  void pack(float* out, int64_t width, int64_t first, int64_t count, int64_t k0,
            int64_t kn) const override {
    for (int64_t j = 0; j < count; ++j) row(out + j, width, first + j, k0, kn);
    for (int64_t k = 0; count < width && k < kn; ++k)
      std::fill(out + k * width + count, out + (k + 1) * width, 0.0f);
  }

 private:
  void row(float* out, int64_t step, int64_t n, int64_t k0, int64_t kn) const {
    const uint8_t* const stored = data_ + n * f_.blocks * f_.block_bytes();
    int64_t known = -1;
    float scale = 0, zero = 0;
    for (int64_t k = k0; k < k0 + kn; ++k) {
      const int64_t block = groups_ ? groups_[k] : k / f_.block;
      if (block != known) {
        load_fn<float>(f_.scale_dtype)(&scale, scales_, n * f_.blocks + block, 1, 1);
        zero = zero_point(n, block);
        known = block;
      }
      const uint32_t value =
          nbits_element(stored + k / f_.block * f_.block_bytes(), f_.bits, k % f_.block);
      out[(k - k0) * step] = (static_cast<float>(value) - zero) * scale;
    }
  }

  float zero_point(int64_t n, int64_t block) const {
    if (f_.zero_dtype == PFRT_DTYPE_UNSET) return static_cast<float>(1u << (f_.bits - 1));
    if (f_.zero_dtype == PFRT_DTYPE_UINT8)
      return static_cast<float>(
          nbits_element(static_cast<const uint8_t*>(zeros_) + n * f_.zero_bytes(), f_.bits, block));
    float zero = 0;
    load_fn<float>(f_.zero_dtype)(&zero, zeros_, n * f_.blocks + block, 1, 1);
    return zero;
  }

  const NBitsForm& f_;
  const uint8_t* data_;
  const void *scales_, *zeros_;
  const int32_t* groups_;
};

}  // namespace

Result<Kernel> make_matmul_nbits(const KernelRequest& node) {
  PFRT_TRY(need(node, 3, 1));
  PFRT_ASSIGN(const NBitsForm form, read_nbits_form(node));
  PFRT_ASSIGN(const int64_t m, form.rows(node));
  const pfrt_dtype dtype = node.input_dtype(0), bias_dtype = node.input_dtype(5);
  const StoreFn<float> store = dtype == PFRT_DTYPE_FLOAT32 ? nullptr : store_fn<float>(dtype);
  const Gemm<float> gemm(m, form.n, form.k);
  Kernel kernel;
  kernel.flops =
      2.0 * static_cast<double>(m) * static_cast<double>(form.n) * static_cast<double>(form.k);
  kernel.scratch_bytes = gemm_scratch(gemm, store != nullptr);
  kernel.run = [=](const Run& run) -> pfrt_code {
    const int32_t* const groups = form.has_groups ? run.input<int32_t>(4) : nullptr;
    for (int64_t k = 0; groups && k < form.k; ++k)
      if (groups[k] < 0 || groups[k] >= form.blocks)
        return run.fail(Code::kINVALID_ARGUMENT, "MatMulNBits: g_idx[", k, "] is ", groups[k],
                        ", needs to lie in [0, ", form.blocks, ")");
    std::vector<float> bias;
    if (form.has_bias) {
      bias.resize(static_cast<size_t>(form.n));
      load_fn<float>(bias_dtype)(bias.data(), run.input(5), 0, 1, form.n);
    }
    run.parallel(gemm.tiles(), [&](int64_t i, uint32_t worker) {
      const StridedSource<float> a(run.input(0), dtype, 0, form.k, 1);
      const NBitsSource b(form, run);
      const GemmOut<float> out{run.output(0), store, 0, form.n};
      compute_gemm_tile(run, gemm, gemm.tile(i), a, b, out, run.scratch<float>(worker),
                        [&](float* row, int64_t, int64_t j, int64_t n) {
                          for (int64_t c = 0; c < n && !bias.empty(); ++c)
                            row[c] += bias[static_cast<size_t>(j + c)];
                        });
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu

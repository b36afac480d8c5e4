// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft MatMulNBits: Y = A W' + bias, where row n of W is stored in blocks of a few bits an
// element: w = (stored - zero point) scale. A row of W is widened while it is packed for the
// matmul, so that the weights keep their few bits in memory.
#include <algorithm>

#include "providers/cpu/kernels/matmul/make.h"
#include "providers/cpu/kernels/matmul/matmul.h"
#include "providers/cpu/row/signature.h"

namespace pfrt::cpu {
namespace {

struct NBitsForm {
  int64_t m = 0, n = 0, k = 0, bits = 4, block = 32, blocks = 0;
  pfrt_dtype scale_dtype = PFRT_DTYPE_UNSET, zero_dtype = PFRT_DTYPE_UNSET;  // zero UNSET: half
  bool has_groups = false, has_bias = false;  // groups: input 4 names the block of each column

  int64_t block_bytes() const { return block * bits / 8; }
  // Bytes of a row's zero points where those have |bits| too.
  int64_t zero_bytes() const { return (blocks * bits + 7) / 8; }
};

// Element |i| of a run of |bits|, the lowest bits first.
uint32_t unpack(const uint8_t* data, int64_t bits, int64_t i) {
  const int64_t bit = i * bits;
  return static_cast<uint32_t>(data[bit / 8]) >> (bit % 8) & ((1u << bits) - 1);
}

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
          unpack(stored + k / f_.block * f_.block_bytes(), f_.bits, k % f_.block);
      out[(k - k0) * step] = (static_cast<float>(value) - zero) * scale;
    }
  }

  float zero_point(int64_t n, int64_t block) const {
    if (f_.zero_dtype == PFRT_DTYPE_UNSET) return static_cast<float>(1u << (f_.bits - 1));
    if (f_.zero_dtype == PFRT_DTYPE_UINT8)
      return static_cast<float>(
          unpack(static_cast<const uint8_t*>(zeros_) + n * f_.zero_bytes(), f_.bits, block));
    float zero = 0;
    load_fn<float>(f_.zero_dtype)(&zero, zeros_, n * f_.blocks + block, 1, 1);
    return zero;
  }

  const NBitsForm& f_;
  const uint8_t* data_;
  const void *scales_, *zeros_;
  const int32_t* groups_;
};

Status check_sizes(const SnapshotNode& node, const NBitsForm& f) {
  const int64_t rows = f.n * f.blocks;
  if (node.input_elements(1) != rows * f.block_bytes())
    return kernel_error("B has ", node.input_elements(1), " bytes, expected ", f.n, " x ", f.blocks,
                        " blocks of ", f.block_bytes());
  if (node.input_elements(2) != rows)
    return kernel_error("scales has ", node.input_elements(2), " elements, expected ", rows);
  const int64_t zeros = f.zero_dtype == PFRT_DTYPE_UINT8 ? f.n * f.zero_bytes() : rows;
  if (node.has_input(3) && node.input_elements(3) != zeros)
    return kernel_error("zero_points has ", node.input_elements(3), " elements, expected ", zeros);
  if (f.has_groups && node.input_elements(4) < f.k)
    return kernel_error("g_idx has ", node.input_elements(4), " elements, needs ", f.k);
  if (node.has_input(5) && node.input_elements(5) != f.n)
    return kernel_error("bias has ", node.input_elements(5), " elements, expected ", f.n);
  return {};
}

Result<NBitsForm> read_form(const SnapshotNode& node) {
  PFRT_TRY(need(node, 3, 1));
  PFRT_TRY(need_types(node, {1}, Types{PFRT_DTYPE_UINT8}));
  PFRT_TRY(need_types(node, {2, 5}, kFloats));
  PFRT_TRY(need_types(node, {3}, kFloats | Types{PFRT_DTYPE_UINT8}));
  PFRT_TRY(need_types(node, {4}, Types{PFRT_DTYPE_INT32}));
  NBitsForm f;
  f.n = node.attr_int("N", 0), f.k = node.attr_int("K", 0);
  f.bits = node.attr_int("bits", 4), f.block = node.attr_int("block_size", 0);
  constexpr int64_t kMost = int64_t{1} << 31;
  if (f.n < 1 || f.k < 1 || f.n > kMost || f.k > kMost || f.block < 1 || f.block > kMost)
    return kernel_error("N ", f.n, ", K ", f.k, " and block_size ", f.block, " make no sense");
  if ((f.bits != 1 && f.bits != 2 && f.bits != 4 && f.bits != 8) || f.block * f.bits % 8 != 0)
    return kernel_error("blocks of ", f.block, " elements of ", f.bits,
                        " bits are not supported; expected 2, 4 or 8 bits and whole bytes");
  f.blocks = (f.k + f.block - 1) / f.block;
  if (f.n > INT64_MAX / 16 / (f.blocks * f.block)) return kernel_error("N x K is too large");
  const auto a = node.input_dims(0);
  if (a.empty() || a.back() != f.k)
    return kernel_error("A is ", dims_text(a), ", its last dimension must be K, ", f.k);
  f.m = SnapshotNode::elements(a.first(a.size() - 1));
  f.scale_dtype = node.input_dtype(2);
  f.zero_dtype = node.input_dtype(3);  // 0 when absent
  f.has_groups = node.has_input(4), f.has_bias = node.has_input(5);
  PFRT_TRY(check_sizes(node, f));
  std::vector<int64_t> y(a.begin(), a.end());
  y.back() = f.n;
  PFRT_TRY(need_output_dims(node, 0, y));
  return f;
}

}  // namespace

Result<Kernel> make_matmul_nbits(const KernelRequest& node) {
  PFRT_ASSIGN(const NBitsForm form, read_form(node));
  const pfrt_dtype dtype = node.input_dtype(0), bias_dtype = node.input_dtype(5);
  if (node.output_dtype(0) != dtype)
    return error(Code::kDTYPE_MISMATCH, "the output has another type than A");
  const StoreFn<float> store = dtype == PFRT_DTYPE_FLOAT32 ? nullptr : store_fn<float>(dtype);
  const Gemm<float> gemm(form.m, form.n, form.k);
  Kernel kernel;
  kernel.flops =
      2.0 * static_cast<double>(form.m) * static_cast<double>(form.n) * static_cast<double>(form.k);
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

// SPDX-License-Identifier: Apache-2.0
//
// QuantizeLinear and DequantizeLinear.
#include "providers/cpu/kernels/convert.h"
#include "providers/cpu/kernels/matmul/requantize.h"
#include "providers/cpu/kernels/quantize/rows.h"
#include "providers/cpu/kernels/quantize/scales.h"
#include "providers/cpu/kernels/signature.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTask = 16 * kBlock;
constexpr Types kScaleTypes{PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16};
constexpr Types kStoredTypes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8, PFRT_DTYPE_INT16,
                             PFRT_DTYPE_UINT16};

// The type x / scale is rounded to.
pfrt_dtype quotient_dtype(const SnapshotNode& node) {
  const int64_t precision = node.attr_int("precision", 0);
  if (precision == 0) return node.input_dtype(1);
  return precision > 0 && precision < 64 ? static_cast<pfrt_dtype>(precision)
                                         : pfrt_dtype{PFRT_DTYPE_UNSET};
}

std::string refuse_parameters(const SnapshotNode& node, pfrt_dtype quantized) {
  if (!kScaleTypes.has(node.input_dtype(1)))
    return message("scales are ", dtype_name(node.input_dtype(1)),
                   ": float32, float16 or bfloat16");
  if (node.has_input(2) && node.input_dtype(2) != quantized)
    return message("zero points are ", dtype_name(node.input_dtype(2)), ", quantized values ",
                   dtype_name(quantized));
  return {};
}

// To the values |dtype| has; float32 has them all.
void round_to(pfrt_dtype dtype, float* x, int64_t n) {
  if (dtype == PFRT_DTYPE_FLOAT32) return;
  uint16_t rounded[kBlock];
  store_block(dtype, x, n, rounded);
  load_block(dtype, rounded, n, x);
}

struct Quantize {
  Scales scales;
  pfrt_dtype from, to, quotient;

  void block(const Run& run, int64_t begin, int64_t end) const {
    float x[kBlock], scale[kBlock], zero[kBlock];
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t n = std::min(kBlock, end - at);
      if (at == begin || !scales.uniform()) {
        scales.load_scales(run, at, n, scale);
        scales.load_zeros(run, at, n, zero);
        round_to(quotient, scale, n);
      }
      load_block(from, element(from, run.input(0), at), n, x);
      round_to(quotient, x, n);
      for (int64_t i = 0; i < n; ++i) x[i] /= scale[i];
      round_to(quotient, x, n);
      for (int64_t i = 0; i < n; ++i) x[i] = round_even(x[i]) + zero[i];
      store_block(to, x, n, element(to, run.output(0), at));
    }
  }
};

// T holds every difference of two quantized values.
template <typename T>
struct Dequantize {
  Scales scales;
  pfrt_dtype from, to;

  void block(const Run& run, int64_t begin, int64_t end) const {
    T x[kBlock], zero[kBlock];
    float scale[kBlock], buffer[kBlock];
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t n = std::min(kBlock, end - at);
      if (at == begin || !scales.uniform()) {
        scales.load_scales(run, at, n, scale);
        scales.load_zeros(run, at, n, zero);
      }
      load_block(from, element(from, run.input(0), at), n, x);
      float* y = place_block(to, run.output(0), at, buffer);
      for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i] - zero[i]) * scale[i];
      write_block(to, run.output(0), at, n, y);
    }
  }
};

template <typename Job>
Kernel block_kernel(const SnapshotNode& node, const Job& job) {
  const int64_t n = node.output_elements(0);
  Kernel kernel;
  kernel.flops = 2 * static_cast<double>(n);
  kernel.run = [job, n](const Run& run) {
    run.blocks(n, kTask, [&](int64_t begin, int64_t end) { job.block(run, begin, end); });
    return run.stop();
  };
  return kernel;
}

}  // namespace

std::string refuse_quantize(const SnapshotNode& node) {
  const pfrt_dtype to = node.output_dtype(0);
  if (!kStoredTypes.has(to))
    return message("the output is ", dtype_name(to), ": ", kStoredTypes.text());
  if (!kScaleTypes.has(quotient_dtype(node)))
    return message("precision is ", dtype_name(quotient_dtype(node)),
                   ": float32, float16 or bfloat16");
  return refuse_parameters(node, to);
}

std::string refuse_dequantize(const SnapshotNode& node) {
  if (!kFloats.has(node.output_dtype(0)))
    return message("the output is ", dtype_name(node.output_dtype(0)), ": ", kFloats.text());
  return refuse_parameters(node, node.input_dtype(0));
}

Result<Kernel> make_quantize(const SnapshotNode& node) {
  PFRT_ASSIGN(const Scales scales, Scales::make(node));
  return block_kernel(
      node, Quantize{scales, node.input_dtype(0), node.output_dtype(0), quotient_dtype(node)});
}

Result<Kernel> make_dequantize(const SnapshotNode& node) {
  PFRT_ASSIGN(const Scales scales, Scales::make(node));
  const pfrt_dtype from = node.input_dtype(0), to = node.output_dtype(0);
  if (from == PFRT_DTYPE_INT32) return block_kernel(node, Dequantize<double>{scales, from, to});
  return block_kernel(node, Dequantize<float>{scales, from, to});
}

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
//
// QuantizeLinear and DequantizeLinear.
#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/requantize.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/quantize/rows.h"
#include "providers/cpu/kernels/quantize/scales.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTask = 16 * kBlock;
constexpr Types kScaleTypes{PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16,
                            PFRT_DTYPE_FLOAT8E8M0, PFRT_DTYPE_INT32};
constexpr Types kStoredTypes =
    kFloat8 | kSubByte |
    Types{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8, PFRT_DTYPE_INT16, PFRT_DTYPE_UINT16};

// The type that x / scale is rounded to. It does not matter for scales that are powers of two, and
// quotients of integers need a fraction.
pfrt_dtype quotient_dtype(const SnapshotNode& node) {
  const int64_t precision = node.attr_int("precision", 0);
  if (precision != 0)
    return precision > 0 && precision < 64 ? static_cast<pfrt_dtype>(precision)
                                           : pfrt_dtype{PFRT_DTYPE_UNSET};
  const pfrt_dtype scale = node.input_dtype(1);
  if (scale == PFRT_DTYPE_INT32) return PFRT_DTYPE_FLOAT64;
  return scale == PFRT_DTYPE_FLOAT8E8M0 ? pfrt_dtype{PFRT_DTYPE_FLOAT32} : scale;
}

std::string refuse_parameters(const SnapshotNode& node, pfrt_dtype quantized) {
  if (!kScaleTypes.has(node.input_dtype(1)))
    return message("scales are ", dtype_name(node.input_dtype(1)), ": ", kScaleTypes.text());
  if (node.has_input(2) && node.input_dtype(2) != quantized)
    return message("zero points are ", dtype_name(node.input_dtype(2)), ", quantized values ",
                   dtype_name(quantized));
  return {};
}

// Rounds to the values that |dtype| has; T has them all.
template <typename T>
void round_to(pfrt_dtype dtype, T* x, int64_t n) {
  if (dtype == kDtypeOf<T>) return;
  uint16_t rounded[kBlock];
  store_block(dtype, x, n, rounded);
  load_block(dtype, rounded, n, x);
}

// T has every value of |quotient|.
template <typename T>
struct Quantize {
  Scales scales;
  pfrt_dtype from, to, quotient;
  bool saturate;

  void block(const Run& run, int64_t begin, int64_t end) const {
    T x[kBlock], scale[kBlock], zero[kBlock];
    const bool small = is_small_float(to);
    const T low = lowest_of<T>(to), high = highest_of<T>(to);
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
      void* const y = element(to, run.output(0), at);
      if (small) {
        for (int64_t i = 0; i < n; ++i) x[i] += zero[i];
        store_small_floats(to, x, n, y, saturate, PowerRounding::kUp);
      } else {
        for (int64_t i = 0; i < n; ++i) {
          const T sum = round_even(x[i]) + zero[i];
          x[i] = sum < low ? low : sum > high ? high : sum;
        }
        store_block(to, x, n, y);
      }
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
    run.blocks(n, kTask, [&](int64_t begin, int64_t end) {
      job.block(run, begin, end);
      run.apply_epilogue(begin, end);
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace

std::string refuse_quantize(const KernelRequest& node) {
  const pfrt_dtype to = node.output_dtype(0);
  if (!kStoredTypes.has(to))
    return message("the output is ", dtype_name(to), ": ", kStoredTypes.text());
  if (!kFloats.has(quotient_dtype(node)))
    return message("precision is ", dtype_name(quotient_dtype(node)), ": ", kFloats.text());
  return refuse_parameters(node, to);
}

std::string refuse_dequantize(const KernelRequest& node) {
  if (!kFloats.has(node.output_dtype(0)))
    return message("the output is ", dtype_name(node.output_dtype(0)), ": ", kFloats.text());
  return refuse_parameters(node, node.input_dtype(0));
}

Result<Kernel> make_quantize(const KernelRequest& node) {
  PFRT_ASSIGN(const Scales scales, Scales::make(node));
  const pfrt_dtype from = node.input_dtype(0), to = node.output_dtype(0),
                   quotient = quotient_dtype(node);
  const bool saturate = node.attr_int("saturate", 1) != 0;
  if (quotient == PFRT_DTYPE_FLOAT64)
    return block_kernel(node, Quantize<double>{scales, from, to, quotient, saturate});
  return block_kernel(node, Quantize<float>{scales, from, to, quotient, saturate});
}

Result<Kernel> make_dequantize(const KernelRequest& node) {
  PFRT_ASSIGN(const Scales scales, Scales::make(node));
  const pfrt_dtype from = node.input_dtype(0), to = node.output_dtype(0);
  if (from == PFRT_DTYPE_INT32) return block_kernel(node, Dequantize<double>{scales, from, to});
  return block_kernel(node, Dequantize<float>{scales, from, to});
}

}  // namespace pfrt::cpu

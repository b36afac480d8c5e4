// SPDX-License-Identifier: Apache-2.0
//
// Local response normalisation: an element is divided by a power of the sum of squares over
// neighbouring channels. For row-major images, a channel of which is called a plane here, and for
// nChw16c.
#include <immintrin.h>

#include <algorithm>
#include <cmath>

#include "providers/cpu/elements/load.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/norm/make.h"

namespace pfrt::cpu {
namespace {

struct Form {
  pfrt_dtype dtype;
  int64_t batch, channels, pixels, before, after;
  double factor, bias, beta;

  // Whether plane_piece can compute it.
  bool usual() const { return dtype == PFRT_DTYPE_FLOAT32 && beta == 0.75 && isa() >= Isa::kAvx2; }
};

Result<Form> read(const SnapshotNode& node) {
  PFRT_TRY(need(node, 1, 1));
  const auto dims = node.input_dims(0);
  PFRT_TRY(need_output_dims(node, 0, dims));
  if (dims.size() < 2)
    return kernel_error("X needs a batch and channels, found rank ", dims.size());
  const int64_t size = node.attr_int("size", 1);
  if (size < 1) return kernel_error("size is ", size, ", expected at least 1");
  Form f{};
  f.dtype = node.input_dtype(0);
  f.batch = dims[0];
  f.channels = dims[1];
  f.pixels = SnapshotNode::elements(dims.subspan(2));
  f.before = (size - 1) / 2;
  f.after = size - 1 - f.before;
  f.factor = static_cast<double>(node.attr_float("alpha", 1e-4f)) / static_cast<double>(size);
  f.bias = static_cast<double>(node.attr_float("bias", 1.0f));
  f.beta = static_cast<double>(node.attr_float("beta", 0.75f));
  return f;
}

// x / (bias + factor * squares)^(3/4); |squares| is their sum.
PFRT_AVX2_FMA inline __m256 three_quarters(__m256 x, __m256 squares, float factor, float bias) {
  const __m256 base = _mm256_fmadd_ps(squares, _mm256_set1_ps(factor), _mm256_set1_ps(bias));
  const __m256 root = _mm256_sqrt_ps(base);
  return _mm256_div_ps(x, _mm256_mul_ps(root, _mm256_sqrt_ps(root)));
}

// Computes n elements of a plane. Their sums take |count| planes, |stride| elements apart, the
// first of which is at |first|.
PFRT_AVX2_FMA void plane_piece(const Form& f, const float* x, float* y, const float* first,
                               int64_t stride, int64_t count, int64_t n) {
  const float factor = static_cast<float>(f.factor), bias = static_cast<float>(f.bias);
  for (int64_t j = 0; j < n; j += 8) {
    const bool whole = j + 8 <= n;
    const __m256i here = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(whole ? 8 : n - j)),
                                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m256 sum = _mm256_setzero_ps();
    for (int64_t c = 0; c < count; ++c) {
      const float* const at = first + c * stride + j;
      const __m256 v = whole ? _mm256_loadu_ps(at) : _mm256_maskload_ps(at, here);
      sum = _mm256_fmadd_ps(v, v, sum);
    }
    const __m256 v = whole ? _mm256_loadu_ps(x + j) : _mm256_maskload_ps(x + j, here);
    const __m256 out = three_quarters(v, sum, factor, bias);
    if (whole)
      _mm256_storeu_ps(y + j, out);
    else
      _mm256_maskstore_ps(y + j, here, out);
  }
}

constexpr int64_t kBlock = 16;
// The most channels that a sum takes on one side of its own.
constexpr int64_t kMostAside = 8;
constexpr int64_t kChunk = 512, kBlockChunk = 256;  // pixels at a time

// Computes n pixels of a block of 16 channels. |previous| and |next| are the same pixels in the
// blocks before and after it; null where there is none.
PFRT_AVX2_FMA void block_piece(const Form& f, const float* x, const float* previous,
                               const float* next, float* y, int64_t n) {
  const float factor = static_cast<float>(f.factor), bias = static_cast<float>(f.bias);
  // A line has the 16 channels of a pixel and those that its sums need on both sides; missing ones
  // are 0. Several lines are written before the first is read: a load of bytes that two stores have
  // just written is slow.
  constexpr int64_t kLine = kMostAside + kBlock + kMostAside, kTogether = 16;
  alignas(32) float lines[kTogether * kLine] = {};
  for (int64_t first = 0; first < n; first += kTogether) {
    const int64_t count = std::min(kTogether, n - first);
    for (int64_t p = 0; p < count; ++p) {
      const int64_t at = (first + p) * kBlock;
      float* const line = lines + p * kLine;
      if (previous != nullptr)
        _mm256_store_ps(line, _mm256_loadu_ps(previous + at + kBlock - kMostAside));
      _mm256_store_ps(line + kMostAside, _mm256_loadu_ps(x + at));
      _mm256_store_ps(line + kMostAside + 8, _mm256_loadu_ps(x + at + 8));
      if (next != nullptr) _mm256_store_ps(line + kMostAside + kBlock, _mm256_loadu_ps(next + at));
    }
    for (int64_t p = 0; p < count; ++p)
      for (int64_t half = 0; half < kBlock; half += 8) {
        const float* const at = lines + p * kLine + kMostAside + half;
        __m256 sum = _mm256_setzero_ps();
        for (int64_t c = -f.before; c <= f.after; ++c) {
          const __m256 v = _mm256_loadu_ps(at + c);
          sum = _mm256_fmadd_ps(v, v, sum);
        }
        _mm256_storeu_ps(y + (first + p) * kBlock + half,
                         three_quarters(_mm256_load_ps(at), sum, factor, bias));
      }
  }
}

// n elements of |plane| from |at| on, of any type, with the sums over planes |from| to |to|.
void any_piece(const Run& run, const Form& f, int64_t plane, int64_t from, int64_t to, int64_t at,
               int64_t n, double* sum, double* line) {
  const LoadFn<double> load = load_fn<double>(f.dtype);
  std::fill_n(sum, n, 0.0);
  for (int64_t c = from; c <= to; ++c) {
    load(line, run.input(0), c * f.pixels + at, 1, n);
    for (int64_t j = 0; j < n; ++j) sum[j] += line[j] * line[j];
  }
  load(line, run.input(0), plane * f.pixels + at, 1, n);
  for (int64_t j = 0; j < n; ++j) line[j] /= std::pow(f.bias + f.factor * sum[j], f.beta);
  store_fn<double>(f.dtype)(run.output(0), plane * f.pixels + at, line, n);
}

double flops(const Form& f) {
  const double neighbours = static_cast<double>(std::min(f.before + f.after + 1, f.channels));
  return (2 * neighbours + 8) * static_cast<double>(f.batch) * static_cast<double>(f.channels) *
         static_cast<double>(f.pixels);
}

}  // namespace

Result<Kernel> make_lrn(const KernelRequest& node) {
  PFRT_ASSIGN(const Form f, read(node));
  Kernel kernel;
  kernel.flops = flops(f);
  kernel.run = [f, usual = f.usual()](const Run& run) -> pfrt_code {
    run.parallel(f.batch * f.channels, [&](int64_t i, uint32_t) {
      const int64_t channel = i % f.channels, image = i - channel;
      const int64_t from = image + std::max<int64_t>(0, channel - f.before);
      const int64_t to =
          image + (f.after >= f.channels - 1 - channel ? f.channels - 1 : channel + f.after);
      double sum[kChunk], line[kChunk];
      for (int64_t at = 0; at < f.pixels && !run.stopped(); at += kChunk) {
        const int64_t n = std::min(kChunk, f.pixels - at);
        const float* const x = run.input<float>(0) + at;
        if (usual)
          plane_piece(f, x + i * f.pixels, run.output<float>(0) + i * f.pixels + at,
                      x + from * f.pixels, f.pixels, to - from + 1, n);
        else
          any_piece(run, f, i, from, to, at, n, sum, line);
        run.apply_epilogue(i * f.pixels + at, i * f.pixels + at + n);
      }
    });
    return run.stop();
  };
  return kernel;
}

std::string refuse_lrn_nchw16c(const SnapshotNode& node, Nchw16cSides sides) {
  if (sides.input != sides.output) return "input and output need the same layout";
  if (node.input_dtype(0) != PFRT_DTYPE_FLOAT32) return "nChw16c is for float32";
  if (isa() < Isa::kAvx2) return "the machine, or PFRT_ISA, has no AVX2";
  if (node.attr_float("beta", 0.75f) != 0.75f || node.attr_int("size", 1) > 2 * kMostAside)
    return "nChw16c needs a beta of 0.75 and a size of at most 16";
  return "";
}

Result<Kernel> make_lrn_nchw16c(const SnapshotNode& node, Nchw16cSides) {
  PFRT_ASSIGN(const Form f, read(node));
  Kernel kernel;
  kernel.flops = flops(f);
  kernel.run = [f](const Run& run) -> pfrt_code {
    const int64_t blocks = f.channels / kBlock, tasks = (f.pixels + kBlockChunk - 1) / kBlockChunk;
    run.parallel(f.batch * blocks * tasks, [&](int64_t i, uint32_t) {
      if (run.stopped()) return;
      const int64_t block = i / tasks, first = i % tasks * kBlockChunk;
      const int64_t n = std::min(kBlockChunk, f.pixels - first);
      const int64_t at = (block * f.pixels + first) * kBlock, step = f.pixels * kBlock;
      const float* const x = run.input<float>(0) + at;
      block_piece(f, x, block % blocks > 0 ? x - step : nullptr,
                  block % blocks + 1 < blocks ? x + step : nullptr, run.output<float>(0) + at, n);
      run.apply_epilogue(at, at + n * kBlock);
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
//
// Weights of 2, 4 or 8 bits that are expanded as they are read: MatMulBnb4 in the panels of the
// matmul, GatherBlockQuantized line by line.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <vector>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/contrib/make.h"
#include "providers/cpu/kernels/matmul/make.h"

namespace pfrt::cpu {
namespace {

// ------------------------------------------------------------------ MatMulBnb4

using Levels = std::array<float, 16>;
// A sign, then one of eight magnitudes.
constexpr Levels kFp4 = {
    0.0f,  0.005208333333f,  0.66666667f,  1.0f,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
    -0.0f, -0.005208333333f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
// Quantiles of the normal distribution, scaled to [-1, 1] (Dettmers et al., QLoRA).
constexpr Levels kNf4 = {-1.0f,
                         -0.6961928009986877f,
                         -0.5250730514526367f,
                         -0.39491748809814453f,
                         -0.28444138169288635f,
                         -0.18477343022823334f,
                         -0.09105003625154495f,
                         0.0f,
                         0.07958029955625534f,
                         0.16093020141124725f,
                         0.24611230194568634f,
                         0.33791524171829224f,
                         0.44070982933044434f,
                         0.5626170039176941f,
                         0.7229568362236023f,
                         1.0f};

// Column n of B is elements [n * depth, (n + 1) * depth) of one list of levels, the first of each
// byte in its high half; blocks of that list share a scale.
class LevelSource final : public PanelSource<float> {
 public:
  LevelSource(const Levels& levels, const uint8_t* codes, const float* scales, int64_t depth,
              int64_t block)
      : levels_(levels), codes_(codes), scales_(scales), depth_(depth), block_(block) {}
  void pack(float* out, int64_t width, int64_t first, int64_t count, int64_t k0,
            int64_t kn) const override {
    for (int64_t j = 0; j < width; ++j) {
      const int64_t begin = (first + j) * depth_ + k0;
      for (int64_t k = 0; k < kn; ++k) out[k * width + j] = j < count ? at(begin + k) : 0;
    }
  }

 private:
  float at(int64_t i) const {
    const uint8_t both = codes_[i / 2];
    return levels_[i % 2 == 0 ? both >> 4 : both & 15] * scales_[i / block_];
  }
  const Levels& levels_;
  const uint8_t* codes_;
  const float* scales_;
  int64_t depth_, block_;
};

// ------------------------------------------------------------------ GatherBlockQuantized

struct Gather {
  pfrt_dtype data = PFRT_DTYPE_UNSET, index = PFRT_DTYPE_UNSET, scale = PFRT_DTYPE_UNSET;
  int64_t outer = 1, size = 1, inner = 1;  // the data is [outer, size, inner] around gather_axis
  int64_t indices = 1;
  // The data is [.., along, below] around quantize_axis; there are |blocks| of |block| along it.
  int64_t along = 1, below = 1, block = 1, blocks = 1;
  int bits = 4;
  bool is_signed = false;
  int64_t default_zero = 0;

  bool vectors = false;

  // Element |i| of packed codes, the first of each byte in its low bits.
  int64_t code(const uint8_t* codes, int64_t i) const {
    const int64_t each = 8 / bits;
    const int value = codes[i / each] >> (i % each * bits) & ((1 << bits) - 1);
    return is_signed && value >> (bits - 1) ? value - (1 << bits) : value;
  }
  // Position of the scale of element |i|.
  int64_t scale_at(int64_t i) const {
    const int64_t above = i / below / along, at = i / below % along / block;
    return (above * blocks + at) * below + i % below;
  }
  // Rows of zero points along the last dimension begin a byte.
  int64_t zero_at(const uint8_t* codes, int64_t i) const {
    if (data != PFRT_DTYPE_UINT8) return code(codes, i);
    const int64_t each = 8 / bits, row = (blocks + each - 1) / each * each;
    return code(codes, i / blocks * row + i % blocks);
  }
};

// Codes of one block: value = (code XOR flip) - base, times the factor.
struct Block {
  int flip;      // the highest bit of signed codes, so that they are in order; or 0
  int32_t base;  // what it adds, and the zero point
  float factor;

  float value(int64_t code) const {
    return static_cast<float>(static_cast<int32_t>(code) - base) * factor;
  }
};

// Writes the values of 8 codes, a byte each.
PFRT_AVX2_INLINE inline void put_values(__m128i codes, const Block& b, float* out) {
  const __m256i wide = _mm256_sub_epi32(_mm256_cvtepu8_epi32(codes), _mm256_set1_epi32(b.base));
  _mm256_storeu_ps(out, _mm256_mul_ps(_mm256_cvtepi32_ps(wide), _mm256_set1_ps(b.factor)));
}
PFRT_AVX2_INLINE inline void put_values_of_16(__m128i codes, const Block& b, float* out) {
  codes = _mm_xor_si128(codes, _mm_set1_epi8(static_cast<char>(b.flip)));
  put_values(codes, b, out);
  put_values(_mm_srli_si128(codes, 8), b, out + 8);
}

// Writes the values of the first |n| of |codes|, as far as whole vectors of 16 bytes go; returns
// their number.
PFRT_AVX2 int64_t put_block(const uint8_t* codes, int bits, int64_t n, const Block& b, float* out) {
  const int64_t step = 128 / bits;
  int64_t i = 0;
  for (; i + step <= n; i += step, codes += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
    if (bits == 8) {
      put_values_of_16(bytes, b, out + i);
      continue;
    }
    const __m128i mask = _mm_set1_epi8(static_cast<char>((1 << bits) - 1));
    const __m128i first = _mm_and_si128(bytes, mask),
                  second = _mm_and_si128(_mm_srli_epi16(bytes, bits), mask);
    const __m128i low = _mm_unpacklo_epi8(first, second), high = _mm_unpackhi_epi8(first, second);
    if (bits == 4) {
      put_values_of_16(low, b, out + i);
      put_values_of_16(high, b, out + i + 16);
      continue;
    }
    const __m128i third = _mm_and_si128(_mm_srli_epi16(bytes, 4), mask),
                  fourth = _mm_and_si128(_mm_srli_epi16(bytes, 6), mask);
    const __m128i low2 = _mm_unpacklo_epi8(third, fourth), high2 = _mm_unpackhi_epi8(third, fourth);
    put_values_of_16(_mm_unpacklo_epi16(low, low2), b, out + i);
    put_values_of_16(_mm_unpackhi_epi16(low, low2), b, out + i + 16);
    put_values_of_16(_mm_unpacklo_epi16(high, high2), b, out + i + 32);
    put_values_of_16(_mm_unpackhi_epi16(high, high2), b, out + i + 48);
  }
  return i;
}

// Expands |n| codes of one block from element |first| on.
void expand_block(const Gather& g, const uint8_t* codes, int64_t first, int64_t n, int64_t zero,
                  float factor, float* out) {
  const int flip = g.is_signed ? 1 << (g.bits - 1) : 0;
  const Block b{flip, static_cast<int32_t>(zero) + flip, factor};
  const int64_t each = 8 / g.bits;
  int64_t i = 0;
  if (g.vectors && first % each == 0) i = put_block(codes + first / each, g.bits, n, b, out);
  for (; i < n; ++i) out[i] = b.value(g.code(codes, first + i) + flip);
}

// Expands |inner| elements from |first| on, to element |to| of the output.
void expand(const Run& run, const Gather& g, int64_t first, int64_t to) {
  const auto *const codes = run.input<uint8_t>(0), *const zeros = run.input<uint8_t>(3);
  float line[kBlock];
  for (int64_t done = 0; done < g.inner; done += kBlock) {
    const int64_t n = std::min(kBlock, g.inner - done);
    for (int64_t i = 0; i < n;) {
      const int64_t at = first + done + i, scale = g.scale_at(at);
      const float factor = load_scalar<float>(g.scale, element(g.scale, run.input(2), scale));
      const int64_t zero = zeros ? g.zero_at(zeros, scale) : g.default_zero;
      // Elements of one block are contiguous where nothing is below the axis.
      const int64_t within = at % g.along,
                    left = std::min(g.block - within % g.block, g.along - within);
      const int64_t end = g.below > 1 ? i + 1 : std::min(n, i + left);
      expand_block(g, codes, at, end - i, zero, factor, line + i);
      i = end;
    }
    store_block(g.scale, line, n, element(g.scale, run.output(0), to + done));
  }
}

pfrt_code gather(const Run& run, const Gather& g) {
  std::vector<int64_t> at(static_cast<size_t>(g.indices));
  load_block(g.index, run.input(1), g.indices, at.data());
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] < -g.size || at[i] >= g.size)
      return run.fail(Code::kINVALID_ARGUMENT, "index ", i, " is ", at[i], ": the axis has ",
                      g.size, " elements");
    if (at[i] < 0) at[i] += g.size;
  }
  if (g.inner == 0 || g.outer == 0) return PFRT_CODE_OK;
  run.parallel(g.outer * g.indices, [&](int64_t task, uint32_t) {
    if (run.stopped()) return;
    const int64_t outer = task / g.indices, index = at[static_cast<size_t>(task % g.indices)];
    expand(run, g, (outer * g.size + index) * g.inner, task * g.inner);
  });
  return run.stop();
}

int64_t product(std::span<const int64_t> dims) { return element_count(dims.data(), dims.size()); }

Status check_blocks(const SnapshotNode& node, uint32_t i, const std::vector<int64_t>& dims) {
  if (node.input_rank(i) >= 0 && same_dims(node.input_dims(i), dims)) return {};
  return kernel_error("input ", i, " has dimensions ", dims_text(node.input_dims(i)), ": ",
                      dims_text(dims));
}

}  // namespace

Result<Kernel> make_bnb4(const KernelRequest& node) {
  PFRT_TRY(need(node, 3, 1));
  PFRT_TRY(need_types(node, {1}, Types{PFRT_DTYPE_UINT8}));
  PFRT_TRY(need_types(node, {2}, kFloats));
  const auto a = node.input_dims(0);
  const int64_t k = node.attr_int("K", 0), n = node.attr_int("N", 0),
                block = node.attr_int("block_size", 0);
  if (a.empty() || a.back() != k || k < 1 || n < 1 || block < 1)
    return kernel_error("A is ", dims_text(a), ", K ", k, ", N ", n, " and blocks of ", block);
  const int64_t count = n * k, scales = (count + block - 1) / block;
  if (node.input_elements(1) != (count + 1) / 2 || node.input_elements(2) != scales)
    return kernel_error("B has ", node.input_elements(1), " bytes and ", node.input_elements(2),
                        " scales: ", (count + 1) / 2, " and ", scales);
  std::vector<int64_t> dims(a.begin(), a.end());
  dims.back() = n;
  PFRT_TRY(need_output_dims(node, 0, dims));
  const int64_t m = product(a.first(a.size() - 1));
  const pfrt_dtype dtype = node.input_dtype(0), scale_dtype = node.input_dtype(2);
  if (dtype == PFRT_DTYPE_FLOAT64 || node.output_dtype(0) != dtype)
    return error(Code::kDTYPE_MISMATCH, "A is ", dtype_name(dtype), " and Y ",
                 dtype_name(node.output_dtype(0)), ": one of float32, float16 and bfloat16");
  const Levels& levels = node.attr_int("quant_type", 0) == 0 ? kFp4 : kNf4;
  const Gemm<float> gemm(m, n, k);
  const StoreFn<float> store = dtype == PFRT_DTYPE_FLOAT32 ? nullptr : store_fn<float>(dtype);
  Kernel kernel;
  kernel.flops = 2.0 * static_cast<double>(m) * static_cast<double>(count);
  kernel.scratch_bytes = gemm_scratch(gemm, store != nullptr);
  kernel.run = [=, &levels](const Run& run) {
    std::vector<float> scale(static_cast<size_t>(scales));
    load_block(scale_dtype, run.input(2), scales, scale.data());
    const StridedSource<float> left(run.input(0), dtype, 0, k, 1);
    const LevelSource right(levels, run.input<uint8_t>(1), scale.data(), k, block);
    const GemmOut<float> out{run.output(0), store, 0, n};
    run.parallel(gemm.tiles(), [&](int64_t i, uint32_t worker) {
      compute_gemm_tile(run, gemm, gemm.tile(i), left, right, out, run.scratch<float>(worker),
                        [](float*, int64_t, int64_t, int64_t) {});
    });
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_gather_block(const KernelRequest& node) {
  PFRT_TRY(need(node, 3, 1));
  Gather g;
  g.data = node.input_dtype(0);
  g.index = node.input_dtype(1);
  g.scale = node.input_dtype(2);
  PFRT_TRY(need_types(node, {1}, kIndices));
  PFRT_TRY(need_types(node, {2}, kFloatsTo32));
  PFRT_TRY(need_types(node, {3}, Types{g.data}));
  if (node.output_dtype(0) != g.scale)
    return error(Code::kDTYPE_MISMATCH, "the output is ", dtype_name(node.output_dtype(0)),
                 ", the scales ", dtype_name(g.scale));
  const bool bytes = g.data == PFRT_DTYPE_UINT8;
  g.bits = static_cast<int>(node.attr_int("bits", 4));
  if (g.bits != 4 && !(bytes && (g.bits == 2 || g.bits == 8)))
    return kernel_error("elements have ", g.bits, " bits");
  g.is_signed = g.data == PFRT_DTYPE_INT4;
  g.vectors = isa() >= Isa::kAvx2;
  g.default_zero = bytes ? int64_t{1} << (g.bits - 1) : 0;
  std::vector<int64_t> dims(node.input_dims(0).begin(), node.input_dims(0).end());
  PFRT_ASSIGN(const int64_t axis, axis_of(node.attr_int("gather_axis", 0), dims.size()));
  PFRT_ASSIGN(const int64_t along, axis_of(node.attr_int("quantize_axis", 1), dims.size()));
  const size_t at = static_cast<size_t>(axis), q = static_cast<size_t>(along);
  if (bytes && (at != 0 || q + 1 != dims.size() || at == q))
    return kernel_error("data of uint8 is gathered along axis 0 and quantized along the last");
  if (bytes) dims[q] *= 8 / g.bits;
  if (product(dims) < 0) return kernel_error("the data is too large");
  const std::span<const int64_t> all(dims);
  g.outer = product(all.first(at));
  g.size = dims[at];
  g.inner = product(all.subspan(at + 1));
  g.along = dims[q];
  g.below = product(all.subspan(q + 1));
  g.block = node.attr_int("block_size", 128);
  if (g.block < 1) return kernel_error("block_size is ", g.block);
  g.blocks = g.along / g.block + (g.along % g.block != 0 ? 1 : 0);
  g.indices = node.input_elements(1);
  std::vector<int64_t> blocks = dims;
  blocks[q] = g.blocks;
  PFRT_TRY(check_blocks(node, 2, blocks));
  if (node.has_input(3)) {
    const int64_t each = bytes ? 8 / g.bits : 1;
    blocks[q] = (g.blocks + each - 1) / each;
    PFRT_TRY(check_blocks(node, 3, blocks));
  }
  std::vector<int64_t> out(all.begin(), all.begin() + axis);
  out.insert(out.end(), node.input_dims(1).begin(), node.input_dims(1).end());
  out.insert(out.end(), all.begin() + axis + 1, all.end());
  PFRT_TRY(need_output_dims(node, 0, out));
  Kernel kernel;
  kernel.flops = 2 * static_cast<double>(node.output_elements(0));
  kernel.run = [g](const Run& run) { return gather(run, g); };
  return kernel;
}

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
//
// ConvInteger whose groups have one input channel, by the kernel for float32: bytes less their zero
// points are below 256, and sums of up to 256 products of them below 2^24, where float32 is exact.
#include <emmintrin.h>

#include <memory>

#include "providers/cpu/epilogue/in_float32.h"
#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/row/requantize.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kMostTaps = 256;
constexpr int64_t kPiece = 1 << 14;  // elements
constexpr Types kBytes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};
static_assert(255 * 255 * kMostTaps < 1 << 24);

uint64_t padded(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

struct Plan {
  int64_t pixels, planes, taps, channels, sums;  // pixels of a plane, taps of a channel
  pfrt_dtype x_type, w_type;
  Parameter x_zero, w_zeros;
  uint64_t own;  // bytes of scratch of the kernel for float32

  uint64_t image_bytes() const { return padded(static_cast<uint64_t>(planes * pixels) * 4); }
  uint64_t weight_bytes() const { return padded(static_cast<uint64_t>(channels * taps) * 4); }
};

template <typename Byte>
void subtract(const void* bytes, int64_t n, float zero, float* out) {
  const auto* const from = static_cast<const Byte*>(bytes);
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(from[i]) - zero;
}

void subtract(pfrt_dtype dtype, const void* base, int64_t at, int64_t n, float zero, float* out) {
  const auto* const from = static_cast<const uint8_t*>(base) + at;
  if (dtype == PFRT_DTYPE_INT8)
    subtract<int8_t>(from, n, zero, out + at);
  else
    subtract<uint8_t>(from, n, zero, out + at);
}

// |n| float32 that are whole numbers to int32, in place.
void to_integers(float* x, int64_t n) {
  const auto vector = [](float* at) {
    const __m128i whole = _mm_cvtps_epi32(_mm_loadu_ps(at));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at), whole);
  };
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) vector(x + i);
  for (; i < n; ++i) _mm_store_ss(x + i, _mm_castsi128_ps(_mm_cvtps_epi32(_mm_load_ss(x + i))));
}

}  // namespace

std::string refuse_conv_integer_depthwise(const KernelRequest& node) {
  if (std::string why = refuse_conv_integer(node); !why.empty()) return why;
  if (std::string why = refuse_conv_depthwise(node); !why.empty()) return why;
  const int64_t taps = SnapshotNode::elements(node.input_dims(1).subspan(2));
  return taps >= 0 && taps <= kMostTaps ? "" : "sums of so many taps may not be exact";
}

Result<Kernel> make_conv_integer_depthwise(const KernelRequest& node) {
  PFRT_ASSIGN(ConvGeometry g, conv_geometry(node, 0, 1));
  PFRT_TRY(need_types(node, {0, 1, 2, 3}, kBytes));
  const int64_t channels = g.groups * g.group_out;
  Plan made{g.window.image_size(),
            g.batch * g.groups,
            g.window.taps(),
            channels,
            g.batch * channels * g.window.position_count(),
            node.input_dtype(0),
            node.input_dtype(1),
            Parameter(node, 2),
            Parameter(node, 3),
            0};
  PFRT_TRY(made.x_zero.check("X's zero point", 1));
  PFRT_TRY(made.w_zeros.check("W's zero point", channels));
  Kernel kernel = depthwise_kernel(std::move(g), 1, false);
  made.own = padded(kernel.shared_bytes);
  kernel.shared_bytes = made.own + made.image_bytes() + made.weight_bytes();
  const auto plan = std::make_shared<const Plan>(made);
  kernel.run = [plan, inner = std::move(kernel.run)](const Run& run) -> pfrt_code {
    auto* const image = reinterpret_cast<float*>(run.shared<char>() + plan->own);
    auto* const weights =
        reinterpret_cast<float*>(run.shared<char>() + plan->own + plan->image_bytes());
    const float zero = plan->x_zero.read<float>(run, 1, 0)[0];
    const std::vector<float> zeros = plan->w_zeros.read<float>(run, plan->channels, 0);
    run.blocks(plan->planes * plan->pixels, kPiece, [&](int64_t begin, int64_t end) {
      if (!run.stopped()) subtract(plan->x_type, run.input(0), begin, end - begin, zero, image);
    });
    for (int64_t c = 0; c < plan->channels; ++c)
      subtract(plan->w_type, run.input(1), c * plan->taps, plan->taps,
               zeros[static_cast<size_t>(c)], weights);
    Widened seen;
    seen.inputs[0] = image;
    seen.inputs[1] = weights;
    seen.output = run.output(0);
    if (const pfrt_code code = inner(Run(run, seen)); code != PFRT_CODE_OK) return code;
    run.blocks(plan->sums, kPiece, [&](int64_t begin, int64_t end) {
      if (!run.stopped()) to_integers(run.output<float>(0) + begin, end - begin);
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu

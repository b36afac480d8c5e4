// SPDX-License-Identifier: Apache-2.0
//
// Maximum pooling of bytes in nChw16c, the 16 channels of a pixel at once.
#include <emmintrin.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "providers/cpu/kernels/pool/make.h"
#include "providers/cpu/kernels/window/nchw16c_row.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kBlock = kBlockChannels;
constexpr int64_t kTask = 1 << 16;  // bytes

__m128i load(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

// Row |row| of positions. Bytes with their highest bits inverted by |flip| compare without sign.
void max_row(const WindowRows& rows, int64_t row, const uint8_t* image, __m128i flip,
             uint8_t* out) {
  const uint8_t lowest = _mm_cvtsi128_si32(flip) != 0 ? 0x80 : 0;
  std::memset(out, lowest, static_cast<size_t>(rows.row_length() * kBlock));
  for (int64_t y = 0; y < rows.tap_rows(); ++y) {
    const int64_t start = rows.row_offset(row, y);
    if (start < 0) continue;
    for (int64_t x = 0; x < rows.row_taps(); ++x) {
      const WindowRows::Span& span = rows.span(x);
      for (int64_t p = span.begin; p < span.end; ++p) {
        const __m128i a = load(out + p * kBlock);
        const __m128i b = load(image + (start + span.first + p * rows.stride()) * kBlock);
        const __m128i most = _mm_max_epu8(_mm_xor_si128(a, flip), _mm_xor_si128(b, flip));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + p * kBlock), _mm_xor_si128(most, flip));
      }
    }
  }
}

}  // namespace

Result<Kernel> make_max_pool_bytes_nchw16c(const SnapshotNode& node) {
  PFRT_ASSIGN(PoolGeometry g, pool_geometry(node));
  const auto rows = std::make_shared<const WindowRows>(g.window);
  const int64_t blocks = g.planes / kBlock, pixels = g.window.image_size();
  const bool is_signed = node.input_dtype(0) == PFRT_DTYPE_INT8;
  Kernel kernel;
  kernel.flops = static_cast<double>(g.planes) * static_cast<double>(g.window.position_count()) *
                 static_cast<double>(g.window.taps());
  kernel.run = [=](const Run& run) -> pfrt_code {
    const int64_t length = rows->row_length(), all = rows->rows();
    if (length * all == 0) return run.stop();
    const __m128i flip = _mm_set1_epi8(is_signed ? static_cast<char>(0x80) : 0);
    run.blocks(blocks * all, std::max<int64_t>(1, kTask / (length * kBlock)),
               [&](int64_t begin, int64_t end) {
                 if (run.stopped()) return;
                 for (int64_t i = begin; i < end; ++i)
                   max_row(*rows, i % all, run.input<uint8_t>(0) + i / all * pixels * kBlock, flip,
                           run.output<uint8_t>(0) + i * length * kBlock);
                 run.apply_epilogue(begin * length * kBlock, end * length * kBlock);
               });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu

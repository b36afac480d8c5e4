// SPDX-License-Identifier: Apache-2.0
//
// Maximum pooling of bytes: in nChw16c the 16 channels of a pixel at once; of planes across the
// window first and then along it, so that h x w taps take h + w comparisons.
#include <emmintrin.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "providers/cpu/kernels/pool/make.h"
#include "providers/cpu/kernels/window/nchw16c_row.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kBlock = kBlockChannels;
constexpr int64_t kTask = 1 << 16;  // bytes

int64_t ceil_to_block(int64_t n) { return (n + kBlock - 1) / kBlock * kBlock; }

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

// Planes: how rows of maxima across the window lie, with the least number around them.
struct PlanePlan {
  WindowRows rows;
  int64_t planes, pixels, width, left, pitch, block;
  std::vector<int64_t> taps;  // of a row, from |left| before position 0 on
  uint8_t flip;
};

constexpr int64_t kMostAround = 4096, kBlockBytes = 8 << 10;

// nullopt where the window reaches too far beyond the image.
std::optional<PlanePlan> plane_plan(const PoolGeometry& g, bool is_signed) {
  const Window& w = g.window;
  const WindowRows rows(w);
  const int64_t width = w.image.back(), left = w.pads.back(), dilation = w.dilations.back();
  if (left > kMostAround || w.kernel.back() > kMostAround || dilation > kMostAround ||
      rows.stride() > kMostAround)
    return std::nullopt;
  // A vector of positions reads so far.
  const int64_t last = (ceil_to_block(rows.row_length()) + kBlock) * rows.stride() +
                       (w.kernel.back() - 1) * dilation;
  if (last > left + width + kMostAround * kBlock) return std::nullopt;
  PlanePlan plan{rows, g.planes, w.image_size(), width, left, 0, 1, {}, 0};
  plan.pitch = std::max(last, left + ceil_to_block(width)) + 2 * kBlock;
  plan.block = std::clamp<int64_t>(kBlockBytes / plan.pitch, 1, std::max<int64_t>(rows.rows(), 1));
  for (int64_t x = 0; x < w.kernel.back(); ++x) plan.taps.push_back(x * dilation);
  plan.flip = is_signed ? 0x80 : 0;
  return plan;
}

// The first |n| bytes, fewer than 16.
__m128i first_bytes(__m128i line, int64_t n) {
  alignas(kBlock) static constexpr uint8_t kKept[2 * kBlock] = {
      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
      0xff, 0xff, 0xff, 0xff, 0xff, 0,    0,    0,    0,    0,    0,
      0,    0,    0,    0,    0,    0,    0,    0,    0,    0};
  return _mm_and_si128(line, load(kKept + kBlock - n));
}

// |out| has the maxima across the window of row |row|. |left| bytes follow |plane|.
void max_across(const PlanePlan& plan, int64_t row, const uint8_t* plane, int64_t left,
                uint8_t* out) {
  const __m128i flip = _mm_set1_epi8(static_cast<char>(plan.flip));
  const TapRows starts(plan.rows, row);
  const int64_t tap_rows = plan.rows.tap_rows();
  for (int64_t x = 0; x < plan.width; x += kBlock) {
    __m128i most = _mm_setzero_si128();
    for (int64_t t = 0; t < tap_rows; ++t) {
      const int64_t start = starts[t];
      if (start < 0) continue;
      const uint8_t* from = plane + start + x;
      uint8_t last[kBlock];
      if (start + x + kBlock > left) {
        std::copy_n(from, left - start - x, last);
        from = last;
      }
      most = _mm_max_epu8(most, _mm_xor_si128(load(from), flip));
    }
    if (x + kBlock > plan.width) most = first_bytes(most, plan.width - x);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + x), most);
  }
}

// Returns the maxima of 16 positions from |from| on.
template <int stride>
__m128i max_along(const std::vector<int64_t>& taps, const uint8_t* from) {
  const __m128i even = _mm_set1_epi16(0xff);
  __m128i most = _mm_setzero_si128();
  for (const int64_t tap : taps) {
    __m128i line = load(from + tap);
    if constexpr (stride == 2)
      line = _mm_packus_epi16(_mm_and_si128(line, even),
                              _mm_and_si128(load(from + tap + kBlock), even));
    most = _mm_max_epu8(most, line);
  }
  return most;
}

__m128i max_along_any(const std::vector<int64_t>& taps, int64_t stride, const uint8_t* from,
                      int64_t count) {
  uint8_t most[kBlock] = {};
  for (const int64_t tap : taps)
    for (int64_t i = 0; i < count; ++i) most[i] = std::max(most[i], from[tap + i * stride]);
  return load(most);
}

// A row of positions; |room| bytes from |out| on may be written before they get what they hold.
void finish_row(const PlanePlan& plan, const uint8_t* across, uint8_t* out, int64_t room) {
  const int64_t stride = plan.rows.stride(), length = plan.rows.row_length();
  const __m128i flip = _mm_set1_epi8(static_cast<char>(plan.flip));
  for (int64_t p = 0; p < length; p += kBlock) {
    const uint8_t* const from = across + p * stride;
    __m128i most = stride == 1 ? max_along<1>(plan.taps, from)
                   : stride == 2
                       ? max_along<2>(plan.taps, from)
                       : max_along_any(plan.taps, stride, from, std::min(kBlock, length - p));
    most = _mm_xor_si128(most, flip);
    if (p + kBlock <= room) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + p), most);
    } else {
      uint8_t last[kBlock];
      _mm_storeu_si128(reinterpret_cast<__m128i*>(last), most);
      std::copy_n(last, length - p, out + p);
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

Result<std::optional<Kernel>> make_max_pool_bytes(const SnapshotNode& node) {
  PFRT_ASSIGN(const PoolGeometry g, pool_geometry(node));
  std::optional<PlanePlan> found = plane_plan(g, node.input_dtype(0) == PFRT_DTYPE_INT8);
  if (!found) return std::optional<Kernel>();
  Kernel kernel;
  kernel.flops = static_cast<double>(g.planes) * static_cast<double>(g.window.position_count()) *
                 static_cast<double>(g.window.taps());
  kernel.scratch_bytes = static_cast<uint64_t>(found->block) * static_cast<uint64_t>(found->pitch);
  const auto plan = std::make_shared<const PlanePlan>(std::move(*found));
  kernel.run = [plan](const Run& run) -> pfrt_code {
    const WindowRows& rows = plan->rows;
    const int64_t length = rows.row_length(), all = rows.rows();
    if (length * all == 0) return run.stop();
    const int64_t work = plan->width * rows.tap_rows() + length * rows.row_taps();
    const int64_t together = std::clamp<int64_t>(kTask / std::max<int64_t>(work, 1), 1, all);
    const int64_t tasks = (all + together - 1) / together;
    run.parallel(plan->planes * tasks, [&](int64_t i, uint32_t worker) {
      Pace pace(run);
      auto* const across = run.scratch<uint8_t>(worker);
      std::memset(across, 0, static_cast<size_t>(plan->block * plan->pitch));
      const int64_t first = i % tasks * together, last = std::min(first + together, all);
      const int64_t skipped = i / tasks * plan->pixels;
      const uint8_t* const plane = run.input<uint8_t>(0) + skipped;
      const int64_t start = (i / tasks * all + first) * length;
      uint8_t* out = run.output<uint8_t>(0) + start;
      for (int64_t r = first; r < last; r += plan->block) {
        const int64_t count = std::min(plan->block, last - r);
        if (pace.stopped(count * work)) return;
        for (int64_t j = 0; j < count; ++j)
          max_across(*plan, r + j, plane, plan->planes * plan->pixels - skipped,
                     across + j * plan->pitch + plan->left);
        for (int64_t j = 0; j < count; ++j, out += length)
          finish_row(*plan, across + j * plan->pitch, out, (last - r - j) * length);
      }
      run.apply_epilogue(start, start + (last - first) * length);
    });
    return run.stop();
  };
  return std::optional(std::move(kernel));
}

}  // namespace pfrt::cpu

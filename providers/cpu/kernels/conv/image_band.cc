// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/image_band.h"

#include <xmmintrin.h>

#include <algorithm>

namespace pfrt::cpu {
namespace {

constexpr int64_t kLine = 16, kHalf = 8;
constexpr int64_t kPartBytes = 32 << 10;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// |n| pixels of |count| planes to lines of Line; the rest of a line is zero.
template <int64_t Line>
void planes_to_lines(float* out, const float* planes, int64_t plane, int64_t count, int64_t n) {
  for (int64_t c = 0; c < Line; c += 4) {
    if (c >= count) {
      for (int64_t i = 0; i < n; ++i) _mm_storeu_ps(out + Line * i + c, _mm_setzero_ps());
      continue;
    }
    const float* from[4];
    for (int64_t j = 0; j < 4; ++j) from[j] = planes + std::min(c + j, count - 1) * plane;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      __m128 r0 = _mm_loadu_ps(from[0] + i), r1 = _mm_loadu_ps(from[1] + i);
      __m128 r2 = _mm_loadu_ps(from[2] + i), r3 = _mm_loadu_ps(from[3] + i);
      _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
      float* const to = out + Line * i + c;
      _mm_storeu_ps(to, r0);
      _mm_storeu_ps(to + Line, r1);
      _mm_storeu_ps(to + 2 * Line, r2);
      _mm_storeu_ps(to + 3 * Line, r3);
    }
    for (; i < n; ++i)
      for (int64_t j = 0; j < 4; ++j) out[Line * i + c + j] = from[j][i];
    for (int64_t j = count; j < c + 4; ++j)
      for (i = 0; i < n; ++i) out[Line * i + j] = 0;
  }
}

}  // namespace

void lines_to_planes(float* out, int64_t plane, const float* lines, int64_t count, int64_t n) {
  int64_t c = 0;
  for (; c + 4 <= count; c += 4) {
    float* const to = out + c * plane;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      const float* const from = lines + kLine * i + c;
      __m128 r0 = _mm_loadu_ps(from), r1 = _mm_loadu_ps(from + kLine);
      __m128 r2 = _mm_loadu_ps(from + 2 * kLine), r3 = _mm_loadu_ps(from + 3 * kLine);
      _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
      _mm_storeu_ps(to + i, r0);
      _mm_storeu_ps(to + plane + i, r1);
      _mm_storeu_ps(to + 2 * plane + i, r2);
      _mm_storeu_ps(to + 3 * plane + i, r3);
    }
    for (; i < n; ++i)
      for (int64_t j = 0; j < 4; ++j) to[j * plane + i] = lines[kLine * i + c + j];
  }
  for (; c < count; ++c)
    for (int64_t i = 0; i < n; ++i) out[c * plane + i] = lines[kLine * i + c];
}

ChunkOrder ChunkOrder::of(int64_t channels, int64_t taps_y, int64_t taps_x, int64_t dilation_x) {
  const bool few = channels < kLine;
  const bool halves = !few && ceil_div(channels, kHalf) * kHalf < ceil_div(channels, kLine) * kLine;
  return {channels, taps_y, taps_x, few && (dilation_x == 1 || taps_x == 1),
          halves ? kHalf : kLine};
}

int64_t ChunkOrder::depth() const { return by_row ? taps_x * channels : std::min(channels, line); }

int64_t ChunkOrder::chunks() const {
  return taps_y * (by_row ? 1 : taps_x) * ceil_div(channels, line);
}

int64_t ChunkOrder::k(int64_t tap, int64_t channel) const {
  if (channels < kLine) return tap * channels + channel;
  return (channel / line * taps_y * taps_x + tap) * line + channel % line;
}

bool ImageBand::in_place(const Window& w, bool blocked) {
  return blocked && std::ranges::all_of(w.pads, [](int64_t p) { return p == 0; }) &&
         std::ranges::all_of(w.end_pads, [](int64_t p) { return p <= 0; });
}

int64_t ImageBand::bytes_of_row(const Window& w, const ChunkOrder& order) {
  const int64_t width =
      (w.positions[1] - 1) * w.strides[1] + (w.kernel[1] - 1) * w.dilations[1] + 1;
  const int64_t lines = ceil_div(order.channels, order.line);
  return 4 * std::max<int64_t>(width, 1) * std::min(w.strides[0], w.image[0] + 1) *
         (lines > 1 ? lines * order.line : std::min(order.channels, order.line));
}

ImageBand::ImageBand(const Window& w, const ChunkOrder& order, int64_t rows, bool blocked)
    : order_(order),
      blocked_(blocked),
      in_place_(in_place(w, blocked)),
      image_height_(w.image[0]),
      image_width_(w.image[1]),
      stride_y_(w.strides[0]),
      pad_y_(w.pads[0]),
      pad_x_(w.pads[1]),
      line_(std::min(order.channels, order.line)),
      blocks_(ceil_div(order.channels, order.line)) {
  if (in_place_) {
    band_rows_ = image_height_;
    width_ = image_width_;
  } else {
    band_rows_ = (rows - 1) * stride_y_ + (w.kernel[0] - 1) * w.dilations[0] + 1;
    width_ = (w.positions[1] - 1) * w.strides[1] + (w.kernel[1] - 1) * w.dilations[1] + 1;
  }
  part_rows_ = std::clamp<int64_t>(kPartBytes / (4 * line_ * width_), 1, band_rows_);
  parts_ = in_place_ ? 0 : blocks_ * ceil_div(band_rows_, part_rows_);
  row_step_ = stride_y_ * width_ * line_;
  step_ = w.strides[1] * line_;
  for (int64_t b = 0; b < blocks_; ++b)
    for (int64_t y = 0; y < w.kernel[0]; ++y)
      for (int64_t x = 0; x < (order.by_row ? 1 : w.kernel[1]); ++x)
        offsets_.push_back(line_ *
                           ((b * band_rows_ + y * w.dilations[0]) * width_ + x * w.dilations[1]));
}

uint64_t ImageBand::bytes() const {
  return in_place_ ? 0 : static_cast<uint64_t>(4 * line_ * blocks_ * band_rows_ * width_);
}

void ImageBand::fill(int64_t part, int64_t top, const float* image, float* out) const {
  const int64_t groups = ceil_div(band_rows_, part_rows_);
  const int64_t block = part / groups, first = part % groups * part_rows_;
  for (int64_t row = first; row < std::min(first + part_rows_, band_rows_); ++row)
    fill_row(block, row, top, image, out + line_ * (block * band_rows_ + row) * width_);
}

void ImageBand::fill_row(int64_t block, int64_t row, int64_t top, const float* image,
                         float* out) const {
  const int64_t y = top * stride_y_ - pad_y_ + row;
  const int64_t begin = std::min(std::max<int64_t>(pad_x_, 0), width_);
  const int64_t end = std::clamp(image_width_ + pad_x_, begin, width_);
  if (y < 0 || y >= image_height_ || begin == end) {
    std::fill_n(out, line_ * width_, 0.0f);
    return;
  }
  std::fill_n(out, line_ * begin, 0.0f);
  std::fill(out + line_ * end, out + line_ * width_, 0.0f);
  const int64_t size = image_height_ * image_width_;
  const int64_t at = y * image_width_ + begin - pad_x_;
  const int64_t count = std::min(line_, order_.channels - block * line_);
  float* const to = out + line_ * begin;
  const int64_t n = end - begin;
  if (blocked_) {
    std::copy_n(image + kLine * (block * size + at), kLine * n, to);
  } else if (line_ == kLine) {
    planes_to_lines<kLine>(to, image + block * kLine * size + at, size, count, n);
  } else if (line_ == kHalf) {
    planes_to_lines<kHalf>(to, image + block * kHalf * size + at, size, count, n);
  } else if (line_ == 1) {
    std::copy_n(image + at, n, to);
  } else {
    for (int64_t c = 0; c < count; ++c)
      for (int64_t i = 0; i < n; ++i) to[i * line_ + c] = image[c * size + at + i];
  }
}

}  // namespace pfrt::cpu

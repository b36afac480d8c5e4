// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/image_band.h"

#include <algorithm>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/kernels/matmul/bf16_pairs.h"
#include "providers/cpu/kernels/window/reorder.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kLine = 16, kHalf = 8;
constexpr int64_t kTaskBytes = 32 << 10;
constexpr int64_t kPiece = 64;  // pixels that become pairs at a time

// With strides a single tap sees few lines of the cache, or few of its sets.
bool is_sparse(const Window& w, bool nchw16c) {
  return nchw16c && w.taps() == 1 && (w.strides[0] > 1 || w.strides[1] > 1);
}

}  // namespace

ChunkOrder ChunkOrder::of(int64_t channels, int64_t taps_y, int64_t taps_x, int64_t dilation_x) {
  const bool few = channels < kLine;
  const bool halves = !few && ceil_div(channels, kHalf) * kHalf < ceil_div(channels, kLine) * kLine;
  return {channels, taps_y, taps_x, few && (dilation_x == 1 || taps_x == 1),
          halves ? kHalf : kLine};
}

ChunkOrder ChunkOrder::of_pairs(int64_t channels, int64_t taps_y, int64_t taps_x,
                                int64_t dilation_x) {
  const int64_t pairs = bf16_pairs(channels);
  return {pairs, taps_y,  taps_x, pairs < kHalf && (dilation_x == 1 || taps_x == 1),
          kHalf, channels};
}

ChunkOrder ChunkOrder::dilated() const {
  ChunkOrder order = *this;
  order.by_tap = channels >= line && paired == 0;
  return order;
}

int64_t ChunkOrder::depth() const { return by_row ? taps_x * channels : std::min(channels, line); }

int64_t ChunkOrder::chunks() const {
  return taps_y * (by_row ? 1 : taps_x) * ceil_div(channels, line);
}

int64_t ChunkOrder::k(int64_t tap, int64_t channel) const {
  if (channels < line) return tap * channels + channel;
  if (by_tap) return tap * ceil_div(channels, line) * line + channel;
  return (channel / line * taps_y * taps_x + tap) * line + channel % line;
}

bool ImageBand::in_place(const Window& w, const ChunkOrder& order, bool nchw16c) {
  return order.paired == 0 && nchw16c && !is_sparse(w, nchw16c) &&
         std::ranges::all_of(w.pads, [](int64_t p) { return p == 0; }) &&
         std::ranges::all_of(w.end_pads, [](int64_t p) { return p <= 0; });
}

int64_t ImageBand::bytes_of_row(const Window& w, const ChunkOrder& order, bool nchw16c) {
  const bool sparse = is_sparse(w, nchw16c);
  const int64_t width =
      sparse ? w.positions[1]
             : (w.positions[1] - 1) * w.strides[1] + (w.kernel[1] - 1) * w.dilations[1] + 1;
  const int64_t lines = ceil_div(order.channels, order.line);
  const int64_t rows = sparse ? 1 : std::min(w.strides[0], w.image[0] + 1);
  return 4 * std::max<int64_t>(width, 1) * rows *
         (lines > 1 ? lines * order.line : std::min(order.channels, order.line));
}

ImageBand::ImageBand(const Window& w, const ChunkOrder& order, int64_t rows, bool nchw16c)
    : order_(order),
      nchw16c_(nchw16c),
      in_place_(in_place(w, order, nchw16c)),
      sparse_(is_sparse(w, nchw16c)),
      image_height_(w.image[0]),
      image_width_(w.image[1]),
      stride_y_(w.strides[0]),
      stride_x_(w.strides[1]),
      pad_y_(w.pads[0]),
      pad_x_(w.pads[1]),
      line_(std::min(order.channels, order.line)),
      blocks_(ceil_div(order.channels, order.line)) {
  if (in_place_) {
    band_rows_ = image_height_;
    width_ = image_width_;
  } else if (sparse_) {
    band_rows_ = rows;
    width_ = w.positions[1];
  } else {
    band_rows_ = (rows - 1) * stride_y_ + (w.kernel[0] - 1) * w.dilations[0] + 1;
    width_ = (w.positions[1] - 1) * w.strides[1] + (w.kernel[1] - 1) * w.dilations[1] + 1;
  }
  task_rows_ = std::clamp<int64_t>(kTaskBytes / (4 * line_ * width_), 1, band_rows_);
  tasks_ = in_place_ ? 0 : blocks_ * ceil_div(band_rows_, task_rows_);
  row_step_ = (sparse_ ? 1 : stride_y_) * width_ * line_;
  step_ = (sparse_ ? 1 : stride_x_) * line_;
  const int64_t across = order.by_row ? 1 : w.kernel[1], taps = w.kernel[0] * across;
  for (int64_t c = 0; c < taps * blocks_; ++c) {
    const int64_t b = order.by_tap ? c % blocks_ : c / taps;
    const int64_t tap = order.by_tap ? c / blocks_ : c % taps;
    offsets_.push_back(line_ * ((b * band_rows_ + tap / across * w.dilations[0]) * width_ +
                                tap % across * w.dilations[1]));
  }
}

uint64_t ImageBand::bytes() const {
  return in_place_ ? 0 : static_cast<uint64_t>(4 * line_ * blocks_ * band_rows_ * width_);
}

uint16_t ImageBand::fill(int64_t task, int64_t top, const float* image, float* out) const {
  const int64_t groups = ceil_div(band_rows_, task_rows_);
  const int64_t block = task / groups, first = task % groups * task_rows_;
  uint16_t largest = 0;
  for (int64_t row = first; row < std::min(first + task_rows_, band_rows_); ++row) {
    float* const to = out + line_ * (block * band_rows_ + row) * width_;
    largest = std::max(largest, sparse_ ? fill_sparse_row(block, row, top, image, to)
                                        : fill_row(block, row, top, image, to));
  }
  return largest;
}

uint16_t ImageBand::fill_sparse_row(int64_t block, int64_t row, int64_t top, const float* image,
                                    float* out) const {
  const int64_t y = (top + row) * stride_y_ - pad_y_;
  const float* const pixels = image + kLine * (block * image_height_ + y) * image_width_;
  const auto copy = [&](int64_t begin, int64_t n, float* to) {
    for (int64_t i = begin; i < begin + n; ++i, to += kLine) {
      const int64_t x = i * stride_x_ - pad_x_;
      if (y < 0 || y >= image_height_ || x < 0 || x >= image_width_)
        std::fill_n(to, kLine, 0.0f);
      else
        std::copy_n(pixels + kLine * x, kLine, to);
    }
  };
  if (order_.paired == 0) {
    copy(0, width_, out);
    return 0;
  }
  uint16_t largest = 0;
  alignas(64) float lines[kPiece * kLine];
  for (int64_t i = 0, n; i < width_; i += n) {
    n = std::min(kPiece, width_ - i);
    copy(i, n, lines);
    largest = std::max(
        largest, to_bf16_pairs(lines, kLine * n, reinterpret_cast<uint32_t*>(out + kHalf * i)));
  }
  return largest;
}

uint16_t ImageBand::fill_row(int64_t block, int64_t row, int64_t top, const float* image,
                             float* out) const {
  const int64_t y = top * stride_y_ - pad_y_ + row;
  const int64_t begin = std::min(std::max<int64_t>(pad_x_, 0), width_);
  const int64_t end = std::clamp(image_width_ + pad_x_, begin, width_);
  if (y < 0 || y >= image_height_ || begin == end) {
    std::fill_n(out, line_ * width_, 0.0f);
    return 0;
  }
  std::fill_n(out, line_ * begin, 0.0f);
  std::fill(out + line_ * end, out + line_ * width_, 0.0f);
  const int64_t at = y * image_width_ + begin - pad_x_;
  float* const to = out + line_ * begin;
  if (order_.paired > 0)
    return pair_pixels(block, at, end - begin, image, reinterpret_cast<uint32_t*>(to));
  copy_pixels(block, at, end - begin, image, to);
  return 0;
}

void ImageBand::copy_pixels(int64_t block, int64_t at, int64_t n, const float* image,
                            float* out) const {
  const int64_t size = image_height_ * image_width_;
  const int64_t count = std::min(line_, order_.channels - block * line_);
  if (nchw16c_) {
    std::copy_n(image + kLine * (block * size + at), kLine * n, out);
  } else if (line_ == kLine || line_ == kHalf) {
    reorder_to_pixels(out, line_, image + block * line_ * size + at, size, count, n);
  } else if (line_ == 1) {
    std::copy_n(image + at, n, out);
  } else {
    reorder_to_short_pixels(out, image + at, size, count, n);
  }
}

uint16_t ImageBand::pair_pixels(int64_t block, int64_t at, int64_t n, const float* image,
                                uint32_t* out) const {
  const int64_t size = image_height_ * image_width_;
  if (nchw16c_) return to_bf16_pairs(image + kLine * (block * size + at), kLine * n, out);
  uint16_t largest = 0;
  alignas(64) float lines[kPiece * kLine];
  const float* const planes = image + block * kLine * size + at;
  const int64_t count = std::min(kLine, order_.paired - block * kLine);
  for (int64_t i = 0, m; i < n; i += m, out += m * line_) {
    m = std::min(kPiece, n - i);
    if (line_ == kHalf) {
      reorder_to_pixels(lines, kLine, planes + i, size, count, m);
      largest = std::max(largest, to_bf16_pairs(lines, kLine * m, out));
      continue;
    }
    // Planes of pairs, which are then reordered as numbers would be.
    for (int64_t c = 0; c < count; c += 2) {
      auto* const pairs = line_ == 1 ? out : reinterpret_cast<uint32_t*>(lines) + c / 2 * kPiece;
      const float* const first = planes + c * size + i;
      largest = std::max(largest,
                         zip_bf16_pairs(first, c + 1 < count ? first + size : nullptr, m, pairs));
    }
    if (line_ > 1) reorder_to_short_pixels(reinterpret_cast<float*>(out), lines, kPiece, line_, m);
  }
  return largest;
}

}  // namespace pfrt::cpu

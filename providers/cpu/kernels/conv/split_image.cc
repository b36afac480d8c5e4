// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/split_image.h"

#include <algorithm>

#include "providers/cpu/elements/ceil_div.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kChunk = 32, kHalf = 16;
constexpr int64_t kBlock = 32;  // positions beyond the last that may be read
constexpr int64_t kGroupRows =
    8;  // by position: rows of a task share most of the image that they copy
constexpr int64_t kPartLines = 1024;

int64_t whole_chunks(int64_t k) { return ceil_div(k, kChunk) * kChunk; }

// Distance of the pixels that are kept: only every stride-th along a dimension with one tap.
int64_t kept_step(const Window& w, size_t d) { return w.kernel[d] == 1 ? w.strides[d] : 1; }

struct Row {
  int64_t pitch, step;  // lines of a row; lines from a position to the next
};

// The layout of a row of a band by pixel.
Row row_of(const Window& w) {
  const int64_t kept = kept_step(w, 1), step = w.strides[1] / kept;
  const int64_t seen = (w.positions[1] - 1) * step + (w.kernel[1] - 1) * w.dilations[1] + 1;
  const int64_t left = ceil_div(std::max<int64_t>(w.pads[1], 0), kept);
  const int64_t right = ceil_div(std::max<int64_t>(w.image[1] + w.pads[1], 0), kept);
  const int64_t pitch =
      std::max({seen - left, std::min(right, seen), (w.positions[1] - 1) * step + 1, int64_t{1}});
  return {ceil_div(pitch, step) * step, step};
}

}  // namespace

KOrder KOrder::of(int64_t channels, int64_t taps, int64_t outputs, bool dilated) {
  const int64_t by_pixel = taps * whole_chunks(channels), dense = whole_chunks(taps * channels);
  // A band by position copies and splits lines for each position, but needs fewer products.
  constexpr int64_t kLineCost = 24;  // number of products of a chunk that take as long as a line
  const bool by_position = !dilated && channels < kChunk && taps > 1 && dense <= kMostGathered &&
                           (by_pixel - dense) * outputs > dense * kLineCost;
  return by_position ? KOrder{true, channels, dense}
                     : KOrder{false, whole_chunks(channels), by_pixel};
}

int64_t SplitImage::bytes_of_row(const Window& w, const KOrder& order, int64_t channels,
                                 int terms) {
  if (order.by_position) return w.positions[1] * order.depth * 2 * terms;
  const int64_t phases = w.strides[0] / kept_step(w, 0);
  return row_of(w).pitch * phases * whole_chunks(channels) * 2 * terms;
}

SplitImage::SplitImage(const Window& w, int64_t channels, const KOrder& order, int64_t rows,
                       int terms, bool nchw16c)
    : order_(order),
      layout_{terms, 0, 0},
      nchw16c_(nchw16c),
      channels_(channels),
      image_height_(w.image[0]),
      image_width_(w.image[1]),
      pad_y_(w.pads[0]),
      pad_x_(w.pads[1]),
      stride_y_(w.strides[0]),
      stride_x_(w.strides[1]),
      taps_y_(w.kernel[0]),
      taps_x_(w.kernel[1]),
      dilation_y_(w.dilations[0]),
      dilation_x_(w.dilations[1]),
      rows_(rows),
      positions_(w.positions[1]) {
  if (order.by_position) {
    chunks_ = order.depth / kChunk;
    row_positions_ = positions_;
    step_ = 1;
    pixel_step_y_ = pixel_step_x_ = phases_ = phase_rows_ = pitch_ = 0;
    lines_ = rows * positions_ + kBlock;
    group_rows_ = std::min(rows, kGroupRows);
    groups_ = ceil_div(rows, group_rows_);
  } else {
    const Row row = row_of(w);
    chunks_ = ceil_div(channels, kChunk);
    pixel_step_y_ = kept_step(w, 0);
    pixel_step_x_ = kept_step(w, 1);
    pitch_ = row.pitch;
    step_ = row.step;
    row_positions_ = pitch_ / step_;
    phases_ = stride_y_ / pixel_step_y_;
    const int64_t reach = (taps_y_ - 1) * dilation_y_;
    phase_rows_ = rows + reach / phases_;
    const int64_t last = reach / phases_ * pitch_ + (phases_ - 1) * phase_rows_ * pitch_ +
                         (taps_x_ - 1) * dilation_x_;
    lines_ = last + step_ * (rows * row_positions_ + kBlock);
    group_rows_ = std::clamp<int64_t>(kPartLines / pitch_, 1, phases_ * phase_rows_);
    groups_ = ceil_div(phases_ * phase_rows_, group_rows_);
  }
  layout_.term_bytes = 64 * lines_;
  // Terms of one line should not share a set of the cache.
  if (lines_ % 16 == 0) layout_.term_bytes += 64;
  layout_.chunk_bytes = terms * layout_.term_bytes;
  if (order.by_position) {
    for (int64_t c = 0; c < chunks_; ++c) offsets_.push_back(c * layout_.chunk_bytes);
    return;
  }
  for (int64_t ky = 0; ky < taps_y_; ++ky)
    for (int64_t kx = 0; kx < taps_x_; ++kx) {
      const int64_t y = ky * dilation_y_;
      const int64_t line = (y % phases_ * phase_rows_ + y / phases_) * pitch_ + kx * dilation_x_;
      for (int64_t c = 0; c < chunks_; ++c) offsets_.push_back(c * layout_.chunk_bytes + 64 * line);
    }
}

int64_t KOrder::row(int64_t tap, int64_t channel) const {
  const int64_t k = tap * tap_stride + channel;
  return by_position ? neighbours_row(k) : k;
}

int64_t SplitImage::line_elements() const {
  if (!order_.by_position) return 0;
  const int64_t rows = (group_rows_ - 1) * stride_y_ + taps_y_;
  // A row of float32, then the terms of all rows of a task.
  return row_elements() + (rows * row_elements() * layout_.terms + 1) / 2 + kChunk;
}

int64_t SplitImage::row_elements() const {
  return ((positions_ - 1) * stride_x_ + taps_x_) * channels_;
}

bool SplitImage::fill(int64_t task, int64_t top, const float* image, uint8_t* out,
                      float* lines) const {
  return order_.by_position ? fill_positions(task, top, image, out, lines)
                            : fill_pixels(task % chunks_, task / chunks_, top, image, out);
}

bool SplitImage::fill_pixels(int64_t chunk, int64_t group, int64_t top, const float* image,
                             uint8_t* out) const {
  const int64_t first = chunk * kChunk, count = std::min(kChunk, channels_ - first);
  const int64_t size = image_height_ * image_width_;
  const int64_t begin = std::min(ceil_div(std::max<int64_t>(pad_x_, 0), pixel_step_x_), pitch_);
  const int64_t end = std::clamp(
      ceil_div(std::max<int64_t>(image_width_ + pad_x_, 0), pixel_step_x_), begin, pitch_);
  const float* const channels = image + first * size;
  const int64_t all_rows = phases_ * phase_rows_;
  const int64_t last = std::min(all_rows, (group + 1) * group_rows_);
  uint8_t* to = out + chunk * layout_.chunk_bytes + 64 * group * group_rows_ * pitch_;
  uint16_t largest = 0;
  for (int64_t r = group * group_rows_; r < last; ++r, to += 64 * pitch_) {
    const int64_t phase = r / phase_rows_, y = r % phase_rows_;
    const int64_t row = ((top + y) * phases_ + phase) * pixel_step_y_ - pad_y_;
    if (row < 0 || row >= image_height_ || begin == end) {
      zero_lines(layout_, to, pitch_);
      continue;
    }
    const int64_t pixel = row * image_width_ + begin * pixel_step_x_ - pad_x_;
    zero_lines(layout_, to, begin);
    if (nchw16c_) {
      const float* const from = channels + pixel * kHalf;
      largest = std::max(largest, split_lines(layout_, to + 64 * begin, from,
                                              count > kHalf ? from + size * kHalf : nullptr,
                                              kHalf * pixel_step_x_, end - begin));
    } else {
      largest = std::max(largest, split_across(layout_, to + 64 * begin, channels + pixel, size,
                                               count, pixel_step_x_, end - begin));
    }
    zero_lines(layout_, to + 64 * end, pitch_ - end);
  }
  if (last == all_rows && lines_ > all_rows * pitch_)
    zero_lines(layout_, to, lines_ - all_rows * pitch_);
  return large_enough(largest);
}

void SplitImage::interleave(const float* image, int64_t row, float* out) const {
  const int64_t size = image_height_ * image_width_, width = row_elements() / channels_;
  const int64_t begin = std::clamp<int64_t>(pad_x_, 0, width);
  const int64_t end = std::clamp(image_width_ + pad_x_, begin, width);
  if (row < 0 || row >= image_height_) {
    std::fill_n(out, width * channels_, 0.0f);
    return;
  }
  std::fill_n(out, begin * channels_, 0.0f);
  std::fill_n(out + end * channels_, (width - end) * channels_, 0.0f);
  for (int64_t c = 0; c < channels_; ++c) {
    const float* from = nchw16c_ ? image + c / kHalf * kHalf * size + c % kHalf : image + c * size;
    const int64_t step = nchw16c_ ? kHalf : 1;
    from += (row * image_width_ - pad_x_) * step;
    for (int64_t x = begin; x < end; ++x) out[x * channels_ + c] = from[x * step];
  }
}

bool SplitImage::fill_positions(int64_t group, int64_t top, const float* image, uint8_t* out,
                                float* lines) const {
  const int64_t first = group * group_rows_, last = std::min(first + group_rows_, rows_);
  const int64_t line = row_elements(), all = line * ((group_rows_ - 1) * stride_y_ + taps_y_);
  const int64_t from_row = (top + first) * stride_y_ - pad_y_;
  const int64_t image_rows = (last - first - 1) * stride_y_ + taps_y_;
  uint16_t* const split = reinterpret_cast<uint16_t*>(lines + line);
  uint16_t largest = 0;
  for (int64_t y = 0; y < image_rows; ++y) {
    interleave(image, from_row + y, lines);
    largest = std::max(largest, split_array(layout_.terms, split + y * line, all, lines, line));
  }
  for (int64_t y = first; y < last; ++y)
    gather_runs(layout_, out + 64 * y * positions_, split + (y - first) * stride_y_ * line, all,
                taps_y_, line, taps_x_ * channels_, stride_x_ * channels_, positions_,
                order_.depth);
  if (last == rows_)
    for (int64_t c = 0; c < chunks_; ++c)
      zero_lines(layout_, out + c * layout_.chunk_bytes + 64 * rows_ * positions_,
                 lines_ - rows_ * positions_);
  return large_enough(largest);
}

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/plane_image.h"

#include <algorithm>

#include "providers/cpu/kernels/matmul/planes.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kChunk = 32, kPairs = 16;
constexpr int64_t kTileWords = 32;  // a block of positions may begin at the last one

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

PlaneImage::PlaneImage(const Window& w, int64_t channels, int64_t rows)
    : channels_(channels),
      chunks_(ceil_div(channels, kChunk)),
      image_height_(w.image[0]),
      image_width_(w.image[1]),
      pad_y_(w.pads[0]),
      pad_x_(w.pads[1]),
      phases_y_(w.kernel[0] == 1 ? 1 : w.strides[0]),
      phases_x_(w.kernel[1] == 1 ? 1 : w.strides[1]),
      stride_y_(w.strides[0]),
      stride_x_(w.strides[1]) {
  const int64_t reach_y = (w.kernel[0] - 1) * w.dilations[0] / stride_y_;
  const int64_t reach_x = (w.kernel[1] - 1) * w.dilations[1] / stride_x_;
  height_ = rows + reach_y;
  width_ = w.positions[1] + reach_x;
  const int64_t phase = height_ * width_;
  // Rows of a tile lie this far apart: not a multiple of many cache lines.
  as_it_lies_ =
      pad_y_ == 0 && pad_x_ == 0 && stride_y_ == 1 && stride_x_ == 1 && width_ == image_width_;
  words_ = ceil_div(phases_y_ * phases_x_ * phase + kTileWords + reach_x, 16) * 16;
  if (words_ / 16 % 2 == 0) words_ += 16;
  for (int64_t ky = 0; ky < w.kernel[0]; ++ky)
    for (int64_t kx = 0; kx < w.kernel[1]; ++kx) {
      const int64_t y = ky * w.dilations[0], x = kx * w.dilations[1];
      const int64_t at = (y % stride_y_ * phases_x_ + x % stride_x_) * phase +
                         y / stride_y_ * width_ + x / stride_x_;
      for (int64_t c = 0; c < chunks_; ++c) offsets_.push_back(c * chunk_bytes() + 4 * at);
    }
  offsets_.push_back(offsets_.front());
}

void PlaneImage::fill(int64_t part, int64_t top, const float* image, uint8_t* out,
                      float* lines) const {
  const int64_t chunk = part / phases_y_, phase_y = part % phases_y_;
  const int64_t size = image_height_ * image_width_;
  float* const line[2] = {lines, lines + width_};
  for (int64_t pair = 0; pair < kPairs; ++pair) {
    const int64_t channel = chunk * kChunk + pair;
    uint8_t* const words = out + chunk * chunk_bytes() + pair * row_bytes();
    if (as_it_lies_ && channel + kPairs < channels_) {
      const float* const from = image + channel * size + top * width_;
      const int64_t pixels = std::min(height_ * width_, size - top * width_);
      split_line(words, plane_bytes(), from, from + kPairs * size, pixels);
      zero(words, pixels);
      continue;
    }
    for (int64_t phase_x = 0; phase_x < phases_x_; ++phase_x) {
      // Column x of the phase is column first + x * stride of the image.
      const int64_t first = phase_x - pad_x_;
      const int64_t begin =
          std::clamp<int64_t>(ceil_div(std::max<int64_t>(-first, 0), stride_x_), 0, width_);
      const int64_t end = std::clamp<int64_t>(
          ceil_div(std::max<int64_t>(image_width_ - first, 0), stride_x_), begin, width_);
      uint8_t* to = words + 4 * (phase_y * phases_x_ + phase_x) * height_ * width_;
      for (int64_t y = 0; y < height_; ++y, to += 4 * width_) {
        const int64_t row = (top + y) * stride_y_ + phase_y - pad_y_;
        const bool inside = row >= 0 && row < image_height_;
        for (int64_t half = 0; half < 2; ++half) {
          const int64_t c = channel + half * kPairs;
          if (!inside || c >= channels_) {
            std::fill_n(line[half], width_, 0.0f);
            continue;
          }
          const float* const from = image + c * size + row * image_width_ + first;
          std::fill(line[half], line[half] + begin, 0.0f);
          if (stride_x_ == 1)
            std::copy(from + begin, from + end, line[half] + begin);
          else
            for (int64_t x = begin; x < end; ++x) line[half][x] = from[x * stride_x_];
          std::fill(line[half] + end, line[half] + width_, 0.0f);
        }
        split_line(to, plane_bytes(), line[0], line[1], width_);
      }
    }
    // What blocks read past the last position has to be numbers, not what the memory held.
    if (phase_y == phases_y_ - 1) zero(words, phases_y_ * phases_x_ * height_ * width_);
  }
}

void PlaneImage::zero(uint8_t* words, int64_t from) const {
  for (int64_t p = 0; p < 3; ++p, words += plane_bytes())
    std::fill(words + 4 * from, words + 4 * words_, uint8_t{0});
}

}  // namespace pfrt::cpu

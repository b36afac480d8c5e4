// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/window/small_planes.h"

namespace pfrt::cpu {
namespace {

// Pixels of dimension |d| with the padding that windows see.
int64_t padded(const Window& w, size_t d) {
  const int64_t reach = (w.kernel[d] - 1) * w.dilations[d] + 1;
  return std::max(w.pads[d] + w.image[d], (w.positions[d] - 1) * w.strides[d] + reach);
}

}  // namespace

bool SmallPlanes::takes(const Window& w, int64_t planes) {
  constexpr int64_t kMostBytes = 256 << 10;
  constexpr int64_t kMost = kMostBytes / (kBlockChannels * int64_t{sizeof(float)});
  if (w.rank() != 2 || planes < kVectorChannels || w.position_count() == 0) return false;
  for (size_t d = 0; d < 2; ++d)
    if (w.pads[d] < 0 || padded(w, d) > kMost || w.image[d] == 0) return false;
  return padded(w, 0) * padded(w, 1) + w.position_count() <= kMost;
}

SmallPlanes::SmallPlanes(const Window& w)
    : image_height_(w.image[0]),
      image_width_(w.image[1]),
      top_(w.pads[0]),
      left_(w.pads[1]),
      height_(padded(w, 0)),
      width_(padded(w, 1)),
      rows_(w.positions[0]),
      length_(w.positions[1]),
      row_step_(w.strides[0] * width_ * kBlockChannels),
      step_(w.strides[1] * kBlockChannels) {
  for (int64_t y = 0; y < w.kernel[0]; ++y)
    for (int64_t x = 0; x < w.kernel[1]; ++x)
      offsets_.push_back((y * w.dilations[0] * width_ + x * w.dilations[1]) * kBlockChannels);
}

uint64_t SmallPlanes::scratch_bytes() const {
  return static_cast<uint64_t>(padded_elements() + rows_ * length_ * kBlockChannels) *
         sizeof(float);
}

void SmallPlanes::fill(const float* const* planes, int64_t count, float* out) const {
  const int64_t between = width_ - image_width_;  // zeros from one row of pixels to the next
  float* const first = out + (top_ * width_ + left_) * kBlockChannels;
  std::fill(out, first, 0.0f);
  for (int64_t y = 1; between > 0 && y < image_height_; ++y)
    std::fill_n(first + (y * width_ - between) * kBlockChannels, between * kBlockChannels, 0.0f);
  std::fill(first + (image_height_ * width_ - between) * kBlockChannels, out + padded_elements(),
            0.0f);
  reorder_to_pixels(first, kBlockChannels, planes, count, image_height_ * image_width_,
                    image_width_, between);
}

}  // namespace pfrt::cpu

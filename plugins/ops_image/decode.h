// SPDX-License-Identifier: Apache-2.0
//
// Encoded images to rows of red, green and blue bytes, by the library of each format. Whatever the
// bytes are, a decoder gives an image or nothing, leaves soon when it is told to, and takes no
// memory for pixels that the bytes cannot hold or the caller does not allow. Thread-safe on
// different jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pfrt::image {

using Bytes = std::span<const uint8_t>;

struct Image {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> rgb;  // [height, width, 3]
};

// An image to decode, and its size where it is refused.
struct Job {
  Bytes bytes;
  int64_t max_pixels;
  bool (*asked_to_stop)(const void* who);
  const void* who;
  // The size in the header, if it is larger than allowed.
  int64_t refused_height = 0, refused_width = 0;

  bool stopped() const { return asked_to_stop(who); }
  // Whether an image of that size may be made; a larger one is noted as refused.
  bool allows(int64_t height, int64_t width);
};

// An image of that size, all black, or nothing when it is empty or too large.
std::optional<Image> make_image(Job& job, int64_t height, int64_t width);

// Decodes by the format that the first bytes show: JPEG, PNG, BMP, PNM, TIFF, JPEG 2000, WebP.
std::optional<Image> decode(Job& job);

std::optional<Image> decode_bmp(Job& job);
std::optional<Image> decode_jpeg(Job& job);
std::optional<Image> decode_jpeg2000(Job& job);
std::optional<Image> decode_png(Job& job);
std::optional<Image> decode_pnm(Job& job);
std::optional<Image> decode_tiff(Job& job);
std::optional<Image> decode_webp(Job& job);

}  // namespace pfrt::image

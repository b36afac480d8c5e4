// SPDX-License-Identifier: Apache-2.0
//
// Encoded images to rows of red, green and blue bytes, by the library of each format. Whatever the
// bytes are, a decoder gives an image or nothing; images of more than 2^28 pixels are nothing.
// Pure; thread-safe.
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

// An image of that size, all black, or nothing when it is empty or too large.
std::optional<Image> make_image(int64_t height, int64_t width);

// By the first bytes: JPEG, PNG, BMP, PNM, TIFF, JPEG 2000, WebP.
std::optional<Image> decode(Bytes bytes);

std::optional<Image> decode_bmp(Bytes bytes);
std::optional<Image> decode_jpeg(Bytes bytes);
std::optional<Image> decode_jpeg2000(Bytes bytes);
std::optional<Image> decode_png(Bytes bytes);
std::optional<Image> decode_pnm(Bytes bytes);
std::optional<Image> decode_tiff(Bytes bytes);
std::optional<Image> decode_webp(Bytes bytes);

}  // namespace pfrt::image

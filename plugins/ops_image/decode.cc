// SPDX-License-Identifier: Apache-2.0
#include "plugins/ops_image/decode.h"

#include <cstring>
#include <string_view>

namespace pfrt::image {
namespace {

constexpr int64_t kMostPixels = int64_t{1} << 28;

bool starts(Bytes bytes, std::string_view with, size_t at = 0) {
  return bytes.size() >= at + with.size() &&
         std::memcmp(bytes.data() + at, with.data(), with.size()) == 0;
}

}  // namespace

std::optional<Image> make_image(int64_t height, int64_t width) {
  if (height <= 0 || width <= 0 || height > kMostPixels / width) return std::nullopt;
  return Image{height, width, std::vector<uint8_t>(static_cast<size_t>(height * width * 3))};
}

std::optional<Image> decode(Bytes bytes) {
  using namespace std::literals;
  if (starts(bytes, "\xff\xd8\xff"sv)) return decode_jpeg(bytes);
  if (starts(bytes, "\x89PNG\r\n\x1a\n"sv)) return decode_png(bytes);
  if (starts(bytes, "BM"sv)) return decode_bmp(bytes);
  if (starts(bytes, "II*\0"sv) || starts(bytes, "MM\0*"sv)) return decode_tiff(bytes);
  if (starts(bytes, "\0\0\0\x0cjP  \r\n\x87\n"sv) || starts(bytes, "\xff\x4f\xff\x51"sv))
    return decode_jpeg2000(bytes);
  if (starts(bytes, "RIFF"sv) && starts(bytes, "WEBP"sv, 8)) return decode_webp(bytes);
  if (bytes.size() > 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6')
    return decode_pnm(bytes);
  return std::nullopt;
}

}  // namespace pfrt::image

// SPDX-License-Identifier: Apache-2.0
#include "plugins/ops_image/decode.h"

#include <cstring>
#include <string_view>

namespace pfrt::image {
namespace {

bool starts(Bytes bytes, std::string_view with, size_t at = 0) {
  return bytes.size() >= at + with.size() &&
         std::memcmp(bytes.data() + at, with.data(), with.size()) == 0;
}

}  // namespace

bool Job::allows(int64_t height, int64_t width) {
  if (height <= 0 || width <= 0) return false;
  if (height <= max_pixels / width) return true;
  refused_height = height;
  refused_width = width;
  return false;
}

std::optional<Image> make_image(Job& job, int64_t height, int64_t width) {
  if (!job.allows(height, width)) return std::nullopt;
  return Image{height, width, std::vector<uint8_t>(static_cast<size_t>(height * width * 3))};
}

std::optional<Image> decode(Job& job) {
  using namespace std::literals;
  const Bytes bytes = job.bytes;
  if (starts(bytes, "\xff\xd8\xff"sv)) return decode_jpeg(job);
  if (starts(bytes, "\x89PNG\r\n\x1a\n"sv)) return decode_png(job);
  if (starts(bytes, "BM"sv)) return decode_bmp(job);
  if (starts(bytes, "II*\0"sv) || starts(bytes, "MM\0*"sv)) return decode_tiff(job);
  if (starts(bytes, "\0\0\0\x0cjP  \r\n\x87\n"sv) || starts(bytes, "\xff\x4f\xff\x51"sv))
    return decode_jpeg2000(job);
  if (starts(bytes, "RIFF"sv) && starts(bytes, "WEBP"sv, 8)) return decode_webp(job);
  if (bytes.size() > 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6')
    return decode_pnm(job);
  return std::nullopt;
}

}  // namespace pfrt::image

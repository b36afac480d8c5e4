// SPDX-License-Identifier: Apache-2.0
#include <png.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "plugins/ops_image/decode.h"

namespace pfrt::image {
namespace {

constexpr double kMostDeflated = 1032;  // bytes that one of deflate's can stand for

struct Source {
  const Job* job;
  size_t at = 0;
};

// The library looks for nothing but its input: that ends when the run does.
ssize_t read(void* cookie, char* to, size_t size) {
  Source& source = *static_cast<Source*>(cookie);
  if (source.job->stopped()) return -1;
  const size_t n = std::min(size, source.job->bytes.size() - source.at);
  std::memcpy(to, source.job->bytes.data() + source.at, n);
  source.at += n;
  return static_cast<ssize_t>(n);
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// Whether the bytes can hold what the header announces.
bool plausible(Bytes bytes, int64_t height, int64_t width) {
  constexpr size_t kDepth = 24, kColours = 25;  // of the header, which comes first
  if (bytes.size() <= kColours) return false;
  const int64_t channels = bytes[kColours] == 2   ? 3
                           : bytes[kColours] == 4 ? 2
                           : bytes[kColours] == 6 ? 4
                                                  : 1;
  const auto bits = static_cast<double>(channels * bytes[kDepth]);
  return static_cast<double>(height) * static_cast<double>(width) * bits / 8 <=
         static_cast<double>(bytes.size()) * kMostDeflated;
}

bool read_into(png_image& png, Job& job, Image& image) {
  std::vector<uint8_t> rgba(PNG_IMAGE_SIZE(png));
  if (!png_image_finish_read(&png, nullptr, rgba.data(), 0, nullptr)) return false;
  const uint8_t* from = rgba.data();
  uint8_t* to = image.rgb.data();
  for (int64_t y = 0; y < image.height; ++y) {
    if (job.stopped()) return false;
    for (int64_t x = 0; x < image.width; ++x, from += 4, to += 3) std::copy_n(from, 3, to);
  }
  return true;
}

}  // namespace

std::optional<Image> decode_png(Job& job) {
  Source source{&job};
  const std::unique_ptr<std::FILE, Close> file(
      fopencookie(&source, "r", {read, nullptr, nullptr, nullptr}));
  if (!file) return std::nullopt;
  png_image png{};
  const std::unique_ptr<png_image, decltype(&png_image_free)> owner(&png, png_image_free);
  png.version = PNG_IMAGE_VERSION;
  std::optional<Image> image;
  if (png_image_begin_read_from_stdio(&png, file.get())) {
    png.format = PNG_FORMAT_RGBA;  // transparency is dropped, not blended
    if (job.allows(png.height, png.width) && plausible(job.bytes, png.height, png.width))
      image = make_image(job, png.height, png.width);
    if (image && !read_into(png, job, *image)) image.reset();
  }
  return image;
}

}  // namespace pfrt::image

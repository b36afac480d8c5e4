// SPDX-License-Identifier: Apache-2.0
#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "plugins/ops_image/decode.h"

namespace pfrt::image {
namespace {

// A file in memory.
struct File {
  Bytes bytes;
  uint64_t at = 0;
};

File& self(thandle_t handle) { return *static_cast<File*>(handle); }

tmsize_t read(thandle_t handle, void* to, tmsize_t size) {
  File& file = self(handle);
  const uint64_t left = file.bytes.size() - std::min<uint64_t>(file.at, file.bytes.size());
  const auto n = static_cast<size_t>(std::min<uint64_t>(left, static_cast<uint64_t>(size)));
  if (n > 0) std::memcpy(to, file.bytes.data() + file.at, n);
  file.at += n;
  return static_cast<tmsize_t>(n);
}
tmsize_t write(thandle_t, void*, tmsize_t) { return 0; }
toff_t seek(thandle_t handle, toff_t offset, int whence) {
  File& file = self(handle);
  file.at = offset + (whence == SEEK_CUR ? file.at : whence == SEEK_END ? file.bytes.size() : 0);
  return file.at;
}
int close(thandle_t) { return 0; }
toff_t size(thandle_t handle) { return self(handle).bytes.size(); }

struct Close {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};

}  // namespace

std::optional<Image> decode_tiff(Bytes bytes) {
  // For the process: what a library prints is nobody's.
  static const bool quiet = (TIFFSetErrorHandler(nullptr), TIFFSetWarningHandler(nullptr), true);
  (void)quiet;
  File file{bytes};
  const std::unique_ptr<TIFF, Close> tiff(
      TIFFClientOpen("image", "rm", &file, read, write, seek, close, size, nullptr, nullptr));
  uint32_t width = 0, height = 0;
  if (!tiff || !TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) ||
      !TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height))
    return std::nullopt;
  std::optional<Image> image = make_image(height, width);
  if (!image) return std::nullopt;
  std::vector<uint32_t> raster(size_t{width} * height);
  if (!TIFFReadRGBAImageOriented(tiff.get(), width, height, raster.data(), ORIENTATION_TOPLEFT, 1))
    return std::nullopt;
  for (size_t i = 0; i < raster.size(); ++i) {
    image->rgb[i * 3] = static_cast<uint8_t>(TIFFGetR(raster[i]));
    image->rgb[i * 3 + 1] = static_cast<uint8_t>(TIFFGetG(raster[i]));
    image->rgb[i * 3 + 2] = static_cast<uint8_t>(TIFFGetB(raster[i]));
  }
  return image;
}

}  // namespace pfrt::image

// SPDX-License-Identifier: Apache-2.0
//
// Decodes TIFF files by libtiff, a few rows at a time, so that a run can be stopped between them.
#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "plugins/ops_image/decode.h"

namespace pfrt::image {
namespace {

constexpr int64_t kPixelsAtOnce = 1 << 18;  // between looks at the run
// One allocation of the library may take this many bytes for each pixel that an image may have.
constexpr int64_t kMostBytesPerPixel = 16;

// A file in memory.
struct File {
  const Job* job;
  Bytes bytes;
  uint64_t at = 0;
};

File& self(thandle_t handle) { return *static_cast<File*>(handle); }

tmsize_t read(thandle_t handle, void* to, tmsize_t size) {
  File& file = self(handle);
  if (file.job->stopped()) return 0;
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
using Tiff = std::unique_ptr<TIFF, Close>;

Tiff open(File& file) {
  // Silences the library for the whole process: its messages concern nobody.
  static const bool quiet = (TIFFSetErrorHandler(nullptr), TIFFSetWarningHandler(nullptr), true);
  (void)quiet;
  constexpr const char* kName = "image";
  constexpr const char* kMode = "rm";
#if TIFFLIB_VERSION >= 20221213
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options(
      TIFFOpenOptionsAlloc(), TIFFOpenOptionsFree);
  if (!options) return nullptr;
  TIFFOpenOptionsSetMaxSingleMemAlloc(
      options.get(), static_cast<tmsize_t>(file.job->max_pixels) * kMostBytesPerPixel);
  return Tiff(TIFFClientOpenExt(kName, kMode, &file, read, write, seek, close, size, nullptr,
                                nullptr, options.get()));
#else
  return Tiff(
      TIFFClientOpen(kName, kMode, &file, read, write, seek, close, size, nullptr, nullptr));
#endif
}

uint16_t field(TIFF* tiff, uint32_t tag) {
  uint16_t value = 1;
  TIFFGetFieldDefaulted(tiff, tag, &value);
  return value;
}

// Returns how many bytes one byte of the file can become; 0 = no bound is known.
int64_t most_expansion(TIFF* tiff) {
  switch (field(tiff, TIFFTAG_COMPRESSION)) {
    case COMPRESSION_NONE:
      return 1;
    case COMPRESSION_PACKBITS:
      return 64;
    case COMPRESSION_DEFLATE:
    case COMPRESSION_ADOBE_DEFLATE:
      return 1032;
    case COMPRESSION_LZW:
      return 4096;
    default:
      return 0;
  }
}

// Whether the bytes can hold what the header announces.
bool plausible(TIFF* tiff, Bytes bytes, int64_t height, int64_t width) {
  const int64_t expansion = most_expansion(tiff);
  if (expansion == 0) return true;
  // Chroma may be subsampled; luma is there for each pixel.
  const bool subsampled = field(tiff, TIFFTAG_PHOTOMETRIC) == PHOTOMETRIC_YCBCR;
  const int64_t samples = subsampled ? 1 : field(tiff, TIFFTAG_SAMPLESPERPIXEL);
  const auto bits = static_cast<double>(samples * field(tiff, TIFFTAG_BITSPERSAMPLE));
  return static_cast<double>(height) * static_cast<double>(width) * bits / 8 <=
         static_cast<double>(bytes.size()) * static_cast<double>(expansion);
}

// Returns how many rows the file stores together, in a strip or a row of tiles.
uint32_t stored_rows(TIFF* tiff, uint32_t height) {
  uint32_t rows = height;
  TIFFGetFieldDefaulted(tiff, TIFFIsTiled(tiff) ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP, &rows);
  return std::clamp<uint32_t>(rows, 1, height);
}

// The raster of the library: a whole image, of which rows are asked for.
class Raster {
 public:
  explicit Raster(TIFF* tiff) {
    char why[1024];
    begun_ = TIFFRGBAImageOK(tiff, why) && TIFFRGBAImageBegin(&raster_, tiff, 1, why);
    raster_.req_orientation = ORIENTATION_TOPLEFT;
  }
  ~Raster() {
    if (begun_) TIFFRGBAImageEnd(&raster_);
  }
  Raster(const Raster&) = delete;
  Raster& operator=(const Raster&) = delete;
  bool begun() const { return begun_; }
  // Whether the first row of the file is the picture's last.
  bool upward() const {
    const uint16_t from = raster_.orientation;
    return from == ORIENTATION_BOTRIGHT || from == ORIENTATION_RIGHTBOT ||
           from == ORIENTATION_BOTLEFT || from == ORIENTATION_LEFTBOT;
  }
  // Reads rows of the file, in the picture's order.
  bool read(uint32_t first, uint32_t rows, uint32_t width, uint32_t* to) {
    raster_.row_offset = static_cast<int>(first);
    raster_.col_offset = 0;
    return TIFFRGBAImageGet(&raster_, to, width, rows) != 0;
  }

 private:
  TIFFRGBAImage raster_{};
  bool begun_ = false;
};

bool read_rows(TIFF* tiff, const Job& job, Image& image) {
  const auto height = static_cast<uint32_t>(image.height),
             width = static_cast<uint32_t>(image.width);
  Raster raster(tiff);
  if (!raster.begun()) return false;
  const int64_t stored = stored_rows(tiff, height);
  const auto step = static_cast<uint32_t>(
      std::min<int64_t>(height, stored * std::max<int64_t>(kPixelsAtOnce / (stored * width), 1)));
  std::vector<uint32_t> pixels(size_t{step} * width);
  for (uint32_t first = 0; first < height; first += step) {
    if (job.stopped()) return false;
    const uint32_t rows = std::min(step, height - first);
    if (!raster.read(first, rows, width, pixels.data())) return false;
    const uint32_t top = raster.upward() ? height - first - rows : first;
    uint8_t* to = image.rgb.data() + size_t{top} * width * 3;
    for (size_t i = 0; i < size_t{rows} * width; ++i) {
      *to++ = static_cast<uint8_t>(TIFFGetR(pixels[i]));
      *to++ = static_cast<uint8_t>(TIFFGetG(pixels[i]));
      *to++ = static_cast<uint8_t>(TIFFGetB(pixels[i]));
    }
  }
  return true;
}

}  // namespace

std::optional<Image> decode_tiff(Job& job) {
  File file{&job, job.bytes};
  const Tiff tiff = open(file);
  uint32_t width = 0, height = 0;
  if (!tiff || !TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) ||
      !TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height) || !job.allows(height, width) ||
      !plausible(tiff.get(), job.bytes, height, width))
    return std::nullopt;
  std::optional<Image> image = make_image(job, height, width);
  if (image && !read_rows(tiff.get(), job, *image)) return std::nullopt;
  return image;
}

}  // namespace pfrt::image

// SPDX-License-Identifier: Apache-2.0
#include <openjpeg.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "plugins/ops_image/decode.h"

namespace pfrt::image {
namespace {

// Samples of 4 bytes that the library keeps, a pixel that is allowed.
constexpr int64_t kMostSamplesPerPixel = 4;
constexpr int64_t kMostTiles = 65535;  // most tiles that a codestream can number

struct Source {
  const Job* job;
  Bytes bytes;
  size_t at = 0;
};

OPJ_SIZE_T read(void* to, OPJ_SIZE_T size, void* user) {
  Source& source = *static_cast<Source*>(user);
  const size_t n = std::min<size_t>(size, source.bytes.size() - source.at);
  if (n == 0 || source.job->stopped()) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(to, source.bytes.data() + source.at, n);
  source.at += n;
  return n;
}
OPJ_OFF_T skip(OPJ_OFF_T size, void* user) {
  Source& source = *static_cast<Source*>(user);
  if (size < 0 || static_cast<size_t>(size) > source.bytes.size() - source.at) return -1;
  source.at += static_cast<size_t>(size);
  return size;
}
OPJ_BOOL seek(OPJ_OFF_T to, void* user) {
  Source& source = *static_cast<Source*>(user);
  if (to < 0 || static_cast<size_t>(to) > source.bytes.size()) return OPJ_FALSE;
  source.at = static_cast<size_t>(to);
  return OPJ_TRUE;
}

// The size of the image by SIZ, the first segment of a codestream.
struct Announced {
  int64_t height, width, tiles, components;
};

uint32_t number(Bytes bytes, size_t at) {
  return uint32_t{bytes[at]} << 24 | uint32_t{bytes[at + 1]} << 16 | uint32_t{bytes[at + 2]} << 8 |
         bytes[at + 3];
}

// The codestream of a file of boxes (ISO/IEC 15444-1, annex I); nothing when there is none.
Bytes codestream(Bytes file) {
  constexpr uint32_t kCodestream = 0x6a703263;  // jp2c
  while (file.size() >= 16) {
    const uint64_t given = number(file, 0);
    const uint64_t length = given == 0   ? file.size()
                            : given == 1 ? uint64_t{number(file, 8)} << 32 | number(file, 12)
                                         : given;
    const size_t header = given == 1 ? 16 : 8;
    if (length < header) return {};
    if (number(file, 4) == kCodestream)
      return file.subspan(header, std::min<uint64_t>(length, file.size()) - header);
    if (length >= file.size()) return {};
    file = file.subspan(length);
  }
  return {};
}

std::optional<Announced> announced(Bytes code) {
  constexpr size_t kSizes = 8, kEnd = 42;  // of an image, its tiles and their origins
  if (code.size() < kEnd || number(code, 0) != 0xff4fff51) return std::nullopt;
  int64_t n[8];  // across, then down: end, origin, tile, origin of tiles
  for (size_t i = 0; i < 8; ++i) n[i] = number(code, kSizes + 4 * i);
  const auto tiles = [&](size_t d) {
    return n[4 + d] > 0 ? (n[d] - n[6 + d] + n[4 + d] - 1) / n[4 + d] : 0;
  };
  if (n[0] <= n[2] || n[1] <= n[3] || tiles(0) < 1 || tiles(1) < 1) return std::nullopt;
  if (tiles(0) > kMostTiles || tiles(1) > kMostTiles) return std::nullopt;
  return Announced{n[1] - n[3], n[0] - n[2], tiles(0) * tiles(1), code[40] << 8 | code[41]};
}

// The library makes tables for each tile and component, before it has read any: some 9 KiB and
// 1 KiB more for each component. Whether the bytes can hold the tiles, and the tables are small
// beside the image.
bool plausible(const Announced& image, size_t bytes) {
  constexpr int64_t kTileBytes = 14;  // SOT and SOD
  constexpr int64_t kTables = 9, kMostTables = int64_t{1} << 16, kPixelsPerTable = 256;
  return image.tiles <= static_cast<int64_t>(bytes) / kTileBytes &&
         image.tiles * (kTables + image.components) <=
             kMostTables + image.height * image.width / kPixelsPerTable;
}

using Stream = std::unique_ptr<opj_stream_t, decltype(&opj_stream_destroy)>;
using Codec = std::unique_ptr<opj_codec_t, decltype(&opj_destroy_codec)>;

int64_t samples(const opj_image_t& image) {
  int64_t sum = 0;
  for (uint32_t c = 0; c < image.numcomps; ++c) sum += int64_t{image.comps[c].w} * image.comps[c].h;
  return sum;
}

// The byte that a sample of |component| stands for.
uint8_t sample(const opj_image_comp_t& component, uint32_t x, uint32_t y) {
  const uint32_t sx = std::min(x / component.dx, component.w - 1);
  const uint32_t sy = std::min(y / component.dy, component.h - 1);
  int64_t value = component.data[size_t{sy} * component.w + sx];
  if (component.sgnd) value += int64_t{1} << (component.prec - 1);
  if (component.prec > 8) value >>= component.prec - 8;
  if (component.prec < 8) value = value * 255 / ((int64_t{1} << component.prec) - 1);
  return static_cast<uint8_t>(std::clamp<int64_t>(value, 0, 255));
}

// Full-range luma and chroma of ITU-R BT.601 to red, green and blue.
void from_luma(uint8_t* p) {
  const double y = p[0], b = p[1] - 128.0, r = p[2] - 128.0;
  const auto byte = [](double v) { return static_cast<uint8_t>(std::clamp(v + 0.5, 0.0, 255.0)); };
  p[0] = byte(y + 1.402 * r);
  p[1] = byte(y - 0.344136 * b - 0.714136 * r);
  p[2] = byte(y + 1.772 * b);
}

// Pixels of |height| rows, all that |picture| has. False when it is damaged, or the run is to stop.
bool write(const Job& job, const opj_image_t& picture, int64_t height, int64_t width, uint8_t* to) {
  const bool colours = picture.numcomps >= 3;
  for (uint32_t c = 0; c < (colours ? 3u : 1u); ++c) {
    const opj_image_comp_t& component = picture.comps[c];
    if (!component.data || component.w == 0 || component.h == 0 || component.dx == 0 ||
        component.dy == 0 || component.prec == 0 || component.prec > 31)
      return false;
  }
  for (uint32_t y = 0; y < height; ++y) {
    if (job.stopped()) return false;
    for (uint32_t x = 0; x < width; ++x, to += 3) {
      for (uint32_t c = 0; c < 3; ++c) to[c] = sample(picture.comps[colours ? c : 0], x, y);
      if (colours && picture.color_space == OPJ_CLRSPC_SYCC) from_luma(to);
    }
  }
  return true;
}

// The library does not look at the run within a tile. An image of one large tile is decoded in
// bands of so many rows; 0 = whole.
int64_t band_rows(const opj_image_t& image) {
  constexpr int64_t kBand = 1 << 19, kBlock = 64;  // pixels; rows of a block of codes
  const int64_t height = int64_t{image.y1} - image.y0, width = int64_t{image.x1} - image.x0;
  for (uint32_t c = 0; c < image.numcomps; ++c)
    if (image.comps[c].dy == 0 || kBlock % image.comps[c].dy != 0) return 0;
  const int64_t rows = std::max<int64_t>(1, kBand / width / kBlock) * kBlock;
  return rows < height ? rows : 0;
}

}  // namespace

std::optional<Image> decode_jpeg2000(Job& job) {
  const Bytes bytes = job.bytes;
  Source source{&job, bytes};
  const Stream stream(opj_stream_default_create(OPJ_TRUE), opj_stream_destroy);
  const bool boxed = bytes[0] == 0;  // a file, not a bare codestream
  const std::optional<Announced> size = announced(boxed ? codestream(bytes) : bytes);
  if (!size || !job.allows(size->height, size->width) || !plausible(*size, bytes.size()))
    return std::nullopt;
  const Codec codec(opj_create_decompress(boxed ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K),
                    opj_destroy_codec);
  if (!stream || !codec) return std::nullopt;
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), bytes.size());
  opj_stream_set_read_function(stream.get(), read);
  opj_stream_set_skip_function(stream.get(), skip);
  opj_stream_set_seek_function(stream.get(), seek);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* raw = nullptr;
  if (!opj_setup_decoder(codec.get(), &parameters) ||
      !opj_read_header(stream.get(), codec.get(), &raw))
    return std::nullopt;
  const std::unique_ptr<opj_image_t, decltype(&opj_image_destroy)> picture(raw, opj_image_destroy);
  const uint32_t left = raw->x0, right = raw->x1, bottom = raw->y1;
  uint32_t top = raw->y0;
  const int64_t height = int64_t{bottom} - top, width = int64_t{right} - left;
  if (!job.allows(height, width) || samples(*raw) > kMostSamplesPerPixel * job.max_pixels)
    return std::nullopt;
  std::optional<Image> image = make_image(job, height, width);
  if (!image || raw->numcomps == 0) return std::nullopt;
  uint8_t* to = image->rgb.data();
  const int64_t rows = size->tiles == 1 ? band_rows(*raw) : 0;
  if (rows == 0) {
    if (!opj_decode(codec.get(), stream.get(), raw) || !write(job, *raw, height, width, to) ||
        !opj_end_decompress(codec.get(), stream.get()))
      return std::nullopt;
    return image;
  }
  while (top < bottom) {
    const auto end = static_cast<uint32_t>(std::min<int64_t>(bottom, (top / rows + 1) * rows));
    if (job.stopped() ||
        !opj_set_decode_area(codec.get(), raw, static_cast<int32_t>(left),
                             static_cast<int32_t>(top), static_cast<int32_t>(right),
                             static_cast<int32_t>(end)) ||
        !opj_decode(codec.get(), stream.get(), raw) || !write(job, *raw, end - top, width, to))
      return std::nullopt;
    to += 3 * (end - top) * width;
    top = end;
  }
  return image;
}

}  // namespace pfrt::image

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

}  // namespace

std::optional<Image> decode_jpeg2000(Job& job) {
  const Bytes bytes = job.bytes;
  Source source{&job, bytes};
  const Stream stream(opj_stream_default_create(OPJ_TRUE), opj_stream_destroy);
  const bool boxed = bytes[0] == 0;  // a file, not a bare codestream
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
  const int64_t height = int64_t{raw->y1} - raw->y0, width = int64_t{raw->x1} - raw->x0;
  if (!job.allows(height, width) || samples(*raw) > kMostSamplesPerPixel * job.max_pixels)
    return std::nullopt;
  std::optional<Image> image = make_image(job, height, width);
  if (!image || raw->numcomps == 0 || !opj_decode(codec.get(), stream.get(), raw) ||
      !opj_end_decompress(codec.get(), stream.get()))
    return std::nullopt;
  const bool colours = raw->numcomps >= 3;
  for (uint32_t c = 0; c < (colours ? 3u : 1u); ++c) {
    const opj_image_comp_t& component = raw->comps[c];
    if (!component.data || component.w == 0 || component.h == 0 || component.dx == 0 ||
        component.dy == 0 || component.prec == 0 || component.prec > 31)
      return std::nullopt;
  }
  uint8_t* to = image->rgb.data();
  for (uint32_t y = 0; y < image->height; ++y) {
    if (job.stopped()) return std::nullopt;
    for (uint32_t x = 0; x < image->width; ++x, to += 3) {
      for (uint32_t c = 0; c < 3; ++c) to[c] = sample(raw->comps[colours ? c : 0], x, y);
      if (colours && raw->color_space == OPJ_CLRSPC_SYCC) from_luma(to);
    }
  }
  return image;
}

}  // namespace pfrt::image

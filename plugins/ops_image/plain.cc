// SPDX-License-Identifier: Apache-2.0
//
// Images without compression worth the name: BMP, and the portable formats PBM, PGM and PPM.
#include <cctype>

#include "plugins/ops_image/decode.h"

namespace pfrt::image {
namespace {

uint32_t little(Bytes s, size_t at, size_t bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= uint32_t{s[at + i]} << (8 * i);
  return value;
}

// The numbers of a portable image's header and, where it is text, of its pixels.
class Words {
 public:
  Words(Bytes stream, size_t at) : stream_(stream), at_(at) {}
  // The next number, or -1.
  int64_t next(bool one_digit = false) {
    while (at_ < stream_.size() && (std::isspace(stream_[at_]) || stream_[at_] == '#')) {
      if (stream_[at_] == '#')
        while (at_ < stream_.size() && stream_[at_] != '\n') ++at_;
      else
        ++at_;
    }
    int64_t value = -1;
    while (at_ < stream_.size() && std::isdigit(stream_[at_]) && value < 100000) {
      value = (value < 0 ? 0 : value * 10) + (stream_[at_++] - '0');
      if (one_digit) break;
    }
    return value;
  }
  size_t at() const { return at_; }

 private:
  Bytes stream_;
  size_t at_;
};

uint8_t scaled(int64_t value, int64_t most) {
  return static_cast<uint8_t>(most == 255 ? value : (value * 255 + most / 2) / most);
}

}  // namespace

std::optional<Image> decode_bmp(Job& job) {
  const Bytes s = job.bytes;
  if (s.size() < 54) return std::nullopt;
  const uint32_t offset = little(s, 10, 4), header = little(s, 14, 4), bits = little(s, 28, 2),
                 packing = little(s, 30, 4);
  if (header < 40) return std::nullopt;  // of OS/2
  const int64_t width = static_cast<int32_t>(little(s, 18, 4));
  int64_t height = static_cast<int32_t>(little(s, 22, 4));
  const bool downward = height < 0;
  if (downward) height = -height;
  const bool known = bits == 1 || bits == 4 || bits == 8 || bits == 24 || bits == 32;
  if (packing != 0 || !known || width <= 0) return std::nullopt;
  const size_t pitch = (static_cast<size_t>(width) * bits + 31) / 32 * 4;
  const size_t palette = 14 + size_t{header};
  if (offset > s.size() || (s.size() - offset) / pitch < static_cast<size_t>(height))
    return std::nullopt;
  std::optional<Image> image = make_image(job, height, width);
  if (!image) return std::nullopt;
  uint8_t* to = image->rgb.data();
  for (int64_t y = 0; y < height; ++y) {
    if (job.stopped()) return std::nullopt;
    const size_t row = offset + pitch * static_cast<size_t>(downward ? y : height - 1 - y);
    for (size_t x = 0; x < static_cast<size_t>(width); ++x) {
      size_t at = row + x * (bits / 8);
      if (bits <= 8) {
        const size_t bit = x * bits;
        const uint32_t index =
            uint32_t{s[row + bit / 8]} >> (8 - bits - bit % 8) & ((1u << bits) - 1);
        at = palette + size_t{index} * 4;
        if (at + 3 > s.size()) return std::nullopt;
      }
      for (size_t c = 3; c-- > 0;) *to++ = s[at + c];
    }
  }
  return image;
}

std::optional<Image> decode_pnm(Job& job) {
  const Bytes s = job.bytes;
  const int kind = s[1] - '0';
  const bool bitmap = kind == 1 || kind == 4, text = kind <= 3, colour = kind == 3 || kind == 6;
  Words words(s, 2);
  const int64_t width = words.next(), height = words.next(), most = bitmap ? 1 : words.next();
  if (height <= 0 || width <= 0 || most < 1 || most > 65535) return std::nullopt;
  if (text && s.size() / static_cast<size_t>(height) < static_cast<size_t>(width))
    return std::nullopt;  // fewer characters than pixels
  const size_t each = bitmap ? 0 : most > 255 ? 2 : 1, samples = colour ? 3 : 1;
  const size_t w = static_cast<size_t>(width);
  const size_t pitch = bitmap ? (w + 7) / 8 : w * each * samples;
  const size_t first = words.at() + 1;
  if (!text && (first > s.size() || (s.size() - first) / pitch < static_cast<size_t>(height)))
    return std::nullopt;
  std::optional<Image> image = make_image(job, height, width);
  if (!image) return std::nullopt;
  uint8_t* to = image->rgb.data();
  for (size_t y = 0; y < static_cast<size_t>(height); ++y) {
    if (job.stopped()) return std::nullopt;
    const uint8_t* row = text ? nullptr : s.data() + first + y * pitch;
    for (size_t x = 0; x < w; ++x) {
      uint8_t sample[3];
      for (size_t c = 0; c < samples; ++c) {
        int64_t value = 0;
        if (text)
          value = words.next(bitmap);
        else if (bitmap)
          value = row[x / 8] >> (7 - x % 8) & 1;
        else
          for (size_t b = 0; b < each; ++b) value = value * 256 + row[(x * samples + c) * each + b];
        if (value < 0 || value > most) return std::nullopt;
        if (bitmap) value = 1 - value;  // 1 is black
        sample[c] = scaled(value, most);
      }
      for (size_t c = 0; c < 3; ++c) *to++ = sample[colour ? c : 0];
    }
  }
  return image;
}

}  // namespace pfrt::image

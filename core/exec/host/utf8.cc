// SPDX-License-Identifier: Apache-2.0
#include "core/exec/host/utf8.h"

#include <locale.h>
#include <wctype.h>

namespace pfrt::host {
namespace {

locale_t utf8_locale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

}  // namespace

char32_t next_point(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80       ? 1
                        : lead >> 5 == 6  ? 2
                        : lead >> 4 == 14 ? 3
                        : lead >> 3 == 30 ? 4
                                          : 0;
  char32_t point = length == 1 ? lead : length ? lead & (0x7fu >> length) : kNoText + lead;
  size_t used = 1;
  for (; used < length && at + used < text.size() && (byte(used) & 0xc0) == 0x80; ++used)
    point = (point << 6) | (byte(used) & 0x3fu);
  if (length > 1 && (used != length || point >= kNoText)) {
    point = kNoText + lead;
    used = 1;
  }
  at += used;
  return point;
}

void append(std::string& out, char32_t p) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (p >= kNoText) {
    put(p - kNoText);
  } else if (p < 0x80) {
    put(p);
  } else if (p < 0x800) {
    put(0xc0 | p >> 6);
    put(0x80 | (p & 0x3f));
  } else if (p < 0x10000) {
    put(0xe0 | p >> 12);
    put(0x80 | (p >> 6 & 0x3f));
    put(0x80 | (p & 0x3f));
  } else {
    put(0xf0 | p >> 18);
    put(0x80 | (p >> 12 & 0x3f));
    put(0x80 | (p >> 6 & 0x3f));
    put(0x80 | (p & 0x3f));
  }
}

char32_t upper_case(char32_t point) {
  if (point < 0x80) return point >= 'a' && point <= 'z' ? point - 32 : point;
  if (point >= kNoText || !utf8_locale()) return point;
  return static_cast<char32_t>(towupper_l(static_cast<wint_t>(point), utf8_locale()));
}

char32_t lower_case(char32_t point) {
  if (point < 0x80) return point >= 'A' && point <= 'Z' ? point + 32 : point;
  if (point >= kNoText || !utf8_locale()) return point;
  return static_cast<char32_t>(towlower_l(static_cast<wint_t>(point), utf8_locale()));
}

bool is_space(char32_t p) {
  return (p >= 0x09 && p <= 0x0d) || (p >= 0x1c && p <= 0x20) || p == 0x85 || p == 0xa0 ||
         p == 0x1680 || (p >= 0x2000 && p <= 0x200a) || p == 0x2028 || p == 0x2029 || p == 0x202f ||
         p == 0x205f || p == 0x3000;
}

}  // namespace pfrt::host

// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/page/markup.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace cli {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD", kEllipsis = "\xE2\x80\xA6";

bool continues(std::string_view text, size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
}

struct Character {
  uint32_t code = 0;
  size_t bytes = 1;
  bool valid = false;
};

// Reads the character at the front of |text|, which is not empty.
Character read(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {first, 1, true};
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return {};
  uint32_t code = first & (0xFFU >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if (!continues(text, i)) return {};
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3F);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeast[bytes] || code > 0x10FFFF || surrogate) return {};
  return {code, bytes, true};
}

bool is_shown(uint32_t code) {
  const auto within = [code](uint32_t first, uint32_t last) {
    return code >= first && code <= last;
  };
  return !within(0, 0x1F) && !within(0x7F, 0x9F) && code != 0xAD && code != 0x61C &&
         !within(0x200B, 0x200F) && !within(0x2028, 0x202E) && !within(0x2060, 0x206F) &&
         code != 0xFEFF && !within(0xFDD0, 0xFDEF) && (code & 0xFFFE) != 0xFFFE;
}

// Calls |fn| with each character's bytes, cleaned, until it returns false.
template <class Fn>
void each_clean(std::string_view text, Fn fn) {
  while (!text.empty()) {
    const Character c = read(text);
    const bool shown = c.valid && is_shown(c.code);
    if (!fn(shown ? text.substr(0, c.bytes) : kReplacement)) return;
    text.remove_prefix(c.bytes);
  }
}

}  // namespace

std::string clean(std::string_view text, size_t limit) {
  std::string out;
  size_t count = 0, before_last = 0;
  each_clean(text, [&](std::string_view c) {
    if (++count > limit) return false;
    if (count == limit) before_last = out.size();
    out += c;
    return true;
  });
  if (count > limit) out.replace(before_last, std::string::npos, kEllipsis);
  return out;
}

std::string clean_tail(std::string_view text, size_t limit) {
  // A code point is at most four bytes, and one cut in half must not be shown.
  size_t from = text.size() > 4 * limit + 4 ? text.size() - 4 * limit - 4 : 0;
  bool cut = from != 0;
  while (cut && continues(text, from)) ++from;
  std::vector<std::string_view> tail;
  each_clean(text.substr(from), [&](std::string_view c) {
    tail.push_back(c);
    return true;
  });
  cut = cut || tail.size() > limit;
  const size_t keep = cut ? std::min(tail.size(), limit - 1) : tail.size();
  std::string out(cut ? kEllipsis : std::string_view());
  for (size_t i = tail.size() - keep; i < tail.size(); ++i) out += tail[i];
  return out;
}

size_t columns(std::string_view text) {
  size_t count = 0;
  each_clean(text, [&](std::string_view c) {
    count += c.size() > 2 && c != kEllipsis && c != kReplacement ? 2 : 1;
    return true;
  });
  return count;
}

Markup& Markup::text(std::string_view text, size_t limit) {
  for (const char c : clean(text, limit)) {
    switch (c) {
      case '&':
        out_ += "&amp;";
        break;
      case '<':
        out_ += "&lt;";
        break;
      case '>':
        out_ += "&gt;";
        break;
      case '"':
        out_ += "&quot;";
        break;
      case '\'':
        out_ += "&#39;";
        break;
      default:
        out_ += c;
    }
  }
  return *this;
}

Markup& Markup::number(double value) {
  const auto tenths = static_cast<int64_t>(std::llround(value * 10));
  const int64_t size = tenths < 0 ? -tenths : tenths;
  if (tenths < 0) out_ += '-';
  out_ += std::to_string(size / 10);
  if (size % 10 != 0) out_ += "." + std::to_string(size % 10);
  return *this;
}

Markup& Markup::count(size_t value) {
  out_ += std::to_string(value);
  return *this;
}

// Inside of a string, JSON may write every character by its number.
Markup& Markup::data(const Json& json) {
  for (const char c : clean(json.text(), json.text().size())) {
    switch (c) {
      case '<':
        out_ += "\\u003c";
        break;
      case '>':
        out_ += "\\u003e";
        break;
      case '&':
        out_ += "\\u0026";
        break;
      default:
        out_ += c;
    }
  }
  return *this;
}

}  // namespace cli

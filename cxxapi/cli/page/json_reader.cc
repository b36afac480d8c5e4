// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/page/json_reader.h"

#include <charconv>
#include <stdexcept>

namespace cli {
namespace {

constexpr int kDeepest = 64;

void append_utf8(unsigned code, std::string* out) {
  const auto byte = [out](unsigned bits) { *out += static_cast<char>(bits); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      byte(0xE0 | code >> 12);
    } else {
      byte(0xF0 | code >> 18);
      byte(0x80 | (code >> 12 & 0x3F));
    }
    byte(0x80 | (code >> 6 & 0x3F));
  }
  byte(0x80 | (code & 0x3F));
}

bool within(unsigned code, unsigned first, unsigned last) { return code >= first && code <= last; }

}  // namespace

void JsonReader::fail(const std::string& expected) const {
  const std::string found =
      at_ < text_.size() ? "'" + std::string(text_.substr(at_, 12)) + "'" : "the end of the text";
  throw std::runtime_error("reading JSON: byte " + std::to_string(at_) + " begins " + found +
                           ", not " + expected);
}

char JsonReader::blank() {
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') return c;
  }
  return '\0';
}

bool JsonReader::take(char c) {
  if (blank() != c) return false;
  ++at_;
  return true;
}

void JsonReader::expect(char c) {
  if (!take(c)) fail(std::string("'") + c + "'");
}

// Reads four hexadecimal digits.
unsigned JsonReader::code() {
  unsigned out = 0;
  const std::string_view digits = text_.substr(at_, 4);
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
  if (fault != std::errc() || end != digits.data() + 4) fail("four hexadecimal digits");
  at_ += 4;
  return out;
}

std::string JsonReader::string() {
  expect('"');
  std::string out;
  for (;;) {
    size_t end = at_;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\\') ++end;
    if (end == text_.size()) {
      at_ = end;
      fail("the '\"' that ends a string");
    }
    out.append(text_, at_, end - at_);
    at_ = end + 1;
    if (text_[end] == '"') return out;
    const char escape = at_ < text_.size() ? text_[at_] : '\0';
    constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    const size_t plain = kEscapes.find(escape);
    if (escape != '\0' && plain != std::string_view::npos) {
      out += kMeanings[plain];
      ++at_;
      continue;
    }
    if (escape != 'u') fail("a character that may follow a '\\'");
    ++at_;
    unsigned value = code();
    if (within(value, 0xD800, 0xDBFF) && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      const unsigned low = code();
      value = within(low, 0xDC00, 0xDFFF) ? 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00)
                                          : 0xFFFD;
    }
    append_utf8(within(value, 0xD800, 0xDFFF) ? 0xFFFD : value, &out);
  }
}

double JsonReader::number() {
  blank();
  double out = 0;
  const char* const first = text_.data() + at_;
  const auto [end, fault] = std::from_chars(first, text_.data() + text_.size(), out);
  if (fault != std::errc()) fail("a number");
  at_ += static_cast<size_t>(end - first);
  return out;
}

void JsonReader::word(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) fail("a value");
  at_ += word.size();
}

void JsonReader::skip() { skip(kDeepest); }

void JsonReader::skip(int depth) {
  if (depth == 0) fail("a value that is nested less deeply");
  switch (blank()) {
    case '{':
      return object([&](const std::string&) { skip(depth - 1); });
    case '[':
      return list([&] { skip(depth - 1); });
    case '"':
      return static_cast<void>(string());
    case 't':
      return word("true");
    case 'f':
      return word("false");
    case 'n':
      return word("null");
    default:
      return static_cast<void>(number());
  }
}

void JsonReader::end() {
  blank();
  if (at_ < text_.size()) fail("the end of the text");
}

}  // namespace cli

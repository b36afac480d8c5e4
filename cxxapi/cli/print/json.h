// SPDX-License-Identifier: Apache-2.0
//
// A streaming JSON writer: objects and lists open, values follow, end() closes. No state outside
// the object.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace cli {

class Json {
 public:
  Json& object() { return open('{', '}'); }
  Json& list() { return open('[', ']'); }
  Json& end() {
    out_ += closers_.back().bracket;
    closers_.pop_back();
    return *this;
  }
  Json& key(std::string_view name) {
    separate();
    quote(name);
    out_ += ':';
    after_key_ = true;
    return *this;
  }
  Json& value(std::string_view text) {
    separate();
    quote(text);
    return *this;
  }
  Json& value(const char* text) { return value(std::string_view(text)); }
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Json& value(T number) {
    separate();
    if constexpr (std::is_same_v<T, bool>) {
      out_ += number ? "true" : "false";
    } else if constexpr (std::is_floating_point_v<T>) {
      char text[32];
      std::snprintf(text, sizeof(text), "%.9g", static_cast<double>(number));
      out_ += std::isfinite(number) ? text : "null";  // JSON has no NaN and no infinity
    } else {
      out_ += std::to_string(number);
    }
    return *this;
  }
  template <class T>
  Json& field(std::string_view name, const T& content) {
    return key(name).value(content);
  }
  const std::string& text() const { return out_; }
  void print() const { std::printf("%s\n", out_.c_str()); }

 private:
  struct Level {
    char bracket;
    bool empty;
  };
  Json& open(char bracket, char closer) {
    separate();
    out_ += bracket;
    closers_.push_back({closer, true});
    return *this;
  }
  void separate() {
    if (after_key_ || closers_.empty()) {
      after_key_ = false;
      return;
    }
    if (!closers_.back().empty) out_ += ',';
    closers_.back().empty = false;
  }
  void quote(std::string_view text) {
    out_ += '"';
    for (const char c : text) {
      if (c == '"' || c == '\\') out_ += '\\';
      if (static_cast<unsigned char>(c) < 0x20) {
        char code[8];
        std::snprintf(code, sizeof(code), "\\u%04x", static_cast<unsigned>(c));
        out_ += code;
      } else {
        out_ += c;
      }
    }
    out_ += '"';
  }

  std::string out_;
  std::vector<Level> closers_;
  bool after_key_ = false;
};

}  // namespace cli

// SPDX-License-Identifier: Apache-2.0
//
// HTML under construction, in which text from a model cannot become markup: raw() takes only string
// literals, and everything else is cleaned and escaped. Pure functions; no state outside the
// object.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cxxapi/cli/print/json.h"

namespace cli {

// Returns the valid UTF-8 of |text|. Control characters and those that turn the direction of
// writing become U+FFFD. The result has at most |limit| code points, the last of them an ellipsis
// when the text is longer.
std::string clean(std::string_view text, size_t limit);
// Cleans as clean does, but cuts at the front.
std::string clean_tail(std::string_view text, size_t limit);
// Number of columns that clean text takes on a terminal: East Asian characters count twice.
size_t columns(std::string_view text);

class Markup {
 public:
  template <size_t N>
  Markup& raw(const char (&literal)[N]) {
    out_.append(literal, N - 1);
    return *this;
  }
  // Writes the text of an element or the quoted value of an attribute.
  Markup& text(std::string_view text, size_t limit = 4096);
  // Writes the number with one digit after the point.
  Markup& number(double value);
  Markup& count(size_t value);
  // Writes the content of a script element of type application/json.
  Markup& data(const Json& json);

  const std::string& str() const { return out_; }

 private:
  std::string out_;
};

// Begins a page about |of| up to its heading; |is| is added to its title. It may load nothing.
template <size_t N>
void begin_page(Markup& out, std::string_view of, std::string_view is, const char (&style)[N]) {
  constexpr size_t kTitle = 200;
  out.raw(R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; )"
          R"(script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>)");
  out.text(of, kTitle).text(is).raw("</title>\n<style>").raw(style);
  out.raw("</style></head>\n<body><h1>").text(of, kTitle).raw("</h1>");
}

}  // namespace cli

// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 to code points and back. A byte that is not UTF-8 becomes kNoText plus the byte, and that
// byte again. Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace pfrt::host {

inline constexpr char32_t kNoText = 0x110000;  // one past the last code point

// The code point at |at|, which must be inside |text|, and |at| moves behind it.
char32_t next_point(std::string_view text, size_t& at);
void append(std::string& out, char32_t point);
// The simple case mappings of Unicode.
char32_t upper_case(char32_t point);
char32_t lower_case(char32_t point);
// What Python's str.split() splits at.
bool is_space(char32_t point);

}  // namespace pfrt::host

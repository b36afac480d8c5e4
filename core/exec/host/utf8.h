// SPDX-License-Identifier: Apache-2.0
//
// Converts UTF-8 to code points and back. A byte that is not UTF-8 becomes kNoText plus the byte,
// and that byte again. Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace pfrt::host {

inline constexpr char32_t kNoText = 0x110000;  // one past the last code point

// Returns the code point at |at|, which must be inside |text|, and moves |at| behind it.
char32_t next_point(std::string_view text, size_t& at);
void append(std::string& out, char32_t point);
// These are the simple case mappings of Unicode.
char32_t upper_case(char32_t point);
char32_t lower_case(char32_t point);
// Whether Python's str.split() splits at |point|.
bool is_space(char32_t point);

}  // namespace pfrt::host

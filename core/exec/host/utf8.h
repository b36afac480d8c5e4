// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 to code points and back. A byte that is not UTF-8 becomes kNoText plus the byte, and that
// byte again. Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace pfrt::host {

inline constexpr char32_t kNoText = 0x110000;  // one past the last code point

std::u32string decode(std::string_view text);
std::string encode(const std::u32string& points);
// The simple case mappings of Unicode.
char32_t upper_case(char32_t point);
char32_t lower_case(char32_t point);
// What Python's str.split() splits at.
bool is_space(char32_t point);

}  // namespace pfrt::host

// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/program/words.h"

#include <algorithm>
#include <charconv>

namespace pfrt::wse {

Result<Words> Words::read(std::string_view text) {
  Words out;
  size_t at = 0;
  while (at < text.size()) {
    const size_t begin = text.find_first_not_of(" \t\n", at);
    if (begin == std::string_view::npos) break;
    at = std::min(text.find_first_of(" \t\n", begin), text.size());
    const std::string_view word = text.substr(begin, at - begin);
    const size_t equal = std::min(word.find('='), word.size());
    const std::string key(word.substr(0, equal));
    if (out.has(key))
      return error(Code::kINVALID_ARGUMENT, "the request to the wafer has '", key, "' twice");
    out.words_.emplace_back(key, equal < word.size() ? word.substr(equal + 1) : "");
  }
  return out;
}

bool Words::has(std::string_view key) const {
  return std::any_of(words_.begin(), words_.end(), [&](const auto& w) { return w.first == key; });
}

std::string_view Words::text(std::string_view key) const {
  for (const auto& [name, value] : words_)
    if (name == key) return value;
  return {};
}

Result<int64_t> Words::whole(std::string_view key, int64_t fallback, int64_t least) const {
  const std::string_view value = text(key);
  if (!has(key)) return fallback;
  int64_t out = 0;
  const auto [end, fault] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (fault != std::errc() || end != value.data() + value.size() || out < least || out > 1 << 24)
    return error(Code::kINVALID_ARGUMENT, "'", key, "=", value, "' is no whole number from ", least,
                 " to 16,777,216");
  return out;
}

Result<double> Words::number(std::string_view key, double fallback) const {
  const std::string_view value = text(key);
  if (!has(key)) return fallback;
  double out = 0;
  const auto [end, fault] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (fault != std::errc() || end != value.data() + value.size() || !(out > 0) || out > 1e18)
    return error(Code::kINVALID_ARGUMENT, "'", key, "=", value, "' is no number above 0");
  return out;
}

Status Words::only(std::initializer_list<std::string_view> keys) const {
  for (const auto& [key, value] : words_) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    std::string list;
    for (const std::string_view k : keys) list += message(list.empty() ? "" : ", ", k);
    return error(Code::kINVALID_ARGUMENT, "the wafer knows no '", key,
                 "' in this request; it takes ", list.empty() ? "nothing" : list);
  }
  return {};
}

}  // namespace pfrt::wse

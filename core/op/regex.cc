// SPDX-License-Identifier: Apache-2.0
#include "core/op/regex.h"

#include <re2/re2.h>

namespace pfrt {
namespace {

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

Regex::Regex(std::unique_ptr<re2::RE2> pattern) : pattern_(std::move(pattern)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(std::string_view pattern) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  auto made = std::make_unique<re2::RE2>(piece(pattern), options);
  if (!made->ok())
    return error(Code::kINVALID_MODEL, "attribute 'pattern' is '", pattern,
                 "', which is no regular expression in RE2's syntax: ", made->error());
  return Regex(std::move(made));
}

bool Regex::matches_all(std::string_view text) const {
  return re2::RE2::FullMatch(piece(text), *pattern_);
}

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// Regular expressions in RE2's syntax: whether a whole text matches. Time is linear in the text,
// whatever the pattern. Immutable once made; thread-safe.
#pragma once

#include <memory>
#include <string_view>

#include "core/base/status.h"

namespace re2 {
class RE2;
}

namespace pfrt {

class Regex {
 public:
  // INVALID_MODEL, with what RE2 has to say, when |pattern| is not its syntax.
  static Result<Regex> compile(std::string_view pattern);
  Regex(Regex&&) noexcept;
  ~Regex();
  bool matches_all(std::string_view text) const;

 private:
  explicit Regex(std::unique_ptr<re2::RE2> pattern);
  std::unique_ptr<re2::RE2> pattern_;
};

}  // namespace pfrt

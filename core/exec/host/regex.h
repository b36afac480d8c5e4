// SPDX-License-Identifier: Apache-2.0
//
// Regular expressions in RE2's syntax, without captures: whether a whole text matches. A set of
// states is carried over the text, so time is the product of the lengths of text and pattern,
// whatever the pattern. Unicode classes (\pN, \p{Greek}) and \C are refused. Immutable once made;
// thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace pfrt::host {

class Regex {
 public:
  // INVALID_MODEL, naming the place, when |pattern| is not RE2's syntax.
  static Result<Regex> compile(std::string_view pattern);
  bool matches_all(std::string_view text) const;

  // Characters: ranges, both ends included, or all others.
  struct Class {
    std::vector<std::pair<char32_t, char32_t>> ranges;
    bool negated = false;
    bool folded = false;  // whatever the case

    bool contains(char32_t point) const;
    void add(const Class& other);
  };
  enum class Assertion : uint8_t { kBegin, kEnd, kLineBegin, kLineEnd, kWord, kNoWord };

  struct Step {
    enum Kind : uint8_t { kClass, kAssert, kSplit, kJump, kDone } kind;
    uint32_t argument = 0;  // class, assertion or first target
    uint32_t other = 0;     // second target of a split
  };

 private:
  friend class RegexProgram;
  std::vector<Class> classes_;
  std::vector<Step> steps_;
};

}  // namespace pfrt::host

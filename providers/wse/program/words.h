// SPDX-License-Identifier: Apache-2.0
//
// A request as words: "gemm=64x64x64 grid=8 json". Each key once. Immutable once made.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"

namespace pfrt::wse {

class Words {
 public:
  static Result<Words> read(std::string_view text);

  const std::vector<std::pair<std::string, std::string>>& all() const { return words_; }
  bool has(std::string_view key) const;
  std::string_view text(std::string_view key) const;  // empty where it is not there
  // |fallback| where it is not there; fails where it is no whole number from |least| on.
  Result<int64_t> whole(std::string_view key, int64_t fallback, int64_t least) const;
  Result<double> number(std::string_view key, double fallback) const;
  // Fails when there is another key than these.
  Status only(std::initializer_list<std::string_view> keys) const;

 private:
  std::vector<std::pair<std::string, std::string>> words_;
};

}  // namespace pfrt::wse

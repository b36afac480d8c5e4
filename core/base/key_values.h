// SPDX-License-Identifier: Apache-2.0
//
// Short texts by key, which may outlive the process. An object belongs to one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pfrt {

class KeyValues {
 public:
  KeyValues() = default;
  KeyValues(const KeyValues&) = delete;
  KeyValues& operator=(const KeyValues&) = delete;
  virtual ~KeyValues() = default;

  virtual std::optional<std::string> find(std::string_view key) = 0;
  // Replaces the value of that key. After a failure it is missing later, and nothing worse.
  virtual void put(std::string_view key, std::string_view value) = 0;
};

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// Short texts by key in one entry of a CacheStore, which each put writes anew. Processes that put
// at once take turns, so that all texts are kept. Beyond the limit, those put first are dropped. An
// object belongs to one thread, and knows the texts of the time when it was made or last put one.
// The entry's body has for each text the bytes of key and value (32 bits each), then key and value.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/key_values.h"
#include "core/cache/store.h"

namespace pfrt {

class StoredValues : public KeyValues {
 public:
  // |store| outlives it. |of| describes the texts in lists, after their number.
  StoredValues(CacheStore& store, std::string key, std::string suffix, std::string of,
               Logger* logger, size_t most = 4096);

  std::optional<std::string> find(std::string_view key) override;
  void put(std::string_view key, std::string_view value) override;

 private:
  void read();
  Status write();

  CacheStore& store_;
  const std::string key_, suffix_, of_;
  Logger* const logger_;
  const size_t most_;
  std::vector<std::pair<std::string, std::string>> values_;  // in the order in which they were put
};

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// Short texts by key in one entry of a CacheStore, which is written anew with each. Processes that
// put some at once take turns, so that all are kept. Where there are too many, those that were put
// first go. An object belongs to one thread, and knows what was there when it was made or has put
// last. The entry's body: for each, the bytes of key and value (32 bits each), then these.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/key_values.h"
#include "core/cache/store.h"

namespace pfrt {

class StoredValues : public KeyValues {
 public:
  // |store| outlives it. |of|: what they are, for lists, after their number.
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
  std::vector<std::pair<std::string, std::string>> values_;  // those put last come last
};

}  // namespace pfrt

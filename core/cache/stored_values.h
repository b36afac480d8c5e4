// SPDX-License-Identifier: Apache-2.0
//
// Short texts by key in one entry of a CacheStore, which is written anew with each. Processes that
// put some at once take turns, so that all are kept. Where there are too many, those that were put
// first go. Thread-safe. The entry's body: for each, the bytes of key and value (32 bits each),
// then these.
#pragma once

#include <cstdint>
#include <mutex>
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

  void refresh() override;
  std::optional<std::string> find(std::string_view key) override;
  void put(std::string_view key, std::string_view value) override;

 private:
  void read();
  Status write();

  CacheStore& store_;
  const std::string key_, suffix_, of_;
  Logger* const logger_;
  const size_t most_;
  std::mutex mutex_;
  CacheStore::EntryPtr entry_;                               // that was read last
  std::vector<std::pair<std::string, std::string>> values_;  // those put last come last
};

}  // namespace pfrt

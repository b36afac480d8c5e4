// SPDX-License-Identifier: Apache-2.0
#include "core/cache/stored_values.h"

#include <algorithm>
#include <cstring>

namespace pfrt {
namespace {

constexpr std::string_view kForm = "values 1";
constexpr uint32_t kLockWaitMs = 2000;

// The pairs in |bytes|; nullopt where these have another form.
std::optional<std::vector<std::pair<std::string, std::string>>> parsed(std::string_view bytes) {
  std::vector<std::pair<std::string, std::string>> out;
  while (!bytes.empty()) {
    uint32_t sizes[2];
    if (bytes.size() < sizeof sizes) return {};
    std::memcpy(sizes, bytes.data(), sizeof sizes);
    bytes.remove_prefix(sizeof sizes);
    if (uint64_t{sizes[0]} + sizes[1] > bytes.size()) return {};
    out.emplace_back(bytes.substr(0, sizes[0]), bytes.substr(sizes[0], sizes[1]));
    bytes.remove_prefix(uint64_t{sizes[0]} + sizes[1]);
  }
  return out;
}

}  // namespace

StoredValues::StoredValues(CacheStore& store, std::string key, std::string suffix, std::string of,
                           Logger* logger, size_t most)
    : store_(store),
      key_(std::move(key)),
      suffix_(std::move(suffix)),
      of_(std::move(of)),
      logger_(logger),
      most_(most) {
  read();
}

// Values that could not be written stay until there is an entry.
void StoredValues::read() {
  const auto entry = store_.find(key_, suffix_);
  if (!entry) return;
  values_.clear();
  auto values = entry->head == kForm ? parsed(std::string_view(entry->body, entry->body_bytes))
                                     : std::nullopt;
  if (values) {
    values_ = std::move(*values);
  } else if (logger_) {
    logger_->log(PFRT_LOG_WARNING, "cache entry ", key_,
                 " is not used and made again: its values are in another form");
  }
}

std::optional<std::string> StoredValues::find(std::string_view key) {
  const auto at = std::ranges::find(values_, key, &decltype(values_)::value_type::first);
  return at == values_.end() ? std::nullopt : std::optional(at->second);
}

void StoredValues::put(std::string_view key, std::string_view value) {
  // The lock keeps values that another process puts meanwhile.
  Status status = store_.make_folder();
  Result<os::Descriptor> turn{os::Descriptor()};
  if (status.ok()) turn = os::lock_file(store_.folder() + "/values.lock", kLockWaitMs);
  if (!turn.ok() && turn.status().code() == Code::kBUSY) status = turn.take_status();
  if (status.ok()) read();
  std::erase_if(values_, [&](const auto& each) { return each.first == key; });
  values_.emplace_back(key, value);
  if (values_.size() > most_) values_.erase(values_.begin());
  if (status.ok()) status = write();
  if (!status.ok() && logger_)
    logger_->log(PFRT_LOG_WARNING, "cache: ", of_, " are not kept: ", status.message());
}

Status StoredValues::write() {
  std::string bytes;
  for (const auto& [key, value] : values_) {
    const uint32_t sizes[] = {static_cast<uint32_t>(key.size()),
                              static_cast<uint32_t>(value.size())};
    bytes.append(reinterpret_cast<const char*>(sizes), sizeof sizes);
    bytes.append(key).append(value);
  }
  return store_.put(
      key_, suffix_, message(values_.size(), " ", of_), kForm,
      {{0, bytes.size(), [&](const auto& to) { return to(bytes.data(), bytes.size()); }}});
}

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
#include "core/provider/tuning.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/base/status.h"

namespace pfrt {
namespace {

constexpr size_t kMostBytes = 4096;  // of a key, and of a value

bool fits(pfrt_string text) { return text.data && text.size > 0 && text.size <= kMostBytes; }

}  // namespace

Tuning::Tuning(const Config& config, MemoryOf memory_of)
    : config_(config),
      memory_of_(std::move(memory_of)),
      left_ns_(static_cast<int64_t>(config.budget_ns)) {}

Tuning::Call::Call(Tuning& tuning, std::string provider, std::string identity)
    : tuning_(tuning), provider_(std::move(provider)), identity_(std::move(identity)) {
  table_.struct_size = sizeof table_;
  table_.abi = PFRT_ABI_VERSION;
  table_.host = this;
  table_.search = tuning.config_.search;
  table_.iterations = tuning.config_.iterations;
  table_.repeats = tuning.config_.repeats;
  table_.recall = [](const pfrt_tuning* table, pfrt_string key, pfrt_string* out) {
    return of(table).recall(key, out);
  };
  table_.remember = [](const pfrt_tuning* table, pfrt_string key, pfrt_string value) {
    return of(table).remember(key, value);
  };
  table_.left_ns = [](const pfrt_tuning* table, uint64_t spent_ns) {
    return of(table).left_ns(spent_ns);
  };
}

KeyValues* Tuning::Call::memory() {
  if (!asked_) {
    memory_ = tuning_.memory_of_(provider_, identity_);
    asked_ = true;
  }
  return memory_.get();
}

pfrt_code Tuning::Call::recall(pfrt_string key, pfrt_string* out) try {
  *out = to_c("");
  if (!fits(key)) return PFRT_CODE_INVALID_ARGUMENT;
  KeyValues* const from = memory();
  auto value = from ? from->find(view(key)) : std::nullopt;
  if (!value) return PFRT_CODE_NOT_FOUND;
  recalled_ = std::move(*value);
  *out = to_c(recalled_);
  return PFRT_CODE_OK;
} catch (const std::bad_alloc&) {
  return PFRT_CODE_OUT_OF_MEMORY;
}

pfrt_code Tuning::Call::remember(pfrt_string key, pfrt_string value) try {
  if (!fits(key) || !fits(value)) return PFRT_CODE_INVALID_ARGUMENT;
  if (KeyValues* const to = memory()) to->put(view(key), view(value));
  return PFRT_CODE_OK;
} catch (const std::bad_alloc&) {
  return PFRT_CODE_OUT_OF_MEMORY;
}

uint64_t Tuning::Call::left_ns(uint64_t spent_ns) {
  std::atomic<int64_t>& left = tuning_.config_.budget_ns > 0 ? tuning_.left_ns_ : own_ns_;
  const auto spent = static_cast<int64_t>(std::min<uint64_t>(spent_ns, INT64_MAX / 2));
  // Time spent after the end must not make the rest wrap around.
  int64_t now = left.load(), next;
  do next = std::max<int64_t>(now - spent, 0);
  while (!left.compare_exchange_weak(now, next));
  return tuning_.measures() ? static_cast<uint64_t>(next) : 0;
}

}  // namespace pfrt

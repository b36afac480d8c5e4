// SPDX-License-Identifier: Apache-2.0
//
// What a session lets its providers measure when they make programs, and what is remembered of it
// (pfrt_tuning). Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/key_values.h"
#include "pyflame_rt/plugin.h"

namespace pfrt {

class Tuning {
 public:
  struct Config {
    bool measure = false;  // else what is remembered is used, and nothing more
    pfrt_tune_search search = PFRT_TUNE_RACE;
    uint32_t iterations = 0, repeats = 0;  // as in pfrt_tuning
    uint64_t budget_ns = 0;                // in all; 0 = kCallNs for each call
  };
  static constexpr uint64_t kCallNs = 3'000'000'000;
  // Where what a provider finds is kept, by its name and Provider::lasting_identity; null: nowhere.
  using MemoryOf = std::function<std::unique_ptr<KeyValues>(const std::string& provider,
                                                            const std::string& identity)>;

  Tuning(const Config& config, MemoryOf memory_of);
  Tuning(const Tuning&) = delete;
  Tuning& operator=(const Tuning&) = delete;

  bool measures() const { return config_.measure; }

  // For one call of a provider. Belongs to the call's thread.
  class Call {
   public:
    Call(Tuning& tuning, std::string provider, std::string identity);
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    const pfrt_tuning* get() const { return &table_; }

   private:
    static Call& of(const pfrt_tuning* table) { return *static_cast<Call*>(table->host); }
    KeyValues* memory();
    pfrt_code recall(pfrt_string key, pfrt_string* out);
    pfrt_code remember(pfrt_string key, pfrt_string value);
    uint64_t left_ns(uint64_t spent_ns);

    Tuning& tuning_;
    const std::string provider_, identity_;
    pfrt_tuning table_{};
    std::unique_ptr<KeyValues> memory_;
    bool asked_ = false;  // for |memory_|
    std::string recalled_;
    std::atomic<int64_t> own_ns_{kCallNs};  // left, where there is no budget
  };

 private:
  const Config config_;
  const MemoryOf memory_of_;
  std::atomic<int64_t> left_ns_;
};

}  // namespace pfrt

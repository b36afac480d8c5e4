// SPDX-License-Identifier: Apache-2.0
//
// Decides what a session's providers may measure when they make programs, and remembers the results
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
    bool measure = false;  // false: remembered results are used, and nothing is measured
    pfrt_tune_search search = PFRT_TUNE_RACE;
    uint32_t iterations = 0, repeats = 0;  // as in pfrt_tuning
    uint64_t budget_ns = 0;                // in all; 0 = kCallNs for each call
  };
  static constexpr uint64_t kCallNs = 3'000'000'000;
  // Opens the store of a provider's results, by its name and Provider::lasting_identity; null:
  // none.
  using MemoryOf = std::function<std::unique_ptr<KeyValues>(const std::string& provider,
                                                            const std::string& identity)>;

  Tuning(const Config& config, MemoryOf memory_of);
  Tuning(const Tuning&) = delete;
  Tuning& operator=(const Tuning&) = delete;

  bool measures() const { return config_.measure; }

  // The tuning of one call of a provider. Belongs to the call's thread.
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
    bool asked_ = false;  // whether |memory_| was asked for
    std::string recalled_;
    std::atomic<int64_t> own_ns_{kCallNs};  // time left, where there is no budget
  };

 private:
  const Config config_;
  const MemoryOf memory_of_;
  std::atomic<int64_t> left_ns_;
};

}  // namespace pfrt

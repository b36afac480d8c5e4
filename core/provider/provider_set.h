// SPDX-License-Identifier: Apache-2.0
//
// The providers a session was asked to use, and what became of them: which are open, which failed
// and why, which are out. Thread-safe; changes are made by one thread at a time (the session's
// recovery), states are read by any.
#pragma once

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/provider/provider.h"

namespace pfrt {

class Devices;

class ProviderSet {
 public:
  struct State {
    std::string_view name, reason;  // live as long as this
    pfrt_provider_condition condition = PFRT_PROVIDER_ACTIVE;
    Code code = Code::kOK;
    uint32_t failures = 0;
  };

  // |devices| and |logger| outlive this; |devices| shares handles between sessions.
  ProviderSet(std::vector<ProviderSource> sources, Devices& devices, Logger* logger);
  ProviderSet(const ProviderSet&) = delete;
  ProviderSet& operator=(const ProviderSet&) = delete;

  size_t size() const { return entries_.size(); }
  State state(size_t index) const;
  std::vector<Candidate> candidates() const;
  std::shared_ptr<Provider> provider(size_t index) const;  // null when it is not open
  static constexpr size_t kNobody = SIZE_MAX;
  size_t find(const Device* culprit) const;
  size_t find(std::string_view name) const;  // or a word for it

  // Opens the device, anew when it is open; a failure is noted where it is the provider's.
  Status open(size_t index, const Stop& stop);
  // Notes a failure: until `succeeded` or `exclude`, the provider is failing.
  void failed(size_t index, const Status& why);
  // Sets for how long a device that was opened again is not opened once more when it is lost again;
  // 0 = for ever. Set before anything is opened.
  void set_reopen_after(uint64_t ns) { reopen_after_ns_ = ns; }
  // Opens a lost device again; false when that was done lately, or fails.
  bool reopen(size_t index, const Stop& stop);
  // Opens the device of an excluded provider, which is in use again from then on.
  Status readmit(size_t index, const Stop& stop);
  // Takes the provider out of use.
  void exclude(size_t index);
  // Notes that failing providers have recovered.
  void succeeded();

  // The open providers, for restore to undo reopening and exclusion where no other can take over.
  std::vector<std::shared_ptr<Provider>> opened() const;
  void restore(const std::vector<std::shared_ptr<Provider>>& opened);

 private:
  struct Entry {
    ProviderSource source;
    std::shared_ptr<Provider> provider;
    State state;
    uint64_t reopened_ns = 0;  // when; 0 = not yet
  };
  std::string_view keep(const std::string& text);

  Devices& devices_;
  Logger* logger_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  std::set<std::string, std::less<>> texts_;  // reasons that were handed out
  std::atomic<bool> failing_{false};
  uint64_t reopen_after_ns_ = 0;
};

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
#include "core/provider/provider_set.h"

#include "core/base/os/cpu.h"
#include "core/base/provider_name.h"
#include "core/provider/devices.h"
#include "core/provider/fault.h"

namespace pfrt {

ProviderSet::ProviderSet(std::vector<ProviderSource> sources, Devices& devices, Logger* logger)
    : devices_(devices), logger_(logger) {
  entries_.resize(sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    entries_[i].source = std::move(sources[i]);
    entries_[i].state.name = entries_[i].source.name;
  }
}

ProviderSet::State ProviderSet::state(size_t index) const {
  std::lock_guard lock(mutex_);
  return entries_[index].state;
}

std::vector<Candidate> ProviderSet::candidates() const {
  std::lock_guard lock(mutex_);
  std::vector<Candidate> out;
  out.reserve(entries_.size());
  for (const Entry& e : entries_)
    out.push_back({e.source.name, e.provider, message("not used: ", std::string(e.state.reason))});
  return out;
}

std::shared_ptr<Provider> ProviderSet::provider(size_t index) const {
  std::lock_guard lock(mutex_);
  return entries_[index].provider;
}

size_t ProviderSet::find(const Device* culprit) const {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; culprit && i < entries_.size(); ++i)
    if (entries_[i].provider.get() == culprit) return i;
  return kNobody;
}

size_t ProviderSet::find(std::string_view name) const {
  const size_t at = find_provider(
      entries_, name, [](const Entry& e) -> auto& { return e.source.name; });
  return at == entries_.size() ? kNobody : at;
}

Status ProviderSet::open(size_t index, const Stop& stop) {
  Entry& e = entries_[index];
  auto opened = devices_.open(e.source, logger_, stop);
  if (!opened.ok()) {
    if (fault_of(opened.status().code()) != Fault::kNone) failed(index, opened.status());
    return opened.take_status();
  }
  std::lock_guard lock(mutex_);
  e.provider = opened.take();
  return {};
}

// Reasons live as long as the session, so a session that fails for ever keeps a limited number.
std::string_view ProviderSet::keep(const std::string& text) {
  constexpr size_t kMost = 64;
  if (const auto it = texts_.find(text); it != texts_.end()) return *it;
  if (texts_.size() >= kMost) return "it has failed in too many ways to keep them; see the log";
  return *texts_.insert(text).first;
}

void ProviderSet::failed(size_t index, const Status& why) {
  {
    std::lock_guard lock(mutex_);
    State& state = entries_[index].state;
    state.condition = PFRT_PROVIDER_FAILING;
    state.code = why.code();
    state.reason = keep(why.message());
    ++state.failures;
  }
  failing_.store(true);
  if (logger_)
    logger_->log(PFRT_LOG_WARNING, entries_[index].source.name, " failed: ", why.message());
}

bool ProviderSet::reopen(size_t index, const Stop& stop) {
  const uint64_t now = os::monotonic_ns();
  const uint64_t last = std::exchange(entries_[index].reopened_ns, now);
  if (last != 0 && (reopen_after_ns_ == 0 || now - last < reopen_after_ns_)) return false;
  devices_.give_up(provider(index).get());
  if (!open(index, stop).ok()) return false;
  if (logger_)
    logger_->log(PFRT_LOG_WARNING, entries_[index].source.name, ": its device was opened again");
  return true;
}

Status ProviderSet::readmit(size_t index, const Stop& stop) {
  Status status = open(index, stop);
  if (!status.ok()) {
    if (fault_of(status.code()) != Fault::kNone) exclude(index);
    return status;
  }
  entries_[index].reopened_ns = 0;
  {
    std::lock_guard lock(mutex_);
    entries_[index].state.condition = PFRT_PROVIDER_RECOVERED;
  }
  if (logger_) logger_->log(PFRT_LOG_INFO, entries_[index].source.name, " is in use again");
  return {};
}

void ProviderSet::exclude(size_t index) {
  std::shared_ptr<Provider> released;  // closed outside the lock, unless plans still use it
  {
    std::lock_guard lock(mutex_);
    entries_[index].state.condition = PFRT_PROVIDER_FAILED;
    released.swap(entries_[index].provider);
  }
  devices_.give_up(released.get());
  if (logger_)
    logger_->log(PFRT_LOG_WARNING, entries_[index].source.name,
                 " is set aside; its nodes go to the next provider");
}

void ProviderSet::succeeded() {
  if (!failing_.load()) return;
  std::lock_guard lock(mutex_);
  failing_.store(false);
  for (Entry& e : entries_)
    if (e.state.condition == PFRT_PROVIDER_FAILING) e.state.condition = PFRT_PROVIDER_RECOVERED;
}

std::vector<std::shared_ptr<Provider>> ProviderSet::opened() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Provider>> out;
  out.reserve(entries_.size());
  for (const Entry& e : entries_) out.push_back(e.provider);
  return out;
}

void ProviderSet::restore(const std::vector<std::shared_ptr<Provider>>& opened) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& e = entries_[i];
    std::shared_ptr<Provider> released = opened[i];
    {
      std::lock_guard lock(mutex_);
      if (e.provider == opened[i]) continue;
      e.provider.swap(released);
      e.state.condition = PFRT_PROVIDER_FAILING;
    }
    if (logger_)
      logger_->log(PFRT_LOG_WARNING, e.source.name, " stays in use: no other runs its nodes");
  }
}

}  // namespace pfrt

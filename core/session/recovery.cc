// SPDX-License-Identifier: Apache-2.0
//
// Recovers a session whose provider failed: finds the provider at fault, a remedy, and plans anew.
// Runs hold the plans they started with; a run that fails asks for new ones and starts again from
// its inputs. One thread at a time recovers a session; another that failed meanwhile takes its
// result.
#include <algorithm>
#include <utility>

#include "core/base/lock.h"
#include "core/batch/batch_parts.h"
#include "core/memory/global_pool.h"
#include "core/provider/fault.h"
#include "core/session/session.h"
#include "core/session/sessions.h"

namespace pfrt {

void Sessions::add(const std::shared_ptr<Session>& session) {
  std::lock_guard lock(mutex_);
  sessions_.emplace_back(session.get(), session);
}

void Sessions::forget(const Session* session) {
  std::unique_lock lock(mutex_);
  tended_changed_.wait(lock, [&] { return tended_ != session; });
  std::erase_if(sessions_, [&](const auto& s) { return s.first == session; });
}

uint64_t Sessions::tend(const std::function<uint64_t(Session& session)>& fn) {
  uint64_t sum = 0;
  std::unique_lock lock(mutex_);
  const auto all = sessions_;
  for (const auto& [session, weak] : all) {
    const bool there =
        std::ranges::any_of(sessions_, [&, s = session](const auto& e) { return e.first == s; });
    if (!there) continue;
    tended_ = session;
    lock.unlock();
    sum += fn(*session);
    lock.lock();
    tended_ = nullptr;
    tended_changed_.notify_all();
  }
  return sum;
}

uint64_t Sessions::release_memory() {
  std::vector<std::shared_ptr<Session>> all;  // some may be destroyed with this, outside the lock
  {
    std::lock_guard lock(mutex_);
    for (const auto& [raw, weak] : sessions_)
      if (auto session = weak.lock()) all.push_back(std::move(session));
  }
  uint64_t bytes = 0;
  for (const auto& session : all) bytes += session->release_memory();
  return bytes;
}

uint64_t Session::release_memory() {
  const std::shared_ptr<Plans> plans = current();
  if (!plans) return 0;
  const uint64_t bytes = trim();
  plans->main.graph->release_memory();
  plans->variants.clear();
  return bytes;
}

std::shared_ptr<Session::Plans> Session::current() const {
  std::lock_guard lock(mutex_);
  return plans_;
}

Progress progress_of(const RunControl& control) {
  Progress progress(control.cancelled, nullptr, nullptr);
  progress.set_deadline(control.deadline_ns);
  progress.set_profile(control.profile);
  return progress;
}

void Session::enter(pfrt_session_phase phase) {
  const pfrt_session_phase before = phase_.exchange(phase);
  // The creation of a session is logged elsewhere.
  if (before == PFRT_PHASE_INITIALIZING && phase == PFRT_PHASE_READY) return;
  if (before != phase && logger_->wants(PFRT_LOG_DEBUG))
    logger_->log(PFRT_LOG_DEBUG, "session of graph '", model_->signature().name,
                 "': ", phase_name(before), " to ", phase_name(phase));
}

// Makes another attempt worth while after |status|, or returns the error that is to be reported.
Status Session::prepare_retry(Status status, RecoveryAttempts& tried, const Progress& progress) {
  const Fault fault = fault_of(status.code());
  const size_t index = provider_set_->find(status.culprit());
  if (fault == Fault::kNone) return status;
  enter(fault == Fault::kMemory   ? PFRT_PHASE_MEMORY_ERROR
        : fault == Fault::kDevice ? PFRT_PHASE_DEVICE_ERROR
                                  : PFRT_PHASE_RUNTIME_ERROR);
  if (index != ProviderSet::kNobody) provider_set_->failed(index, status);
  if (!fallback_) return status;
  if (fault == Fault::kMemory) {
    if (std::exchange(tried.memory, true))
      return error(Code::kOUT_OF_MEMORY, status.message(),
                   "; caches and idle memory had been released before this second attempt");
    enter(PFRT_PHASE_MEMORY_RECOVERY);
    release_memory();
    if (all_) all_->release_memory();
    global_pool::trim();
    return {};
  }
  if (index == ProviderSet::kNobody) return status;
  if (fault == Fault::kDevice && std::ranges::find(tried.devices, index) == tried.devices.end()) {
    tried.devices.push_back(index);
    enter(PFRT_PHASE_DEVICE_RECOVERY);
    if (provider_set_->reopen(index, [&] { return progress.stop(); })) return {};
    PFRT_TRY(progress.stop());
  }
  enter(PFRT_PHASE_RECOVERING);
  provider_set_->exclude(index);
  return {};
}

Status Session::open_providers() {
  const Stop stop = [this] { return progress_.stop(); };
  for (size_t i = 0; i < provider_set_->size(); ++i) {
    for (RecoveryAttempts tried;;) {
      Status status = provider_set_->open(i, stop);
      if (status.ok()) break;
      const Fault fault = fault_of(status.code());
      if (fault == Fault::kNone || !fallback_) return status;
      if (fault == Fault::kMemory) {
        // The provider is not open yet and cannot be at fault: only memory can be helped.
        PFRT_TRY(prepare_retry(std::move(status), tried, progress_));
        continue;
      }
      if (fault != Fault::kDevice || !provider_set_->reopen(i, stop)) provider_set_->exclude(i);
      break;
    }
  }
  return {};
}

// The provider stays in use for other requests.
Status Session::leave_out(const std::shared_ptr<Plans>& plans, Status refusal, Variant& variant,
                          std::vector<Status>& refusals, const RunControl& control) const {
  const Device* const refuser = refusal.culprit();
  const bool is_candidate = std::ranges::any_of(
      plans->candidates, [&](const Candidate& c) { return c.provider.get() == refuser; });
  const auto at = std::ranges::lower_bound(variant.refused, refuser);
  // Nobody else has its operators, or it has been left out already.
  if (!refuser || !is_candidate || (at != variant.refused.end() && *at == refuser)) return refusal;
  variant.refused.insert(at, refuser);
  refusals.push_back(std::move(refusal));
  const bool new_to_it = plans->variants.find(variant) == nullptr;
  auto made = plan_for(plans, variant, refusals, control);
  const Status& why = refusals.back();
  if (!made.ok() && fault_of(made.status().code()) != Fault::kNone)
    return error(why.code(), why.message(),
                 "; planning the graph without it: ", made.status().message());
  if (made.ok() && new_to_it)
    logger_->log(PFRT_LOG_INFO, "requests that a provider refuses run without it: ", why.message());
  return made.take_status();
}

Status Session::leave_cache(const std::shared_ptr<Plans>& plans, const RunControl& control) {
  const Progress progress = progress_of(control);
  const auto lock = lock_unless(recovery_mutex_, [&] { return progress.stopped(); });
  PFRT_TRY(progress.stop());
  if (plans != current()) return {};
  logger_->log(PFRT_LOG_WARNING,
               "the session's entry of the cache was written to or cut short "
               "while it was in use; the session is made anew without it");
  PFRT_ASSIGN(auto made, plan_for_all(nullptr, progress));
  use(std::move(made));
  const std::lock_guard note(mutex_);
  cache_note_ = "made anew: its entry of the cache was lost";
  return {};
}

Status Session::recover(const std::shared_ptr<Plans>& plans, Status status, RecoveryAttempts& tried,
                        const RunControl& control) {
  const Progress progress = progress_of(control);
  const auto lock = lock_unless(recovery_mutex_, [&] { return progress.stopped(); });
  PFRT_TRY(progress.stop());
  const bool memory = fault_of(status.code()) == Fault::kMemory;
  // Another run has found the failure first.
  if (!memory && plans != current()) return {};
  const auto opened = provider_set_->opened();
  Status failure = status;
  PFRT_TRY(prepare_retry(std::move(status), tried, progress));
  if (memory) return {};
  // Another provider may refuse what passes made for this one.
  auto made = plan_for_all(nullptr, progress);
  if (!made.ok()) {
    provider_set_->restore(opened);
    PFRT_TRY(progress.stop());
    return error(failure.code(), failure.message(),
                 "; planning the graph again without it: ", made.status().message());
  }
  use(made.take());
  return {};
}

Status Session::run_in_parts(const std::vector<ValuePtr>& inputs,
                             const std::vector<OutputRequest>& requests, const RunControl& control,
                             std::vector<ValuePtr>& outputs, Status failure) try {
  const std::shared_ptr<Plans> plans = current();
  auto cut = BatchParts::of(plans->main.graph->graph(), plans->main.order, inputs, requests);
  if (cut.status().code() == Code::kNOT_FOUND) return failure;  // nobody expects it to be halved
  if (!cut.ok())
    return error(failure.code(), failure.message(),
                 "; its batch cannot be halved: ", cut.status().message());
  BatchParts parts = cut.take();
  const ProfileSpan span(control.profile, "run in parts");
  enter(PFRT_PHASE_MEMORY_RECOVERY);
  trim();
  PFRT_TRY(parts.allocate());
  int64_t most = 0;
  PFRT_TRY(parts.run(
      [&](const std::vector<ValuePtr>& in, const std::vector<OutputRequest>& out,
          std::vector<ValuePtr>& made) { return run_with_recovery(in, false, out, control, made); },
      inputs.size(), outputs_.size(), most));
  outputs = parts.outputs(outputs_.size());
  ++statistics_->in_parts;
  logger_->log(PFRT_LOG_INFO, "a run of ", parts.batch(), " rows was done in parts of at most ",
               most, ": ", failure.message());
  return {};
} catch (const std::bad_alloc&) {
  return failure;
}

void Session::use(std::shared_ptr<Plans> plans) {
  const std::lock_guard publish(mutex_);
  plans_.swap(plans);
}

Status Session::readmit(std::string_view name, const Progress& progress) {
  const Logger::Scope log(log_taker());
  const std::string doing = "taking '" + std::string(name) + "' into use again";
  Status stopped;
  const auto lock = lock_unless(recovery_mutex_, [&] { return !(stopped = progress.stop()).ok(); });
  if (lock.owns_lock()) stopped = progress.stop();
  if (!stopped.ok()) return std::move(stopped.prepend(doing));
  const size_t index = provider_set_->find(name);
  if (index == ProviderSet::kNobody)
    return error(Code::kNOT_FOUND, doing, ": the session was made for no provider of that name");
  if (provider_set_->provider(index)) return {};
  if (Status opened = provider_set_->readmit(index, [&] { return progress.stop(); }); !opened.ok())
    return std::move(opened.prepend(doing));
  auto made = plan(provider_set_->candidates(), nullptr, progress);
  if (!made.ok()) {
    if (fault_of(made.status().code()) != Fault::kNone) provider_set_->failed(index, made.status());
    provider_set_->exclude(index);
    return std::move(made.take_status().prepend(doing));
  }
  use(made.take());
  return {};
}

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
#include "core/flow/crew.h"

#include <new>
#include <utility>

#include "core/base/os/fork.h"
#include "core/session/runs.h"

namespace pfrt {
namespace {

thread_local const Crew* own_crew = nullptr;

ThreadSource source_of(const Session& session) {
  const auto own = session.runs().replacements();
  return own && own->thread_source.start ? own->thread_source : system_threads();
}

}  // namespace

Crew::Crew(uint32_t most, const Session& session)
    : generation_(os::forks()), pool_(source_of(session), most) {}
Crew::~Crew() = default;

bool Crew::is_here() const { return generation_ == os::forks(); }
bool Crew::has_caller() const { return own_crew == this; }

Result<uint32_t> Crew::start(std::string_view doing, uint32_t count,
                             std::function<void(uint32_t)> serve, std::function<void()> left) {
  {
    const std::lock_guard lock(mutex_);
    serve_ = std::move(serve);
    left_ = std::move(left);
    serving_ = count;
  }
  uint32_t started = 0;
  Status fault;
  try {
    for (; started < count; ++started) {
      auto seat = std::make_unique<Seat>(Seat{this, started});
      fault = pool_.submit(&Crew::serve, seat.get());
      if (!fault.ok()) break;
      static_cast<void>(seat.release());  // serve deletes it
    }
  } catch (const std::bad_alloc&) {
    fault = Status(Code::kOUT_OF_MEMORY, "no memory left");
  }
  if (started < count) {
    const std::lock_guard lock(mutex_);
    serving_ -= count - started;
    all_left_.notify_all();
  }
  if (started == 0) return error(Code::kBUSY, doing, ": ", fault.message());
  return started;
}

void Crew::serve(void* seat) {
  const std::unique_ptr<Seat> own(static_cast<Seat*>(seat));
  Crew& crew = *own->crew;
  own_crew = &crew;
  crew.serve_(own->index);
  std::shared_ptr<void> owner;
  std::unique_lock lock(crew.mutex_);
  if (crew.serving_ == 1 && crew.left_) {
    const std::function<void()> left = crew.left_;
    lock.unlock();
    left();
    lock.lock();
  }
  own_crew = nullptr;
  if (--crew.serving_ == 0) owner = std::move(crew.owner_);
  // Inside the lock: after unlocking, whoever waits may end the crew.
  crew.all_left_.notify_all();
}

void Crew::wait_until_left() {
  if (has_caller()) return;
  std::unique_lock lock(mutex_);
  all_left_.wait(lock, [&] { return serving_ == 0; });
}

void Crew::own(std::shared_ptr<void> owner) {
  const std::lock_guard lock(mutex_);
  owner_ = std::move(owner);
}

}  // namespace pfrt

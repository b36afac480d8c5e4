// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/measure/team.h"

#include <system_error>

#include "core/base/os/cpu.h"

namespace pfrt::cpu {

void Barrier::wait() {
  const uint32_t turn = passed_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == width_) {
    arrived_.store(0, std::memory_order_relaxed);
    passed_.store(turn + 1, std::memory_order_release);
    return;
  }
  constexpr int kLooks = 4096;  // then others may need the processor
  for (int looks = 0; passed_.load(std::memory_order_acquire) == turn; ++looks) {
    if (looks < kLooks) {
      __builtin_ia32_pause();
    } else {
      std::this_thread::yield();
    }
  }
}

Result<std::unique_ptr<Team>> Team::make(std::span<const uint32_t> processors) {
  std::unique_ptr<Team> team(new Team);
  team->threads_.reserve(processors.size());
  try {
    for (uint32_t i = 0; i < processors.size(); ++i)
      team->threads_.emplace_back(
          [team = team.get(), i, processor = processors[i]] { team->work(i, processor); });
  } catch (const std::system_error& e) {
    return error(Code::kPROVIDER, "starting thread ", team->threads_.size(), " of ",
                 processors.size(), " that measure: ", e.what(), "; ask for fewer threads");
  }
  return team;
}

Team::~Team() {
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  begins_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Team::run(uint32_t width, const std::function<void(uint32_t)>& body) {
  std::unique_lock lock(mutex_);
  body_ = &body;
  width_ = busy_ = width;
  ++task_;
  begins_.notify_all();
  ends_.wait(lock, [&] { return busy_ == 0; });
}

void Team::work(uint32_t index, uint32_t processor) {
  if (!os::pin_thread(processor)) pinned_ = false;
  std::unique_lock lock(mutex_);
  for (uint64_t done = 0;;) {
    begins_.wait(lock, [&] { return over_ || task_ != done; });
    if (over_) return;
    done = task_;
    if (index >= width_) continue;
    const auto& body = *body_;
    lock.unlock();
    body(index);
    lock.lock();
    if (--busy_ == 0) ends_.notify_one();
  }
}

}  // namespace pfrt::cpu

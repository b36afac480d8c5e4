// SPDX-License-Identifier: Apache-2.0
#include "core/exec/run/pool.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/immortal.h"
#include "core/base/os/cpu.h"
#include "core/base/os/cpu_control.h"
#include "core/base/os/fork.h"

namespace pfrt {
namespace {

// Time until threads are asked for again when the system, or a client's hook, had none to give.
// Loops go on with those there are.
constexpr uint64_t kRetryNs = 1'000'000'000;
// Time for which a thread looks for the next loop before it sleeps, during a run and otherwise: the
// next loop often comes within microseconds, and waking a thread costs as much.
constexpr uint64_t kLookInRunNs = 50'000, kLookNs = 3'000;
std::atomic<uint32_t> runs_under_way{0};
// The threads that these runs may use, and the processors that there were for them when that was
// last asked.
std::atomic<uint32_t> threads_in_runs{0}, processors{0};
std::atomic<uint64_t> ask_processors_at_ns{0};
constexpr uint64_t kAskProcessorsNs = 100'000'000;

void ask_processors() {
  const uint64_t now = os::recent_ns();
  if (now < ask_processors_at_ns.load(std::memory_order_relaxed)) return;
  ask_processors_at_ns.store(now + kAskProcessorsNs, std::memory_order_relaxed);
  processors.store(os::allowed_processor_count(), std::memory_order_relaxed);
}

// A thread that waits gives its processor away only where the awaited one may need it. Otherwise a
// program of less weight would get it, for all of its slice.
bool shares_processors() {
  return threads_in_runs.load(std::memory_order_relaxed) >
         processors.load(std::memory_order_relaxed);
}

template <typename Condition>
bool comes_soon(uint64_t ns, Condition condition) {
  const uint64_t until = os::monotonic_ns() + ns;
  do {
    for (int i = 0; i < 32; ++i) {
      if (condition()) return true;
      os::relax();
    }
    if (shares_processors()) std::this_thread::yield();
  } while (os::monotonic_ns() < until);
  return false;
}

// Locks a mutex that is held for less time than it takes to sleep and wake.
std::unique_lock<std::mutex> lock_soon(std::mutex& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  for (int i = 0; i < 200 && !lock.owns_lock(); ++i) {
    os::relax();
    if (lock.try_lock()) break;
  }
  if (!lock.owns_lock()) lock.lock();
  return lock;
}

// A thread's end, seen by other threads.
using Over = std::shared_ptr<std::atomic<bool>>;
thread_local const std::atomic<bool>* own_end = nullptr;

// Threads that ended their own pool, where nobody could join them.
struct Leaver {
  ThreadSource source;
  void* thread;
  Over over;
};
struct Leavers {
  std::mutex mutex;
  std::vector<Leaver> all;
};
Leavers& leavers() {
  static Immortal<Leavers> all;
  return all.get();
}
// Tasks that wait or run, in all pools. Threads that a task ends are listed before the task is
// over.
std::atomic<uint32_t> tasks_under_way{0};

}  // namespace

ThreadSource system_threads() {
  return {[](void (*main)(void*), void* arg, void** thread) {
            try {
              *thread = new std::thread(main, arg);
              return true;
            } catch (const std::exception&) {  // none left, or no memory for it
              return false;
            }
          },
          [](void* thread) {
            auto* const made = static_cast<std::thread*>(thread);
            made->join();
            delete made;
          }};
}

// Lives on its caller's stack. |next| and |inside| may be read by any thread; the rest is guarded
// by the pool's mutex.
struct Pool::Loop {
  const LoopBody body;
  void* const arg;
  const uint64_t n;
  const uint32_t width;
  const os::FpControl control = os::fp_control();  // with the caller's rounding mode
  uint32_t seats = 1;
  Loop* outer = nullptr;  // the open loop posted before this one
  std::atomic<uint64_t> next{0};
  std::atomic<uint32_t> inside{0};  // threads beside the caller

  bool open() const { return seats < width && next.load(std::memory_order_relaxed) < n; }
  void work(uint32_t worker) {
    for (uint64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) body(arg, i, worker);
  }
};

class Pool::State {
 public:
  State(ThreadSource source, uint32_t most_tasks)
      : source_(std::move(source)), most_tasks_(most_tasks) {}
  uint32_t most_tasks() const { return most_tasks_; }
  const ThreadSource& source() const { return source_; }
  uint32_t generation() const { return generation_; }

  void run(Loop& loop) {
    bool wake = false;
    {
      auto lock = lock_soon(mutex_);
      helpers_ = std::max(helpers_, loop.width - 1);
      if (made_ < helpers_) grow(lock, 0);
      loop.outer = std::exchange(newest_, &loop);
      posted_.fetch_add(1, std::memory_order_relaxed);
      wake = sleeping_ > 0;
    }
    if (wake) work_.notify_one();  // each thread wakes the next
    loop.work(0);
    {
      const auto lock = lock_soon(mutex_);
      Loop** at = &newest_;
      while (*at != &loop) at = &(*at)->outer;
      *at = loop.outer;
    }
    const auto alone = [&] { return loop.inside.load(std::memory_order_acquire) == 0; };
    if (comes_soon(kLookInRunNs, alone)) return;
    std::unique_lock lock(mutex_);
    done_.wait(lock, alone);
  }

  Status add(Task task, void* arg) {
    std::unique_lock lock(mutex_);
    if (!grow(lock, 1))
      return error(Code::kOUT_OF_MEMORY,
                   "starting a thread for asynchronous work: the system has none to give");
    tasks_.emplace_back(task, arg);
    tasks_under_way.fetch_add(1);
    posted_.fetch_add(1, std::memory_order_relaxed);
    work_.notify_one();  // inside the lock: after unlocking the task may end the pool
    return {};
  }

  // Afterwards |this| is gone, or goes when the calling thread ends.
  void end() {
    std::vector<Worker> all;
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      all.swap(workers_);
      for (const Worker& w : all)
        if (w.over.get() == own_end) leaver_ = own_end;
    }
    work_.notify_all();
    const bool by_own = leaver_ != nullptr;
    for (const Worker& w : all) {
      if (w.over.get() != own_end) {
        source_.join(w.thread);
        continue;
      }
      std::lock_guard lock(leavers().mutex);
      leavers().all.push_back({source_, w.thread, w.over});
    }
    if (!by_own) delete this;
  }

 private:
  struct Worker {
    void* thread;
    Over over;
  };
  struct Start {
    State* state;
    Over over;
  };

  // Makes missing threads where the system gives them; false when there is none for tasks at all.
  bool grow(std::unique_lock<std::mutex>& lock, uint32_t new_tasks) {
    const auto waiting = static_cast<uint32_t>(std::min<size_t>(tasks_.size(), most_tasks_));
    const uint32_t tasks = std::min(most_tasks_, at_tasks_ + waiting + new_tasks);
    const bool needs_one = new_tasks > 0 && made_ == 0;
    if (made_ < helpers_ + tasks && (needs_one || os::monotonic_ns() >= retry_at_ns_))
      while (made_ < helpers_ + tasks)
        if (!start_one(lock)) {
          retry_at_ns_ = os::monotonic_ns() + kRetryNs;
          break;
        }
    // Another caller may be about to get the first thread.
    if (new_tasks > 0) started_.wait(lock, [&] { return !workers_.empty() || starting_ == 0; });
    return !workers_.empty();
  }

  bool start_one(std::unique_lock<std::mutex>& lock) {
    std::unique_ptr<Start> start;
    try {
      start = std::make_unique<Start>(Start{this, std::make_shared<std::atomic<bool>>(false)});
      workers_.reserve(made_ + 1);
    } catch (const std::bad_alloc&) {
      return false;
    }
    ++made_;
    ++starting_;
    lock.unlock();  // a client's function may wait until the thread is there
    Worker worker{nullptr, start->over};
    const bool started = source_.start(&State::main, start.get(), &worker.thread);
    if (started) static_cast<void>(start.release());  // the thread deletes it
    lock.lock();
    --starting_;
    if (started)
      workers_.push_back(std::move(worker));
    else
      --made_;
    started_.notify_all();
    return started;
  }

  static void main(void* arg) {
    const std::unique_ptr<Start> start(static_cast<Start*>(arg));
    own_end = start->over.get();
    if (start->state->serve()) delete start->state;
    start->over->store(true, std::memory_order_release);
  }

  // True on the thread that ended the pool, after which no other thread uses the state.
  bool serve() {
    std::unique_lock lock(mutex_);
    for (bool warm = false;;) {
      Loop* open = newest_;  // inner loops first
      while (open != nullptr && !open->open()) open = open->outer;
      if (open != nullptr) {
        Loop& loop = *open;
        const uint32_t seat = loop.seats++;
        loop.inside.fetch_add(1, std::memory_order_relaxed);
        const bool wake = loop.open() && sleeping_ > 0;
        lock.unlock();
        if (wake) work_.notify_one();
        const os::FpControl own = os::fp_control();
        if (own != loop.control) os::set_fp_control(loop.control);
        loop.work(seat);
        if (own != loop.control) os::set_fp_control(own);
        lock = lock_soon(mutex_);
        if (loop.inside.fetch_sub(1, std::memory_order_release) == 1) done_.notify_all();
        warm = true;
        continue;
      }
      if (!tasks_.empty() && at_tasks_ < most_tasks_) {
        const auto [task, arg] = tasks_.front();
        tasks_.pop_front();
        ++at_tasks_;
        lock.unlock();
        task(arg);
        tasks_under_way.fetch_sub(1);
        lock.lock();
        --at_tasks_;
        continue;
      }
      if (stopping_) return leaver_ == own_end;
      if (std::exchange(warm, false)) {
        wait_a_little(lock);
        continue;
      }
      ++sleeping_;
      work_.wait(lock);
      warm = true;  // the loop that woke it may be over, with more to follow
      --sleeping_;
    }
  }

  // Waits until something is posted.
  void wait_a_little(std::unique_lock<std::mutex>& lock) {
    const uint64_t seen = posted_.load(std::memory_order_relaxed);
    const bool in_run = runs_under_way.load(std::memory_order_relaxed) > 0;
    lock.unlock();
    comes_soon(in_run ? kLookInRunNs : kLookNs, [&] {
      return posted_.load(std::memory_order_relaxed) != seen ||
             (in_run && runs_under_way.load(std::memory_order_relaxed) == 0);
    });
    lock = lock_soon(mutex_);
  }

  const ThreadSource source_;
  const uint32_t most_tasks_;
  const uint32_t generation_ = os::forks();
  std::mutex mutex_;
  std::condition_variable work_, done_;
  Loop* newest_ = nullptr;
  std::deque<std::pair<Task, void*>> tasks_;
  std::vector<Worker> workers_;
  std::atomic<uint64_t> posted_{0};
  std::condition_variable started_;
  uint32_t starting_ = 0;  // threads being made, which are not in |workers_| yet
  uint32_t made_ = 0, helpers_ = 0, at_tasks_ = 0, sleeping_ = 0;
  uint64_t retry_at_ns_ = 0;
  bool stopping_ = false;
  const std::atomic<bool>* leaver_ = nullptr;
};

LoopsAhead::LoopsAhead(uint32_t width) : width_(width) {
  ask_processors();
  threads_in_runs.fetch_add(width_, std::memory_order_relaxed);
  runs_under_way.fetch_add(1, std::memory_order_relaxed);
}
LoopsAhead::~LoopsAhead() {
  runs_under_way.fetch_sub(1, std::memory_order_relaxed);
  threads_in_runs.fetch_sub(width_, std::memory_order_relaxed);
}

Pool::Pool(ThreadSource source, uint32_t most_tasks)
    : state_(new State(std::move(source), most_tasks)) {}

Pool::~Pool() {
  State* const state = state_.load(std::memory_order_acquire);
  if (state->generation() == os::forks()) state->end();
}

// A forked child has none of its parent's threads and may find the lock held for ever: it leaves
// that state alone.
Pool::State& Pool::state() {
  State* state = state_.load(std::memory_order_acquire);
  if (state->generation() == os::forks()) return *state;
  auto* const fresh = new State(state->source(), state->most_tasks());
  if (state_.compare_exchange_strong(state, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *state;
}

bool Pool::loop(uint32_t width, uint64_t n, LoopBody body, void* arg) {
  width = static_cast<uint32_t>(std::min<uint64_t>(width, n));
  Loop loop{body, arg, n, std::max(width, 1u)};
  if (width <= 1) {
    loop.work(0);
    return true;
  }
  State* shared = nullptr;
  try {
    shared = &state();
  } catch (const std::bad_alloc&) {  // in a forked child
    loop.work(0);
    return true;
  }
  shared->run(loop);
  return true;
}

Status Pool::submit(Task task, void* arg) { return state().add(task, arg); }

// The parent's threads do not exist here, and one may have held the lock.
void forget_leavers() {
  new (&leavers()) Leavers;
  tasks_under_way.store(0);
}

void join_leavers(int ms) {
  std::vector<Leaver> ready;
  const auto collect = [&] {
    std::lock_guard lock(leavers().mutex);
    auto& all = leavers().all;
    const auto over = std::partition(all.begin(), all.end(), [](const Leaver& l) {
      return !l.over->load(std::memory_order_acquire);
    });
    ready.insert(ready.end(), std::make_move_iterator(over), std::make_move_iterator(all.end()));
    all.erase(over, all.end());
    if (all.empty()) all.shrink_to_fit();
    return all.empty();
  };
  const auto quiet = [&] {
    const bool idle = tasks_under_way.load() == 0;
    return collect() && idle;
  };
  for (; !quiet() && ms > 0; --ms) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (const Leaver& l : ready) l.source.join(l.thread);
}

}  // namespace pfrt

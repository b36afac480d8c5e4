// SPDX-License-Identifier: Apache-2.0
//
// Tests of plug-ins that are executors: loops of several sizes, inside each other and from several
// threads at once, and tasks where it takes them.
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "cxxapi/cli/check_plugin/host_sink.h"
#include "cxxapi/cli/check_plugin/kinds.h"

namespace cli::check {
namespace {

// The calls of one loop, counted.
class Calls {
 public:
  Calls(uint64_t n, uint32_t workers) : made_(n), busy_(workers), workers_(workers) {}

  static void call(void* self, uint64_t i, uint32_t worker) {
    static_cast<Calls*>(self)->count(i, worker);
  }
  // The fault that was seen, or empty; for whoever has seen the loop return.
  std::string fault() const {
    if (wrong_) return "it called fn with an index or a worker that is out of range";
    if (twice_) return "it made two calls at once on one worker";
    if (inside_ != 0) return "it returned before its calls had";
    for (size_t i = 0; i < made_.size(); ++i)
      if (made_[i] != 1)
        return "call " + std::to_string(i) + " of " + std::to_string(made_.size()) + " was made " +
               std::to_string(made_[i]) + " times";
    return {};
  }

 private:
  void count(uint64_t i, uint32_t worker) {
    if (i >= made_.size() || worker >= workers_) {
      wrong_ = true;
      return;
    }
    ++inside_;
    if (busy_[worker].exchange(true)) twice_ = true;
    for (int look = 0; look < 200; ++look) static_cast<void>(inside_.load());  // so that calls meet
    busy_[worker] = false;
    ++made_[i];
    --inside_;
  }

  std::vector<std::atomic<uint32_t>> made_;
  std::vector<std::atomic<bool>> busy_;
  const uint32_t workers_;
  std::atomic<uint32_t> inside_{0};
  std::atomic<bool> wrong_{false}, twice_{false};
};

std::string loop_fault(const pfrt_executor& executor, uint32_t workers, uint64_t n) {
  Calls calls(n, workers);
  executor.loop(executor.user, workers, n, &Calls::call, &calls);
  return calls.fault();
}

struct Nest {
  const pfrt_executor* executor;
  std::atomic<int> faults{0};
};

std::string nested_fault(const pfrt_executor& executor) {
  Nest nest{&executor};
  executor.loop(
      executor.user, 4, 8,
      [](void* arg, uint64_t, uint32_t) {
        auto& all = *static_cast<Nest*>(arg);
        if (!loop_fault(*all.executor, 4, 16).empty()) ++all.faults;
      },
      &nest);
  return nest.faults == 0 ? "" : "loops inside of loops were not complete";
}

std::string fault_at_once(const pfrt_executor& executor) {
  constexpr int kThreads = 4;
  std::vector<std::string> faults(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (std::string& fault : faults)
    threads.emplace_back([&] {
      for (int round = 0; round < 20 && fault.empty(); ++round) fault = loop_fault(executor, 3, 40);
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& fault : faults)
    if (!fault.empty()) return fault + ", of loops on several threads at once";
  return {};
}

// A task is called once, later, on another thread.
std::string task_fault(const pfrt_executor& executor) {
  struct Task {
    std::atomic<int> calls{0};
    std::thread::id thread;
  };
  const auto task = std::make_shared<Task>();
  auto* const kept = new std::shared_ptr<Task>(task);  // of a call that may never come
  const pfrt_code code = executor.submit(
      executor.user,
      [](void* arg) {
        const auto& own = *static_cast<std::shared_ptr<Task>*>(arg);
        own->thread = std::this_thread::get_id();
        ++own->calls;
      },
      kept);
  if (code != PFRT_CODE_OK) return {};  // it may refuse
  for (int ms = 0; ms < 5000 && task->calls == 0; ++ms)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (task->calls != 1) return "a task that submit took was not called within 5 s";
  delete kept;
  return task->thread == std::this_thread::get_id() ? "submit called the task itself" : "";
}

void check_executor(Trial& trial, const std::string& path) {
  const ProcessState before;
  PluginFile file(trial, path);
  const auto* table = static_cast<const pfrt_executor_table*>(file.describe(trial).table);
  // Twice by this host, since each environment makes one; then by a newer one.
  for (const Age age : {Age::kNow, Age::kNow, Age::kNewer}) {
    const HostSink sink(age);
    Guarded memory(size_at<pfrt_executor>(age), "the executor", kHostStruct,
                   alignof(pfrt_executor));
    std::memset(memory.data(), 0, memory.size());
    auto& made = *reinterpret_cast<pfrt_executor*>(memory.data());
    made.struct_size = static_cast<uint32_t>(memory.size());
    const pfrt_code code = call(trial, "executor", "an executor was made",
                                [&] { return table->create(sink.get(), &made); });
    if (code != PFRT_CODE_OK) {
      trial.expect(!made.loop && !sink.text().empty(), "refusal",
                   "create refused with " + sink.reason(code));
      trial.skip("it makes no executor here (" + sink.reason(code) + ")");
      break;
    }
    if (!trial.expect(made.loop != nullptr, "required-function", "its executor has no loop")) break;
    const auto expect = [&](const std::string& fault) {
      trial.expect(fault.empty(), "executor", fault);
    };
    for (const uint32_t workers : {1u, 2u, 3u, 8u})
      for (const uint64_t n : {0u, 1u, 2u, 7u, 300u})
        expect(call(trial, "executor",
                    "a loop of " + std::to_string(n) + " calls was executed on " +
                        std::to_string(workers) + " workers",
                    [&] { return loop_fault(made, workers, n); }));
    expect(call(trial, "executor", "loops inside of loops were executed",
                [&] { return nested_fault(made); }));
    expect(call(trial, "executor", "several threads had loops executed",
                [&] { return fault_at_once(made); }));
    if (made.submit)
      expect(call(trial, "executor", "a task was submitted", [&] { return task_fault(made); }));
    if (made.release)
      call(trial, "executor", "the executor was released", [&] { made.release(made.user); });
  }
  const std::string changed = before.changed();
  trial.expect(changed.empty(), "process-state", changed + " is not what it was");
  file.close(trial);
  trial.keep("struct-size-host");
  trial.keep("unload");
  trial.keep("throws");
}

}  // namespace

std::vector<NamedTrial> executor_trials(const PluginFacts& facts) {
  const std::string path = facts.path;
  return {{"loops and tasks", [path](Trial& t) { check_executor(t, path); }}};
}

}  // namespace cli::check

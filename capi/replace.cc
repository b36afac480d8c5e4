// SPDX-License-Identifier: Apache-2.0
//
// Replacement of the library's own memory and threads by a client's or a plug-in's.
#include <array>
#include <atomic>
#include <memory>
#include <new>

#include "capi/handle/env.h"
#include "capi/handle/guard.h"
#include "capi/handle/plugin_scope.h"
#include "capi/handle/slots.h"
#include "capi/plugin/plugins.h"
#include "core/base/foreign.h"
#include "core/base/os/cpu_control.h"
#include "core/base/os/fork.h"
#include "core/exec/run/pool.h"
#include "core/exec/run/threads.h"
#include "core/provider/sink.h"

namespace pfrt::capi {
namespace {

class ClientAllocator final : public Allocator {
 public:
  explicit ClientAllocator(std::shared_ptr<const pfrt_allocator> client)
      : client_(std::move(client)) {}
  void* allocate(uint64_t bytes, uint64_t alignment) override {
    void* data = nullptr;
    call_foreign([&] { data = client_->allocate(client_->user, bytes, alignment); });
    if (data && reinterpret_cast<uintptr_t>(data) % alignment != 0) {
      free(data, bytes);
      return nullptr;
    }
    return data;
  }
  void free(void* data, uint64_t bytes) override {
    call_foreign([&] { client_->free(client_->user, data, bytes); });
  }

 private:
  std::shared_ptr<const pfrt_allocator> client_;
};

class ClientExecutor final : public Executor {
 public:
  explicit ClientExecutor(std::shared_ptr<const pfrt_executor> client)
      : client_(std::move(client)) {}
  uint32_t width() const override { return std::min(client_->width, 1024u); }

  bool loop(uint32_t workers, uint64_t n, LoopBody body, void* arg) override {
    if (workers <= 1 || n <= 1) {
      for (uint64_t i = 0; i < n; ++i) body(arg, i, 0);
      return true;
    }
    std::array<std::atomic<uint64_t>, 64> few{};
    const auto words = static_cast<size_t>((n + 63) / 64);
    std::unique_ptr<std::atomic<uint64_t>[]> many;
    if (words > few.size()) many.reset(new (std::nothrow) std::atomic<uint64_t>[words]());
    if (words > few.size() && !many) {  // no memory to check the client's threads: use this one
      for (uint64_t i = 0; i < n; ++i) body(arg, i, 0);
      return true;
    }
    Checked checked{body, arg, workers, n, many ? many.get() : few.data(), os::fp_control(),
                    {},   {}};
    const bool returned =
        call_foreign([&] { client_->loop(client_->user, workers, n, &Checked::call, &checked); });
    return returned && checked.called.load() == n && !checked.wrong.load();
  }

  Status submit(Task task, void* arg) override {
    if (!client_->submit)
      return error(Code::kUNSUPPORTED,
                   "asynchronous work: the environment's executor has no submit function");
    pfrt_code code = PFRT_CODE_PROVIDER;
    call_foreign([&] { code = client_->submit(client_->user, task, arg); });
    if (code != PFRT_CODE_OK)
      return error(Code::kPROVIDER, "asynchronous work: the environment's executor refused it: ",
                   code_text(static_cast<Code>(code)));
    return {};
  }

 private:
  struct Checked {
    LoopBody body;
    void* arg;
    uint32_t workers;
    uint64_t n;
    std::atomic<uint64_t>* given;  // a bit for each index
    const os::FpControl control;   // of the run, which is not that of the client's threads
    std::atomic<uint64_t> called;
    std::atomic<bool> wrong;
    // Whether |i| is an index that was not given before.
    bool is_new(uint64_t i) const {
      if (i >= n) return false;
      const uint64_t bit = uint64_t{1} << i % 64;
      return (given[i / 64].fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
    }
    static void call(void* self, uint64_t i, uint32_t worker) {
      Checked& c = *static_cast<Checked*>(self);
      if (worker < c.workers && c.is_new(i)) {
        const os::FpControl own = os::fp_control();
        if (own != c.control) os::set_fp_control(c.control);
        c.body(c.arg, i, worker);
        if (own != c.control) os::set_fp_control(own);
        c.called.fetch_add(1);
      } else {
        c.wrong.store(true);
      }
    }
  };
  std::shared_ptr<const pfrt_executor> client_;
};

// The number of forks between this process and the first that had an executor of a plug-in.
uint32_t forks_of_first_plugin_executor() {
  static const uint32_t forks = os::forks();
  return forks;
}

// A forked child has none of the threads that a plug-in started, and finds its locks as they were:
// there the library's own threads do the work.
class PluginExecutor final : public Executor {
 public:
  PluginExecutor(std::shared_ptr<const Plugin> plugin, std::shared_ptr<const pfrt_executor> made)
      : plugin_(std::move(plugin)), takes_tasks_(made->submit), own_(std::move(made)) {}
  uint32_t width() const override { return own_.width(); }

  bool loop(uint32_t workers, uint64_t n, LoopBody body, void* arg) override {
    if (!in_child()) return own_.loop(workers, n, body, arg);
    parallel_for(workers, n, body, arg);
    return true;
  }
  Status submit(Task task, void* arg) override {
    return takes_tasks_ && !in_child() ? own_.submit(task, arg) : pfrt::submit(task, arg);
  }

 private:
  bool in_child() const { return os::forks() != forks_; }

  const std::shared_ptr<const Plugin> plugin_;  // goes last
  const uint32_t forks_ = forks_of_first_plugin_executor();
  const bool takes_tasks_;
  ClientExecutor own_;
};

ThreadSource source_of(const std::shared_ptr<const pfrt_thread_hooks>& hooks) {
  return {[hooks](void (*main)(void*), void* arg, void** thread) {
            pfrt_code code = PFRT_CODE_PROVIDER;
            call_foreign([&] { code = hooks->create(hooks->user, main, arg, thread); });
            return code == PFRT_CODE_OK;
          },
          [hooks](void* thread) { call_foreign([&] { hooks->join(hooks->user, thread); }); }};
}

Status missing(const char* what) {
  return error(Code::kINVALID_ARGUMENT, "setting ", what, ": a function of the struct is NULL");
}

}  // namespace

Result<AllocatorPtr> allocator_of(const pfrt_allocator* allocator) {
  PFRT_ASSIGN(const auto client, taken(allocator));
  if (!client) return AllocatorPtr();
  if (!client->allocate || !client->free) return missing("an allocator");
  return AllocatorPtr(std::make_shared<ClientAllocator>(client));
}

pfrt_status* set_allocator(pfrt_env* env, const pfrt_allocator* allocator) {
  return guard([&]() -> Status {
    PFRT_ASSIGN(AllocatorPtr made, allocator_of(allocator));
    if (!env) return null_argument("env");
    env->state->replace([&](Replacements& own) { own.allocator = std::move(made); });
    return {};
  });
}

Result<std::shared_ptr<Executor>> plugin_executor(LoadedPlugins& plugins, std::string_view word,
                                                  Logger& logger) {
  PFRT_ASSIGN(auto plugin, plugins.executor(word));
  Sink sink(&logger);
  pfrt_executor made{};
  made.struct_size = sizeof made;
  const pfrt_code code = sink.call([&] { return plugin->executor()->create(sink.get(), &made); },
                                   PFRT_CODE_PLUGIN, "plug-in");
  const std::string doing = message("opening executor '", word, "' of '", plugin->path, "'");
  PFRT_TRY(sink.status(code, doing));
  made.struct_size = sizeof made;
  PFRT_ASSIGN(const std::shared_ptr<const pfrt_executor> client, taken(&made));
  if (!client->loop) return error(Code::kPLUGIN, doing, ": it gave no function 'loop'");
  logger.log(PFRT_LOG_INFO, "loops of runs are executed by ", plugin->name, " ", plugin->version,
             ", '", plugin->path, "'");
  return std::shared_ptr<Executor>(std::make_shared<PluginExecutor>(std::move(plugin), client));
}

pfrt_status* set_executor(pfrt_env* env, const pfrt_executor* executor) {
  return guard([&]() -> Status {
    PFRT_ASSIGN(const auto client, taken(executor));
    if (!env) return null_argument("env");
    if (client && !client->loop) return missing("an executor");
    std::shared_ptr<Executor> made = env->executor;
    if (client) made = std::make_shared<ClientExecutor>(client);
    env->state->replace([&](Replacements& own) { own.executor = std::move(made); });
    return {};
  });
}

pfrt_status* set_thread_hooks(pfrt_env* env, const pfrt_thread_hooks* given) {
  return guard([&]() -> Status {
    PFRT_ASSIGN(const auto client, taken(given));
    if (!env) return null_argument("env");
    if (client && (!client->create || !client->join)) return missing("thread hooks");
    ThreadSource source = client ? source_of(client) : ThreadSource();
    std::shared_ptr<Executor> made = client ? std::make_shared<Pool>(source) : nullptr;
    env->state->replace([&](Replacements& own) {
      own.pool = std::move(made);
      own.thread_source = std::move(source);
    });
    return {};
  });
}

}  // namespace pfrt::capi

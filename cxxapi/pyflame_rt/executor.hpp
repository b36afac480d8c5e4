// SPDX-License-Identifier: Apache-2.0
//
// A client's own threads in place of the library's. Derived classes are called from any thread,
// several at once, and may throw only where a comment says so.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <pyflame_rt/env.hpp>
#include <utility>

namespace pyflame_rt {

// Threads that runs share.
class IExecutor {
 public:
  // Call |i| of a loop, on one of its workers.
  using Body = std::function<void(uint64_t i, uint32_t worker)>;
  // Work that is done once.
  using Task = std::function<void()>;

  virtual ~IExecutor() = default;
  // Number of threads, for runs that do not set theirs; 0 = as many as the processor's affinity and
  // quota allow.
  virtual uint32_t width() const { return 0; }
  // Calls body(i, worker) for every i < n, on this thread or others, and returns when all calls
  // have. |worker| is below |workers|, and calls that overlap in time have different ones. It is
  // also called inside of such a call. The run fails with ProviderError where calls are missing, a
  // worker is out of range, or this throws.
  virtual void loop(uint32_t workers, uint64_t n, const Body& body) = 0;
  // Has |task| called once, later, on another thread. Returning false, or throwing, refuses it: the
  // asynchronous run fails. By default all are refused.
  virtual bool submit(Task task) {  // NOLINT(performance-unnecessary-value-param): others keep it
    (void)task;
    return false;
  }
};

// Functions that start and end the threads of an environment's own pool.
class IThreadHooks {
 public:
  virtual ~IThreadHooks() = default;
  // Starts a thread that calls main() once, and returns a handle for join. When it throws there is
  // no thread, and runs go on with fewer.
  virtual void* create(std::function<void()> main) = 0;
  // Waits until |thread| has returned from its main; called once for every thread.
  virtual void join(void* thread) = 0;
};

namespace detail {

inline pfrt_executor c_executor(std::shared_ptr<IExecutor> executor) {
  using Kept = std::shared_ptr<IExecutor>;
  pfrt_executor c{};
  c.struct_size = sizeof(c);
  c.width = executor->width();
  c.user = new Kept(std::move(executor));
  c.loop = [](void* user, uint32_t workers, uint64_t n,
              void (*fn)(void* arg, uint64_t i, uint32_t worker), void* arg) {
    try {
      (*static_cast<Kept*>(user))->loop(workers, n, [fn, arg](uint64_t i, uint32_t worker) {
        fn(arg, i, worker);
      });
    } catch (...) {  // nothing may unwind through the C library, which finds that calls are missing
    }
  };
  c.submit = [](void* user, void (*fn)(void* arg), void* arg) -> pfrt_code {
    try {
      if ((*static_cast<Kept*>(user))->submit([fn, arg] { fn(arg); })) return PFRT_CODE_OK;
      return PFRT_CODE_BUSY;
    } catch (...) {
      return PFRT_CODE_INTERNAL;
    }
  };
  c.release = [](void* user) { delete static_cast<Kept*>(user); };
  return c;
}

inline pfrt_thread_hooks c_thread_hooks(std::shared_ptr<IThreadHooks> hooks) {
  using Kept = std::shared_ptr<IThreadHooks>;
  pfrt_thread_hooks c{};
  c.struct_size = sizeof(c);
  c.user = new Kept(std::move(hooks));
  c.create = [](void* user, void (*main)(void* arg), void* arg, void** out) -> pfrt_code {
    try {
      *out = (*static_cast<Kept*>(user))->create([main, arg] { main(arg); });
      return PFRT_CODE_OK;
    } catch (...) {
      return PFRT_CODE_INTERNAL;
    }
  };
  c.join = [](void* user, void* thread) {
    try {
      (*static_cast<Kept*>(user))->join(thread);
    } catch (...) {  // nobody can receive the exception
    }
  };
  c.release = [](void* user) { delete static_cast<Kept*>(user); };
  return c;
}

}  // namespace detail

inline void Environment::set_executor(std::shared_ptr<IExecutor> executor) {
  if (executor == nullptr) {
    detail::check(api().env->set_executor(handle(), nullptr));
    return;
  }
  const pfrt_executor c = detail::c_executor(std::move(executor));
  detail::check(api().env->set_executor(handle(), &c));
}

inline void Environment::set_thread_hooks(std::shared_ptr<IThreadHooks> hooks) {
  if (hooks == nullptr) {
    detail::check(api().env->set_thread_hooks(handle(), nullptr));
    return;
  }
  const pfrt_thread_hooks c = detail::c_thread_hooks(std::move(hooks));
  detail::check(api().env->set_thread_hooks(handle(), &c));
}

}  // namespace pyflame_rt

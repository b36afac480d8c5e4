// SPDX-License-Identifier: Apache-2.0
//
// The promises that come with what a client or plug-in hands over: its release is called once, and
// its library stays loaded until then.
#pragma once

#include <memory>
#include <utility>

#include "capi/handle/guard.h"
#include "core/base/foreign.h"

namespace pfrt::capi {

// While it lives, memory that is borrowed on this thread belongs to a plug-in, whose library then
// stays loaded until the memory is released: a value may outlive the environment.
class PluginScope {
 public:
  explicit PluginScope(std::shared_ptr<void> library) : library_(std::move(library)) {
    innermost() = this;
  }
  ~PluginScope() { innermost() = outer_; }
  PluginScope(const PluginScope&) = delete;
  PluginScope& operator=(const PluginScope&) = delete;
  static std::shared_ptr<void> current() { return innermost() ? innermost()->library_ : nullptr; }

 private:
  // A plain pointer: registering a thread's destructor would end the process without memory.
  static PluginScope*& innermost() {
    thread_local PluginScope* scope = nullptr;
    return scope;
  }
  std::shared_ptr<void> library_;
  PluginScope* outer_ = innermost();
};

// The promise to call |release| once, whatever becomes of the call it was given to. Empty without
// one.
inline std::shared_ptr<void> release_later(pfrt_release_fn release_fn, void* user, void* data) {
  if (!release_fn) return nullptr;
  return std::shared_ptr<void>(user, [release_fn, data, library = PluginScope::current()](void* u) {
    call_foreign([&] { release_fn(u, data); });
  });
}

// Calls the client's release once, whatever becomes of the call that took the struct.
template <typename T>
std::shared_ptr<const T> taken(const T* given) {
  return std::shared_ptr<const T>(new T(read(given)), [](const T* all) {
    if (all->release) call_foreign([&] { all->release(all->user); });
    delete all;
  });
}

}  // namespace pfrt::capi

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

// Makes a plug-in own the memory that is borrowed on this thread during this object's life. The
// plug-in's library then stays loaded until the memory is released: a value may outlive the
// environment.
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

// Returns a promise to call |release_fn| once, whatever becomes of the call it was given to; empty
// without |release_fn|.
inline std::shared_ptr<void> release_later(pfrt_release_fn release_fn, void* user, void* data) {
  if (!release_fn) return nullptr;
  return std::shared_ptr<void>(user, [release_fn, data, library = PluginScope::current()](void* u) {
    call_foreign([&] { release_fn(u, data); });
  });
}

// Calls the client's release once, whatever becomes of the call that took the struct. NULL gives
// null.
template <typename T>
Result<std::shared_ptr<const T>> taken(const T* given) {
  if (!given) return std::shared_ptr<const T>();
  std::shared_ptr<const T> own(new T(abi::known(given)), [](const T* all) {
    if (all->release) call_foreign([&] { all->release(all->user); });
    delete all;
  });
  PFRT_TRY(abi::check(*given));
  return own;
}

}  // namespace pfrt::capi

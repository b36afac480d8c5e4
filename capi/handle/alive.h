// SPDX-License-Identifier: Apache-2.0
//
// A live handle keeps this library loaded: the first takes a reference to it, as dlopen gives one,
// and the release of the last gives it back, which may unload the code that does so. So the
// functions of the tables that release end with a jump to dlclose. Thread-safe; a client that has
// closed the library must not release the last handle while another thread is in a call.
#pragma once

#include "core/base/os/library.h"

namespace pfrt::capi {

// A member of what a handle stands for.
class Alive {
 public:
  Alive() noexcept;
  Alive(const Alive&) noexcept : Alive() {}
  Alive& operator=(const Alive&) = default;
  ~Alive();
};

// While it lives, this thread will return into the library's code.
class Inside {
 public:
  Inside() noexcept;
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

// The reference to give back, where nothing is alive any more and this thread is about to leave;
// else nullptr. What is not given back waits for the next handle or release.
void* owed_reference() noexcept;

// |Release| as an entry of a table.
template <auto Release, typename Handle>
#ifndef __clang__
__attribute__((optimize("optimize-sibling-calls")))
#endif
void last_call(Handle* handle) {
  Release(handle);
  void* const self = owed_reference();
  if (!self) return;
#ifdef __clang__
  // A jump, to a function of this one's type: nothing here is returned to.
  const auto close = reinterpret_cast<void (*)(Handle*)>(os::kCloseLibrary);
  [[clang::musttail]] return close(static_cast<Handle*>(self));
#else
  const auto close = os::kCloseLibrary;
  close(self);  // a jump: nothing here is returned to
#endif
}

}  // namespace pfrt::capi

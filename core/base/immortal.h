// SPDX-License-Identifier: Apache-2.0
//
// A static object that exit() does not destroy, since threads may still use it then. Unlike an
// object made with new, it goes with the library when that is closed. T leaves no heap memory
// behind once it is idle.
#pragma once

#include <new>

namespace pfrt {

template <typename T>
class Immortal {
 public:
  Immortal() { ::new (static_cast<void*>(room_)) T; }
  Immortal(const Immortal&) = delete;
  Immortal& operator=(const Immortal&) = delete;
  T& get() { return *std::launder(reinterpret_cast<T*>(room_)); }

 private:
  alignas(T) unsigned char room_[sizeof(T)];
};

}  // namespace pfrt

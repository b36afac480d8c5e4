// SPDX-License-Identifier: Apache-2.0
//
// Calls code outside of this library: functions of plug-ins and clients, which may be written in
// any language and throw anything.
#pragma once

namespace pfrt {

// Calls a function whose errors nobody takes, such as one that gives something back; its exceptions
// end here. False when it threw.
template <typename Fn>
bool call_foreign(Fn&& fn) noexcept {
  try {
    fn();
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace pfrt

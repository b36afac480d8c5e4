// SPDX-License-Identifier: Apache-2.0
//
// Calls of code that is not this library's: a plug-in's and a client's functions, which may be
// written in any language and throw anything.
#pragma once

namespace pfrt {

// For functions that give back or are told something, where nobody takes an error: what they throw
// ends here. False when they threw.
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

// SPDX-License-Identifier: Apache-2.0
//
// What a host that is built on oneTBB does, as functions of no type of oneTBB's: these are compiled
// apart, without a sanitizer that does not know oneTBB.
#pragma once

#include <functional>

namespace pfrt_test {

// The host's own loop: body(i) for every i < n, as tasks of the arena that the thread is in. What
// a body throws is thrown here, after the other tasks were cancelled.
void host_for(int n, const std::function<void(int)>& body);

// |work| in an arena of |width| threads, which there are also on a smaller machine.
void in_arena(int width, const std::function<void()>& work);

// |work| in a task whose group is cancelled when it begins.
void in_cancelled_group(const std::function<void()>& work);

}  // namespace pfrt_test

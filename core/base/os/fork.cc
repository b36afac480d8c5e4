// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/fork.h"

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <mutex>

namespace pfrt::os {
namespace {

std::atomic<uint32_t> inside{0};   // threads in a scope
std::atomic<uint32_t> pending{0};  // forks under way
std::atomic<uint32_t> generation{0};
void (*forgotten_in_child)() = nullptr;
thread_local uint32_t depth = 0;

void nap() {
  const timespec a_little{0, 50'000};
  nanosleep(&a_little, nullptr);
}

void enter() {
  for (;;) {
    inside.fetch_add(1);
    if (pending.load() == 0) return;
    inside.fetch_sub(1);
    while (pending.load() != 0) nap();
  }
}

void before_fork() {
  constexpr int kMostNaps = 20'000;  // a second
  pending.fetch_add(1);
  const uint32_t own = depth > 0 ? 1 : 0;
  for (int i = 0; inside.load() > own && i < kMostNaps; ++i) nap();
}

void after_fork_in_parent() { pending.fetch_sub(1); }

void after_fork_in_child() {
  pending.store(0);
  inside.store(depth > 0 ? 1 : 0);
  generation.fetch_add(1);
  forgotten_in_child();
}

}  // namespace

void watch_forks(void (*in_child)()) {
  static std::once_flag once;
  // The C library forgets the handlers when this library is closed.
  std::call_once(once, [in_child] {
    forgotten_in_child = in_child;
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  });
}

uint32_t forks() { return generation.load(std::memory_order_relaxed); }

ForkScope::ForkScope() {
  if (depth++ == 0) enter();
}

ForkScope::~ForkScope() {
  if (--depth == 0) inside.fetch_sub(1);
}

ForkPause::ForkPause() : depth_(depth) {
  if (depth_ > 0) inside.fetch_sub(1);
  depth = 0;
}

ForkPause::~ForkPause() {
  if (depth_ > 0) enter();
  depth = depth_;
}

}  // namespace pfrt::os

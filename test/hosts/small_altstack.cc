// SPDX-License-Identifier: Apache-2.0
//
// A host whose threads handle signals on alternate stacks of 8 KiB, before and after runs: these
// must stay large enough for a signal's frame.
#include <signal.h>

#include <array>
#include <cstdio>

#include "test/hosts/host.h"

namespace {

volatile sig_atomic_t handled = 0;
void handle(int) { handled = handled + 1; }

int with_small_stack(const char* when, int argc, char** argv, bool work) {
  static thread_local std::array<char, 8192> room;
  stack_t stack{};
  stack.ss_sp = room.data();
  stack.ss_size = room.size();
  if (sigaltstack(&stack, nullptr) != 0) {
    std::perror(when);
    return 1;
  }
  const sig_atomic_t before = handled;
  raise(SIGUSR1);
  const int failed = work ? host::check(when, argc, argv) : 0;
  raise(SIGUSR1);
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
  return failed | (handled == before + 2 ? 0 : 1);
}

}  // namespace

int main(int argc, char** argv) {
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  int failed = with_small_stack("main thread", argc, argv, true);
  failed |= host::on_thread(0, [&] { return with_small_stack("new thread", argc, argv, true); });
  failed |= host::on_thread(0, [&] { return with_small_stack("afterwards", argc, argv, false); });
  return failed;
}

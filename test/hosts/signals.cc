// SPDX-License-Identifier: Apache-2.0
//
// A host with handlers of its own for what goes wrong, and some signals blocked.
#include <pthread.h>
#include <signal.h>

#include <cstdio>

#include "test/hosts/host.h"

namespace {

constexpr int kHandled[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGPIPE, SIGCHLD, SIGALRM};
volatile sig_atomic_t handled = 0;
void handle(int, siginfo_t*, void*) { handled = handled + 1; }

}  // namespace

int main(int argc, char** argv) {
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;
  sigaddset(&action.sa_mask, SIGUSR1);
  for (int n : kHandled) sigaction(n, &action, nullptr);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  int failed = host::check("own handlers", argc, argv);
  if (handled != 0) {
    std::fprintf(stderr, "%d signals came from the library\n", static_cast<int>(handled));
    failed = 1;
  }
  for (int n : kHandled) raise(n);
  if (handled != static_cast<int>(std::size(kHandled))) failed = 1;
  return failed;
}

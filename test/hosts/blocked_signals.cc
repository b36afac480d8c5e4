// SPDX-License-Identifier: Apache-2.0
//
// A host that calls from a thread with every signal blocked.
#include <pthread.h>
#include <signal.h>

#include "test/hosts/host.h"

int main(int argc, char** argv) {
  return host::on_thread(0, [&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    return host::check("all signals blocked", argc, argv);
  });
}

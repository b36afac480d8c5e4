// SPDX-License-Identifier: Apache-2.0
//
// A host whose threads have small stacks.
#include "test/hosts/host.h"

int main(int argc, char** argv) {
  int failed = 0;
  for (const size_t kib : {128u, 64u})
    failed |= host::on_thread(kib * 1024, [&] {
      return host::check(kib == 64 ? "64 KiB of stack" : "128 KiB of stack", argc, argv);
    });
  return failed;
}

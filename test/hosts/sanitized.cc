// SPDX-License-Identifier: Apache-2.0
//
// A host with a sanitizer, which the library has not: plug-ins are loaded all the same, and nothing
// is reported.
#include "test/hosts/host.h"

#if defined(__SANITIZE_THREAD__)
// The sanitizer does not see how threads of the library wait for each other; hosts need this line.
extern "C" const char* __tsan_default_suppressions() { return "race:libpyflamert"; }
#endif

int main(int argc, char** argv) {
  // ThreadSanitizer starts a thread of its own with the host's first.
  if (host::on_thread(0, [] { return 0; }) != 0) return 1;
  return host::check("a sanitizer", argc, argv);
}

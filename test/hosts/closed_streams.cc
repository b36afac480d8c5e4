// SPDX-License-Identifier: Apache-2.0
//
// A host without standard streams, and with a library that logs: the lines go nowhere, and above
// all not into a file that is being written.
#include <unistd.h>

#include "test/hosts/host.h"

int main(int argc, char** argv) {
  const int diagnostics = dup(STDERR_FILENO);
  for (int fd = 0; fd < 3; ++fd) close(fd);
  const host::State before = host::state();
  pfrt_code code = PFRT_CODE_OK;
  const std::string results = host::try_work(&code, "0", "debug");
  const host::State after = host::state();
  for (int fd = 0; fd < 3; ++fd) dup2(diagnostics, fd);
  return host::compare_states("streams closed", before, after) |
         host::compare_results("streams closed", argc, argv, results);
}

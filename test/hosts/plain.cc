// SPDX-License-Identifier: Apache-2.0
//
// A host without special traits. It writes its results to the file named by the first argument, for
// the others to compare theirs with.
#include <cstdio>

#include "test/hosts/host.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const host::State before = host::state();
  const std::string results = host::work();
  if (host::compare_states("plain", before, host::state()) != 0) return 1;
  if (host::work("1") != results) {
    std::fprintf(stderr, "one thread computes otherwise\n");
    return 1;
  }
  std::FILE* file = std::fopen(argv[1], "wb");
  if (!file) return 1;
  const bool written = std::fwrite(results.data(), 1, results.size(), file) == results.size();
  return std::fclose(file) == 0 && written ? 0 : 1;
}

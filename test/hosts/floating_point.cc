// SPDX-License-Identifier: Apache-2.0
//
// A host with rounding, denormals and exceptions of its own.
#include <signal.h>
#include <unistd.h>
#include <xmmintrin.h>

#include "test/hosts/host.h"

namespace {

struct Mode {
  const char* name;
  unsigned mxcsr;
  unsigned short x87;
};

constexpr Mode kModes[] = {
    {"flags set", 0x1fbf, 0x037f},          {"round down", 0x3f80, 0x077f},
    {"round up", 0x5f80, 0x0b7f},           {"round to zero", 0x7f80, 0x0f7f},
    {"denormals are zero", 0x9fc0, 0x037f}, {"x87 in single precision", 0x1f80, 0x007f},
    {"every exception", 0x0000, 0x0340},
};

void stop(int) {
  constexpr char text[] = "a floating-point exception reached the host\n";
  [[maybe_unused]] const ssize_t n = write(2, text, sizeof text - 1);
  _exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGFPE, stop);
  int failed = 0;
  for (const Mode& mode : kModes) {
    _mm_setcsr(mode.mxcsr);
    __asm__ volatile("fldcw %0" : : "m"(mode.x87));
    const host::State before = host::state();
    const std::string results = host::work();
    const host::State after = host::state();
    _mm_setcsr(0x1f80);
    __asm__ volatile("fninit");
    failed |= host::compare_states(mode.name, before, after);
    failed |= host::compare_results(mode.name, argc, argv, results);
  }
  return failed;
}

// SPDX-License-Identifier: Apache-2.0
//
// Carries out the AMX instructions that generated code uses where the machine has none of them, so
// that kernels on tiles are tested on any x86-64 Linux. It is a handler of SIGILL that decodes the
// instruction, works on tiles of its own, a set for each thread, and continues behind it. An
// instruction that it does not know, or that a machine would refuse, kills the process as without
// it. The emulation belongs to the process; an emulator within another's lifetime adds nothing.
// Intel's Software Developer's Manual, volume 2, defines the instructions.
#pragma once

#include <cstdint>

namespace pfrt::test {

class TileEmulator {
 public:
  // The machine's own tiles are used where it has them. Otherwise this installs the handler, and
  // amx_usable() and amx_int8_usable() count tiles as usable.
  TileEmulator();
  ~TileEmulator();
  TileEmulator(const TileEmulator&) = delete;
  TileEmulator& operator=(const TileEmulator&) = delete;

  bool native() const { return native_; }
  // Number of instructions carried out in this process so far.
  static uint64_t executed();
  // Number of these that were products of tiles of bytes, and of bfloat16.
  static uint64_t byte_products();
  static uint64_t bfloat16_products();

 private:
  bool native_, installed_;
};

}  // namespace pfrt::test

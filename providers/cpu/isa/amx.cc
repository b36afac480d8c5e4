// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/isa/amx.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "providers/cpu/isa/isa.h"

namespace pfrt::cpu {
namespace {

bool granted() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // asm/prctl.h, of Linux 5.16
  static const bool allowed = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return allowed;
}

// Whether PFRT_ISA leaves tiles.
bool allowed() {
  const Result<Isa> cap = isa_cap();
  return cap.ok() && cap.value() >= Isa::kAmx;
}

}  // namespace

bool amx_usable() {
  if (amx_emulated()) return allowed();
  return isa() >= Isa::kAmx && granted();
}

bool amx_int8_usable() {
  if (amx_emulated()) return allowed();
  return machine_has_int8_tiles() && allowed() && granted();
}

}  // namespace pfrt::cpu

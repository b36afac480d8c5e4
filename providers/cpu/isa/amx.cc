// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/isa/amx.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "providers/cpu/isa/isa.h"

namespace pfrt::cpu {
namespace {

bool granted() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // asm/prctl.h, of Linux 5.16
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool amx_usable() {
  if (isa() < Isa::kAmx) return false;
  static const bool allowed = granted();
  return allowed;
}

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/jit/tile_config.h"

namespace pfrt::cpu {

// The instructions are given as bytes, for assemblers that do not know them.
void TileConfig::load() const {
  __asm__ volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0x07" ::"D"(this),
                   "m"(*this));  // ldtilecfg (%rdi)
}

void TileConfig::release() {
  __asm__ volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0xc0");  // tilerelease
}

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
//
// Shapes of a thread's AMX tiles, in the form of palette 1 that the processor reads. A caller that
// loads one releases the tiles on the same thread: until then each switch of threads saves them.
// May be used where tiles may be (isa/amx.h).
#pragma once

#include <cstdint>

namespace pfrt::cpu {

class alignas(64) TileConfig {
 public:
  static constexpr int kTiles = 8;

  // Tile |tile| has 1 to 16 rows of 4 to 64 bytes, a multiple of 4.
  void set(int tile, int64_t rows, int64_t row_bytes) {
    rows_[tile] = static_cast<uint8_t>(rows);
    row_bytes_[tile] = static_cast<uint16_t>(row_bytes);
  }
  // All tiles are 0 afterwards.
  void load() const;
  static void release();

 private:
  // Only the processor reads them.
  [[maybe_unused]] uint8_t palette_ = 1, start_row_ = 0, reserved_[14] = {};
  uint16_t row_bytes_[16] = {};
  uint8_t rows_[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

}  // namespace pfrt::cpu

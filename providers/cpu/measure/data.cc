// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/measure/data.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace pfrt::cpu {
namespace {

constexpr int64_t kAlignment = int64_t{2} << 20;  // of a large page
constexpr int64_t kPattern = int64_t{1} << 20;    // is repeated

class Random {
 public:
  uint64_t bits() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }
  // Returns a number from -1 to 1, never so small that products leave the normal range.
  float number() {
    const auto magnitude = static_cast<float>((bits() >> 40) + 1) / static_cast<float>(1 << 24);
    return (bits() & 1) != 0 ? magnitude : -magnitude;
  }

 private:
  uint64_t state_ = 0x9e3779b97f4a7c15;
};

void write(PeakData kind, uint8_t* data, int64_t bytes) {
  Random random;
  const int64_t size = kind == PeakData::kFloat32 ? 4 : kind == PeakData::kBfloat16 ? 2 : 1;
  for (int64_t i = 0; i < bytes; i += size) {
    const auto bits = std::bit_cast<uint32_t>(random.number());
    const uint64_t element = kind == PeakData::kFloat32    ? bits
                             : kind == PeakData::kBfloat16 ? bits >> 16
                                                           : random.bits() >> 32;
    std::memcpy(data + i, &element, static_cast<size_t>(size));
  }
}

}  // namespace

bool MeasureData::fill(PeakData kind, int64_t bytes) {
  Block& block = blocks_[static_cast<size_t>(kind)];
  if (block.bytes >= bytes) return true;
  const int64_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  block = {};
  block.data.reset(
      static_cast<uint8_t*>(std::aligned_alloc(size_t{kAlignment}, static_cast<size_t>(whole))));
  if (!block.data) return false;
  const int64_t fresh = std::min(whole, kPattern);
  write(kind, block.data.get(), fresh);
  for (int64_t i = fresh; i < whole; i += kPattern)
    std::memcpy(block.data.get() + i, block.data.get(), size_t{kPattern});
  block.bytes = whole;
  return true;
}

void MeasureData::go_through(const PeakLoop& loop, int64_t bytes, int64_t blocks) {
  Block& block = blocks_[static_cast<size_t>(loop.data)];
  const int64_t whole = bytes / loop.block_bytes;
  block.position %= whole;
  while (blocks > 0) {
    const uint8_t* from = block.data.get() + block.position * loop.block_bytes;
    if (block.position == 0 && blocks >= whole) {
      const int64_t passes = blocks / whole;
      loop.run(from, whole, passes);
      blocks -= passes * whole;
      continue;
    }
    const int64_t some = std::min(blocks, whole - block.position);
    loop.run(from, some, 1);
    block.position = (block.position + some) % whole;
    blocks -= some;
  }
}

}  // namespace pfrt::cpu

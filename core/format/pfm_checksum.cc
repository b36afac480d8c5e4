// SPDX-License-Identifier: Apache-2.0
#define XXH_INLINE_ALL
#include "core/format/pfm_checksum.h"

#include <xxhash.h>

#include <cstddef>

namespace pfrt::pfm {

struct Checksum::State {
  XXH3_state_t of_library;
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->of_library); }

Checksum::~Checksum() = default;

void Checksum::add(const void* data, uint64_t bytes) {
  XXH3_64bits_update(&state_->of_library, data, static_cast<size_t>(bytes));
}

uint64_t Checksum::value() const { return XXH3_64bits_digest(&state_->of_library); }

uint64_t checksum_of(const void* data, uint64_t bytes) {
  return XXH3_64bits(data, static_cast<size_t>(bytes));
}

uint64_t checksum_of(const Header& header, const void* buffer, uint64_t bytes) {
  Checksum sum;
  sum.add(&header, offsetof(Header, checksum));
  sum.add(buffer, bytes);
  return sum.value();
}

}  // namespace pfrt::pfm

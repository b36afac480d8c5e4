// SPDX-License-Identifier: Apache-2.0
#define XXH_INLINE_ALL
#include "core/base/digest.h"

#include <xxhash.h>

namespace pfrt {

void Digest::add(std::string_view text) {
  const uint64_t bytes = text.size();
  add(&bytes, sizeof bytes);
  add(text.data(), bytes);
}

std::string Digest::hex() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : hash_.hash()) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15u];
  }
  return out;
}

struct Checksum::State {
  XXH3_state_t of_library;
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->of_library); }

Checksum::~Checksum() = default;

void Checksum::add(const void* data, uint64_t bytes) {
  XXH3_64bits_update(&state_->of_library, data, static_cast<size_t>(bytes));
}

uint64_t Checksum::value() const { return XXH3_64bits_digest(&state_->of_library); }

uint64_t checksum(const void* data, uint64_t bytes) {
  return XXH3_64bits(data, static_cast<size_t>(bytes));
}

}  // namespace pfrt

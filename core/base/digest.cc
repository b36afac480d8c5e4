// SPDX-License-Identifier: Apache-2.0
#define XXH_INLINE_ALL
#include "core/base/digest.h"

#include <xxhash.h>

namespace pfrt {
namespace {

std::string hex_of(const XXH128_hash_t& hash) {
  std::string out;
  for (const uint64_t half : {hash.high64, hash.low64})
    for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[half >> shift & 15u];
  return out;
}

}  // namespace

struct Digest::State {
  XXH3_state_t of_library;
};

// The state is the same for both lengths.
Digest::Digest() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->of_library); }

Digest::~Digest() = default;

void Digest::add(const void* data, uint64_t bytes) {
  XXH3_128bits_update(&state_->of_library, data, static_cast<size_t>(bytes));
}

void Digest::add(std::string_view text) {
  const uint64_t bytes = text.size();
  add(&bytes, sizeof bytes);
  add(text.data(), bytes);
}

std::string Digest::hex() const { return hex_of(XXH3_128bits_digest(&state_->of_library)); }

uint64_t Digest::number() const { return XXH3_64bits_digest(&state_->of_library); }

std::string digest_of(const void* data, uint64_t bytes) {
  return hex_of(XXH3_128bits(data, static_cast<size_t>(bytes)));
}

uint64_t checksum(const void* data, uint64_t bytes) {
  return XXH3_64bits(data, static_cast<size_t>(bytes));
}

}  // namespace pfrt

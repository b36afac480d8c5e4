// SPDX-License-Identifier: Apache-2.0
#include "core/base/blake3/blake3.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace pfrt {

using blake3::Inputs;
using blake3::kBlockBytes;
using blake3::kChunkBytes;
using blake3::kHashBytes;

void Blake3::add(const void* data, uint64_t bytes) {
  const auto* from = static_cast<const unsigned char*>(data);
  // The last chunk stays in the buffer, since it is compressed in another way if nothing follows.
  while (bytes > 0) {
    if (held_ == kChunkBytes) {
      const Hash hash = chunk(0);
      push(hash.data(), 1);
      held_ = 0;
    }
    uint64_t taken = 0;
    if (held_ > 0 || bytes <= kChunkBytes) {
      taken = std::min<uint64_t>(bytes, kChunkBytes - held_);
      std::memcpy(buffer_.data() + held_, from, static_cast<size_t>(taken));
      held_ += static_cast<size_t>(taken);
    } else {
      const uint64_t aligned =
          chunks_ == 0 ? kMostChunks : uint64_t{1} << std::countr_zero(chunks_);
      const uint64_t whole = std::bit_floor((bytes - 1) / kChunkBytes);
      const auto count = static_cast<size_t>(std::min({whole, aligned, uint64_t{kMostChunks}}));
      add_chunks(from, count);
      taken = count * kChunkBytes;
    }
    from += taken;
    bytes -= taken;
  }
}

Blake3::Hash Blake3::hash() const {
  Hash hash = chunk(levels_ == 0 ? blake3::kRoot : 0);
  for (size_t level = levels_; level-- > 0;) {
    std::array<unsigned char, 2 * kHashBytes> children;
    std::memcpy(children.data(), stack_.data() + level * kHashBytes, kHashBytes);
    std::memcpy(children.data() + kHashBytes, hash.data(), kHashBytes);
    hash = parent(children.data(), level == 0 ? blake3::kRoot : 0);
  }
  return hash;
}

void Blake3::compress(Inputs inputs, unsigned char* out) const {
  while (inputs.count > 0) {
    const blake3::Lanes& lanes =
        inputs.count >= widest_.count ? widest_ : blake3::lanes(std::bit_ceil(inputs.count));
    Inputs some = inputs;
    some.count = std::min(inputs.count, lanes.count);
    lanes.compress(some, out);
    inputs.data += some.count * inputs.stride;
    inputs.counter += inputs.counting ? some.count : 0;
    inputs.count -= some.count;
    out += some.count * kHashBytes;
  }
}

Blake3::Hash Blake3::chunk(uint32_t flags) const {
  alignas(64) std::array<unsigned char, kChunkBytes> padded;
  const size_t blocks = std::max<size_t>(1, (held_ + kBlockBytes - 1) / kBlockBytes);
  std::memcpy(padded.data(), buffer_.data(), held_);
  std::memset(padded.data() + held_, 0, blocks * kBlockBytes - held_);
  const auto last_bytes = static_cast<uint32_t>(held_ - (blocks - 1) * kBlockBytes);
  Hash out;
  compress({padded.data(), kChunkBytes, 1, blocks, last_bytes, chunks_, true, 0,
            blake3::kChunkStart, blake3::kChunkEnd | flags},
           out.data());
  return out;
}

Blake3::Hash Blake3::parent(const unsigned char* children, uint32_t flags) const {
  Hash out;
  compress({children, 2 * kHashBytes, 1, 1, kBlockBytes, 0, false, blake3::kParent | flags, 0, 0},
           out.data());
  return out;
}

void Blake3::add_chunks(const unsigned char* data, size_t count) {
  alignas(64) std::array<unsigned char, kMostChunks * kHashBytes> hashes;
  compress({data, kChunkBytes, count, kChunkBytes / kBlockBytes, kBlockBytes, chunks_, true, 0,
            blake3::kChunkStart, blake3::kChunkEnd},
           hashes.data());
  for (size_t left = count / 2; left > 0; left /= 2)
    compress({hashes.data(), 2 * kHashBytes, left, 1, kBlockBytes, 0, false, blake3::kParent, 0, 0},
             hashes.data());
  push(hashes.data(), count);
}

// Two subtrees of one size are merged as soon as something follows them.
void Blake3::push(const unsigned char* hash, uint64_t chunks) {
  std::memcpy(stack_.data() + levels_ * kHashBytes, hash, kHashBytes);
  ++levels_;
  chunks_ += chunks;
  for (uint64_t size = chunks; (chunks_ & size) == 0; size *= 2) {
    levels_ -= 2;
    const Hash both = parent(stack_.data() + levels_ * kHashBytes, 0);
    std::memcpy(stack_.data() + levels_ * kHashBytes, both.data(), kHashBytes);
    ++levels_;
  }
}

}  // namespace pfrt

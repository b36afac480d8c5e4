// SPDX-License-Identifier: Apache-2.0
#include "plugins/import_onnx/sha1.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace pfrt::onnx {
namespace {

uint32_t big_endian(const uint8_t* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | uint32_t{at[3]};
}

// The function and constant of round |t|.
uint32_t mix(size_t t, uint32_t b, uint32_t c, uint32_t d) {
  if (t < 20) return ((b & c) | (~b & d)) + 0x5a827999;
  if (t < 40) return (b ^ c ^ d) + 0x6ed9eba1;
  if (t < 60) return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
  return (b ^ c ^ d) + 0xca62c1d6;
}

}  // namespace

void Sha1::add_block(const uint8_t* block) {
  std::array<uint32_t, 80> w;
  for (size_t t = 0; t < 16; ++t) w[t] = big_endian(block + 4 * t);
  for (size_t t = 16; t < 80; ++t) w[t] = std::rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
  auto [a, b, c, d, e] = state_;
  for (size_t t = 0; t < 80; ++t) {
    const uint32_t next = std::rotl(a, 5) + mix(t, b, c, d) + e + w[t];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  const std::array<uint32_t, 5> add = {a, b, c, d, e};
  for (size_t i = 0; i < add.size(); ++i) state_[i] += add[i];
}

void Sha1::add(const uint8_t* data, uint64_t size) {
  while (size > 0) {
    const size_t have = static_cast<size_t>(size_ % kBlock);
    const auto taken = static_cast<size_t>(std::min<uint64_t>(kBlock - have, size));
    if (taken == kBlock) {
      add_block(data);
    } else {
      std::memcpy(rest_.data() + have, data, taken);
      if (have + taken == kBlock) add_block(rest_.data());
    }
    data += taken;
    size -= taken;
    size_ += taken;
  }
}

std::string Sha1::digest() {
  const uint64_t bits = size_ * 8;
  std::array<uint8_t, 2 * kBlock> end = {0x80};
  const size_t have = static_cast<size_t>(size_ % kBlock);
  add(end.data(), (have < 56 ? 56 : 56 + kBlock) - have);
  for (size_t i = 0; i < 8; ++i) end[i] = static_cast<uint8_t>(bits >> (56 - 8 * i));
  add(end.data(), 8);
  std::string text;
  for (const uint32_t word : state_)
    for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[(word >> shift) & 15];
  return text;
}

}  // namespace pfrt::onnx

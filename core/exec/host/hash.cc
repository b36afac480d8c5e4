// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "core/exec/host/call.h"

namespace pfrt::host {
namespace {

uint32_t rotated(uint32_t x, int by) { return x << by | x >> (32 - by); }

// Reads |count| bytes at |from|, the first one lowest.
uint32_t word(std::string_view text, size_t from, size_t count) {
  uint32_t out = 0;
  for (size_t i = 0; i < count; ++i)
    out |= static_cast<uint32_t>(static_cast<unsigned char>(text[from + i])) << (8 * i);
  return out;
}

// The hash of |text| by Austin Appleby's MurmurHash3_x86_32 (public domain), paced by |call|.
Result<uint32_t> hashed(const Call& call, std::string_view text, uint32_t seed) {
  const auto mixed = [](uint32_t k) { return rotated(k * 0xcc9e2d51u, 15) * 0x1b873593u; };
  const size_t whole = text.size() / 4 * 4;
  uint32_t h = seed;
  PFRT_TRY(call.walked(0));
  for (size_t i = 0; i < whole;) {
    const size_t begin = i, end = std::min(whole, i + BytePace::kBytes);
    for (; i < end; i += 4) h = rotated(h ^ mixed(word(text, i, 4)), 13) * 5 + 0xe6546b64u;
    PFRT_TRY(call.walked(end - begin));
  }
  h ^= mixed(word(text, whole, text.size() - whole));
  h ^= static_cast<uint32_t>(text.size());
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  return h ^ h >> 16;
}

// Hashes each string; numbers are hashed by providers.
Status murmur_hash3(const Call& call) {
  PFRT_ASSIGN(const Tensor* input, need_tensor(call, 0, PFRT_DTYPE_STRING));
  const uint32_t seed = static_cast<uint32_t>(call.node.attr_int("seed", 0));
  const bool natural = call.node.attr_int("positive", 1) != 0;
  PFRT_ASSIGN(Tensor out,
              Tensor::allocate(natural ? PFRT_DTYPE_UINT32 : PFRT_DTYPE_INT32, input->dims, false));
  uint32_t* to = out.as<uint32_t>();
  for (const pfrt_string& text : input->strings()) {
    PFRT_ASSIGN(*to++, hashed(call, view(text), seed));
  }
  call.out[0] = Value::of(std::move(out));
  return {};
}

constexpr HostOp kHashOps[] = {
    {"com.microsoft", "MurmurHash3", murmur_hash3},
};

}  // namespace

std::span<const HostOp> hash_ops() { return kHashOps; }

}  // namespace pfrt::host

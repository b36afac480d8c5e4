// SPDX-License-Identifier: Apache-2.0
//
// Different bytes that XXH3 cannot tell apart. It multiplies parts of each word of 64 bits; a
// product is zero where the word's upper half is that of XXH3's key, and the sum is equal in both
// texts.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace pfrt_test {

// Returns two such texts of |bytes| bytes, at least 2,048. They must begin at a multiple of 1,024
// of the bytes that are summed.
inline std::pair<std::string, std::string> of_one_checksum(size_t bytes) {
  const auto with = [bytes](uint64_t first, uint64_t second) {
    std::string out(bytes, 'x');
    const uint64_t a = 0xBE4BA42300000000u | first, b = 0x1CAD21F700000000u | second;
    std::memcpy(out.data(), &a, sizeof a);
    std::memcpy(out.data() + 64, &b, sizeof b);
    return out;
  };
  return {with(5, 7), with(6, 6)};
}

}  // namespace pfrt_test

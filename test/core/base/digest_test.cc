// SPDX-License-Identifier: Apache-2.0
//
// Compares digests with the vectors of BLAKE3's authors, for all instructions that compute them and
// any division of the bytes.
#include "core/base/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace pfrt {
namespace {

struct Vector {
  size_t bytes;
  const char* hex;
};
constexpr Vector kVectors[] = {
    {0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
    {1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
    {63, "e9bc37a594daad83be9470df7f7b3798297c3d834ce80ba85d6e207627b7db7b"},
    {64, "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98"},
    {65, "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee"},
    {1023, "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11"},
    {1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"},
    {1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"},
    {2048, "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a"},
    {2049, "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030"},
    {3073, "7124b49501012f81cc7f11ca069ec9226cecb8a2c850cfe644e327d22d3e1cd3"},
    {8193, "bab6c09cb8ce8cf459261398d2e7aef35700bf488116ceb94a36d0f5f1b7bc3b"},
    {31744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"},
    {102400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"},
};

std::vector<unsigned char> counted(size_t bytes) {
  std::vector<unsigned char> out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<unsigned char>(i % 251);
  return out;
}

std::string hex_of(const Blake3::Hash& hash) {
  std::string out;
  for (const unsigned char byte : hash) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    out += digits;
  }
  return out;
}

TEST(Blake3, vectors_of_its_authors) {
  for (const size_t lanes : {4, 8, 16})
    for (const Vector& vector : kVectors) {
      const std::vector<unsigned char> data = counted(vector.bytes);
      Blake3 whole(lanes);
      whole.add(data.data(), data.size());
      EXPECT_EQ(hex_of(whole.hash()), vector.hex) << vector.bytes << " bytes, " << lanes;
    }
}

TEST(Blake3, pieces_do_not_matter) {
  const std::vector<unsigned char> data = counted(3'000'001);
  Blake3 whole(4);
  whole.add(data.data(), data.size());
  std::mt19937 random(3);
  for (const size_t lanes : {4, 8, 16})
    for (const size_t most : {100u, 5'000u, 1'000'000u}) {
      Blake3 cut(lanes);
      for (size_t at = 0; at < data.size();) {
        const size_t piece = std::min<size_t>(random() % most, data.size() - at);
        cut.add(data.data() + at, piece);
        at += piece;
      }
      EXPECT_EQ(cut.hash(), whole.hash()) << "pieces of up to " << most << " bytes, " << lanes;
    }
}

TEST(Digest, texts_are_told_apart_from_their_neighbours) {
  const auto of = [](std::string_view a, std::string_view b) {
    Digest digest;
    digest.add(a);
    digest.add(b);
    return digest.hex();
  };
  EXPECT_EQ(of("ab", "c"), of("ab", "c"));
  EXPECT_NE(of("ab", "c"), of("a", "bc"));
  EXPECT_EQ(of("", "").size(), 64u);
}

TEST(Checksum, pieces_do_not_matter) {
  const std::vector<unsigned char> data = counted(10'000);
  Checksum sum;
  sum.add(data.data(), 1);
  sum.add(data.data() + 1, 9'999);
  EXPECT_EQ(sum.value(), checksum(data.data(), data.size()));
}

}  // namespace
}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// SHA-1 (FIPS 180-4), with which models may say what their external data is. It shows damage; who
// means harm can make two files of one digest. Belongs to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace pfrt::onnx {

class Sha1 {
 public:
  void add(const uint8_t* data, uint64_t size);
  // Returns 40 lower-case hexadecimal digits for everything added; nothing may be added afterwards.
  std::string digest();

 private:
  static constexpr size_t kBlock = 64;
  void add_block(const uint8_t* block);

  std::array<uint32_t, 5> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  std::array<uint8_t, kBlock> rest_{};  // the first size_ % kBlock bytes of a block
  uint64_t size_ = 0;
};

}  // namespace pfrt::onnx

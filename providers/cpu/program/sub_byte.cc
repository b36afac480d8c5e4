// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/program/sub_byte.h"

#include <algorithm>

#include "core/base/dtype.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTask = 1 << 15;  // elements, whole bytes of any sub-byte type

// Elements [begin, end) of |from|; the first lies in the low bits of its byte.
void unpack(const uint8_t* from, uint32_t bits, bool sign, int64_t begin, int64_t end,
            uint8_t* to) {
  const uint32_t each = 8 / bits, mask = (1u << bits) - 1, top = 1u << (bits - 1);
  for (int64_t i = begin; i < end; ++i) {
    const uint64_t at = static_cast<uint64_t>(i);
    const uint32_t code = (from[at / each] >> (at % each * bits)) & mask;
    // Flipping the top bit and subtracting it again carries the sign into the bits above.
    to[i] = static_cast<uint8_t>(sign ? (code ^ top) - top : code);
  }
}

// |begin| is the first element of a byte.
void pack(const uint8_t* from, uint32_t bits, int64_t begin, int64_t end, uint8_t* to) {
  const int64_t each = 8 / static_cast<int64_t>(bits);
  const uint32_t mask = (1u << bits) - 1;
  for (int64_t i = begin; i < end; i += each) {
    uint32_t byte = 0;
    for (int64_t k = 0; k < std::min(each, end - i); ++k)
      byte |= (from[i + k] & mask) << (static_cast<uint32_t>(k) * bits);
    to[i / each] = static_cast<uint8_t>(byte);
  }
}

}  // namespace

Kernel unpack_sub_byte(pfrt_dtype dtype, int64_t count) {
  Kernel kernel;
  kernel.run = [count, bits = dtype_bits(dtype),
                sign = dtype_is_integer(dtype) && dtype_is_signed(dtype)](const Run& run) {
    run.blocks(count, kTask, [&](int64_t begin, int64_t end) {
      unpack(run.input<uint8_t>(0), bits, sign, begin, end, run.output<uint8_t>(0));
    });
    return run.stop();
  };
  return kernel;
}

Kernel pack_sub_byte(pfrt_dtype dtype, int64_t count) {
  Kernel kernel;
  kernel.run = [count, bits = dtype_bits(dtype)](const Run& run) {
    run.blocks(count, kTask, [&](int64_t begin, int64_t end) {
      pack(run.input<uint8_t>(0), bits, begin, end, run.output<uint8_t>(0));
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
//
// Puts the sums of convolutions of bytes to output 0, as they are or as bytes. Pure functions; the
// functions that they return are thread-safe.
#pragma once

#include <cstdint>
#include <functional>

#include "providers/cpu/kernel/row.h"
#include "providers/cpu/kernels/conv/requantized_conv.h"

namespace pfrt::cpu {

// Lines of 16 sums: of channels from |channel| on, counted over all images, of which |channels|
// exist, at |n| positions from |from| on. |scratch| is for n lines of 16 bytes. No |sums|: bytes
// that were made of them are there, or in an output in nChw16c.
struct SumLines {
  int64_t channel, channels, from, n;
  const int32_t* sums;
  uint8_t* scratch;
};
using PutLines = std::function<void(const Run&, const SumLines&)>;

// Puts the sums of ConvInteger, whose images have so many positions. Lines that are already in an
// output in nChw16c stay.
PutLines put_sums(int64_t positions, bool nchw16c);
// Puts the bytes of QLinearConv with so many channels; |scales| outlives what is returned.
PutLines put_bytes(const RequantizedConv::Scales& scales, int64_t channels, int64_t positions,
                   bool nchw16c);

}  // namespace pfrt::cpu

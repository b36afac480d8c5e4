// SPDX-License-Identifier: Apache-2.0
//
// What QuantizeLinear and DequantizeLinear say of a value, for rewrites to operators on integers.
// Pure but for the editor.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/pass/engine/editor.h"

namespace pfrt {

// y = saturate(round(x / scale) + zero), or back; float32 on one side, integers on the other.
struct Quantization {
  ValueId quantized = kNoId;  // kNoId: of a result that is not there yet
  ValueId scale = kNoId, zero = kNoId;
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;  // of the integers
  int64_t axis = 0;                     // where there is more than one scale
  bool single = false;                  // one scale, one zero point
};

// Of the node, when it is such a one without blocks; |quantized| is its input or nothing.
std::optional<Quantization> quantization(const Editor& editor, const Node& node);
// Of the DequantizeLinear that makes |value|.
std::optional<Quantization> dequantized(Editor& editor, ValueId value);

// Scales and zero points where they are constants; scales are normal and above zero.
std::optional<std::vector<double>> scales_of(const Editor& editor, const Quantization& q);
std::optional<std::vector<int64_t>> zeros_of(const Editor& editor, const Quantization& q);

// The zero point as a value, which integer operators want to see: a new constant where it is
// absent.
Result<ValueId> zero_of(Editor& editor, const Quantization& q);
// The same as a scalar where all channels have one, which readers with none by channel take.
Result<ValueId> shared_zero_of(Editor& editor, const Quantization& q);

// Whether q to real numbers and back by the other is certainly nothing.
bool same_quantization(const Editor& editor, const Quantization& a, const Quantization& b);

// Why the Conv, MatMul or Gemm |product|, a factor of which is dequantized, is left in float32.
std::string why_not_in_integers(Editor& editor, Node& product);

// The same of a ConvTranspose, which becomes a QLinearConv where it is quantized again.
std::string why_not_transposed(Editor& editor, Node& node);

struct IntegerRange {
  int64_t low, high;
};
IntegerRange range_of(pfrt_dtype dtype);  // of an integer type of at most 32 bits

}  // namespace pfrt

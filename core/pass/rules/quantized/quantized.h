// SPDX-License-Identifier: Apache-2.0
//
// Quantization of a value by QuantizeLinear or DequantizeLinear, for rewrites to operators on
// integers. The functions change only the editor's graph.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/pass/engine/editor.h"

namespace pfrt {

// y = saturate(round(x / scale) + zero), or the inverse; float32 on one side, integers on the
// other.
struct Quantization {
  ValueId quantized = kNoId;  // kNoId: a result that is not there yet
  ValueId scale = kNoId, zero = kNoId;
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;  // of the integers
  int64_t axis = 0;                     // where there is more than one scale
  bool single = false;                  // one scale, one zero point
};

// The node's quantization, if it is such a node without blocks; |quantized| is its input or none.
std::optional<Quantization> quantization(const Editor& editor, const Node& node);
// The quantization by the DequantizeLinear that makes |value|.
std::optional<Quantization> dequantized(Editor& editor, ValueId value);

// Scales and zero points if they are constants; scales are normal numbers above zero.
std::optional<std::vector<double>> scales_of(const Editor& editor, const Quantization& q);
std::optional<std::vector<int64_t>> zeros_of(const Editor& editor, const Quantization& q);

// The zero point as a value, which integer operators need: a new constant where it is absent.
Result<ValueId> zero_of(Editor& editor, const Quantization& q);
// A scalar zero point where all channels have the same one, for readers that take none by channel.
Result<ValueId> shared_zero_of(Editor& editor, const Quantization& q);

// Whether dequantizing by one and quantizing by the other certainly changes nothing.
bool same_quantization(const Editor& editor, const Quantization& a, const Quantization& b);

// The reason why the Conv, MatMul or Gemm |product|, with a dequantized factor, stays in float32.
std::string why_not_in_integers(Editor& editor, Node& product);

// The reason why a ConvTranspose stays in float32; it becomes a QLinearConv where it is quantized
// again.
std::string why_not_transposed(Editor& editor, Node& node);

struct IntegerRange {
  int64_t low, high;
};
IntegerRange range_of(pfrt_dtype dtype);  // of an integer type of at most 32 bits

}  // namespace pfrt

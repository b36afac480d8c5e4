// SPDX-License-Identifier: Apache-2.0
//
// What canonical forms of com.microsoft operators have in common: a node becomes operators of
// ai.onnx, so that passes, kernels and fusions know one spelling. Each edits the one node of its
// Rewriter; thread-safe on different graphs.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/op/engine/rewriter.h"

namespace pfrt::contrib {

// The node is ai.onnx's |op| of |opset| (0: the newest) from here on, in canonical form.
Status replace_with(Rewriter& rewriter, std::string_view op, int64_t opset = 0);
// Removes attributes; the operator the node becomes does not have them.
void drop(Rewriter& rewriter, std::initializer_list<std::string_view> names);

// Input |i|, or kNoId.
ValueId input(Rewriter& rewriter, size_t i);
// The element type of input |i|, which must be known.
Result<pfrt_dtype> dtype_of(Rewriter& rewriter, size_t i);
// Input |i| as a scalar; a run fails when it has more than one element. kNoId when it is absent.
Result<ValueId> scalar_input(Rewriter& rewriter, size_t i);
// |value| with permuted dimensions, by a node before this one.
Result<ValueId> permuted(Rewriter& rewriter, ValueId value, std::vector<int64_t> perm);
Result<ValueId> cast(Rewriter& rewriter, ValueId value, pfrt_dtype to);

// The rank of input |i| from its shape, or from |fallback| (0: none), or an error.
Result<size_t> known_rank(Rewriter& rewriter, size_t i, size_t fallback = 0);
// [N, spatial..., C] to [N, C, spatial...] and back.
std::vector<int64_t> to_channels_first(size_t rank);
std::vector<int64_t> to_channels_last(size_t rank);

// What a fused operator does to its result; parameters not given have the activation's defaults.
struct Activation {
  std::string name;                         // empty: nothing
  std::optional<float> alpha, beta, gamma;  // Clip's min and max are alpha and beta
};
// Applies it to this node's output, of type |dtype|.
Status activate_after(Rewriter& rewriter, const Activation& activation, pfrt_dtype dtype);

// Scale and zero point of a whole tensor.
struct Parameters {
  ValueId scale = kNoId, zero = kNoId;
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;  // of the quantized tensor
};
// From inputs |scale| and |zero| (which may be absent).
Result<Parameters> parameters(Rewriter& rewriter, size_t scale, size_t zero, pfrt_dtype dtype);
// (x - zero) * scale, by a node before this one.
Result<ValueId> dequantized(Rewriter& rewriter, ValueId x, const Parameters& p);
// Likewise of inputs |x|, |scale| and |zero|.
Result<ValueId> dequantized(Rewriter& rewriter, size_t x, size_t scale, size_t zero);
// x / scale, rounded, + zero, by a node before this one or after it.
Result<ValueId> quantized(Rewriter& rewriter, ValueId x, const Parameters& p);
Status quantize_after(Rewriter& rewriter, const Parameters& p);

}  // namespace pfrt::contrib

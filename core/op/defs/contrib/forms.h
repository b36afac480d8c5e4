// SPDX-License-Identifier: Apache-2.0
//
// Shared parts of the canonical forms of com.microsoft operators: a node becomes operators of
// ai.onnx, so that passes, kernels and fusions know one spelling. Each function edits the node of
// its Rewriter; thread-safe on different graphs.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/op/engine/rewriter.h"

namespace pfrt::contrib {

// Makes the node ai.onnx's |op| of |opset| (0: the newest), in canonical form.
Status replace_with(Rewriter& rewriter, std::string_view op, int64_t opset = 0);
// Removes attributes that the operator that the node becomes does not have.
void drop(Rewriter& rewriter, std::initializer_list<std::string_view> names);

// Input |i|, or kNoId.
ValueId input(Rewriter& rewriter, size_t i);
// The element type of input |i|, which must be known.
Result<pfrt_dtype> dtype_of(Rewriter& rewriter, size_t i);
// Input |i| as a scalar; a run fails when it has several elements. kNoId when it is absent.
Result<ValueId> scalar_input(Rewriter& rewriter, size_t i);
// Permutes the dimensions of |value|, by a node before this one.
Result<ValueId> permuted(Rewriter& rewriter, ValueId value, std::vector<int64_t> perm);
Result<ValueId> cast(Rewriter& rewriter, ValueId value, pfrt_dtype to);

// The rank of input |i| by its shape, or else |fallback| (0: none), or an error.
Result<size_t> known_rank(Rewriter& rewriter, size_t i, size_t fallback = 0);
// Permutations from [N, spatial..., C] to [N, C, spatial...] and back.
std::vector<int64_t> to_channels_first(size_t rank);
std::vector<int64_t> to_channels_last(size_t rank);

// The activation of a fused operator; absent parameters have the activation's defaults.
struct Activation {
  std::string name;                         // empty: none
  std::optional<float> alpha, beta, gamma;  // Clip's min and max are alpha and beta
};
// Applies the activation to this node's output, of type |dtype|.
Status activate_after(Rewriter& rewriter, const Activation& activation, pfrt_dtype dtype);

// Scale and zero point of a whole tensor.
struct Parameters {
  ValueId scale = kNoId, zero = kNoId;
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;  // of the quantized tensor
};
// Takes scale and zero point from inputs |scale| and |zero|; the latter may be absent.
Result<Parameters> parameters(Rewriter& rewriter, size_t scale, size_t zero, pfrt_dtype dtype);
// Computes (x - zero) * scale, by a node before this one.
Result<ValueId> dequantized(Rewriter& rewriter, ValueId x, const Parameters& p);
// Dequantizes input |x| with inputs |scale| and |zero|.
Result<ValueId> dequantized(Rewriter& rewriter, size_t x, size_t scale, size_t zero);
// Computes round(x / scale) + zero, by a node before this one or after it.
Result<ValueId> quantized(Rewriter& rewriter, ValueId x, const Parameters& p);
Status quantize_after(Rewriter& rewriter, const Parameters& p);

}  // namespace pfrt::contrib

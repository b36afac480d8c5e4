// SPDX-License-Identifier: Apache-2.0
//
// Rules that several operator families share: attribute defaults, axes, element types, and what two
// types have in common. Pure but for the Rewriter or Inference they are given; thread-safe on
// different graphs.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/op/engine/inference.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {

// The value an absent attribute of |op| stands for.
struct AttrDefault {
  std::string_view op, name;
  pfrt_attr_type type;  // FLOAT or INT
  double value;
};

// Writes out the defaults of the node's operator and drops "consumed_inputs"; an attribute of
// another type is a fault.
Status fill_defaults(Rewriter& rewriter, std::span<const AttrDefault> defaults);
// Writes attribute |name| (|fallback| when absent) as an axis of input 0, non-negative where the
// rank is known.
Status canonical_axis(Rewriter& rewriter, std::string_view name, int64_t fallback);
// A constant list of axes of input 0 at input |i| becomes int64, non-negative and without
// repetition.
Status canonical_axes(Rewriter& rewriter, size_t i);

// A normalisation of X, input 0, whose scale and bias have another type, which is Y's too: all are
// cast to the wider type, and Y to theirs.
Status join_norm_types(Rewriter& rewriter);

// DTYPE_MISMATCH, prefixed with the node.
Status wrong_dtype(const Inference& inference, size_t input, pfrt_dtype expected);
// Input |i| is absent, not known yet, or of |dtype|.
Status expect_dtype(const Inference& inference, size_t i, pfrt_dtype dtype);
// Inputs [begin, end) that are present and known have one element type.
Status same_dtypes(const Inference& inference, size_t begin, size_t end);

// Output 0 has the type of input 0.
Status infer_same(Inference& inference);

// One operation an element of input 0; 0 where its dimensions are not known.
double flops_of_input(const Inference& inference);

}  // namespace pfrt

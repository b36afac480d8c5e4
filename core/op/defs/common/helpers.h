// SPDX-License-Identifier: Apache-2.0
//
// Rules that several operator families share: attribute defaults, axes, element types, and
// agreement of two types. They change only the Rewriter or Inference they are given; thread-safe on
// different graphs.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/op/engine/inference.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {

// The value that an absent attribute of |op| stands for.
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

// For a normalisation whose scale and bias have another type than X (input 0), which is also Y's:
// casts all to the wider type, and Y back to theirs.
Status join_norm_types(Rewriter& rewriter);

// A DTYPE_MISMATCH error, prefixed with the node.
Status wrong_dtype(const Inference& inference, size_t input, pfrt_dtype expected);
// Fails unless input |i| is absent, unknown, or of |dtype|.
Status expect_dtype(const Inference& inference, size_t i, pfrt_dtype dtype);
// Fails unless inputs [begin, end) that are present and known have one element type.
Status same_dtypes(const Inference& inference, size_t begin, size_t end);

// Gives output 0 the type of input 0.
Status infer_same(Inference& inference);

// Counts an operation for each element of input 0; 0 where its dimensions are unknown.
double flops_of_input(const Inference& inference);

}  // namespace pfrt

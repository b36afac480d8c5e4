// SPDX-License-Identifier: Apache-2.0
//
// Canonical forms of elementwise operators whose meaning or spelling changed between opsets. Each
// function edits the node of its Rewriter; thread-safe on different graphs.
#pragma once

#include "core/op/engine/rewriter.h"

namespace pfrt {

// Writes out attribute defaults, which is all that most operators need.
Status canonical_elementwise(Rewriter& rewriter);
// Before opset 7 input 1 was aligned by attributes "broadcast" and "axis".
Status canonical_legacy_broadcast(Rewriter& rewriter);
// Before opset 7 a slope had one element for each channel.
Status canonical_legacy_prelu(Rewriter& rewriter);
// Before opset 6 the defaults had fewer digits.
Status canonical_legacy_selu(Rewriter& rewriter);
// Before opset 11 the bounds were attributes.
Status canonical_legacy_clip(Rewriter& rewriter);
// Before opset 6 the type was named; since then it is a number. For BitCast too.
Status canonical_cast(Rewriter& rewriter);
// Makes CastLike a Cast.
Status canonical_cast_like(Rewriter& rewriter);
// Before opset 13 integers had an error function too: that of the real number, truncated.
Status canonical_integer_erf(Rewriter& rewriter);
Status canonical_gelu(Rewriter& rewriter);
Status canonical_bit_shift(Rewriter& rewriter);
// Makes the inference form: one input, and a mask that is true throughout. Training is refused.
Status canonical_dropout(Rewriter& rewriter);

}  // namespace pfrt

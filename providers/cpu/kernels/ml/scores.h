// SPDX-License-Identifier: Apache-2.0
//
// Applied to the scores of a model: the transforms of the standard, and the two scores that a
// single one stands for. Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "providers/kit/node.h"

namespace pfrt::cpu {

// The numbering of TreeEnsemble.
enum class PostTransform : uint8_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

// Attribute post_transform as a number (TreeEnsemble) or a word.
Result<PostTransform> post_transform_of(const SnapshotNode& node);

// A row of |n| scores, in place. T is float or double.
template <typename T>
void transform_scores(PostTransform post, T* scores, int64_t n);

// Gives both classes' scores from that of the positive class, with the conventions of ONNX Runtime:
// logistic scores are those of -s and s; without a transform they are -s and s where
// |signed_score|, else 1 - s and s. Other transforms leave 1 - s and s as they are. Probit, which
// ONNX Runtime computes for one of them only, is taken of both.
template <typename T>
void second_class(PostTransform post, bool signed_score, T score, T* both);

extern template void transform_scores(PostTransform, float*, int64_t);
extern template void transform_scores(PostTransform, double*, int64_t);
extern template void second_class(PostTransform, bool, float, float*);
extern template void second_class(PostTransform, bool, double, double*);

}  // namespace pfrt::cpu

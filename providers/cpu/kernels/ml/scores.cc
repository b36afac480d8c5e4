// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/ml/scores.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "providers/cpu/kernels/ml/ml.h"

namespace pfrt::cpu {
namespace {

constexpr std::string_view kWords[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};

template <typename T>
T logistic(T x) {
  const T positive = 1 / (1 + std::exp(-std::fabs(x)));
  return x < 0 ? 1 - positive : positive;
}

// Computes sqrt(2) erfinv(2 p - 1) with Winitzki's approximation of the inverse error function, the
// one of the standard's reference implementation.
template <typename T>
T probit(T p) {
  constexpr double kA = 0.147, kPi = 3.14159265358979323846;
  const T x = 2 * p - 1;
  const T log = std::log(1 - x * x);
  const T v = static_cast<T>(2 / (kPi * kA)) + log / 2;
  const T size = std::sqrt(std::sqrt(v * v - log / static_cast<T>(kA)) - v);
  return static_cast<T>(1.41421356237309504880) * (x < 0 ? -size : size);
}

template <typename T>
void softmax(T* s, int64_t n, bool keep_zeros) {
  const T most = *std::max_element(s, s + n);
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (keep_zeros && std::fabs(s[i]) <= T(1e-7)) {
      s[i] *= std::exp(-most);
      continue;
    }
    s[i] = std::exp(s[i] - most);
    sum += s[i];
  }
  for (int64_t i = 0; i < n; ++i) s[i] /= sum;
}

}  // namespace

Result<PostTransform> post_transform_of(const SnapshotNode& node) {
  const pfrt_snapshot_attr* attr = node.attr("post_transform");
  if (attr == nullptr) return PostTransform::kNone;
  if (attr->type == PFRT_ATTR_INT && attr->i >= 0 && attr->i < 5)
    return static_cast<PostTransform>(attr->i);
  const auto* word = std::find(std::begin(kWords), std::end(kWords), view(attr->s));
  if (attr->type != PFRT_ATTR_STRING || word == std::end(kWords))
    return attribute_error("post_transform", "is none of the standard's");
  return static_cast<PostTransform>(word - std::begin(kWords));
}

template <typename T>
void transform_scores(PostTransform post, T* scores, int64_t n) {
  switch (post) {
    case PostTransform::kNone:
      return;
    case PostTransform::kSoftmax:
    case PostTransform::kSoftmaxZero:
      return softmax(scores, n, post == PostTransform::kSoftmaxZero);
    case PostTransform::kLogistic:
      for (int64_t i = 0; i < n; ++i) scores[i] = logistic(scores[i]);
      return;
    case PostTransform::kProbit:
      for (int64_t i = 0; i < n; ++i) scores[i] = probit(scores[i]);
      return;
  }
}

template <typename T>
void second_class(PostTransform post, bool signed_score, T score, T* both) {
  both[1] = score;
  both[0] = signed_score || post == PostTransform::kLogistic ? -score : 1 - score;
  if (post == PostTransform::kLogistic || post == PostTransform::kProbit)
    transform_scores(post, both, 2);
}

template void transform_scores(PostTransform, float*, int64_t);
template void transform_scores(PostTransform, double*, int64_t);
template void second_class(PostTransform, bool, float, float*);
template void second_class(PostTransform, bool, double, double*);

}  // namespace pfrt::cpu

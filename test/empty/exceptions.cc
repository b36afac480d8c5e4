// SPDX-License-Identifier: Apache-2.0
#include "test/empty/exceptions.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace pfrt_empty {
namespace {

struct Exception {
  std::string_view op;
  std::string_view variant;  // empty: each
  std::string_view reason;
};

constexpr std::string_view kNoMean = "the mean of nothing is NaN, 0 / 0; the peer gives 0";
constexpr std::string_view kBias =
    "a sum of no products is 0, to which bias and zero point are added; the peer leaves them out";
constexpr std::string_view kBeta = "C counts beta times for any K; the peer takes it as it is";
constexpr std::string_view kCount =
    "an attribute of as many numbers as there are features contradicts none; the peer reads none";
constexpr std::string_view kBatch =
    "0 and 2 do not broadcast; the peer looks at no shape where there is nothing to compute";
constexpr std::string_view kAbsent =
    "an input without elements is not an absent one, as the peer takes it";
constexpr std::string_view kNoPixels = "nothing can be sampled from an image without pixels";

constexpr Exception kExceptions[] = {
    {"CropAndResize", "0.2", kNoPixels},
    {"CropAndResize", "0.3", kNoPixels},
    {"DynamicQuantizeMatMul", "0.2+1.0", kBias},
    {"DynamicTimeWarping", "", "no path leads through a matrix without elements"},
    {"EmbedLayerNormalization", "", "a table without rows has no row 0, whatever the batch"},
    {"FusedGemm", "0.0+1.1", kBeta},
    {"FusedMatMul", "0.3+1.1", "leading dimensions 1 and 3 broadcast to 3; the peer gives 1"},
    {"GatherND", "1.0", "one batch dimension is 2 in data and 0 in indices"},
    {"Gemm", "0.1+1.0", kBeta},
    {"GroupQueryAttention", "7.1+8.1", "rotation by tables without columns"},
    {"Imputer", "0.1", kCount},
    {"LinearClassifier", "0.1", kCount},
    {"LinearRegressor", "0.1", kCount},
    {"MatMulIntegerToFloat", "0.2+1.0", kBias},
    {"NegativeLogLikelihoodLoss", "", kNoMean},
    {"NonMaxSuppression", "", kAbsent},
    {"QAttention", "0.2+1.0", kBias},
    {"QEmbedLayerNormalization", "", "a table without rows has no row 0, whatever the batch"},
    {"QGemm", "", kBias},
    {"QLinearMatMul", "", kBias},
    {"ReduceLogSum", "", "a reduced dimension is kept as 1; the peer keeps its size"},
    {"ReduceMean", "", kNoMean},
    {"RotaryEmbedding", "0.2", "heads without elements have no number"},
    {"SkipLayerNormalization", "0.0", kBatch},
    {"SkipSimplifiedLayerNormalization", "0.0", kBatch},
    {"SoftmaxCrossEntropyLoss", "", kNoMean},
    {"Split", "1.0", kAbsent},
    {"Split", "0.0+1.0", kAbsent},
    {"Squeeze", "1.0", kAbsent},
};

}  // namespace

bool is_excepted(const NodeLine& node, const std::string& variant) {
  return std::any_of(std::begin(kExceptions), std::end(kExceptions), [&](const Exception& e) {
    return e.op == node.op && (e.variant.empty() || e.variant == variant);
  });
}

}  // namespace pfrt_empty

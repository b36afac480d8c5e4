// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/registry/empty.h"

#include <algorithm>

namespace pfrt::cpu {
namespace {

bool is_empty(std::span<const int64_t> dims) { return std::ranges::find(dims, 0) != dims.end(); }

struct Operator {
  std::string_view domain, op;
};

// Whose kernels call Run::fail for what their inputs hold: indices, lengths, axes, divisors.
constexpr Operator kChecking[] = {
    {"", "Attention"},
    {"", "Bernoulli"},
    {"", "Col2Im"},
    {"", "CumProd"},
    {"", "CumSum"},
    {"", "DFT"},
    {"", "Div"},
    {"", "Dropout"},
    {"", "GRU"},
    {"", "Gather"},
    {"", "GatherElements"},
    {"", "GatherND"},
    {"", "LSTM"},
    {"", "MaxRoiPool"},
    {"", "MaxUnpool"},
    {"", "MelWeightMatrix"},
    {"", "Mod"},
    {"", "Multinomial"},
    {"", "NegativeLogLikelihoodLoss"},
    {"", "OneHot"},
    {"", "Pad"},
    {"", "RNN"},
    {"", "Range"},
    {"", "Resize"},
    {"", "ReverseSequence"},
    {"", "RoiAlign"},
    {"", "RotaryEmbedding"},
    {"", "STFT"},
    {"", "ScatterElements"},
    {"", "ScatterND"},
    {"", "Slice"},
    {"", "SoftmaxCrossEntropyLoss"},
    {"", "TensorScatter"},
    {"ai.onnx.ml", "OneHotEncoder"},
    {"com.microsoft", "BifurcationDetector"},
    {"com.microsoft", "CropAndResize"},
    {"com.microsoft", "DynamicQuantizeLSTM"},
    {"com.microsoft", "GatherBlockQuantized"},
    {"com.microsoft", "GroupQueryAttention"},
    {"com.microsoft", "MatMulNBits"},
    {"com.microsoft", "NGramRepeatBlock"},
};

}  // namespace

bool has_empty(const SnapshotNode& node) {
  for (uint32_t i = 0; i < node.input_count(); ++i)
    if ((i == 0 || node.input_rank(i) > 1) && is_empty(node.input_dims(i))) return true;
  for (uint32_t i = 0; i < node.output_count(); ++i)
    if (node.has_output(i) && is_empty(node.output_dims(i))) return true;
  return false;
}

bool is_idle(const SnapshotNode& node) {
  for (uint32_t i = 0; i < node.output_count(); ++i)
    if (node.has_output(i) && node.output_elements(i) != 0) return false;
  return std::ranges::none_of(kChecking, [&](const Operator& known) {
    return known.op == node.op() && known.domain == node.domain();
  });
}

}  // namespace pfrt::cpu

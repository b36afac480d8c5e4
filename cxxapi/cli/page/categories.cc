// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/page/categories.h"

#include <algorithm>

namespace cli {
namespace {

// A category and its operators, as blank-separated names; "Reduce*" stands for all that begin so.
// The first match counts.
struct CategoryRow {
  Category category;
  std::string_view operators;
};

constexpr CategoryRow kRows[] = {
    {{"flow", "control flow, sequences"},
     "If Loop Scan Sequence* SplitToSequence ConcatFromSequence Optional*"},
    {{"quant", "quantisation"},
     "Quantize* Dequantize* DynamicQuantize* QLinear* QGemm QAttention MatMulInteger* ConvInteger "
     "MatMulNBits MatMulBnb4 DynamicQuantizeMatMul DynamicQuantizeLSTM GatherBlockQuantized "
     "QEmbedLayerNormalization"},
    {{"conv", "convolution"},
     "Conv ConvTranspose FusedConv NhwcConv NhwcFusedConv DeformConv Col2Im"},
    {{"product", "matrix product, attention"},
     "MatMul Gemm FusedMatMul FusedGemm TransposeMatMul GemmFloat8 Einsum Attention "
     "MultiHeadAttention GroupQueryAttention PackedAttention PackedMultiHeadAttention "
     "DecoderMaskedMultiHeadAttention SparseAttention RotaryEmbedding MoE QMoE Det"},
    {{"recurrent", "recurrent"}, "LSTM GRU RNN AttnLSTM"},
    {{"norm", "normalisation"},
     "BatchNormalization InstanceNormalization LayerNormalization SimplifiedLayerNormalization "
     "SkipLayerNormalization SkipSimplifiedLayerNormalization EmbedLayerNormalization "
     "GroupNormalization GroupNorm SkipGroupNorm RMSNormalization LpNormalization "
     "MeanVarianceNormalization LRN Softmax LogSoftmax Hardmax BiasSoftmax"},
    {{"pool", "pooling"},
     "MaxPool AveragePool LpPool Global* MaxUnpool RoiAlign MaxRoiPool NhwcMaxPool"},
    {{"act", "activation"},
     "Relu LeakyRelu PRelu Elu Selu Celu Gelu FastGelu BiasGelu QuickGelu HardSigmoid HardSwish "
     "Sigmoid "
     "Tanh Softplus Softsign Mish Swish ThresholdedRelu Shrink Clip Dropout"},
    {{"reduce", "reduction"}, "Reduce* ArgMax ArgMin TopK CumSum CumProd"},
    {{"math", "elementwise"},
     "Add Sub Mul Div Pow Sqrt Exp Log Abs Neg Reciprocal Floor Ceil Round Sign Erf Sin Cos Tan "
     "Asin "
     "Acos Atan Sinh Cosh Asinh Acosh Atanh Min Max Mean Sum Mod And Or Xor Not Equal Greater Less "
     "GreaterOrEqual LessOrEqual Where IsNaN IsInf Bitwise* BitShift Cast CastLike "
     "FusedElementwise"},
    {{"move", "shape and movement"},
     "Reshape Transpose Squeeze Unsqueeze Flatten Concat Split Slice Gather* Scatter* "
     "TensorScatter Expand Tile Pad "
     "Identity Shape Size Resize Upsample SpaceToDepth DepthToSpace ReverseSequence NonZero OneHot "
     "EyeLike Range ConstantOfShape Constant Compress Trilu CenterCropPad GridSample AffineGrid "
     "ReorderInput ReorderOutput Unique"},
};

}  // namespace

bool has_name(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    std::string_view word = names.substr(0, end);
    names.remove_prefix(std::min(end + 1, names.size()));
    const bool front = !word.empty() && word.back() == '*';
    if (front) word.remove_suffix(1);
    if (front ? name.substr(0, word.size()) == word : name == word) return true;
  }
  return false;
}

std::string_view category_of(std::string_view domain, std::string_view op) {
  const bool known = domain.empty() || domain == "ai.onnx" || domain == "com.microsoft";
  if (known) {
    for (const CategoryRow& row : kRows) {
      if (has_name(row.operators, op)) return row.category.name;
    }
  }
  return kOtherCategory;
}

std::vector<Category> categories() {
  std::vector<Category> out;
  out.reserve(std::size(kRows) + 2);
  for (const CategoryRow& row : kRows) out.push_back(row.category);
  out.push_back({kOtherCategory, "other"});
  out.push_back({kPortCategory, "input, output"});
  return out;
}

}  // namespace cli

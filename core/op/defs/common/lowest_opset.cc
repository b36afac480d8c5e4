// SPDX-License-Identifier: Apache-2.0
//
// The tables list what the standard added after kLowestOpset (after kLowestMl for ai.onnx.ml). A
// node that uses none of these additions means the same at that opset as at the newest.
#include "core/op/defs/common/lowest_opset.h"

#include <algorithm>

namespace pfrt {
namespace {

constexpr std::string_view kMl = "ai.onnx.ml";
constexpr int64_t kLowestMl = 3;

constexpr uint64_t bit(pfrt_dtype dtype) { return uint64_t{1} << dtype; }
constexpr uint64_t kBfloat16 = bit(PFRT_DTYPE_BFLOAT16);
constexpr uint64_t kHalves = kBfloat16 | bit(PFRT_DTYPE_FLOAT16);
constexpr uint64_t kFloat8 = bit(PFRT_DTYPE_FLOAT8E4M3FN) | bit(PFRT_DTYPE_FLOAT8E4M3FNUZ) |
                             bit(PFRT_DTYPE_FLOAT8E5M2) | bit(PFRT_DTYPE_FLOAT8E5M2FNUZ);
constexpr uint64_t kSubBytes = bit(PFRT_DTYPE_INT4) | bit(PFRT_DTYPE_UINT4) | bit(PFRT_DTYPE_INT2) |
                               bit(PFRT_DTYPE_UINT2) | bit(PFRT_DTYPE_FLOAT4E2M1);
constexpr uint64_t kInOptionals28 = kBfloat16 | kFloat8 | bit(PFRT_DTYPE_FLOAT8E8M0) | kSubBytes;
constexpr uint64_t kFloats = kHalves | bit(PFRT_DTYPE_FLOAT32) | bit(PFRT_DTYPE_FLOAT64);
constexpr uint64_t kSignedInts =
    bit(PFRT_DTYPE_INT8) | bit(PFRT_DTYPE_INT16) | bit(PFRT_DTYPE_INT32) | bit(PFRT_DTYPE_INT64);
constexpr uint64_t kInt16s = bit(PFRT_DTYPE_INT16) | bit(PFRT_DTYPE_UINT16);

struct Operator {
  std::string_view domain, op;
  int opset;
};

// Operators that are newer than the lowest opset, or whose canonical form was first possible at
// |opset|.
constexpr Operator kOperators[] = {
    {"", "DeformConv", 19},
    {"", "AffineGrid", 20},
    {"", "DFT", 20},
    {"", "Gelu", 20},
    {"", "GridSample", 20},
    {"", "ImageDecoder", 20},
    {"", "RegexFullMatch", 20},
    {"", "StringConcat", 20},
    {"", "StringSplit", 20},
    {"", "GroupNormalization", 21},
    {"", "Attention", 23},
    {"", "RMSNormalization", 23},
    {"", "RotaryEmbedding", 23},
    {"", "Swish", 24},
    {"", "TensorScatter", 24},
    {"", "BitCast", 26},
    {"", "CumProd", 26},
    {"", "CausalConvWithState", 27},
    {"", "LinearAttention", 27},
    {"", "SwiGLU", 28},
    {kMl, "TreeEnsemble", 5},
};

// Since |opset|, an input or output of |op| may have one of |dtypes|.
struct TypesOpset {
  std::string_view op;  // empty: every operator
  int opset;
  uint64_t dtypes;
};

constexpr TypesOpset kOpsetsOfTypes[] = {
    {"", 19, kFloat8},
    {"", 21, bit(PFRT_DTYPE_INT4) | bit(PFRT_DTYPE_UINT4)},
    {"", 23, bit(PFRT_DTYPE_FLOAT4E2M1)},
    {"", 24, bit(PFRT_DTYPE_FLOAT8E8M0)},
    {"", 25, bit(PFRT_DTYPE_INT2) | bit(PFRT_DTYPE_UINT2)},
    {"DequantizeLinear", 19, kHalves},
    {"Equal", 19, bit(PFRT_DTYPE_STRING)},
    {"QuantizeLinear", 19, kHalves | bit(PFRT_DTYPE_INT32)},
    {"ConstantOfShape", 20, kBfloat16 | kFloat8},
    {"IsInf", 20, kHalves | kFloat8},
    {"IsNaN", 20, kFloat8},
    {"ReduceMax", 20, bit(PFRT_DTYPE_BOOL)},
    {"ReduceMin", 20, bit(PFRT_DTYPE_BOOL)},
    {"DequantizeLinear", 21, kInt16s},
    {"Flatten", 21, kFloat8},
    {"Pad", 21, kFloat8},
    {"QLinearMatMul", 21, kHalves | kFloat8},
    {"QuantizeLinear", 21, kInt16s},
    {"Squeeze", 21, kFloat8},
    {"Transpose", 21, kFloat8},
    {"Unsqueeze", 21, kFloat8},
    {"Dropout", 22, kFloat8},
    {"SplitToSequence", 24, kBfloat16},
    {"TopK", 24, kBfloat16},
    {"Range", 27, kHalves},
    {"Compress", 28, kBfloat16},
    {"Einsum", 28, kBfloat16},
    {"OneHot", 28, kBfloat16},
    {"ReverseSequence", 28, kBfloat16},
    {"Unique", 28, kBfloat16},
    {"BitShift", 28, kSignedInts},
    {"Celu", 28, kHalves | bit(PFRT_DTYPE_FLOAT64)},
};

// Operators that take bfloat16 since opset 22.
constexpr std::string_view kBfloat16Since22[] = {
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "AveragePool",
    "Bernoulli",
    "Conv",
    "ConvTranspose",
    "Cos",
    "Cosh",
    "DeformConv",
    "Det",
    "Elu",
    "EyeLike",
    "GRU",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "GridSample",
    "HardSigmoid",
    "HardSwish",
    "InstanceNormalization",
    "LSTM",
    "LpNormalization",
    "LpPool",
    "MaxPool",
    "MaxRoiPool",
    "MaxUnpool",
    "Mish",
    "Multinomial",
    "NegativeLogLikelihoodLoss",
    "RNN",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "RoiAlign",
    "Round",
    "Selu",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Tan",
    "ThresholdedRelu",
};

struct Attr {
  std::string_view op, name;
  int opset;
  int64_t number;         // the value of an integer, or of each element of a list of integers
  std::string_view word;  // the value of a string
};

// Attributes that came with |opset|, each with its default. A node needs that opset if the
// attribute has any other value.
constexpr Attr kAttrs[] = {
    {"AveragePool", "dilations", 19, 1, ""},
    {"Cast", "saturate", 19, 1, ""},
    {"CastLike", "saturate", 19, 1, ""},
    {"QuantizeLinear", "saturate", 19, 1, ""},
    {"DequantizeLinear", "block_size", 21, 0, ""},
    {"QuantizeLinear", "block_size", 21, 0, ""},
    {"QuantizeLinear", "output_dtype", 21, 0, ""},
    {"DequantizeLinear", "output_dtype", 23, 0, ""},
    {"QuantizeLinear", "precision", 23, 0, ""},
    {"Cast", "round_mode", 24, 0, "up"},
    {"CastLike", "round_mode", 24, 0, "up"},
    {"Attention", "left_window_size", 25, -1, ""},
    {"Attention", "right_window_size", 25, -1, ""},
    {"Range", "stash_type", 27, 1, ""},
    {"SpaceToDepth", "mode", 28, 0, "DCR"},
};

// Values that came with |opset|, of attributes that are older. A node needs that opset if the
// attribute has this value.
constexpr Attr kMeanings[] = {
    {"Pad", "mode", 19, 0, "wrap"},
    {"Resize", "coordinate_transformation_mode", 19, 0, "half_pixel_symmetric"},
    // Since 22, no window begins in the padding at the end.
    {"AveragePool", "ceil_mode", 22, 1, ""},
    {"MaxPool", "ceil_mode", 22, 1, ""},
};

bool has_value(const Attribute& attr, const Attr& row) {
  switch (attr.type) {
    case PFRT_ATTR_INT:
      return attr.i == row.number;
    case PFRT_ATTR_INTS:
      return std::all_of(attr.ints.begin(), attr.ints.end(),
                         [&](int64_t i) { return i == row.number; });
    case PFRT_ATTR_STRING:
      return attr.s == row.word;
    default:
      return false;
  }
}

pfrt_dtype dtype_of(const Graph& graph, const Node& node, size_t input) {
  return node.has_input(input) ? graph.at(node.inputs[input]).type.dtype
                               : pfrt_dtype{PFRT_DTYPE_UNSET};
}

// The element types of all inputs and outputs, a bit each. Where one is not known all bits are set,
// since it may be any type.
uint64_t dtypes_of(const Graph& graph, const Node& node) {
  uint64_t dtypes = 0;
  for (const auto* list : {&node.inputs, &node.outputs}) {
    for (const ValueId value : *list) {
      if (value == kNoId) continue;
      const pfrt_dtype dtype = graph.at(value).type.dtype;
      dtypes |= dtype == PFRT_DTYPE_UNSET || dtype >= 64 ? UINT64_MAX : bit(dtype);
    }
  }
  return dtypes;
}

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

int64_t lowest_of_standard(const Graph& graph, const Node& node) {
  int64_t lowest = kLowestOpset;
  const auto needs = [&](bool yes, int64_t opset) { lowest = std::max(lowest, yes ? opset : 0); };
  const uint64_t dtypes = dtypes_of(graph, node);
  for (const TypesOpset& row : kOpsetsOfTypes)
    needs((row.op.empty() || row.op == node.op) && (dtypes & row.dtypes), row.opset);
  needs((dtypes & kBfloat16) && contains(kBfloat16Since22, node.op), 22);
  for (const Attr& row : kAttrs) {
    const Attribute* attr = row.op == node.op ? node.attr(row.name) : nullptr;
    needs(attr && !has_value(*attr, row), row.opset);
  }
  for (const Attr& row : kMeanings) {
    const Attribute* attr = row.op == node.op ? node.attr(row.name) : nullptr;
    needs(attr && has_value(*attr, row), row.opset);
  }
  needs(node.op == "Mod" && (dtypes & kFloats) && node.attr_int("fmod", 0) == 0, 28);
  // A value taken out of an optional may have no type here; it has that of the optional.
  if (node.op.starts_with("Optional")) {
    const ValueId held = node.has_input(0) ? node.inputs[0] : node.outputs[0];
    const pfrt_dtype dtype =
        held == kNoId ? pfrt_dtype{PFRT_DTYPE_UNSET} : graph.at(held).type.dtype;
    needs(dtype != PFRT_DTYPE_UNSET && dtype < 64 && (bit(dtype) & kInOptionals28), 28);
  }
  // Its input 6 is nonpad_kv_seqlen.
  needs(node.op == "Attention" && node.has_input(6), 24);
  // Before opset 23 the scale has the type of the input.
  needs(node.op == "QuantizeLinear" && dtype_of(graph, node, 0) != dtype_of(graph, node, 1), 23);
  return lowest;
}

int64_t lowest_of_ml(const Graph& graph, const Node& node) {
  if (node.op != "LabelEncoder") return kLowestMl;
  constexpr uint64_t kTypesOf4 =
      bit(PFRT_DTYPE_FLOAT64) | bit(PFRT_DTYPE_INT16) | bit(PFRT_DTYPE_INT32);
  const bool tensors =
      node.attr("keys_tensor") || node.attr("values_tensor") || node.attr("default_tensor");
  return tensors || (dtypes_of(graph, node) & kTypesOf4) ? 4 : kLowestMl;
}

}  // namespace

int64_t lowest_opset(const Graph& graph, const Node& node) {
  if (!node.domain.empty() && node.domain != kMl)
    return std::max<int64_t>(1, graph.opset(node.domain));
  int64_t lowest =
      node.domain.empty() ? lowest_of_standard(graph, node) : lowest_of_ml(graph, node);
  for (const Operator& row : kOperators)
    if (row.domain == node.domain && row.op == node.op)
      lowest = std::max<int64_t>(lowest, row.opset);
  return lowest;
}

void drop_newer_attributes(Node& node, int64_t opset) {
  if (!node.domain.empty()) return;
  for (const Attr& row : kAttrs)
    if (row.op == node.op && row.opset > opset) node.drop_attr(row.name);
}

}  // namespace pfrt

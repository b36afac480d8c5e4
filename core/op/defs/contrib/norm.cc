// SPDX-License-Identifier: Apache-2.0
//
// Normalisations and activations that com.microsoft fuses for transformers, rewritten as operators
// of ai.onnx; and MatMulNBits, a matmul with quantized weights.
#include "core/op/defs/common/chain.h"
#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/defs/contrib/transformer.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

// Makes the node the operator |op| of ai.onnx with |inputs| and |attrs|. It keeps only output 0:
// for the others, Chain::hand_over has been called.
Status replace_with(Rewriter& rewriter, Chain& chain, std::string_view op,
                    std::vector<ValueId> inputs, std::vector<Attribute> attrs) {
  PFRT_TRY(chain.status());
  Node& node = rewriter.node();
  while (inputs.size() > 1 && inputs.back() == kNoId) inputs.pop_back();
  std::vector<ValueId> outputs = node.outputs;
  if (!outputs.empty()) outputs.resize(1);
  rewriter.graph().set_outputs(node.id, std::move(outputs));
  node.domain.clear();
  node.op = op;
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  return {};
}

std::vector<Attribute> norm_attrs(float epsilon) {
  return {Attribute::of_int("axis", -1), Attribute::of_float("epsilon", epsilon),
          Attribute::of_int("stash_type", PFRT_DTYPE_FLOAT32)};
}

// Attributes for a normalisation of the last axis, in canonical form: the axis is not negative
// where the rank is known.
Status norm_attrs_of(Rewriter& rewriter, float fallback, std::vector<Attribute>* attrs) {
  PFRT_TRY(fill_float(rewriter, "epsilon", fallback));
  *attrs = norm_attrs(rewriter.node().attr_float("epsilon", fallback));
  if (rewriter.has_shape(0) && rewriter.rank(0) > 0)
    attrs->front().i = static_cast<int64_t>(rewriter.rank(0)) - 1;
  return {};
}

// ------------------------------------------------------------------------------- normalisations

// Normalises X + skip (+ bias); the sum is output 3.
Status skip_norm(Rewriter& rewriter, std::string_view norm, size_t beta, size_t bias) {
  std::vector<Attribute> attrs;
  PFRT_TRY(norm_attrs_of(rewriter, 1e-12f, &attrs));
  const bool layer = norm == "LayerNormalization";
  for (size_t i : {1u, 2u})
    if (rewriter.node().has_output(i) && !layer)
      return rewriter.unsupported("output ", i,
                                  " exists in training only; export the model for inference");
  Chain chain(rewriter);
  // Sum adds all three inputs before it rounds. Two Adds round twice, which shows in types of 16
  // bits.
  const bool rounds_once = chain.in(bias) != kNoId && rewriter.input(0).dtype != PFRT_DTYPE_FLOAT32;
  const ValueId sum = rounds_once
                          ? chain.op("Sum", {chain.in(0), chain.in(1), chain.in(bias)})
                          : chain.add_if(chain.add(chain.in(0), chain.in(1)), chain.in(bias));
  chain.hand_over(3, sum);
  std::vector<ValueId> inputs = {sum, chain.in(2)};
  if (layer) inputs.push_back(chain.in(beta));
  if (layer && (rewriter.node().has_output(1) || rewriter.node().has_output(2))) {
    PFRT_TRY(chain.status());
    if (inputs.back() == kNoId) inputs.pop_back();
    const std::vector<ValueId> made = chain.ops(norm, 3, inputs, attrs);
    for (size_t i = 0; i < 3; ++i) chain.hand_over(i, made[i]);
    return chain.replace();
  }
  return replace_with(rewriter, chain, norm, std::move(inputs), std::move(attrs));
}

Status canonical_skip_layer_norm(Rewriter& rewriter) {
  return skip_norm(rewriter, "LayerNormalization", 3, 4);
}
Status canonical_skip_simplified(Rewriter& rewriter) {
  return skip_norm(rewriter, "RMSNormalization", SIZE_MAX, 3);
}

// SimplifiedLayerNormalization is ONNX Runtime's name for RMSNormalization. Models have it in the
// domain of ai.onnx too. Output 1 is the inverse of the root mean square.
Status canonical_simplified(Rewriter& rewriter) {
  PFRT_TRY(fill_float(rewriter, "epsilon", 1e-5f));
  PFRT_TRY(fill_int(rewriter, "stash_type", PFRT_DTYPE_FLOAT32));
  PFRT_TRY(canonical_axis(rewriter, "axis", -1));
  const int64_t axis = rewriter.node().attr_int("axis", -1);
  const float epsilon = rewriter.node().attr_float("epsilon", 1e-5f);
  std::vector<Attribute> attrs = norm_attrs(epsilon);
  attrs[0].i = axis;
  attrs[2].i = rewriter.node().attr_int("stash_type", PFRT_DTYPE_FLOAT32);
  Chain chain(rewriter);
  if (rewriter.node().has_output(1)) {
    if (!rewriter.has_shape(0))
      return rewriter.unsupported("output 1 needs an input of known rank");
    std::vector<int64_t> axes;
    for (int64_t i = axis; i < static_cast<int64_t>(rewriter.rank(0)); ++i) axes.push_back(i);
    const pfrt_dtype stash = static_cast<pfrt_dtype>(attrs[2].i);
    const ValueId x = chain.cast(chain.in(0), stash);
    const ValueId mean =
        chain.op("ReduceMean", {chain.op("Mul", {x, x}), chain.int64s(axes)},
                 {Attribute::of_int("keepdims", 1), Attribute::of_int("noop_with_empty_axes", 0)});
    const ValueId shifted = chain.add(mean, chain.scalar(stash, static_cast<double>(epsilon)));
    chain.hand_over(1, chain.op("Reciprocal", {chain.op("Sqrt", {shifted})}));
  }
  PFRT_TRY(replace_with(rewriter, chain, "RMSNormalization", {chain.in(0), chain.in(1)},
                        std::move(attrs)));
  return join_norm_types(rewriter);
}

// Reads inputs 2 to 6 of an embedding: numbers, or bytes with a scale and a zero point each.
class EmbeddingInputs {
 public:
  EmbeddingInputs(Rewriter& rewriter, Chain& chain, bool quantized)
      : rewriter_(rewriter), chain_(chain), quantized_(quantized) {}

  // The rows |indices| of input |i|; bytes are fetched before they become numbers.
  Result<ValueId> rows(size_t i, ValueId indices) {
    const ValueId found =
        chain_.op("Gather", {chain_.in(i), indices}, {Attribute::of_int("axis", 0)});
    PFRT_TRY(chain_.status());
    return numbers(i, found);
  }
  // The complete input |i|, or kNoId where it is absent.
  Result<ValueId> whole(size_t i) {
    const ValueId value = chain_.in(i);
    return value == kNoId ? Result<ValueId>(value) : numbers(i, value);
  }

 private:
  Result<ValueId> numbers(size_t i, ValueId value) {
    if (!quantized_) return value;
    constexpr size_t kScales = 6, kZeros = 11;  // distances to input |i|
    if (chain_.in(i + kScales) == kNoId)
      return rewriter_.fail("input ", i + kScales, ", a scale, is absent");
    std::vector<ValueId> inputs{value, scalar(i + kScales)};
    if (chain_.in(i + kZeros) != kNoId) inputs.push_back(scalar(i + kZeros));
    const ValueId out = chain_.op("DequantizeLinear", std::move(inputs),
                                  {Attribute::of_int("axis", 1), Attribute::of_int("block_size", 0),
                                   Attribute::of_int("output_dtype", 0)});
    PFRT_TRY(chain_.status());
    return out;
  }
  // Input |i|, of one element, as a scalar.
  ValueId scalar(size_t i) {
    return chain_.op("Reshape", {chain_.in(i), chain_.int64s({})},
                     {Attribute::of_int("allowzero", 0)});
  }
  Rewriter& rewriter_;
  Chain& chain_;
  bool quantized_;
};

// Adds up rows of the word, position and segment embeddings and normalises the sum. Output 1 counts
// the ones in each row of the mask.
Status embed(Rewriter& rewriter, bool quantized) {
  PFRT_TRY(fill_float(rewriter, "epsilon", 1e-12f));
  PFRT_TRY(fill_int(rewriter, "mask_index_type", 0));
  Chain chain(rewriter);
  const ValueId ids = chain.in(0);
  if (ids == kNoId || chain.in(2) == kNoId || chain.in(3) == kNoId || chain.in(5) == kNoId)
    return rewriter.fail("needs input_ids, word_embedding, position_embedding and gamma");
  if ((chain.in(1) == kNoId) != (chain.in(4) == kNoId))
    return rewriter.fail("segment_ids and segment_embedding must be given together");
  EmbeddingInputs inputs(rewriter, chain, quantized);
  const ValueId given = quantized ? kNoId : chain.in(8);
  const ValueId positions = given != kNoId ? given : chain.range(chain.size(ids, 1));
  PFRT_ASSIGN(const ValueId words, inputs.rows(2, ids));
  PFRT_ASSIGN(const ValueId places, inputs.rows(3, positions));
  ValueId sum = chain.add(words, places);
  if (chain.in(1) != kNoId) {
    PFRT_ASSIGN(const ValueId segments, inputs.rows(4, chain.in(1)));
    sum = chain.add(sum, segments);
  }
  PFRT_ASSIGN(const ValueId gamma, inputs.whole(5));
  PFRT_ASSIGN(const ValueId beta, inputs.whole(6));
  if (rewriter.node().has_output(1)) {
    if (chain.in(7) != kNoId) {
      const ValueId ones = chain.op("Equal", {chain.in(7), chain.scalar(PFRT_DTYPE_INT32, 1)});
      chain.hand_over(
          1, chain.op(
                 "ReduceSum", {chain.cast(ones, PFRT_DTYPE_INT32), chain.int64s({1})},
                 {Attribute::of_int("keepdims", 0), Attribute::of_int("noop_with_empty_axes", 0)}));
    } else {
      chain.hand_over(1,
                      chain.op("Expand", {chain.scalar(PFRT_DTYPE_INT32, 0), chain.size(ids, 0)}));
    }
  }
  chain.hand_over(2, sum);
  std::vector<Attribute> attrs = norm_attrs(rewriter.node().attr_float("epsilon", 1e-12f));
  attrs.front().i = 2;
  return replace_with(rewriter, chain, "LayerNormalization", {sum, gamma, beta}, std::move(attrs));
}
Status canonical_embed(Rewriter& rewriter) { return embed(rewriter, false); }
Status canonical_quantized_embed(Rewriter& rewriter) { return embed(rewriter, true); }

// ----------------------------------------------------------------------------------- activations

Status gelu(Rewriter& rewriter, std::string_view approximate) {
  Chain chain(rewriter);
  const ValueId x = chain.add_if(chain.in(0), chain.in(1));
  return replace_with(rewriter, chain, "Gelu", {x},
                      {Attribute::of_string("approximate", std::string(approximate))});
}
Status canonical_gelu_of_sum(Rewriter& rewriter) { return gelu(rewriter, "none"); }
Status canonical_fast_gelu(Rewriter& rewriter) { return gelu(rewriter, "tanh"); }

// Computes x * sigmoid(alpha * x).
Status canonical_quick_gelu(Rewriter& rewriter) {
  PFRT_TRY(fill_float(rewriter, "alpha", 1.702f));
  Chain chain(rewriter);
  return replace_with(rewriter, chain, "Swish", {chain.in(0)},
                      {Attribute::of_float("alpha", rewriter.node().attr_float("alpha", 1.702f))});
}

// --------------------------------------------------------------------------------- MatMulNBits

constexpr AttrDefault kNBitsDefaults[] = {
    {"MatMulNBits", "bits", PFRT_ATTR_INT, 4},
    {"MatMulNBits", "accuracy_level", PFRT_ATTR_INT, 0},
};

Status canonical_matmul_nbits(Rewriter& rewriter) {
  PFRT_TRY(fill_defaults(rewriter, kNBitsDefaults));
  for (std::string_view name : {"K", "N", "block_size", "bits"}) {
    const Attribute* attr = rewriter.node().attr(name);
    if (!attr) return rewriter.fail("attribute '", name, "' is absent");
    if (attr->type != PFRT_ATTR_INT || attr->i < 1)
      return rewriter.fail("attribute '", name, "' is ", attr->i, ", needs 1 or more");
  }
  return {};
}

Status infer_matmul_nbits(Inference& in) {
  const pfrt_dtype dtype = in.input(0).dtype;
  if (!in.has_shape(0)) {
    in.set_output_unknown_shape(0, dtype);
    return {};
  }
  PFRT_TRY(expect_rank_at_least(in, 0, 1));
  Shape y = in.shape(0);
  const int64_t depth = in.node().attr_int("K", 0);
  if (y.back().known() && y.back().value() != depth)
    return in.fail("A has shape ", in.symbols().text(y), ", its last dimension must be K, ", depth);
  y.back() = in.node().attr_int("N", 0);
  in.set_output(0, dtype, std::move(y));
  return {};
}

double matmul_nbits_flops(const Inference& in) {
  const double columns = static_cast<double>(in.node().attr_int("N", 0));
  return in.has_shape(0) ? 2 * elements(in.shape(0)) * columns : 0;
}

constexpr OperatorDef kTransformerNormOperators[] = {
    {kMs, "SkipLayerNormalization", 1, 0, 3, 5, 1, 4, kOpPlain, 0, canonical_skip_layer_norm,
     nullptr, nullptr},
    {kMs, "SkipSimplifiedLayerNormalization", 1, 0, 3, 4, 1, 4, kOpPlain, 0,
     canonical_skip_simplified, nullptr, nullptr},
    {"", "SimplifiedLayerNormalization", 1, 0, 2, 2, 1, 2, kOpPlain, 0, canonical_simplified,
     nullptr, nullptr},
    {kMs, "SimplifiedLayerNormalization", 1, 0, 2, 2, 1, 2, kOpPlain, 0, canonical_simplified,
     nullptr, nullptr},
    {kMs, "EmbedLayerNormalization", 1, 0, 1, 9, 1, 3, kOpPlain, 0, canonical_embed, nullptr,
     nullptr},
    {kMs, "QEmbedLayerNormalization", 1, 0, 1, 18, 1, 2, kOpPlain, 0, canonical_quantized_embed,
     nullptr, nullptr},
    {kMs, "MatMulNBits", 1, 0, 3, 6, 1, 1, kOpPlain, 0, canonical_matmul_nbits, infer_matmul_nbits,
     matmul_nbits_flops},
    {kMs, "Gelu", 1, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_gelu_of_sum, nullptr, nullptr},
    {kMs, "BiasGelu", 1, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_gelu_of_sum, nullptr, nullptr},
    {kMs, "FastGelu", 1, 0, 1, 2, 1, 1, kOpPlain, 0, canonical_fast_gelu, nullptr, nullptr},
    {kMs, "QuickGelu", 1, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_quick_gelu, nullptr, nullptr},
};

}  // namespace

std::span<const OperatorDef> transformer_norm_operators() { return kTransformerNormOperators; }

}  // namespace pfrt

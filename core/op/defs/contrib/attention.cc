// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft's Attention, its quantized form and MultiHeadAttention in terms of ai.onnx.
#include <limits>

#include "core/op/defs/common/chain.h"
#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/defs/contrib/transformer.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

// ------------------------------------------------------------------------------------------ masks

// Inputs for the mask of a node: numbers of queries and keys, and what may be seen.
struct MaskInputs {
  size_t mask, bias;  // indices of the node's inputs
  ValueId queries;    // number of queries, int64 [1]
  ValueId past;       // number of past keys, int64 [1]; kNoId for none
  ValueId keys;       // number of keys, past ones included
  ValueId batch;      // int64 [1]
  bool causal;
  float filter;      // added to scores that the mask takes away
  pfrt_dtype dtype;  // of the scores
};

// The range [begin, end) of each batch, from a list of ends, or of ends and then beginnings.
ValueId ranges_mask(Chain& chain, ValueId mask, const MaskInputs& m) {
  const ValueId zero = chain.int64s({0}), axis = chain.int64s({0});
  const ValueId wide = chain.cast(mask, PFRT_DTYPE_INT64);
  const ValueId ends = chain.op("Slice", {wide, zero, m.batch, axis, chain.int64s({1})});
  // Without beginnings the slice takes the zeros appended here.
  const ValueId longer = chain.concat({wide, chain.op("Expand", {zero, m.batch})}, 0);
  const ValueId begins =
      chain.op("Slice", {longer, m.batch, chain.add(m.batch, m.batch), axis, chain.int64s({1})});
  const ValueId key = chain.unsqueeze(chain.range(m.keys), {0});
  const ValueId before_end = chain.op("Less", {key, chain.unsqueeze(ends, {1})});
  const ValueId after_begin = chain.op("GreaterOrEqual", {key, chain.unsqueeze(begins, {1})});
  return chain.op("And", {before_end, after_begin});
}

// The lowest number where key j comes after query i; |bias| elsewhere.
ValueId with_causal(Chain& chain, ValueId bias, const MaskInputs& m, pfrt_dtype dtype) {
  ValueId query = chain.range(m.queries);
  if (m.past != kNoId) query = chain.add(query, m.past);
  const ValueId seen = chain.op(
      "LessOrEqual", {chain.unsqueeze(chain.range(m.keys), {0}), chain.unsqueeze(query, {1})});
  const double lowest = static_cast<double>(std::numeric_limits<float>::lowest());
  return chain.where(seen, bias, chain.scalar(dtype, lowest));
}

// The sum of mask and bias to add to each score; kNoId for none. |is_causal| tells whether
// Attention itself must apply causality.
Result<ValueId> score_bias(Rewriter& rewriter, Chain& chain, const MaskInputs& m, bool* is_causal) {
  *is_causal = m.causal;
  const ValueId mask = chain.in(m.mask), bias = chain.in(m.bias);
  if (mask == kNoId) return bias;
  const pfrt_dtype dtype = m.dtype;
  if (dtype == PFRT_DTYPE_UNSET || !rewriter.has_shape(m.mask))
    return rewriter.unsupported("the mask's rank and the input's type must be known");
  const size_t rank = rewriter.rank(m.mask);
  const Shape dims = rewriter.input(m.mask).shape;
  if (rank < 1 || rank > 3)
    return rewriter.unsupported(
        "a mask of rank ", rank,
        " is not supported; ONNX Runtime's CPU provider takes 1 to 3 as well");
  if (rank == 2 && dims[1].is(1)) return bias;  // a placeholder: a single key always counts
  const ValueId kept = rank == 1 ? ranges_mask(chain, mask, m)
                                 : chain.op("Greater", {mask, chain.scalar(PFRT_DTYPE_INT32, 0)});
  const ValueId shaped =
      chain.unsqueeze(kept, rank == 3 ? std::vector<int64_t>{1} : std::vector<int64_t>{1, 2});
  ValueId sum = chain.where(shaped, chain.scalar(dtype, 0),
                            chain.scalar(dtype, static_cast<double>(m.filter)));
  // If the filter is as low as the causal mask, a row that is wholly masked sees keys of both kinds
  // alike.
  if (m.causal && m.filter <= std::numeric_limits<float>::lowest() / 2) {
    sum = with_causal(chain, sum, m, dtype);
    *is_causal = false;
  }
  return chain.add_if(sum, bias);
}

std::vector<Attribute> attention_attrs(const Node& node, int64_t q_heads, int64_t kv_heads,
                                       bool causal) {
  std::vector<Attribute> attrs = {
      Attribute::of_int("is_causal", causal ? 1 : 0), Attribute::of_float("softcap", 0),
      Attribute::of_int("qk_matmul_output_mode", 2), Attribute::of_int("left_window_size", -1),
      Attribute::of_int("right_window_size", -1)};
  if (q_heads) {
    attrs.push_back(Attribute::of_int("q_num_heads", q_heads));
    attrs.push_back(Attribute::of_int("kv_num_heads", kv_heads));
  }
  if (const float scale = node.attr_float("scale", 0); scale != 0)
    attrs.push_back(Attribute::of_float("scale", scale));
  return attrs;
}

// ------------------------------------------------------------------------------ Attention

// Inputs of the node after those of the projection.
struct AttentionInputs {
  size_t mask, bias, past;
  pfrt_dtype dtype;  // of the projection
};

Status check_ms_attention(Rewriter& rewriter) {
  PFRT_TRY(check_heads(rewriter, "num_heads"));
  PFRT_TRY(fill_float(rewriter, "mask_filter_value", -10000));
  PFRT_TRY(fill_float(rewriter, "scale", 0));
  PFRT_TRY(fill_int(rewriter, "unidirectional", 0));
  for (std::string_view name : {"do_rotary", "past_present_share_buffer"})
    PFRT_TRY(refuse_attr(rewriter, name));
  const std::vector<int64_t>* sizes = rewriter.node().attr_ints("qkv_hidden_sizes");
  if (sizes && !sizes->empty() && sizes->size() != 3)
    return rewriter.fail("attribute 'qkv_hidden_sizes' has ", sizes->size(), " entries, needs 3");
  return {};
}

// Attends over |projected|, which has queries, keys and values side by side; past and present join
// keys and values.
Status attend(Rewriter& rewriter, Chain& chain, ValueId projected, const AttentionInputs& inputs) {
  const Node& node = rewriter.node();
  const std::vector<int64_t>* sizes = node.attr_ints("qkv_hidden_sizes");
  const int64_t heads = node.attr_int("num_heads", 1);
  const ValueId x = chain.in(0), past = chain.in(inputs.past);
  const std::vector<ValueId> qkv =
      sizes && !sizes->empty()
          ? chain.ops("Split", 3, {projected, chain.int64s(*sizes)}, {Attribute::of_int("axis", 2)})
          : chain.ops("Split", 3, {projected},
                      {Attribute::of_int("axis", 2), Attribute::of_int("num_outputs", 3)});
  const ValueId past_k = past == kNoId ? kNoId : chain.pick(past, 0, 0);
  const ValueId past_v = past == kNoId ? kNoId : chain.pick(past, 1, 0);
  MaskInputs m{inputs.mask,
               inputs.bias,
               kNoId,
               kNoId,
               kNoId,
               kNoId,
               node.attr_int("unidirectional", 0) != 0,
               node.attr_float("mask_filter_value", -10000),
               inputs.dtype};
  if (rewriter.has_input(inputs.mask)) {
    m.queries = m.keys = chain.size(x, 1);
    m.batch = chain.size(x, 0);
    if (past != kNoId) m.past = chain.size(past, 3), m.keys = chain.add(m.keys, m.past);
  }
  bool causal = false;
  PFRT_ASSIGN(const ValueId bias, score_bias(rewriter, chain, m, &causal));
  const bool present = node.has_output(1) || past != kNoId;
  const std::vector<ValueId> made = chain.ops(
      "Attention", present ? 3 : 1, trimmed({qkv[0], qkv[1], qkv[2], bias, past_k, past_v}),
      attention_attrs(node, heads, heads, causal));
  chain.hand_over(0, made[0]);
  if (node.has_output(1))
    chain.hand_over(
        1, chain.concat({chain.unsqueeze(made[1], {0}), chain.unsqueeze(made[2], {0})}, 0));
  return chain.replace();
}

Status canonical_ms_attention(Rewriter& rewriter) {
  PFRT_TRY(check_ms_attention(rewriter));
  PFRT_TRY(refuse_input(rewriter, 6, "past_sequence_length"));
  Chain chain(rewriter);
  const ValueId projected =
      chain.add_if(chain.op("MatMul", {chain.in(0), chain.in(1)}), chain.in(2));
  return attend(rewriter, chain, projected, {3, 5, 4, rewriter.input(0).dtype});
}

// The projection is a product of integers with scales on both sides.
Status canonical_qattention(Rewriter& rewriter) {
  PFRT_TRY(check_ms_attention(rewriter));
  for (size_t i : {2u, 3u, 4u})
    if (!rewriter.has_input(i))
      return rewriter.fail("needs the inputs bias, input_scale and weight_scale");
  const pfrt_dtype dtype = rewriter.input(3).dtype;
  if (dtype == PFRT_DTYPE_UNSET)
    return rewriter.unsupported("the type of input_scale must be known");
  Chain chain(rewriter);
  const ValueId product =
      chain.op("MatMulInteger", trimmed({chain.in(0), chain.in(1), chain.in(6), chain.in(7)}));
  const ValueId scale = chain.op("Mul", {chain.in(3), chain.in(4)});
  const ValueId projected =
      chain.add(chain.op("Mul", {chain.cast(product, dtype), scale}), chain.in(2));
  return attend(rewriter, chain, projected, {5, SIZE_MAX, 8, dtype});
}

// ---------------------------------------------------------------------- MultiHeadAttention

// Part |i| of the projections' bias, with the width of |x|.
ValueId bias_part(Chain& chain, ValueId bias, const std::vector<ValueId>& widths, size_t i) {
  if (bias == kNoId) return kNoId;
  ValueId from = chain.int64s({0});
  for (size_t k = 0; k < i; ++k) from = chain.add(from, widths[k]);
  return chain.op("Slice",
                  {bias, from, chain.add(from, widths[i]), chain.int64s({0}), chain.int64s({1})});
}

Status check_multi_head(Rewriter& rewriter) {
  PFRT_TRY(check_heads(rewriter, "num_heads"));
  PFRT_TRY(fill_float(rewriter, "mask_filter_value", -10000));
  PFRT_TRY(fill_float(rewriter, "scale", 0));
  PFRT_TRY(fill_int(rewriter, "unidirectional", 0));
  PFRT_TRY(refuse_input(rewriter, 8, "past_sequence_length"));
  PFRT_TRY(refuse_input(rewriter, 9, "cache_indirection"));
  for (size_t i : {0u, 1u, 2u})
    if (rewriter.has_shape(i) && rewriter.rank(i) == 5)
      return rewriter.unsupported(
          "input ", i, " holds packed projections (rank 5), which is for GPUs; export them apart");
  if (!rewriter.has_input(1) || !rewriter.has_input(2))
    return rewriter.fail("key and value are needed");
  if (!rewriter.has_shape(1)) return rewriter.unsupported("the rank of the key must be known");
  if (rewriter.has_input(6) != rewriter.has_input(7))
    return rewriter.fail("past_key and past_value must be given together");
  return {};
}

Status canonical_multi_head(Rewriter& rewriter) {
  PFRT_TRY(check_multi_head(rewriter));
  const Node& node = rewriter.node();
  const int64_t heads = node.attr_int("num_heads", 1);
  const bool split = rewriter.rank(1) == 4;  // keys and values are divided by head, from a cache
  Chain chain(rewriter);
  ValueId q = chain.in(0), k = chain.in(1), v = chain.in(2);
  const ValueId bias = chain.in(3), past = chain.in(6);
  MaskInputs m{4,
               5,
               kNoId,
               kNoId,
               kNoId,
               kNoId,
               node.attr_int("unidirectional", 0) != 0,
               node.attr_float("mask_filter_value", -10000),
               rewriter.input(0).dtype};
  if (rewriter.has_input(4)) {
    m.queries = chain.size(q, 1), m.keys = chain.size(k, split ? 2 : 1);
    m.batch = chain.size(q, 0);
    if (past != kNoId) m.past = chain.size(past, 2), m.keys = chain.add(m.keys, m.past);
  }
  if (bias != kNoId) {
    const ValueId width = chain.size(q, 2);
    const std::vector<ValueId> widths = {width, width, split ? kNoId : chain.size(v, 2)};
    q = chain.add(q, bias_part(chain, bias, widths, 0));
    if (!split) {
      k = chain.add(k, bias_part(chain, bias, widths, 1));
      v = chain.add(v, bias_part(chain, bias, widths, 2));
    }
  }
  if (split) q = chain.transpose(chain.reshape(q, {0, 0, heads, -1}), {0, 2, 1, 3});
  bool causal = false;
  PFRT_ASSIGN(const ValueId scores, score_bias(rewriter, chain, m, &causal));
  std::vector<Attribute> attrs =
      attention_attrs(node, split ? 0 : heads, split ? 0 : heads, causal);
  const std::vector<ValueId> made =
      chain.ops("Attention",
                node.has_output(3)                         ? 4
                : node.outputs.size() > 1 || past != kNoId ? 3
                                                           : 1,
                trimmed({q, k, v, scores, past, chain.in(7)}), std::move(attrs));
  ValueId y = made[0];
  if (split) y = chain.reshape(chain.transpose(y, {0, 2, 1, 3}), {0, 0, -1});
  chain.hand_over(0, y);
  for (size_t i = 1; i < made.size(); ++i) chain.hand_over(i, made[i]);
  return chain.replace();
}

constexpr OperatorDef kTransformerAttentionOperators[] = {
    {kMs, "Attention", 1, 0, 2, 7, 1, 2, kOpPlain, 0, canonical_ms_attention, nullptr, nullptr},
    {kMs, "QAttention", 1, 0, 5, 9, 1, 2, kOpPlain, 0, canonical_qattention, nullptr, nullptr},
    {kMs, "MultiHeadAttention", 1, 0, 1, 10, 1, 4, kOpPlain, 0, canonical_multi_head, nullptr,
     nullptr},
};

}  // namespace

std::span<const OperatorDef> transformer_attention_operators() {
  return kTransformerAttentionOperators;
}

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft's GroupQueryAttention after its projections are divided and rotated,
// RotaryEmbedding in terms of ai.onnx, and operators for devices or complete decoders, which are
// refused.
#include "core/op/defs/common/chain.h"
#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/defs/contrib/transformer.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {

Status check_heads(Rewriter& rewriter, std::string_view name) {
  const Attribute* attr = rewriter.node().attr(name);
  if (!attr) return rewriter.fail("attribute '", name, "' is absent");
  if (attr->type != PFRT_ATTR_INT || attr->i < 1 || attr->i > kMostHeads)
    return rewriter.fail("attribute '", name, "' is ", attr->i, ", needs to lie in [1, ",
                         kMostHeads, "]");
  return {};
}

Status refuse_attr(Rewriter& rewriter, std::string_view name) {
  if (rewriter.node().attr_int(name, 0) == 0) return {};
  return rewriter.unsupported("attribute '", name,
                              "' is set, which is for GPUs; export without it");
}
Status refuse_input(Rewriter& rewriter, size_t i, std::string_view name) {
  if (!rewriter.has_input(i)) return {};
  return rewriter.unsupported("input ", i, ", ", name, ", is for GPUs; export without it");
}

std::vector<ValueId> trimmed(std::vector<ValueId> inputs) {
  while (!inputs.empty() && inputs.back() == kNoId) inputs.pop_back();
  return inputs;
}

namespace {

// --------------------------------------------------------------------- GroupQueryAttention

// Positions of the queries, [batch, length]: those after the past, if there is one.
ValueId query_positions(Chain& chain, ValueId query, ValueId seqlens, ValueId total) {
  const ValueId length = chain.size(query, 1);
  const ValueId keys =
      chain.add(chain.reshape(chain.cast(seqlens, PFRT_DTYPE_INT64), {-1}), chain.int64s({1}));
  const ValueId first =
      chain.op("Equal", {length, chain.reshape(chain.cast(total, PFRT_DTYPE_INT64), {1})});
  const ValueId past = chain.where(first, chain.int64s({0}), chain.op("Sub", {keys, length}));
  return chain.add(chain.unsqueeze(past, {1}), chain.range(length));
}

Status canonical_group_query(Rewriter& rewriter) {
  for (std::string_view name : {"num_heads", "kv_num_heads"}) PFRT_TRY(check_heads(rewriter, name));
  for (std::string_view name : {"scale", "softcap"}) PFRT_TRY(fill_float(rewriter, name, 0));
  for (std::string_view name : {"do_rotary", "rotary_interleaved", "smooth_softmax", "qk_output"})
    PFRT_TRY(fill_int(rewriter, name, 0));
  PFRT_TRY(fill_int(rewriter, "local_window_size", -1));
  Node& node = rewriter.node();
  for (std::string_view name : {"k_quant_type", "v_quant_type"})
    if (node.attr_string(name, "NONE") != "NONE")
      return rewriter.unsupported("attribute '", name, "' is set; quantized caches are for GPUs");
  if (rewriter.has_input(3) != rewriter.has_input(4))
    return rewriter.fail("past_key and past_value must be given together");
  if (!rewriter.has_input(5) || !rewriter.has_input(6))
    return rewriter.fail("needs the inputs seqlens_k and total_sequence_length");
  if (node.attr_int("qk_output", 0) < 0 || node.attr_int("qk_output", 0) > 2)
    return rewriter.fail("attribute 'qk_output' is ", node.attr_int("qk_output", 0),
                         ", expected 0, 1 or 2");
  const int64_t heads = node.attr_int("num_heads", 1), kv_heads = node.attr_int("kv_num_heads", 1);
  Chain chain(rewriter);
  std::vector<ValueId> qkv = {chain.in(0), chain.in(1), chain.in(2)};
  if (qkv[1] == kNoId) {
    if (qkv[2] != kNoId || !rewriter.has_shape(0) || rewriter.rank(0) != 3 ||
        !rewriter.input(0).shape[2].known())
      return rewriter.unsupported(
          "packed projections need a known number of columns, and no value input");
    const int64_t parts = heads + 2 * kv_heads, columns = rewriter.input(0).shape[2].value();
    if (columns % parts != 0)
      return rewriter.fail(columns, " columns do not divide into ", parts, " heads");
    const int64_t head = columns / parts;
    qkv = chain.ops("Split", 3,
                    {qkv[0], chain.int64s({heads * head, kv_heads * head, kv_heads * head})},
                    {Attribute::of_int("axis", 2)});
  }
  if (node.attr_int("do_rotary", 0) != 0) {
    if (!rewriter.has_input(7) || !rewriter.has_input(8))
      return rewriter.fail("do_rotary needs the inputs cos_cache and sin_cache");
    const Dim half =
        rewriter.has_shape(7) && rewriter.rank(7) == 2 ? rewriter.input(7).shape[1] : Dim();
    if (!half.known()) return rewriter.unsupported("the columns of cos_cache must be known");
    const ValueId positions = rewriter.has_input(9)
                                  ? chain.cast(chain.in(9), PFRT_DTYPE_INT64)
                                  : query_positions(chain, qkv[0], chain.in(5), chain.in(6));
    for (size_t i : {0u, 1u})
      qkv[i] = chain.op("RotaryEmbedding", {qkv[i], chain.in(7), chain.in(8), positions},
                        {Attribute::of_int("interleaved", node.attr_int("rotary_interleaved", 0)),
                         Attribute::of_int("rotary_embedding_dim", 2 * half.value()),
                         Attribute::of_int("num_heads", i == 0 ? heads : kv_heads)});
  }
  PFRT_TRY(chain.status());
  for (size_t i : {0u, 1u, 2u}) rewriter.set_input(i, qkv[i]);
  for (size_t i : {7u, 8u, 9u})
    if (rewriter.has_input(i)) rewriter.set_input(i, kNoId);
  node.inputs = trimmed(std::move(node.inputs));
  for (std::string_view name :
       {"do_rotary", "rotary_interleaved", "k_quant_type", "v_quant_type", "kv_cache_bit_width"})
    node.drop_attr(name);
  // Keys and values are joined in the present outputs.
  std::vector<ValueId> outputs = node.outputs;
  outputs.resize(std::max<size_t>(outputs.size(), 3), kNoId);
  for (size_t i : {1u, 2u})
    if (outputs[i] == kNoId) outputs[i] = rewriter.graph().fresh("present");
  rewriter.graph().set_outputs(node.id, std::move(outputs));
  return {};
}

Status infer_group_query(Inference& in) {
  const pfrt_dtype dtype = in.input(0).dtype;
  PFRT_TRY(same_dtypes(in, 0, 5));
  for (size_t i : {5u, 6u})
    if (in.input(i).dtype && in.input(i).dtype != PFRT_DTYPE_INT32)
      return wrong_dtype(in, i, PFRT_DTYPE_INT32);
  for (size_t i : {0u, 1u, 2u}) PFRT_TRY(expect_rank(in, i, 3));
  for (size_t i : {3u, 4u}) PFRT_TRY(expect_rank(in, i, 4));
  if (!in.has_shape(0)) {
    for (size_t i : {0u, 1u, 2u, 3u}) in.set_output_unknown_shape(i, dtype);
    return {};
  }
  const int64_t heads = in.node().attr_int("num_heads", 1);
  const int64_t kv_heads = in.node().attr_int("kv_num_heads", 1);
  if (heads % kv_heads != 0)
    return in.fail(heads, " query heads are not a multiple of ", kv_heads, " key heads");
  const Shape q = in.shape(0);
  if (q[2].known() && q[2].value() % heads != 0)
    return in.fail("the ", q[2].value(), " columns of the query do not divide into ", heads,
                   " heads");
  const Dim head = in.symbols().floor_div(q[2], heads);
  const Shape kv = {q[0], q[1], in.symbols().mul(head, kv_heads)};
  for (size_t i : {1u, 2u}) PFRT_TRY(expect_shape(in, i, kv));
  const std::optional<Shape> given = in.data(6);
  const Dim total = given && given->size() == 1 ? given->front() : Dim();
  if (total.known() && total.value() < 0)
    return in.fail("total_sequence_length is ", total.value(), ", needs 0 or more");
  Dim room = in.has_input(3) ? in.has_shape(3) ? in.shape(3)[2] : Dim() : Dim(0);
  for (size_t i : {3u, 4u}) PFRT_TRY(expect_shape(in, i, {q[0], Dim(kv_heads), room, head}));
  const Dim present = in.symbols().max(room, total);
  in.set_output(0, dtype, q);
  for (size_t i : {1u, 2u}) in.set_output(i, dtype, {q[0], Dim(kv_heads), present, head});
  in.set_output(3, dtype, {q[0], Dim(heads), q[1], total});
  return {};
}

double group_query_flops(const Inference& in) {
  if (!in.has_shape(0) || !in.output(1).has_shape || in.rank(0) != 3) return 0;
  return 4 * elements(in.shape(0)) * elements(in.output(1).shape, 2, 3);
}

// ------------------------------------------------------------------------- RotaryEmbedding

// ai.onnx's operator has the inputs in another order; a single position stands for all that follow
// it.
Status canonical_ms_rotary(Rewriter& rewriter) {
  for (std::string_view name :
       {"interleaved", "num_heads", "rotary_embedding_dim", "is_packed_batching"})
    PFRT_TRY(fill_int(rewriter, name, 0));
  PFRT_TRY(fill_float(rewriter, "scale", 1));
  PFRT_TRY(refuse_attr(rewriter, "is_packed_batching"));
  Node& node = rewriter.node();
  if (node.attr_float("scale", 1) != 1)
    return rewriter.unsupported("attribute 'scale' is ", node.attr_float("scale", 1),
                                ", which is for GPUs; expected 1");
  if (!rewriter.has_shape(0) || !rewriter.has_shape(1) || !rewriter.has_shape(2))
    return rewriter.unsupported("the ranks of input, position_ids and cos_cache must be known");
  const size_t rank = rewriter.rank(0);
  if ((rank != 3 && rank != 4) || rewriter.rank(2) != 2)
    return rewriter.fail("the input has rank ", rank, ", cos_cache ", rewriter.rank(2),
                         "; expected 3 or 4, and 2");
  const Dim half = rewriter.input(2).shape[1], columns = rewriter.input(0).shape.back();
  int64_t heads = node.attr_int("num_heads", 0);
  if (rank == 3 && heads == 0) {  // the cache gives the width of a head
    if (!half.known() || !columns.known() || half.value() < 1 ||
        columns.value() % (2 * half.value()) != 0)
      return rewriter.fail("num_heads is absent and does not follow from the dimensions");
    heads = columns.value() / (2 * half.value());
  }
  if (heads < 0 || heads > kMostHeads)
    return rewriter.fail("attribute 'num_heads' is ", heads, ", which makes no sense");
  Chain chain(rewriter);
  ValueId positions = chain.in(1);
  if (rewriter.rank(1) < 2) {
    const ValueId x = chain.in(0), length = chain.size(x, static_cast<int64_t>(rank) - 2);
    const ValueId row = chain.add(chain.range(length), chain.reshape(positions, {1}));
    positions = chain.op("Expand", {row, chain.concat({chain.size(x, 0), length}, 0)});
  }
  PFRT_TRY(chain.status());
  node.inputs = {node.inputs[0], node.inputs[2], node.inputs[3], positions};
  node.domain.clear();
  node.drop_attr("scale");
  node.drop_attr("is_packed_batching");
  if (rank == 3)
    node.set_attr(Attribute::of_int("num_heads", heads));
  else
    node.drop_attr("num_heads");
  return {};
}

// --------------------------------------------------------------------------------- refused

Status refuse_packed(Rewriter& rewriter) {
  return rewriter.unsupported(
      "runs on GPUs only, for batches without padding; export the model with Attention or "
      "MultiHeadAttention (optimise it without packing or GPU fusions)");
}

Status refuse_decoder(Rewriter& rewriter) {
  return rewriter.unsupported(
      "holds a whole decoding loop, which this runtime leaves to the application; export the "
      "decoder alone (without the beam search or sampling step of the converter) and call it once "
      "a token");
}

#define PFRT_REFUSED(name, why) \
  { kMs, name, 1, 0, 0, -1, 1, -1, kOpRefused, 0, why, nullptr, nullptr }

constexpr OperatorDef kTransformerGroupOperators[] = {
    {kMs, "GroupQueryAttention", 1, 0, 1, 14, 1, 4, kOpPlain, 1u << 6, canonical_group_query,
     infer_group_query, group_query_flops},
    {kMs, "RotaryEmbedding", 1, 0, 4, 4, 1, 1, kOpPlain, 0, canonical_ms_rotary, nullptr, nullptr},
    PFRT_REFUSED("PackedAttention", refuse_packed),
    PFRT_REFUSED("PackedMultiHeadAttention", refuse_packed),
    PFRT_REFUSED("RemovePadding", refuse_packed),
    PFRT_REFUSED("RestorePadding", refuse_packed),
    PFRT_REFUSED("PagedAttention", refuse_packed),
    PFRT_REFUSED("LongformerAttention", refuse_packed),
    PFRT_REFUSED("BeamSearch", refuse_decoder),
    PFRT_REFUSED("GreedySearch", refuse_decoder),
    PFRT_REFUSED("Sampling", refuse_decoder),
    PFRT_REFUSED("WhisperBeamSearch", refuse_decoder),
};

#undef PFRT_REFUSED

}  // namespace

std::span<const OperatorDef> transformer_group_operators() { return kTransformerGroupOperators; }

}  // namespace pfrt

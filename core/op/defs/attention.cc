// SPDX-License-Identifier: Apache-2.0
//
// Operators of transformers and of the recurrent layers that replace them: Attention,
// RotaryEmbedding, TensorScatter, CausalConvWithState, LinearAttention, SwiGLU.
#include <algorithm>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

constexpr AttrDefault kAttentionDefaults[] = {
    {"Attention", "is_causal", PFRT_ATTR_INT, 0},
    {"Attention", "softcap", PFRT_ATTR_FLOAT, 0},
    {"Attention", "qk_matmul_output_mode", PFRT_ATTR_INT, 0},
    {"Attention", "left_window_size", PFRT_ATTR_INT, -1},
    {"Attention", "right_window_size", PFRT_ATTR_INT, -1},
    {"RotaryEmbedding", "interleaved", PFRT_ATTR_INT, 0},
    {"RotaryEmbedding", "rotary_embedding_dim", PFRT_ATTR_INT, 0},
    {"LinearAttention", "scale", PFRT_ATTR_FLOAT, 0},
    {"LinearAttention", "chunk_size", PFRT_ATTR_INT, 64},
};

constexpr int64_t kMostHeads = 1 << 20;

// The number of heads, which is attribute |name|.
Result<Dim> heads_of(const Inference& inference, std::string_view name) {
  const Attribute* attr = inference.node().attr(name);
  if (!attr) return inference.fail("attribute '", name, "' is absent; inputs of rank 3 need it");
  if (attr->type != PFRT_ATTR_INT || attr->i < 1 || attr->i > kMostHeads)
    return inference.fail("attribute '", name, "' is ", attr->i, ", needs to lie in [1, ",
                          kMostHeads, "]");
  return Dim(attr->i);
}

// Elements of each of |heads| in rows of |size|.
Result<Dim> head_size(const Inference& inference, Dim size, Dim heads, std::string_view what) {
  if (size.known() && heads.known() && size.value() % heads.value() != 0)
    return inference.fail("the ", size.value(), " columns of ", what, " do not divide into ",
                          heads.value(), " heads");
  return inference.symbols().floor_div(size, heads);
}

// ------------------------------------------------------------------------------------ Attention

bool is_one_of(int64_t value, std::initializer_list<int64_t> list) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

Status check_attributes(Rewriter& rewriter) {
  const Node& node = rewriter.node();
  const int64_t mode = node.attr_int("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    return rewriter.fail("attribute 'qk_matmul_output_mode' is ", mode, ", expected 0 to 3");
  for (std::string_view name : {"left_window_size", "right_window_size"})
    if (node.attr_int(name, -1) < -1)
      return rewriter.fail("attribute '", name, "' is ", node.attr_int(name, -1),
                           ", expected -1 (no bound) or more");
  if (!(node.attr_float("softcap", 0) >= 0))
    return rewriter.fail("attribute 'softcap' is ", node.attr_float("softcap", 0),
                         ", expected 0 (none) or more");
  const Attribute* precision = node.attr("softmax_precision");
  if (precision && !is_one_of(precision->i, {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16,
                                             PFRT_DTYPE_FLOAT64, PFRT_DTYPE_BFLOAT16}))
    return rewriter.fail("attribute 'softmax_precision' is ", precision->i,
                         ", expected 1, 10, 11 or 16 (a floating-point type)");
  return {};
}

// Adds both present outputs when either is there or there is a past: the past is joined to keys and
// values there.
Status add_presents(Rewriter& rewriter) {
  Graph& graph = rewriter.graph();
  std::vector<ValueId> outputs = rewriter.node().outputs;
  if (outputs.size() < 3) outputs.resize(3, kNoId);
  for (size_t i : {1u, 2u})
    if (outputs[i] == kNoId) outputs[i] = graph.fresh(i == 1 ? "present_key" : "present_value");
  graph.set_outputs(rewriter.node().id, std::move(outputs));
  return {};
}

Status canonical_attention(Rewriter& rewriter) {
  PFRT_TRY(fill_defaults(rewriter, kAttentionDefaults));
  PFRT_TRY(check_attributes(rewriter));
  Node& node = rewriter.node();
  if (rewriter.has_input(4) != rewriter.has_input(5))
    return rewriter.fail("past_key and past_value must be given together");
  const bool present = node.has_output(1) || node.has_output(2);
  if (rewriter.has_input(6) && (rewriter.has_input(4) || present))
    return rewriter.fail(
        "nonpad_kv_seqlen is for a cache outside the operator; it excludes past and present keys "
        "and values");
  for (std::string_view name : {"q_num_heads", "kv_num_heads"}) {
    if (!node.attr(name) || !rewriter.has_shape(0) || rewriter.rank(0) != 4) continue;
    if (rewriter.opset() >= 25)
      return rewriter.fail("attribute '", name,
                           "' is for inputs of rank 3; the query has rank 4 and says it itself");
    node.drop_attr(name);
  }
  return rewriter.has_input(4) || present ? add_presents(rewriter) : Status();
}

// Dimensions in the shapes of an Attention.
struct AttentionDims {
  Dim batch, q_heads, kv_heads, q_len, kv_len, past, total, head, v_head;
};

Result<AttentionDims> attention_dims(const Inference& in) {
  AttentionDims d;
  const size_t rank = in.rank(0);
  if (rank != 3 && rank != 4) return in.fail("the query has rank ", rank, ", expected 3 or 4");
  PFRT_TRY(expect_rank(in, 1, rank));
  PFRT_TRY(expect_rank(in, 2, rank));
  const Shape &q = in.shape(0), &k = in.shape(1), &v = in.shape(2);
  PFRT_ASSIGN(d.batch, same_dim(in, q[0], k[0], "the batches of query and key"));
  PFRT_ASSIGN(d.batch, same_dim(in, d.batch, v[0], "the batches of query and value"));
  Dim k_head;
  if (rank == 3) {
    PFRT_ASSIGN(d.q_heads, heads_of(in, "q_num_heads"));
    PFRT_ASSIGN(d.kv_heads, heads_of(in, "kv_num_heads"));
    PFRT_ASSIGN(d.head, head_size(in, q[2], d.q_heads, "the query"));
    PFRT_ASSIGN(k_head, head_size(in, k[2], d.kv_heads, "the key"));
    PFRT_ASSIGN(d.v_head, head_size(in, v[2], d.kv_heads, "the value"));
  } else {
    d.q_heads = q[1];
    PFRT_ASSIGN(d.kv_heads, same_dim(in, k[1], v[1], "the heads of key and value"));
    d.head = q[3], k_head = k[3], d.v_head = v[3];
  }
  PFRT_ASSIGN(d.head, same_dim(in, d.head, k_head, "the head sizes of query and key"));
  const size_t at = rank == 3 ? 1 : 2;
  d.q_len = q[at];
  PFRT_ASSIGN(d.kv_len, same_dim(in, k[at], v[at], "the lengths of key and value"));
  if (d.q_heads.known() && d.kv_heads.known() &&
      (d.kv_heads.is(0) ? !d.q_heads.is(0) : d.q_heads.value() % d.kv_heads.value() != 0))
    return in.fail(d.q_heads.value(), " query heads are not a multiple of ", d.kv_heads.value(),
                   " key heads");
  PFRT_TRY(expect_rank(in, 4, 4));
  d.past = !in.has_input(4) ? Dim(0) : in.has_shape(4) ? in.shape(4)[2] : Dim();
  d.total = in.symbols().add(d.past, d.kv_len);
  PFRT_TRY(expect_shape(in, 4, {d.batch, d.kv_heads, d.past, d.head}));
  PFRT_TRY(expect_shape(in, 5, {d.batch, d.kv_heads, d.past, d.v_head}));
  PFRT_TRY(expect_shape(in, 6, {d.batch}));
  return d;
}

// The mask broadcasts to the scores, except that its last dimension may be shorter.
Status check_mask(const Inference& in, const AttentionDims& d) {
  if (!in.has_shape(3)) return {};
  const Shape &mask = in.shape(3), scores = {d.batch, d.q_heads, d.q_len, d.total};
  bool fits = mask.size() >= 1 && mask.size() <= 4;
  for (size_t i = 0; fits && i < mask.size(); ++i) {
    const Dim have = mask[mask.size() - 1 - i], want = scores[3 - i];
    if (!have.known() || !want.known() || have == want) continue;
    fits = i == 0 ? have.value() < want.value() : have.is(1);
  }
  if (fits) return {};
  return in.fail("the mask has shape ", in.symbols().text(mask),
                 ", which does not broadcast to the scores of shape ", in.symbols().text(scores));
}

Status infer_attention(Inference& in) {
  PFRT_TRY(same_dtypes(in, 0, 2));
  const pfrt_dtype dtype = in.input(0).dtype, v_dtype = in.input(2).dtype;
  for (size_t i : {4u, 5u}) {
    const pfrt_dtype wanted = i == 4 ? dtype : v_dtype;
    if (in.has_input(i) && in.input(i).dtype && wanted && in.input(i).dtype != wanted)
      return wrong_dtype(in, i, wanted);
  }
  if (in.has_input(6) && in.input(6).dtype && in.input(6).dtype != PFRT_DTYPE_INT64)
    return wrong_dtype(in, 6, PFRT_DTYPE_INT64);
  if (!in.has_shape(0) || !in.has_shape(1) || !in.has_shape(2)) {
    for (size_t i : {0u, 1u, 3u}) in.set_output_unknown_shape(i, dtype);
    in.set_output_unknown_shape(2, v_dtype);
    return {};
  }
  PFRT_ASSIGN(const AttentionDims d, attention_dims(in));
  PFRT_TRY(check_mask(in, d));
  in.set_output(0, dtype,
                in.rank(0) == 3 ? Shape{d.batch, d.q_len, in.symbols().mul(d.q_heads, d.v_head)}
                                : Shape{d.batch, d.q_heads, d.q_len, d.v_head});
  in.set_output(1, dtype, {d.batch, d.kv_heads, d.total, d.head});
  in.set_output(2, v_dtype, {d.batch, d.kv_heads, d.total, d.v_head});
  in.set_output(3, dtype, {d.batch, d.q_heads, d.q_len, d.total});
  return {};
}

// Counts two for a multiply-add of both products, and about 20 for a score.
double attention_flops(const Inference& in) {
  for (size_t i : {0u, 1u, 2u})
    if (!in.has_shape(i) || in.rank(i) < 3) return 0;
  const Result<AttentionDims> dims = attention_dims(in);
  if (!dims.ok()) return 0;
  const AttentionDims& d = dims.value();
  const Shape scores = {d.batch, d.q_heads, d.q_len, d.total};
  return elements(scores) * (2 * elements({d.head}) + 2 * elements({d.v_head}) + 20);
}

// ------------------------------------------------------------------------------ RotaryEmbedding

Status canonical_rotary(Rewriter& rewriter) { return fill_defaults(rewriter, kAttentionDefaults); }

Status infer_rotary(Inference& in) {
  PFRT_TRY(same_dtypes(in, 0, 3));
  if (in.has_input(3) && in.input(3).dtype && in.input(3).dtype != PFRT_DTYPE_INT64)
    return wrong_dtype(in, 3, PFRT_DTYPE_INT64);
  PFRT_TRY(infer_same(in));
  if (!in.has_shape(0)) return {};
  const size_t rank = in.rank(0);
  if (rank != 3 && rank != 4) return in.fail("the input has rank ", rank, ", expected 3 or 4");
  const Dim batch = in.shape(0)[0], length = in.shape(0)[rank - 2];
  Dim head = in.shape(0).back();
  if (rank == 3) {
    PFRT_ASSIGN(const Dim heads, heads_of(in, "num_heads"));
    PFRT_ASSIGN(head, head_size(in, head, heads, "the input"));
  }
  const int64_t asked = in.node().attr_int("rotary_embedding_dim", 0);
  if (asked < 0 || asked % 2 != 0 || (head.known() && asked > head.value()))
    return in.fail("attribute 'rotary_embedding_dim' is ", asked,
                   ", expected an even number up to the head size",
                   head.known() ? message(" of ", head.value()) : std::string());
  const Dim rotated = asked ? Dim(asked) : head;
  if (rotated.known() && rotated.value() % 2 != 0)
    return in.fail("the head size ", rotated.value(), " is odd; rotation takes pairs");
  const Dim half = in.symbols().floor_div(rotated, 2);
  PFRT_TRY(expect_shape(in, 3, {batch, length}));
  for (size_t i : {1u, 2u}) {
    Shape wanted = in.has_input(3) ? Shape{Dim(), half} : Shape{batch, length, half};
    // Without positions the caches are broadcast to batch and sequence.
    for (size_t d = 0; d < 2 && in.has_shape(i) && in.rank(i) == 3; ++d)
      if (in.shape(i)[d].is(1)) wanted[d] = 1;
    PFRT_TRY(expect_shape(in, i, wanted));
  }
  return {};
}

// -------------------------------------------------------------------------------- TensorScatter

Status canonical_tensor_scatter(Rewriter& rewriter) {
  PFRT_TRY(fill_string(rewriter, "mode", "linear"));
  const std::string_view mode = rewriter.node().attr_string("mode", "");
  if (mode != "linear" && mode != "circular")
    return rewriter.fail("attribute 'mode' is '", mode, "', expected 'linear' or 'circular'");
  PFRT_TRY(canonical_axis(rewriter, "axis", -2));
  if (rewriter.has_shape(0) && rewriter.node().attr_int("axis", 0) == 0)
    return rewriter.fail("attribute 'axis' is 0, the batch; it names the sequence");
  return {};
}

Status infer_tensor_scatter(Inference& in) {
  PFRT_TRY(same_dtypes(in, 0, 2));
  if (in.has_input(2) && in.input(2).dtype && in.input(2).dtype != PFRT_DTYPE_INT64)
    return wrong_dtype(in, 2, PFRT_DTYPE_INT64);
  PFRT_TRY(infer_same(in));
  if (!in.has_shape(0)) return {};
  PFRT_ASSIGN(const int64_t axis, in.axis(in.node().attr_int("axis", -2), in.rank(0)));
  if (axis == 0) return in.fail("axis 0 is the batch; 'axis' names the sequence");
  PFRT_TRY(expect_shape(in, 2, {in.shape(0)[0]}));
  if (!in.has_shape(1)) return {};
  Shape wanted = in.shape(0);
  const size_t at = static_cast<size_t>(axis);
  wanted[at] = Dim();
  PFRT_TRY(expect_shape(in, 1, wanted));
  const Dim room = in.shape(0)[at], rows = in.shape(1)[at];
  if (room.known() && rows.known() && rows.value() > room.value())
    return in.fail("an update of ", rows.value(), " positions does not fit into a cache of ",
                   room.value());
  return {};
}

// -------------------------------------------------------------------------- CausalConvWithState

Status canonical_causal_conv(Rewriter& rewriter) {
  PFRT_TRY(fill_string(rewriter, "activation", "none"));
  const std::string activation(rewriter.node().attr_string("activation", ""));
  if (activation == "swish")  // another name for it
    rewriter.node().set_attr(Attribute::of_string("activation", "silu"));
  else if (activation != "silu" && activation != "none")
    return rewriter.fail("attribute 'activation' is '", activation,
                         "', expected 'none', 'silu' or 'swish'");
  return {};
}

Status infer_causal_conv(Inference& in) {
  PFRT_TRY(same_dtypes(in, 0, 4));
  PFRT_TRY(infer_same(in));
  PFRT_TRY(expect_rank(in, 0, 3));
  PFRT_TRY(expect_rank(in, 1, 3));
  Dim batch, channels, taps;
  if (in.has_shape(0)) batch = in.shape(0)[0], channels = in.shape(0)[1];
  if (in.has_shape(1)) taps = in.shape(1)[2];
  if (taps.is(0)) return in.fail("the kernel has no elements");
  PFRT_TRY(expect_shape(in, 1, {channels, Dim(1), taps}));
  PFRT_TRY(expect_shape(in, 2, {channels}));
  const Dim kept = in.symbols().sub(taps, 1);
  PFRT_TRY(expect_shape(in, 3, {batch, channels, kept}));
  in.set_output(1, in.input(0).dtype, {batch, channels, kept});
  return {};
}

double causal_conv_flops(const Inference& in) {
  if (!in.has_shape(0) || !in.has_shape(1) || in.rank(1) != 3) return 0;
  return 2 * elements(in.shape(0)) * elements(in.shape(1), 2);
}

// ------------------------------------------------------------------------------ LinearAttention

Status canonical_linear_attention(Rewriter& rewriter) {
  PFRT_TRY(fill_defaults(rewriter, kAttentionDefaults));
  PFRT_TRY(fill_string(rewriter, "update_rule", "gated_delta"));
  const std::string_view rule = rewriter.node().attr_string("update_rule", "");
  const bool gated = rule == "gated" || rule == "gated_delta";
  const bool delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    return rewriter.fail("attribute 'update_rule' is '", rule,
                         "', expected 'linear', 'gated', 'delta' or 'gated_delta'");
  if (rewriter.has_input(4) != gated)
    return rewriter.fail("update_rule '", rule, gated ? "' needs" : "' excludes",
                         " input 4, decay");
  if (rewriter.has_input(5) != delta)
    return rewriter.fail("update_rule '", rule, delta ? "' needs" : "' excludes", " input 5, beta");
  rewriter.node().drop_attr("chunk_size");  // the way a device divides the work, not the result
  return {};
}

Status infer_linear_attention(Inference& in) {
  PFRT_TRY(same_dtypes(in, 0, 3));
  const pfrt_dtype dtype = in.input(0).dtype;
  const pfrt_dtype state_dtype = in.has_input(3) ? in.input(3).dtype : dtype;
  for (size_t i : {4u, 5u})
    if (in.has_input(i) && in.input(i).dtype && dtype && in.input(i).dtype != dtype)
      return wrong_dtype(in, i, dtype);
  for (size_t i : {0u, 1u, 2u, 4u, 5u}) PFRT_TRY(expect_rank(in, i, 3));
  PFRT_TRY(expect_rank(in, 3, 4));
  PFRT_ASSIGN(const Dim q_heads, heads_of(in, "q_num_heads"));
  PFRT_ASSIGN(const Dim kv_heads, heads_of(in, "kv_num_heads"));
  if (q_heads.value() % kv_heads.value() != 0)
    return in.fail(q_heads.value(), " query heads are not a multiple of ", kv_heads.value(),
                   " key heads");
  if (!in.has_shape(0) || !in.has_shape(1) || !in.has_shape(2)) {
    in.set_output_unknown_shape(0, dtype);
    in.set_output_unknown_shape(1, state_dtype);
    return {};
  }
  const Dim batch = in.shape(0)[0], length = in.shape(0)[1];
  PFRT_ASSIGN(Dim d_k, head_size(in, in.shape(0)[2], q_heads, "the query"));
  PFRT_ASSIGN(const Dim k_size, head_size(in, in.shape(1)[2], kv_heads, "the key"));
  PFRT_ASSIGN(d_k, same_dim(in, d_k, k_size, "the head sizes of query and key"));
  PFRT_ASSIGN(const Dim d_v, head_size(in, in.shape(2)[2], kv_heads, "the value"));
  for (size_t i : {1u, 2u, 4u, 5u}) PFRT_TRY(expect_shape(in, i, {batch, length, Dim()}));
  PFRT_TRY(expect_shape(in, 3, {batch, kv_heads, d_k, d_v}));
  if (in.has_shape(4) && in.shape(4)[2].known() && !(in.shape(4)[2] == kv_heads))
    PFRT_TRY(expect_shape(in, 4, {batch, length, in.symbols().mul(kv_heads, d_k)}));
  if (in.has_shape(5) && !in.shape(5)[2].is(1))
    PFRT_TRY(expect_shape(in, 5, {batch, length, kv_heads}));
  in.set_output(0, dtype, {batch, length, in.symbols().mul(q_heads, d_v)});
  in.set_output(1, state_dtype, {batch, kv_heads, d_k, d_v});
  return {};
}

// Counts decay, correction, update and read of a matrix d_k x d_v a step.
double linear_attention_flops(const Inference& in) {
  if (!in.has_shape(0) || !in.output(1).has_shape) return 0;
  return 8 * elements(in.output(1).shape) * elements(in.shape(0), 1, 2);
}

// --------------------------------------------------------------------------------------- SwiGLU

// Swish(A) * B, with equal shapes.
Status canonical_swiglu(Rewriter& rewriter) {
  PFRT_TRY(fill_float(rewriter, "alpha", 1));
  if (rewriter.has_shape(0) && rewriter.has_shape(1)) {
    const Shape &a = rewriter.input(0).shape, &b = rewriter.input(1).shape;
    bool equal = a.size() == b.size();
    for (size_t i = 0; equal && i < a.size(); ++i)
      equal = !a[i].known() || !b[i].known() || a[i] == b[i];
    if (!equal)
      return rewriter.fail("A has shape ", rewriter.graph().symbols->text(a), ", B ",
                           rewriter.graph().symbols->text(b), "; they must be equal");
  }
  const float alpha = rewriter.node().attr_float("alpha", 1);
  PFRT_ASSIGN(const ValueId gate, rewriter.before("Swish", {rewriter.node().inputs[0]},
                                                  {Attribute::of_float("alpha", alpha)}));
  rewriter.set_input(0, gate);
  rewriter.node().drop_attr("alpha");
  rewriter.node().op = "Mul";
  return {};
}

constexpr OperatorDef kAttentionOperators[] = {
    {"", "Attention", 23, 23, 3, 6, 1, 4, kOpPlain, 0, canonical_attention, infer_attention,
     attention_flops},
    {"", "Attention", 24, 0, 3, 7, 1, 4, kOpPlain, 0, canonical_attention, infer_attention,
     attention_flops},
    {"", "RotaryEmbedding", 23, 0, 3, 4, 1, 1, kOpPlain, 0, canonical_rotary, infer_rotary,
     nullptr},
    {"", "TensorScatter", 24, 0, 2, 3, 1, 1, kOpPlain, 0, canonical_tensor_scatter,
     infer_tensor_scatter, nullptr},
    {"", "CausalConvWithState", 27, 0, 2, 4, 1, 2, kOpPlain, 0, canonical_causal_conv,
     infer_causal_conv, causal_conv_flops},
    {"", "LinearAttention", 27, 0, 3, 6, 1, 2, kOpPlain, 0, canonical_linear_attention,
     infer_linear_attention, linear_attention_flops},
    {"", "SwiGLU", 28, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_swiglu, nullptr, nullptr},
};

}  // namespace

std::span<const OperatorDef> attention_operators() { return kAttentionOperators; }

}  // namespace pfrt

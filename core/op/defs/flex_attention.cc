// SPDX-License-Identifier: Apache-2.0
//
// Puts ai.onnx.preview's FlexAttention into standard operators, with the caller's graphs for scores
// and probabilities in their places:
//   scores = score_mod(cast((Q * s) (K * s)^T)), s = sqrt(scale) in the inputs' type
//   Y = cast(prob_mod(softmax(scores)) cast(V))
// If several query heads share a key head they are rows of one product, so that keys and values are
// not repeated: Q is [B,Hkv,(Hq/Hkv)L,E] there.
#include <cmath>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

bool float_type(int64_t dtype) {
  return dtype == PFRT_DTYPE_FLOAT32 || dtype == PFRT_DTYPE_FLOAT16 ||
         dtype == PFRT_DTYPE_BFLOAT16 || dtype == PFRT_DTYPE_FLOAT64;
}

class Builder {
 public:
  explicit Builder(Rewriter& rewriter) : rewriter_(rewriter) {}

  Result<ValueId> add(const char* op, std::vector<ValueId> inputs,
                      std::vector<Attribute> attrs = {}) {
    return rewriter_.before(op, std::move(inputs), std::move(attrs));
  }
  Result<ValueId> cast(ValueId value, int64_t to) {
    return add("Cast", {value}, {Attribute::of_int("to", to), Attribute::of_int("saturate", 1)});
  }
  // Makes a list of dimensions [begin, end) of input |i|.
  Result<ValueId> dims(size_t i, int64_t begin, int64_t end) {
    return add("Shape", {rewriter_.node().inputs[i]},
               {Attribute::of_int("start", begin), Attribute::of_int("end", end)});
  }
  Result<ValueId> join(std::vector<ValueId> parts) {
    return add("Concat", std::move(parts), {Attribute::of_int("axis", 0)});
  }
  // Gives |value| the dimensions in |shape|, where 0 keeps one.
  Result<ValueId> reshape(ValueId value, ValueId shape) {
    return add("Reshape", {value, shape}, {Attribute::of_int("allowzero", 0)});
  }
  Result<ValueId> numbers(const std::vector<int64_t>& values) {
    return rewriter_.int64s("dims", values);
  }

 private:
  Rewriter& rewriter_;
};

// Makes sqrt(scale) in |dtype|; without the attribute scale is 1 / sqrt(head size).
Result<ValueId> root_of_scale(Rewriter& rewriter, Builder& make, pfrt_dtype dtype) {
  const Attribute* scale = rewriter.node().attr("scale");
  ValueId root = kNoId;
  if (scale || rewriter.input(0).shape[3].known()) {
    const auto head = static_cast<float>(scale ? 0 : rewriter.input(0).shape[3].value());
    const float value = scale ? scale->f : 1.0f / std::sqrt(head);
    PFRT_ASSIGN(
        root, rewriter.scalar("scale", PFRT_DTYPE_FLOAT32, static_cast<double>(std::sqrt(value))));
  } else {
    PFRT_ASSIGN(ValueId head, make.dims(0, 3, 4));
    PFRT_ASSIGN(head, make.cast(head, PFRT_DTYPE_FLOAT32));
    PFRT_ASSIGN(head, make.add("Sqrt", {head}));
    PFRT_ASSIGN(head, make.add("Reciprocal", {head}));
    PFRT_ASSIGN(root, make.add("Sqrt", {head}));
  }
  return dtype == PFRT_DTYPE_FLOAT32 ? Result<ValueId>(root) : make.cast(root, dtype);
}

// Applies the graph in attribute |name| to |value|.
Result<ValueId> modified(Rewriter& rewriter, const char* name, ValueId value) {
  const Attribute* attr = rewriter.node().attr(name);
  if (!attr) return value;
  if (!attr->graph) return rewriter.fail("attribute '", name, "' holds no graph");
  const std::shared_ptr<Graph> body = attr->graph;
  if (body->inputs.size() != 1 || body->outputs.size() != 1)
    return rewriter.fail("graph '", name, "' has ", body->inputs.size(), " inputs and ",
                         body->outputs.size(), " outputs, expected one each");
  PFRT_ASSIGN(const std::vector<ValueId> outputs, rewriter.inline_body(*body, {&value, 1}));
  return outputs[0];
}

Status check_inputs(Rewriter& rewriter) {
  for (size_t i = 0; i < 3; ++i)
    if (!rewriter.has_shape(i) || rewriter.rank(i) != 4)
      return rewriter.fail("input ", i, " must have rank 4, [batch, heads, length, size]");
  const Shape &q = rewriter.input(0).shape, &k = rewriter.input(1).shape,
              &v = rewriter.input(2).shape;
  const auto differ = [](const Dim& a, const Dim& b) {
    return a.known() && b.known() && a.value() != b.value();
  };
  if (differ(k[1], v[1]) || differ(k[2], v[2]))
    return rewriter.fail("key and value must have the same heads and length");
  if (differ(q[3], k[3])) return rewriter.fail("query and key must have the same head size");
  if (q[1].known() && k[1].known() && differ(q[1], k[1]) &&
      (k[1].value() <= 0 || q[1].value() % k[1].value() != 0))
    return rewriter.fail(q[1].value(), " query heads are no multiple of ", k[1].value(),
                         " key heads");
  return {};
}

Status canonical_flex_attention(Rewriter& rewriter) {
  PFRT_TRY(check_inputs(rewriter));
  const pfrt_dtype dtype = rewriter.input(0).dtype;
  const int64_t precision = rewriter.node().attr_int(
      "softmax_precision", dtype == PFRT_DTYPE_FLOAT64 ? PFRT_DTYPE_FLOAT64 : PFRT_DTYPE_FLOAT32);
  if (!float_type(dtype) || !float_type(precision))
    return rewriter.fail(!float_type(dtype) ? "the inputs are of " : "'softmax_precision' is ",
                         dtype_name(float_type(dtype) ? static_cast<pfrt_dtype>(precision) : dtype),
                         ", expected a floating-point type");
  Builder make(rewriter);
  const ValueId query = rewriter.node().inputs[0], key = rewriter.node().inputs[1],
                value = rewriter.node().inputs[2];
  const bool shared = !(rewriter.input(0).shape[1] == rewriter.input(1).shape[1]);
  PFRT_ASSIGN(const ValueId root, root_of_scale(rewriter, make, dtype));
  PFRT_ASSIGN(ValueId rows, make.add("Mul", {query, root}));
  PFRT_ASSIGN(ValueId columns, make.add("Mul", {key, root}));
  PFRT_ASSIGN(columns,
              make.add("Transpose", {columns}, {Attribute::of_ints("perm", {0, 1, 3, 2})}));
  ValueId keep = kNoId, rest = kNoId, heads = kNoId;  // [0], [-1] and [Hkv]
  if (shared) {
    PFRT_ASSIGN(keep, make.numbers({0}));
    PFRT_ASSIGN(rest, make.numbers({-1}));
    PFRT_ASSIGN(heads, make.dims(1, 1, 2));
    PFRT_ASSIGN(const ValueId size, make.dims(0, 3, 4));
    PFRT_ASSIGN(const ValueId shape, make.join({keep, heads, rest, size}));
    PFRT_ASSIGN(rows, make.reshape(rows, shape));
  }
  PFRT_ASSIGN(ValueId scores, make.add("MatMul", {rows, columns}));
  if (shared) {
    PFRT_ASSIGN(const ValueId lead, make.dims(0, 0, 3));
    PFRT_ASSIGN(const ValueId length, make.dims(1, 2, 3));
    PFRT_ASSIGN(const ValueId shape, make.join({lead, length}));
    PFRT_ASSIGN(scores, make.reshape(scores, shape));
  }
  if (precision != dtype) {
    PFRT_ASSIGN(scores, make.cast(scores, precision));
  }
  PFRT_ASSIGN(scores, modified(rewriter, "score_mod", scores));
  PFRT_ASSIGN(ValueId probs, make.add("Softmax", {scores}, {Attribute::of_int("axis", 3)}));
  PFRT_ASSIGN(probs, modified(rewriter, "prob_mod", probs));
  ValueId values = value;
  if (precision != dtype) {
    PFRT_ASSIGN(values, make.cast(values, precision));
  }
  if (shared) {
    PFRT_ASSIGN(const ValueId length, make.dims(1, 2, 3));
    PFRT_ASSIGN(const ValueId shape, make.join({keep, heads, rest, length}));
    PFRT_ASSIGN(probs, make.reshape(probs, shape));
  }
  PFRT_ASSIGN(ValueId out, make.add("MatMul", {probs, values}));
  if (shared) {
    PFRT_ASSIGN(const ValueId lead, make.dims(0, 0, 3));
    PFRT_ASSIGN(const ValueId size, make.dims(2, 3, 4));
    PFRT_ASSIGN(const ValueId shape, make.join({lead, size}));
    PFRT_ASSIGN(out, make.reshape(out, shape));
  }
  Node& node = rewriter.node();
  node.domain.clear();
  node.op = precision == dtype ? "Identity" : "Cast";
  node.inputs = {out};
  node.attrs.clear();
  if (precision != dtype) {
    node.set_attr(Attribute::of_int("to", dtype));
    node.set_attr(Attribute::of_int("saturate", 1));
  }
  return {};
}

constexpr OperatorDef kFlexAttentionOperators[] = {
    // domain, name, opsets, inputs, outputs, flags, shape inputs, canonicalise, infer, flops
    {"ai.onnx.preview", "FlexAttention", 1, 0, 3, 3, 1, 1, kOpPlain, 0, canonical_flex_attention,
     nullptr, nullptr},
};

}  // namespace

std::span<const OperatorDef> flex_attention_operators() { return kFlexAttentionOperators; }

}  // namespace pfrt

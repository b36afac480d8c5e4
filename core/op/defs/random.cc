// SPDX-License-Identifier: Apache-2.0
//
// Random numbers. Each node has a stream of its own, that of NumPy's RandomState (the Mersenne
// twister MT19937). With attribute seed the stream starts anew in each run from that number (its
// integer part, modulo 2^32), so that every run gives the same numbers; without it, from a hash of
// the node's name, its dimensions and the number of the run, so that runs differ and a program that
// is started again repeats them. Neither depends on threads or on other nodes.
//
// Dropout is with its inference form in elementwise.cc; its training form draws from such a stream.
#include <cmath>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

constexpr AttrDefault kRandomDefaults[] = {
    {"RandomNormal", "mean", PFRT_ATTR_FLOAT, 0},
    {"RandomNormal", "scale", PFRT_ATTR_FLOAT, 1},
    {"RandomNormal", "dtype", PFRT_ATTR_INT, PFRT_DTYPE_FLOAT32},
    {"RandomNormalLike", "mean", PFRT_ATTR_FLOAT, 0},
    {"RandomNormalLike", "scale", PFRT_ATTR_FLOAT, 1},
    {"RandomUniform", "low", PFRT_ATTR_FLOAT, 0},
    {"RandomUniform", "high", PFRT_ATTR_FLOAT, 1},
    {"RandomUniform", "dtype", PFRT_ATTR_INT, PFRT_DTYPE_FLOAT32},
    {"RandomUniformLike", "low", PFRT_ATTR_FLOAT, 0},
    {"RandomUniformLike", "high", PFRT_ATTR_FLOAT, 1},
    {"Multinomial", "dtype", PFRT_ATTR_INT, PFRT_DTYPE_INT32},
    {"Multinomial", "sample_size", PFRT_ATTR_INT, 1},
};

Status canonical_random(Rewriter& rewriter) {
  PFRT_TRY(fill_defaults(rewriter, kRandomDefaults));
  Node& node = rewriter.node();
  const Attribute* seed = node.attr("seed");
  if (seed && seed->type != PFRT_ATTR_FLOAT)
    return rewriter.fail("attribute 'seed' has type ", seed->type, ", expected a float");
  if (seed && std::isinf(seed->f)) return rewriter.fail("attribute 'seed' is infinite");
  if (seed && std::isnan(seed->f)) node.drop_attr("seed");
  return {};
}

// Only the shape of strings counts, and providers take none: they are replaced by a tensor of that
// shape.
Status canonical_like(Rewriter& rewriter) {
  PFRT_TRY(canonical_random(rewriter));
  if (rewriter.input(0).dtype != PFRT_DTYPE_STRING) return {};
  if (!rewriter.node().attr("dtype"))
    return rewriter.fail("needs attribute 'dtype' where the input holds strings");
  PFRT_ASSIGN(const ValueId shape, rewriter.before("Shape", {rewriter.node().inputs[0]},
                                                   {Attribute::of_int("start", 0)}));
  PFRT_ASSIGN(const ValueId like, rewriter.before("ConstantOfShape", {shape}));
  rewriter.set_input(0, like);
  return {};
}

// The type of attribute dtype, or else of input 0.
Result<pfrt_dtype> result_type(const Inference& inference) {
  const Attribute* given = inference.node().attr("dtype");
  if (!given || given->i == 0) return inference.input(0).dtype;
  if (given->i < 0 || given->i > UINT32_MAX || !dtype_known(static_cast<pfrt_dtype>(given->i)))
    return inference.fail("attribute 'dtype' is ", given->i, ", which is no element type");
  return static_cast<pfrt_dtype>(given->i);
}

Status infer_shaped(Inference& inference) {
  PFRT_ASSIGN(const pfrt_dtype dtype, result_type(inference));
  const std::vector<int64_t>* shape = inference.node().attr_ints("shape");
  if (!shape) return inference.fail("attribute 'shape' is missing or not a list of integers");
  for (int64_t d : *shape)
    if (d < 0)
      return inference.fail("attribute 'shape' holds ", d, "; dimensions are not negative");
  if (element_count(shape->data(), shape->size()) < 0)
    return inference.fail("attribute 'shape' asks for more than 2^63 elements");
  inference.set_output(0, dtype, Shape(shape->begin(), shape->end()));
  return {};
}

Status infer_like(Inference& inference) {
  PFRT_ASSIGN(const pfrt_dtype dtype, result_type(inference));
  const Type& in = inference.input(0);
  inference.set_output(0, in.has_shape ? Type::tensor(dtype, in.shape) : Type::tensor(dtype));
  return {};
}

Status infer_multinomial(Inference& inference) {
  PFRT_ASSIGN(const pfrt_dtype dtype, result_type(inference));
  if (dtype != PFRT_DTYPE_INT32 && dtype != PFRT_DTYPE_INT64)
    return inference.fail("attribute 'dtype' is ", dtype_name(dtype), ", must be int32 or int64");
  PFRT_TRY(expect_rank(inference, 0, 2));
  const int64_t samples = inference.node().attr_int("sample_size", 1);
  if (samples < 0) return inference.fail("attribute 'sample_size' is ", samples);
  const Dim batch = inference.has_shape(0) ? inference.shape(0)[0] : Dim();
  inference.set_output(0, dtype, {batch, samples});
  return {};
}

constexpr OperatorDef kRandomOperators[] = {
    {"", "RandomNormal", 1, 0, 0, 0, 1, 1, kOpRandom, 0, canonical_random, infer_shaped, nullptr},
    {"", "RandomUniform", 1, 0, 0, 0, 1, 1, kOpRandom, 0, canonical_random, infer_shaped, nullptr},
    {"", "RandomNormalLike", 1, 0, 1, 1, 1, 1, kOpRandom, 0, canonical_like, infer_like, nullptr},
    {"", "RandomUniformLike", 1, 0, 1, 1, 1, 1, kOpRandom, 0, canonical_like, infer_like, nullptr},
    {"", "Multinomial", 7, 0, 1, 1, 1, 1, kOpRandom, 0, canonical_random, infer_multinomial,
     nullptr},
    {"", "Bernoulli", 15, 0, 1, 1, 1, 1, kOpRandom, 0, canonical_random, infer_like, nullptr},
};

}  // namespace

std::span<const OperatorDef> random_operators() { return kRandomOperators; }

}  // namespace pfrt

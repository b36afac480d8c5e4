// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of quantized factors with a scaled result: sums of whole numbers by
// MatMulInteger, then a factor for each column.
#include <algorithm>
#include <string>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/defs/contrib/forms.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

using contrib::cast;
using contrib::drop;
using contrib::replace_with;

bool all_zero(const Tensor* tensor) {
  if (!tensor) return false;
  const auto* data = tensor->as<const uint8_t>();
  return std::all_of(data, data + tensor->bytes(), [](uint8_t b) { return b == 0; });
}

// The factors of a product with their zero points; kNoId for none.
struct Factors {
  ValueId a = kNoId, b = kNoId, a_zero = kNoId, b_zero = kNoId;
};

// Makes the node's output the int32 product. |matrices| says that B's zero point has a row for each
// matrix of B, which MatMulInteger does not support: the factors are then shifted first.
Status to_sums(Rewriter& rewriter, Factors f, bool matrices) {
  if (!matrices) {
    rewriter.node().inputs = {f.a, f.b, f.a_zero, f.b_zero};
    return replace_with(rewriter, "MatMulInteger");
  }
  PFRT_ASSIGN(f.a, cast(rewriter, f.a, PFRT_DTYPE_INT32));
  PFRT_ASSIGN(f.b, cast(rewriter, f.b, PFRT_DTYPE_INT32));
  if (f.a_zero != kNoId) {
    PFRT_ASSIGN(const ValueId zero, cast(rewriter, f.a_zero, PFRT_DTYPE_INT32));
    PFRT_ASSIGN(f.a, rewriter.before("Sub", {f.a, zero}));
  }
  PFRT_ASSIGN(const ValueId zero, cast(rewriter, f.b_zero, PFRT_DTYPE_INT32));
  PFRT_ASSIGN(f.b, rewriter.before("Sub", {f.b, zero}));
  rewriter.node().inputs = {f.a, f.b};
  return replace_with(rewriter, "MatMul");
}

// Reads factors from inputs; a zero point that is 0 throughout counts as none.
Factors read_factors(Rewriter& rewriter, size_t a, size_t b, size_t a_zero, size_t b_zero) {
  const auto zero = [&](size_t i) {
    return all_zero(rewriter.constant(i)) ? kNoId : contrib::input(rewriter, i);
  };
  return {contrib::input(rewriter, a), contrib::input(rewriter, b), zero(a_zero), zero(b_zero)};
}

bool one_a_matrix(Rewriter& rewriter, size_t zero, const Factors& f) {
  return f.b_zero != kNoId && rewriter.has_shape(zero) && rewriter.rank(zero) > 1;
}

// Makes the node's int32 output float32, times |scale| and plus |bias|.
Status scale_after(Rewriter& rewriter, ValueId scale, ValueId bias, pfrt_dtype dtype) {
  PFRT_TRY(rewriter.after(
      "Cast", {}, {Attribute::of_int("to", PFRT_DTYPE_FLOAT32), Attribute::of_int("saturate", 1)}));
  PFRT_TRY(rewriter.after("Mul", {scale}));
  if (bias != kNoId) PFRT_TRY(rewriter.after("Add", {bias}));
  if (dtype == PFRT_DTYPE_FLOAT32) return {};
  return rewriter.after("Cast", {},
                        {Attribute::of_int("to", dtype), Attribute::of_int("saturate", 1)});
}

Result<ValueId> as_float(Rewriter& rewriter, ValueId value, pfrt_dtype dtype) {
  if (value == kNoId || dtype == PFRT_DTYPE_FLOAT32) return value;
  return cast(rewriter, value, PFRT_DTYPE_FLOAT32);
}

Status canonical_to_float(Rewriter& rewriter) {
  PFRT_ASSIGN(const pfrt_dtype dtype, contrib::dtype_of(rewriter, 2));
  PFRT_ASSIGN(ValueId a_scale, contrib::scalar_input(rewriter, 2));
  PFRT_ASSIGN(a_scale, as_float(rewriter, a_scale, dtype));
  PFRT_ASSIGN(const ValueId b_scale, as_float(rewriter, contrib::input(rewriter, 3), dtype));
  PFRT_ASSIGN(const ValueId bias, as_float(rewriter, contrib::input(rewriter, 6), dtype));
  PFRT_ASSIGN(const ValueId scale, rewriter.before("Mul", {b_scale, a_scale}));
  const Factors f = read_factors(rewriter, 0, 1, 4, 5);
  PFRT_TRY(to_sums(rewriter, f, one_a_matrix(rewriter, 5, f)));
  return scale_after(rewriter, scale, bias, dtype);
}

// First quantizes A to uint8 by its own range.
Status canonical_dynamic(Rewriter& rewriter) {
  PFRT_ASSIGN(const ValueId quantized,
              rewriter.before("DynamicQuantizeLinear", {contrib::input(rewriter, 0)}, {}, 3));
  const Graph& graph = rewriter.graph();
  const std::vector<ValueId> made = graph.node(graph.at(quantized).producer)->outputs;
  PFRT_ASSIGN(const ValueId scale, rewriter.before("Mul", {contrib::input(rewriter, 2), made[1]}));
  const ValueId bias = contrib::input(rewriter, 4);
  Factors f = read_factors(rewriter, 0, 1, SIZE_MAX, 3);
  const bool matrices = one_a_matrix(rewriter, 3, f);
  f.a = made[0];
  f.a_zero = made[2];
  PFRT_TRY(to_sums(rewriter, f, matrices));
  return scale_after(rewriter, scale, bias, PFRT_DTYPE_FLOAT32);
}

// Products of these factors need 32 bits; sums wrap around.
Status canonical_integer16(Rewriter& rewriter) {
  PFRT_ASSIGN(const pfrt_dtype a, contrib::dtype_of(rewriter, 0));
  PFRT_ASSIGN(const pfrt_dtype b, contrib::dtype_of(rewriter, 1));
  for (const pfrt_dtype dtype : {a, b})
    if (dtype != PFRT_DTYPE_INT16 && dtype != PFRT_DTYPE_UINT16)
      return rewriter.fail("a factor is ", dtype_name(dtype), ", needs int16 or uint16");
  const bool natural = a == PFRT_DTYPE_UINT16 && b == PFRT_DTYPE_UINT16;
  const pfrt_dtype sums = natural ? PFRT_DTYPE_UINT32 : PFRT_DTYPE_INT32;
  for (const size_t i : {0u, 1u}) {
    PFRT_ASSIGN(const ValueId wide, cast(rewriter, rewriter.node().inputs[i], sums));
    rewriter.set_input(i, wide);
  }
  return replace_with(rewriter, "MatMul");
}

// Input |i|, transposed where |swap| says so.
Result<ValueId> matrix(Rewriter& rewriter, size_t i, bool swap) {
  const ValueId value = contrib::input(rewriter, i);
  if (rewriter.has_shape(i) && rewriter.rank(i) != 2)
    return rewriter.fail("input ", i, " has rank ", rewriter.rank(i), ", expected a matrix");
  return swap ? contrib::permuted(rewriter, value, {1, 0}) : Result<ValueId>(value);
}

constexpr AttrDefault kGemmDefaults[] = {
    {"QGemm", "alpha", PFRT_ATTR_FLOAT, 1},
    {"QGemm", "transA", PFRT_ATTR_INT, 0},
    {"QGemm", "transB", PFRT_ATTR_INT, 0},
};

// The inputs are A, its scale and zero point, B, its scale and zero point, C, and the output's
// scale and zero point. C is int32 in units of the product; without an output scale the result is
// float32.
Status canonical_qgemm(Rewriter& rewriter) {
  PFRT_TRY(fill_defaults(rewriter, kGemmDefaults));
  for (const size_t i : {3u, 4u})
    if (!rewriter.has_input(i)) return rewriter.fail("input ", i, " is required but absent");
  const Node& node = rewriter.node();
  const bool swap_a = node.attr_int("transA", 0) != 0, swap_b = node.attr_int("transB", 0) != 0;
  const float alpha = node.attr_float("alpha", 1);
  drop(rewriter, {"alpha", "transA", "transB"});
  PFRT_ASSIGN(const pfrt_dtype dtype, contrib::dtype_of(rewriter, 0));
  PFRT_ASSIGN(const ValueId a_scale, contrib::scalar_input(rewriter, 1));
  PFRT_ASSIGN(ValueId scale, rewriter.before("Mul", {contrib::input(rewriter, 4), a_scale}));
  if (alpha != 1) {
    PFRT_ASSIGN(const ValueId factor,
                rewriter.scalar("alpha", PFRT_DTYPE_FLOAT32, static_cast<double>(alpha)));
    PFRT_ASSIGN(scale, rewriter.before("Mul", {scale, factor}));
  }
  const bool quantizes = rewriter.has_input(7);
  contrib::Parameters out;
  if (quantizes) {
    PFRT_ASSIGN(out, contrib::parameters(rewriter, 7, 8, dtype));
  } else if (rewriter.has_input(8)) {
    return rewriter.fail("has a zero point of the output but no scale");
  }
  Factors f = read_factors(rewriter, 0, 3, 2, 5);
  PFRT_ASSIGN(f.a, matrix(rewriter, 0, swap_a));
  PFRT_ASSIGN(f.b, matrix(rewriter, 3, swap_b));
  const ValueId c = contrib::input(rewriter, 6);
  PFRT_TRY(to_sums(rewriter, f, one_a_matrix(rewriter, 5, f)));
  if (c != kNoId) PFRT_TRY(rewriter.after("Add", {c}));
  PFRT_TRY(scale_after(rewriter, scale, kNoId, PFRT_DTYPE_FLOAT32));
  return quantizes ? contrib::quantize_after(rewriter, out) : Status();
}

constexpr std::string_view kDomain = "com.microsoft";

constexpr OperatorDef row(std::string_view name, int least, int most,
                          Status (*canonicalise)(Rewriter&)) {
  return {kDomain, name, 1, 0, least, most, 1, 1, kOpPlain, 0, canonicalise, nullptr, nullptr};
}

constexpr OperatorDef kRows[] = {
    row("MatMulIntegerToFloat", 4, 7, canonical_to_float),
    row("DynamicQuantizeMatMul", 3, 5, canonical_dynamic),
    row("MatMulInteger16", 2, 2, canonical_integer16),
    row("QGemm", 2, 9, canonical_qgemm),
};

}  // namespace

std::span<const OperatorDef> contrib_matmul_operators() { return kRows; }

}  // namespace pfrt

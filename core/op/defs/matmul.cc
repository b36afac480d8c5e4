// SPDX-License-Identifier: Apache-2.0
//
// Matrix products: MatMul and Gemm, their integer forms, and Det.
#include <algorithm>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

// Infers NumPy's matmul of inputs |a| and |b|; |dtype| is the output's.
Status infer_matmul(Inference& inference, size_t a, size_t b, pfrt_dtype dtype) {
  PFRT_TRY(expect_rank_at_least(inference, a, 1));
  PFRT_TRY(expect_rank_at_least(inference, b, 1));
  if (!inference.has_shape(a) || !inference.has_shape(b)) {
    inference.set_output_unknown_shape(0, dtype);
    return {};
  }
  // A vector is a row on the left and a column on the right; the added dimension is removed again.
  Shape left = inference.shape(a), right = inference.shape(b);
  const bool row = left.size() == 1, column = right.size() == 1;
  if (row) left.insert(left.begin(), Dim(1));
  if (column) right.push_back(Dim(1));
  const Dim inner = left.back(), depth = right[right.size() - 2];
  if (inner.known() && depth.known() && !(inner == depth))
    return inference.fail("shapes ", inference.symbols().text(inference.shape(a)), " and ",
                          inference.symbols().text(inference.shape(b)),
                          " do not multiply: ", inner.value(), " columns against ", depth.value(),
                          " rows");
  PFRT_ASSIGN(Shape out, inference.broadcast(Shape(left.begin(), left.end() - 2),
                                             Shape(right.begin(), right.end() - 2)));
  if (!row) out.push_back(left[left.size() - 2]);
  if (!column) out.push_back(right.back());
  inference.set_output(0, dtype, std::move(out));
  return {};
}

// Counts two for a multiply-add.
double matmul_flops(const Inference& inference, size_t a) {
  if (!inference.output(0).has_shape || !inference.has_shape(a) || inference.rank(a) == 0) return 0;
  return 2 * elements(inference.output(0).shape) *
         elements(inference.shape(a), inference.rank(a) - 1);
}

Status infer_matmul(Inference& inference) {
  PFRT_TRY(same_dtypes(inference, 0, 2));
  return infer_matmul(inference, 0, 1, inference.input(0).dtype);
}
Status infer_matmul_integer(Inference& inference) {
  return infer_matmul(inference, 0, 1, PFRT_DTYPE_INT32);
}
Status infer_qlinear_matmul(Inference& inference) {
  return infer_matmul(inference, 0, 3, inference.input(7).dtype);
}
bool is_float8(pfrt_dtype dtype) { return dtype_is_float(dtype) && dtype_bits(dtype) == 8; }

// 8-bit floats have no integer product: the dequantized numbers are multiplied and quantized again.
Status canonical_qlinear_matmul(Rewriter& rewriter) {
  if (!is_float8(rewriter.input(0).dtype) && !is_float8(rewriter.input(3).dtype) &&
      !is_float8(rewriter.input(7).dtype))
    return {};
  Node& node = rewriter.node();
  const std::vector<ValueId> in = node.inputs;
  ValueId factors[2];
  for (size_t i = 0; i < 2; ++i) {
    const size_t x = 3 * i;
    // A list has a parameter for each row of the left matrix, or each column of the right one.
    const size_t back = i == 0 ? 2 : 1;
    if (rewriter.has_shape(x + 1) && rewriter.rank(x + 1) > 1)
      return rewriter.unsupported("scales of rank ", rewriter.rank(x + 1),
                                  " are not supported with 8-bit floats, only numbers and lists");
    const int64_t rank = rewriter.has_shape(x) ? static_cast<int64_t>(rewriter.rank(x)) : 2;
    PFRT_ASSIGN(
        factors[i],
        rewriter.before(
            "DequantizeLinear", {in[x], in[x + 1], in[x + 2]},
            {Attribute::of_int("axis", std::max<int64_t>(rank - static_cast<int64_t>(back), 0)),
             Attribute::of_int("block_size", 0),
             Attribute::of_int("output_dtype", PFRT_DTYPE_FLOAT32)}));
  }
  PFRT_ASSIGN(const ValueId product, rewriter.before("MatMul", {factors[0], factors[1]}));
  node.op = "QuantizeLinear";
  node.inputs = {product, in[6], in[7]};
  node.attrs = {Attribute::of_int("axis", 0), Attribute::of_int("block_size", 0),
                Attribute::of_int("output_dtype", 0),
                Attribute::of_int("precision", PFRT_DTYPE_FLOAT32),
                Attribute::of_int("saturate", 1)};
  return {};
}

double matmul_flops(const Inference& inference) { return matmul_flops(inference, 0); }

constexpr AttrDefault kGemmDefaults[] = {
    {"Gemm", "alpha", PFRT_ATTR_FLOAT, 1},
    {"Gemm", "beta", PFRT_ATTR_FLOAT, 1},
    {"Gemm", "transA", PFRT_ATTR_INT, 0},
    {"Gemm", "transB", PFRT_ATTR_INT, 0},
};

Status canonical_gemm(Rewriter& rewriter) {
  rewriter.node().drop_attr("broadcast");
  return fill_defaults(rewriter, kGemmDefaults);
}

Status infer_gemm(Inference& inference) {
  PFRT_TRY(same_dtypes(inference, 0, 3));
  PFRT_TRY(expect_rank(inference, 0, 2));
  PFRT_TRY(expect_rank(inference, 1, 2));
  const bool trans_a = inference.node().attr_int("transA", 0) != 0;
  const bool trans_b = inference.node().attr_int("transB", 0) != 0;
  Shape out(2);
  Dim inner_a, inner_b;
  if (inference.has_shape(0)) {
    out[0] = inference.shape(0)[trans_a ? 1 : 0];
    inner_a = inference.shape(0)[trans_a ? 0 : 1];
  }
  if (inference.has_shape(1)) {
    out[1] = inference.shape(1)[trans_b ? 0 : 1];
    inner_b = inference.shape(1)[trans_b ? 1 : 0];
  }
  if (inner_a.known() && inner_b.known() && !(inner_a == inner_b))
    return inference.fail("shapes ", inference.symbols().text(inference.shape(0)), " and ",
                          inference.symbols().text(inference.shape(1)), " with transA ",
                          trans_a ? 1 : 0, " and transB ", trans_b ? 1 : 0,
                          " do not multiply: ", inner_a.value(), " against ", inner_b.value());
  if (inference.has_shape(2)) {
    PFRT_ASSIGN(const Shape both, inference.broadcast(out, inference.shape(2)));
    bool grows = both.size() > 2;
    for (size_t i = 0; !grows && i < 2; ++i)
      grows = out[i].known() && both[i].known() && !(both[i] == out[i]);
    if (grows)
      return inference.fail("C of shape ", inference.symbols().text(inference.shape(2)),
                            " does not broadcast to the product of shape ",
                            inference.symbols().text(out));
  }
  inference.set_output(0, inference.input(0).dtype, std::move(out));
  return {};
}

double gemm_flops(const Inference& inference) {
  if (!inference.output(0).has_shape || !inference.has_shape(0) || inference.rank(0) != 2) return 0;
  const size_t inner = inference.node().attr_int("transA", 0) != 0 ? 0 : 1;
  return 2 * elements(inference.output(0).shape) * elements(inference.shape(0), inner, inner + 1);
}

Status infer_det(Inference& inference) {
  PFRT_TRY(expect_rank_at_least(inference, 0, 2));
  const Type& in = inference.input(0);
  if (!in.has_shape) {
    inference.set_output_unknown_shape(0, in.dtype);
    return {};
  }
  const size_t rank = in.shape.size();
  const Dim rows = in.shape[rank - 2], columns = in.shape[rank - 1];
  if (rows.known() && columns.known() && !(rows == columns))
    return inference.fail("the matrices are ", rows.value(), " by ", columns.value(),
                          ", need to be square");
  inference.set_output(0, in.dtype, Shape(in.shape.begin(), in.shape.end() - 2));
  return {};
}

double det_flops(const Inference& inference) {
  if (!inference.has_shape(0) || inference.rank(0) == 0) return 0;
  return elements(inference.shape(0)) * elements(inference.shape(0), inference.rank(0) - 1) * 2 / 3;
}

constexpr OperatorDef kMatmulOperators[] = {
    {"", "MatMul", 1, 0, 2, 2, 1, 1, kOpPlain, 0, nullptr, infer_matmul, matmul_flops},
    {"", "Gemm", 1, 0, 2, 3, 1, 1, kOpPlain, 0, canonical_gemm, infer_gemm, gemm_flops},
    {"", "MatMulInteger", 10, 0, 2, 4, 1, 1, kOpPlain, 0, nullptr, infer_matmul_integer,
     matmul_flops},
    {"", "QLinearMatMul", 10, 0, 8, 8, 1, 1, kOpPlain, 0, canonical_qlinear_matmul,
     infer_qlinear_matmul, matmul_flops},
    {"", "Det", 11, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_det, det_flops},
};

}  // namespace

std::span<const OperatorDef> matmul_operators() { return kMatmulOperators; }

}  // namespace pfrt

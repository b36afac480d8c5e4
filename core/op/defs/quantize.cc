// SPDX-License-Identifier: Apache-2.0
//
// Conversion between real and quantized numbers: y = saturate(round(x / scale) + zero point), and
// back.
#include <algorithm>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

constexpr AttrDefault kQuantizeDefaults[] = {
    {"QuantizeLinear", "block_size", PFRT_ATTR_INT, 0},
    {"QuantizeLinear", "saturate", PFRT_ATTR_INT, 1},
    {"QuantizeLinear", "output_dtype", PFRT_ATTR_INT, 0},
    {"QuantizeLinear", "precision", PFRT_ATTR_INT, 0},
    {"DequantizeLinear", "block_size", PFRT_ATTR_INT, 0},
    {"DequantizeLinear", "output_dtype", PFRT_ATTR_INT, 0},
};

// The axis means nothing for a scalar scale, and may then exceed a low rank.
Status canonical_scaled(Rewriter& rewriter) {
  PFRT_TRY(fill_defaults(rewriter, kQuantizeDefaults));
  PFRT_TRY(fill_int(rewriter, "axis", 1));
  const int64_t axis = rewriter.node().attr_int("axis", 1);
  if (axis < 0 && rewriter.has_shape(0) && axis + static_cast<int64_t>(rewriter.rank(0)) >= 0)
    rewriter.node().set_attr(
        Attribute::of_int("axis", axis + static_cast<int64_t>(rewriter.rank(0))));
  return {};
}

bool is_single(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is(1); });
}

// Checks scale (input 1) and zero point (input 2): each is a scalar, or has an element for each
// index of the axis, or for each block along it.
Status check_scale(const Inference& inference) {
  // A single element may have any rank: exporters write [1] where the other is [].
  if (inference.has_shape(1) && inference.has_shape(2) &&
      !(is_single(inference.shape(1)) && is_single(inference.shape(2))))
    PFRT_TRY(expect_shape(inference, 2, inference.shape(1)));
  if (!inference.has_shape(0) || !inference.has_shape(1) || inference.rank(1) == 0) return {};
  const int64_t block = inference.node().attr_int("block_size", 0);
  if (is_single(inference.shape(1)) && (block == 0 || inference.rank(1) == 1)) return {};
  PFRT_ASSIGN(const int64_t axis,
              inference.axis(inference.node().attr_int("axis", 1), inference.rank(0)));
  const size_t at = static_cast<size_t>(axis);
  if (block < 0) return inference.fail("block_size is ", block, ", needs 0 or more");
  if (block == 0) return expect_shape(inference, 1, {inference.shape(0)[at]});
  Shape blocks = inference.shape(0);
  blocks[at] = Dim();
  return expect_shape(inference, 1, blocks);
}

pfrt_dtype asked_dtype(const Inference& inference) {
  const int64_t dtype = inference.node().attr_int("output_dtype", 0);
  return dtype > 0 && dtype < 64 ? static_cast<pfrt_dtype>(dtype) : pfrt_dtype{PFRT_DTYPE_UNSET};
}

Status infer_quantize(Inference& inference) {
  PFRT_TRY(check_scale(inference));
  const pfrt_dtype asked = asked_dtype(inference);
  pfrt_dtype dtype = inference.has_input(2) ? inference.input(2).dtype : asked;
  if (!inference.has_input(2) && asked == PFRT_DTYPE_UNSET) dtype = PFRT_DTYPE_UINT8;
  if (asked != PFRT_DTYPE_UNSET && dtype != PFRT_DTYPE_UNSET && asked != dtype)
    return error(Code::kDTYPE_MISMATCH, describe(inference.graph(), inference.node()),
                 ": output_dtype is ", dtype_name(asked), " but the zero point is ",
                 dtype_name(dtype));
  Type out = inference.input(0);
  out.kind = PFRT_VALUE_TENSOR;
  out.dtype = dtype;
  inference.set_output(0, std::move(out));
  return {};
}

Status infer_dequantize(Inference& inference) {
  PFRT_TRY(check_scale(inference));
  if (inference.input(0).dtype != PFRT_DTYPE_UNSET &&
      inference.input(2).dtype != PFRT_DTYPE_UNSET &&
      inference.input(0).dtype != inference.input(2).dtype)
    return wrong_dtype(inference, 2, inference.input(0).dtype);
  const pfrt_dtype asked = asked_dtype(inference);
  if (asked == PFRT_DTYPE_UNSET && inference.input(1).dtype == PFRT_DTYPE_FLOAT8E8M0)
    return error(Code::kDTYPE_MISMATCH, describe(inference.graph(), inference.node()),
                 ": scales are float8e8m0, which is no type of results; output_dtype names one");
  Type out = inference.input(0);
  out.kind = PFRT_VALUE_TENSOR;
  out.dtype = asked != PFRT_DTYPE_UNSET ? asked : inference.input(1).dtype;
  inference.set_output(0, std::move(out));
  return {};
}

Status infer_dynamic_quantize(Inference& inference) {
  Type out = inference.input(0);
  out.kind = PFRT_VALUE_TENSOR;
  out.dtype = PFRT_DTYPE_UINT8;
  inference.set_output(0, std::move(out));
  inference.set_output(1, PFRT_DTYPE_FLOAT32, {});
  inference.set_output(2, PFRT_DTYPE_UINT8, {});
  return {};
}

double scaled_flops(const Inference& inference) { return 2 * flops_of_input(inference); }

constexpr OperatorDef kQuantizeOperators[] = {
    {"", "QuantizeLinear", 10, 0, 2, 3, 1, 1, kOpPlain, 0, canonical_scaled, infer_quantize,
     scaled_flops},
    {"", "DequantizeLinear", 10, 0, 2, 3, 1, 1, kOpPlain, 0, canonical_scaled, infer_dequantize,
     scaled_flops},
    {"", "DynamicQuantizeLinear", 11, 0, 1, 1, 3, 3, kOpPlain, 0, nullptr, infer_dynamic_quantize,
     scaled_flops},
};

}  // namespace

std::span<const OperatorDef> quantize_operators() { return kQuantizeOperators; }

}  // namespace pfrt

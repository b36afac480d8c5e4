// SPDX-License-Identifier: Apache-2.0
//
// Pools over windows and over whole feature maps, their inverse, and pools over regions of
// interest.
#include "core/op/defs/pool.h"

#include <cmath>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/defs/window.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {

Status infer_pool(Inference& inference) {
  const std::vector<int64_t>* kernel = inference.node().attr_ints("kernel_shape");
  const size_t rank = kernel ? kernel->size() : 0;
  PFRT_TRY(expect_rank(inference, 0, rank + 2));
  PFRT_ASSIGN(const Window window, read_window(inference, rank));
  const Shape in = inference.has_shape(0) ? inference.shape(0) : Shape(rank + 2);
  Shape out = in;
  for (size_t i = 0; i < rank; ++i) {
    PFRT_ASSIGN(out[i + 2], window_positions(inference, window, i, in[i + 2]));
  }
  inference.set_output(1, PFRT_DTYPE_INT64, out);
  inference.set_output(0, inference.input(0).dtype, std::move(out));
  return {};
}

double pool_flops(const Inference& inference) {
  const std::vector<int64_t>* kernel = inference.node().attr_ints("kernel_shape");
  if (!kernel || !inference.output(0).has_shape) return 0;
  return elements(inference.output(0).shape) * elements(Shape(kernel->begin(), kernel->end()));
}

Status infer_global_pool(Inference& inference) {
  PFRT_TRY(expect_rank_at_least(inference, 0, 2));
  const Type& in = inference.input(0);
  if (!in.has_shape) {
    inference.set_output_unknown_shape(0, in.dtype);
    return {};
  }
  Shape out(in.shape.size(), Dim(1));
  out[0] = in.shape[0];
  out[1] = in.shape[1];
  inference.set_output(0, in.dtype, std::move(out));
  return {};
}

namespace {

constexpr AttrDefault kPoolDefaults[] = {
    {"MaxPool", "ceil_mode", PFRT_ATTR_INT, 0},
    {"MaxPool", "storage_order", PFRT_ATTR_INT, 0},
    {"AveragePool", "ceil_mode", PFRT_ATTR_INT, 0},
    {"AveragePool", "count_include_pad", PFRT_ATTR_INT, 0},
    {"LpPool", "ceil_mode", PFRT_ATTR_INT, 0},
    {"LpPool", "p", PFRT_ATTR_INT, 2},
    {"GlobalLpPool", "p", PFRT_ATTR_INT, 2},
    {"RoiAlign", "output_height", PFRT_ATTR_INT, 1},
    {"RoiAlign", "output_width", PFRT_ATTR_INT, 1},
    {"RoiAlign", "sampling_ratio", PFRT_ATTR_INT, 0},
    {"RoiAlign", "spatial_scale", PFRT_ATTR_FLOAT, 1},
    {"MaxRoiPool", "spatial_scale", PFRT_ATTR_FLOAT, 1},
    {"NonMaxSuppression", "center_point_box", PFRT_ATTR_INT, 0},
};

// The norm's order was a float in opset 1.
Status integer_p(Rewriter& rewriter) {
  const Attribute* p = rewriter.node().attr("p");
  if (!p || p->type != PFRT_ATTR_FLOAT) return {};
  if (!(p->f >= 1 && p->f <= 1e6f) || p->f != std::floor(p->f))
    return rewriter.fail("p is ", static_cast<double>(p->f), ", needs a whole number of 1 or more");
  rewriter.node().set_attr(Attribute::of_int("p", static_cast<int64_t>(p->f)));
  return {};
}

Status canonical_pool(Rewriter& rewriter) {
  PFRT_TRY(integer_p(rewriter));
  PFRT_TRY(fill_defaults(rewriter, kPoolDefaults));
  const std::vector<int64_t>* kernel = rewriter.node().attr_ints("kernel_shape");
  if (!kernel || kernel->empty())
    return rewriter.fail("attribute 'kernel_shape' is missing or not a list of integers");
  const Shape spatial = rewriter.has_shape(0) ? spatial_dims(rewriter.input(0).shape) : Shape();
  return canonical_window(rewriter, kernel->size(), {}, spatial);
}

Status canonical_global_pool(Rewriter& rewriter) {
  PFRT_TRY(integer_p(rewriter));
  return fill_defaults(rewriter, kPoolDefaults);
}

Status canonical_max_unpool(Rewriter& rewriter) {
  const std::vector<int64_t>* kernel = rewriter.node().attr_ints("kernel_shape");
  if (!kernel || kernel->empty())
    return rewriter.fail("attribute 'kernel_shape' is missing or not a list of integers");
  const size_t rank = kernel->size();
  PFRT_TRY(fill_ints(rewriter, "strides", std::vector<int64_t>(rank, 1)));
  return fill_ints(rewriter, "pads", std::vector<int64_t>(2 * rank, 0));
}

Status infer_max_unpool(Inference& inference) {
  const std::vector<int64_t>* kernel = inference.node().attr_ints("kernel_shape");
  const size_t rank = kernel ? kernel->size() : 0;
  PFRT_TRY(expect_rank(inference, 0, rank + 2));
  PFRT_ASSIGN(const Window window, read_window(inference, rank));
  const Shape in = inference.has_shape(0) ? inference.shape(0) : Shape(rank + 2);
  Shape out = in;
  const std::optional<Shape> asked = inference.data(2);
  if (inference.has_input(2)) {
    if (asked && asked->size() != rank + 2)
      return inference.fail("output_shape has ", asked->size(), " entries, needs ", rank + 2);
    out = asked ? *asked : Shape(rank + 2);
  } else {
    SymbolTable& symbols = inference.symbols();
    for (size_t i = 0; i < rank; ++i) {
      const int64_t rest =
          window.kernel[i] - window.strides[i] - window.pads[i] - window.pads[rank + i];
      out[i + 2] = symbols.add(symbols.mul(in[i + 2], window.strides[i]), rest);
    }
  }
  for (const Dim& d : out)
    if (d.known() && d.value() < 0)
      return inference.fail("the output would have a dimension of ", d.value());
  inference.set_output(0, inference.input(0).dtype, std::move(out));
  return {};
}

Status canonical_roi_align(Rewriter& rewriter) {
  PFRT_TRY(fill_string(rewriter, "mode", "avg"));
  PFRT_TRY(fill_string(rewriter, "coordinate_transformation_mode",
                       rewriter.opset() < 16 ? "output_half_pixel" : "half_pixel"));
  return fill_defaults(rewriter, kPoolDefaults);
}

// Gives the output the shape [regions, channels, height, width].
Status set_regions(Inference& inference, int64_t height, int64_t width) {
  PFRT_TRY(expect_rank(inference, 0, 4));
  PFRT_TRY(expect_rank(inference, 1, 2));
  if (height < 1 || width < 1)
    return inference.fail("the output of a region is ", height, " by ", width,
                          ", needs 1 or more each");
  const Dim channels = inference.has_shape(0) ? inference.shape(0)[1] : Dim();
  const Dim regions = inference.has_shape(1) ? inference.shape(1)[0] : Dim();
  inference.set_output(0, inference.input(0).dtype, {regions, channels, height, width});
  return {};
}

Status infer_roi_align(Inference& inference) {
  PFRT_TRY(expect_rank(inference, 2, 1));
  if (inference.has_shape(1) && inference.has_shape(2)) {
    PFRT_TRY(expect_rank(inference, 1, 2));
    PFRT_TRY(expect_shape(inference, 2, {inference.shape(1)[0]}));
  }
  return set_regions(inference, inference.node().attr_int("output_height", 1),
                     inference.node().attr_int("output_width", 1));
}

Status canonical_max_roi_pool(Rewriter& rewriter) {
  const std::vector<int64_t>* size = rewriter.node().attr_ints("pooled_shape");
  if (!size || size->size() != 2)
    return rewriter.fail("attribute 'pooled_shape' must be two integers");
  return fill_defaults(rewriter, kPoolDefaults);
}

Status infer_max_roi_pool(Inference& inference) {
  const std::vector<int64_t>* size = inference.node().attr_ints("pooled_shape");
  if (!size || size->size() != 2)
    return inference.fail("attribute 'pooled_shape' must be two integers");
  return set_regions(inference, (*size)[0], (*size)[1]);
}

Status canonical_non_max_suppression(Rewriter& rewriter) {
  return fill_defaults(rewriter, kPoolDefaults);
}

Status infer_non_max_suppression(Inference& inference) {
  PFRT_TRY(expect_rank(inference, 0, 3));
  PFRT_TRY(expect_rank(inference, 1, 3));
  inference.set_output(0, PFRT_DTYPE_INT64, {Dim(), 3});
  return {};
}

constexpr OperatorDef kPoolOperators[] = {
    {"", "MaxPool", 1, 0, 1, 1, 1, 2, kOpPlain, 0, canonical_pool, infer_pool, pool_flops},
    {"", "AveragePool", 1, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_pool, infer_pool, pool_flops},
    {"", "LpPool", 1, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_pool, infer_pool, pool_flops},
    {"", "GlobalAveragePool", 1, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_global_pool,
     flops_of_input},
    {"", "GlobalMaxPool", 1, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_global_pool,
     flops_of_input},
    {"", "GlobalLpPool", 1, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_global_pool, infer_global_pool,
     flops_of_input},
    {"", "MaxUnpool", 9, 0, 2, 3, 1, 1, kOpPlain, 1u << 2, canonical_max_unpool, infer_max_unpool,
     nullptr},
    {"", "RoiAlign", 10, 0, 3, 3, 1, 1, kOpPlain, 0, canonical_roi_align, infer_roi_align, nullptr},
    {"", "MaxRoiPool", 1, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_max_roi_pool, infer_max_roi_pool,
     nullptr},
    {"", "NonMaxSuppression", 10, 0, 2, 5, 1, 1, kOpDataDependent, 0, canonical_non_max_suppression,
     infer_non_max_suppression, flops_of_input},
};

}  // namespace

std::span<const OperatorDef> pool_operators() { return kPoolOperators; }

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// Experimental operators of early ai.onnx that the standard dropped, and that converters of that
// time wrote. ONNX Runtime still runs them, up to opset 9.
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

using contrib::drop;
using contrib::replace_with;

constexpr AttrDefault kDefaults[] = {
    {"Affine", "alpha", PFRT_ATTR_FLOAT, 1},
    {"Affine", "beta", PFRT_ATTR_FLOAT, 0},
    {"Scale", "scale", PFRT_ATTR_FLOAT, 1},
    {"ImageScaler", "scale", PFRT_ATTR_FLOAT, 1},
};

// Combines input 0 with a number by |op|: before this node, or in its place.
Result<ValueId> number(Rewriter& rewriter, float value) {
  PFRT_ASSIGN(const pfrt_dtype dtype, contrib::dtype_of(rewriter, 0));
  return rewriter.scalar("number", dtype, static_cast<double>(value));
}

// Computes alpha * x + beta.
Status canonical_affine(Rewriter& rewriter) {
  PFRT_TRY(fill_defaults(rewriter, kDefaults));
  const float alpha = rewriter.node().attr_float("alpha", 1),
              beta = rewriter.node().attr_float("beta", 0);
  drop(rewriter, {"alpha", "beta"});
  PFRT_ASSIGN(const ValueId factor, number(rewriter, alpha));
  PFRT_ASSIGN(const ValueId term, number(rewriter, beta));
  rewriter.set_input(1, factor);
  PFRT_TRY(replace_with(rewriter, "Mul"));
  return rewriter.after("Add", {term});
}

Status canonical_scale(Rewriter& rewriter) {
  PFRT_TRY(fill_defaults(rewriter, kDefaults));
  const float scale = rewriter.node().attr_float("scale", 1);
  drop(rewriter, {"scale"});
  PFRT_ASSIGN(const ValueId factor, number(rewriter, scale));
  rewriter.set_input(1, factor);
  return replace_with(rewriter, "Mul");
}

// Computes alpha * f(beta * x).
Status canonical_curve(Rewriter& rewriter, std::string_view curve) {
  for (const std::string_view name : {"alpha", "beta"})
    if (const Attribute* a = rewriter.node().attr(name); !a || a->type != PFRT_ATTR_FLOAT)
      return rewriter.fail("attribute '", name, "' is missing or not a float");
  const float alpha = rewriter.node().attr_float("alpha", 1),
              beta = rewriter.node().attr_float("beta", 1);
  drop(rewriter, {"alpha", "beta"});
  PFRT_ASSIGN(const ValueId inner, number(rewriter, beta));
  PFRT_ASSIGN(const ValueId outer, number(rewriter, alpha));
  rewriter.set_input(1, inner);
  PFRT_TRY(replace_with(rewriter, "Mul"));
  PFRT_TRY(rewriter.after(curve, {}));
  return rewriter.after("Mul", {outer});
}
Status canonical_scaled_tanh(Rewriter& rewriter) { return canonical_curve(rewriter, "Tanh"); }
Status canonical_softplus(Rewriter& rewriter) { return canonical_curve(rewriter, "Softplus"); }

// Computes x * scale, plus a bias for each channel of [N, C, H, W].
Status canonical_image_scaler(Rewriter& rewriter) {
  PFRT_TRY(fill_defaults(rewriter, kDefaults));
  const float scale = rewriter.node().attr_float("scale", 1);
  const Attribute* bias = rewriter.node().attr("bias");
  if (!bias || bias->type != PFRT_ATTR_FLOATS)
    return rewriter.fail("attribute 'bias' is missing or not a list of floats");
  if (rewriter.has_shape(0) && rewriter.rank(0) != 4)
    return rewriter.fail("the input has rank ", rewriter.rank(0), ", needs 4");
  const int64_t channels = static_cast<int64_t>(bias->floats.size());
  if (rewriter.has_shape(0)) {
    const Dim found = rewriter.input(0).shape[1];
    if (found.known() && found.value() != channels)
      return rewriter.fail("bias has ", channels, " entries for ", found.value(), " channels");
  }
  PFRT_ASSIGN(const pfrt_dtype dtype, contrib::dtype_of(rewriter, 0));
  if (dtype != PFRT_DTYPE_FLOAT32)
    return rewriter.fail("the input is ", dtype_name(dtype), ", needs float32");
  PFRT_ASSIGN(Tensor list, Tensor::copy_of(dtype, {channels, 1, 1}, bias->floats.data()));
  const ValueId term = rewriter.constant_value("bias", std::move(list));
  drop(rewriter, {"scale", "bias"});
  PFRT_ASSIGN(const ValueId factor, number(rewriter, scale));
  rewriter.set_input(1, factor);
  PFRT_TRY(replace_with(rewriter, "Mul"));
  return rewriter.after("Add", {term});
}

// Cuts borders (left, top, right, bottom) off [N, C, H, W]; with "scale" (height, width), leaves
// that much from the left and top border on.
Status canonical_crop(Rewriter& rewriter) {
  const std::vector<int64_t>* border = rewriter.node().attr_ints("border");
  if (!border || border->size() != 4)
    return rewriter.fail("attribute 'border' must be 4 integers: left, top, right, bottom");
  const std::vector<int64_t>* scale = rewriter.node().attr_ints("scale");
  if (scale && scale->size() != 2)
    return rewriter.fail("attribute 'scale' must be 2 integers: height, width");
  constexpr int64_t kLargest = int64_t{1} << 40;
  for (const std::vector<int64_t>* list : {border, scale})
    for (size_t i = 0; list && i < list->size(); ++i)
      if ((*list)[i] < 0 || (*list)[i] > kLargest)
        return rewriter.fail("a border or size is ", (*list)[i], ", needs 0 to ", kLargest);
  if (rewriter.has_shape(0) && rewriter.rank(0) != 4)
    return rewriter.fail("the input has rank ", rewriter.rank(0), ", needs 4");
  const std::vector<int64_t> begins = {(*border)[1], (*border)[0]};
  const std::vector<int64_t> margins = {(*border)[3], (*border)[2]};
  for (size_t i = 0; rewriter.has_shape(0) && i < 2; ++i) {
    const Dim length = rewriter.input(0).shape[i + 2];
    const int64_t needed = begins[i] + (scale ? (*scale)[i] : margins[i]);
    if (length.known() && length.value() < needed)
      return rewriter.fail("dimension ", i + 2, " has ", length.value(),
                           " elements; border and size take ", needed);
  }
  const ValueId x = contrib::input(rewriter, 0);
  PFRT_ASSIGN(const ValueId starts, rewriter.int64s("starts", begins));
  ValueId ends = kNoId;
  if (scale) {
    PFRT_ASSIGN(ends, rewriter.int64s("ends", {begins[0] + (*scale)[0], begins[1] + (*scale)[1]}));
  } else {
    PFRT_ASSIGN(const ValueId sizes,
                rewriter.before("Shape", {x},
                                {Attribute::of_int("start", 2), Attribute::of_int("end", 4)}));
    PFRT_ASSIGN(const ValueId less, rewriter.int64s("margins", margins));
    PFRT_ASSIGN(ends, rewriter.before("Sub", {sizes, less}));
  }
  PFRT_ASSIGN(const ValueId axes, rewriter.int64s("axes", {2, 3}));
  PFRT_ASSIGN(const ValueId steps, rewriter.int64s("steps", {1, 1}));
  drop(rewriter, {"border", "scale"});
  rewriter.node().inputs = {x, starts, ends, axes, steps};
  return replace_with(rewriter, "Slice");
}

Status canonical_dynamic_slice(Rewriter& rewriter) { return replace_with(rewriter, "Slice"); }

constexpr OperatorDef row(std::string_view name, int least, int most,
                          Status (*canonicalise)(Rewriter&)) {
  return {"", name, 1, 9, least, most, 1, 1, kOpPlain, 0, canonicalise, nullptr, nullptr};
}

constexpr OperatorDef kRows[] = {
    row("Affine", 1, 1, canonical_affine),
    row("Crop", 1, 1, canonical_crop),
    row("DynamicSlice", 3, 4, canonical_dynamic_slice),
    row("ImageScaler", 1, 1, canonical_image_scaler),
    row("ParametricSoftplus", 1, 1, canonical_softplus),
    row("Scale", 1, 1, canonical_scale),
    row("ScaledTanh", 1, 1, canonical_scaled_tanh),
};

}  // namespace

std::span<const OperatorDef> removed_operators() { return kRows; }

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// Resampling: Resize (with Upsample, its first name), GridSample, AffineGrid.
#include "core/op/defs/resize.h"

#include <algorithm>
#include <cmath>

#include "core/base/half.h"
#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

constexpr AttrDefault kResizeDefaults[] = {
    {"Resize", "cubic_coeff_a", PFRT_ATTR_FLOAT, -0.75},
    {"Resize", "exclude_outside", PFRT_ATTR_INT, 0},
    {"Resize", "extrapolation_value", PFRT_ATTR_FLOAT, 0},
    {"Resize", "antialias", PFRT_ATTR_INT, 0},
    {"GridSample", "align_corners", PFRT_ATTR_INT, 0},
    {"AffineGrid", "align_corners", PFRT_ATTR_INT, 0},
};

Status fill_resize(Rewriter& rewriter) {
  PFRT_TRY(fill_string(rewriter, "mode", "nearest"));
  PFRT_TRY(fill_string(rewriter, "coordinate_transformation_mode", "half_pixel"));
  PFRT_TRY(fill_string(rewriter, "nearest_mode", "round_prefer_floor"));
  PFRT_TRY(fill_string(rewriter, "keep_aspect_ratio_policy", "stretch"));
  return fill_defaults(rewriter, kResizeDefaults);
}

// An attribute whose value has to be one of |words|.
struct Words {
  std::string_view name;
  std::vector<std::string_view> words;
};

Status check_words(Rewriter& rewriter, const std::vector<Words>& attributes) {
  for (const Words& a : attributes) {
    const std::string given(rewriter.node().attr_string(a.name, ""));
    if (std::find(a.words.begin(), a.words.end(), given) != a.words.end()) continue;
    std::string known;
    for (std::string_view word : a.words) known += (known.empty() ? "" : ", ") + std::string(word);
    return rewriter.fail("attribute '", a.name, "' is '", given, "', needs one of ", known);
  }
  return {};
}

Status check_resize(Rewriter& rewriter) {
  return check_words(
      rewriter, {{"mode", {"nearest", "linear", "cubic"}},
                 {"coordinate_transformation_mode",
                  {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                   "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"}},
                 {"nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}},
                 {"keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"}}});
}

std::vector<float> floats_of(const Tensor* constant) {
  if (!constant || constant->count() <= 0) return {};
  std::vector<float> out(static_cast<size_t>(constant->count()));
  for (size_t i = 0; i < out.size(); ++i) {
    switch (constant->dtype) {
      case PFRT_DTYPE_FLOAT32:
        out[i] = constant->as<float>()[i];
        break;
      case PFRT_DTYPE_FLOAT64:
        out[i] = static_cast<float>(constant->as<double>()[i]);
        break;
      case PFRT_DTYPE_FLOAT16:
        out[i] = float16_to_float(constant->as<uint16_t>()[i]);
        break;
      case PFRT_DTYPE_BFLOAT16:
        out[i] = bfloat16_to_float(constant->as<uint16_t>()[i]);
        break;
      default:
        return {};
    }
  }
  return out;
}

// Older opsets of Upsample have the scales as attributes; moves them to input 1.
Status scales_to_input(Rewriter& rewriter) {
  Node& node = rewriter.node();
  std::vector<float> scales;
  if (const Attribute* list = node.attr("scales")) {
    scales = list->floats;
  } else if (node.attr("height_scale") && node.attr("width_scale")) {
    scales = {1, 1, node.attr_float("height_scale", 1), node.attr_float("width_scale", 1)};
  }
  for (std::string_view name : {"scales", "height_scale", "width_scale"}) node.drop_attr(name);
  if (scales.empty() || rewriter.has_input(1)) return {};
  PFRT_ASSIGN(Tensor tensor, Tensor::of_float(scales));
  rewriter.set_input(1, rewriter.constant_value("scales", std::move(tensor)));
  return {};
}

// Up to opset 10 the inputs are X and scales, and coordinates are asymmetric. Nearest rounds down
// along dimensions that grow and up along those that shrink; but Resize now has one rounding for
// all. So if some grow and others shrink, a node put before this one resizes those that grow.
Status canonical_asymmetric(Rewriter& rewriter) {
  PFRT_TRY(scales_to_input(rewriter));
  Node& node = rewriter.node();
  node.op = "Resize";
  if (!rewriter.has_input(1)) return rewriter.fail("needs scales as input 1 or as an attribute");
  const std::string_view mode = node.attr_string("mode", "nearest");
  if (mode != "nearest" && mode != "linear" && mode != "bilinear")
    return rewriter.fail("mode is '", mode, "', needs nearest or linear");
  node.set_attr(Attribute::of_string("mode", mode == "nearest" ? "nearest" : "linear"));
  node.set_attr(Attribute::of_string("coordinate_transformation_mode", "asymmetric"));
  node.set_attr(Attribute::of_string("nearest_mode", "floor"));
  PFRT_TRY(fill_resize(rewriter));

  ValueId scales = node.inputs[1];
  std::vector<float> grow = floats_of(rewriter.constant(1)), shrink = grow;
  for (float& scale : grow) scale = std::max(scale, 1.0f);
  for (float& scale : shrink) scale = std::min(scale, 1.0f);
  const bool grows = std::any_of(grow.begin(), grow.end(), [](float s) { return s > 1; });
  const bool shrinks = std::any_of(shrink.begin(), shrink.end(), [](float s) { return s < 1; });
  if (node.attr_string("mode", "") == "nearest" && shrinks) {
    if (grows) {
      PFRT_ASSIGN(Tensor up, Tensor::of_float(grow));
      PFRT_ASSIGN(Tensor down, Tensor::of_float(shrink));
      const ValueId first = rewriter.constant_value("scales", std::move(up));
      PFRT_ASSIGN(node.inputs[0],
                  rewriter.before("Resize", {node.inputs[0], kNoId, first}, node.attrs));
      scales = rewriter.constant_value("scales", std::move(down));
    }
    node.set_attr(Attribute::of_string("nearest_mode", "ceil"));
  }
  node.inputs = {node.inputs[0], kNoId, scales};
  return {};
}

// Coordinates of opset 11's tf_half_pixel_for_nn are those of half_pixel plus 1/2. The floor of x +
// 1/2 is x rounded with halves up, and x + 1/2 rounded with halves down is the ceil of x.
Status replace_tf_half_pixel(Rewriter& rewriter) {
  Node& node = rewriter.node();
  const std::string_view nearest = node.attr_string("nearest_mode", "");
  std::string_view rounding;
  if (nearest == "floor") rounding = "round_prefer_ceil";
  if (nearest == "round_prefer_floor") rounding = "ceil";
  if (node.attr_string("mode", "") != "nearest" || rounding.empty())
    return rewriter.unsupported(
        "tf_half_pixel_for_nn is supported with mode nearest and nearest_mode floor or "
        "round_prefer_floor");
  node.set_attr(Attribute::of_string("nearest_mode", std::string(rounding)));
  node.set_attr(Attribute::of_string("coordinate_transformation_mode", "half_pixel"));
  return {};
}

Status canonical_resize(Rewriter& rewriter) {
  if (rewriter.opset() < 11) return canonical_asymmetric(rewriter);
  PFRT_TRY(fill_resize(rewriter));
  PFRT_TRY(check_resize(rewriter));
  Node& node = rewriter.node();
  if (node.attr_string("coordinate_transformation_mode", "") == "tf_half_pixel_for_nn")
    PFRT_TRY(replace_tf_half_pixel(rewriter));
  // Opset 11 marks an absent input by an empty tensor. Input 1, the region, has a meaning only with
  // tf_crop_and_resize.
  const bool crops = node.attr_string("coordinate_transformation_mode", "") == "tf_crop_and_resize";
  for (size_t i = 1; i < 4; ++i) {
    const bool empty =
        rewriter.has_shape(i) && rewriter.rank(i) == 1 && rewriter.input(i).shape[0].is(0);
    if (rewriter.has_input(i) && (empty || (i == 1 && !crops))) rewriter.set_input(i, kNoId);
  }
  if (!rewriter.has_input(2) && !rewriter.has_input(3))
    return rewriter.fail("needs scales or sizes");
  const std::vector<int64_t>* given = node.attr_ints("axes");
  if (!given || !rewriter.has_shape(0)) return {};
  std::vector<int64_t> axes = *given;
  const int64_t rank = static_cast<int64_t>(rewriter.rank(0));
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank)
      return rewriter.fail("axis ", axis, " is not one of an input of rank ", rank);
    if (axis < 0) axis += rank;
  }
  node.set_attr(Attribute::of_ints("axes", std::move(axes)));
  return {};
}

// Multiplies |dim| by |scale|, rounded down.
Dim scaled(SymbolTable& symbols, const Dim& dim, float scale) {
  if (scale == 1.0f || dim.unknown()) return dim;
  if (dim.known()) {
    const float size = std::floor(static_cast<float>(dim.value()) * scale);
    return size < 4e18f ? Dim(static_cast<int64_t>(size)) : Dim();
  }
  if (scale == std::floor(scale) && scale < 1e6f)
    return symbols.mul(dim, static_cast<int64_t>(scale));
  const std::string name = symbols.text(dim);
  return name.size() < 60
             ? symbols.symbol(message("floor(", name, "*", static_cast<double>(scale), ")"))
             : Dim();
}

Status apply_scales(const Inference& inference, const std::vector<size_t>& axes, Shape& out) {
  const std::vector<float> scales = floats_of(inference.constant(2));
  std::vector<float> regions;
  const bool crops = inference.has_input(1);
  if (crops) regions = floats_of(inference.constant(1));
  if (scales.empty() || (crops && regions.empty())) {
    for (size_t axis : axes) out[axis] = Dim();
    return {};
  }
  if (scales.size() != axes.size())
    return inference.fail("there are ", scales.size(), " scales for ", axes.size(), " dimensions");
  if (crops && regions.size() != 2 * axes.size())
    return inference.fail("roi has ", regions.size(), " entries for ", axes.size(), " dimensions");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!(scales[i] > 0))
      return inference.fail("scale ", i, " is ", static_cast<double>(scales[i]), ", needs > 0");
    const float part = crops ? regions[axes.size() + i] - regions[i] : 1.0f;
    if (!(part >= 0)) return inference.fail("roi ends before it starts in dimension ", axes[i]);
    out[axes[i]] = scaled(inference.symbols(), out[axes[i]], scales[i] * part);
  }
  return {};
}

Status apply_sizes(const Inference& inference, const std::vector<size_t>& axes, Shape& out) {
  const std::optional<Shape> sizes = inference.data(3);
  if (sizes && sizes->size() != axes.size())
    return inference.fail("there are ", sizes->size(), " sizes for ", axes.size(), " dimensions");
  const std::string_view policy =
      inference.node().attr_string("keep_aspect_ratio_policy", "stretch");
  bool all_known = sizes.has_value();
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dim size = sizes ? (*sizes)[i] : Dim();
    if (size.known() && size.value() < 0) return inference.fail("size ", i, " is ", size.value());
    all_known = all_known && size.known() && out[axes[i]].known() && out[axes[i]].value() > 0;
    if (policy == "stretch") out[axes[i]] = size;
  }
  if (policy == "stretch") return {};
  if (!all_known) {
    for (size_t axis : axes) out[axis] = Dim();
    return {};
  }
  // The other policies keep proportions by a single scale for all axes.
  float scale = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const float ratio =
        static_cast<float>((*sizes)[i].value()) / static_cast<float>(out[axes[i]].value());
    if (i == 0) {
      scale = ratio;
    } else {
      scale = policy == "not_larger" ? std::min(scale, ratio) : std::max(scale, ratio);
    }
  }
  for (size_t axis : axes) {
    const float size = std::round(scale * static_cast<float>(out[axis].value()));
    out[axis] = size < 4e18f ? Dim(static_cast<int64_t>(size)) : Dim();
  }
  return {};
}

Status infer_resize(Inference& inference) {
  const Type& in = inference.input(0);
  if (!in.has_shape) {
    inference.set_output_unknown_shape(0, in.dtype);
    return {};
  }
  std::vector<size_t> axes;
  if (const std::vector<int64_t>* given = inference.node().attr_ints("axes")) {
    for (int64_t a : *given) {
      PFRT_ASSIGN(const int64_t axis, inference.axis(a, in.shape.size()));
      axes.push_back(static_cast<size_t>(axis));
    }
  } else {
    for (size_t i = 0; i < in.shape.size(); ++i) axes.push_back(i);
  }
  Shape out = in.shape;
  PFRT_TRY(inference.has_input(3) ? apply_sizes(inference, axes, out)
                                  : apply_scales(inference, axes, out));
  inference.set_output(0, in.dtype, std::move(out));
  return {};
}

// In opset 16 the modes linear and cubic are called bilinear and bicubic.
Status canonical_grid_sample(Rewriter& rewriter) {
  PFRT_TRY(fill_defaults(rewriter, kResizeDefaults));
  PFRT_TRY(fill_string(rewriter, "mode", "linear"));
  PFRT_TRY(fill_string(rewriter, "padding_mode", "zeros"));
  const std::string mode(rewriter.node().attr_string("mode", ""));
  if (mode == "bilinear") rewriter.node().set_attr(Attribute::of_string("mode", "linear"));
  if (mode == "bicubic") rewriter.node().set_attr(Attribute::of_string("mode", "cubic"));
  return check_words(rewriter, {{"mode", {"linear", "nearest", "cubic"}},
                                {"padding_mode", {"zeros", "border", "reflection"}}});
}

// X is [N, C, D dimensions], the grid [N, D dimensions of the output, D coordinates].
Status infer_grid_sample(Inference& inference) {
  PFRT_TRY(expect_rank_at_least(inference, 0, 3));
  PFRT_TRY(expect_rank_at_least(inference, 1, 3));
  const pfrt_dtype dtype = inference.input(0).dtype;
  if (!inference.has_shape(1)) {
    inference.set_output(0, inference.has_shape(0) ? Type::tensor(dtype, Shape(inference.rank(0)))
                                                   : Type::tensor(dtype));
    return {};
  }
  const Shape& grid = inference.shape(1);
  Shape out(grid.size());
  std::copy(grid.begin() + 1, grid.end() - 1, out.begin() + 2);
  out[0] = grid[0];
  if (inference.has_shape(0)) {
    PFRT_TRY(expect_rank(inference, 1, inference.rank(0)));
    const Shape& in = inference.shape(0);
    PFRT_ASSIGN(out[0],
                same_dim(inference, in[0], grid[0], "the batches of the input and the grid"));
    out[1] = in[1];
    const int64_t coordinates = static_cast<int64_t>(in.size() - 2);
    if (grid.back().known() && grid.back().value() != coordinates)
      return inference.fail("the grid has ", grid.back().value(),
                            " coordinates a point, the input needs ", coordinates);
  }
  inference.set_output(0, dtype, std::move(out));
  return {};
}

Status canonical_affine_grid(Rewriter& rewriter) {
  return fill_defaults(rewriter, kResizeDefaults);
}

// |size| is [N, C, D dimensions], the output [N, the same D dimensions, D coordinates].
Status infer_affine_grid(Inference& inference) {
  PFRT_TRY(expect_rank(inference, 0, 3));
  const std::optional<Shape> size = inference.data(1);
  const std::optional<int64_t> length =
      size ? static_cast<int64_t>(size->size()) : list_length(inference, 1);
  const pfrt_dtype dtype = inference.input(0).dtype;
  if (!length) {
    inference.set_output_unknown_shape(0, dtype);
    return {};
  }
  if (*length != 4 && *length != 5)
    return inference.fail("size has ", *length, " entries, needs 4 or 5");
  const size_t rank = static_cast<size_t>(*length);
  Shape out(rank);
  if (size) {
    for (const Dim& d : *size)
      if (d.known() && d.value() < 0) return inference.fail("size has a negative entry");
    out[0] = (*size)[0];
    std::copy(size->begin() + 2, size->end(), out.begin() + 1);
  }
  out[rank - 1] = *length - 2;
  inference.set_output(0, dtype, std::move(out));
  return {};
}

// Estimates operations: for each element of the output, weights are computed and neighbours added.
double resize_flops(const Inference& inference) {
  if (!inference.output(0).has_shape) return 0;
  const std::string_view mode = inference.node().attr_string("mode", "nearest");
  return elements(inference.output(0).shape) * (mode == "nearest" ? 1 : mode == "cubic" ? 32 : 8);
}

constexpr OperatorDef kResizeOperators[] = {
    {"", "Upsample", 1, 9, 1, 2, 1, 1, kOpPlain, 0, canonical_asymmetric, nullptr, nullptr},
    {"", "Resize", 10, 0, 1, 4, 1, 1, kOpPlain, 1u << 1 | 1u << 2 | 1u << 3, canonical_resize,
     infer_resize, resize_flops},
    {"", "GridSample", 16, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_grid_sample, infer_grid_sample,
     resize_flops},
    {"", "AffineGrid", 20, 0, 2, 2, 1, 1, kOpPlain, 1u << 1, canonical_affine_grid,
     infer_affine_grid, nullptr},
};

// The first length after resizing that is not a whole number; empty where there is none. A length
// that only a run knows counts where its scale is not whole.
std::string fractional_length(const Graph& graph, const Node& node) {
  if (node.op != "Resize" || !node.domain.empty() || node.has_input(3) || !node.has_input(2) ||
      node.attr_string("coordinate_transformation_mode", "") != "align_corners")
    return {};
  const Type& in = graph.at(node.inputs[0]).type;
  const std::vector<float> scales = floats_of(graph.constant(node.inputs[2]));
  const std::vector<int64_t>* axes = node.attr_ints("axes");
  for (size_t i = 0; i < scales.size() && in.has_shape; ++i) {
    const auto axis = axes && i < axes->size() ? static_cast<size_t>((*axes)[i]) : i;
    if (axis >= in.shape.size()) continue;
    const Dim& dim = in.shape[axis];
    const float length = scales[i] * (dim.known() ? static_cast<float>(dim.value()) : 1.0f);
    if (length == std::floor(length)) continue;
    return message(graph.symbols->text(dim), " times ", static_cast<double>(scales[i]));
  }
  return {};
}

void find_fractional(const Graph& graph, std::string& first, size_t& count) {
  for (const NodeId id : graph.node_ids()) {
    const Node& node = *graph.node(id);
    if (const std::string length = fractional_length(graph, node); !length.empty())
      if (count++ == 0) first = message(describe(graph, node), ": ", length);
    for (const Attribute& attr : node.attrs) {
      if (attr.graph) find_fractional(*attr.graph, first, count);
      for (const auto& body : attr.graphs)
        if (body) find_fractional(*body, first, count);
    }
  }
}

}  // namespace

std::string fractional_lengths(const Graph& graph) {
  std::string first;
  size_t count = 0;
  find_fractional(graph, first, count);
  if (count == 0) return {};
  return message(first,
                 " is no whole length. With align_corners its corners lie by that length, as "
                 "the standard's tests have it; PyTorch and ONNX Runtime round it down first and "
                 "give other values",
                 count > 1 ? message(" (", count, " nodes)") : std::string(),
                 "; give sizes in place of scales to have theirs");
}

std::span<const OperatorDef> resize_operators() { return kResizeOperators; }

}  // namespace pfrt

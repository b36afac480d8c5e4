// SPDX-License-Identifier: Apache-2.0
//
// Operators on shapes: reading one, and giving the same elements another.
#include <algorithm>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/engine/contents.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

// Gives output 0 the contents of input 0.
void keep_data(Inference& inference) {
  if (std::optional<Shape> elements = inference.data(0))
    inference.set_data(0, std::move(*elements));
}

// Gives output 0 |rank| unknown dimensions, or an unknown rank.
void set_unknown(Inference& inference, std::optional<int64_t> rank) {
  const pfrt_dtype dtype = inference.input(0).dtype;
  if (rank && *rank >= 0 && *rank <= kHighestRank) {
    inference.set_output(0, dtype, Shape(static_cast<size_t>(*rank)));
  } else {
    inference.set_output_unknown_shape(0, dtype);
  }
}

Status check_natural(const Inference& inference, const Shape& shape) {
  for (const Dim& d : shape)
    if (d.known() && d.value() < 0)
      return inference.fail("the shape ", inference.symbols().text(shape),
                            " has a negative dimension");
  return {};
}

// The range [start, end) of Shape's attributes within |rank|.
std::pair<size_t, size_t> shape_range(const Node& node, size_t rank) {
  const int64_t r = static_cast<int64_t>(rank);
  auto place = [r](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? std::max<int64_t>(at, -r) + r : at, 0, r);
  };
  const int64_t start = place(node.attr_int("start", 0)), end = place(node.attr_int("end", r));
  return {static_cast<size_t>(start), static_cast<size_t>(std::max(start, end))};
}

Status canonical_shape(Rewriter& rewriter) {
  PFRT_TRY(fill_int(rewriter, "start", 0));
  if (!rewriter.has_shape(0)) return {};
  Node& node = rewriter.node();
  const auto [start, end] = shape_range(node, rewriter.rank(0));
  node.set_attr(Attribute::of_int("start", static_cast<int64_t>(start)));
  node.set_attr(Attribute::of_int("end", static_cast<int64_t>(end)));
  return {};
}

Status infer_shape(Inference& inference) {
  if (!inference.has_shape(0)) {
    inference.set_output(0, PFRT_DTYPE_INT64, {Dim()});
    return {};
  }
  const auto [start, end] = shape_range(inference.node(), inference.rank(0));
  const Shape& in = inference.shape(0);
  Shape part(in.begin() + static_cast<int64_t>(start), in.begin() + static_cast<int64_t>(end));
  inference.set_output(0, PFRT_DTYPE_INT64, {static_cast<int64_t>(part.size())});
  inference.set_data(0, std::move(part));
  return {};
}

Status infer_size(Inference& inference) {
  inference.set_output(0, PFRT_DTYPE_INT64, {});
  if (inference.has_shape(0))
    inference.set_data(0, {volume(inference.symbols(), inference.shape(0))});
  return {};
}

Status canonical_reshape(Rewriter& rewriter) {
  if (rewriter.has_input(1)) {
    rewriter.node().drop_attr("shape");
  } else {
    PFRT_TRY(rewriter.attr_to_input("shape", 1));
  }
  return fill_int(rewriter, "allowzero", 0);
}

// The dimension for the -1 of |out|, from the others and the number of elements of |in|.
Result<Dim> rest_of(const Inference& inference, const Shape& in, const Shape& out, size_t hole) {
  SymbolTable& symbols = inference.symbols();
  const RestOfShape rest = rest_of_shape(symbols, in, out, hole);
  if (rest.open)
    return inference.fail(
        "the shape has a 0 besides -1, which then stands for any number; give all dimensions");
  if (rest.uneven)
    return inference.fail("shape ", symbols.text(in), " does not divide into ", symbols.text(out));
  return rest.dim;
}

Status check_same_size(const Inference& inference, const Shape& in, const Shape& out) {
  const Dim before = volume(inference.symbols(), in), after = volume(inference.symbols(), out);
  if (!before.known() || !after.known() || before == after) return {};
  return inference.fail("shape ", inference.symbols().text(in), " has ", before.value(),
                        " elements, the new shape ", inference.symbols().text(out), " has ",
                        after.value());
}

Status infer_reshape(Inference& inference) {
  if (!inference.has_input(1))
    return inference.fail("needs the new shape as input 1 or as attribute 'shape'");
  PFRT_TRY(expect_rank(inference, 1, 1));
  const std::optional<Shape> asked = inference.data(1);
  if (!asked) {
    set_unknown(inference, list_length(inference, 1));
    keep_data(inference);
    return {};
  }
  const bool zero_copies = inference.node().attr_int("allowzero", 0) == 0;
  const bool known_input = inference.has_shape(0);
  Shape out = *asked;
  std::optional<size_t> hole;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out[i].known()) continue;
    if (out[i].value() < -1)
      return inference.fail("the new shape ", inference.symbols().text(*asked),
                            " has a dimension below -1");
    if (out[i].value() == -1) {
      if (hole)
        return inference.fail("the new shape ", inference.symbols().text(*asked), " has -1 twice");
      hole = i;
    } else if (out[i].value() == 0 && zero_copies) {
      if (known_input && i >= inference.rank(0))
        return inference.fail("the new shape ", inference.symbols().text(*asked),
                              " copies dimension ", i, " of an input of rank ", inference.rank(0));
      out[i] = known_input ? inference.shape(0)[i] : Dim();
    }
  }
  if (hole) {
    if (known_input) {
      PFRT_ASSIGN(out[*hole], rest_of(inference, inference.shape(0), out, *hole));
    } else {
      out[*hole] = Dim();
    }
  } else if (known_input) {
    PFRT_TRY(check_same_size(inference, inference.shape(0), out));
  }
  inference.set_output(0, inference.input(0).dtype, std::move(out));
  keep_data(inference);
  return {};
}

Status canonical_flatten(Rewriter& rewriter) {
  PFRT_TRY(fill_int(rewriter, "axis", 1));
  const int64_t axis = rewriter.node().attr_int("axis", 1);
  const int64_t rank = rewriter.has_shape(0) ? static_cast<int64_t>(rewriter.rank(0)) : 0;
  if (axis < 0 && axis >= -rank) rewriter.node().set_attr(Attribute::of_int("axis", axis + rank));
  return {};
}

Status infer_flatten(Inference& inference) {
  if (!inference.has_shape(0)) {
    set_unknown(inference, 2);
    keep_data(inference);
    return {};
  }
  const Shape& in = inference.shape(0);
  const int64_t rank = static_cast<int64_t>(in.size());
  int64_t axis = inference.node().attr_int("axis", 1);
  if (axis < -rank || axis > rank)
    return inference.fail("axis ", axis, " is outside [", -rank, ", ", rank, "]");
  if (axis < 0) axis += rank;
  SymbolTable& symbols = inference.symbols();
  const size_t split = static_cast<size_t>(axis);
  inference.set_output(0, inference.input(0).dtype,
                       {volume(symbols, in, 0, split), volume(symbols, in, split)});
  keep_data(inference);
  return {};
}

Status canonical_squeeze(Rewriter& rewriter) {
  if (!rewriter.has_input(1)) PFRT_TRY(rewriter.attr_to_input("axes", 1));
  rewriter.node().drop_attr("axes");
  return rewriter.has_input(1) ? canonical_axes(rewriter, 1) : Status();
}

Status infer_squeeze(Inference& inference) {
  const Type& in = inference.input(0);
  const auto axes = inference.numbers(1);
  const bool all = !inference.has_input(1);
  if (!in.has_shape || (!all && !axes)) {
    const std::optional<int64_t> fewer =
        all || !in.has_shape ? std::nullopt : list_length(inference, 1);
    set_unknown(inference, fewer ? std::optional(static_cast<int64_t>(in.shape.size()) - *fewer)
                                 : std::nullopt);
    keep_data(inference);
    return {};
  }
  if (all && !in.fixed()) {
    // Only a run knows which dimensions are 1, and so the rank.
    set_unknown(inference, std::nullopt);
    keep_data(inference);
    return {};
  }
  std::vector<bool> drop(in.shape.size(), false);
  if (all) {
    for (size_t i = 0; i < drop.size(); ++i) drop[i] = in.shape[i].is(1);
  } else {
    for (int64_t given : *axes) {
      PFRT_ASSIGN(const int64_t axis, inference.axis(given, in.shape.size()));
      const size_t at = static_cast<size_t>(axis);
      if (in.shape[at].known() && !in.shape[at].is(1))
        return inference.fail("dimension ", axis, " of shape ", inference.symbols().text(in.shape),
                              " is not 1");
      if (drop[at]) return inference.fail("axis ", axis, " is given twice");
      drop[at] = true;
    }
  }
  Shape out;
  for (size_t i = 0; i < drop.size(); ++i)
    if (!drop[i]) out.push_back(in.shape[i]);
  inference.set_output(0, in.dtype, std::move(out));
  keep_data(inference);
  return {};
}

Status canonical_unsqueeze(Rewriter& rewriter) {
  if (!rewriter.has_input(1)) PFRT_TRY(rewriter.attr_to_input("axes", 1));
  rewriter.node().drop_attr("axes");
  const Tensor* given = rewriter.constant(1);
  if (!given || !rewriter.has_shape(0)) return {};
  // Axes refer to the output, whose rank is the input's plus the number of axes.
  std::vector<int64_t> axes = to_int64s(*given);
  if (std::none_of(axes.begin(), axes.end(), [](int64_t axis) { return axis < 0; })) return {};
  const int64_t rank = static_cast<int64_t>(rewriter.rank(0) + axes.size());
  for (int64_t& axis : axes) {
    if (axis < -rank)
      return rewriter.fail("axis ", axis, " is not one of an output of rank ", rank);
    if (axis < 0) axis += rank;
  }
  PFRT_ASSIGN(const ValueId value, rewriter.int64s("axes", axes));
  rewriter.set_input(1, value);
  return {};
}

Status infer_unsqueeze(Inference& inference) {
  if (!inference.has_input(1)) return inference.fail("needs axes as input 1 or as an attribute");
  const Type& in = inference.input(0);
  const auto axes = inference.numbers(1);
  if (!in.has_shape || !axes) {
    const std::optional<int64_t> more = in.has_shape ? list_length(inference, 1) : std::nullopt;
    set_unknown(inference,
                more ? std::optional(static_cast<int64_t>(in.shape.size()) + *more) : std::nullopt);
    keep_data(inference);
    return {};
  }
  const size_t rank = in.shape.size() + axes->size();
  std::vector<bool> fresh(rank, false);
  for (int64_t given : *axes) {
    PFRT_ASSIGN(const int64_t axis, inference.axis(given, rank));
    if (fresh[static_cast<size_t>(axis)]) return inference.fail("axis ", axis, " is given twice");
    fresh[static_cast<size_t>(axis)] = true;
  }
  Shape out;
  for (size_t i = 0, from = 0; i < rank; ++i) out.push_back(fresh[i] ? Dim(1) : in.shape[from++]);
  inference.set_output(0, in.dtype, std::move(out));
  keep_data(inference);
  return {};
}

Status infer_expand(Inference& inference) {
  PFRT_TRY(expect_rank(inference, 1, 1));
  const std::optional<Shape> asked = inference.data(1);
  if (!asked || !inference.has_shape(0)) {
    const std::optional<int64_t> length = list_length(inference, 1);
    const bool known = length && inference.has_shape(0);
    const int64_t own = known ? static_cast<int64_t>(inference.rank(0)) : 0;
    set_unknown(inference, known ? std::optional(std::max(own, *length)) : std::nullopt);
    return {};
  }
  PFRT_TRY(check_natural(inference, *asked));
  PFRT_ASSIGN(Shape out, inference.broadcast(inference.shape(0), *asked));
  const std::optional<Shape> elements = inference.data(0);
  const bool list = out.size() <= 1 && inference.symbols().product(out).known();
  const int64_t count = list ? inference.symbols().product(out).value() : -1;
  inference.set_output(0, inference.input(0).dtype, std::move(out));
  if (!elements || count < 0 || count > static_cast<int64_t>(kMaxData)) return {};
  const size_t wanted = static_cast<size_t>(count);
  if (elements->size() == wanted) inference.set_data(0, *elements);
  if (elements->size() == 1 && wanted != 1) inference.set_data(0, Shape(wanted, elements->front()));
  return {};
}

// Turns the copies and the axis, which only a run knows, into a number of copies for each
// dimension.
Status place_repeats(Rewriter& rewriter) {
  ValueId numbers[2];
  PFRT_ASSIGN(const ValueId list, rewriter.int64s("list", {1}));
  for (size_t i = 0; i < 2; ++i) {
    PFRT_ASSIGN(const ValueId whole, rewriter.before("Cast", {rewriter.node().inputs[i + 1]},
                                                     {Attribute::of_int("to", PFRT_DTYPE_INT64),
                                                      Attribute::of_int("saturate", 1)}));
    PFRT_ASSIGN(numbers[i],
                rewriter.before("Reshape", {whole, list}, {Attribute::of_int("allowzero", 0)}));
  }
  PFRT_ASSIGN(const ValueId ones,
              rewriter.int64s("ones", std::vector<int64_t>(rewriter.rank(0), 1)));
  PFRT_ASSIGN(
      const ValueId repeats,
      rewriter.before("ScatterElements", {ones, numbers[1], numbers[0]},
                      {Attribute::of_int("axis", 0), Attribute::of_string("reduction", "none")}));
  rewriter.set_input(1, repeats);
  rewriter.node().inputs.resize(2);
  return {};
}

// Before opset 6 Tile had a number of copies and one axis, both scalars of the data's type.
Status canonical_tile(Rewriter& rewriter) {
  if (!rewriter.has_input(2)) {
    if (!rewriter.has_input(1)) PFRT_TRY(rewriter.attr_to_input("repeats", 1));
    return {};
  }
  auto number = [&](size_t i) -> std::optional<int64_t> {
    const Tensor* constant = rewriter.constant(i);
    if (!constant || constant->count() != 1) return std::nullopt;
    if (constant->dtype == PFRT_DTYPE_FLOAT32) {
      const float value = *constant->as<float>();
      if (!(value >= 0 && value < 1e9f)) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    const std::vector<int64_t> values = to_int64s(*constant);
    return values.empty() ? std::nullopt : std::optional(values[0]);
  };
  const std::optional<int64_t> copies = number(1), axis = number(2);
  if (!rewriter.has_shape(0))
    return rewriter.unsupported("the opset 1 form needs an input of known rank");
  if (!copies || !axis) return place_repeats(rewriter);
  if (*axis < 0 || *axis >= static_cast<int64_t>(rewriter.rank(0)))
    return rewriter.fail("axis ", *axis, " is not one of an input of rank ", rewriter.rank(0));
  std::vector<int64_t> repeats(rewriter.rank(0), 1);
  repeats[static_cast<size_t>(*axis)] = *copies;
  PFRT_ASSIGN(const ValueId value, rewriter.int64s("repeats", repeats));
  rewriter.set_input(1, value);
  rewriter.node().inputs.resize(2);
  return {};
}

Status infer_tile(Inference& inference) {
  if (!inference.has_input(1)) return inference.fail("needs repeats as input 1");
  const std::optional<Shape> repeats = inference.data(1);
  const std::optional<int64_t> length =
      repeats ? static_cast<int64_t>(repeats->size()) : list_length(inference, 1);
  if (inference.has_shape(0) && length && *length != static_cast<int64_t>(inference.rank(0)))
    return inference.fail("repeats has ", *length, " entries for an input of rank ",
                          inference.rank(0));
  if (!repeats || !inference.has_shape(0)) {
    set_unknown(inference, inference.has_shape(0)
                               ? std::optional(static_cast<int64_t>(inference.rank(0)))
                               : length);
    return {};
  }
  PFRT_TRY(check_natural(inference, *repeats));
  Shape out = inference.shape(0);
  for (size_t i = 0; i < out.size(); ++i) out[i] = inference.symbols().mul(out[i], (*repeats)[i]);
  inference.set_output(0, inference.input(0).dtype, std::move(out));
  return {};
}

constexpr OperatorDef kShapeOperators[] = {
    {"", "Shape", 1, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_shape, infer_shape, nullptr},
    {"", "Size", 1, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_size, nullptr},
    {"", "Reshape", 1, 0, 1, 2, 1, 1, kOpPlain, 1u << 1, canonical_reshape, infer_reshape, nullptr},
    {"", "Flatten", 1, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_flatten, infer_flatten, nullptr},
    {"", "Squeeze", 1, 0, 1, 2, 1, 1, kOpPlain, 1u << 1, canonical_squeeze, infer_squeeze, nullptr},
    {"", "Unsqueeze", 1, 0, 1, 2, 1, 1, kOpPlain, 1u << 1, canonical_unsqueeze, infer_unsqueeze,
     nullptr},
    {"", "Expand", 8, 0, 2, 2, 1, 1, kOpPlain, 1u << 1, nullptr, infer_expand, nullptr},
    {"", "Tile", 1, 0, 1, 3, 1, 1, kOpPlain, 1u << 1, canonical_tile, infer_tile, nullptr},
};

}  // namespace

std::span<const OperatorDef> shape_operators() { return kShapeOperators; }

}  // namespace pfrt

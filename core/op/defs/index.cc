// SPDX-License-Identifier: Apache-2.0
//
// Operators that choose elements by position or by a condition: Slice, the Gather and Scatter
// operators, Compress, Unique.
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

Status canonical_slice(Rewriter& rewriter) {
  constexpr std::string_view kNames[] = {"", "starts", "ends", "axes", "steps"};
  for (size_t i = 1; i < 5; ++i) {
    if (!rewriter.has_input(i)) PFRT_TRY(rewriter.attr_to_input(kNames[i], i));
    rewriter.node().drop_attr(kNames[i]);
  }
  return rewriter.has_input(3) ? canonical_axes(rewriter, 3) : Status();
}

// The start of a slice within a known dimension.
int64_t slice_begin(int64_t dim, int64_t start, int64_t step) {
  const int64_t at = start < 0 ? std::max(start, -dim) + dim : start;
  return std::min(at, step > 0 ? dim : dim - 1);
}

// Number of elements that [start : end : step] takes of a known dimension.
int64_t taken(int64_t dim, int64_t start, int64_t end, int64_t step) {
  if (dim == 0) return 0;
  const int64_t begin = slice_begin(dim, start, step);
  const int64_t at = end < 0 ? std::max(end, -dim - 1) + dim : end;
  if (step > 0) {
    const int64_t stop = std::clamp<int64_t>(at, 0, dim);
    return stop > begin ? (stop - begin - 1) / step + 1 : 0;
  }
  const int64_t stop = std::clamp<int64_t>(at, -1, dim - 1);
  if (begin <= stop) return 0;
  return step == INT64_MIN ? 1 : (begin - stop - 1) / -step + 1;
}

// Exporters write numbers beyond these for "to the end".
bool far_right(const Dim& at) { return at.known() && at.value() >= INT32_MAX; }
bool far_left(const Dim& at) { return at.known() && at.value() <= -INT32_MAX; }

// Like taken, with symbols; unknown where it depends on the sign of a symbol.
Dim taken_symbolic(SymbolTable& symbols, Dim dim, Dim start, Dim end, int64_t step) {
  if (step < 0) {
    const bool whole = (start.is(-1) || far_right(start)) && far_left(end);
    if (!whole) return {};
    return step == INT64_MIN ? symbols.min(dim, 1) : symbols.ceil_div(dim, -step);
  }
  auto counted_back = [&](Dim at) {
    return far_left(at) ? Dim(0) : symbols.max(symbols.add(dim, at), 0);
  };
  const bool to_end = end == dim || far_right(end);
  Dim stop;
  if (to_end) {
    stop = dim;
  } else if (end.known() && end.value() < 0) {
    stop = counted_back(end);
  } else if (symbols.certainly_natural(end)) {
    stop = symbols.min(dim, end);
  }
  Dim span;
  if (start.is(0) || far_left(start)) {
    span = stop;
  } else if (start.known() && start.value() < 0) {
    span = to_end ? symbols.min(dim, -start.value())
                  : symbols.max(symbols.sub(stop, counted_back(start)), 0);
  } else if (symbols.certainly_natural(start)) {
    span = symbols.max(symbols.sub(stop, start), 0);
  }
  return symbols.ceil_div(span, step);
}

// Sets the contents of a sliced list.
void slice_data(Inference& inference, int64_t start, int64_t step) {
  const std::optional<Shape> elements = inference.data(0);
  const Type& out = inference.output(0);
  if (!elements || !out.fixed() || out.shape.size() != 1) return;
  const int64_t size = static_cast<int64_t>(elements->size());
  int64_t at = slice_begin(size, start, step);
  Shape picked;
  for (int64_t i = 0; i < out.shape[0].value() && at >= 0 && at < size; ++i) {
    picked.push_back((*elements)[static_cast<size_t>(at)]);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  if (static_cast<int64_t>(picked.size()) == out.shape[0].value())
    inference.set_data(0, std::move(picked));
}

struct SliceArguments {
  std::optional<Shape> starts, ends;
  std::vector<int64_t> axes, steps;
  bool steps_known = true;
};

// Reads the arguments, with axes and steps filled in; nullopt where the axes are not known.
Result<std::optional<SliceArguments>> slice_arguments(const Inference& inference) {
  SliceArguments a;
  a.starts = inference.data(1);
  a.ends = inference.data(2);
  std::optional<int64_t> count;
  for (size_t i = 1; i < 5; ++i) {
    if (!inference.has_input(i)) continue;
    PFRT_TRY(expect_rank(inference, i, 1));
    const std::optional<Shape> elements = inference.data(i);
    const auto length = elements ? std::optional(static_cast<int64_t>(elements->size()))
                                 : list_length(inference, i);
    if (count && length && *count != *length)
      return inference.fail("starts, ends, axes and steps need one length, found ", *count, " and ",
                            *length);
    if (length) count = length;
  }
  if (inference.has_input(3)) {
    const auto axes = inference.numbers(3);
    if (!axes) return std::optional<SliceArguments>();
    a.axes = *axes;
  } else {
    if (!count || *count > kHighestRank) return std::optional<SliceArguments>();
    for (int64_t i = 0; i < *count; ++i) a.axes.push_back(i);
  }
  a.steps.assign(a.axes.size(), 1);
  if (inference.has_input(4)) {
    const auto steps = inference.numbers(4);
    a.steps_known = steps.has_value();
    if (steps) a.steps = *steps;
  }
  return std::optional(std::move(a));
}

Status infer_slice(Inference& inference) {
  if (!inference.has_input(1) || !inference.has_input(2))
    return inference.fail("needs starts and ends as inputs 1 and 2 or as attributes");
  const Type in = inference.input(0);
  if (!in.has_shape) {
    inference.set_output_unknown_shape(0, in.dtype);
    return {};
  }
  PFRT_ASSIGN(const std::optional<SliceArguments> a, slice_arguments(inference));
  if (!a) {
    inference.set_output(0, in.dtype, Shape(in.shape.size()));
    return {};
  }
  SymbolTable& symbols = inference.symbols();
  Shape out = in.shape;
  for (size_t i = 0; i < a->axes.size(); ++i) {
    PFRT_ASSIGN(const int64_t axis, inference.axis(a->axes[i], out.size()));
    if (a->steps_known && a->steps[i] == 0)
      return inference.fail("the step along axis ", axis, " is 0");
    Dim& dim = out[static_cast<size_t>(axis)];
    if (!a->starts || !a->ends || !a->steps_known) {
      dim = Dim();
      continue;
    }
    const Dim start = (*a->starts)[i], end = (*a->ends)[i];
    const bool numbers = dim.known() && start.known() && end.known();
    dim = numbers ? Dim(taken(dim.value(), start.value(), end.value(), a->steps[i]))
                  : taken_symbolic(symbols, dim, start, end, a->steps[i]);
  }
  inference.set_output(0, in.dtype, std::move(out));
  if (in.shape.size() == 1 && a->starts && a->steps_known) {
    if (a->axes.empty()) {
      if (const std::optional<Shape> all = inference.data(0)) inference.set_data(0, *all);
    } else if (a->axes.size() == 1 && (*a->starts)[0].known()) {
      slice_data(inference, (*a->starts)[0].value(), a->steps[0]);
    }
  }
  return {};
}

Status canonical_gather(Rewriter& rewriter) { return canonical_axis(rewriter, "axis", 0); }

// Sets the contents to the elements that known indices choose along |axis|.
void gather_data(Inference& inference, size_t axis) {
  const std::optional<Shape> elements = inference.data(0);
  const auto indices = inference.numbers(1);
  const Type& in = inference.input(0);
  if (!elements || !indices || !in.fixed()) return;
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < in.shape.size(); ++i)
    if (i != axis) (i < axis ? outer : inner) *= in.shape[i].value();
  const int64_t size = in.shape[axis].value();
  const int64_t total = static_cast<int64_t>(elements->size());
  const int64_t wanted = static_cast<int64_t>(indices->size());
  // Each factor is at most kMaxData here, since the contents are known.
  if (outer * size * inner != total || outer * wanted * inner > static_cast<int64_t>(kMaxData))
    return;
  Shape out;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t index : *indices) {
      const int64_t at = index < 0 ? index + size : index;
      if (at < 0 || at >= size) return;
      const auto begin = elements->begin() + (o * size + at) * inner;
      out.insert(out.end(), begin, begin + inner);
    }
  }
  inference.set_data(0, std::move(out));
}

Status infer_gather(Inference& inference) {
  const pfrt_dtype dtype = inference.input(0).dtype;
  if (!inference.has_shape(0) || !inference.has_shape(1)) {
    inference.set_output_unknown_shape(0, dtype);
    return {};
  }
  const Shape& in = inference.shape(0);
  const Shape& indices = inference.shape(1);
  PFRT_ASSIGN(const int64_t axis, inference.axis(inference.node().attr_int("axis", 0), in.size()));
  Shape out(in.begin(), in.begin() + axis);
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), in.begin() + axis + 1, in.end());
  inference.set_output(0, dtype, std::move(out));
  gather_data(inference, static_cast<size_t>(axis));
  return {};
}

Status infer_gather_elements(Inference& inference) {
  const pfrt_dtype dtype = inference.input(0).dtype;
  if (!inference.has_shape(1)) {
    inference.set_output(0, inference.has_shape(0) ? Type::tensor(dtype, Shape(inference.rank(0)))
                                                   : Type::tensor(dtype));
    return {};
  }
  if (inference.has_shape(0)) {
    PFRT_TRY(expect_rank(inference, 1, inference.rank(0)));
    PFRT_TRY(inference.axis(inference.node().attr_int("axis", 0), inference.rank(0)).take_status());
  }
  inference.set_output(0, dtype, inference.shape(1));
  return {};
}

Status canonical_gather_nd(Rewriter& rewriter) { return fill_int(rewriter, "batch_dims", 0); }

Status infer_gather_nd(Inference& inference) {
  PFRT_TRY(expect_rank_at_least(inference, 0, 1));
  PFRT_TRY(expect_rank_at_least(inference, 1, 1));
  const pfrt_dtype dtype = inference.input(0).dtype;
  if (!inference.has_shape(0) || !inference.has_shape(1) || !inference.shape(1).back().known()) {
    inference.set_output_unknown_shape(0, dtype);
    return {};
  }
  const Shape& in = inference.shape(0);
  const Shape& indices = inference.shape(1);
  const int64_t batch = inference.node().attr_int("batch_dims", 0);
  const int64_t length = indices.back().value(), rank = static_cast<int64_t>(in.size());
  if (batch < 0 || batch >= static_cast<int64_t>(std::min(in.size(), indices.size())))
    return inference.fail("batch_dims is ", batch, ", needs 0 or more and less than both ranks");
  if (length < 0 || length > rank - batch)
    return inference.fail("the last dimension of the indices is ", length, ", the data has ",
                          rank - batch, " dimensions to index");
  Shape out(indices.begin(), indices.end() - 1);
  out.insert(out.end(), in.begin() + batch + length, in.end());
  inference.set_output(0, dtype, std::move(out));
  return {};
}

// Scatter is the first name of ScatterElements.
Status canonical_reduction(Rewriter& rewriter) {
  PFRT_TRY(fill_string(rewriter, "reduction", "none"));
  const std::string_view given = rewriter.node().attr_string("reduction", "");
  for (const std::string_view word : {"none", "add", "mul", "max", "min"})
    if (given == word) return {};
  return rewriter.fail("attribute 'reduction' is '", given,
                       "', expected one of none, add, mul, max, min");
}

Status canonical_scatter_elements(Rewriter& rewriter) {
  rewriter.node().op = "ScatterElements";
  PFRT_TRY(canonical_reduction(rewriter));
  return canonical_axis(rewriter, "axis", 0);
}

Status infer_scatter_elements(Inference& inference) {
  if (inference.has_shape(0)) {
    PFRT_TRY(expect_rank(inference, 1, inference.rank(0)));
    PFRT_TRY(inference.axis(inference.node().attr_int("axis", 0), inference.rank(0)).take_status());
  }
  if (inference.has_shape(1)) PFRT_TRY(expect_shape(inference, 2, inference.shape(1)));
  return infer_same(inference);
}

Status infer_scatter_nd(Inference& inference) {
  PFRT_TRY(expect_rank_at_least(inference, 0, 1));
  PFRT_TRY(expect_rank_at_least(inference, 1, 1));
  if (inference.has_shape(0) && inference.has_shape(1) && inference.shape(1).back().known()) {
    const Shape& in = inference.shape(0);
    const Shape& indices = inference.shape(1);
    const int64_t length = indices.back().value();
    if (length < 0 || length > static_cast<int64_t>(in.size()))
      return inference.fail("the last dimension of the indices is ", length, ", the data has rank ",
                            in.size());
    Shape updates(indices.begin(), indices.end() - 1);
    updates.insert(updates.end(), in.begin() + length, in.end());
    PFRT_TRY(expect_shape(inference, 2, updates));
  }
  return infer_same(inference);
}

// Makes an optional axis non-negative.
Status canonical_optional_axis(Rewriter& rewriter) {
  return rewriter.node().attr("axis") ? canonical_axis(rewriter, "axis", 0) : Status();
}

Status infer_compress(Inference& inference) {
  PFRT_TRY(expect_rank(inference, 1, 1));
  PFRT_TRY(expect_dtype(inference, 1, PFRT_DTYPE_BOOL));
  const Type& in = inference.input(0);
  const Attribute* axis = inference.node().attr("axis");
  if (!axis) {
    inference.set_output(0, in.dtype, {Dim()});
  } else if (!in.has_shape) {
    inference.set_output_unknown_shape(0, in.dtype);
  } else {
    PFRT_ASSIGN(const int64_t at, inference.axis(axis->i, in.shape.size()));
    Shape out = in.shape;
    out[static_cast<size_t>(at)] = Dim();
    inference.set_output(0, in.dtype, std::move(out));
  }
  return {};
}

Status canonical_unique(Rewriter& rewriter) {
  PFRT_TRY(fill_int(rewriter, "sorted", 1));
  return canonical_optional_axis(rewriter);
}

Status infer_unique(Inference& inference) {
  PFRT_TRY(infer_compress(inference));
  for (size_t i : {1u, 2u, 3u}) inference.set_output(i, PFRT_DTYPE_INT64, {Dim()});
  return {};
}

constexpr OperatorDef kIndexOperators[] = {
    {"", "Slice", 1, 0, 1, 5, 1, 1, kOpPlain, 0x1eu, canonical_slice, infer_slice, nullptr},
    {"", "Gather", 1, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_gather, infer_gather, nullptr},
    {"", "GatherElements", 11, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_gather, infer_gather_elements,
     nullptr},
    {"", "GatherND", 11, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_gather_nd, infer_gather_nd, nullptr},
    {"", "Scatter", 9, 10, 3, 3, 1, 1, kOpPlain, 0, canonical_scatter_elements, nullptr, nullptr},
    {"", "ScatterElements", 11, 0, 3, 3, 1, 1, kOpPlain, 0, canonical_scatter_elements,
     infer_scatter_elements, nullptr},
    {"", "ScatterND", 11, 0, 3, 3, 1, 1, kOpPlain, 0, canonical_reduction, infer_scatter_nd,
     nullptr},
    {"", "Compress", 9, 0, 2, 2, 1, 1, kOpDataDependent, 0, canonical_optional_axis, infer_compress,
     nullptr},
    {"", "Unique", 11, 0, 1, 1, 1, 4, kOpDataDependent, 0, canonical_unique, infer_unique,
     flops_of_input},
};

}  // namespace

std::span<const OperatorDef> index_operators() { return kIndexOperators; }

}  // namespace pfrt

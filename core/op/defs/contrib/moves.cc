// SPDX-License-Identifier: Apache-2.0
//
// Operators that ai.onnx has in another form: an axis or a list of another shape, a default that
// ai.onnx does not have, outputs in another order.
#include <algorithm>
#include <numeric>
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

Status canonical_gather_nd(Rewriter& rewriter) {
  if (rewriter.input(1).dtype == PFRT_DTYPE_INT32) {
    PFRT_ASSIGN(const ValueId wide, cast(rewriter, contrib::input(rewriter, 1), PFRT_DTYPE_INT64));
    rewriter.set_input(1, wide);
  }
  return replace_with(rewriter, "GatherND");
}
Status canonical_trilu(Rewriter& rewriter) { return replace_with(rewriter, "Trilu"); }
Status canonical_sample(Rewriter& rewriter) { return replace_with(rewriter, "Identity"); }
Status canonical_grid_sample(Rewriter& rewriter) { return replace_with(rewriter, "GridSample"); }

// Input |i| with one dimension, unchanged where it has one already.
Result<ValueId> flat_input(Rewriter& rewriter, size_t i) {
  const ValueId value = contrib::input(rewriter, i);
  if (rewriter.has_shape(i) && rewriter.rank(i) == 1) return value;
  if (const Tensor* constant = rewriter.constant(i);
      constant && constant->dtype == PFRT_DTYPE_INT64)
    return rewriter.int64s("list", to_int64s(*constant));
  PFRT_ASSIGN(const ValueId shape, rewriter.int64s("shape", {-1}));
  return rewriter.before("Reshape", {value, shape}, {Attribute::of_int("allowzero", 0)});
}

// The pads may be one row, and the value a list of one.
Status canonical_pad(Rewriter& rewriter) {
  PFRT_ASSIGN(const ValueId pads, flat_input(rewriter, 1));
  PFRT_ASSIGN(const ValueId value, contrib::scalar_input(rewriter, 2));
  rewriter.set_input(1, pads);
  if (value != kNoId) rewriter.set_input(2, value);
  return replace_with(rewriter, "Pad");
}

// The axis is an int32 scalar.
Status canonical_expand_dims(Rewriter& rewriter) {
  PFRT_ASSIGN(const pfrt_dtype dtype, contrib::dtype_of(rewriter, 1));
  if (dtype != PFRT_DTYPE_INT32 && dtype != PFRT_DTYPE_INT64)
    return rewriter.fail("the axis is ", dtype_name(dtype), ", needs int32");
  if (const Tensor* constant = rewriter.constant(1)) {
    const std::vector<int64_t> axis = to_int64s(*constant);
    if (axis.size() != 1)
      return rewriter.fail("the axis has ", constant->count(), " elements, expected 1 integer");
    PFRT_ASSIGN(const ValueId axes, rewriter.int64s("axes", axis));
    rewriter.set_input(1, axes);
  } else {
    PFRT_ASSIGN(const ValueId wide, cast(rewriter, contrib::input(rewriter, 1), PFRT_DTYPE_INT64));
    PFRT_ASSIGN(const ValueId one, rewriter.int64s("one", {1}));
    PFRT_ASSIGN(const ValueId axes,
                rewriter.before("Reshape", {wide, one}, {Attribute::of_int("allowzero", 0)}));
    rewriter.set_input(1, axes);
  }
  return replace_with(rewriter, "Unsqueeze");
}

// Start, limit and delta may be lists of one; without a delta it is 1.
Status canonical_range(Rewriter& rewriter) {
  PFRT_ASSIGN(const pfrt_dtype dtype, contrib::dtype_of(rewriter, 0));
  for (const size_t i : {0u, 1u, 2u}) {
    PFRT_ASSIGN(ValueId value, contrib::scalar_input(rewriter, i));
    if (value == kNoId) {
      PFRT_ASSIGN(value, rewriter.scalar("delta", dtype, 1));
    }
    rewriter.set_input(i, value);
  }
  return replace_with(rewriter, "Range");
}

// The outputs are the elements in order of first appearance, the index among them of each element
// of X, and the counts of the elements.
Status canonical_unique(Rewriter& rewriter) {
  const std::vector<ValueId> made = rewriter.node().outputs;
  const auto output = [&](size_t i) { return i < made.size() ? made[i] : kNoId; };
  rewriter.graph().set_outputs(rewriter.node().id, {output(0), kNoId, output(1), output(2)});
  rewriter.node().set_attr(Attribute::of_int("sorted", 0));
  return replace_with(rewriter, "Unique");
}

// Takes windows of |size| elements, |step| apart, along dimension |dim|, by a Gather with [windows,
// size] indices; the elements of a window become the last dimension.
Status canonical_unfold(Rewriter& rewriter) {
  PFRT_TRY(fill_int(rewriter, "dim", -1));
  PFRT_TRY(fill_int(rewriter, "step", 1));
  const Node& node = rewriter.node();
  if (const Attribute* size = node.attr("size"); !size || size->type != PFRT_ATTR_INT)
    return rewriter.fail("attribute 'size' is missing or not an integer");
  const int64_t size = node.attr_int("size", 0), step = node.attr_int("step", 1);
  constexpr int64_t kLargest = int64_t{1} << 20;
  if (size < 1 || size > kLargest || step < 1 || step > kLargest)
    return rewriter.fail("size is ", size, " and step ", step, ", both need 1 to ", kLargest);
  PFRT_ASSIGN(const size_t rank, contrib::known_rank(rewriter, 0));
  int64_t dim = node.attr_int("dim", -1);
  const int64_t r = static_cast<int64_t>(rank);
  if (dim < -r || dim >= r)
    return rewriter.fail("dim ", dim, " is not one of an input of rank ", rank);
  if (dim < 0) dim += r;
  const Dim length = rewriter.input(0).shape[static_cast<size_t>(dim)];
  if (length.known() && length.value() < size)
    return rewriter.fail("dimension ", dim, " has ", length.value(),
                         " elements, fewer than the windows of ", size);
  drop(rewriter, {"dim", "size", "step"});

  const ValueId x = contrib::input(rewriter, 0);
  PFRT_ASSIGN(const ValueId shape, rewriter.before("Shape", {x},
                                                   {Attribute::of_int("start", dim),
                                                    Attribute::of_int("end", dim + 1)}));
  PFRT_ASSIGN(const ValueId scalar, rewriter.int64s("scalar", {}));
  PFRT_ASSIGN(const ValueId whole,
              rewriter.before("Reshape", {shape, scalar}, {Attribute::of_int("allowzero", 0)}));
  const auto number = [&](int64_t value) {
    return rewriter.scalar("number", PFRT_DTYPE_INT64, static_cast<double>(value));
  };
  PFRT_ASSIGN(const ValueId less, number(size - 1));
  PFRT_ASSIGN(const ValueId end, rewriter.before("Sub", {whole, less}));
  PFRT_ASSIGN(const ValueId zero, number(0));
  PFRT_ASSIGN(const ValueId apart, number(step));
  PFRT_ASSIGN(const ValueId starts, rewriter.before("Range", {zero, end, apart}));
  PFRT_ASSIGN(const ValueId last, rewriter.int64s("axes", {1}));
  PFRT_ASSIGN(const ValueId column, rewriter.before("Unsqueeze", {starts, last}));
  std::vector<int64_t> steps(static_cast<size_t>(size));
  std::iota(steps.begin(), steps.end(), int64_t{0});
  PFRT_ASSIGN(const ValueId row, rewriter.int64s("within", steps));
  PFRT_ASSIGN(const ValueId indices, rewriter.before("Add", {column, row}));
  rewriter.node().inputs = {x, indices};
  rewriter.node().set_attr(Attribute::of_int("axis", dim));
  PFRT_TRY(replace_with(rewriter, "Gather"));
  std::vector<int64_t> perm(rank + 1);
  std::iota(perm.begin(), perm.end(), int64_t{0});
  std::rotate(perm.begin() + dim + 1, perm.begin() + dim + 2, perm.end());
  return rewriter.after("Transpose", {}, {Attribute::of_ints("perm", perm)});
}

// Constant pads become the attribute; with pads known only in a run, the edges of the complete
// result are cut off.
Status canonical_conv_transpose(Rewriter& rewriter) {
  const ValueId pads = contrib::input(rewriter, 2);
  const ValueId bias = contrib::input(rewriter, 3);
  Node& node = rewriter.node();
  const Tensor* constant = rewriter.constant(2);
  if (node.attr_string("auto_pad", "NOTSET") != "NOTSET")
    return rewriter.fail("auto_pad is '", node.attr_string("auto_pad", ""),
                         "' and pads are an input; NOTSET leaves them to the input");
  node.drop_attr("auto_pad");
  if (pads != kNoId && constant) node.set_attr(Attribute::of_ints("pads", to_int64s(*constant)));
  node.inputs.resize(2);
  if (bias != kNoId) node.inputs.push_back(bias);
  if (pads == kNoId || constant) return replace_with(rewriter, "ConvTranspose");

  PFRT_TRY(replace_with(rewriter, "ConvTranspose"));
  PFRT_ASSIGN(const size_t rank,
              contrib::known_rank(rewriter, 0, rewriter.has_shape(1) ? rewriter.rank(1) : 0));
  if (rank < 3) return rewriter.fail("the input has rank ", rank, ", needs 3 or more");
  const int64_t spatial = static_cast<int64_t>(rank) - 2;
  PFRT_ASSIGN(const ValueId whole, rewriter.before("ConvTranspose", node.inputs, node.attrs));
  PFRT_ASSIGN(const ValueId sizes,
              rewriter.before("Shape", {whole},
                              {Attribute::of_int("start", 2),
                               Attribute::of_int("end", static_cast<int64_t>(rank))}));
  const auto part = [&](int64_t begin, int64_t end) -> Result<ValueId> {
    PFRT_ASSIGN(const ValueId from, rewriter.int64s("from", {begin}));
    PFRT_ASSIGN(const ValueId to, rewriter.int64s("to", {end}));
    PFRT_ASSIGN(const ValueId axis, rewriter.int64s("axis", {0}));
    PFRT_ASSIGN(const ValueId step, rewriter.int64s("step", {1}));
    return rewriter.before("Slice", {pads, from, to, axis, step});
  };
  PFRT_ASSIGN(const ValueId begins, part(0, spatial));
  PFRT_ASSIGN(const ValueId cut, part(spatial, 2 * spatial));
  PFRT_ASSIGN(const ValueId ends, rewriter.before("Sub", {sizes, cut}));
  std::vector<int64_t> numbers(static_cast<size_t>(spatial));
  std::iota(numbers.begin(), numbers.end(), int64_t{2});
  PFRT_ASSIGN(const ValueId axes, rewriter.int64s("axes", numbers));
  PFRT_ASSIGN(const ValueId steps,
              rewriter.int64s("steps", std::vector<int64_t>(numbers.size(), 1)));
  node.attrs.clear();
  node.inputs = {whole, begins, ends, axes, steps};
  return replace_with(rewriter, "Slice");
}

constexpr std::string_view kDomain = "com.microsoft";

constexpr OperatorDef row(std::string_view name, int least, int most,
                          Status (*canonicalise)(Rewriter&), int outputs = 1) {
  return {kDomain, name,         1,       0,      least, most, 1, outputs, kOpPlain,
          0,       canonicalise, nullptr, nullptr};
}

constexpr OperatorDef kRows[] = {
    row("Pad", 2, 3, canonical_pad),
    row("ExpandDims", 2, 2, canonical_expand_dims),
    row("Range", 2, 3, canonical_range),
    row("GatherND", 2, 2, canonical_gather_nd),
    row("Trilu", 1, 2, canonical_trilu),
    row("Unique", 1, 1, canonical_unique, 3),
    row("SampleOp", 1, 1, canonical_sample),
    row("GridSample", 2, 2, canonical_grid_sample),
    row("UnfoldTensor", 1, 1, canonical_unfold),
    row("ConvTransposeWithDynamicPads", 2, 4, canonical_conv_transpose),
};

}  // namespace

std::span<const OperatorDef> contrib_move_operators() { return kRows; }

}  // namespace pfrt

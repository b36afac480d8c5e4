// SPDX-License-Identifier: Apache-2.0
//
// Operators that move elements without changing them: permuting, joining, cutting, padding.
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

// Gives output |i| the rank of input 0 and nothing else.
void set_same_rank(Inference& inference, size_t i) {
  const Type& in = inference.input(0);
  inference.set_output(
      i, in.has_shape ? Type::tensor(in.dtype, Shape(in.shape.size())) : Type::tensor(in.dtype));
}

Status canonical_transpose(Rewriter& rewriter) {
  if (rewriter.node().attr("perm")) return fill_ints(rewriter, "perm", {});
  if (!rewriter.has_shape(0)) return {};
  std::vector<int64_t> reversed(rewriter.rank(0));
  for (size_t i = 0; i < reversed.size(); ++i)
    reversed[i] = static_cast<int64_t>(reversed.size() - 1 - i);
  return fill_ints(rewriter, "perm", reversed);
}

Status infer_transpose(Inference& inference) {
  const Type& in = inference.input(0);
  const std::vector<int64_t>* perm = inference.node().attr_ints("perm");
  if (!in.has_shape) {
    inference.set_output(
        0, perm ? Type::tensor(in.dtype, Shape(perm->size())) : Type::tensor(in.dtype));
    return {};
  }
  const size_t rank = in.shape.size();
  if (!perm) {
    inference.set_output(0, in.dtype, Shape(in.shape.rbegin(), in.shape.rend()));
    return {};
  }
  if (perm->size() != rank)
    return inference.fail("perm has ", perm->size(), " entries for shape ",
                          inference.symbols().text(in.shape));
  Shape out;
  std::vector<bool> seen(rank, false);
  for (int64_t given : *perm) {
    if (given < 0 || given >= static_cast<int64_t>(rank) || seen[static_cast<size_t>(given)])
      return inference.fail("perm is not a permutation of 0 to ", rank, " - 1: ", given,
                            " is outside or twice");
    seen[static_cast<size_t>(given)] = true;
    out.push_back(in.shape[static_cast<size_t>(given)]);
  }
  inference.set_output(0, in.dtype, std::move(out));
  return {};
}

Status canonical_concat(Rewriter& rewriter) { return canonical_axis(rewriter, "axis", 1); }

// Joins the contents of all inputs.
void join_data(Inference& inference) {
  Shape all;
  for (size_t i = 0; i < inference.input_count(); ++i) {
    const std::optional<Shape> elements = inference.data(i);
    if (!elements || all.size() + elements->size() > kMaxData) return;
    all.insert(all.end(), elements->begin(), elements->end());
  }
  inference.set_data(0, std::move(all));
}

Status infer_concat(Inference& inference) {
  PFRT_TRY(same_dtypes(inference, 0, SIZE_MAX));
  const pfrt_dtype dtype = inference.input(0).dtype;
  const size_t count = inference.input_count();
  size_t first = 0;
  while (first < count && !inference.has_shape(first)) ++first;
  if (first == count) {
    inference.set_output_unknown_shape(0, dtype);
    return {};
  }
  const size_t rank = inference.rank(first);
  PFRT_ASSIGN(const int64_t axis, inference.axis(inference.node().attr_int("axis", 1), rank));
  const size_t at = static_cast<size_t>(axis);
  Shape out = inference.shape(first);
  out[at] = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!inference.has_shape(i)) {
      out[at] = Dim();
      continue;
    }
    PFRT_TRY(expect_rank(inference, i, rank));
    for (size_t d = 0; d < rank; ++d) {
      const Dim mine = inference.shape(i)[d];
      if (d == at) {
        out[d] = inference.symbols().add(out[d], mine);
      } else if (mine.known() && out[d].known() && !(mine == out[d])) {
        return inference.fail("input ", i, " of shape ",
                              inference.symbols().text(inference.shape(i)), " does not join shape ",
                              inference.symbols().text(inference.shape(first)), " along axis ",
                              axis, ": all other dimensions must be equal");
      } else {
        PFRT_ASSIGN(out[d], same_dim(inference, out[d], mine, "dimensions"));
      }
    }
  }
  inference.set_output(0, dtype, std::move(out));
  if (rank == 1) join_data(inference);
  return {};
}

// Opset 1's input of lengths has the type of the data, a float.
Status whole_lengths(Rewriter& rewriter) {
  if (!dtype_is_float(rewriter.input(1).dtype)) return {};
  PFRT_ASSIGN(const ValueId lengths, rewriter.before("Cast", {rewriter.node().inputs[1]},
                                                     {Attribute::of_int("to", PFRT_DTYPE_INT64),
                                                      Attribute::of_int("saturate", 1)}));
  rewriter.set_input(1, lengths);
  return {};
}

Status canonical_split(Rewriter& rewriter) {
  if (rewriter.has_input(1) && rewriter.opset() == 1) PFRT_TRY(whole_lengths(rewriter));
  if (!rewriter.has_input(1)) PFRT_TRY(rewriter.attr_to_input("split", 1));
  rewriter.node().drop_attr("split");
  PFRT_TRY(canonical_axis(rewriter, "axis", 0));
  if (rewriter.has_input(1)) {
    rewriter.node().drop_attr("num_outputs");
    return {};
  }
  return fill_int(rewriter, "num_outputs", static_cast<int64_t>(rewriter.node().outputs.size()));
}

// The size of part |i| when |whole| is divided into |parts| of one size, the last ones perhaps
// smaller.
Dim equal_part(SymbolTable& symbols, Dim whole, int64_t parts, int64_t i) {
  const Dim part = symbols.ceil_div(whole, parts);
  if (whole.known()) return std::clamp<int64_t>(whole.value() - part.value() * i, 0, part.value());
  return parts == 1 ? whole : Dim();
}

Status infer_split(Inference& inference) {
  const Type& in = inference.input(0);
  const size_t count = inference.output_count();
  if (!in.has_shape) {
    for (size_t i = 0; i < count; ++i) inference.set_output_unknown_shape(i, in.dtype);
    return {};
  }
  PFRT_ASSIGN(const int64_t axis,
              inference.axis(inference.node().attr_int("axis", 0), in.shape.size()));
  const size_t at = static_cast<size_t>(axis);
  const Dim whole = in.shape[at];
  const std::optional<Shape> sizes = inference.data(1);
  if (sizes) {
    if (sizes->size() != count)
      return inference.fail("split has ", sizes->size(), " entries for ", count, " outputs");
    Dim sum = 0;
    for (const Dim& size : *sizes) {
      if (size.known() && size.value() < 0)
        return inference.fail("split has a negative entry ", size.value());
      sum = inference.symbols().add(sum, size);
    }
    if (sum.known() && whole.known() && !(sum == whole))
      return inference.fail("the entries of split sum to ", sum.value(), ", dimension ", axis,
                            " of the input has ", whole.value(), " elements");
  } else if (!inference.has_input(1)) {
    const int64_t parts = inference.node().attr_int("num_outputs", static_cast<int64_t>(count));
    if (parts != static_cast<int64_t>(count))
      return inference.fail("num_outputs is ", parts, " but the node has ", count, " outputs");
  }
  for (size_t i = 0; i < count; ++i) {
    Shape out = in.shape;
    if (sizes) {
      out[at] = (*sizes)[i];
    } else if (inference.has_input(1)) {
      out[at] = Dim();
    } else {
      out[at] = equal_part(inference.symbols(), whole, static_cast<int64_t>(count),
                           static_cast<int64_t>(i));
    }
    const pfrt_dtype dtype = in.dtype;
    inference.set_output(i, dtype, std::move(out));
  }
  return {};
}

Status canonical_pad(Rewriter& rewriter) {
  Node& node = rewriter.node();
  PFRT_TRY(fill_string(rewriter, "mode", "constant"));
  if (!rewriter.has_input(1)) {
    PFRT_TRY(rewriter.attr_to_input("paddings", 1));
    PFRT_TRY(rewriter.attr_to_input("pads", 1));
  }
  if (const Attribute* value = node.attr("value"); value && !rewriter.has_input(2)) {
    if (value->type != PFRT_ATTR_FLOAT && value->type != PFRT_ATTR_INT)
      return rewriter.fail("attribute 'value' should be a number");
    const double number = value->type == PFRT_ATTR_FLOAT ? static_cast<double>(value->f)
                                                         : static_cast<double>(value->i);
    const pfrt_dtype known = rewriter.input(0).dtype;
    PFRT_ASSIGN(const ValueId scalar,
                rewriter.scalar("value", known ? known : pfrt_dtype{PFRT_DTYPE_FLOAT32}, number));
    rewriter.set_input(2, scalar);
  }
  for (std::string_view name : {"paddings", "pads", "value"}) node.drop_attr(name);
  return rewriter.has_input(3) ? canonical_axes(rewriter, 3) : Status();
}

Status infer_pad(Inference& inference) {
  if (!inference.has_input(1)) return inference.fail("needs pads as input 1 or as an attribute");
  const Type& in = inference.input(0);
  const std::optional<Shape> pads = inference.data(1);
  if (!in.has_shape) {
    const bool full = pads && !inference.has_input(3);
    inference.set_output(
        0, full ? Type::tensor(in.dtype, Shape(pads->size() / 2)) : Type::tensor(in.dtype));
    return {};
  }
  std::vector<int64_t> axes;
  if (inference.has_input(3)) {
    const auto given = inference.numbers(3);
    if (!given) {
      set_same_rank(inference, 0);
      return {};
    }
    axes = *given;
  } else {
    for (size_t i = 0; i < in.shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (pads && pads->size() != 2 * axes.size())
    return inference.fail("pads has ", pads->size(), " entries, needs a begin and an end for ",
                          axes.size(), " axes");
  Shape out = in.shape;
  SymbolTable& symbols = inference.symbols();
  for (size_t i = 0; i < axes.size(); ++i) {
    PFRT_ASSIGN(const int64_t axis, inference.axis(axes[i], out.size()));
    const size_t at = static_cast<size_t>(axis);
    const Dim before = pads ? (*pads)[i] : Dim(), after = pads ? (*pads)[axes.size() + i] : Dim();
    const bool numbers = out[at].known() && before.known() && after.known();
    out[at] = pads ? symbols.add(out[at], symbols.add(before, after)) : Dim();
    if (numbers && !out[at].known())
      return inference.fail("pads ", before.value(), " and ", after.value(), " along axis ", axis,
                            " add up to more elements than can be counted");
    if (out[at].known() && out[at].value() < 0)
      return inference.fail("dimension ", axis, " of shape ", symbols.text(in.shape),
                            " would have ", out[at].value(), " elements after padding");
  }
  inference.set_output(0, in.dtype, std::move(out));
  return {};
}

// The block size of DepthToSpace and SpaceToDepth, or an error.
Result<int64_t> block_size(const Inference& inference) {
  const int64_t block = inference.node().attr_int("blocksize", 0);
  if (block < 1 || block > (1 << 20))
    return inference.fail("blocksize is ", block, ", needs 1 or more");
  PFRT_TRY(expect_rank(inference, 0, 4));
  return block;
}

// |dim| / |divisor|, which must be exact.
Result<Dim> exact(const Inference& inference, Dim dim, int64_t divisor) {
  if (dim.known() && dim.value() % divisor != 0)
    return inference.fail("shape ", inference.symbols().text(inference.shape(0)),
                          " does not divide into blocks: ", dim.value(), " is not a multiple of ",
                          divisor);
  return inference.symbols().floor_div(dim, divisor);
}

// Canonicalises DepthToSpace and SpaceToDepth.
Status canonical_blocks(Rewriter& rewriter) {
  PFRT_TRY(fill_string(rewriter, "mode", "DCR"));
  const std::string_view mode = rewriter.node().attr_string("mode", "");
  if (mode == "DCR" || mode == "CRD") return {};
  return rewriter.fail("attribute 'mode' is '", mode, "', expected 'DCR' or 'CRD'");
}

Status infer_depth_to_space(Inference& inference) {
  PFRT_ASSIGN(const int64_t block, block_size(inference));
  Shape out = inference.has_shape(0) ? inference.shape(0) : Shape(4);
  PFRT_ASSIGN(out[1], exact(inference, out[1], block * block));
  for (size_t i : {2u, 3u}) out[i] = inference.symbols().mul(out[i], block);
  inference.set_output(0, inference.input(0).dtype, std::move(out));
  return {};
}

Status infer_space_to_depth(Inference& inference) {
  PFRT_ASSIGN(const int64_t block, block_size(inference));
  Shape out = inference.has_shape(0) ? inference.shape(0) : Shape(4);
  out[1] = inference.symbols().mul(out[1], block * block);
  for (size_t i : {2u, 3u}) {
    PFRT_ASSIGN(out[i], exact(inference, out[i], block));
  }
  inference.set_output(0, inference.input(0).dtype, std::move(out));
  return {};
}

Status canonical_trilu(Rewriter& rewriter) { return fill_int(rewriter, "upper", 1); }

Status infer_trilu(Inference& inference) {
  PFRT_TRY(expect_rank_at_least(inference, 0, 2));
  return infer_same(inference);
}

Status canonical_reverse_sequence(Rewriter& rewriter) {
  PFRT_TRY(canonical_axis(rewriter, "batch_axis", 1));
  return canonical_axis(rewriter, "time_axis", 0);
}

Status infer_reverse_sequence(Inference& inference) {
  PFRT_TRY(expect_rank_at_least(inference, 0, 2));
  PFRT_TRY(expect_rank(inference, 1, 1));
  const int64_t batch = inference.node().attr_int("batch_axis", 1),
                time = inference.node().attr_int("time_axis", 0);
  if (batch == time || batch < 0 || batch > 1 || time < 0 || time > 1)
    return inference.fail("batch_axis ", batch, " and time_axis ", time,
                          " must be 0 and 1 or 1 and 0");
  if (inference.has_shape(0))
    PFRT_TRY(expect_shape(inference, 1, {inference.shape(0)[static_cast<size_t>(batch)]}));
  return infer_same(inference);
}

// Makes CenterCropPad a Slice and a Pad about the centre, whose arguments are computed from the
// input's dimensions.
Status canonical_center_crop_pad(Rewriter& rewriter) {
  Node& node = rewriter.node();
  // Absent axes mean all, whose number may be known in a run only.
  ValueId axis = kNoId;
  if (const std::vector<int64_t>* given = node.attr_ints("axes")) {
    std::vector<int64_t> axes = *given;
    for (int64_t& one : axes) {
      if (one >= 0 || !rewriter.has_shape(0)) continue;
      one += static_cast<int64_t>(rewriter.rank(0));
      if (one < 0)
        return rewriter.fail("an axis lies before the first of an input of rank ",
                             rewriter.rank(0));
    }
    PFRT_ASSIGN(axis, rewriter.int64s("axes", axes));
  }
  const ValueId input = node.inputs[0], asked = node.inputs[1];
  const std::vector<Attribute> along{Attribute::of_int("axis", 0)};
  PFRT_ASSIGN(const ValueId zero, rewriter.int64s("zero", {0}));
  PFRT_ASSIGN(const ValueId two, rewriter.int64s("two", {2}));
  PFRT_ASSIGN(ValueId dims, rewriter.before("Shape", {input}, {Attribute::of_int("start", 0)}));
  if (axis != kNoId) {
    PFRT_ASSIGN(dims, rewriter.before("Gather", {dims, axis}, along));
  }

  PFRT_ASSIGN(const ValueId larger, rewriter.before("Sub", {dims, asked}));
  PFRT_ASSIGN(const ValueId cut, rewriter.before("Max", {larger, zero}));
  PFRT_ASSIGN(const ValueId start, rewriter.before("Div", {cut, two}));
  PFRT_ASSIGN(const ValueId kept, rewriter.before("Min", {dims, asked}));
  PFRT_ASSIGN(const ValueId end, rewriter.before("Add", {start, kept}));
  PFRT_ASSIGN(const ValueId cropped, rewriter.before("Slice", {input, start, end, axis}));

  PFRT_ASSIGN(const ValueId smaller, rewriter.before("Sub", {asked, dims}));
  PFRT_ASSIGN(const ValueId grown, rewriter.before("Max", {smaller, zero}));
  PFRT_ASSIGN(const ValueId head, rewriter.before("Div", {grown, two}));
  PFRT_ASSIGN(const ValueId tail, rewriter.before("Sub", {grown, head}));
  PFRT_ASSIGN(const ValueId pads, rewriter.before("Concat", {head, tail}, along));
  node.op = "Pad";
  node.inputs = {cropped, pads, kNoId, axis};
  node.attrs = {Attribute::of_string("mode", "constant")};
  return {};
}

Status canonical_col2im(Rewriter& rewriter) {
  const Tensor* block = rewriter.constant(2);
  const std::vector<int64_t>* dilations = rewriter.node().attr_ints("dilations");
  const size_t rank = block       ? static_cast<size_t>(std::max<int64_t>(block->count(), 0))
                      : dilations ? dilations->size()
                                  : 0;
  if (rank == 0) return {};
  PFRT_TRY(fill_ints(rewriter, "dilations", std::vector<int64_t>(rank, 1)));
  PFRT_TRY(fill_ints(rewriter, "strides", std::vector<int64_t>(rank, 1)));
  return fill_ints(rewriter, "pads", std::vector<int64_t>(2 * rank, 0));
}

// Infers [N, C, image...] from [N, C * block, positions].
Status infer_col2im(Inference& inference) {
  PFRT_TRY(expect_rank(inference, 0, 3));
  const std::optional<Shape> image = inference.data(1), block = inference.data(2);
  const std::optional<int64_t> length =
      image ? static_cast<int64_t>(image->size()) : list_length(inference, 1);
  const pfrt_dtype dtype = inference.input(0).dtype;
  if (!length || *length > kHighestRank) {
    inference.set_output_unknown_shape(0, dtype);
    return {};
  }
  Shape out(2 + static_cast<size_t>(*length));
  if (image) {
    for (const Dim& d : *image)
      if (d.known() && d.value() < 0) return inference.fail("image_shape has a negative entry");
    std::copy(image->begin(), image->end(), out.begin() + 2);
  }
  if (inference.has_shape(0)) {
    out[0] = inference.shape(0)[0];
    const Dim size = block ? inference.symbols().product(*block) : Dim();
    if (size.known() && size.value() < 1) return inference.fail("block_shape has an entry below 1");
    if (size.known()) {
      PFRT_ASSIGN(out[1], exact(inference, inference.shape(0)[1], size.value()));
    }
  }
  inference.set_output(0, dtype, std::move(out));
  return {};
}

constexpr OperatorDef kMovementOperators[] = {
    {"", "Transpose", 1, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_transpose, infer_transpose, nullptr},
    {"", "Concat", 1, 0, 1, -1, 1, 1, kOpPlain, 0, canonical_concat, infer_concat, nullptr},
    {"", "Split", 1, 0, 1, 2, 1, -1, kOpPlain, 1u << 1, canonical_split, infer_split, nullptr},
    {"", "Pad", 1, 0, 1, 4, 1, 1, kOpPlain, 1u << 1 | 1u << 3, canonical_pad, infer_pad, nullptr},
    {"", "DepthToSpace", 1, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_blocks, infer_depth_to_space,
     nullptr},
    {"", "SpaceToDepth", 1, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_blocks, infer_space_to_depth,
     nullptr},
    {"", "Trilu", 14, 0, 1, 2, 1, 1, kOpPlain, 0, canonical_trilu, infer_trilu, nullptr},
    {"", "ReverseSequence", 10, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_reverse_sequence,
     infer_reverse_sequence, nullptr},
    {"", "CenterCropPad", 18, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_center_crop_pad, nullptr,
     nullptr},
    {"", "Col2Im", 18, 0, 3, 3, 1, 1, kOpPlain, 1u << 1 | 1u << 2, canonical_col2im, infer_col2im,
     nullptr},
};

}  // namespace

std::span<const OperatorDef> movement_operators() { return kMovementOperators; }

}  // namespace pfrt

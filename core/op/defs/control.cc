// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ir/verify.h"
#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/engine/body.h"
#include "core/op/engine/contents.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

Result<const Graph*> body_of(const Inference& in, const char* name) {
  const Attribute* attr = in.node().attr(name);
  if (!attr || !attr->graph) return in.fail("attribute '", name, "' holds no graph");
  return attr->graph.get();
}

Result<const Graph*> branch_of(const Inference& in, const char* name) {
  PFRT_ASSIGN(const Graph* branch, body_of(in, name));
  if (!branch->inputs.empty())
    return in.fail("branch '", name, "' has ", branch->inputs.size(),
                   " inputs; it takes what it needs from outside by name");
  if (branch->outputs.size() != in.output_count())
    return in.fail("branch '", name, "' has ", branch->outputs.size(), " outputs, the node ",
                   in.output_count());
  return branch;
}

// Shapes may differ between branches; kinds and element types may not.
Status expect_one_type(const Inference& in, size_t output, const Type& yes, const Type& no) {
  const bool kinds = yes.kind != PFRT_VALUE_UNSET && no.kind != PFRT_VALUE_UNSET;
  const bool elements = yes.dtype != PFRT_DTYPE_UNSET && no.dtype != PFRT_DTYPE_UNSET;
  if (!kinds || (yes.kind == no.kind && (!elements || yes.dtype == no.dtype))) return {};
  return error(Code::kINVALID_MODEL, describe(in.graph(), in.node()), ": output ", output, " is ",
               type_text(yes, in.symbols()), " of 'then_branch' and ", type_text(no, in.symbols()),
               " of 'else_branch'; both must give one type: cast one of them");
}

Status infer_if(Inference& in) {
  if (in.input(0).dtype != PFRT_DTYPE_UNSET && in.input(0).dtype != PFRT_DTYPE_BOOL)
    return wrong_dtype(in, 0, PFRT_DTYPE_BOOL);
  PFRT_ASSIGN(const Graph* then_branch, branch_of(in, "then_branch"));
  PFRT_ASSIGN(const Graph* else_branch, branch_of(in, "else_branch"));
  const auto condition = in.numbers(0);
  std::vector<Type> types;
  if (condition && condition->size() == 1) {
    PFRT_ASSIGN(types, infer_body(in, condition->front() ? *then_branch : *else_branch, {}));
  } else {
    auto yes = infer_body(in, *then_branch, {});
    auto no = infer_body(in, *else_branch, {});
    for (const auto* result : {&yes, &no})
      if (!result->ok() && result->status().code() != Code::kSHAPE_MISMATCH)
        return result->status();
    // A branch that does not fit the present shapes is not the one that runs.
    if (!yes.ok() && !no.ok()) return {};
    types = yes.ok() ? yes.take() : no.value();
    if (yes.ok() && no.ok())
      for (size_t i = 0; i < types.size(); ++i) {
        PFRT_TRY(expect_one_type(in, i, types[i], (*no)[i]));
        types[i] = common_type(types[i], (*no)[i]);
      }
  }
  for (size_t i = 0; i < in.output_count(); ++i) in.set_output(i, std::move(types[i]));
  return {};
}

Status expect_one(const Inference& in, size_t i, pfrt_dtype dtype, const char* what) {
  if (!in.has_input(i)) return {};
  if (in.input(i).dtype && in.input(i).dtype != dtype) return wrong_dtype(in, i, dtype);
  if (!in.has_shape(i)) return {};
  if (in.rank(i) > 1 || (in.rank(i) == 1 && in.shape(i)[0].known() && !in.shape(i)[0].is(1)))
    return in.fail(what, " has shape ", in.symbols().text(in.shape(i)), ", expected one element");
  return {};
}

// Whether the loop ends by its count alone: there is no condition, or it is true and stays so.
bool counted(const Inference& in, const Graph& body) {
  if (!in.has_input(1)) return true;
  const auto condition = in.numbers(1);
  if (!condition || condition->size() != 1 || !condition->front()) return false;
  ValueId next = body.outputs[0];
  for (const Node* node = body.node(body.at(next).producer); node && node->op == "Identity";
       node = body.node(body.at(next).producer))
    next = node->inputs[0];
  if (next == body.inputs[1]) return true;
  const std::optional<Shape> constant = contents_of(body.constant(next));
  return constant && constant->size() == 1 && constant->front().is(1);
}

Status canonical_loop(Rewriter& rewriter) {
  const size_t carried = std::max<size_t>(rewriter.node().inputs.size(), 2) - 2;
  return check_body(rewriter, "body", carried + 2, carried + 1);
}

Status infer_loop(Inference& in) {
  PFRT_TRY(expect_one(in, 0, PFRT_DTYPE_INT64, "the trip count"));
  PFRT_TRY(expect_one(in, 1, PFRT_DTYPE_BOOL, "the condition"));
  PFRT_ASSIGN(const Graph* body, body_of(in, "body"));
  PFRT_ASSIGN(RepeatedBody settled, repeated_body(in, *body));
  Dim trips;
  const std::optional<Shape> count = in.data(0);
  if (count && count->size() == 1 && counted(in, *body))
    trips =
        count->front().known() ? Dim(std::max<int64_t>(count->front().value(), 0)) : count->front();
  if (trips.symbolic() && !in.symbols().certainly_natural(trips)) trips = Dim();
  for (size_t i = 0; i < in.output_count() && i + 1 < settled.outputs.size(); ++i) {
    if (i < settled.entry.count) {
      in.set_output(i, std::move(settled.entry.inputs[i + 2]));
      continue;
    }
    Type type = std::move(settled.outputs[i + 1]);
    if (type.has_shape) type.shape.insert(type.shape.begin(), trips);
    in.set_output(i, std::move(type));
  }
  return {};
}

Status check_list(Rewriter& rewriter, const char* name, size_t length, bool directions) {
  PFRT_TRY(fill_ints(rewriter, name, std::vector<int64_t>(length, 0)));
  const std::vector<int64_t>& values = *rewriter.node().attr_ints(name);
  if (values.size() != length)
    return rewriter.fail("attribute '", name, "' has ", values.size(), " elements, needs ", length);
  for (const int64_t v : values)
    if (directions && v != 0 && v != 1)
      return rewriter.fail("attribute '", name, "' has ", v, ", expected 0 (forward) or 1 (back)");
  return {};
}

// Opset 8 has batches, and the lengths of their sequences as first input. Attribute "batched" marks
// this form; input 0 remains the lengths, which may be absent.
Status canonical_scan(Rewriter& rewriter) {
  Node& node = rewriter.node();
  const Attribute* count = node.attr("num_scan_inputs");
  if (!count || count->type != PFRT_ATTR_INT)
    return rewriter.fail("attribute 'num_scan_inputs' is absent or no integer");
  const bool batched = rewriter.opset() < 9;
  const size_t values = node.inputs.size() - (batched && !node.inputs.empty() ? 1 : 0);
  if (count->i < 1 || static_cast<uint64_t>(count->i) > values)
    return rewriter.fail("attribute 'num_scan_inputs' is ", count->i, ", the node has ", values,
                         " inputs to scan or to carry");
  const auto scans = static_cast<size_t>(count->i);
  const size_t carried = values - scans;
  PFRT_TRY(check_body(rewriter, "body", values, carried));
  const size_t made = node.attr("body")->graph->outputs.size() - carried;
  if (batched) {
    if (const Attribute* directions = node.attr("directions")) {
      Attribute renamed = *directions;
      renamed.name = "scan_input_directions";
      node.set_attr(std::move(renamed));
      node.drop_attr("directions");
    }
    node.set_attr(Attribute::of_int("batched", 1));
  }
  PFRT_TRY(check_list(rewriter, "scan_input_axes", scans, false));
  PFRT_TRY(check_list(rewriter, "scan_output_axes", made, false));
  PFRT_TRY(check_list(rewriter, "scan_input_directions", scans, true));
  return check_list(rewriter, "scan_output_directions", made, true);
}

// The extent that all scan inputs share.
Result<Dim> scan_length(const Inference& in, size_t first) {
  Dim length;
  const size_t batched = scan_batches(in.node()) ? 1 : 0;
  for (size_t i = first; i < in.input_count(); ++i) {
    if (!in.has_shape(i)) continue;
    if (in.rank(i) <= batched) return in.fail("scan input ", i - first, " has no axis to cut");
    PFRT_ASSIGN(const int64_t axis,
                in.axis(scan_axis(in.node(), "scan_input_axes", i - first), in.rank(i) - batched));
    const Dim& found = in.shape(i)[static_cast<size_t>(axis) + batched];
    PFRT_ASSIGN(length, same_dim(in, length, found, "the lengths of scan inputs"));
  }
  return length;
}

Status infer_scan(Inference& in) {
  PFRT_ASSIGN(const Graph* body, body_of(in, "body"));
  const bool batched = scan_batches(in.node()) != 0;
  const auto scans = static_cast<uint64_t>(in.node().attr_int("num_scan_inputs", 1));
  if (scans > in.input_count()) return in.fail("has too few inputs");
  const size_t first = in.input_count() - static_cast<size_t>(scans);
  PFRT_ASSIGN(const Dim length, scan_length(in, first));
  PFRT_ASSIGN(RepeatedBody settled, repeated_body(in, *body));
  const Dim batches = batched && in.has_shape(first) && in.rank(first) ? in.shape(first)[0] : Dim();
  for (size_t i = 0; i < in.output_count() && i < settled.outputs.size(); ++i) {
    const bool carried = i < settled.entry.count;
    Type type = carried ? std::move(settled.entry.inputs[i]) : std::move(settled.outputs[i]);
    if (type.has_shape && !carried) {
      PFRT_ASSIGN(const int64_t axis,
                  in.axis(scan_axis(in.node(), "scan_output_axes", i - settled.entry.count),
                          type.shape.size() + 1));
      type.shape.insert(type.shape.begin() + axis, length);
    }
    if (type.has_shape && batched) type.shape.insert(type.shape.begin(), batches);
    in.set_output(i, std::move(type));
  }
  return {};
}

Status canonical_sequence_map(Rewriter& rewriter) {
  return check_body(rewriter, "body", rewriter.node().inputs.size(), 0);
}

Status infer_sequence_map(Inference& in) {
  if (in.input(0).kind != PFRT_VALUE_UNSET && in.input(0).kind != PFRT_VALUE_SEQUENCE)
    return error(Code::kVALIDATION, describe(in.graph(), in.node()), ": input 0 is not a sequence");
  PFRT_ASSIGN(const Graph* body, body_of(in, "body"));
  PFRT_ASSIGN(RepeatedBody settled, repeated_body(in, *body));
  for (size_t i = 0; i < in.output_count() && i < settled.outputs.size(); ++i) {
    Type type = std::move(settled.outputs[i]);
    type.kind = PFRT_VALUE_SEQUENCE;
    in.set_output(i, std::move(type));
  }
  return {};
}

constexpr OperatorDef kControlOperators[] = {
    // domain, name, opsets, inputs, outputs, flags, shape inputs, canonicalise, infer, flops
    {"", "If", 1, 0, 1, 1, 1, -1, kOpHost, 0, nullptr, infer_if, nullptr},
    {"", "Loop", 1, 0, 0, -1, 0, -1, kOpHost, 0, canonical_loop, infer_loop, nullptr},
    {"", "Scan", 8, 0, 0, -1, 1, -1, kOpHost, 0, canonical_scan, infer_scan, nullptr},
    {"", "SequenceMap", 17, 0, 1, -1, 1, -1, kOpHost, 0, canonical_sequence_map, infer_sequence_map,
     nullptr},
};

}  // namespace

std::span<const OperatorDef> control_operators() { return kControlOperators; }

}  // namespace pfrt

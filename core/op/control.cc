// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ir/verify.h"
#include "core/op/body.h"
#include "core/op/families.h"
#include "core/op/rules.h"
#include "core/op/shapes.h"

namespace pfrt {
namespace {

constexpr int kMostRounds = 6;  // until shapes that go on changing count as unknown

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

// Shapes may differ between branches, kinds and element types may not.
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
    // A branch that does not fit the shapes at hand is not the one that runs.
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

// What enters the body of the node at hand first, and which of it the body hands on to itself:
// inputs [first, first + count) come back as outputs [back, back + count).
struct Entry {
  std::vector<Type> inputs;
  size_t first = 0, count = 0, back = 0;
};

Type without_dims(Type type, std::vector<int64_t> axes) {
  if (!type.has_shape) return type;
  std::sort(axes.rbegin(), axes.rend());
  for (const int64_t axis : axes)
    if (axis >= 0 && axis < static_cast<int64_t>(type.shape.size()))
      type.shape.erase(type.shape.begin() + axis);
  return type;
}

// A counter or condition is a scalar, or has one element where the body says so.
Type one_of(pfrt_dtype dtype, const Graph& body, size_t input) {
  const Type& declared = body.at(body.inputs[input]).type;
  const bool list = declared.is_tensor() && declared.has_shape && declared.shape.size() == 1;
  return Type::tensor(dtype, list ? Shape{1} : Shape{});
}

Entry loop_entry(const Inference& in, const Graph& body) {
  Entry entry;
  if (body.inputs.size() < 2) return entry;
  entry.inputs = {one_of(PFRT_DTYPE_INT64, body, 0), one_of(PFRT_DTYPE_BOOL, body, 1)};
  for (size_t i = 2; i < in.input_count(); ++i) entry.inputs.push_back(in.input(i));
  entry.first = 2;
  entry.count = entry.inputs.size() - 2;
  entry.back = 1;
  return entry;
}

int64_t scan_batches(const Node& node) { return node.attr_int("batched", 0); }

// The axis that scan input or output |i| is cut along, batches apart.
int64_t scan_axis(const Node& node, const char* list, size_t i) {
  const std::vector<int64_t>* axes = node.attr_ints(list);
  return axes && i < axes->size() ? (*axes)[i] : 0;
}

Entry scan_entry(const Inference& in) {
  Entry entry;
  const int64_t batched = scan_batches(in.node());
  const size_t lead = batched ? 1 : 0;
  const auto scans = static_cast<uint64_t>(in.node().attr_int("num_scan_inputs", 0));
  if (in.input_count() < lead || scans > in.input_count() - lead) return entry;
  entry.count = in.input_count() - lead - static_cast<size_t>(scans);
  for (size_t i = lead; i < in.input_count(); ++i) {
    std::vector<int64_t> cut;
    if (batched) cut.push_back(0);
    if (i >= lead + entry.count) {
      const int64_t axis = scan_axis(in.node(), "scan_input_axes", i - lead - entry.count);
      cut.push_back(axis < 0 ? axis + static_cast<int64_t>(in.rank(i)) : axis + batched);
    }
    entry.inputs.push_back(without_dims(in.input(i), std::move(cut)));
  }
  return entry;
}

Entry map_entry(const Inference& in) {
  Entry entry;
  for (size_t i = 0; i < in.input_count(); ++i) {
    Type type = in.input(i);
    if (type.kind == PFRT_VALUE_SEQUENCE) type.kind = PFRT_VALUE_TENSOR;
    entry.inputs.push_back(std::move(type));
  }
  return entry;
}

Entry entry_of(const Inference& in, const Graph& body) {
  if (!in.node().domain.empty()) return {};
  if (in.node().op == "Loop") return loop_entry(in, body);
  if (in.node().op == "Scan") return scan_entry(in);
  if (in.node().op == "SequenceMap") return map_entry(in);
  return {};
}

// What is certain whatever the iteration: |a| entered, |b| was handed on.
Type carried_type(const Type& a, const Type& b) {
  if (b.kind == PFRT_VALUE_UNSET) {  // not known what comes back: it has the type, not the shape
    Type out = a;
    out.has_shape = false;
    out.shape.clear();
    return out;
  }
  Type out = common_type(a, b);
  if (out.kind != PFRT_VALUE_UNSET && out.dtype == PFRT_DTYPE_UNSET)
    out.dtype = a.dtype ? a.dtype : b.dtype;
  return out;
}

bool same_type(const Type& a, const Type& b) {
  if (a.kind != b.kind || a.dtype != b.dtype || a.has_shape != b.has_shape ||
      a.shape.size() != b.shape.size())
    return false;
  for (size_t i = 0; i < a.shape.size(); ++i)
    if (!(a.shape[i] == b.shape[i]) && !(a.shape[i].unknown() && b.shape[i].unknown()))
      return false;
  return true;
}

Status check_carried(const Inference& in, size_t i, const Type& before, const Type& after) {
  if (!before.dtype || !after.dtype || before.dtype == after.dtype) return {};
  return error(Code::kDTYPE_MISMATCH, describe(in.graph(), in.node()), ": carried value ", i,
               " enters the body as ", dtype_name(before.dtype), " and leaves it as ",
               dtype_name(after.dtype), "; a Cast in the body would keep its type");
}

// Types of the body's inputs in every iteration, and with those of its outputs.
struct Settled {
  Entry entry;
  std::vector<Type> outputs;
};

Result<Settled> settle(const Inference& in, const Graph& body, const BodyTypes& types_of) {
  Settled out;
  out.entry = entry_of(in, body);
  std::vector<Type>& inputs = out.entry.inputs;
  if (inputs.size() > body.inputs.size()) inputs.resize(body.inputs.size());
  for (int round = 0;; ++round) {
    auto outputs = types_of(inputs);
    if (!outputs.ok() && outputs.status().code() != Code::kSHAPE_MISMATCH)
      return outputs.take_status();
    // What does not fit the shapes at hand may never run.
    out.outputs = outputs.ok() ? outputs.take() : std::vector<Type>(body.outputs.size());
    bool settled = true;
    for (size_t i = 0; i < out.entry.count; ++i) {
      if (out.entry.first + i >= inputs.size() || out.entry.back + i >= out.outputs.size()) break;
      Type& before = inputs[out.entry.first + i];
      const Type& after = out.outputs[out.entry.back + i];
      PFRT_TRY(check_carried(in, i, before, after));
      Type both = round < kMostRounds ? carried_type(before, after) : carried_type(before, Type());
      if (same_type(both, before)) continue;
      before = std::move(both);
      settled = false;
    }
    if (settled || round > kMostRounds) return out;
  }
}

Result<Settled> settle(const Inference& in, const Graph& body) {
  return settle(in, body,
                [&](std::span<const Type> inputs) { return infer_body(in, body, inputs); });
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
  PFRT_ASSIGN(Settled settled, settle(in, *body));
  Dim trips;
  const std::optional<Shape> count = in.data(0);
  if (count && count->size() == 1 && counted(in, *body))
    trips =
        count->front().known() ? Dim(std::max<int64_t>(count->front().value(), 0)) : count->front();
  if (trips.symbolic() && !certainly_natural(in.symbols(), trips)) trips = Dim();
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

// Opset 8 has batches, and the lengths of their sequences as its first input. Attribute "batched"
// keeps that meaning apart; input 0 stays the lengths, which may be absent.
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

// The extent that all scan inputs have in common.
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
  PFRT_ASSIGN(Settled settled, settle(in, *body));
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
  PFRT_ASSIGN(Settled settled, settle(in, *body));
  for (size_t i = 0; i < in.output_count() && i < settled.outputs.size(); ++i) {
    Type type = std::move(settled.outputs[i]);
    type.kind = PFRT_VALUE_SEQUENCE;
    in.set_output(i, std::move(type));
  }
  return {};
}

constexpr OperatorDef kRows[] = {
    // domain, name, opsets, inputs, outputs, flags, shape inputs, canonicalise, infer, flops
    {"", "If", 1, 0, 1, 1, 1, -1, kOpHost, 0, nullptr, infer_if, nullptr},
    {"", "Loop", 1, 0, 0, -1, 0, -1, kOpHost, 0, canonical_loop, infer_loop, nullptr},
    {"", "Scan", 8, 0, 0, -1, 1, -1, kOpHost, 0, canonical_scan, infer_scan, nullptr},
    {"", "SequenceMap", 17, 0, 1, -1, 1, -1, kOpHost, 0, canonical_sequence_map, infer_sequence_map,
     nullptr},
};

}  // namespace

bool repeats_body(const Node& node) {
  return node.domain.empty() &&
         (node.op == "Loop" || node.op == "Scan" || node.op == "SequenceMap");
}

Result<std::vector<Type>> repeated_inputs(const Inference& inference, const Graph& body,
                                          const BodyTypes& types_of) {
  Entry entry = entry_of(inference, body);
  if (!types_of || entry.count == 0) {
    for (size_t i = entry.first; i < entry.first + entry.count; ++i)
      entry.inputs[i] = carried_type(entry.inputs[i], Type());
    return std::move(entry.inputs);
  }
  PFRT_ASSIGN(Settled settled, settle(inference, body, types_of));
  return std::move(settled.entry.inputs);
}

Status check_body(Rewriter& rewriter, std::string_view name, size_t inputs, size_t outputs) {
  const Attribute* attr = rewriter.node().attr(name);
  if (!attr || !attr->graph) return rewriter.fail("attribute '", name, "' holds no graph");
  const Graph& body = *attr->graph;
  if (body.inputs.size() != inputs)
    return rewriter.fail("body '", body.name, "' has ", body.inputs.size(),
                         " inputs, the node gives it ", inputs);
  if (body.outputs.size() < outputs)
    return rewriter.fail("body '", body.name, "' has ", body.outputs.size(), " outputs, it needs ",
                         outputs, " to hand on what it carries");
  const size_t most = body.outputs.size() - (rewriter.node().op == "Loop" ? 1 : 0);
  if (rewriter.node().outputs.size() > most)
    return rewriter.fail("the node has ", rewriter.node().outputs.size(), " outputs, body '",
                         body.name, "' makes ", most);
  for (const ValueId id : body.inputs)
    if (body.at(id).constant)
      return rewriter.fail("input '", body.at(id).name, "' of body '", body.name,
                           "' is also an initializer; what the node gives would be lost");
  return {};
}

std::span<const OperatorDef> control_operators() { return kRows; }

}  // namespace pfrt

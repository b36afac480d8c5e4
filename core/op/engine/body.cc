// SPDX-License-Identifier: Apache-2.0
#include "core/op/engine/body.h"

#include <algorithm>

#include "core/op/engine/infer.h"

namespace pfrt {
namespace {

constexpr int kMostRounds = 6;  // then shapes that go on changing count as unknown

// Depth of bodies below which none is inferred again: each level is inferred by itself and once
// more with the one around it.
constexpr uint32_t kInferDepth = 6;

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

BodyEntry loop_entry(const Inference& in, const Graph& body) {
  BodyEntry entry;
  if (body.inputs.size() < 2) return entry;
  entry.inputs = {one_of(PFRT_DTYPE_INT64, body, 0), one_of(PFRT_DTYPE_BOOL, body, 1)};
  for (size_t i = 2; i < in.input_count(); ++i) entry.inputs.push_back(in.input(i));
  entry.first = 2;
  entry.count = entry.inputs.size() - 2;
  entry.back = 1;
  return entry;
}

BodyEntry scan_entry(const Inference& in) {
  BodyEntry entry;
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

BodyEntry map_entry(const Inference& in) {
  BodyEntry entry;
  for (size_t i = 0; i < in.input_count(); ++i) {
    Type type = in.input(i);
    if (type.kind == PFRT_VALUE_SEQUENCE) type.kind = PFRT_VALUE_TENSOR;
    entry.inputs.push_back(std::move(type));
  }
  return entry;
}

BodyEntry entry_of(const Inference& in, const Graph& body) {
  if (!in.node().domain.empty()) return {};
  if (in.node().op == "Loop") return loop_entry(in, body);
  if (in.node().op == "Scan") return scan_entry(in);
  if (in.node().op == "SequenceMap") return map_entry(in);
  return {};
}

// The type that holds in every iteration: |a| entered, |b| was handed on.
Type carried_type(const Type& a, const Type& b) {
  if (b.kind == PFRT_VALUE_UNSET) {  // only the type is known to come back
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

Result<RepeatedBody> settle(const Inference& in, const Graph& body, const BodyTypes& types_of) {
  RepeatedBody out;
  out.entry = entry_of(in, body);
  std::vector<Type>& inputs = out.entry.inputs;
  if (inputs.size() > body.inputs.size()) inputs.resize(body.inputs.size());
  for (int round = 0;; ++round) {
    auto outputs = types_of(inputs);
    if (!outputs.ok() && outputs.status().code() != Code::kSHAPE_MISMATCH)
      return outputs.take_status();
    // A body that does not fit the present shapes may never run.
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

}  // namespace

Type common_type(const Type& a, const Type& b) {
  if (a.kind != b.kind) return {};
  Type out = a;
  if (a.dtype != b.dtype) out.dtype = PFRT_DTYPE_UNSET;
  if (a.key_dtype != b.key_dtype) out.key_dtype = PFRT_DTYPE_UNSET;
  out.has_shape = a.has_shape && b.has_shape && a.shape.size() == b.shape.size();
  if (!out.has_shape) out.shape.clear();
  for (size_t i = 0; i < out.shape.size(); ++i)
    if (!(a.shape[i] == b.shape[i])) out.shape[i] = Dim();
  return out;
}

Result<std::vector<Type>> infer_body(const Inference& inference, const Graph& body,
                                     std::span<const Type> inputs) {
  if (inputs.size() > body.inputs.size())
    return inference.fail("the body '", body.name, "' has ", body.inputs.size(),
                          " inputs, expected ", inputs.size());
  std::vector<Type> types;
  if (body.depth > kInferDepth) {  // deeper types stay as canonicalise found them
    for (ValueId out : body.outputs) types.push_back(body.at(out).type);
    return types;
  }
  InferState state = body_state(body, inference.state());
  for (size_t i = 0; i < inputs.size(); ++i) state.types[body.inputs[i]] = inputs[i];
  PFRT_ASSIGN(const std::vector<NodeId> order, body.topological_order());
  PFRT_TRY(infer(body, order, state));
  for (ValueId out : body.outputs)
    types.push_back(out < state.types.size() ? state.types[out] : Type());
  return types;
}

int64_t scan_batches(const Node& node) { return node.attr_int("batched", 0); }

// The axis of slices of scan input or output |i|, batches apart.
int64_t scan_axis(const Node& node, const char* list, size_t i) {
  const std::vector<int64_t>* axes = node.attr_ints(list);
  return axes && i < axes->size() ? (*axes)[i] : 0;
}

Result<RepeatedBody> repeated_body(const Inference& in, const Graph& body) {
  return settle(in, body,
                [&](std::span<const Type> inputs) { return infer_body(in, body, inputs); });
}

bool repeats_body(const Node& node) {
  return node.domain.empty() &&
         (node.op == "Loop" || node.op == "Scan" || node.op == "SequenceMap");
}

Result<std::vector<Type>> repeated_inputs(const Inference& inference, const Graph& body,
                                          const BodyTypes& types_of) {
  BodyEntry entry = entry_of(inference, body);
  if (!types_of || entry.count == 0) {
    for (size_t i = entry.first; i < entry.first + entry.count; ++i)
      entry.inputs[i] = carried_type(entry.inputs[i], Type());
    return std::move(entry.inputs);
  }
  PFRT_ASSIGN(RepeatedBody settled, settle(inference, body, types_of));
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

}  // namespace pfrt

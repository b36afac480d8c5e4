// SPDX-License-Identifier: Apache-2.0
#include "core/exec/body_call.h"

#include <algorithm>

#include "core/ir/verify.h"
#include "core/op/engine/infer.h"
#include "core/op/engine/inference.h"

namespace pfrt {
namespace {

constexpr int64_t kMostContents = 1024;  // elements at most that shapes are inferred from

}  // namespace

bool runs_bodies(const Node& node) {
  return std::ranges::any_of(node.attrs, [](const Attribute& a) { return a.graph != nullptr; });
}

Status check_planned(const Graph& graph, ValueId id, const Value& value) {
  const Type& planned = graph.at(id).type;
  const bool plain = value.kind == PFRT_VALUE_TENSOR && planned.is_tensor() &&
                     (!planned.dtype || planned.dtype == value.tensor.dtype) &&
                     (!planned.has_shape || planned.shape.size() == value.tensor.dims.size());
  if (plain) return {};
  const Type found = type_of(value);
  // An optional may stand for the value that it holds.
  const bool other_kind = planned.kind != PFRT_VALUE_UNSET && planned.kind != found.kind &&
                          planned.kind != PFRT_VALUE_OPTIONAL && found.kind != PFRT_VALUE_OPTIONAL;
  const bool other_dtype = planned.dtype && found.dtype && planned.dtype != found.dtype;
  const bool tensors = planned.is_tensor() && found.is_tensor();
  const bool other_rank =
      tensors && planned.has_shape && planned.shape.size() != found.shape.size();
  if (!other_kind && !other_dtype && !other_rank) return {};
  return error(other_rank ? Code::kSHAPE_MISMATCH : Code::kDTYPE_MISMATCH, "value '",
               graph.at(id).name, "' is ", type_text(found, *graph.symbols),
               ", the graph was planned for ", type_text(planned, *graph.symbols));
}

Result<std::vector<ValuePtr>> BodyCall::all_inputs(std::vector<ValuePtr> given) const {
  const std::vector<ValueId>& ids = body_.inputs();
  if (given.size() + captured_.size() != ids.size())
    return error(Code::kINVALID_MODEL, "body '", graph().name, "' takes ",
                 ids.size() - captured_.size(), " values and is given ", given.size());
  std::vector<ValuePtr> inputs = std::move(given);
  inputs.insert(inputs.end(), captured_.begin(), captured_.end());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!inputs[i])
      return error(Code::kINVALID_MODEL, "body '", graph().name, "' needs '",
                   graph().at(ids[i]).name, "', which it does not get");
    PFRT_TRY(check_planned(graph(), ids[i], *inputs[i]));
  }
  return inputs;
}

Status BodyCall::run(std::vector<ValuePtr> given, const std::vector<OutputRequest>& requests,
                     std::vector<ValuePtr>& outputs) {
  PFRT_ASSIGN(std::vector<ValuePtr> inputs, all_inputs(std::move(given)));
  return body_.run(std::move(inputs), requests, control_, outputs);
}

Result<ValuePtr> BodyCall::one_element(ValuePtr value, size_t i) const {
  if (!value || value->kind != PFRT_VALUE_TENSOR || value->tensor.count() != 1)
    return error(Code::kSHAPE_MISMATCH, "body '", graph().name, "': input '",
                 graph().at(graph().inputs[i]).name, "' must be one element");
  const Type& type = graph().at(graph().inputs[i]).type;
  const size_t rank = type.has_shape ? type.shape.size() : 0;
  if (value->tensor.dims.size() == rank) return value;
  Tensor tensor = value->tensor;
  tensor.dims.assign(rank, 1);
  return Value::of(std::move(tensor));
}

Result<std::vector<Type>> BodyCall::output_types(const std::vector<ValuePtr>& given) const {
  PFRT_ASSIGN(const std::vector<ValuePtr> inputs, all_inputs(given));
  InferState state = initial_state(graph());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueId id = body_.inputs()[i];
    state.types[id] = type_of(*inputs[i]);
    const Tensor& t = inputs[i]->tensor;
    if (!t.data() || t.device() || t.count() > kMostContents) continue;
    state.contents[id] = t;
    const std::vector<int64_t> contents = to_int64s(t);
    if (static_cast<int64_t>(contents.size()) == t.count())
      state.data[id] = Shape(contents.begin(), contents.end());
  }
  PFRT_ASSIGN(const std::vector<NodeId> order, graph().topological_order());
  // Values that do not fit are never computed: then the declared types serve for the empty result.
  const bool inferred = infer(graph(), order, state).ok();
  std::vector<Type> types;
  for (const ValueId out : graph().outputs)
    types.push_back(inferred && state.types[out].kind != PFRT_VALUE_UNSET ? state.types[out]
                                                                          : graph().at(out).type);
  return types;
}

}  // namespace pfrt

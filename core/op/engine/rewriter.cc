// SPDX-License-Identifier: Apache-2.0
#include "core/op/engine/rewriter.h"

#include <algorithm>
#include <utility>

#include "core/base/half.h"
#include "core/op/engine/contents.h"
#include "core/op/engine/infer.h"

namespace pfrt {
namespace {

std::string local_name(const Graph& graph, const Node& node, std::string_view stem) {
  std::string prefix = node.name;
  for (size_t i = 0; prefix.empty() && i < node.outputs.size(); ++i)
    if (node.outputs[i] != kNoId) prefix = graph.at(node.outputs[i]).name;
  return prefix.empty() ? std::string(stem) : prefix + "/" + std::string(stem);
}

template <typename T>
Result<Tensor> scalar_of(pfrt_dtype dtype, T value) {
  return Tensor::copy_of(dtype, {}, &value);
}

Result<Tensor> make_scalar(pfrt_dtype dtype, double value) {
  switch (dtype) {
    case PFRT_DTYPE_FLOAT32:
      return scalar_of(dtype, static_cast<float>(value));
    case PFRT_DTYPE_FLOAT64:
      return scalar_of(dtype, value);
    case PFRT_DTYPE_FLOAT16:
      return scalar_of(dtype, float_to_float16(static_cast<float>(value)));
    case PFRT_DTYPE_BFLOAT16:
      return scalar_of(dtype, float_to_bfloat16(static_cast<float>(value)));
    case PFRT_DTYPE_INT8:
      return scalar_of(dtype, static_cast<int8_t>(value));
    case PFRT_DTYPE_INT16:
      return scalar_of(dtype, static_cast<int16_t>(value));
    case PFRT_DTYPE_INT32:
      return scalar_of(dtype, static_cast<int32_t>(value));
    case PFRT_DTYPE_INT64:
      return scalar_of(dtype, static_cast<int64_t>(value));
    case PFRT_DTYPE_UINT8:
      return scalar_of(dtype, static_cast<uint8_t>(value));
    case PFRT_DTYPE_BOOL:
      return scalar_of(dtype, static_cast<uint8_t>(value != 0));
    case PFRT_DTYPE_UINT16:
      return scalar_of(dtype, static_cast<uint16_t>(value));
    case PFRT_DTYPE_UINT32:
      return scalar_of(dtype, static_cast<uint32_t>(value));
    case PFRT_DTYPE_UINT64:
      return scalar_of(dtype, static_cast<uint64_t>(value));
    default:
      return error(Code::kUNSUPPORTED, "making a scalar constant of type ", dtype_name(dtype),
                   ": numbers and bool are supported");
  }
}

}  // namespace

const Type& Rewriter::input(size_t i) const {
  return state_.type_of(graph_, has_input(i) ? graph_.node(id_)->inputs[i] : kNoId);
}

const Tensor* Rewriter::constant(size_t i) const {
  return has_input(i) ? graph_.constant(graph_.node(id_)->inputs[i]) : nullptr;
}

Result<ValueId> Rewriter::int64s(std::string_view stem, const std::vector<int64_t>& values) {
  PFRT_ASSIGN(Tensor tensor, Tensor::of_int64(values));
  return constant_value(local_name(graph_, node(), stem), std::move(tensor));
}

Result<ValueId> Rewriter::scalar(std::string_view stem, pfrt_dtype dtype, double value) {
  PFRT_ASSIGN(Tensor tensor, make_scalar(dtype, value));
  return constant_value(local_name(graph_, node(), stem), std::move(tensor));
}

void Rewriter::set_input(size_t i, ValueId value) {
  std::vector<ValueId>& inputs = node().inputs;
  if (i >= inputs.size()) inputs.resize(i + 1, kNoId);
  inputs[i] = value;
}

Status Rewriter::attr_to_input(std::string_view name, size_t i) {
  const Attribute* attr = node().attr(name);
  if (!attr) return {};
  if (attr->type != PFRT_ATTR_INTS && attr->type != PFRT_ATTR_INT)
    return fail("attribute '", name, "' has type ", attr->type, ", expected integers");
  const std::vector<int64_t> values =
      attr->type == PFRT_ATTR_INT ? std::vector<int64_t>{attr->i} : attr->ints;
  PFRT_ASSIGN(const ValueId value, int64s(name, values));
  set_input(i, value);
  node().drop_attr(name);
  return {};
}

Result<ValueId> Rewriter::before(std::string_view op, std::vector<ValueId> inputs,
                                 std::vector<Attribute> attrs, size_t outputs) {
  Node made;
  made.op = op;
  made.inputs = std::move(inputs);
  made.attrs = std::move(attrs);
  PFRT_ASSIGN(const std::vector<ValueId> values, put_before(std::move(made), outputs));
  return values.empty() ? kNoId : values.front();
}

Result<std::vector<ValueId>> Rewriter::put_before(Node made, size_t outputs) {
  made.name = local_name(graph_, node(), made.name.empty() ? made.op : made.name);
  made.canonical = true;
  made.outputs.clear();
  for (size_t i = 0; i < outputs; ++i) made.outputs.push_back(graph_.fresh(made.name));
  std::vector<ValueId> values = made.outputs;
  PFRT_ASSIGN(const NodeId id, graph_.add_node(std::move(made)));
  PFRT_TRY(infer_node(graph_, *graph_.node(id), state_));
  return values;
}

Status Rewriter::put_after(size_t i, Node made) {
  if (!node().has_output(i)) return {};
  made.name = local_name(graph_, node(), made.op);
  made.canonical = true;
  const ValueId out = node().outputs[i];
  const ValueId between = graph_.fresh(local_name(graph_, node(), node().op));
  graph_.at(out).producer = kNoId;
  graph_.at(between).producer = id_;
  node().outputs[i] = between;
  made.inputs.insert(made.inputs.begin(), between);
  made.outputs = {out};
  PFRT_ASSIGN(const NodeId id, graph_.add_node(std::move(made)));
  after_.push_back(id);
  return {};
}

Result<std::vector<ValueId>> Rewriter::inline_body(const Graph& body,
                                                   std::span<const ValueId> inputs) {
  std::vector<ValueId> stand_in(body.value_count(), kNoId);
  const auto outer = [&](ValueId inner) {
    if (inner == kNoId) return kNoId;
    if (stand_in[inner] == kNoId && body.at(inner).constant) {
      stand_in[inner] = graph_.fresh(local_name(graph_, node(), body.at(inner).name));
      graph_.set_constant(stand_in[inner], body.at(inner).constant);
    }
    return stand_in[inner];
  };
  for (size_t i = 0; i < inputs.size() && i < body.inputs.size(); ++i)
    stand_in[body.inputs[i]] = inputs[i];
  for (const Capture& capture : body.captures) stand_in[capture.inner] = capture.outer;
  PFRT_ASSIGN(const std::vector<NodeId> order, body.topological_order());
  for (const NodeId id : order) {
    Node copy = *body.node(id);
    for (ValueId& in : copy.inputs) in = outer(in);
    for (Attribute& attr : copy.attrs) {
      if (attr.graph) attr.graph = attr.graph->clone();
      for (auto& graph : attr.graphs) graph = graph->clone();
      if (attr.graph)
        for (Capture& capture : attr.graph->captures) capture.outer = outer(capture.outer);
      for (auto& graph : attr.graphs)
        for (Capture& capture : graph->captures) capture.outer = outer(capture.outer);
    }
    const std::vector<ValueId> made = copy.outputs;
    PFRT_ASSIGN(const std::vector<ValueId> values, put_before(std::move(copy), made.size()));
    for (size_t i = 0; i < made.size(); ++i)
      if (made[i] != kNoId) stand_in[made[i]] = values[i];
  }
  std::vector<ValueId> outputs;
  outputs.reserve(body.outputs.size());
  for (const ValueId out : body.outputs) {
    outputs.push_back(outer(out));
    if (outputs.back() == kNoId)
      return fail("body '", body.name, "' does not make its output '", body.at(out).name, "'");
  }
  return outputs;
}

void Rewriter::stand_in(ValueId from, ValueId to) {
  if (state_.instead && !graph_.is_output(from))
    (*state_.instead)[from] = to;
  else
    graph_.replace_uses(from, to);
}

bool Rewriter::is_used(ValueId value) const {
  if (graph_.is_output(value)) return true;
  if (state_.used && value < state_.used->size()) return (*state_.used)[value];
  for (NodeId id : graph_.node_ids()) {
    const std::vector<ValueId> taken = graph_.used_by(*graph_.node(id));
    if (std::ranges::find(taken, value) != taken.end()) return true;
  }
  return false;
}

void Rewriter::replace_with(const std::vector<ValueId>& values) {
  const std::vector<ValueId> outputs = node().outputs;
  for (size_t i = 0; i < outputs.size() && i < values.size(); ++i)
    if (outputs[i] != kNoId) stand_in(outputs[i], values[i]);
  graph_.remove_node(id_);
}

Status Rewriter::after(std::string_view op, const std::vector<ValueId>& more,
                       std::vector<Attribute> attrs) {
  Node& tail = *graph_.node(after_.empty() ? id_ : after_.back());
  if (!tail.has_output(0)) return {};
  Node made;
  made.name = local_name(graph_, node(), op);
  made.op = op;
  made.attrs = std::move(attrs);
  made.canonical = true;
  made.outputs = {tail.outputs[0]};
  const ValueId between = graph_.fresh(local_name(graph_, node(), node().op));
  graph_.at(tail.outputs[0]).producer = kNoId;
  graph_.at(between).producer = tail.id;
  tail.outputs[0] = between;
  made.inputs = {between};
  made.inputs.insert(made.inputs.end(), more.begin(), more.end());
  PFRT_ASSIGN(const NodeId id, graph_.add_node(std::move(made)));
  after_.push_back(id);
  return {};
}

Status Rewriter::replace_with_constant(Tensor tensor) {
  if (!node().has_output(0)) return fail("the constant has no output to stand for");
  const ValueId out = node().outputs[0];
  graph_.remove_node(id_);
  graph_.set_constant(out, Value::of(std::move(tensor)));
  if (out < state_.types.size()) state_.types[out] = graph_.at(out).type;
  if (out < state_.data.size()) state_.data[out] = contents_of(graph_.constant(out));
  return {};
}

}  // namespace pfrt

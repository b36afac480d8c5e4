// SPDX-License-Identifier: Apache-2.0
#include "core/provider/snapshot.h"

#include <algorithm>
#include <unordered_map>

#include "core/op/engine/lookup.h"
#include "core/op/engine/operator_set.h"

namespace pfrt {
namespace {

constexpr uint64_t kDeferredAbove = 64 << 10;  // the limit that PFRT_PROVIDER_DEFERRED promises

}  // namespace

static_assert(kNoId == PFRT_NO_INDEX, "absent values are the same number on both sides");

uint32_t snapshot_opset(const Graph& graph, const Node& node) {
  return static_cast<uint32_t>(std::clamp<int64_t>(custom_opset(graph, node), 0, UINT32_MAX));
}

bool view_attribute(const Attribute& from, std::deque<std::vector<pfrt_string>>& strings,
                    pfrt_snapshot_attr* out) {
  pfrt_snapshot_attr to{};
  to.name = to_c(from.name);
  to.type = from.type;
  to.f = from.f;
  to.i = from.i;
  to.s = to_c(from.s);
  switch (from.type) {
    case PFRT_ATTR_FLOAT:
    case PFRT_ATTR_INT:
    case PFRT_ATTR_STRING:
      break;
    case PFRT_ATTR_FLOATS:
      to.floats = from.floats.data();
      to.count = from.floats.size();
      break;
    case PFRT_ATTR_INTS:
      to.ints = from.ints.data();
      to.count = from.ints.size();
      break;
    case PFRT_ATTR_STRINGS: {
      std::vector<pfrt_string> list;
      list.reserve(from.strings.size());
      for (const std::string& s : from.strings) list.push_back(to_c(s));
      strings.push_back(std::move(list));
      to.strings = strings.back().data();
      to.count = from.strings.size();
      break;
    }
    case PFRT_ATTR_TENSOR:
      if (!from.tensor || from.tensor->kind != PFRT_VALUE_TENSOR) return false;
      to.tensor.struct_size = sizeof to.tensor;
      to.tensor.dtype = from.tensor->tensor.dtype;
      to.tensor.rank = static_cast<uint32_t>(from.tensor->tensor.dims.size());
      to.tensor.data = from.tensor->tensor.data();
      to.tensor.bytes = from.tensor->tensor.bytes();
      to.tensor.dims = from.tensor->tensor.dims.data();
      break;
    default:
      return false;
  }
  *out = to;
  return true;
}

Snapshot::Snapshot(std::shared_ptr<const Graph> graph, const std::vector<NodeId>& order,
                   bool deferred)
    : graph_(std::move(graph)), order_(order) {
  std::vector<uint32_t> index_of(graph_->node_capacity(), PFRT_NO_INDEX);
  for (uint32_t i = 0; i < order_.size(); ++i) index_of[order_[i]] = i;
  add_values(index_of, deferred);
  add_nodes(index_of);
  snapshot_.struct_size = sizeof snapshot_;
  snapshot_.abi = PFRT_ABI_VERSION;
  snapshot_.node_size = sizeof(pfrt_snapshot_node);
  snapshot_.value_size = sizeof(pfrt_snapshot_value);
  snapshot_.attr_size = sizeof(pfrt_snapshot_attr);
  snapshot_.node_count = static_cast<uint32_t>(nodes_.size());
  snapshot_.value_count = static_cast<uint32_t>(values_.size());
  snapshot_.nodes = nodes_.data();
  snapshot_.values = values_.data();
}

void Snapshot::add_values(const std::vector<uint32_t>& index_of, bool deferred) {
  const Graph& g = *graph_;
  values_.resize(g.value_count());
  size_t dim_count = 0;
  for (ValueId id = 0; id < values_.size(); ++id) dim_count += g.at(id).type.shape.size();
  dims_.reserve(dim_count);  // values point into it
  int64_t unknown = -1;      // each unknown dimension has its own number; a symbol has one
  std::unordered_map<uint32_t, int64_t> symbol_number;
  const auto number_of = [&](const Dim& d) {
    if (d.known()) return d.value();
    if (!d.symbolic()) return unknown--;
    const auto [it, fresh] = symbol_number.try_emplace(d.symbol(), unknown);
    if (fresh) --unknown;
    return it->second;
  };
  for (ValueId id = 0; id < values_.size(); ++id) {
    const GraphValue& from = g.at(id);
    pfrt_snapshot_value& to = values_[id];
    to.name = to_c(from.name);
    to.dtype = from.type.dtype;
    to.rank = -1;
    to.producer = from.producer < index_of.size() ? index_of[from.producer] : PFRT_NO_INDEX;
    if (!from.type.is_tensor()) to.flags |= PFRT_SNAPSHOT_NOT_TENSOR;
    if (from.type.has_shape) {
      to.rank = static_cast<int32_t>(from.type.shape.size());
      to.dims = dims_.data() + dims_.size();
      for (const Dim& d : from.type.shape) dims_.push_back(number_of(d));
    }
    if (const Tensor* t = g.constant(id)) {
      to.flags |= PFRT_SNAPSHOT_CONSTANT;
      if (!deferred || t->bytes() <= kDeferredAbove || !t->deferred()) to.data = t->data();
      to.bytes = t->bytes();
    }
  }
  for (ValueId id : g.inputs) values_[id].flags |= PFRT_SNAPSHOT_GRAPH_INPUT;
  for (ValueId id : g.outputs) {
    values_[id].flags |= PFRT_SNAPSHOT_GRAPH_OUTPUT;
    ++values_[id].consumer_count;
  }
}

void Snapshot::add_nodes(const std::vector<uint32_t>& index_of) {
  const Graph& g = *graph_;
  size_t attr_count = 0;
  for (NodeId id : order_) attr_count += g.node(id)->attrs.size();
  attrs_.reserve(attr_count);  // nodes point into it
  nodes_.reserve(order_.size());
  for (NodeId id : order_) {
    const Node& from = *g.node(id);
    pfrt_snapshot_node to{};
    to.name = to_c(from.name);
    to.op = to_c(from.op);
    to.domain = to_c(from.domain);
    to.id = id;
    to.canonical = 1;
    if (!is_built_in(from.domain, from.op)) to.opset = snapshot_opset(g, from);
    if (from.epilogue_of < index_of.size() && index_of[from.epilogue_of] != PFRT_NO_INDEX)
      to.tail_of = index_of[from.epilogue_of] + 1;
    to.inputs = from.inputs.data();
    to.input_count = static_cast<uint32_t>(from.inputs.size());
    to.outputs = from.outputs.data();
    to.output_count = static_cast<uint32_t>(from.outputs.size());
    to.attrs = attrs_.data() + attrs_.size();
    const size_t before = attrs_.size();
    bool has_body = false;
    for (const Attribute& a : from.attrs) {
      pfrt_snapshot_attr attr{};
      has_body = has_body || a.graph || !a.graphs.empty();
      if (view_attribute(a, strings_, &attr)) attrs_.push_back(attr);
    }
    to.attr_count = attrs_.size() - before;
    nodes_.push_back(to);
    // A value that a node takes twice has two uses.
    for (ValueId in : from.inputs)
      if (in != kNoId) ++values_[in].consumer_count;
    if (!has_body) continue;
    for (ValueId in : g.used_by(from))
      if (std::ranges::find(from.inputs, in) == from.inputs.end()) ++values_[in].consumer_count;
  }
}

}  // namespace pfrt

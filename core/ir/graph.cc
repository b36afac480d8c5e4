// SPDX-License-Identifier: Apache-2.0
#include "core/ir/graph.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <unordered_set>
#include <utility>

namespace pfrt {

bool Type::fixed() const {
  return has_shape &&
         std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.known(); });
}

Type type_of(const Value& value) {
  Type type;
  type.kind = value.kind;
  switch (value.kind) {
    case PFRT_VALUE_TENSOR:
      type.dtype = value.tensor.dtype;
      type.has_shape = true;
      type.shape.assign(value.tensor.dims.begin(), value.tensor.dims.end());
      break;
    case PFRT_VALUE_SPARSE:
      type.dtype = value.tensor.dtype;
      type.has_shape = true;
      type.shape.assign(value.dense_dims.begin(), value.dense_dims.end());
      break;
    case PFRT_VALUE_MAP:
      type.key_dtype = value.keys ? value.keys->tensor.dtype : 0;
      type.dtype = value.values ? value.values->tensor.dtype : 0;
      break;
    default:
      type.dtype = value.element_dtype;
      if (!value.elements.empty()) {
        const Type element = type_of(*value.elements.front());
        type.dtype = element.dtype;
        type.key_dtype = element.key_dtype;
      }
      break;
  }
  return type;
}

Attribute Attribute::of_int(std::string name, int64_t value) {
  Attribute a;
  a.name = std::move(name);
  a.type = PFRT_ATTR_INT;
  a.i = value;
  return a;
}

Attribute Attribute::of_float(std::string name, float value) {
  Attribute a;
  a.name = std::move(name);
  a.type = PFRT_ATTR_FLOAT;
  a.f = value;
  return a;
}

Attribute Attribute::of_string(std::string name, std::string value) {
  Attribute a;
  a.name = std::move(name);
  a.type = PFRT_ATTR_STRING;
  a.s = std::move(value);
  return a;
}

Attribute Attribute::of_ints(std::string name, std::vector<int64_t> values) {
  Attribute a;
  a.name = std::move(name);
  a.type = PFRT_ATTR_INTS;
  a.ints = std::move(values);
  return a;
}

Attribute Attribute::of_floats(std::string name, std::vector<float> values) {
  Attribute a;
  a.name = std::move(name);
  a.type = PFRT_ATTR_FLOATS;
  a.floats = std::move(values);
  return a;
}

Attribute Attribute::of_tensor(std::string name, Tensor value) {
  Attribute a;
  a.name = std::move(name);
  a.type = PFRT_ATTR_TENSOR;
  a.tensor = Value::of(std::move(value));
  return a;
}

const Attribute* Node::attr(std::string_view attr_name) const {
  for (const Attribute& a : attrs)
    if (a.name == attr_name) return &a;
  return nullptr;
}

int64_t Node::attr_int(std::string_view attr_name, int64_t fallback) const {
  const Attribute* a = attr(attr_name);
  return a && a->type == PFRT_ATTR_INT ? a->i : fallback;
}

float Node::attr_float(std::string_view attr_name, float fallback) const {
  const Attribute* a = attr(attr_name);
  return a && a->type == PFRT_ATTR_FLOAT ? a->f : fallback;
}

std::string_view Node::attr_string(std::string_view attr_name, std::string_view fallback) const {
  const Attribute* a = attr(attr_name);
  return a && a->type == PFRT_ATTR_STRING ? std::string_view(a->s) : fallback;
}

const std::vector<int64_t>* Node::attr_ints(std::string_view attr_name) const {
  const Attribute* a = attr(attr_name);
  return a && a->type == PFRT_ATTR_INTS ? &a->ints : nullptr;
}

void Node::set_attr(Attribute attr) {
  for (Attribute& a : attrs) {
    if (a.name == attr.name) {
      a = std::move(attr);
      return;
    }
  }
  attrs.push_back(std::move(attr));
}

void Node::drop_attr(std::string_view attr_name) {
  std::erase_if(attrs, [&](const Attribute& a) { return a.name == attr_name; });
}

Graph::Graph(std::string graph_name)
    : name(std::move(graph_name)), symbols(std::make_shared<SymbolTable>()) {}

std::shared_ptr<Graph> Graph::subgraph_of(Graph& outer, std::string name) {
  auto body = std::make_shared<Graph>(std::move(name));
  body->symbols = outer.symbols;
  body->operators = outer.operators;
  body->opsets = outer.opsets;
  body->depth = outer.depth + 1;
  return body;
}

std::shared_ptr<Graph> Graph::clone() const {
  auto copy = std::make_shared<Graph>(name);
  copy->doc = doc;
  copy->opsets = opsets;
  copy->metadata = metadata;
  copy->inputs = inputs;
  copy->outputs = outputs;
  copy->captures = captures;
  copy->symbols = symbols;
  copy->depth = depth;
  copy->operators = operators;
  copy->values_ = values_;
  copy->by_name_ = by_name_;
  copy->nodes_.reserve(nodes_.size());
  for (const auto& node : nodes_) {
    copy->nodes_.push_back(node ? std::make_unique<Node>(*node) : nullptr);
    if (!node) continue;
    for (Attribute& a : copy->nodes_.back()->attrs) {
      if (a.graph) a.graph = a.graph->clone();
      for (auto& g : a.graphs) g = g->clone();
    }
  }
  return copy;
}

void Graph::swap(Graph& other) noexcept {
  std::swap(name, other.name);
  std::swap(doc, other.doc);
  opsets.swap(other.opsets);
  metadata.swap(other.metadata);
  inputs.swap(other.inputs);
  outputs.swap(other.outputs);
  captures.swap(other.captures);
  symbols.swap(other.symbols);
  std::swap(depth, other.depth);
  revision = other.revision = std::max(revision, other.revision) + 1;
  operators.swap(other.operators);
  values_.swap(other.values_);
  by_name_.swap(other.by_name_);
  nodes_.swap(other.nodes_);
}

ValueId Graph::value(std::string_view value_name) {
  if (value_name.empty()) return kNoId;
  auto [it, fresh] =
      by_name_.try_emplace(std::string(value_name), static_cast<ValueId>(values_.size()));
  if (fresh) values_.push_back({std::string(value_name), {}, kNoId, nullptr, {}});
  return it->second;
}

ValueId Graph::find(std::string_view value_name) const {
  auto it = by_name_.find(std::string(value_name));
  return it == by_name_.end() ? kNoId : it->second;
}

ValueId Graph::fresh(std::string_view stem) {
  std::string candidate(stem);
  for (size_t n = values_.size(); candidate.empty() || by_name_.count(candidate); ++n)
    candidate = std::string(stem) + "_" + std::to_string(n);
  return value(candidate);
}

const Tensor* Graph::constant(ValueId id) const {
  if (id == kNoId || !values_[id].constant || values_[id].constant->kind != PFRT_VALUE_TENSOR)
    return nullptr;
  return &values_[id].constant->tensor;
}

namespace {

// Blocks without an early exit let compilers use vector instructions: lists may be long.
bool contains(const std::vector<ValueId>& list, ValueId id) {
  constexpr size_t kBlock = 64;
  size_t i = 0;
  for (; i + kBlock <= list.size(); i += kBlock) {
    uint32_t found = 0;
    for (size_t k = 0; k < kBlock; ++k) found |= list[i + k] == id;
    if (found) return true;
  }
  return std::find(list.begin() + static_cast<std::ptrdiff_t>(i), list.end(), id) != list.end();
}

// Adds values to a list, each once.
class Distinct {
 public:
  explicit Distinct(std::vector<ValueId>& list) : list_(list) {}
  bool add(ValueId id) {
    if (seen_.empty() && list_.size() < kFew) {
      if (std::find(list_.begin(), list_.end(), id) != list_.end()) return false;
    } else {
      if (seen_.empty()) seen_.insert(list_.begin(), list_.end());
      if (!seen_.insert(id).second) return false;
    }
    list_.push_back(id);
    return true;
  }

 private:
  static constexpr size_t kFew = 32;
  std::vector<ValueId>& list_;
  std::unordered_set<ValueId> seen_;
};

}  // namespace

bool Graph::is_output(ValueId id) const { return contains(outputs, id); }
bool Graph::is_input(ValueId id) const { return contains(inputs, id); }

void Graph::set_constant(ValueId id, ValuePtr constant) {
  if (!values_[id].constant) values_[id].declared = std::move(values_[id].type);
  values_[id].type = type_of(*constant);
  values_[id].constant = std::move(constant);
}

ValueId Graph::add_constant(std::string_view stem, Tensor tensor) {
  const ValueId id = fresh(stem);
  set_constant(id, Value::of(std::move(tensor)));
  return id;
}

const Type& Graph::fed_type(ValueId id) const {
  const GraphValue& v = values_[id];
  return v.constant && v.declared.kind != PFRT_VALUE_UNSET && is_input(id) ? v.declared : v.type;
}

void Graph::make_fed(ValueId id) {
  values_[id].type = fed_type(id);
  values_[id].constant = nullptr;
}

std::vector<ValueId> Graph::initializers() const {
  std::vector<ValueId> ids;
  for (ValueId id = 0; id < values_.size(); ++id)
    if (values_[id].constant) ids.push_back(id);
  return ids;
}

void Graph::rename(const std::vector<std::pair<ValueId, std::string>>& names) {
  for (const auto& [id, to] : names) by_name_.erase(values_[id].name);
  for (const auto& [id, to] : names) {
    const auto [at, fresh] = by_name_.try_emplace(to, id);
    if (!fresh) values_[std::exchange(at->second, id)] = GraphValue();
    values_[id].name = to;
  }
}

Status Graph::check_outputs(const Node& node, const std::vector<ValueId>& outs,
                            std::string_view doing) const {
  std::vector<ValueId> seen;
  Distinct distinct(seen);
  for (ValueId out : outs) {
    if (out == kNoId) continue;
    const GraphValue& v = values_[out];
    if (v.producer != kNoId && v.producer != node.id)
      return error(Code::kVALIDATION, doing, describe(*this, node), ": value '", v.name,
                   "' is already produced by ", describe(*this, *nodes_[v.producer]),
                   "; give one of the two outputs another name");
    if (v.constant || is_input(out))
      return error(Code::kVALIDATION, doing, describe(*this, node), ": value '", v.name,
                   "' is already ", v.constant ? "an initializer" : "a graph input",
                   "; give the output another name");
    if (!distinct.add(out))
      return error(Code::kVALIDATION, doing, describe(*this, node), ": output '", v.name,
                   "' is listed twice; give one of the two another name");
  }
  return {};
}

void Graph::set_outputs(NodeId id, std::vector<ValueId> outs) {
  Node& n = *nodes_[id];
  for (ValueId out : n.outputs)
    if (out != kNoId) values_[out].producer = kNoId;
  for (ValueId out : outs)
    if (out != kNoId) values_[out].producer = id;
  n.outputs = std::move(outs);
}

Result<NodeId> Graph::add_node(Node node) {
  node.id = kNoId;
  PFRT_TRY(check_outputs(node, node.outputs, "adding "));
  node.id = static_cast<NodeId>(nodes_.size());
  for (ValueId out : node.outputs)
    if (out != kNoId) values_[out].producer = node.id;
  nodes_.push_back(std::make_unique<Node>(std::move(node)));
  return nodes_.back()->id;
}

void Graph::remove_node(NodeId id) {
  if (!node(id)) return;
  for (ValueId out : nodes_[id]->outputs)
    if (out != kNoId && values_[out].producer == id) values_[out].producer = kNoId;
  nodes_[id].reset();
}

std::vector<NodeId> Graph::node_ids() const {
  std::vector<NodeId> ids;
  for (const auto& n : nodes_)
    if (n) ids.push_back(n->id);
  return ids;
}

size_t Graph::node_count() const {
  return static_cast<size_t>(
      std::count_if(nodes_.begin(), nodes_.end(), [](const auto& n) { return n != nullptr; }));
}

namespace {

template <typename Fn>
void for_each_body(const Node& node, Fn fn) {
  for (const Attribute& a : node.attrs) {
    if (a.graph) fn(*a.graph);
    for (const auto& g : a.graphs) fn(*g);
  }
}

}  // namespace

void Graph::replace_uses(ValueId from, ValueId to) {
  for (auto& n : nodes_) {
    if (!n) continue;
    for (ValueId& in : n->inputs)
      if (in == from) in = to;
    for_each_body(*n, [&](Graph& body) {
      for (Capture& c : body.captures)
        if (c.outer == from) c.outer = to;
    });
  }
  if (!is_output(from)) return;
  std::replace(outputs.begin(), outputs.end(), from, to);
  if (is_input(to) || values_[to].constant || is_input(from)) return;
  std::swap(values_[from].name, values_[to].name);
  by_name_[values_[from].name] = from;
  by_name_[values_[to].name] = to;
}

std::vector<ValueId> Graph::used_by(const Node& node) const {
  std::vector<ValueId> used;
  used.reserve(node.inputs.size());
  Distinct distinct(used);
  auto add = [&](ValueId id) {
    if (id != kNoId) distinct.add(id);
  };
  for (ValueId in : node.inputs) add(in);
  for_each_body(node, [&](const Graph& body) {
    for (const Capture& c : body.captures) add(c.outer);
  });
  return used;
}

Result<std::vector<NodeId>> Graph::topological_order() const {
  // Each use is an edge: a value that is used twice is waited for twice.
  const auto for_each_maker = [&](const Node& n, auto fn) {
    const auto use = [&](ValueId in) {
      if (in != kNoId && values_[in].producer != kNoId) fn(values_[in].producer);
    };
    for (ValueId in : n.inputs) use(in);
    for_each_body(n, [&](const Graph& body) {
      for (const Capture& c : body.captures) use(c.outer);
    });
  };
  // The users of node |id| are at first[id] to first[id + 1].
  std::vector<uint32_t> waiting(nodes_.size(), 0), first(nodes_.size() + 1, 0);
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  size_t live = 0;
  for (const auto& n : nodes_) {
    if (!n) continue;
    ++live;
    for_each_maker(*n, [&](NodeId maker) {
      ++first[maker + 1];
      ++waiting[n->id];
    });
    if (waiting[n->id] == 0) ready.push(n->id);
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<NodeId> users(first.back());
  std::vector<uint32_t> end(first.begin(), first.end() - 1);
  for (const auto& n : nodes_)
    if (n) for_each_maker(*n, [&](NodeId maker) { users[end[maker]++] = n->id; });
  std::vector<NodeId> order;
  order.reserve(live);
  while (!ready.empty()) {
    const NodeId id = ready.top();
    ready.pop();
    order.push_back(id);
    for (uint32_t i = first[id]; i < first[id + 1]; ++i)
      if (--waiting[users[i]] == 0) ready.push(users[i]);
  }
  if (order.size() == live) return order;

  return cycle_error(order);
}

Status Graph::cycle_error(const std::vector<NodeId>& order) const {
  // Walk back along unfinished producers until a node repeats: that stretch is a cycle.
  std::vector<bool> done(nodes_.size(), false);
  for (NodeId id : order) done[id] = true;
  NodeId at = 0;
  while (!nodes_[at] || done[at]) ++at;
  std::vector<NodeId> path;
  std::vector<bool> passed(nodes_.size(), false);
  while (!passed[at]) {
    passed[at] = true;
    path.push_back(at);
    for (ValueId in : used_by(*nodes_[at])) {
      const NodeId producer = values_[in].producer;
      if (producer != kNoId && !done[producer]) {
        at = producer;
        break;
      }
    }
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), at));
  std::string text;
  for (size_t i = 0; i < path.size() && i < 6; ++i)
    text += (i ? " <- " : "") + describe(*this, *nodes_[path[i]]);
  return error(Code::kVALIDATION, "ordering graph '", name, "': ", path.size(),
               " nodes form a cycle: ", text, path.size() > 6 ? " <- ..." : "",
               "; a node may only use values produced before it");
}

Status Graph::bind_captures() { return bind_captures_to(nullptr); }

Status Graph::bind_captures_to(Graph* outer) {
  for (auto& n : nodes_) {
    if (!n) continue;
    for (Attribute& a : n->attrs) {
      if (a.graph) PFRT_TRY(a.graph->bind_captures_to(this));
      for (auto& g : a.graphs) PFRT_TRY(g->bind_captures_to(this));
    }
  }
  if (!outer) return {};
  captures.clear();
  std::unordered_set<ValueId> wanted(outputs.begin(), outputs.end());
  const std::unordered_set<ValueId> given(inputs.begin(), inputs.end());
  for (const auto& n : nodes_)
    if (n)
      for (ValueId in : used_by(*n)) wanted.insert(in);
  for (ValueId id = 0; id < values_.size(); ++id) {
    const GraphValue& v = values_[id];
    if (!wanted.count(id) || v.producer != kNoId || v.constant || given.count(id)) continue;
    captures.push_back({outer->value(v.name), id});
  }
  return {};
}

int64_t Graph::opset(std::string_view domain) const {
  auto it = opsets.find(std::string(domain == "ai.onnx" ? "" : domain));
  return it == opsets.end() ? 0 : it->second;
}

std::string describe(const Graph& graph, const Node& node) {
  std::string text =
      node.domain.empty() || node.domain == "ai.onnx" ? node.op : node.domain + "." + node.op;
  if (!node.name.empty()) return text + " '" + node.name + "'";
  for (ValueId out : node.outputs)
    if (out != kNoId) return text + " producing '" + graph.at(out).name + "'";
  return text;
}

}  // namespace pfrt

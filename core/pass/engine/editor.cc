// SPDX-License-Identifier: Apache-2.0
#include "core/pass/engine/editor.h"

#include <algorithm>
#include <cassert>

#include "core/op/defs/common/helpers.h"
#include "core/op/engine/contents.h"
#include "core/op/engine/infer.h"
#include "core/op/engine/inference.h"

namespace pfrt {

namespace {

// A value with more users, or a graph with more outputs, gets an index of them; and such users are
// not all looked at again after an edit of one.
constexpr size_t kMany = 64;
// Number of nodes between two checks whether the caller has cancelled.
constexpr size_t kEditsPerStop = 256;

// Joins two types of a value that rewriting does not change: a number is preferred to a name, and
// of two names the one known first.
Type merged(const Type& found, const Type& known) {
  if (known.kind == PFRT_VALUE_UNSET || found.dtype != known.dtype) return found;
  if (found.kind == PFRT_VALUE_UNSET || !found.has_shape) return known;
  if (!known.has_shape || known.shape.size() != found.shape.size()) return found;
  Type out = found;
  for (size_t i = 0; i < out.shape.size(); ++i)
    if (!out.shape[i].known() && !known.shape[i].unknown()) out.shape[i] = known.shape[i];
  return out;
}

// Vector instructions skip blocks without |from|, since a node may have very many inputs.
void replace_all(std::vector<ValueId>& list, ValueId from, ValueId to) {
  constexpr size_t kBlock = 64;
  for (size_t i = 0; i < list.size(); i += kBlock) {
    const size_t end = std::min(i + kBlock, list.size());
    uint32_t found = 0;
    for (size_t k = i; k < end; ++k) found |= list[k] == from;
    for (size_t k = i; found && k < end; ++k)
      if (list[k] == from) list[k] = to;
  }
}

bool identical(const Shape& a, const Shape& b) {
  return std::ranges::equal(
      a, b, [](const Dim& x, const Dim& y) { return x == y || (x.unknown() && y.unknown()); });
}

bool identical(const Type& a, const Type& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.key_dtype == b.key_dtype &&
         a.has_shape == b.has_shape && identical(a.shape, b.shape);
}

bool identical(const std::optional<Shape>& a, const std::optional<Shape>& b) {
  return a.has_value() == b.has_value() && (!a || identical(*a, *b));
}

}  // namespace

bool has_bodies(const Node& node) {
  return std::ranges::any_of(node.attrs,
                             [](const Attribute& a) { return a.graph || !a.graphs.empty(); });
}

Status Editor::look(size_t& visited) const {
  return progress_ && ++visited % kEditsPerStop == 0 ? progress_->stop() : Status();
}

Result<Editor> Editor::open(Graph& graph, const InferState* outer, const Progress* progress) {
  Editor editor(graph, progress);
  editor.state_ = outer ? body_state(graph, *outer) : initial_state(graph);
  PFRT_ASSIGN(editor.order_, graph.topological_order());
  editor.count_users(editor.order_);
  size_t visited = 0;
  for (NodeId id : editor.order_) {
    PFRT_TRY(editor.look(visited));
    PFRT_TRY(editor.infer(*graph.node(id)));
  }
  return editor;
}

Status Editor::refresh() {
  (void)take_touched();
  if (fresh_at_ == edits_) return {};
  PFRT_ASSIGN(const std::vector<NodeId> order, topological_order());
  count_users(order);
  stale_.resize(graph_->node_capacity());
  size_t visited = 0;
  for (NodeId id : order) {
    PFRT_TRY(look(visited));
    if (stale_[id]) PFRT_TRY(infer_again(*graph_->node(id)));
  }
  stale_.assign(stale_.size(), false);
  fresh_at_ = edits_;
  return {};
}

Result<std::vector<NodeId>> Editor::topological_order() {
  if (ordered_at_ != edits_) {
    PFRT_ASSIGN(order_, graph_->topological_order());
    ordered_at_ = edits_;
  }
  return order_;
}

void Editor::count_users(const std::vector<NodeId>& order) {
  grow();
  input_.assign(input_.size(), false);
  output_.assign(output_.size(), false);
  for (ValueId id : graph_->inputs) input_[id] = true;
  for (ValueId id : graph_->outputs) output_[id] = true;
  for (std::vector<NodeId>& list : users_) list.clear();
  places_.clear();
  output_places_.clear();
  for (NodeId id : order)
    for (ValueId value : graph_->used_by(*graph_->node(id))) users_[value].push_back(id);
  for (size_t i = 0; graph_->outputs.size() > kMany && i < graph_->outputs.size(); ++i)
    output_places_[graph_->outputs[i]].push_back(i);
}

void Editor::grow() {
  const size_t count = graph_->value_count();
  if (users_.size() >= count) return;
  users_.resize(count);
  output_.resize(count);
  input_.resize(count);
  state_.types.resize(count);
  state_.data.resize(count);
}

// Types from canonicalisation, joined with declared ones, stay where inference knows less.
Status Editor::infer(Node& node) {
  Status inferred = infer_node(*graph_, node, state_);
  // A body may never run: a misfit in it is a fault of the run that gets there.
  if (!inferred.ok() && (graph_->depth == 0 || inferred.code() != Code::kSHAPE_MISMATCH))
    return inferred;
  for (ValueId out : node.outputs) {
    if (out == kNoId || identical(state_.types[out], graph_->at(out).type)) continue;
    state_.types[out] = merged(state_.types[out], graph_->at(out).type);
    if (state_.types[out].kind != PFRT_VALUE_UNSET) graph_->at(out).type = state_.types[out];
  }
  return {};
}

Status Editor::infer_again(Node& node) {
  std::vector<std::pair<Type, std::optional<Shape>>> before;
  for (ValueId out : node.outputs)
    if (out != kNoId) before.emplace_back(state_.types[out], state_.data[out]);
  PFRT_TRY(infer(node));
  size_t i = 0;
  for (ValueId out : node.outputs) {
    if (out == kNoId) continue;
    const auto& [type, data] = before[i++];
    if (identical(type, state_.types[out]) && identical(data, state_.data[out])) continue;
    for (NodeId user : users_[out]) stale_[user] = true;
  }
  return {};
}

void Editor::use(ValueId value, NodeId id) {
  grow();
  std::vector<NodeId>& list = users_[value];
  if (list.size() <= kMany) {
    if (std::ranges::find(list, id) == list.end()) list.push_back(id);
    return;
  }
  std::unordered_map<NodeId, size_t>& places = places_[value];
  for (size_t i = places.size(); i < list.size(); ++i) places.emplace(list[i], i);
  if (places.emplace(id, list.size()).second) list.push_back(id);
}

void Editor::disuse(ValueId value, NodeId id) {
  std::vector<NodeId>& list = users_[value];
  if (list.size() <= kMany) {
    places_.erase(value);
    std::erase(list, id);
    return;
  }
  std::unordered_map<NodeId, size_t>& places = places_[value];
  for (size_t i = places.size(); i < list.size(); ++i) places.emplace(list[i], i);
  const auto found = places.find(id);
  if (found == places.end()) return;
  list[found->second] = list.back();
  places[list.back()] = found->second;
  places.erase(id);
  list.pop_back();
}

void Editor::touch(NodeId id) {
  if (id == kNoId) return;
  if (is_touched_.size() <= id) {
    is_touched_.resize(std::max<size_t>(id + 1, graph_->node_capacity()));
    stale_.resize(is_touched_.size());
  }
  stale_[id] = true;
  if (is_touched_[id]) return;
  is_touched_[id] = true;
  touched_.push_back(id);
}

void Editor::touch_around(ValueId value) {
  touch(graph_->at(value).producer);
  // A pass that has changed something runs again, on all nodes.
  if (users_[value].size() > kMany) return;
  for (NodeId id : users_[value]) touch_user(id);
}

void Editor::touch_user(NodeId id) {
  touch(id);
  // The nodes behind this one may match now that it has changed.
  if (const Node* user = graph_->node(id))
    for (ValueId out : user->outputs)
      if (out != kNoId && users_[out].size() <= kMany)
        for (NodeId next : users_[out]) touch(next);
}

void Editor::touch_left(ValueId value) {
  // When a constant with many users loses one, only its last user may match something new.
  if (graph_->constant(value) && users_[value].size() > 1) return;
  touch_around(value);
}

std::vector<NodeId> Editor::take_touched() {
  for (NodeId id : touched_) is_touched_[id] = false;
  return std::exchange(touched_, {});
}

const std::vector<NodeId>& Editor::users(ValueId value) const {
  static const std::vector<NodeId> none;
  return value < users_.size() ? users_[value] : none;
}

bool Editor::is_output(ValueId value) const { return value < output_.size() && output_[value]; }
bool Editor::is_input(ValueId value) const { return value < input_.size() && input_[value]; }

Node* Editor::producer(ValueId value) {
  return value == kNoId ? nullptr : graph_->node(graph_->at(value).producer);
}

Node* Editor::maker(ValueId value, std::string_view op) {
  Node* made = producer(value);
  return made && made->op == op && made->domain.empty() && made->outputs[0] == value ? made
                                                                                     : nullptr;
}

Node* Editor::only_user(ValueId value) {
  if (value == kNoId || is_output(value) || users(value).size() != 1) return nullptr;
  return graph_->node(users(value)[0]);
}

bool Editor::only_used_by(ValueId value, const Node& user) const {
  return !is_output(value) && users(value).size() == 1 && users(value)[0] == user.id;
}

const Type& Editor::type(ValueId value) const {
  static const Type unset;
  if (value == kNoId) return unset;
  return graph_->at(value).constant || value >= state_.types.size() ||
                 state_.types[value].kind == PFRT_VALUE_UNSET
             ? graph_->at(value).type
             : state_.types[value];
}

std::optional<size_t> Editor::rank(ValueId value) const {
  const Type& t = type(value);
  return t.is_tensor() && t.has_shape ? std::optional(t.shape.size()) : std::nullopt;
}

const std::optional<Shape>& Editor::contents(ValueId value) const {
  static const std::optional<Shape> unknown;
  return value != kNoId && value < state_.data.size() ? state_.data[value] : unknown;
}

std::optional<std::vector<int64_t>> Editor::numbers(ValueId value) const {
  if (value == kNoId) return std::nullopt;
  if (const Tensor* constant = graph_->constant(value)) {
    if (constant->dtype != PFRT_DTYPE_INT64 && constant->dtype != PFRT_DTYPE_INT32)
      return std::nullopt;
    return to_int64s(*constant);
  }
  const std::optional<Shape>& elements = contents(value);
  if (!elements) return std::nullopt;
  std::vector<int64_t> out;
  for (const Dim& d : *elements) {
    if (!d.known()) return std::nullopt;
    out.push_back(d.value());
  }
  return out;
}

bool Editor::same_type(ValueId a, ValueId b) const {
  const Type &s = type(a), &t = type(b);
  return s.is_tensor() && t.is_tensor() && s.dtype == t.dtype && s.dtype && s.has_shape &&
         t.has_shape && s.shape == t.shape;
}

bool Editor::keeps_type(const Node& elementwise, ValueId value) const {
  if (same_type(value, elementwise.outputs[0])) return true;
  const Type &to = type(value), &out = type(elementwise.outputs[0]);
  if (!to.is_tensor() || !to.has_shape || !to.dtype || !out.is_tensor() || out.dtype != to.dtype)
    return false;
  return std::ranges::all_of(elementwise.inputs, [&](ValueId in) {
    if (in == kNoId || in == value) return true;
    const Type& other = type(in);
    if (!other.is_tensor() || !other.has_shape || other.shape.size() > to.shape.size())
      return false;
    return std::equal(other.shape.rbegin(), other.shape.rend(), to.shape.rbegin(),
                      [](const Dim& from, const Dim& d) { return from.is(1) || from == d; });
  });
}

ValueId Editor::add_constant(std::string_view stem, Tensor tensor) {
  ++edits_;
  const ValueId id = graph_->add_constant(stem, std::move(tensor));
  grow();
  state_.types[id] = graph_->at(id).type;
  state_.data[id] = contents_of(graph_->constant(id));
  return id;
}

Result<ValueId> Editor::int64s(std::string_view stem, const std::vector<int64_t>& values) {
  PFRT_ASSIGN(Tensor tensor, Tensor::of_int64(values));
  return add_constant(stem, std::move(tensor));
}

Result<ValueId> Editor::add(std::string_view op, std::string_view stem, std::vector<ValueId> inputs,
                            std::vector<Attribute> attrs, std::string_view domain) {
  Node made;
  made.op = op;
  made.domain = domain;
  made.inputs = std::move(inputs);
  made.attrs = std::move(attrs);
  PFRT_ASSIGN(const std::vector<ValueId> outputs, add_node(std::move(made), stem));
  return outputs[0];
}

Result<std::vector<ValueId>> Editor::add_node(Node made, std::string_view stem, size_t outputs) {
  ++edits_;
  made.name = stem;
  made.canonical = true;
  made.outputs.clear();
  for (size_t i = 0; i < outputs; ++i)
    made.outputs.push_back(graph_->fresh(message(stem, stem.empty() ? "" : "/", made.op)));
  std::vector<ValueId> values = made.outputs;
  PFRT_ASSIGN(const NodeId id, graph_->add_node(std::move(made)));
  Node& node = *graph_->node(id);
  grow();
  for (ValueId value : graph_->used_by(node)) use(value, id);
  ++added_;
  touch(id);
  if (Status status = infer(node); !status.ok()) {
    remove_unused(id);
    return status;
  }
  return values;
}

bool Editor::is_there(ValueId value) const {
  return graph_->at(value).producer != kNoId || graph_->at(value).constant || is_input(value) ||
         std::ranges::any_of(graph_->captures, [&](const Capture& c) { return c.inner == value; });
}

bool Editor::can_replace(ValueId from, ValueId to) const {
  if (from == to || from == kNoId || to == kNoId || !is_there(to)) return false;
  if (!is_output(from)) return true;
  return !is_output(to) && !is_input(to) && !graph_->at(to).constant &&
         graph_->at(to).producer != kNoId;
}

void Editor::replace(ValueId from, ValueId to) {
  assert(is_there(to));
  ++edits_;
  grow();
  const NodeId made_by = graph_->at(from).producer;
  const std::vector<NodeId> moved = std::exchange(users_[from], {});
  places_.erase(from);
  for (NodeId id : moved) {
    Node& user = *graph_->node(id);
    replace_all(user.inputs, from, to);
    (void)for_each_body(user, [&](Graph& body) -> Status {
      for (Capture& c : body.captures)
        if (c.outer == from) c.outer = to;
      return {};
    });
    use(to, id);
  }
  if (!graph_->at(to).constant && graph_->at(to).producer != kNoId) {
    state_.types[to] = merged(state_.types[to], type(from));
    graph_->at(to).type = state_.types[to];
  }
  if (is_output(from)) {
    replace_output(from, to);
    output_[from] = false;
    output_[to] = true;
    const std::string kept = graph_->at(from).name, other = graph_->at(to).name;
    graph_->rename({{from, other}, {to, kept}});
  }
  touch_around(to);
  if (users_[to].size() > kMany)
    for (NodeId id : moved) touch_user(id);
  if (made_by != kNoId) remove_unused(made_by);
}

void Editor::replace_output(ValueId from, ValueId to) {
  if (graph_->outputs.size() <= kMany) {
    std::ranges::replace(graph_->outputs, from, to);
    return;
  }
  auto places = output_places_.extract(from);
  if (places.empty()) return;
  for (size_t i : places.mapped()) graph_->outputs[i] = to;
  places.key() = to;
  auto other = output_places_.insert(std::move(places));
  if (!other.inserted)
    other.position->second.insert(other.position->second.end(), other.node.mapped().begin(),
                                  other.node.mapped().end());
}

void Editor::replace_with_constant(ValueId value, ValuePtr constant) {
  ++edits_;
  const NodeId made_by = graph_->at(value).producer;
  Node* node = graph_->node(made_by);
  std::ranges::replace(node->outputs, value, kNoId);
  graph_->at(value).producer = kNoId;
  graph_->set_constant(value, std::move(constant));
  state_.types[value] = graph_->at(value).type;
  state_.data[value] = contents_of(graph_->constant(value));
  touch_around(value);
  remove_unused(made_by);
}

void Editor::set_input(Node& node, size_t i, ValueId value) {
  ++edits_;
  const ValueId before = i < node.inputs.size() ? node.inputs[i] : kNoId;
  if (i >= node.inputs.size()) node.inputs.resize(i + 1, kNoId);
  node.inputs[i] = value;
  while (!node.inputs.empty() && node.inputs.back() == kNoId) node.inputs.pop_back();
  if (value != kNoId) use(value, node.id);
  if (before != kNoId) {
    const std::vector<ValueId> still = graph_->used_by(node);
    if (std::ranges::find(still, before) == still.end()) {
      disuse(before, node.id);
      touch_left(before);
      if (const NodeId maker = graph_->at(before).producer; maker != kNoId) remove_unused(maker);
    }
  }
  touch(node.id);
}

Status Editor::changed(Node& node) {
  ++edits_;
  touch(node.id);
  for (ValueId out : node.outputs)
    if (out != kNoId) touch_around(out);
  return infer(node);
}

void Editor::forget_uses(Node& node, const std::vector<ValueId>& before) {
  ++edits_;
  const std::vector<ValueId> now = graph_->used_by(node);
  for (ValueId value : before) {
    if (std::ranges::find(now, value) != now.end()) continue;
    disuse(value, node.id);
    touch_left(value);
    if (const NodeId maker = graph_->at(value).producer; maker != kNoId) remove_unused(maker);
  }
  touch(node.id);
}

bool Editor::unused(const Node& node) const {
  return std::ranges::all_of(node.outputs, [&](ValueId out) {
    return out == kNoId || (!is_output(out) && users(out).empty());
  });
}

void Editor::remove_unused(NodeId id) {
  std::vector<NodeId> dead{id};
  while (!dead.empty()) {
    const Node* node = graph_->node(dead.back());
    dead.pop_back();
    if (!node || !unused(*node)) continue;
    const std::vector<ValueId> used = graph_->used_by(*node);
    const NodeId gone = node->id;
    graph_->remove_node(gone);
    ++edits_;
    ++removed_;
    for (ValueId value : used) {
      disuse(value, gone);
      const NodeId maker = graph_->at(value).producer;
      if (maker != kNoId && users_[value].empty()) dead.push_back(maker);
      touch_left(value);
    }
  }
}

void Editor::drop_constant(ValueId value) {
  ++edits_;
  graph_->at(value).constant = nullptr;
  if (value >= state_.types.size()) return;
  state_.types[value] = Type();
  state_.data[value].reset();
}

void Editor::drop_captures() {
  edits_ += std::erase_if(graph_->captures, [&](const Capture& c) {
    return users(c.inner).empty() && !is_output(c.inner);
  });
}

}  // namespace pfrt

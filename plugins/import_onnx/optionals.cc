// SPDX-License-Identifier: Apache-2.0
//
// Values that have to be of one type, as the input and output of an Identity, are joined into sets;
// a set of which one value is seen to hold a sequence has all its declared types changed.
#include "plugins/import_onnx/optionals.h"

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pfrt::onnx {
namespace {

namespace wire = ::pfrt_onnx_wire;

// The values of a graph by name. A name that a body does not define is one from around it.
class Scope {
 public:
  explicit Scope(const Scope* outer) : outer_(outer) {}
  void define(const std::string& name, size_t id) { ids_.emplace(name, id); }
  const size_t* find(const std::string& name) const {
    const auto found = ids_.find(name);
    if (found != ids_.end()) return &found->second;
    return outer_ ? outer_->find(name) : nullptr;
  }

 private:
  const Scope* outer_;
  std::unordered_map<std::string, size_t> ids_;
};

const wire::GraphProto* body_of(const wire::NodeProto& node, const char* name) {
  for (const auto& attribute : node.attribute())
    if (attribute.name() == name && attribute.has_g()) return &attribute.g();
  return nullptr;
}

class Optionals {
 public:
  void visit(wire::GraphProto* graph, const Scope* outer);
  void declare();

 private:
  struct Value {
    size_t joined_to;  // another of the same set, or itself
    bool is_sequence = false, holds_sequence = false;
    std::vector<wire::TypeProto*> declared;
  };

  size_t define(Scope* scope, const std::string& name);
  void describe(Scope* scope, wire::ValueInfoProto* info);
  void visit_node(wire::NodeProto* node, const Scope& scope);
  void look_at(const wire::NodeProto& node, const Scope& scope);
  // The first |from| names of one list with those of another.
  template <typename A, typename B>
  void join_names(const A& a, const Scope& a_scope, int a_from, const B& b, const Scope& b_scope,
                  int b_from);
  size_t set_of(size_t id);
  void join(size_t a, size_t b) { values_[set_of(a)].joined_to = set_of(b); }

  std::vector<Value> values_;
  std::unordered_map<const wire::GraphProto*, Scope> bodies_;
};

size_t Optionals::define(Scope* scope, const std::string& name) {
  const size_t id = values_.size();
  values_.push_back({id, false, false, {}});
  scope->define(name, id);
  return id;
}

void Optionals::describe(Scope* scope, wire::ValueInfoProto* info) {
  const size_t* const known = scope->find(info->name());
  Value& value = values_[known ? *known : define(scope, info->name())];
  if (!info->has_type()) return;
  value.is_sequence |= info->type().has_sequence_type();
  if (info->type().has_optional_type()) value.declared.push_back(info->mutable_type());
}

const std::string& name_of(const std::string& name) { return name; }
const std::string& name_of(const wire::ValueInfoProto& info) { return info.name(); }

template <typename A, typename B>
void Optionals::join_names(const A& a, const Scope& a_scope, int a_from, const B& b,
                           const Scope& b_scope, int b_from) {
  for (; a_from < a.size() && b_from < b.size(); ++a_from, ++b_from) {
    const size_t* const one = a_scope.find(name_of(a[a_from]));
    const size_t* const other = b_scope.find(name_of(b[b_from]));
    if (one && other) join(*one, *other);
  }
}

size_t Optionals::set_of(size_t id) {
  while (values_[id].joined_to != id) {
    values_[id].joined_to = values_[values_[id].joined_to].joined_to;
    id = values_[id].joined_to;
  }
  return id;
}

void Optionals::look_at(const wire::NodeProto& node, const Scope& scope) {
  const auto value = [&](const auto& names) {
    const size_t* const id = names.empty() ? nullptr : scope.find(names[0]);
    return id ? &values_[*id] : nullptr;
  };
  Value *const in = value(node.input()), *const out = value(node.output());
  if (node.op_type() == "Optional" && out) {
    out->holds_sequence |= in && in->is_sequence;
    for (const auto& attribute : node.attribute())
      out->holds_sequence |= attribute.has_tp() && attribute.tp().has_sequence_type();
  } else if (node.op_type() == "OptionalGetElement" && in && out) {
    in->holds_sequence |= out->is_sequence;
  } else if (node.op_type() == "Identity") {
    join_names(node.input(), scope, 0, node.output(), scope, 0);
  }
}

void Optionals::visit_node(wire::NodeProto* node, const Scope& scope) {
  for (auto& attribute : *node->mutable_attribute()) {
    if (attribute.has_g()) visit(attribute.mutable_g(), &scope);
    for (auto& body : *attribute.mutable_graphs()) visit(&body, &scope);
  }
  if (!node->domain().empty() && node->domain() != "ai.onnx") return;
  look_at(*node, scope);
  for (const char* const name : {"then_branch", "else_branch"})
    if (const wire::GraphProto* const body = body_of(*node, name))
      join_names(body->output(), bodies_.at(body), 0, node->output(), scope, 0);
  const wire::GraphProto* const body = node->op_type() == "Loop" ? body_of(*node, "body") : nullptr;
  if (!body) return;
  // A loop's inputs are how often and whether, then what it carries; its body makes whether first.
  const Scope& inner = bodies_.at(body);
  join_names(node->input(), scope, 2, body->input(), inner, 2);
  join_names(body->input(), inner, 2, body->output(), inner, 1);
  join_names(body->output(), inner, 1, node->output(), scope, 0);
}

void Optionals::visit(wire::GraphProto* graph, const Scope* outer) {
  Scope& scope = bodies_.emplace(graph, Scope(outer)).first->second;
  for (const auto& input : graph->input()) define(&scope, input.name());
  for (const auto& node : graph->node())
    for (const auto& output : node.output()) define(&scope, output);
  for (auto* const infos :
       {graph->mutable_input(), graph->mutable_output(), graph->mutable_value_info()})
    for (auto& info : *infos) describe(&scope, &info);
  for (auto& node : *graph->mutable_node()) visit_node(&node, scope);
}

void Optionals::declare() {
  for (size_t id = 0; id < values_.size(); ++id)
    if (values_[id].holds_sequence) values_[set_of(id)].holds_sequence = true;
  for (size_t id = 0; id < values_.size(); ++id) {
    if (!values_[set_of(id)].holds_sequence) continue;
    for (wire::TypeProto* const type : values_[id].declared) {
      wire::TypeProto* const held = type->mutable_optional_type()->mutable_elem_type();
      if (!held->has_tensor_type() && !held->has_map_type()) continue;
      wire::TypeProto element = std::move(*held);
      held->Clear();
      *held->mutable_sequence_type()->mutable_elem_type() = std::move(element);
    }
  }
}

}  // namespace

void declare_optional_sequences(wire::GraphProto* graph) {
  Optionals optionals;
  optionals.visit(graph, nullptr);
  optionals.declare();
}

}  // namespace pfrt::onnx

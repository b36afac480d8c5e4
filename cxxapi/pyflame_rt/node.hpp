// SPDX-License-Identifier: Apache-2.0
//
// A node of a graph: its operator, the names of its inputs and outputs, its attributes. The setters
// of a node in a graph change the graph too, and edits of the graph change the node. A copy belongs
// to no graph. Externally synchronised, with its graph.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <pyflame_rt/tensor.hpp>
#include <string>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace pyflame_rt {

class Graph;

// Value of an attribute.
using AttributeValue =
    std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                 std::vector<std::string>, Tensor, GraphHandle>;

namespace detail {

// An attribute as a C argument; borrows from |value|.
class AttrArg {
 public:
  AttrArg(const std::string& name, const AttributeValue& value) {
    c_.struct_size = sizeof(c_);
    c_.name = text(name);
    std::visit([this](const auto& v) { set(v); }, value);
  }
  const pfrt_attr& get() {
    c_.strings = strings_.empty() ? nullptr : strings_.data();
    return c_;
  }

 private:
  void set(int64_t v) { c_.type = PFRT_ATTR_INT, c_.i = v; }
  void set(float v) { c_.type = PFRT_ATTR_FLOAT, c_.f = v; }
  void set(const std::string& v) { c_.type = PFRT_ATTR_STRING, c_.s = text(v); }
  void set(const std::vector<int64_t>& v) {
    c_.type = PFRT_ATTR_INTS, c_.ints = v.data(), c_.count = v.size();
  }
  void set(const std::vector<float>& v) {
    c_.type = PFRT_ATTR_FLOATS, c_.floats = v.data(), c_.count = v.size();
  }
  void set(const std::vector<std::string>& v) {
    c_.type = PFRT_ATTR_STRINGS, c_.count = v.size();
    for (const std::string& s : v) strings_.push_back(text(s));
  }
  void set(const Tensor& v) { c_.type = PFRT_ATTR_TENSOR, c_.tensor = v.handle(); }
  void set(const GraphHandle& v) { c_.type = PFRT_ATTR_GRAPH, c_.graph = v.get(); }

  pfrt_attr c_{};
  std::vector<pfrt_string> strings_;
};

// Converts numbers and strings of a pfrt_attr or a pfrt_snapshot_attr; nullopt for other kinds.
template <class Attr>
std::optional<AttributeValue> plain_attr(const Attr& c) {
  switch (c.type) {
    case PFRT_ATTR_INT:
      return c.i;
    case PFRT_ATTR_FLOAT:
      return c.f;
    case PFRT_ATTR_STRING:
      return str(c.s);
    case PFRT_ATTR_INTS:
      return std::vector<int64_t>(c.ints, c.ints + c.count);
    case PFRT_ATTR_FLOATS:
      return std::vector<float>(c.floats, c.floats + c.count);
    case PFRT_ATTR_STRINGS: {
      std::vector<std::string> strings;
      strings.reserve(c.count);
      for (uint64_t i = 0; i < c.count; ++i) strings.push_back(str(c.strings[i]));
      return strings;
    }
    default:
      return std::nullopt;
  }
}

// Returns nullopt for kinds without a C++ form; they stay in the graph untouched.
inline std::optional<AttributeValue> attr_from_c(const pfrt_attr& c) {
  if (c.type == PFRT_ATTR_TENSOR) return Tensor::from_handle(Handle<pfrt_value>::share(c.tensor));
  if (c.type == PFRT_ATTR_GRAPH) return GraphHandle::share(c.graph);
  return plain_attr(c);
}

// Names of a graph's nodes. Files may hold a name twice.
using NodeNames = std::unordered_multiset<std::string>;

// The graph that a node is in; a copy of the node is in none.
struct Attachment {
  Attachment() = default;
  Attachment(const Attachment&) noexcept {}
  Attachment& operator=(const Attachment&) = delete;
  ~Attachment() = default;
  GraphHandle graph;
  uint32_t id = 0;
  std::shared_ptr<NodeNames> names;
};

}  // namespace detail

// A node, alone or in a graph.
class Node {
 public:
  // An empty input name is an optional input that is absent.
  Node(std::string name, std::string op_type, std::vector<std::string> inputs,
       std::vector<std::string> outputs, std::string domain = {})
      : name_(std::move(name)),
        op_type_(std::move(op_type)),
        domain_(std::move(domain)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {}

  // Stable while the node is in its graph and never given again; PFRT_NO_NODE outside of one.
  uint32_t id() const noexcept { return attached_.graph ? attached_.id : PFRT_NO_NODE; }
  // Name of the node; may be empty.
  const std::string& name() const noexcept { return name_; }
  // Operator name, "Gemm".
  const std::string& op_type() const noexcept { return op_type_; }
  // Domain of the operator; "" is ONNX's own.
  const std::string& domain() const noexcept { return domain_; }
  // Names of values; empty = an optional input that is absent.
  const std::vector<std::string>& inputs() const noexcept { return inputs_; }
  // Names of values; empty = an output that nobody wants.
  const std::vector<std::string>& outputs() const noexcept { return outputs_; }

  // |name| may be empty.
  void set_name(const std::string& name) {
    if (attached_.graph) {
      detail::check(api().graph->rename_node(graph(), attached_.id, detail::text(name)));
      forget_name();
      attached_.names->insert(name);
    }
    name_ = name;
  }
  // Replaces the names of all inputs.
  void set_inputs(std::vector<std::string> names) {
    if (attached_.graph) put_names(api().graph->set_node_inputs, names);
    inputs_ = std::move(names);
  }
  // Replaces the names of all outputs. Throws ValidationError for an output that something else
  // makes.
  void set_outputs(std::vector<std::string> names) {
    if (attached_.graph) put_names(api().graph->set_node_outputs, names);
    outputs_ = std::move(names);
  }

  // Sets an attribute, replacing one of the same name, of any type.
  void set_attr(const std::string& name, float value) { put(name, value); }
  void set_attr(const std::string& name, double value) { put(name, static_cast<float>(value)); }
  void set_attr(const std::string& name, int64_t value) { put(name, value); }
  void set_attr(const std::string& name, int value) { put(name, static_cast<int64_t>(value)); }
  void set_attr(const std::string& name, const char* value) { put(name, std::string(value)); }
  void set_attr(const std::string& name, std::string value) { put(name, std::move(value)); }
  void set_attr(const std::string& name, std::vector<int64_t> value) {
    put(name, std::move(value));
  }
  void set_attr(const std::string& name, std::vector<float> value) { put(name, std::move(value)); }
  void set_attr(const std::string& name, std::vector<std::string> value) {
    put(name, std::move(value));
  }
  void set_attr(const std::string& name, Tensor value) { put(name, std::move(value)); }
  // Sets a body made by Graph::create_subgraph, given as its shared().
  void set_attr(const std::string& name, GraphHandle value) { put(name, std::move(value)); }

  // Returns nullopt when there is no such attribute, or it is of another type.
  template <class T>
  std::optional<T> get_attr(const std::string& name) const {
    const auto found = attributes_.find(name);
    if (found == attributes_.end()) return std::nullopt;
    const T* value = std::get_if<T>(&found->second);
    return value == nullptr ? std::nullopt : std::optional<T>(*value);
  }
  // Returns |default_value| when there is no such attribute, or it is of another type.
  template <class T>
  T get_attr(const std::string& name, T default_value) const {
    std::optional<T> value = get_attr<T>(name);
    return value ? std::move(*value) : std::move(default_value);
  }
  // Throws PyFlameRTError (not found) when there is no such attribute.
  void remove_attr(const std::string& name) {
    if (attached_.graph) {
      detail::check(api().graph->remove_attr(graph(), attached_.id, detail::text(name)));
      attributes_.erase(name);
    } else if (attributes_.erase(name) == 0) {
      throw PyFlameRTError("node '" + name_ + "' has no attribute '" + name + "'",
                           PFRT_CODE_NOT_FOUND);
    }
  }
  // Whether there is an attribute of that name, of any type.
  bool has_attr(const std::string& name) const { return attributes_.count(name) != 0; }
  // Attributes by name; those of kinds without a C++ form are left out.
  const std::map<std::string, AttributeValue>& attributes() const noexcept { return attributes_; }

 private:
  friend class Graph;

  pfrt_graph* graph() const noexcept { return attached_.graph.get(); }
  void forget_name() {
    const auto at = attached_.names->find(name_);
    if (at != attached_.names->end()) attached_.names->erase(at);
  }
  template <class Fn>
  void put_names(Fn set, const std::vector<std::string>& names) {
    std::vector<pfrt_string> texts;
    texts.reserve(names.size());
    for (const std::string& name : names) texts.push_back(detail::text(name));
    detail::check(set(graph(), attached_.id, texts.data(), texts.size()));
  }
  void put(const std::string& name, AttributeValue value) {
    if (attached_.graph) {
      detail::AttrArg arg(name, value);
      detail::check(api().graph->set_attr(attached_.graph.get(), attached_.id, &arg.get()));
    }
    attributes_.insert_or_assign(name, std::move(value));
  }

  std::string name_, op_type_, domain_;
  std::vector<std::string> inputs_, outputs_;
  std::map<std::string, AttributeValue> attributes_;
  detail::Attachment attached_;
};

}  // namespace pyflame_rt

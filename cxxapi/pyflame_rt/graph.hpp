// SPDX-License-Identifier: Apache-2.0
//
// A graph that can be built, read and edited. Move-only; clone() copies. A graph stays usable after
// a session was made from it. Externally synchronised, together with its nodes.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <pyflame_rt/env.hpp>
#include <pyflame_rt/node.hpp>
#include <pyflame_rt/value.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyflame_rt {

// A graph, its nodes and constants.
class Graph {
 public:
  // Makes an empty graph.
  explicit Graph(const std::string& name = {}) {
    detail::check(api().graph->create(detail::text(name), graph_.out()));
  }
  // Shares a graph of the C API, or the body of a control-flow node (Node::get_attr<GraphHandle>).
  explicit Graph(GraphHandle graph) : graph_(std::move(graph)), nodes_read_(false) {}
  Graph(Graph&&) noexcept = default;
  Graph& operator=(Graph&&) noexcept = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Returns the graph itself, so that the result of load_model may be used as if it were a pointer.
  Graph& operator*() noexcept { return *this; }
  // Returns the graph itself, as above.
  const Graph& operator*() const noexcept { return *this; }
  // Returns the graph itself, as above.
  Graph* operator->() noexcept { return this; }
  // Returns the graph itself, as above.
  const Graph* operator->() const noexcept { return this; }

  // Returns a graph of its own with the same node ids; constants are shared.
  Graph clone() const;
  // Returns the part that computes |outputs| from |inputs|, which may be any values, as a graph
  // that runs alone; constants are shared. Further inputs of this graph that the part needs follow
  // |inputs|. Throws PyFlameRTError (not found) for unknown names, and InvalidArgumentError for an
  // input that nothing in between reads.
  Graph extract(const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs) const;
  // Returns a body for a node of this graph; names that it does not define are this graph's.
  Graph create_subgraph(const std::string& name) {
    GraphHandle body;
    detail::check(api().graph->create_subgraph(handle(), detail::text(name), body.out()));
    return Graph(std::move(body));
  }

  // Name of the graph; may be empty.
  std::string name() const { return detail::str(api().graph->name(handle())); }
  // |name| may be empty.
  void set_name(const std::string& name) {
    detail::check(api().graph->set_name(handle(), detail::text(name)));
  }

  // Sets the opset of a domain; "" is ONNX's own. A domain without one has the newest opset that
  // the library knows.
  void set_opset(const std::string& domain, int64_t version) {
    detail::check(api().graph->set_opset(handle(), detail::text(domain), version));
  }
  void set_opset(int64_t version) { set_opset({}, version); }
  // Throws PyFlameRTError (not found) when the domain is not imported.
  void remove_opset(const std::string& domain) {
    detail::check(api().graph->remove_opset(handle(), detail::text(domain)));
  }
  // Versions by domain.
  std::map<std::string, int64_t> opsets() const;
  // Replaces an entry of the same key.
  void set_metadata(const std::string& key, const std::string& value) {
    detail::check(api().graph->set_metadata(handle(), detail::text(key), detail::text(value)));
  }
  // Throws PyFlameRTError (not found) when there is no such key.
  void remove_metadata(const std::string& key) {
    detail::check(api().graph->remove_metadata(handle(), detail::text(key)));
  }
  // All metadata entries.
  std::map<std::string, std::string> metadata() const;

  // Adds an input at the end. Throws ValidationError when a node or an initializer makes a value of
  // that name.
  void add_input(const TensorInfo& info) {
    detail::check(api().graph->add_input(handle(), detail::InfoArg(info).get()));
  }
  // Adds an output at the end; its value may be added later.
  void add_output(const TensorInfo& info) {
    detail::check(api().graph->add_output(handle(), detail::InfoArg(info).get()));
  }
  // Copies of the inputs, in order, those with initializers included.
  std::vector<TensorInfo> inputs() const;
  // Copies of the outputs, in order.
  std::vector<TensorInfo> outputs() const;
  // Replaces inputs()[index].
  void replace_input(size_t index, const TensorInfo& info) {
    detail::check(api().graph->replace_input(handle(), index, detail::InfoArg(info).get()));
  }
  // Removes inputs()[index]; nodes that take the value stay as they are.
  void remove_input(size_t index) { detail::check(api().graph->remove_input(handle(), index)); }
  // Replaces outputs()[index].
  void replace_output(size_t index, const TensorInfo& info) {
    detail::check(api().graph->replace_output(handle(), index, detail::InfoArg(info).get()));
  }
  // Removes outputs()[index]; the node that makes the value stays.
  void remove_output(size_t index) { detail::check(api().graph->remove_output(handle(), index)); }
  // Type and shape of any named value, as far as they are known.
  TensorInfo get_tensor_info(const std::string& value_name) const {
    pfrt_value_info c{};
    c.struct_size = sizeof(c);
    detail::check(api().graph->value_info(handle(), detail::text(value_name), &c));
    return detail::info_from_c(c);
  }
  // Declares type and shape of an inner value.
  void set_tensor_info(const TensorInfo& info) {
    detail::check(api().graph->set_value_info(handle(), detail::InfoArg(info).get()));
  }

  // Adds a constant, which shares the tensor's memory, or replaces one of the same name.
  void add_initializer(const std::string& name, const Tensor& tensor) {
    detail::check(
        api().graph->add_initializer_value(handle(), detail::text(name), tensor.handle()));
  }
  // Dense initializers; sparse ones are read through the C API.
  std::map<std::string, Tensor> initializers() const;
  // Throws PyFlameRTError (not found) when there is no initializer of that name.
  Tensor initializer(const std::string& name) const {
    pfrt_value* value = nullptr;
    detail::check(api().graph->initializer(handle(), detail::text(name), &value));
    return Tensor::from_handle(detail::Handle<pfrt_value>::share(value));
  }
  // Whether a constant has that name.
  bool has_initializer(const std::string& name) const {
    pfrt_value* value = nullptr;
    return found(api().graph->initializer(handle(), detail::text(name), &value));
  }
  // Returns null when there is no initializer of that name. The object lives until the initializer
  // is exchanged, written into or removed, or the graph is destroyed.
  const Tensor* get_initializer(const std::string& name) const;
  // Returns an initializer to be written into. Memory that models, sessions, other graphs or Tensor
  // objects share is copied first, so that they never see a change; this holds for earlier results
  // of this function too.
  Tensor initializer_for_write(const std::string& name) {
    borrowed_.erase(name);  // otherwise this reference alone would cause a copy
    pfrt_value* value = nullptr;
    detail::check(api().graph->initializer_for_write(handle(), detail::text(name), &value));
    return Tensor::from_handle(detail::Handle<pfrt_value>::share(value));
  }
  // Throws PyFlameRTError (not found) when there is no initializer of that name.
  void remove_initializer(const std::string& name) {
    detail::check(api().graph->remove_initializer(handle(), detail::text(name)));
    borrowed_.erase(name);
  }

  // Adds a node at the end. Its names may refer to values that are added later; validate() says
  // what is missing. Throws InputError when another node has its name, unless that is empty. (A
  // file may hold a name twice.)
  void add_node(const std::shared_ptr<Node>& node);
  // Removes |node|, which may be added again; validate() names the nodes that still take its
  // outputs.
  void remove_node(const std::shared_ptr<Node>& node);
  // Removes |node|, one of nodes(); it is destroyed with its last other owner.
  void remove_node(const Node& node);
  // Returns the first node of that name; null when there is none.
  std::shared_ptr<Node> find_node(const std::string& name) const;
  // Returns the first node of that name, valid while it is in the graph; null when there is none.
  Node* get_node(const std::string& name) const { return find_node(name).get(); }
  // Number of nodes in the graph itself, without those in bodies.
  size_t num_nodes() const { return api().graph->node_count(handle()); }
  // Returns the node of that id; null when there is none, or it was removed.
  std::shared_ptr<Node> node(uint32_t id) const;
  // Returns the node added after |node|, which may have been removed since; the first for null;
  // null at the end. A walk by it may edit: nodes removed ahead are skipped, nodes added come at
  // the end.
  std::shared_ptr<Node> next_node(const std::shared_ptr<Node>& node) const;
  // Returns the node that makes a value; null for inputs, initializers and values that a body
  // captures.
  std::shared_ptr<Node> producer(const std::string& value) const;
  // Returns the nodes that take a value, or whose bodies capture it.
  std::vector<std::shared_ptr<Node>> consumers(const std::string& value) const;
  // Returns the name of the node that makes a value. It lives as long as the node is in the graph
  // and keeps its name. Null for an unknown value too.
  const std::string* get_producer(const std::string& value) const;
  // Returns the names of the nodes that take a value; none for an unknown value.
  std::vector<std::string> get_consumers(const std::string& value) const;
  // Makes all uses of |from|, but for those by |except|, uses of |to|. A graph output keeps its
  // name where nodes make both.
  void replace_uses(const std::string& from, const std::string& to,
                    const std::shared_ptr<Node>& except = nullptr);
  // Adds |node|, which takes |value|, and lets all other users of |value| take its first output.
  void insert_after(const std::string& value, const std::shared_ptr<Node>& node);
  // Renames a value everywhere, bodies included. Throws ValidationError when |to| is in use.
  void rename_value(const std::string& from, const std::string& to);
  // Nodes in the order they were added; a copy of the list, so that the graph may be edited while
  // it is walked.
  std::vector<std::shared_ptr<Node>> nodes() const {
    read_nodes();
    return nodes_;
  }
  // Nodes in an order with producers first. Throws ValidationError when the graph has a cycle.
  std::vector<std::shared_ptr<Node>> topological_sort();
  // Makes node objects be read anew. Call it after the graph was changed through its handle.
  void refresh() {
    nodes_.clear();
    names_ = std::make_shared<detail::NodeNames>();
    nodes_read_ = false;
  }

  // Returns a sentence for each fault; empty when the graph is well formed.
  std::vector<std::string> validate() { return faults(api().graph->validate(handle())); }
  // Returns the faults that validate() finds, and operators that the environment does not know,
  // arity, attribute types, and types and shapes that contradict each other.
  std::vector<std::string> validate_all() {
    return faults(api().graph->validate_all(handle(), Environment::instance().handle()));
  }
  // Fills in types and shapes of inner values as far as they follow from the inputs.
  void infer_shapes() { detail::check(api().graph->infer_shapes(handle())); }

  // Handle for calls of the C API; lives as long as the graph.
  pfrt_graph* handle() const {
    if (!graph_) throw InvalidArgumentError("the graph was moved from");
    return graph_.get();
  }
  // Shared handle for Node::set_attr, to make the graph a body.
  const GraphHandle& shared() const noexcept { return graph_; }

 private:
  static std::vector<std::string> faults(PFRT_OWN pfrt_status* status);
  static bool found(PFRT_OWN pfrt_status* status);  // false for NOT_FOUND
  bool has_value(const std::string& name) const {
    uint32_t id = PFRT_NO_NODE;
    return found(api().graph->producer(handle(), detail::text(name), &id));
  }
  friend class BackendRegistry;
  void append(const std::shared_ptr<Node>& node);  // allows any name
  void attach(Node& node, uint32_t id) const;
  void read_nodes() const;
  // Brings node objects up to date with the graph.
  void reread(const std::vector<std::shared_ptr<Node>>& nodes) const;
  // Nodes whose inputs or outputs include |value|.
  std::vector<std::shared_ptr<Node>> around(const std::string& value) const;
  std::shared_ptr<Node> read_node(const pfrt_node& c) const;

  GraphHandle graph_;
  mutable std::vector<std::shared_ptr<Node>> nodes_;  // in the order of their ids
  std::shared_ptr<detail::NodeNames> names_ = std::make_shared<detail::NodeNames>();  // of nodes_
  mutable std::map<std::string, Tensor> borrowed_;  // results of get_initializer
  mutable bool nodes_read_ = true;  // false until nodes made elsewhere were read from the handle
};

inline Graph Graph::clone() const {
  GraphHandle copy;
  detail::check(api().graph->clone(handle(), copy.out()));
  return Graph(std::move(copy));
}

inline Graph Graph::extract(const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs) const {
  std::vector<pfrt_string> from, to;
  for (const std::string& name : inputs) from.push_back(detail::text(name));
  for (const std::string& name : outputs) to.push_back(detail::text(name));
  GraphHandle part;
  detail::check(
      api().graph->extract(handle(), from.data(), from.size(), to.data(), to.size(), part.out()));
  return Graph(std::move(part));
}

inline std::map<std::string, int64_t> Graph::opsets() const {
  std::map<std::string, int64_t> out;
  for (size_t i = 0; i < api().graph->opset_count(handle()); ++i) {
    pfrt_string domain{};
    int64_t version = 0;
    detail::check(api().graph->opset_at(handle(), i, &domain, &version));
    out[detail::str(domain)] = version;
  }
  return out;
}

inline std::map<std::string, std::string> Graph::metadata() const {
  std::map<std::string, std::string> out;
  for (size_t i = 0; i < api().graph->metadata_count(handle()); ++i) {
    pfrt_key_value entry{};
    detail::check(api().graph->metadata_at(handle(), i, &entry));
    out[detail::str(entry.key)] = detail::str(entry.value);
  }
  return out;
}

inline std::vector<TensorInfo> Graph::inputs() const {
  std::vector<TensorInfo> out;
  for (size_t i = 0; i < api().graph->input_count(handle()); ++i) {
    out.push_back(detail::info_at(api().graph->input_at, handle(), i));
  }
  return out;
}

inline std::vector<TensorInfo> Graph::outputs() const {
  std::vector<TensorInfo> out;
  for (size_t i = 0; i < api().graph->output_count(handle()); ++i) {
    out.push_back(detail::info_at(api().graph->output_at, handle(), i));
  }
  return out;
}

inline std::map<std::string, Tensor> Graph::initializers() const {
  std::map<std::string, Tensor> out;
  for (size_t i = 0; i < api().graph->initializer_count(handle()); ++i) {
    pfrt_string name{};
    pfrt_value* value = nullptr;
    detail::check(api().graph->initializer_at(handle(), i, &name, &value));
    const Value shared = Value::from_handle(detail::Handle<pfrt_value>::share(value));
    if (shared.is_tensor()) out[detail::str(name)] = shared.tensor();
  }
  return out;
}

inline const Tensor* Graph::get_initializer(const std::string& name) const {
  pfrt_value* value = nullptr;
  if (!found(api().graph->initializer(handle(), detail::text(name), &value))) {
    borrowed_.erase(name);
    return nullptr;
  }
  Tensor& tensor = borrowed_[name];
  if (!tensor.is_valid() || tensor.handle() != value)
    tensor = Tensor::from_handle(detail::Handle<pfrt_value>::share(value));
  return &tensor;
}

inline void Graph::add_node(const std::shared_ptr<Node>& node) {
  (void)handle();  // a graph that was moved from has none
  if (node != nullptr && !node->name().empty()) {
    read_nodes();
    if (names_->count(node->name()) != 0)
      throw InvalidArgumentError("add_node: the graph has a node '" + node->name() +
                                 "' already; give this one another name, or none");
  }
  append(node);
}

inline void Graph::attach(Node& node, uint32_t id) const {
  node.attached_.graph = graph_;
  node.attached_.id = id;
  node.attached_.names = names_;
}

inline void Graph::append(const std::shared_ptr<Node>& node) {
  if (node == nullptr) throw InvalidArgumentError("add_node: the node is null");
  if (node->attached_.graph) {
    throw InvalidArgumentError("add_node: node '" + node->name() +
                               "' is in a graph already; add a copy");
  }
  read_nodes();
  const auto texts = [](const std::vector<std::string>& names) {
    std::vector<pfrt_string> out;
    out.reserve(names.size());
    for (const std::string& name : names) out.push_back(detail::text(name));
    return out;
  };
  const std::vector<pfrt_string> inputs = texts(node->inputs_);
  const std::vector<pfrt_string> outputs = texts(node->outputs_);
  std::vector<detail::AttrArg> args;
  args.reserve(node->attributes_.size());
  for (const auto& [key, value] : node->attributes_) args.emplace_back(key, value);
  std::vector<pfrt_attr> attrs;
  attrs.reserve(args.size());
  for (detail::AttrArg& arg : args) attrs.push_back(arg.get());

  pfrt_node c{};
  c.struct_size = sizeof(c);
  c.name = detail::text(node->name_);
  c.op = detail::text(node->op_type_);
  c.domain = detail::text(node->domain_);
  c.inputs = inputs.data();
  c.input_count = inputs.size();
  c.outputs = outputs.data();
  c.output_count = outputs.size();
  c.attrs = attrs.data();
  c.attr_count = attrs.size();
  uint32_t id = 0;
  detail::check(api().graph->add_node(handle(), &c, &id));
  attach(*node, id);
  names_->insert(node->name());
  nodes_.push_back(node);
}

inline void Graph::remove_node(const std::shared_ptr<Node>& node) {
  read_nodes();
  for (auto it = nodes_.begin(); it != nodes_.end(); ++it) {
    if (*it != node) continue;
    detail::check(api().graph->remove_node(handle(), node->attached_.id));
    node->forget_name();
    node->attached_.graph = GraphHandle();
    nodes_.erase(it);
    return;
  }
  throw NotFoundError("remove_node: the node is not in this graph");
}

inline void Graph::remove_node(const Node& node) { remove_node(this->node(node.id())); }

inline std::shared_ptr<Node> Graph::read_node(const pfrt_node& c) const {
  const auto names = [](const pfrt_string* strings, size_t count) {
    std::vector<std::string> out;
    for (size_t i = 0; i < count; ++i) out.push_back(detail::str(strings[i]));
    return out;
  };
  auto node =
      std::make_shared<Node>(detail::str(c.name), detail::str(c.op), names(c.inputs, c.input_count),
                             names(c.outputs, c.output_count), detail::str(c.domain));
  for (size_t i = 0; i < c.attr_count; ++i) {
    const auto& attr = *static_cast<const pfrt_attr*>(pfrt_at(c.attrs, c.attrs->struct_size, i));
    std::optional<AttributeValue> value = detail::attr_from_c(attr);
    if (value) node->attributes_.insert_or_assign(detail::str(attr.name), std::move(*value));
  }
  attach(*node, c.id);
  return node;
}

inline void Graph::read_nodes() const {
  if (nodes_read_) return;
  std::vector<std::shared_ptr<Node>> nodes;
  for (size_t i = 0; i < api().graph->node_count(handle()); ++i) {
    pfrt_node c{};
    c.struct_size = sizeof(c);
    detail::check(api().graph->node_at(handle(), i, &c));
    nodes.push_back(read_node(c));
  }
  for (const auto& node : nodes) names_->insert(node->name());
  nodes_ = std::move(nodes);
  nodes_read_ = true;
}

inline std::vector<std::shared_ptr<Node>> Graph::topological_sort() {
  read_nodes();
  std::unordered_map<uint32_t, std::shared_ptr<Node>> by_id;
  for (const auto& node : nodes_) by_id[node->attached_.id] = node;
  const uint32_t* ids = nullptr;
  size_t count = 0;
  detail::check(api().graph->topological_order(handle(), &ids, &count));
  std::vector<std::shared_ptr<Node>> out;
  for (size_t i = 0; i < count; ++i) out.push_back(by_id.at(ids[i]));
  return out;
}

inline std::shared_ptr<Node> Graph::node(uint32_t id) const {
  read_nodes();
  const auto at = std::lower_bound(
      nodes_.begin(), nodes_.end(), id,
      [](const std::shared_ptr<Node>& node, uint32_t wanted) { return node->id() < wanted; });
  return at != nodes_.end() && (*at)->id() == id ? *at : nullptr;
}

inline std::shared_ptr<Node> Graph::find_node(const std::string& name) const {
  read_nodes();
  for (const auto& node : nodes_) {
    if (node->name() == name) return node;
  }
  return nullptr;
}

inline std::shared_ptr<Node> Graph::next_node(const std::shared_ptr<Node>& node) const {
  return this->node(
      api().graph->next_node(handle(), node == nullptr ? PFRT_NO_NODE : node->attached_.id));
}

inline std::shared_ptr<Node> Graph::producer(const std::string& value) const {
  uint32_t id = PFRT_NO_NODE;
  detail::check(api().graph->producer(handle(), detail::text(value), &id));
  return node(id);
}

inline std::vector<std::shared_ptr<Node>> Graph::consumers(const std::string& value) const {
  const uint32_t* ids = nullptr;
  size_t count = 0;
  detail::check(api().graph->consumers(handle(), detail::text(value), &ids, &count));
  std::vector<std::shared_ptr<Node>> out;
  for (size_t i = 0; i < count; ++i) out.push_back(node(ids[i]));
  return out;
}

inline const std::string* Graph::get_producer(const std::string& value) const {
  const std::shared_ptr<Node> node = has_value(value) ? producer(value) : nullptr;
  return node == nullptr ? nullptr : &node->name();
}

inline std::vector<std::string> Graph::get_consumers(const std::string& value) const {
  std::vector<std::string> out;
  if (has_value(value))
    for (const auto& node : consumers(value)) out.push_back(node->name());
  return out;
}

inline std::vector<std::shared_ptr<Node>> Graph::around(const std::string& value) const {
  std::vector<std::shared_ptr<Node>> out = consumers(value);
  if (std::shared_ptr<Node> maker = producer(value)) out.push_back(std::move(maker));
  return out;
}

inline void Graph::reread(const std::vector<std::shared_ptr<Node>>& nodes) const {
  for (const auto& node : nodes) {
    pfrt_node c{};
    c.struct_size = sizeof(c);
    detail::check(api().graph->node_by_id(handle(), node->attached_.id, &c));
    const std::shared_ptr<Node> now = read_node(c);
    node->inputs_ = std::move(now->inputs_);
    node->outputs_ = std::move(now->outputs_);
  }
}

inline void Graph::replace_uses(const std::string& from, const std::string& to,
                                const std::shared_ptr<Node>& except) {
  if (except != nullptr && node(except->id()) != except) {
    throw NotFoundError("replace_uses: the excepted node is not in this graph");
  }
  std::vector<std::shared_ptr<Node>> touched = around(from);
  for (const auto& node : around(to)) touched.push_back(node);
  detail::check(api().graph->replace_uses(handle(), detail::text(from), detail::text(to),
                                          except == nullptr ? PFRT_NO_NODE : except->id()));
  reread(touched);
}

inline void Graph::insert_after(const std::string& value, const std::shared_ptr<Node>& node) {
  if (node == nullptr || node->outputs().empty()) {
    throw InvalidArgumentError("insert_after: there is no node, or it has no output");
  }
  (void)producer(value);  // not found before anything is added
  add_node(node);
  try {
    replace_uses(value, node->outputs().front(), node);
  } catch (...) {
    remove_node(node);
    throw;
  }
}

inline void Graph::rename_value(const std::string& from, const std::string& to) {
  const std::vector<std::shared_ptr<Node>> touched = around(from);
  detail::check(api().graph->rename_value(handle(), detail::text(from), detail::text(to)));
  reread(touched);
}

inline bool Graph::found(pfrt_status* status) {
  if (status == nullptr) return true;
  detail::Failure failure(status);
  if (failure.code == PFRT_CODE_NOT_FOUND) return false;
  detail::throw_error(failure.code, failure.message, std::move(failure.faults));
}

inline std::vector<std::string> Graph::faults(pfrt_status* status) {
  if (status == nullptr) return {};
  detail::Failure failure(status);
  if (failure.code != PFRT_CODE_VALIDATION) {
    detail::throw_error(failure.code, failure.message, std::move(failure.faults));
  }
  if (failure.faults.empty()) failure.faults.push_back(failure.message);
  return std::move(failure.faults);
}

}  // namespace pyflame_rt

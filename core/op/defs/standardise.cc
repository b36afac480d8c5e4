// SPDX-License-Identifier: Apache-2.0
#include "core/op/defs/standardise.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "core/op/defs/common/lowest_opset.h"
#include "core/op/engine/operator_set.h"
#include "core/op/engine/string_numbers.h"

namespace pfrt {
namespace {

using Visit = std::function<Status(Graph&)>;

Status for_each_body(const Graph& graph, const Visit& visit) {
  for (const NodeId id : graph.node_ids()) {
    for (const Attribute& attr : graph.node(id)->attrs) {
      if (attr.graph) PFRT_TRY(visit(*attr.graph));
      for (const auto& body : attr.graphs)
        if (body) PFRT_TRY(visit(*body));
    }
  }
  return {};
}

Status for_each_graph(Graph& graph, const Visit& visit) {
  PFRT_TRY(visit(graph));
  return for_each_body(graph, [&](Graph& body) { return for_each_graph(body, visit); });
}

bool is_capture(const Graph& body, ValueId value) {
  return std::any_of(body.captures.begin(), body.captures.end(),
                     [&](const Capture& c) { return c.inner == value; });
}

// Adds a canonical node with one output to |graph|.
Result<ValueId> put(Graph& graph, const char* op, std::vector<ValueId> inputs,
                    std::vector<Attribute> attrs, Type type) {
  Node node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  node.canonical = true;
  const ValueId out = graph.fresh(op);
  node.outputs = {out};
  graph.at(out).type = std::move(type);
  PFRT_ASSIGN([[maybe_unused]] const NodeId id, graph.add_node(std::move(node)));
  return out;
}

// Puts an Identity before outputs of a body that are values from around it: a body must make its
// outputs.
Status own_outputs(Graph& body) {
  for (ValueId& out : body.outputs) {
    if (!is_capture(body, out)) continue;
    PFRT_ASSIGN(out, put(body, "Identity", {out}, {}, body.at(out).type));
  }
  return {};
}

// Renames values of a body that have a name of those |around| it; |around| is restored at the end.
Status own_names(Graph& body, std::set<std::string>& around) {
  std::vector<std::pair<ValueId, std::string>> names;
  std::vector<std::string> own;
  for (ValueId value = 0; value < body.value_count(); ++value) {
    const std::string& name = body.at(value).name;
    if (name.empty() || is_capture(body, value)) continue;
    std::string unique = name;
    for (size_t n = 0; around.count(unique) || (n > 0 && body.find(unique) != kNoId); ++n)
      unique = message(name, "_", body.depth, "_", n);
    if (unique != name) names.emplace_back(value, unique);
    own.push_back(std::move(unique));
  }
  body.rename(names);
  std::erase_if(own, [&](const std::string& name) { return !around.insert(name).second; });
  PFRT_TRY(for_each_body(body, [&](Graph& inner) { return own_names(inner, around); }));
  for (const std::string& name : own) around.erase(name);
  return {};
}

// Gives nodes of one graph different names, since readers find them by name.
Status own_node_names(Graph& graph) {
  std::set<std::string> taken;
  for (const NodeId id : graph.node_ids()) taken.insert(graph.node(id)->name);
  std::set<std::string> seen;
  for (const NodeId id : graph.node_ids()) {
    Node& node = *graph.node(id);
    if (node.name.empty() || seen.insert(node.name).second) continue;
    const std::string stem = node.name;
    for (size_t n = 1; !taken.insert(node.name).second; ++n) node.name = message(stem, "_", n);
    seen.insert(node.name);
  }
  return {};
}

// A list of one element: dimension |axis| of |value|.
Result<ValueId> put_dim(Graph& graph, ValueId value, int64_t axis) {
  return put(graph, "Shape", {value},
             {Attribute::of_int("start", axis), Attribute::of_int("end", axis + 1)},
             Type::tensor(PFRT_DTYPE_INT64, {1}));
}

Result<ValueId> put_keys(Graph& graph, const Node& node, int64_t axis) {
  PFRT_ASSIGN(const ValueId now, put_dim(graph, node.inputs[1], axis));
  if (!node.has_input(4)) return now;
  PFRT_ASSIGN(const ValueId past, put_dim(graph, node.inputs[4], 2));
  return put(graph, "Add", {past, now}, {}, Type::tensor(PFRT_DTYPE_INT64, {1}));
}

// Broadcasts the mask of an Attention to [batch, heads, queries, keys] in the last two dimensions,
// which ONNX Runtime wants in full.
Status standard_attention(Graph& graph, NodeId id) {
  Node& attention = *graph.node(id);
  if (attention.op != "Attention" || !attention.domain.empty()) return {};
  // These attributes tell what becomes of NaN; the standard has none for that.
  attention.drop_attr("masking");
  attention.drop_attr("zero_nan_weights");
  if (!attention.has_input(3)) return {};
  const Node node = attention;
  const Type& query = graph.at(node.inputs[0]).type;
  const Type mask = graph.at(node.inputs[3]).type;
  if (!query.has_shape || !mask.has_shape) return {};
  const size_t rank = mask.shape.size();
  const size_t axis = query.shape.size() == 3 ? 1 : 2;
  const bool keys = rank > 0 && !mask.shape[rank - 1].is(1);
  if (rank > 1 && keys && mask.shape[rank - 2] == query.shape[axis]) return {};
  PFRT_ASSIGN(ValueId rows, put_dim(graph, node.inputs[0], static_cast<int64_t>(axis)));
  ValueId columns = kNoId;
  if (keys || node.has_input(6)) {
    PFRT_ASSIGN(Tensor one, Tensor::of_int64({1}));
    columns = graph.add_constant("one", std::move(one));
  } else {
    PFRT_ASSIGN(columns, put_keys(graph, node, static_cast<int64_t>(axis)));
  }
  PFRT_ASSIGN(const ValueId shape,
              put(graph, "Concat", {rows, columns}, {Attribute::of_int("axis", 0)},
                  Type::tensor(PFRT_DTYPE_INT64, {2})));
  PFRT_ASSIGN(const ValueId wide,
              put(graph, "Expand", {node.inputs[3], shape}, {}, Type::tensor(mask.dtype)));
  graph.node(id)->inputs[3] = wide;
  return {};
}

Status standard_attentions(Graph& graph) {
  for (const NodeId id : graph.node_ids()) PFRT_TRY(standard_attention(graph, id));
  return {};
}

// An operator that is not built in may be another one at the opset that its domain gets.
Status check_same(const Graph& graph, const Node& node,
                  const std::map<std::string, int64_t>& opsets) {
  const int64_t opset = opsets.at(node.domain);
  if (node.opset == 0 || find_operator(graph, node, opset) == find_canonical(graph, node))
    return {};
  return error(Code::kUNSUPPORTED, describe(graph, node), ": the model has it as of opset ",
               node.opset, ", but the other nodes need opset ", opset,
               ", where it is another operator; register it for that opset too");
}

}  // namespace

bool is_canonical(const Graph& graph) {
  return !any_node(graph, [](const Graph&, const Node& n) { return !n.canonical; });
}

Status check_sayable(const Graph& graph) {
  // The newest Scan has no batches, and so cannot express the first version.
  for (const NodeId id : graph.node_ids()) {
    const Node& node = *graph.node(id);
    if (node.op == "Scan" && node.domain.empty() && node.attr_int("batched", 0))
      return error(Code::kUNSUPPORTED, describe(graph, node),
                   ": the Scan of opset 8 works on batches, which no later opset has; save the "
                   "model as .pfm");
  }
  return for_each_body(graph, check_sayable);
}

Status standardise(Graph& graph) {
  PFRT_TRY(check_sayable(graph));
  PFRT_TRY(for_each_graph(graph, restore_strings));
  PFRT_TRY(for_each_graph(graph, standard_attentions));
  PFRT_TRY(for_each_graph(graph, own_outputs));
  std::set<std::string> around;
  PFRT_TRY(own_names(graph, around));
  PFRT_TRY(for_each_graph(graph, own_node_names));
  std::map<std::string, int64_t> opsets{{"", kLowestOpset}};
  PFRT_TRY(for_each_graph(graph, [&](Graph& g) -> Status {
    for (const NodeId id : g.node_ids()) {
      int64_t& opset = opsets[g.node(id)->domain];
      opset = std::max(opset, lowest_opset(g, *g.node(id)));
    }
    return {};
  }));
  return for_each_graph(graph, [&](Graph& g) -> Status {
    for (const NodeId id : g.node_ids()) PFRT_TRY(check_same(g, *g.node(id), opsets));
    g.opsets = opsets;
    for (const NodeId id : g.node_ids()) {
      Node& node = *g.node(id);
      drop_newer_attributes(node, opsets[node.domain]);
      node.canonical = false;
      node.opset = 0;
    }
    return {};
  });
}

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
#include "core/ir/verify.h"

#include <unordered_set>

namespace pfrt {
namespace {

class Verifier {
 public:
  void check(const Graph& graph, bool body) {
    std::unordered_set<ValueId> captured;
    for (const Capture& c : graph.captures) captured.insert(c.inner);
    const std::unordered_set<ValueId> given(graph.inputs.begin(), graph.inputs.end());
    const auto defined = [&](ValueId id) {
      const GraphValue& v = graph.at(id);
      return v.producer != kNoId || v.constant || given.count(id) || captured.count(id);
    };
    std::unordered_set<ValueId> seen;
    for (ValueId id : graph.inputs) {
      if (!seen.insert(id).second) fault("graph input '", graph.at(id).name, "' is listed twice");
      check_default(graph, id);
    }
    for (ValueId id = 0; id < graph.value_count(); ++id) check_dims(graph.at(id));
    for (NodeId nid : graph.node_ids()) {
      const Node& node = *graph.node(nid);
      if (node.op.empty()) fault(describe(graph, node), ": the node has no operator");
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId in = node.inputs[i];
        if (in != kNoId && !defined(in))
          fault(describe(graph, node), ": input ", i, " '", graph.at(in).name,
                "' is not a graph input, an initializer or the output of a node");
      }
      for (const Attribute& a : node.attrs) {
        if (a.graph) check_body(graph, node, *a.graph, defined);
        for (const auto& g : a.graphs) check_body(graph, node, *g, defined);
      }
    }
    for (ValueId id : graph.outputs)
      if (!defined(id)) fault("graph output '", graph.at(id).name, "' is not produced by any node");
    if (!body && graph.outputs.empty()) fault("graph '", graph.name, "' has no outputs");
    if (auto order = graph.topological_order(); !order.ok()) fault(order.status().message());
  }

  Status take(const Graph& graph) {
    if (faults_.empty()) return {};
    Status status =
        error(Code::kVALIDATION, "validating graph '", graph.name, "': ", faults_.size(),
              faults_.size() == 1 ? " fault: " : " faults, the first: ", faults_.front());
    for (std::string& text : faults_) status.add_child(Status(Code::kVALIDATION, std::move(text)));
    return status;
  }

 private:
  template <typename... Parts>
  void fault(const Parts&... parts) {
    faults_.push_back(message(parts...));
  }

  template <typename Defined>
  void check_body(const Graph& graph, const Node& node, const Graph& body, const Defined& defined) {
    for (const Capture& c : body.captures)
      if (!defined(c.outer))
        fault(describe(graph, node), ": body '", body.name, "' uses '", graph.at(c.outer).name,
              "', which neither it nor any graph around it defines");
    check(body, true);
  }

  void check_dims(const GraphValue& v) {
    for (const Type* const type : {&v.type, &v.declared})
      for (const Dim& d : type->shape)
        if (d.known() && d.value() > kLargestDim)
          fault("value '", v.name, "' is declared with a dimension of ", d.value(),
                "; none can be longer than ", kLargestDim);
  }

  void check_default(const Graph& graph, ValueId id) {
    const GraphValue& v = graph.at(id);
    if (!v.constant || v.declared.kind == PFRT_VALUE_UNSET || !v.declared.dtype) return;
    if (v.type.dtype != v.declared.dtype)
      fault("graph input '", v.name, "' is ", dtype_name(v.declared.dtype),
            " but its initializer is ", dtype_name(v.type.dtype));
  }

  std::vector<std::string> faults_;
};

void print_attr(std::string& out, const Attribute& a) {
  const auto list = [&](const auto& items) {
    out += "[";
    for (size_t i = 0; i < items.size() && i < 16; ++i) out += message(i ? "," : "", items[i]);
    out += items.size() > 16 ? ",...]" : "]";
  };
  out += a.name + "=";
  switch (a.type) {
    case PFRT_ATTR_INT:
      out += message(a.i);
      break;
    case PFRT_ATTR_FLOAT:
      out += message(static_cast<double>(a.f));
      break;
    case PFRT_ATTR_STRING:
      out += "\"" + a.s + "\"";
      break;
    case PFRT_ATTR_INTS:
      list(a.ints);
      break;
    case PFRT_ATTR_FLOATS:
      list(std::vector<double>(a.floats.begin(), a.floats.end()));
      break;
    case PFRT_ATTR_STRINGS:
      list(a.strings);
      break;
    case PFRT_ATTR_GRAPH:
      out += a.graph ? "graph '" + a.graph->name + "'" : "graph";
      break;
    case PFRT_ATTR_TENSOR:
      out += a.tensor ? message(dtype_name(a.tensor->tensor.dtype), " tensor") : "tensor";
      break;
    default:
      out += "...";
      break;
  }
}

void print_graph(std::string& out, const Graph& graph, const std::string& indent) {
  const auto name = [&](ValueId id) {
    return id == kNoId ? std::string("-") : "%" + graph.at(id).name;
  };
  const auto typed = [&](ValueId id) {
    return id == kNoId ? std::string("-")
                       : name(id) + ": " + type_text(graph.at(id).type, *graph.symbols);
  };
  out += indent + "graph '" + graph.name + "'\n";
  for (ValueId id : graph.inputs) out += indent + "  input " + typed(id) + "\n";
  for (ValueId id : graph.initializers()) out += indent + "  constant " + typed(id) + "\n";
  for (const Capture& c : graph.captures) out += indent + "  capture " + typed(c.inner) + "\n";
  for (NodeId nid : graph.node_ids()) {
    const Node& node = *graph.node(nid);
    out += indent + "  ";
    for (size_t i = 0; i < node.outputs.size(); ++i)
      out += (i ? ", " : "") + typed(node.outputs[i]);
    out += " = " + (node.domain.empty() ? node.op : node.domain + "." + node.op) + "(";
    for (size_t i = 0; i < node.inputs.size(); ++i) out += (i ? ", " : "") + name(node.inputs[i]);
    out += ")";
    for (size_t i = 0; i < node.attrs.size(); ++i) {
      out += i ? ", " : " {";
      print_attr(out, node.attrs[i]);
    }
    if (!node.attrs.empty()) out += "}";
    if (!node.name.empty()) out += "  # " + node.name;
    out += "\n";
    for (const Attribute& a : node.attrs) {
      if (a.graph) print_graph(out, *a.graph, indent + "    ");
      for (const auto& g : a.graphs) print_graph(out, *g, indent + "    ");
    }
  }
  for (ValueId id : graph.outputs) out += indent + "  output " + typed(id) + "\n";
}

}  // namespace

Status verify(const Graph& graph) {
  Verifier verifier;
  verifier.check(graph, false);
  return verifier.take(graph);
}

std::string print(const Graph& graph) {
  std::string out;
  print_graph(out, graph, "");
  return out;
}

std::string type_text(const Type& type, const SymbolTable& symbols) {
  std::string tensor =
      std::string(dtype_name(type.dtype)) + (type.has_shape ? symbols.text(type.shape) : "[...]");
  std::string map = message("map(", dtype_name(type.key_dtype), ",", dtype_name(type.dtype), ")");
  const std::string& element = type.key_dtype == PFRT_DTYPE_UNSET ? tensor : map;
  switch (type.kind) {
    case PFRT_VALUE_TENSOR:
      return tensor;
    case PFRT_VALUE_SEQUENCE:
      return "sequence(" + element + ")";
    case PFRT_VALUE_OPTIONAL:
      return "optional(" + element + ")";
    case PFRT_VALUE_SPARSE:
      return "sparse(" + tensor + ")";
    case PFRT_VALUE_MAP:
      return map;
    default:
      return "?";
  }
}

}  // namespace pfrt

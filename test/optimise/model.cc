// SPDX-License-Identifier: Apache-2.0
#include "test/optimise/model.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "test/optimise/random.h"

namespace pfrt_optimise {
namespace {

using pyflame_rt::Graph;
using pyflame_rt::Node;
using pyflame_rt::TensorInfo;

template <class T>
Tensor from_doubles(const std::vector<int64_t>& dims, const std::vector<double>& values) {
  Tensor out(dims, pyflame_rt::DTypeOf<T>::value);
  std::transform(values.begin(), values.end(), out.data_ptr<T>(), [](double value) {
    if constexpr (std::is_same_v<T, pyflame_rt::quantization::Float16>) {
      return T::from_float(static_cast<float>(value));
    } else {
      return static_cast<T>(value);
    }
  });
  return out;
}

TensorInfo info(const ModelSpec& model, const std::string& name, bool with_dims) {
  const ValueType& type = model.types.at(name);
  TensorInfo out;
  out.name = name;
  out.dtype = type.type;
  for (const Dim& dim : type.dims) {
    const bool known = with_dims && dim.symbol == 0;
    out.shape.push_back(known ? std::optional<int64_t>(dim.n) : std::nullopt);
    out.dim_names.push_back(with_dims && dim.symbol != 0 ? "N" + std::to_string(dim.symbol) : "");
  }
  return out;
}

// Describes the value wrongly: by another rank, other sizes, or one symbol for all sizes.
TensorInfo wrong_info(const ModelSpec& model, const std::string& name, Random* random) {
  TensorInfo out = info(model, name, true);
  const auto at = [&] {
    return static_cast<size_t>(random->range(0, static_cast<int64_t>(out.shape.size()) - 1));
  };
  const int64_t kind = random->range(0, 5);
  if (kind == 0 || out.shape.empty()) {
    out.shape.insert(out.shape.begin(), random->range(1, 4));
    out.dim_names.insert(out.dim_names.begin(), "");
  } else if (kind == 1) {
    const size_t gone = at();
    out.shape.erase(out.shape.begin() + static_cast<std::ptrdiff_t>(gone));
    out.dim_names.erase(out.dim_names.begin() + static_cast<std::ptrdiff_t>(gone));
  } else if (kind == 2) {
    out.shape.assign(out.shape.size(), std::nullopt);
    out.dim_names.assign(out.shape.size(), random->chance(50) ? "N1" : "same");
  } else if (kind == 3) {
    std::reverse(out.shape.begin(), out.shape.end());
    std::reverse(out.dim_names.begin(), out.dim_names.end());
  } else {
    const size_t other = at();
    out.shape[other] = model.types.at(name).dims[other].n + random->range(-1, 3);
    if (*out.shape[other] < 0) out.shape[other] = 1;
    out.dim_names[other].clear();
  }
  return out;
}

void fill(const ModelSpec& model, const GraphSpec& spec, bool is_body, Random* liar, Graph* graph) {
  for (const std::string& name : spec.inputs) graph->add_input(info(model, name, !is_body));
  for (const auto& [name, tensor] : spec.initializers) graph->add_initializer(name, tensor);
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    const NodeSpec& n = spec.nodes[i];
    const std::string name = (n.outputs[0].empty() ? std::to_string(i) : n.outputs[0]) + "_" + n.op;
    const auto node = std::make_shared<Node>(name, n.op, n.inputs, n.outputs);
    for (const auto& [key, value] : n.attributes)
      std::visit([&, &k = key](const auto& v) { node->set_attr(k, v); }, value);
    for (const BodySpec& body : n.bodies) {
      Graph inner = graph->create_subgraph(n.outputs[0] + "_" + body.attribute);
      fill(model, body.graph, true, liar, &inner);
      node->set_attr(body.attribute, inner.shared());
    }
    graph->add_node(node);
    for (const std::string& output : n.outputs)
      if (liar != nullptr && !output.empty())
        graph->set_tensor_info(wrong_info(model, output, liar));
  }
  for (const std::string& name : spec.outputs)
    graph->add_output(liar != nullptr ? wrong_info(model, name, liar)
                                      : info(model, name, !is_body && model.outputs_have_dims));
}

void collect_uses(const GraphSpec& graph, std::set<std::string>* used) {
  for (const NodeSpec& node : graph.nodes) {
    used->insert(node.inputs.begin(), node.inputs.end());
    for (const BodySpec& body : node.bodies) collect_uses(body.graph, used);
  }
  used->insert(graph.outputs.begin(), graph.outputs.end());
}

std::string names_text(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names)
    out += (out.empty() ? "" : ", ") + (name.empty() ? "-" : name);
  return out;
}

std::string tensor_text(const Tensor& tensor) {
  std::ostringstream out;
  out << pyflame_rt::dtype_name(tensor.dtype()) << pyflame_rt::detail::shape_text(tensor.shape())
      << "{";
  const int64_t shown = std::min<int64_t>(tensor.num_elements(), 6);
  for (int64_t i = 0; i < shown; ++i) out << (i == 0 ? "" : ",") << element(tensor, i);
  out << (shown < tensor.num_elements() ? ",...}" : "}");
  return out.str();
}

struct AttributeText {
  std::string operator()(const std::string& v) const { return '"' + v + '"'; }
  std::string operator()(const Tensor& v) const { return tensor_text(v); }
  std::string operator()(const pyflame_rt::GraphHandle&) const { return "graph"; }
  template <class T>
  std::string operator()(const std::vector<T>& v) const {
    std::ostringstream out;
    out << '[';
    for (size_t i = 0; i < v.size(); ++i) out << (i == 0 ? "" : ",") << v[i];
    out << ']';
    return out.str();
  }
  template <class T>
  std::string operator()(T v) const {
    std::ostringstream out;
    out << v;
    return out.str();
  }
};

void print(const ModelSpec& model, const GraphSpec& graph, const std::string& indent,
           std::ostringstream* out) {
  for (const std::string& name : graph.inputs) {
    const ValueType& type = model.types.at(name);
    *out << indent << "input " << name << ": " << pyflame_rt::dtype_name(type.type) << '[';
    for (size_t i = 0; i < type.dims.size(); ++i) {
      *out << (i == 0 ? "" : ",") << type.dims[i].n;
      if (type.dims[i].symbol != 0) *out << "=N" << type.dims[i].symbol;
    }
    *out << "]\n";
  }
  for (const auto& [name, tensor] : graph.initializers)
    *out << indent << name << " = " << tensor_text(tensor) << '\n';
  for (const NodeSpec& node : graph.nodes) {
    *out << indent << names_text(node.outputs) << " = " << node.op << '(' << names_text(node.inputs)
         << ')';
    for (const auto& [key, value] : node.attributes)
      *out << ' ' << key << '=' << std::visit(AttributeText(), value);
    *out << '\n';
    for (const BodySpec& body : node.bodies) {
      *out << indent << "  " << body.attribute << ":\n";
      print(model, body.graph, indent + "    ", out);
    }
  }
  *out << indent << "output " << names_text(graph.outputs) << '\n';
}

}  // namespace

Tensor make_tensor(DType type, const std::vector<int64_t>& dims,
                   const std::vector<double>& values) {
  switch (type) {
    case DType::Float16:
      return from_doubles<pyflame_rt::quantization::Float16>(dims, values);
    case DType::Int64:
      return from_doubles<int64_t>(dims, values);
    case DType::Int32:
      return from_doubles<int32_t>(dims, values);
    case DType::Int8:
      return from_doubles<int8_t>(dims, values);
    case DType::UInt8:
      return from_doubles<uint8_t>(dims, values);
    case DType::Bool:
      return from_doubles<bool>(dims, values);
    default:
      return from_doubles<float>(dims, values);
  }
}

double element(const Tensor& tensor, int64_t index) {
  switch (tensor.dtype()) {
    case DType::Float32:
      return tensor.data_ptr<float>()[index];
    case DType::Float16:
      return tensor.data_ptr<pyflame_rt::quantization::Float16>()[index].to_float();
    case DType::Int64:
      return static_cast<double>(tensor.data_ptr<int64_t>()[index]);
    case DType::Int32:
      return tensor.data_ptr<int32_t>()[index];
    case DType::Int8:
      return tensor.data_ptr<int8_t>()[index];
    case DType::UInt8:
      return tensor.data_ptr<uint8_t>()[index];
    case DType::Bool:
      return tensor.data_ptr<bool>()[index] ? 1 : 0;
    default:
      throw std::logic_error(std::string("no elements of type ") +
                             pyflame_rt::dtype_name(tensor.dtype()));
  }
}

bool is_float(DType type) { return type == DType::Float32 || type == DType::Float16; }

std::vector<int64_t> sizes(const Dims& dims) {
  std::vector<int64_t> out;
  for (const Dim& dim : dims) out.push_back(dim.n);
  return out;
}

std::vector<std::string> uses(const NodeSpec& node) {
  std::set<std::string> used(node.inputs.begin(), node.inputs.end());
  for (const BodySpec& body : node.bodies) collect_uses(body.graph, &used);
  used.erase("");
  return {used.begin(), used.end()};
}

void remove_dead(ModelSpec* model) {
  GraphSpec& graph = model->graph;
  std::set<std::string> used(graph.outputs.begin(), graph.outputs.end());
  std::vector<NodeSpec> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (std::none_of(node->outputs.begin(), node->outputs.end(),
                     [&](const std::string& name) { return used.count(name) != 0; }))
      continue;
    for (const std::string& name : uses(*node)) used.insert(name);
    kept.push_back(*node);
  }
  graph.nodes.assign(kept.rbegin(), kept.rend());
  std::erase_if(graph.initializers, [&](const auto& entry) { return !used.count(entry.first); });
  std::erase_if(graph.inputs, [&](const std::string& name) { return !used.count(name); });
  for (Feed& feed : model->feeds)
    std::erase_if(feed, [&](const auto& entry) { return !used.count(entry.first); });
}

size_t node_count(const GraphSpec& graph) {
  size_t count = graph.nodes.size();
  for (const NodeSpec& node : graph.nodes)
    for (const BodySpec& body : node.bodies) count += node_count(body.graph);
  return count;
}

Graph build(const ModelSpec& model) {
  Graph graph("random");
  if (model.opset != 0) graph.set_opset(model.opset);
  Random liar(model.misdeclared);
  fill(model, model.graph, false, model.misdeclared != 0 ? &liar : nullptr, &graph);
  return graph;
}

std::string text_of(const ModelSpec& model) {
  std::ostringstream out;
  out << "opset " << model.opset << '\n';
  print(model, model.graph, "", &out);
  return out.str();
}

}  // namespace pfrt_optimise

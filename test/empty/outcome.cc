// SPDX-License-Identifier: Apache-2.0
#include "test/empty/outcome.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <unordered_map>

namespace pfrt_empty {
namespace {

using namespace pyflame_rt;
using Names = std::vector<std::string>;

std::string text_of(const Dims& dims) {
  std::string out = "[";
  for (const int64_t d : dims) out += (out.size() > 1 ? "," : "") + std::to_string(d);
  return out + "]";
}

Shape declared(const Operand& operand, Form form) {
  Shape shape(operand.dims.begin(), operand.dims.end());
  if (form == Form::kDynamic)
    std::replace(shape.begin(), shape.end(), std::optional<int64_t>(0), std::optional<int64_t>());
  return shape;
}

struct Built {
  Graph graph{"empty"};
  std::vector<std::string> fed;  // by input; empty where it is not fed
};

// Appends max(-(-x), x), three operators that give x again for any number.
std::string add_tail(Graph& graph, const std::string& from) {
  graph.add_node(std::make_shared<Node>("tail_0", "Neg", Names{from}, Names{"t0"}));
  graph.add_node(std::make_shared<Node>("tail_1", "Neg", Names{"t0"}, Names{"t1"}));
  graph.add_node(std::make_shared<Node>("tail_2", "Max", Names{"t1", from}, Names{"t2"}));
  return "t2";
}

Built build(const NodeLine& node, const std::vector<Operand>& inputs, Form form, bool tail) {
  Built built;
  std::vector<std::string> names;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = inputs[i].present ? "i" + std::to_string(i) : "";
    names.push_back(name);
    built.fed.emplace_back();
    if (name.empty()) continue;
    if (i > 0 && (form == Form::kWeights || form == Form::kTail)) {
      built.graph.add_initializer(name, tensor_of(inputs[i]));
      continue;
    }
    built.graph.add_input({name, declared(inputs[i], form), inputs[i].dtype});
    built.fed.back() = name;
  }
  std::vector<std::string> outputs;
  for (size_t i = 0; i < node.outputs.size(); ++i)
    outputs.push_back(node.outputs[i] ? "o" + std::to_string(i) : "");
  const auto made = std::make_shared<Node>("the_node", node.op, names, outputs, node.domain);
  for (const auto& [name, value] : node.attributes)
    std::visit([&key = name, &made](const auto& v) { made->set_attr(key, v); }, value);
  built.graph.set_opset(node.domain, node.opset);
  if (!node.domain.empty()) built.graph.set_opset(17);
  built.graph.add_node(made);
  for (const std::string& name : outputs) {
    if (name.empty()) continue;
    TensorInfo info;
    info.name = tail && name == "o0" ? add_tail(built.graph, name) : name;
    info.dtype = DType::Undefined;
    info.unranked = true;
    built.graph.add_output(info);
  }
  return built;
}

std::unordered_map<std::string, Tensor> feed(const Built& built,
                                             const std::vector<Operand>& inputs) {
  std::unordered_map<std::string, Tensor> out;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!built.fed[i].empty()) out.emplace(built.fed[i], tensor_of(inputs[i]));
  return out;
}

bool same_number(double a, double b, bool coarse) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  return std::fabs(a - b) <= (coarse ? 2e-2 : 1e-4) * (1 + std::fabs(a));
}

}  // namespace

Outcome outcome_of(const NodeLine& node, const std::vector<Operand>& inputs, Form form,
                   OptLevel level) {
  Outcome out;
  try {
    const Built built = build(node, inputs, form, form == Form::kTail);
    SessionOptions options;
    options.optimization_level = level;
    options.num_threads = 1;
    options.log_level = "off";
    const InferenceSession session(built.graph, options);
    if (form == Form::kDynamic) {
      try {
        (void)session.run({}, feed(built, node.inputs));
      } catch (const PyFlameRTError&) {  // the table may have another type
      }
    }
    for (const Tensor& tensor : session.run({}, feed(built, inputs)))
      out.outputs.push_back({tensor.dtype(), tensor.shape(), numbers(tensor)});
  } catch (const PyFlameRTError& error) {
    out.refused = error.what();
    if (out.refused.empty()) out.refused = "without a sentence";
  }
  return out;
}

Outcome expected_outcome(const std::string& text) {
  Outcome out;
  for (const std::string& part : split(text, ' ')) {
    const Operand read = operand(part);
    Output output{read.dtype, read.dims, {}};
    for (const std::string& value : read.values) output.values.push_back(std::stod(value));
    out.outputs.push_back(std::move(output));
  }
  return out;
}

std::string difference(const Outcome& wanted, const Outcome& got, bool coarse) {
  if (!wanted.refused.empty() && !got.refused.empty()) return {};
  if (!got.refused.empty()) return "is refused: " + got.refused;
  if (!wanted.refused.empty()) return "runs, where the other refuses: " + wanted.refused;
  if (wanted.outputs.size() != got.outputs.size()) return "has another number of outputs";
  for (size_t o = 0; o < got.outputs.size(); ++o) {
    const Output &a = wanted.outputs[o], &b = got.outputs[o];
    const std::string which = "output " + std::to_string(o);
    if (a.dims != b.dims) return which + " is " + text_of(b.dims) + ", not " + text_of(a.dims);
    if (!coarse && a.dtype != b.dtype) return which + " is of another type";
    if (a.values.size() != b.values.size()) continue;
    for (size_t i = 0; i < a.values.size(); ++i)
      if (!same_number(a.values[i], b.values[i], coarse)) {
        std::ostringstream text;
        text << which << " element " << i << " is " << b.values[i] << ", not " << a.values[i];
        return text.str();
      }
  }
  return {};
}

}  // namespace pfrt_empty

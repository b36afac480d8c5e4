// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/micro.h"
#include "bench/versus.h"

namespace micro {

// Measures a session of the node as a model, with its constants.
void measure_session(benchmark::State& state, const Node& node, double flops, double bytes) {
  pyflame_rt::Graph graph("micro");
  std::vector<std::string> names;
  std::vector<pyflame_rt::Tensor> feeds;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    names.push_back("x" + std::to_string(i));
    int64_t elements = 1;
    for (int64_t d : node.inputs[i]) elements *= d;
    pyflame_rt::Tensor tensor = pyflame_rt::Tensor::from_vector(
        bench::numbers(bench::Operands::kNormal, elements, elements, i + 1), node.inputs[i]);
    if (i < node.constant.size() && node.constant[i]) {
      graph.add_initializer(names.back(), tensor);
    } else {
      graph.add_input({names.back(),
                       {node.inputs[i].begin(), node.inputs[i].end()},
                       pyflame_rt::DType::Float32});
      feeds.push_back(std::move(tensor));
    }
  }
  if (!node.indices.empty()) {
    names.emplace_back("indices");
    graph.add_initializer(
        "indices",
        pyflame_rt::Tensor::from_vector(node.indices, {static_cast<int64_t>(node.indices.size())}));
  }
  const auto made =
      std::make_shared<pyflame_rt::Node>(node.op, node.op, names, std::vector<std::string>{"y"});
  for (const auto& [name, numbers] : node.ints)
    if (numbers.size() == 1)
      made->set_attr(name, numbers.front());
    else
      made->set_attr(name, numbers);
  graph.add_node(made);
  graph.add_output({"y", {node.output.begin(), node.output.end()}, pyflame_rt::DType::Float32});
  pyflame_rt::SessionOptions options;
  options.num_threads = 1;
  pyflame_rt::InferenceSession session(graph, options);
  pyflame_rt::IOBinding binding(session);
  size_t feed = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (i >= node.constant.size() || !node.constant[i]) binding.bind_input(names[i], feeds[feed++]);
  pyflame_rt::Tensor y(node.output, pyflame_rt::DType::Float32);
  binding.bind_output("y", y);
  measure(
      state, [&] { binding.run(); }, flops, bytes);
}

}  // namespace micro

// SPDX-License-Identifier: Apache-2.0
//
// Runs a graph with two operators that the runtime does not have: Clamp comes from the plug-in
// beside this program (PFRT_PLUGIN_PATH names its folder), Halve from this program itself.
#include <iostream>
#include <pyflame_rt/pyflame_rt.hpp>

using namespace pyflame_rt;

int main() try {
  custom::CustomOpBuilder("Halve")
      .domain("sample.program")
      .input("X", DType::Float32)
      .output("Y", DType::Float32)
      .kernel([](const std::vector<Tensor>& inputs, const custom::AttributeMap&) {
        Tensor y = inputs[0].clone();
        for (int64_t i = 0; i < y.num_elements(); ++i) y.data_ptr<float>()[i] /= 2;
        return std::vector<Tensor>{y};
      })
      .shape_inference([](const std::vector<Shape>& inputs) { return inputs; })
      .build();

  Graph graph("clamped");
  graph.add_input(TensorInfo("x", {std::nullopt}, DType::Float32));
  graph.add_output(TensorInfo("y", {std::nullopt}, DType::Float32));
  auto clamp = std::make_shared<Node>("clamp_0", "Clamp", std::vector<std::string>{"x"},
                                      std::vector<std::string>{"c"}, "sample");
  clamp->set_attr("lo", -2.0f);
  clamp->set_attr("hi", 4.0f);
  graph.add_node(clamp);
  graph.add_node(std::make_shared<Node>("halve_0", "Halve", std::vector<std::string>{"c"},
                                        std::vector<std::string>{"y"}, "sample.program"));

  const InferenceSession session(graph);
  const Tensor x = Tensor::from_vector(std::vector<float>{-9, -1, 0, 3, 9}, {5});
  const Tensor y = session.run({}, {{"x", x}})[0];
  for (int64_t i = 0; i < y.num_elements(); ++i)
    std::cout << (i ? " " : "") << y.data_ptr<float>()[i];
  std::cout << "\n";
} catch (const std::exception& e) {
  std::cerr << "use_clamp: " << e.what() << "\n";
  return 1;
}

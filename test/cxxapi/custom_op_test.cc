// SPDX-License-Identifier: Apache-2.0
//
// The guide's "Custom Ops in C++" and, in C++, the subjects of its chapter "Custom Operators": the
// builder, attributes, shape and type inference, gradients, the registry.
#include "pyflame_rt/custom/custom_op.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <pyflame_rt/graph.hpp>
#include <pyflame_rt/model_io.hpp>
#include <pyflame_rt/session.hpp>
#include <set>
#include <sstream>

#include "test/cxxapi/floats.h"
#include "test/cxxapi/temporary_folder.h"

namespace guide {

using namespace pyflame_rt::custom;

CustomOp& register_my_op() {
  // Register operator
  CustomOp& op = CustomOpBuilder("MyOp")
                     .domain("custom")
                     .input("X", DType::Float32)
                     .output("Y", DType::Float32)
                     .kernel([](const std::vector<Tensor>& inputs,
                                const std::unordered_map<std::string, std::any>& attrs) {
                       // Implementation
                       (void)attrs;
                       return std::vector<Tensor>{inputs[0].clone()};
                     })
                     .build();
  return op;
}

// Registered before main.
const CustomOp& my_op = register_my_op();

}  // namespace guide

namespace pfrt_test {
namespace {

using namespace pyflame_rt;
using namespace pyflame_rt::custom;

Graph graph_of(const std::string& op, const std::vector<std::string>& inputs,
               const std::map<std::string, AttributeValue>& attrs = {},
               const std::string& domain = "custom", DType dtype = DType::Float32) {
  Graph graph(op);
  for (const std::string& input : inputs)
    graph.add_input(TensorInfo(input, {std::nullopt, 2}, dtype));
  TensorInfo y("y", {}, DType::Undefined);
  y.unranked = true;
  y.kind = ValueKind::Unset;
  graph.add_output(y);
  auto node = std::make_shared<Node>("node_0", op, inputs, std::vector<std::string>{"y"}, domain);
  for (const auto& [name, value] : attrs)
    std::visit([&, n = name](const auto& v) { node->set_attr(n, v); }, value);
  graph.add_node(node);
  return graph;
}

Tensor row_of(float a, float b) { return Tensor::from_vector(std::vector<float>{a, b}, {1, 2}); }

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing was thrown";
}

#define EXPECT_SAYS(work, part)                            \
  do {                                                     \
    const std::string said = message_of([&] { work; });    \
    EXPECT_NE(said.find(part), std::string::npos) << said; \
  } while (0)

TEST(GuideCustomOps, custom_ops_in_cpp) {
  EXPECT_EQ(guide::my_op.full_name(), "custom::MyOp");
  const InferenceSession session(graph_of("MyOp", {"x"}));
  EXPECT_EQ(floats(session.run({}, {{"x", row_of(1, 2)}})[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ(floats(guide::my_op({row_of(3, 4)})[0]), (std::vector<float>{3, 4}));
}

std::vector<Tensor> fused_bias_relu(const std::vector<Tensor>& inputs, const AttributeMap& attrs) {
  Tensor y = inputs[0].clone();
  const float alpha = attrs.count("alpha") ? std::any_cast<float>(attrs.at("alpha")) : 1.0f;
  for (int64_t i = 0; i < y.num_elements(); ++i) {
    float& v = y.data_ptr<float>()[i];
    v = std::max(0.0f, alpha * v + inputs[1].data_ptr<float>()[i]);
  }
  return {y};
}

TEST(GuideCustomOps, builder_api) {
  const CustomOp& op = CustomOpBuilder("FusedBiasRelu")
                           .domain("custom")
                           .version(1)
                           .doc("Fused bias addition and ReLU activation")
                           .input("X", DType::Float32)
                           .input("bias", DType::Float32)
                           .output("Y", DType::Float32)
                           .attr_float("alpha", /*required=*/false)
                           .kernel(fused_bias_relu, BackendType::CPU)
                           .shape_inference([](const std::vector<Shape>& input_shapes) {
                             return std::vector<Shape>{input_shapes[0]};
                           })
                           .build();
  EXPECT_EQ(op.doc(), "Fused bias addition and ReLU activation");
  EXPECT_EQ(op.inputs().size(), 2u);
  const InferenceSession session(graph_of("FusedBiasRelu", {"x", "bias"}));
  EXPECT_EQ(floats(session.run({}, {{"x", row_of(1, -9)}, {"bias", row_of(2, 3)}})[0]),
            (std::vector<float>{3, 0}));
  ASSERT_EQ(session.get_outputs()[0].shape.size(), 2u);
  EXPECT_EQ(session.get_outputs()[0].shape[1], 2);
  EXPECT_EQ(session.get_outputs()[0].dtype, DType::Float32);
  const InferenceSession scaled(graph_of("FusedBiasRelu", {"x", "bias"}, {{"alpha", 10.0f}}));
  EXPECT_EQ(floats(scaled.run({}, {{"x", row_of(1, -9)}, {"bias", row_of(2, 100)}})[0]),
            (std::vector<float>{12, 10}));
}

TEST(GuideCustomOps, operator_with_attributes) {
  CustomOpBuilder("ScaledAdd")
      .input("X")
      .input("Y")
      .output("Z")
      .attr_float("scale", /*required=*/true)
      .attr_int("times", false, int64_t{1})
      .kernel([](const std::vector<Tensor>& inputs, const AttributeMap& attrs) {
        const float scale = std::any_cast<float>(attrs.at("scale")) *
                            static_cast<float>(std::any_cast<int64_t>(attrs.at("times")));
        Tensor z = inputs[0].clone();
        for (int64_t i = 0; i < z.num_elements(); ++i)
          z.data_ptr<float>()[i] += scale * inputs[1].data_ptr<float>()[i];
        return std::vector<Tensor>{z};
      })
      .build();
  const InferenceSession session(graph_of("ScaledAdd", {"a", "b"}, {{"scale", 2.0f}}));
  EXPECT_EQ(floats(session.run({}, {{"a", row_of(1, 2)}, {"b", row_of(10, 20)}})[0]),
            (std::vector<float>{21, 42}));
  const InferenceSession more(
      graph_of("ScaledAdd", {"a", "b"}, {{"scale", 2.0f}, {"times", int64_t{5}}}));
  EXPECT_EQ(floats(more.run({}, {{"a", row_of(0, 0)}, {"b", row_of(1, 2)}})[0]),
            (std::vector<float>{10, 20}));
  EXPECT_SAYS(InferenceSession(graph_of("ScaledAdd", {"a", "b"})),
              "ScaledAdd 'node_0': attribute 'scale' is required");
  EXPECT_SAYS(InferenceSession(graph_of("ScaledAdd", {"a", "b"}, {{"scale", int64_t{2}}})),
              "attribute 'scale' has type");
  EXPECT_SAYS(InferenceSession(graph_of("ScaledAdd", {"a"}, {{"scale", 1.0f}})), "1 inputs");
}

TEST(GuideCustomOps, registry_management) {
  CustomOpBuilder("MyGELU")
      .domain("custom")
      .input("X")
      .output("Y")
      .kernel([](const std::vector<Tensor>& inputs, const AttributeMap&) { return inputs; })
      .build();
  CustomOpRegistry& registry = CustomOpRegistry::instance();

  // List all custom operators
  const std::vector<std::string> all = registry.list();
  EXPECT_NE(std::find(all.begin(), all.end(), "custom::MyGELU"), all.end());

  // Check if operator exists
  ASSERT_TRUE(registry.has("MyGELU"));
  const CustomOp* op = registry.get("MyGELU");
  EXPECT_EQ(op->full_name(), "custom::MyGELU");
  EXPECT_EQ(registry.get("custom::MyGELU"), op);

  const InferenceSession session(graph_of("MyGELU", {"x"}));
  // Unregister operator
  registry.unregister("MyGELU");
  EXPECT_FALSE(registry.has("MyGELU"));
  EXPECT_THROW(registry.unregister("MyGELU"), NotFoundError);
  EXPECT_THROW(InferenceSession(graph_of("MyGELU", {"x"})), UnsupportedOperatorError);
  EXPECT_EQ(floats(session.run({}, {{"x", row_of(5, 6)}})[0]), (std::vector<float>{5, 6}));
  CustomOpBuilder("MyGELU")
      .input("X")
      .output("Y")
      .kernel([](const std::vector<Tensor>&, const AttributeMap&) {
        return std::vector<Tensor>{row_of(0, 1)};
      })
      .build();
  EXPECT_EQ(floats(InferenceSession(graph_of("MyGELU", {"x"})).run({}, {{"x", row_of(5, 6)}})[0]),
            (std::vector<float>{0, 1}));
}

using CustomOpFiles = InTemporaryFolder;

TEST_F(CustomOpFiles, models_that_use_one_are_saved_and_loaded) {
  for (const char* path : {"custom.pfm", "custom.onnx"}) {
    save_model(graph_of("MyOp", {"x"}), path);
    const Model model = Model::load(path);
    EXPECT_EQ(model.graph().opsets().at("custom"), 1) << path;
    EXPECT_EQ(floats(InferenceSession(model).run({}, {{"x", row_of(1, 2)}})[0]),
              (std::vector<float>{1, 2}))
        << path;
  }
}

TEST(CustomOpBuilder, operators_are_listed) {
  bool found = false;
  for (const OperatorInfo& op : Environment::instance().custom_operators())
    found |= op.op == "MyOp" && op.domain == "custom" && op.since == 1 && op.runs_in == "host";
  EXPECT_TRUE(found);
}

TEST(CustomOpBuilder, refuses_what_is_incomplete_or_taken) {
  const KernelFn copy = [](const std::vector<Tensor>& inputs, const AttributeMap&) {
    return inputs;
  };
  EXPECT_THROW(CustomOpBuilder("").output("Y").kernel(copy).build(), InputError);
  EXPECT_SAYS(CustomOpBuilder("Many").variadic_input("X").input("Z").output("Y").build(),
              "input 'X' is variadic, and not the last");
  EXPECT_THROW(CustomOpBuilder("Old").version(0).output("Y").kernel(copy).build(), InputError);
  EXPECT_SAYS(CustomOpBuilder("MyOp")
                  .input("X", DType::Float32)
                  .output("Y", DType::Float32)
                  .kernel(copy)
                  .build(),
              "'custom::MyOp'");
  // The library refuses the operator once there is an environment.
  (void)Environment::instance();
  EXPECT_SAYS(CustomOpBuilder("Relu").domain("").output("Y").kernel(copy).build(), "built-in");
  EXPECT_FALSE(CustomOpRegistry::instance().has("Relu"));
}

TEST(CustomOpBuilder, checks_types_and_shapes) {
  const KernelFn twice = [](const std::vector<Tensor>&, const AttributeMap&) {
    return std::vector<Tensor>{Tensor({4}, DType::Float32)};
  };
  CustomOpBuilder("Honest").input("X", DType::Float32).output("Y").kernel(twice).build();
  EXPECT_SAYS(InferenceSession(graph_of("Honest", {"x"}, {}, "custom", DType::Int64)),
              "Honest 'node_0': no operator of that name takes the types 'int64 -> unknown'; "
              "there is 'float32 -> any'");
  EXPECT_EQ(InferenceSession(graph_of("Honest", {"x"})).run({}, {{"x", row_of(1, 2)}})[0].shape(),
            (std::vector<int64_t>{4}));

  const auto with_shape = [&](const std::string& name, ShapeInferenceFn shape) {
    CustomOpBuilder(name).input("X").output("Y").kernel(twice).shape_inference(shape).build();
    return graph_of(name, {"x"});
  };
  const Graph liar = with_shape("Liar", [](const auto& in) { return std::vector<Shape>{in[0]}; });
  EXPECT_SAYS((void)InferenceSession(liar).run({}, {{"x", row_of(1, 2)}}),
              "gives output 0 ('y') dimensions [4], its shape callback said [1,2]");
  const Graph silent = with_shape("Silent", [](const auto&) { return std::vector<Shape>(); });
  EXPECT_SAYS(InferenceSession{silent}, "0 shapes for 1 outputs");
  const Graph thrower = with_shape("Thrower", [](const auto&) -> std::vector<Shape> {
    throw ShapeMismatchError("x must be a vector");
  });
  EXPECT_SAYS(InferenceSession{thrower}, "Thrower 'node_0': x must be a vector");
}

TEST(CustomOpBuilder, operators_without_a_kernel_cannot_run) {
  OpSchema schema;
  EXPECT_EQ(schema.version, 1);
  schema.name = "Declared";
  schema.domain = "test";
  schema.inputs.push_back({"X", DType::Float32});
  CustomOpRegistry& registry = CustomOpRegistry::instance();
  const size_t before = registry.size();
  CustomOp& op = registry.register_op(schema);
  EXPECT_EQ(registry.size(), before + 1);
  EXPECT_EQ(registry.get("Declared"), &op);
  EXPECT_EQ(op.full_name(), "test::Declared");
  EXPECT_EQ(op.schema().inputs.size(), 1u);
  EXPECT_FALSE(op.supports_backend(BackendType::CPU));
  EXPECT_SAYS(op.execute({row_of(1, 2)}), "'test::Declared' has no kernel");
  EXPECT_SAYS((void)InferenceSession(graph_of("Declared", {"x"}, {}, "test"))
                  .run({}, {{"x", row_of(1, 2)}}),
              "Declared 'node_0': custom operator 'test::Declared' has no kernel");
  EXPECT_SAYS(registry.register_op(schema), "registered already");
  EXPECT_SAYS(registry.register_op(OpSchema()), "needs a name");
}

TEST(CustomOpBuilder, the_last_input_may_be_variadic) {
  const CustomOp& op = CustomOpBuilder("SumOf")
                           .input("start", DType::Float32)
                           .variadic_input("values", DType::Float32)
                           .output("Y")
                           .kernel([](const std::vector<Tensor>& inputs, const AttributeMap&) {
                             Tensor y = inputs[0].clone();
                             for (size_t k = 1; k < inputs.size(); ++k)
                               for (int64_t i = 0; i < y.num_elements(); ++i)
                                 y.data_ptr<float>()[i] += inputs[k].data_ptr<float>()[i];
                             return std::vector<Tensor>{y};
                           })
                           .build();
  EXPECT_TRUE(op.schema().inputs.back().variadic);
  EXPECT_TRUE(op.supports_backend(BackendType::CPU));
  EXPECT_EQ(floats(op.execute({row_of(1, 2), row_of(10, 20), row_of(100, 200)})[0]),
            (std::vector<float>{111, 222}));
  EXPECT_SAYS(op.execute({row_of(1, 2)}), "takes 2 or more inputs, got 1");
  EXPECT_SAYS(op.execute({row_of(1, 2), row_of(1, 2), Tensor({1, 2}, DType::Int64)}),
              "input 'values' is int64, expected float32");
  const InferenceSession session(graph_of("SumOf", {"a", "b", "c"}));
  EXPECT_EQ(
      floats(session.run({}, {{"a", row_of(1, 2)}, {"b", row_of(3, 4)}, {"c", row_of(5, 6)}})[0]),
      (std::vector<float>{9, 12}));
  EXPECT_SAYS(InferenceSession(graph_of("SumOf", {"a"})), "1 inputs");
}

TEST(CustomOpBuilder, shapes_and_types_are_inferred) {
  const CustomOp& op =
      CustomOpBuilder("IsPositive")
          .input("X")
          .output("Y")
          .shape_inference([](const std::vector<Shape>& shapes) { return shapes; })
          .type_inference([](const std::vector<DType>&) { return std::vector{DType::Bool}; })
          .kernel([](const std::vector<Tensor>& inputs, const AttributeMap&) {
            Tensor y(inputs[0].shape(), DType::Bool);
            for (int64_t i = 0; i < y.num_elements(); ++i)
              y.data_ptr<bool>()[i] = inputs[0].data_ptr<float>()[i] > 0;
            return std::vector<Tensor>{y};
          })
          .build();
  EXPECT_EQ(op.infer_output_shapes({{2, std::nullopt}})[0], (Shape{2, std::nullopt}));
  EXPECT_EQ(op.infer_output_dtypes({DType::Float32}), std::vector{DType::Bool});
  const InferenceSession session(graph_of("IsPositive", {"x"}));
  EXPECT_EQ(session.get_outputs()[0].dtype, DType::Bool);
  const Tensor y = session.run({}, {{"x", row_of(-1, 2)}})[0];
  EXPECT_FALSE(y.data_ptr<bool>()[0]);
  EXPECT_TRUE(y.data_ptr<bool>()[1]);

  const CustomOp& plain =
      CustomOpBuilder("PlainTypes").input("X").output("Y").output("Z", DType::Int64).build();
  EXPECT_EQ(plain.infer_output_dtypes({DType::Float16}),
            (std::vector{DType::Float16, DType::Int64}));
  EXPECT_SAYS(plain.infer_output_shapes({{1}}), "'custom::PlainTypes' has no shape inference");
  const CustomOp& silent =
      CustomOpBuilder("SilentTypes")
          .input("X")
          .output("Y")
          .type_inference([](const std::vector<DType>&) { return std::vector<DType>(); })
          .build();
  EXPECT_SAYS(silent.infer_output_dtypes({DType::Float32}), "0 types for 1 outputs");
  EXPECT_SAYS(InferenceSession(graph_of("SilentTypes", {"x"})), "0 types for 1 outputs");
}

TEST(GuideCustomOps, operator_with_gradient) {
  const CustomOp& op =
      CustomOpBuilder("MySquare")
          .input("X")
          .output("Y")
          .kernel([](const std::vector<Tensor>& inputs, const AttributeMap&) {
            Tensor y = inputs[0].clone();
            for (int64_t i = 0; i < y.num_elements(); ++i)
              y.data_ptr<float>()[i] *= inputs[0].data_ptr<float>()[i];
            return std::vector<Tensor>{y};
          })
          .gradient([](const std::vector<Tensor>& inputs, const std::vector<Tensor>& grads) {
            Tensor x = inputs[0].clone();
            for (int64_t i = 0; i < x.num_elements(); ++i)
              x.data_ptr<float>()[i] *= 2 * grads[0].data_ptr<float>()[i];
            return std::vector<Tensor>{x};
          })
          .build();
  EXPECT_TRUE(op.has_gradient());
  EXPECT_EQ(floats(op.execute({row_of(3, 4)})[0]), (std::vector<float>{9, 16}));
  EXPECT_EQ(floats(op.gradient({row_of(3, 4)}, {row_of(1, 10)})[0]), (std::vector<float>{6, 80}));
  EXPECT_SAYS(op.gradient({}, {row_of(1, 1)}), "takes 1 inputs, got 0");
  EXPECT_SAYS(op.gradient({row_of(1, 1)}, {}), "takes those of 1 outputs, got 0");
  EXPECT_FALSE(guide::my_op.has_gradient());
  EXPECT_SAYS(guide::my_op.gradient({row_of(1, 1)}, {row_of(1, 1)}), "has no gradient");
  const CustomOp& short_one =
      CustomOpBuilder("ShortGradient")
          .input("X")
          .output("Y")
          .gradient([](const auto&, const auto&) { return std::vector<Tensor>(); })
          .build();
  EXPECT_SAYS(short_one.gradient({row_of(1, 1)}, {row_of(1, 1)}),
              "returned 0 tensors for 1 inputs");
}

// y = x, where it is one of the words of a constant, else the attribute "otherwise".
struct InVocabulary {
  explicit InVocabulary(const OpNode& node)
      : otherwise(std::any_cast<std::string>(node.attributes.at("otherwise"))) {
    if (!node.constants[1].is_valid()) throw InputError("the vocabulary is no constant");
    for (std::string& word : node.constants[1].strings()) words.insert(std::move(word));
    ++made;
  }
  ~InVocabulary() { --made; }
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const {
    Tensor y = inputs[0].clone();
    for (int64_t i = 0; i < y.num_elements(); ++i)
      if (words.count(y.string_at(i)) == 0) y.set_string(i, otherwise);
    return {y};
  }
  std::string otherwise;
  std::set<std::string> words;
  static inline std::atomic<int> made{0};
};

Graph vocabulary_graph(bool constant = true) {
  Graph graph("vocabulary");
  graph.add_input(TensorInfo("x", {std::nullopt}, DType::String));
  if (constant)
    graph.add_initializer("words", Tensor::from_vector(std::vector<std::string>{"a", "b"}, {2}));
  else
    graph.add_input(TensorInfo("words", {std::nullopt}, DType::String));
  graph.add_output(TensorInfo("y", {std::nullopt}, DType::String));
  graph.add_node(std::make_shared<Node>("node_0", "InVocabulary",
                                        std::vector<std::string>{"x", "words"},
                                        std::vector<std::string>{"y"}, "custom"));
  return graph;
}

TEST(CustomOpState, is_made_once_for_each_node_of_a_session) {
  const CustomOp& op = CustomOpBuilder("InVocabulary")
                           .input("X", DType::String)
                           .input("words", DType::String)
                           .output("Y", DType::String)
                           .attr_string("otherwise", false, "?")
                           .kernel_class<InVocabulary>()
                           .build();
  EXPECT_TRUE(op.supports_backend(BackendType::CPU));
  const Tensor x = Tensor::from_vector(std::vector<std::string>{"a", "c", "", "b"}, {4});
  const std::vector<std::string> expected = {"a", "?", "?", "b"};
  {
    const InferenceSession session(vocabulary_graph());
    EXPECT_EQ(InVocabulary::made, 1);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(session.run({}, {{"x", x}})[0].strings(), expected);
    const InferenceSession other(vocabulary_graph());
    EXPECT_EQ(InVocabulary::made, 2);
  }
  EXPECT_EQ(InVocabulary::made, 0);
  EXPECT_SAYS(InferenceSession(vocabulary_graph(false)),
              "InVocabulary 'node_0': the vocabulary is no constant");
  // Without a session all inputs are constants.
  const Tensor words = Tensor::from_vector(std::vector<std::string>{"c"}, {1});
  EXPECT_EQ(op.execute({x, words}, {{"otherwise", std::string("-")}})[0].strings(),
            (std::vector<std::string>{"-", "c", "-", "-"}));
  EXPECT_EQ(InVocabulary::made, 0);
}

TEST(CustomOpState, is_what_a_kernel_captures) {
  std::vector<OpNode> nodes;
  CustomOpBuilder("Captures")
      .version(2)
      .input("X", DType::Float32)
      .input("w")
      .output("Y")
      .attr_float("by", false, 2.0f)
      .node_kernel([&](const OpNode& node) {
        nodes.push_back(node);
        nodes.back().constants.clear();
        const float by =
            std::any_cast<float>(node.attributes.at("by")) + node.constants[1].data_ptr<float>()[0];
        return [by](const std::vector<Tensor>& inputs) {
          Tensor y = inputs[0].clone();
          for (int64_t i = 0; i < y.num_elements(); ++i) y.data_ptr<float>()[i] *= by;
          return std::vector<Tensor>{y};
        };
      })
      .shape_inference(
          [](const std::vector<Shape>& shapes) { return std::vector<Shape>{shapes[0]}; })
      .build();
  Graph graph("captures");
  graph.add_input(TensorInfo("x", {std::nullopt, 2}, DType::Float32));
  graph.add_initializer("w", Tensor::from_vector(std::vector<float>{10}, {1}));
  graph.add_output(TensorInfo("y", {std::nullopt, 2}, DType::Float32));
  auto node = std::make_shared<Node>("node_0", "Captures", std::vector<std::string>{"x", "w"},
                                     std::vector<std::string>{"y"}, "custom");
  node->set_attr("by", 3.0f);
  graph.add_node(node);
  graph.set_opset("custom", 5);
  const InferenceSession session(graph);
  EXPECT_EQ(floats(session.run({}, {{"x", row_of(1, 2)}})[0]), (std::vector<float>{13, 26}));
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].name, "node_0");
  EXPECT_EQ(nodes[0].opset, 5);
  EXPECT_EQ(nodes[0].input_dtypes, (std::vector{DType::Float32, DType::Float32}));
  EXPECT_EQ(nodes[0].output_dtypes, std::vector{DType::Float32});
}

TEST(CustomOpState, that_cannot_be_made_is_the_error_of_the_session) {
  NodeKernelMaker maker;
  CustomOpBuilder("Unmade")
      .input("X")
      .output("Y")
      .node_kernel([&](const OpNode& node) { return maker(node); })
      .build();
  maker = [](const OpNode&) -> NodeKernelFn { throw InputError("no such file"); };
  EXPECT_SAYS(InferenceSession(graph_of("Unmade", {"x"})), "Unmade 'node_0': no such file");
  maker = [](const OpNode&) -> NodeKernelFn { throw 7; };
  EXPECT_SAYS(InferenceSession(graph_of("Unmade", {"x"})), "Unmade 'node_0': an exception");
  maker = [](const OpNode&) -> NodeKernelFn { throw std::bad_alloc(); };
  EXPECT_THROW(InferenceSession(graph_of("Unmade", {"x"})), OutOfMemoryError);
  maker = [](const OpNode&) { return NodeKernelFn(); };
  EXPECT_SAYS(InferenceSession(graph_of("Unmade", {"x"})), "'node_0': it made no kernel");
}

TEST(CustomOpStrings, are_outputs_of_any_number) {
  CustomOpBuilder("SplitWords")
      .input("X", DType::String)
      .output("Y", DType::String)
      .kernel([](const std::vector<Tensor>& inputs, const AttributeMap&) {
        std::vector<std::string> words;
        for (const std::string& line : inputs[0].strings()) {
          std::istringstream stream(line);
          for (std::string word; stream >> word;) words.push_back(word);
        }
        const auto count = static_cast<int64_t>(words.size());
        return std::vector<Tensor>{Tensor::from_vector(words, {count})};
      })
      .build();
  const InferenceSession session(graph_of("SplitWords", {"x"}, {}, "custom", DType::String));
  const Tensor x = Tensor::from_vector(std::vector<std::string>{"a bc", "d"}, {1, 2});
  EXPECT_EQ(session.run({}, {{"x", x}})[0].strings(), (std::vector<std::string>{"a", "bc", "d"}));
  const Tensor none = Tensor::from_vector(std::vector<std::string>{"", " "}, {1, 2});
  EXPECT_TRUE(session.run({}, {{"x", none}})[0].strings().empty());
}

KernelFn gives(float value) {
  return [value](const std::vector<Tensor>&, const AttributeMap&) {
    return std::vector<Tensor>{row_of(value, value)};
  };
}

float result_of(const Graph& graph, DType dtype = DType::Float32) {
  const InferenceSession session(graph);
  Tensor x({1, 2}, dtype);
  return floats(session.run({}, {{"x", x}})[0])[0];
}

TEST(CustomOpOverloads, versions_stand_side_by_side) {
  const CustomOp& first =
      CustomOpBuilder("Versions").version(1, 2).input("X").output("Y").kernel(gives(1)).build();
  const CustomOp& second =
      CustomOpBuilder("Versions").version(3).input("X").output("Y").kernel(gives(2)).build();
  EXPECT_EQ(first.until(), 2);
  EXPECT_EQ(second.until(), 0);
  for (const auto& [opset, expected] : std::map<int64_t, float>{{1, 1}, {2, 1}, {3, 2}, {9, 2}}) {
    Graph graph = graph_of("Versions", {"x"});
    graph.set_opset("custom", opset);
    EXPECT_EQ(result_of(graph), expected) << opset;
  }
  EXPECT_EQ(result_of(graph_of("Versions", {"x"})), 2);
  CustomOpRegistry& registry = CustomOpRegistry::instance();
  EXPECT_EQ(registry.get("Versions"), &second);
  EXPECT_EQ(registry.get("custom::Versions"), &second);
  const std::vector<std::string> all = registry.list();
  EXPECT_EQ(std::count(all.begin(), all.end(), "custom::Versions"), 1);
  EXPECT_SAYS(
      CustomOpBuilder("Versions").version(2, 2).input("X").output("Y").kernel(gives(3)).build(),
      "'custom::Versions' is registered already");
  EXPECT_SAYS(CustomOpBuilder("Versions").version(5, 4).output("Y").kernel(gives(3)).build(),
              "from version 5 to 4");
  registry.unregister("Versions");  // all of them
  EXPECT_FALSE(registry.has("Versions"));
  EXPECT_THROW(InferenceSession(graph_of("Versions", {"x"})), UnsupportedOperatorError);
}

TEST(CustomOpOverloads, types_are_chosen_by_the_graph) {
  const auto add = [](DType dtype, float value) -> CustomOp& {
    return CustomOpBuilder("Typed")
        .input("X", dtype)
        .output("Y", DType::Float32)
        .kernel(gives(value))
        .build();
  };
  add(DType::Float32, 1);
  add(DType::Int64, 2);
  const auto graph = [](DType dtype) { return graph_of("Typed", {"x"}, {}, "custom", dtype); };
  EXPECT_EQ(result_of(graph(DType::Float32)), 1);
  EXPECT_EQ(result_of(graph(DType::Int64), DType::Int64), 2);
  EXPECT_SAYS(InferenceSession(graph(DType::Float64)),
              "there are 'float32 -> float32', 'int64 -> float32'");
  EXPECT_SAYS(add(DType::Int64, 3), "'custom::Typed' is registered already");
  add(DType::Undefined, 4);  // for all other types
  EXPECT_EQ(result_of(graph(DType::Float64), DType::Float64), 4);
  EXPECT_EQ(result_of(graph(DType::Float32)), 1);
  std::vector<std::string> types;
  for (const OperatorInfo& op : Environment::instance().custom_operators())
    if (op.op == "Typed") types.push_back(op.types);
  EXPECT_EQ(types,
            (std::vector<std::string>{"float32 -> float32", "int64 -> float32", "any -> float32"}));
}

TEST(CustomOpRegistry, clear_unregisters_all) {
  CustomOpRegistry& registry = CustomOpRegistry::instance();
  ASSERT_TRUE(registry.has("MyOp"));
  const InferenceSession session(graph_of("MyOp", {"x"}));
  registry.clear();
  EXPECT_EQ(registry.size(), 0u);
  EXPECT_TRUE(registry.list().empty());
  EXPECT_THROW(InferenceSession(graph_of("MyOp", {"x"})), UnsupportedOperatorError);
  EXPECT_EQ(floats(session.run({}, {{"x", row_of(1, 2)}})[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ(guide::my_op.name(), "MyOp");  // the object stays valid
  guide::register_my_op();                 // for the other tests
  EXPECT_EQ(registry.list(), (std::vector<std::string>{"custom::MyOp"}));
}

}  // namespace
}  // namespace pfrt_test

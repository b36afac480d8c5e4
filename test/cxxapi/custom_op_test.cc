// SPDX-License-Identifier: Apache-2.0
//
// The guide's "Custom Ops in C++" and, in C++, the subjects of its chapter "Custom Operators": the
// builder, attributes, shape and type inference, gradients, the registry.
#include "pyflame_rt/custom/custom_op.hpp"

#include <gtest/gtest.h>

#include <pyflame_rt/graph.hpp>
#include <pyflame_rt/model_io.hpp>
#include <pyflame_rt/session.hpp>

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
  EXPECT_SAYS(CustomOpBuilder("MyOp").output("Y").kernel(copy).build(), "'custom::MyOp'");
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
              "Honest 'node_0': input 'X' is int64, expected float32");
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

// SPDX-License-Identifier: Apache-2.0
//
// The sample plug-in of kind pass, run by sessions and by a pass manager that names it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <pyflame_rt/pyflame_rt.hpp>

namespace pfrt_test {
namespace {

using namespace pyflame_rt;

// y = x to the power of 2.
Graph power() {
  Graph graph("power");
  graph.add_input({"x", {3}, DType::Float32});
  graph.add_initializer("two", Tensor::from_vector<float>({2.0f}, {}));
  graph.add_node(std::make_shared<Node>("pow", "Pow", std::vector<std::string>{"x", "two"},
                                        std::vector<std::string>{"y"}));
  graph.add_output({"y", {3}, DType::Float32});
  return graph;
}

// The first call makes the environment of this process, so the path is set before.
class PassPlugin : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("PFRT_PLUGIN_PATH", PFRT_SAMPLE_PLUGINS ":" PFRT_OWN_PLUGINS, 1);
  }
};

TEST_F(PassPlugin, a_pass_manager_runs_it_by_name) {
  Graph graph = power();
  opt::PassManager manager;
  manager.register_plugin_pass("SquarePass");
  const opt::PassResult result = manager.run(graph);
  EXPECT_TRUE(result.modified);
  EXPECT_EQ(result.stats.nodes_removed, 1u);
  ASSERT_EQ(graph.nodes().size(), 1u);
  EXPECT_EQ(graph.nodes()[0]->op_type(), "Mul");
  EXPECT_EQ(graph.outputs()[0].name, "y");
  EXPECT_FALSE(manager.run(graph).modified);
}

TEST_F(PassPlugin, sessions_run_it) {
  InferenceSession session(power());
  const auto results =
      session.run({}, {{"x", Tensor::from_vector<float>({1.0f, -2.0f, 3.0f}, {3})}});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].data_ptr<float>()[1], 4.0f);
  bool named = false;
  for (const std::string& note : session.explain().notes)
    named |= note.find("SquarePass") != std::string::npos &&
             note.find("changed the graph") != std::string::npos;
  EXPECT_TRUE(named);
}

TEST_F(PassPlugin, an_unknown_name_lists_those_there_are) {
  Graph graph = power();
  opt::PassManager manager;
  manager.register_plugin_pass("SquarPass");
  try {
    manager.run(graph);
    FAIL() << "a pass that is not there was run";
  } catch (const PyFlameRTError& e) {
    EXPECT_NE(std::string(e.what()).find("SquarePass"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace pfrt_test

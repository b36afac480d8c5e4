// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <pyflame_rt/pyflame_rt.hpp>
#include <string>

#include "test/cli/tool.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using pyflame_rt::DType;
using pyflame_rt::Graph;
using pyflame_rt::Tensor;

// An If of two branches, each of which adds three numbers that a Constant holds: one node outside
// of bodies, four inside.
void save_branches(const std::string& path) {
  Graph graph("choice");
  graph.add_input({"c", {}, DType::Bool});
  graph.add_input({"x", {{3}}, DType::Float32});
  graph.add_output({"y", {{3}}, DType::Float32});
  const auto choose = make_node("choose", "If", {"c"}, {"y"});
  for (const std::string branch : {"then_branch", "else_branch"}) {
    Graph body = graph.create_subgraph(branch);
    body.add_output({branch + "_y", {{3}}, DType::Float32});
    const auto constant = make_node(branch + "_constant", "Constant", {}, {branch + "_k"});
    constant->set_attr("value", Tensor::from_vector<float>({1, 2, 3}, {3}));
    body.add_node(constant);
    body.add_node(make_node(branch + "_add", "Add", {"x", branch + "_k"}, {branch + "_y"}));
    choose->set_attr(branch, body.shared());
  }
  graph.add_node(choose);
  pyflame_rt::Model::from_graph(graph).save(path);
}

class Inspect : public InTemporaryFolder {
 protected:
  Inspect() { save_branches("branches.onnx"); }
};

TEST_F(Inspect, counts_bodies_and_constants_in_the_text) {
  const Ran ran = run("inspect branches.onnx");
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(has(ran.output,
                  "nodes       5: 1 in the graph, 4 in bodies of them\n"
                  "       2 Add\n       2 Constant\n       1 If\n"))
      << ran.output;
  EXPECT_TRUE(has(ran.output, "parameters  6 (6) in 0 initializers and 2 Constant nodes\n"))
      << ran.output;
  EXPECT_TRUE(has(ran.output, "bytes       24 B\n")) << ran.output;
}

TEST_F(Inspect, says_what_a_session_takes) {
  const Ran plain = run("inspect branches.onnx");
  EXPECT_FALSE(has(plain.output, "memory ")) << plain.output;
  const Ran ran = run("inspect branches.onnx --memory");
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(has(ran.output, "memory      weights ")) << ran.output;
  const Ran json = run("inspect branches.onnx --memory --json");
  EXPECT_TRUE(has(json.output, "\"memory\":{\"weights\":")) << json.output;
  for (const char* key : {"\"idle\":", "\"states\":0", "\"device_states\":0"})
    EXPECT_TRUE(has(json.output, key)) << json.output;
  EXPECT_TRUE(has(json.output, "\"blocks\":[")) << json.output;
  EXPECT_EQ(run("inspect branches.onnx --memory --html page.html").code, 2);
}

TEST_F(Inspect, counts_the_same_in_json) {
  const Ran ran = run("inspect branches.onnx --json");
  EXPECT_TRUE(has(ran.output,
                  "\"operators\":{\"Add\":2,\"Constant\":2,\"If\":1},\"nodes\":5,"
                  "\"nodes_in_bodies\":4,\"initializers\":0,\"parameters\":6,"
                  "\"parameter_bytes\":24,"))
      << ran.output;
}

TEST_F(Inspect, counts_the_same_on_the_page) {
  const Ran ran = run("inspect branches.onnx --html page.html --level none");
  EXPECT_EQ(ran.output.rfind("wrote page.html: 5 nodes, 5 after level none, ", 0), 0u)
      << ran.output;
  const std::string page = read_file("page.html");
  EXPECT_TRUE(has(page, "<h2>Before: 5 nodes</h2>"));
  EXPECT_TRUE(has(page, "5: 1 in the graph, 4 in bodies of them"));
  EXPECT_TRUE(has(page, "6 (6) in 0 initializers and 2 Constant nodes"));
}

TEST_F(Inspect, counts_as_convert_and_optimize_do) {
  EXPECT_TRUE(has(run("convert branches.onnx copy.pfm").output, "wrote copy.pfm: 5 nodes, "));
  Ran ran = run("optimize branches.onnx none.onnx --level none");
  EXPECT_TRUE(has(ran.output, "wrote none.onnx: 5 nodes of 5, ")) << ran.output;
  ran = run("optimize branches.onnx basic.onnx --level basic --json");
  EXPECT_TRUE(has(ran.output, "\"nodes_before\":5,")) << ran.output;
}

TEST_F(Inspect, counts_as_the_api_does) {
  const auto stats = pyflame_rt::Model::load("branches.onnx").stats();
  EXPECT_EQ(stats.node_count, 5u);
  EXPECT_EQ(stats.initializer_count, 0u);
  EXPECT_EQ(stats.parameter_count, 6u);
  EXPECT_EQ(stats.parameter_bytes, 24u);
}

}  // namespace
}  // namespace pfrt_test

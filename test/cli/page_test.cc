// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/page/page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <pyflame_rt/opt/passes.hpp>

#include "cxxapi/cli/page/markup.h"
#include "test/cli/skeleton.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using cli::Box;
using cli::Drawing;
using pyflame_rt::DType;
using pyflame_rt::Graph;
using pyflame_rt::Tensor;

const Box& box_of(const Drawing& drawing, const std::string& op) {
  for (const Box& box : drawing.boxes) {
    if (box.op == op) return box;
  }
  throw std::runtime_error("no box " + op);
}

cli::PageContents page_of(const Graph& graph) {
  cli::PageContents contents;
  contents.model = "model";
  contents.level = "all";
  contents.before = cli::page_graph(graph);
  contents.after = cli::page_graph(graph);
  return contents;
}

// Makes a graph in which every text that a model may choose holds |word|.
Graph graph_of(const std::string& word) {
  Graph graph(word);
  pyflame_rt::TensorInfo input("in" + word, {std::nullopt, 2}, DType::Float32);
  input.dim_names = {"n" + word, ""};
  graph.add_input(input);
  graph.add_output({"out" + word, {2}, DType::Float32});
  graph.add_initializer("c" + word, Tensor::from_vector<std::string>({"s" + word}, {1}));
  const auto node = std::make_shared<pyflame_rt::Node>(
      "node" + word, "Op" + word, std::vector<std::string>{"in" + word, "c" + word},
      std::vector<std::string>{"out" + word}, "domain" + word);
  node->set_attr("text" + word, "t" + word);
  node->set_attr("texts" + word, std::vector<std::string>{"t" + word});
  Graph body = graph.create_subgraph("body" + word);
  body.add_output({"b" + word, {}, DType::Float32});
  body.add_node(make_node("inner" + word, "Inner" + word, {"in" + word}, {"b" + word}));
  node->set_attr("body" + word, body.shared());
  graph.add_node(node);
  return graph;
}

cli::PageContents contents_of(const std::string& word) {
  cli::PageContents contents = page_of(graph_of(word));
  contents.model = contents.failure = word;
  contents.summary = {{"graph", word}, {"metadata", word + " = " + word}};
  pyflame_rt::opt::PassReport report;
  report.pass = word;
  report.stats.rules[word] = 1;
  contents.passes.reports = {report};
  contents.passes.warnings = {word};
  return contents;
}

class Hostile : public testing::TestWithParam<std::string> {};

TEST_P(Hostile, text_changes_no_markup) {
  const std::string plain = cli::write_html(contents_of("x"));
  const std::string html = cli::write_html(contents_of(GetParam()));
  EXPECT_EQ(skeleton(html), skeleton(plain));
  std::string line = html;
  line.erase(std::remove(line.begin(), line.end(), '\n'), line.end());
  EXPECT_TRUE(cli::clean(line, line.size()) == line) << "there is more than text";
  EXPECT_LT(html.size(), plain.size() + 100000);
}

TEST_P(Hostile, text_of_a_failure_changes_no_markup) {
  const auto page = [](const std::string& word) {
    cli::PageContents contents = contents_of(word);
    contents.after.reset();
    return skeleton(cli::write_html(contents));
  };
  EXPECT_EQ(page(GetParam()), page("x"));
}

INSTANTIATE_TEST_SUITE_P(Words, Hostile,
                         testing::Values("</script><script>alert(1)</script>",
                                         "\"><img src=x onerror=alert(1)>",
                                         "'/><svg onload=alert(1)>", "<!--", "]]>", "&lt;b&gt;",
                                         "</title></style></text>", "\xff\xfe\xc0\xbcscript>",
                                         std::string("\0\x01\x1b[31m\x7f", 8),
                                         "\u202Etxt.exe\u2066", "\\u003c\\",
                                         std::string(1 << 20, '<')));

TEST(Skeleton, sees_what_is_put_in) {
  EXPECT_NE(skeleton("<p>a</p>"), skeleton("<p>a<b></p>"));
  EXPECT_NE(skeleton("<p title=\"a\">"), skeleton("<p title=\"a\" onclick=\"b\">"));
  EXPECT_NE(skeleton("<script>a</script>"), skeleton("<script>a</script>b</script>"));
  EXPECT_EQ(skeleton("<p title=\"a\">b</p>"), skeleton("<p title=\"c\">d</p>"));
}

TEST(Page, is_whole_and_refers_to_nothing_outside) {
  const std::string html = cli::write_html(contents_of("x"));
  expect_balanced(html);
  for (const char* part : {"http:", "https:", "src=", "href=", "url(", "@import", "<link"}) {
    EXPECT_EQ(html.find(part), std::string::npos) << part;
  }
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
}

TEST(Page, shows_each_node_in_each_graph) {
  Graph graph = one_node("Relu", {1, 10});
  graph.add_node(make_node("second", "Tanh", {"output"}, {"other"}));
  const std::string html = cli::write_html(page_of(graph));
  for (const char* id : {"before-0-0", "before-0-3", "after-0-0", "after-0-3"}) {
    EXPECT_NE(html.find(std::string("<g id=\"") + id + "\""), std::string::npos) << id;
  }
  EXPECT_NE(html.find("k-act"), std::string::npos);
  EXPECT_NE(html.find("float32 [1,10]"), std::string::npos);
}

TEST(Page, of_a_thousand_nodes_is_small) {
  Graph graph("long");
  graph.add_input({"v0", {1, 10}, DType::Float32});
  for (int i = 1; i <= 1500; ++i) {
    const std::string last = "v" + std::to_string(i - 1);
    const std::string skip = "v" + std::to_string(std::max(0, i - 7));
    graph.add_node(make_node("/layer/part/node_" + std::to_string(i), "Add", {last, skip},
                             {"v" + std::to_string(i)}));
  }
  graph.add_output({"v1500", {1, 10}, DType::Float32});
  const std::string html = cli::write_html(page_of(graph));
  EXPECT_LT(html.size(), 4U << 20);
  expect_balanced(html);
}

TEST(Drawing, says_what_a_node_has) {
  Graph graph("attributes");
  graph.add_input({"x", {1, 3}, DType::Float32});
  graph.add_output({"y", {1, 3}, DType::Float32});
  graph.add_initializer("scale", Tensor::from_vector<float>({1.5F, 2, 3}, {3}));
  graph.add_initializer("large", Tensor({64, 3, 7, 7}, DType::Float32));
  const auto node = make_node("n", "Some", {"x", "", "scale", "large"}, {"y"});
  node->set_attr("pads", std::vector<int64_t>{1, 2});
  node->set_attr("alpha", 0.25F);
  node->set_attr("mode", "wide");
  graph.add_node(node);
  const Drawing drawing = cli::draw(graph)[0];
  const Box& box = box_of(drawing, "Some");
  EXPECT_EQ(box.category, "other");
  const std::vector<std::pair<std::string, std::string>> attributes = {
      {"alpha", "0.25"}, {"mode", "\"wide\""}, {"pads", "[1, 2]"}};
  auto got = box.attributes;
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, attributes);
  ASSERT_EQ(box.inputs.size(), 4U);
  EXPECT_FALSE(box.inputs[1]);
  EXPECT_EQ(drawing.values[*box.inputs[0]].type, "float32 [1,3]");
  EXPECT_EQ(drawing.values[*box.inputs[2]].constant, "constant float32 [3] = 1.5, 2, 3");
  EXPECT_EQ(drawing.values[*box.inputs[3]].constant, "constant float32 [64,3,7,7]");
  EXPECT_EQ(box.constants, "1.5, 2, 3 [64,3,7,7]");
  EXPECT_EQ(drawing.links.size(), 2U);
}

TEST(Drawing, bodies_are_apart_and_what_they_capture_is_linked) {
  Graph graph("outer");
  graph.add_input({"choice", {}, DType::Bool});
  graph.add_input({"x", {2}, DType::Float32});
  graph.add_output({"y", {2}, DType::Float32});
  Graph then = graph.create_subgraph("then");
  then.add_output({"then_y", {2}, DType::Float32});
  then.add_node(make_node("t", "Relu", {"x"}, {"then_y"}));
  const auto node = make_node("branch", "If", {"choice"}, {"y"});
  node->set_attr("then_branch", then.shared());
  Graph otherwise = graph.create_subgraph("else");
  otherwise.add_output({"else_y", {2}, DType::Float32});
  otherwise.add_node(make_node("e", "Neg", {"x"}, {"else_y"}));
  node->set_attr("else_branch", otherwise.shared());
  graph.add_node(node);
  const std::vector<Drawing> drawings = cli::draw(graph);
  ASSERT_EQ(drawings.size(), 3U);
  const auto bodies = box_of(drawings[0], "If").bodies;
  ASSERT_EQ(bodies.size(), 2U);
  for (const auto& [name, index] : bodies) {
    EXPECT_EQ(drawings[index].title, name + " of If branch");
    EXPECT_EQ(box_of(drawings[index], "Captured").name, "x");
    EXPECT_EQ(drawings[index].links.size(), 2U);  // to the node, and to the output
  }
  EXPECT_EQ(drawings[0].links.size(), 3U);  // choice and x to If, once each, and to the output
  expect_balanced(cli::write_html(page_of(graph)));
}

TEST(Drawing, of_a_large_graph_is_cut_to_what_a_page_can_show) {
  Graph graph("long");
  graph.add_input({"v0", {1, 10}, DType::Float32});
  for (int i = 1; i <= 100; ++i)
    graph.add_node(make_node("node_" + std::to_string(i), "Add",
                             {"v" + std::to_string(i - 1), "v0"}, {"v" + std::to_string(i)}));
  graph.add_output({"v100", {1, 10}, DType::Float32});
  cli::PageContents contents = page_of(graph);
  std::vector<Drawing>& drawings = contents.before.drawings;
  EXPECT_EQ(cli::shorten(&drawings, 102), 0U);
  contents.before.left_out = cli::shorten(&drawings, 10);
  EXPECT_EQ(contents.before.left_out, 92U);
  ASSERT_EQ(drawings[0].boxes.size(), 10U);
  EXPECT_EQ(drawings[0].boxes[9].name, "node_9");
  for (const cli::Link& link : drawings[0].links) EXPECT_LT(std::max(link.from, link.to), 10U);
  EXPECT_EQ(drawings[0].links.size(), 18U);
  const std::string html = cli::write_html(contents);
  expect_balanced(html);
  EXPECT_NE(html.find("its last 92 boxes are not drawn"), std::string::npos);
  EXPECT_NE(html.find("id=\"before-0-9\""), std::string::npos);
  EXPECT_EQ(html.find("id=\"before-0-10\""), std::string::npos);
  EXPECT_EQ(cli::shorten(&drawings, 0), 10U);
  expect_balanced(cli::write_html(contents));
}

TEST(Drawing, marks_what_one_graph_has_alone) {
  Graph before = one_node("Relu", {1, 10});
  before.add_node(make_node("second", "Tanh", {"output"}, {"other"}));
  Graph after = one_node("Relu", {1, 10});
  after.add_node(make_node("second", "Sigmoid", {"output"}, {"other"}));
  std::vector<Drawing> first = cli::draw(before), second = cli::draw(after);
  cli::compare(&first, &second);
  EXPECT_FALSE(box_of(first[0], "Relu").only_here);
  EXPECT_TRUE(box_of(first[0], "Tanh").only_here);
  EXPECT_FALSE(box_of(second[0], "Relu").only_here);
  EXPECT_TRUE(box_of(second[0], "Sigmoid").only_here);
  EXPECT_FALSE(box_of(second[0], "Output").only_here);
}

}  // namespace
}  // namespace pfrt_test

// SPDX-License-Identifier: Apache-2.0
#include "core/pass/engine/editors.h"

#include <gtest/gtest.h>

#include "core/ir/verify.h"
#include "test/core/pass/writer.h"

namespace pfrt::test {
namespace {

// Describes every value that some node makes or takes, by name.
std::string known(Editor& editor) {
  const SymbolTable& symbols = *editor.graph().symbols;
  std::string text;
  for (NodeId id : editor.graph().node_ids()) {
    const Node& node = *editor.node(id);
    for (const auto* list : {&node.inputs, &node.outputs}) {
      for (ValueId value : *list) {
        if (value == kNoId) continue;
        text += message(editor.graph().at(value).name, " ", type_text(editor.type(value), symbols));
        if (const auto& contents = editor.contents(value))
          text += " holds " + symbols.text(*contents);
        for (NodeId user : editor.users(value)) text += message(" ", editor.node(user)->op, user);
        text += editor.is_output(value) ? " out\n" : "\n";
      }
    }
  }
  return text;
}

std::string known_anew(Graph& graph) {
  auto editor = Editor::open(graph);
  return editor.ok() ? known(*editor) : editor.status().message();
}

// Expects a second visit, after |edit|, to know the facts that a new editor would.
void expect_same_after(Graph& graph, const std::function<void(Editor&)>& edit) {
  Editors editors;
  ASSERT_TRUE(editors
                  .visit(graph,
                         [&](Editor& editor) -> Status {
                           if (graph.depth == editor.graph().depth) edit(editor);
                           return {};
                         })
                  .ok());
  std::string after;
  ASSERT_TRUE(editors
                  .visit(graph,
                         [&](Editor& editor) -> Status {
                           after = known(editor);
                           return {};
                         })
                  .ok());
  EXPECT_EQ(after, known_anew(graph));
}

std::shared_ptr<Graph> shapes() {
  Writer w;
  w.input("x", {"N", "4"}).input("narrow", {"N", "4"}).input("one", {"1", "1"});
  w.node("Relu", {"narrow"}, {"relu"});
  w.node("Add", {"x", "relu"}, {"sum"});
  w.node("Transpose", {"sum"}, {"turned"}, {Attribute::of_ints("perm", {0, 1})});
  w.node("Shape", {"turned"}, {"shape"});
  w.node("Neg", {"turned"}, {"less"});
  w.node("Reshape", {"x", "shape"}, {"formed"});
  return w.output("less").output("formed").output("shape").canonical();
}

Node& maker(Editor& editor, const char* name) {
  return *editor.producer(editor.graph().find(name));
}

TEST(Editors, know_what_follows_from_another_input) {
  const auto graph = shapes();
  expect_same_after(*graph, [](Editor& editor) {
    for (const char* name : {"sum", "turned", "less", "formed", "shape"})
      editor.graph().at(editor.graph().find(name)).type = Type();
    editor.set_input(maker(editor, "sum"), 0, editor.graph().find("one"));
    editor.set_input(maker(editor, "sum"), 1, editor.graph().find("one"));
  });
  EXPECT_NE(known_anew(*graph).find("less float32[1,1]"), std::string::npos) << known_anew(*graph);
}

TEST(Editors, know_what_follows_from_another_attribute) {
  const auto graph = shapes();
  expect_same_after(*graph, [](Editor& editor) {
    for (const char* name : {"turned", "less", "formed", "shape"})
      editor.graph().at(editor.graph().find(name)).type = Type();
    maker(editor, "turned").set_attr(Attribute::of_ints("perm", {1, 0}));
    ASSERT_TRUE(editor.changed(maker(editor, "turned")).ok());
  });
  EXPECT_NE(known_anew(*graph).find("less float32[4,N]"), std::string::npos) << known_anew(*graph);
}

TEST(Editors, know_nodes_that_came_and_went) {
  const auto graph = shapes();
  expect_same_after(*graph, [](Editor& editor) {
    auto halves = editor.int64s("two", {2, -1});
    ASSERT_TRUE(halves.ok());
    auto made = editor.add("Reshape", "made", {editor.graph().find("sum"), *halves});
    ASSERT_TRUE(made.ok());
    editor.replace(editor.graph().find("formed"), *made);
    editor.replace(editor.graph().find("turned"), editor.graph().find("sum"));
  });
}

// A body must see the new type of a value that it captures.
TEST(Editors, tell_bodies_what_has_changed_around_them) {
  Writer w;
  w.input("c", {}, PFRT_DTYPE_BOOL).input("a", {"2"}).input("b", {"5"});
  w.node("Relu", {"a"}, {"seen"});
  Writer then_body(w.graph()), else_body(w.graph());
  then_body.node("Neg", {"seen"}, {"t"}).output("t");
  else_body.node("Abs", {"seen"}, {"e"}).output("e");
  w.node("If", {"c"}, {"y"}, {then_body.as("then_branch"), else_body.as("else_branch")});
  const auto graph = w.output("y").canonical();

  std::vector<std::string> seen;
  const auto look = [&](Editor& editor) -> Status {
    if (editor.graph().depth == 0) return {};
    const ValueId captured = editor.graph().captures.at(0).inner;
    seen.push_back(type_text(editor.type(captured), *editor.graph().symbols));
    return {};
  };
  Editors editors;
  ASSERT_TRUE(editors.visit(*graph, look).ok());
  ASSERT_TRUE(editors.visit(*graph, look).ok());
  ASSERT_TRUE(editors
                  .visit(*graph,
                         [&](Editor& editor) -> Status {
                           if (editor.graph().depth > 0) return {};
                           for (const char* name : {"seen", "y"})
                             editor.graph().at(editor.graph().find(name)).type = Type();
                           editor.set_input(maker(editor, "seen"), 0, editor.graph().find("b"));
                           return {};
                         })
                  .ok());
  ASSERT_TRUE(editors.visit(*graph, look).ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"float32[2]", "float32[2]", "float32[2]", "float32[2]",
                                            "float32[5]", "float32[5]"}));
}

// The captured value's producer comes after the node with the body.
TEST(Editors, remove_what_only_a_body_used_wherever_it_stands) {
  Writer w;
  w.input("c", {}, PFRT_DTYPE_BOOL).input("a", {"2"});
  Writer then_body(w.graph()), else_body(w.graph());
  then_body.node("Neg", {"seen"}, {"unused"}).floats("t", {1}, {1}).output("t");
  else_body.floats("e", {1}, {2}).output("e");
  w.node("If", {"c"}, {"y"}, {then_body.as("then_branch"), else_body.as("else_branch")});
  w.node("Relu", {"a"}, {"seen"});
  const auto graph = w.output("y").canonical();
  Editors editors;
  const auto sweep = [&](Editor& editor) -> Status {
    if (Node* unused = editor.producer(editor.graph().find("unused")))
      editor.remove_unused(unused->id);
    return {};
  };
  ASSERT_TRUE(editors.visit(*graph, sweep).ok());
  EXPECT_EQ(graph->node_count(), 1u) << "If alone";
  EXPECT_TRUE(verify(*graph).ok());
}

TEST(Editors, of_another_graph_are_new) {
  const auto one = shapes(), other = one->clone();
  Editors editors;
  const Graph* at = nullptr;
  const auto look = [&](Editor& editor) -> Status {
    at = &editor.graph();
    return {};
  };
  ASSERT_TRUE(editors.visit(*one, look).ok());
  EXPECT_EQ(at, one.get());
  ASSERT_TRUE(editors.visit(*other, look).ok());
  EXPECT_EQ(at, other.get());
  ASSERT_TRUE(editors.visit(*one, look).ok());
  EXPECT_EQ(at, one.get());
}

}  // namespace
}  // namespace pfrt::test

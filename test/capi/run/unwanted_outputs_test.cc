// SPDX-License-Identifier: Apache-2.0
//
// Nodes that only unwanted outputs need are not run, and the other outputs are unchanged.
#include <algorithm>
#include <set>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

class Unwanted : public testing::Test {
 protected:
  // Expects a run for each set of the outputs to give the results of a run for all.
  void check_subsets(const GraphBuilder& g, const std::vector<Array>& inputs,
                     const Settings& more = {}) {
    for (const char* level : {"none", "all"}) {
      SCOPED_TRACE(level);
      Settings words = {{"enable_profiling", "true"}, {"optimization_level", level}};
      words.insert(words.end(), more.begin(), more.end());
      const auto options = make_options(PFRT_OPTIONS_SESSION, words);
      session_ = make_session(env_.get(), g, options.get());
      ASSERT_TRUE(session_);
      const std::vector<Array> all = run(session_.get(), inputs);
      for (uint32_t wanted = 0; wanted < 1u << all.size(); ++wanted) {
        SCOPED_TRACE(wanted);
        const std::vector<Array> some = run_some(inputs, all.size(), wanted);
        for (size_t i = 0; i < all.size(); ++i) {
          if ((wanted >> i & 1) == 0) continue;
          EXPECT_EQ(some[i].dims, all[i].dims);
          EXPECT_EQ(some[i].bytes, all[i].bytes) << "output " << i;
        }
      }
    }
  }

  std::vector<Array> run_some(const std::vector<Array>& inputs, size_t outputs, uint32_t wanted) {
    std::vector<pfrt_io> in, out(outputs);
    for (const Array& x : inputs) in.push_back(x.io());
    for (size_t i = 0; i < outputs; ++i) {
      out[i].struct_size = sizeof(pfrt_io);
      out[i].flags = (wanted >> i & 1) == 0 ? PFRT_IO_SKIP : 0;
    }
    EXPECT_TRUE(
        ok(api().session->run(session_.get(), in.data(), in.size(), out.data(), outputs, nullptr)));
    std::vector<Array> made(outputs);
    for (size_t i = 0; i < outputs; ++i) {
      EXPECT_EQ(out[i].value != nullptr, (wanted >> i & 1) != 0) << "output " << i;
      if (out[i].value) made[i] = array_of(out[i].value);
      api().value->release(out[i].value);
    }
    return made;
  }

  // Names of the nodes that providers ran in the last run.
  std::set<std::string> ran() {
    pfrt_report* raw = nullptr;
    EXPECT_TRUE(ok(api().session->explain(session_.get(), &raw)));
    const Handle<pfrt_report> report(raw);
    std::set<std::string> out;
    for (size_t i = 0; i < api().report->row_count(raw); ++i) {
      pfrt_report_row row{};
      row.struct_size = sizeof row;
      EXPECT_TRUE(ok(api().report->row_at(raw, i, &row)));
      if (row.measured_ns > 0) out.insert(text(row.nodes));
    }
    return out;
  }

  const Handle<pfrt_env> env_ = make_env({{"plugin_path", PFRT_DEVICE_PLUGINS}});
  Handle<pfrt_session> session_;
};

// Products p0 to p3 of x and constants, and c = -x.
GraphBuilder products() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 4});
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i);
    g.constant("w" + n, floats({4, 4}, std::vector<float>(16, static_cast<float>(i) + 0.5f)));
    g.node("MatMul", {"x", "w" + n}, {"p" + n}, {}, "product" + n);
    g.output("p" + n);
  }
  g.node("Neg", {"x"}, {"c"}, {}, "cheap");
  g.output("c");
  return g;
}

const Array kFour = floats({1, 4}, {1, 2, 3, -4});

TEST_F(Unwanted, outputs_cost_nothing) {
  check_subsets(products(), {kFour});
  run_some({kFour}, 5, 1u << 4);
  EXPECT_EQ(ran(), std::set<std::string>{"cheap"});
  run_some({kFour}, 5, 1u << 2 | 1u << 4);
  EXPECT_EQ(ran(), (std::set<std::string>{"product2", "cheap"}));
  run_some({kFour}, 5, 31);
  EXPECT_EQ(ran().size(), 5u);
}

TEST_F(Unwanted, outputs_may_be_inside_of_a_chain) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 4});
  g.node("Softmax", {"x"}, {"a"}, {}, "first");
  g.node("ReduceMax", {"a"}, {"b"}, {}, "second");
  g.node("ReduceSum", {"x"}, {"d"}, {}, "aside");
  g.node("Mul", {"a", "b"}, {"c"}, {}, "third");
  for (const char* output : {"a", "b", "c", "d"}) g.output(output);
  check_subsets(g, {kFour});
  run_some({kFour}, 4, 1u << 1);
  EXPECT_EQ(ran(), (std::set<std::string>{"first", "second"}));
  run_some({kFour}, 4, 1u << 3);
  EXPECT_EQ(ran(), std::set<std::string>{"aside"});
}

TEST_F(Unwanted, outputs_of_one_node_with_others) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {1, 4});
  g.constant("k", int64s({1}, {2}));
  g.node("TopK", {"x", "k"}, {"values", "at"});
  g.node("Split", {"x"}, {"l", "r"}, {Attr::of_int("axis", 1), Attr::of_int("num_outputs", 2)});
  g.node("Exp", {"l"}, {"e"});
  for (const char* output : {"values", "at", "l", "r", "e"}) g.output(output);
  check_subsets(g, {kFour});
}

// The graph has dimensions that only the run knows, and operators of the host.
TEST_F(Unwanted, outputs_of_segments) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 4});
  g.node("Relu", {"x"}, {"r"});
  g.node("NonZero", {"r"}, {"at"});
  g.node("Cast", {"at"}, {"f"}, {Attr::of_int("to", PFRT_DTYPE_FLOAT32)});
  g.node("Exp", {"f"}, {"e"});
  g.node("SequenceConstruct", {"r", "x"}, {"s"});
  g.constant("one", int64s({}, {1}));
  g.node("SequenceAt", {"s", "one"}, {"second"});
  g.node("Neg", {"second"}, {"n"});
  for (const char* output : {"e", "n", "at", "r"}) g.output(output);
  check_subsets(g, {kFour});
}

TEST_F(Unwanted, outputs_of_a_device_that_works_behind_the_caller) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Add", {"x", "x"}, {"a"});
  g.node("Abs", {"a"}, {"b"});  // runs on the CPU
  g.node("Neg", {"b"}, {"c"});
  g.node("Mul", {"c", "a"}, {"y"});
  for (const char* output : {"a", "b", "c", "y"}) g.output(output);
  for (const char* device : {"Device", "Fenced"})
    check_subsets(g, {floats({3}, {1, -2, 3})},
                  {{"providers", std::string(device) + "ExecutionProvider,CPUExecutionProvider"}});
}

TEST_F(Unwanted, outputs_in_memory_of_the_caller) {
  const auto session = make_session(env_.get(), products());
  std::vector<float> room(4);
  pfrt_io in = kFour.io(), out[5] = {};
  for (pfrt_io& io : out) {
    io.struct_size = sizeof io;
    io.flags = PFRT_IO_SKIP;
  }
  out[4].flags = 0;
  out[4].tensor.struct_size = sizeof(pfrt_tensor);
  out[4].tensor.data = room.data();
  out[4].tensor.bytes = 16;
  ASSERT_TRUE(ok(api().session->run(session.get(), &in, 1, out, 5, nullptr)));
  EXPECT_EQ(room, (std::vector<float>{-1, -2, -3, 4}));
}

// A node may make outputs that have no size before the run and that nobody reads.
TEST_F(Unwanted, outputs_of_unknown_size_that_nobody_reads) {
  struct Case {
    const char* op;
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    std::string read = {};  // the value to read; "" = none
    std::vector<int64_t> wanted = {};
  };
  const std::vector<Case> cases = {
      {"Unique", {"x"}, {"values", "first", "inverse", "counts"}, "counts", {1, 2, 2}},
      {"Unique", {"x"}, {"values", "first", "inverse", "counts"}, "inverse", {1, 0, 2, 1, 2}},
      {"Unique", {"x"}, {"values", "first", "inverse", "counts"}, "first", {1, 0, 2}},
      {"Unique", {"x"}, {"values", "first"}},
      {"NonZero", {"x"}, {"found"}},
      {"Compress", {"x", "mask"}, {"kept"}},
      {"NonMaxSuppression", {"boxes", "scores", "most"}, {"chosen"}}};
  const std::vector<Array> inputs = {floats({5}, {1, 0, 3, 1, 3})};
  const auto add = [&](GraphBuilder& g, const Case& of) {
    g.node(of.op, of.inputs, of.outputs);
    if (!of.read.empty()) g.output(of.read);
    g.node("Neg", {"x"}, {"y"});
    g.output("y");
  };
  for (const Case& of : cases) {
    SCOPED_TRACE(of.op + (" " + of.read));
    for (const bool in_body : {false, true}) {
      GraphBuilder g;
      g.input("x", PFRT_DTYPE_FLOAT32, {"P"});
      g.constant("mask", {PFRT_DTYPE_BOOL, {2}, {1, 1}});
      g.constant("boxes", floats({1, 1, 4}, {0, 0, 1, 1}));
      g.constant("scores", floats({1, 1, 1}, {1}));
      g.constant("most", int64s({1}, {3}));
      if (in_body) {
        GraphBuilder then(g, "then"), other(g, "other");
        add(then, of);
        add(other, of);
        g.constant("condition", {PFRT_DTYPE_BOOL, {}, {1}});
        std::vector<std::string> outputs{"y_out"};
        if (!of.read.empty()) outputs.insert(outputs.begin(), "read_out");
        g.node("If", {"condition"}, outputs,
               {Attr::of_graph("then_branch", then.get()),
                Attr::of_graph("else_branch", other.get())});
        for (const std::string& name : outputs) g.output(name);
      } else {
        add(g, of);
      }
      for (const char* level : {"none", "all"}) {
        SCOPED_TRACE(level);
        const auto options = make_options(PFRT_OPTIONS_SESSION, {{"optimization_level", level}});
        const std::vector<Array> out =
            run(make_session(env_.get(), g, options.get()).get(), inputs);
        ASSERT_EQ(out.size(), of.read.empty() ? 1U : 2U);
        EXPECT_EQ(out.back().as<float>()[2], -3.0F);
        if (of.read.empty()) continue;
        ASSERT_EQ(out[0].dims, (std::vector<int64_t>{static_cast<int64_t>(of.wanted.size())}));
        for (size_t i = 0; i < of.wanted.size(); ++i)
          EXPECT_EQ(out[0].as<int64_t>()[i], of.wanted[i]) << i;
      }
    }
  }
}

}  // namespace
}  // namespace pfrt_test

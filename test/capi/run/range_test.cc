// SPDX-License-Identifier: Apache-2.0
//
// Plans for a range of a dimension: a dimension that grows from run to run is planned twice, and
// every run has the bits of a session that was made for that run alone.
#include <thread>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

pfrt_session_statistics statistics_of(const pfrt_session* session) {
  pfrt_session_statistics out{};
  out.struct_size = sizeof out;
  EXPECT_TRUE(ok(api().session->statistics(session, &out)));
  return out;
}

uint64_t plans_of(const pfrt_session* session) { return statistics_of(session).plans; }

constexpr int64_t kHeads = 2, kSize = 8;

// A graph with inputs past [1, 2, P, 8] and x [1, 2, 1, 8].
struct Growing {
  const char* name;
  void (*add)(GraphBuilder& g);
};

void add_attention(GraphBuilder& g) {
  g.node("Concat", {"past", "x"}, {"present"}, {Attr::of_int("axis", 2)});
  g.node("Transpose", {"present"}, {"keys"}, {Attr::of_ints("perm", {0, 1, 3, 2})});
  g.node("MatMul", {"x", "keys"}, {"scores"});
  g.constant("scale", floats({}, {0.35F}));
  g.node("Mul", {"scores", "scale"}, {"scaled"});
  g.node("Softmax", {"scaled"}, {"weights"}, {Attr::of_int("axis", -1)});
  g.node("MatMul", {"weights", "present"}, {"y"});
  g.output("y");
  g.output("present");
}

// Dimensions that a value decides, where the value is computed from a dimension.
void add_shapes(GraphBuilder& g) {
  g.node("Shape", {"past"}, {"dims"});
  g.constant("two", int64s({1}, {2}));
  g.constant("half", int64s({1}, {2}));
  g.constant("zero", int64s({1}, {0}));
  g.constant("flat", int64s({2}, {-1, kSize}));
  g.node("Gather", {"dims", "two"}, {"length"});
  g.node("Div", {"length", "half"}, {"end"});
  g.node("Slice", {"past", "zero", "end", "two"}, {"first_half"});
  g.node("Reshape", {"first_half", "flat"}, {"rows"});
  g.node("Relu", {"rows"}, {"positive"});
  g.node("Reshape", {"past", "flat"}, {"all_rows"});
  g.node("Concat", {"all_rows", "positive"}, {"y"}, {Attr::of_int("axis", 0)});
  g.output("y");
  g.output("length");
}

void add_elementwise(GraphBuilder& g) {
  g.node("Mul", {"past", "x"}, {"product"});
  g.node("Sigmoid", {"product"}, {"gate"});
  g.node("Add", {"gate", "past"}, {"sum"});
  g.constant("axis", int64s({1}, {2}));
  g.node("ReduceMean", {"sum", "axis"}, {"mean"}, {Attr::of_int("keepdims", 1)});
  g.node("Sub", {"sum", "mean"}, {"centred"});
  g.node("Abs", {"centred"}, {"y"});
  g.output("y");
  g.output("mean");
}

// Rows get another shape without a copy, and are then transposed.
void add_renamed(GraphBuilder& g) {
  g.constant("axes", int64s({1}, {0}));
  g.node("Squeeze", {"past", "axes"}, {"three"});
  g.node("Transpose", {"three"}, {"turned"}, {Attr::of_ints("perm", {1, 0, 2})});
  g.constant("flat", int64s({2}, {0, -1}));
  g.node("Reshape", {"turned", "flat"}, {"rows"});
  g.node("LayerNormalization", {"rows", "scale"}, {"normal"});
  g.constant("scale", noise({kHeads * kSize}, 5));
  g.node("Exp", {"normal"}, {"y"});
  g.output("y");
  g.output("rows");
}

// Places come from a table that is longer than any run.
void add_mask(GraphBuilder& g) {
  g.node("Concat", {"past", "x"}, {"present"}, {Attr::of_int("axis", 2)});
  g.node("Shape", {"present"}, {"dims"}, {Attr::of_int("start", 2), Attr::of_int("end", 3)});
  g.constant("zero", int64s({1}, {0}));
  g.constant("table", noise({64, kSize}, 6));
  g.node("Slice", {"table", "zero", "dims", "zero"}, {"places"});
  g.node("Add", {"present", "places"}, {"placed"});
  g.node("Softmax", {"placed"}, {"y"}, {Attr::of_int("axis", 2)});
  g.output("y");
  g.output("present");
}

// A node takes a value twice, inside a fused step, and another node takes it outside.
void add_squared(GraphBuilder& g) {
  g.node("Add", {"past", "x"}, {"sum"});
  g.node("Mul", {"sum", "sum"}, {"square"});
  g.node("Exp", {"square"}, {"e"});
  g.node("Dropout", {"sum"}, {"y"});
  g.node("Softmax", {"e"}, {"soft"}, {Attr::of_int("axis", 2)});
  g.output("y");
  g.output("soft");
}

class Ranges : public testing::TestWithParam<Growing> {
 protected:
  static GraphBuilder graph(const Growing& of) {
    GraphBuilder g;
    g.input("past", PFRT_DTYPE_FLOAT32, {1, kHeads, "P", kSize});
    g.input("x", PFRT_DTYPE_FLOAT32, {1, kHeads, 1, kSize});
    of.add(g);
    return g;
  }
  static std::vector<Array> inputs(int64_t past) {
    return {noise({1, kHeads, past, kSize}, static_cast<uint32_t>(past)),
            noise({1, kHeads, 1, kSize}, static_cast<uint32_t>(past) + 1000)};
  }
  // Computes with a new session.
  std::vector<Array> alone(const std::vector<Array>& inputs) {
    const auto session = make_session(env_.get(), graph(GetParam()));
    return run(session.get(), inputs);
  }
  void expect_same(pfrt_session* session, int64_t past) {
    const std::vector<Array> in = inputs(past), got = run(session, in), want = alone(in);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].dims, want[i].dims) << "length " << past << ", output " << i;
      EXPECT_EQ(got[i].bytes, want[i].bytes) << "length " << past << ", output " << i;
    }
  }
  Handle<pfrt_env> env_ = make_env();
};

TEST_P(Ranges, grow_without_a_new_plan) {
  const auto session = make_session(env_.get(), graph(GetParam()));
  for (int64_t past = 0; past < 40; ++past) {
    expect_same(session.get(), past);
    EXPECT_LE(plans_of(session.get()), 2U) << "length " << past;
  }
  expect_same(session.get(), 7);
  expect_same(session.get(), 0);
  expect_same(session.get(), 1);
  EXPECT_EQ(plans_of(session.get()), 2U) << "going back is no new plan either";
}

TEST_P(Ranges, serve_threads_at_different_lengths) {
  const auto session = make_session(env_.get(), graph(GetParam()));
  for (const int64_t past : {3, 4}) expect_same(session.get(), past);
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int64_t past = 5 + t; past < 40; past += 3) expect_same(session.get(), past);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(plans_of(session.get()), 2U);
}

INSTANTIATE_TEST_SUITE_P(All, Ranges,
                         testing::Values(Growing{"attention", add_attention},
                                         Growing{"shapes", add_shapes},
                                         Growing{"elementwise", add_elementwise},
                                         Growing{"renamed", add_renamed}, Growing{"mask", add_mask},
                                         Growing{"squared", add_squared}),
                         [](const auto& of) { return std::string(of.param.name); });

// Operators on x [P] whose outputs have a size that only a run can tell.
struct Counting {
  const char* name;
  void (*add)(GraphBuilder& g);
};

void add_non_zero(GraphBuilder& g) {
  g.node("Greater", {"x", "zero"}, {"mask"});
  g.node("NonZero", {"mask"}, {"found"});
  g.node("Transpose", {"found"}, {"places"});
  g.node("GatherND", {"x", "places"}, {"y"});
  g.output("y");
}

void add_compress(GraphBuilder& g) {
  g.node("Less", {"x", "zero"}, {"mask"});
  g.node("Exp", {"x"}, {"e"});
  g.node("Compress", {"e", "mask"}, {"kept"}, {Attr::of_int("axis", 0)});
  g.node("Neg", {"kept"}, {"y"});
  g.output("y");
}

void add_unique(GraphBuilder& g) {
  g.node("Abs", {"x"}, {"a"});
  g.node("Floor", {"a"}, {"whole"});
  g.node("Unique", {"whole"}, {"values", "first", "inverse", "counts"});
  g.output("values");
  g.output("inverse");
  g.output("counts");
}

void add_suppression(GraphBuilder& g) {
  g.constant("corners", int64s({3}, {1, -1, 1}));
  g.node("Abs", {"x"}, {"size"});
  g.node("Reshape", {"size", "corners"}, {"high"});
  g.node("Neg", {"high"}, {"low"});
  g.node("Concat", {"low", "low", "high", "high"}, {"boxes"}, {Attr::of_int("axis", 2)});
  g.constant("row", int64s({3}, {1, 1, -1}));
  g.node("Reshape", {"x", "row"}, {"scores"});
  g.constant("most", int64s({1}, {100}));
  g.constant("overlap", floats({1}, {0.5F}));
  g.node("NonMaxSuppression", {"boxes", "scores", "most", "overlap"}, {"y"});
  g.output("y");
}

void add_branch(GraphBuilder& g) {
  g.node("ReduceSum", {"x"}, {"sum"}, {Attr::of_int("keepdims", 0)});
  g.node("Greater", {"sum", "zero"}, {"condition"});
  GraphBuilder positive(g, "positive"), negative(g, "negative");
  positive.node("NonZero", {"x"}, {"then"});
  positive.output("then");
  negative.node("Relu", {"x"}, {"r"});
  negative.node("NonZero", {"r"}, {"else"});
  negative.output("else");
  g.node("If", {"condition"}, {"y"},
         {Attr::of_graph("then_branch", positive.get()),
          Attr::of_graph("else_branch", negative.get())});
  g.output("y");
}

class CountingRanges : public testing::TestWithParam<Counting> {
 protected:
  void expect_same_for(const Settings& words) {
    GraphBuilder g;
    g.input("x", PFRT_DTYPE_FLOAT32, {"P"});
    g.constant("zero", floats({}, {0}));
    GetParam().add(g);
    const auto options = make_options(PFRT_OPTIONS_SESSION, words);
    const auto session = make_session(env_.get(), g, options.get());
    for (const int64_t p : {4, 5, 6, 9, 2, 3, 0, 40, 41, 7, 4100, 1}) {
      SCOPED_TRACE(p);
      const std::vector<Array> in = {noise({p}, static_cast<uint32_t>(p))};
      const std::vector<Array> got = run(session.get(), in);
      const std::vector<Array> want = run(make_session(env_.get(), g).get(), in);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].dims, want[i].dims) << "output " << i;
        EXPECT_EQ(got[i].bytes, want[i].bytes) << "output " << i;
      }
    }
  }
  Handle<pfrt_env> env_ = make_env();
};

TEST_P(CountingRanges, grow_and_shrink) {
  for (const char* level : {"none", "all"}) {
    SCOPED_TRACE(level);
    expect_same_for({{"optimization_level", level}});
  }
}

TEST_P(CountingRanges, grow_and_shrink_on_threads) { expect_same_for({{"num_threads", "3"}}); }

INSTANTIATE_TEST_SUITE_P(All, CountingRanges,
                         testing::Values(Counting{"non_zero", add_non_zero},
                                         Counting{"compress", add_compress},
                                         Counting{"unique", add_unique},
                                         Counting{"suppression", add_suppression},
                                         Counting{"branch", add_branch}),
                         [](const auto& of) { return std::string(of.param.name); });

class Range : public testing::Test {
 protected:
  Handle<pfrt_env> env_ = make_env();
};

// A product with weights gets a plan for each size.
TEST_F(Range, is_not_made_of_what_is_multiplied_by_weights) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 1024});
  g.constant("w", noise({1024, 1024}, 1));
  g.node("MatMul", {"x", "w"}, {"y"});
  g.output("y");
  const auto session = make_session(env_.get(), g);
  for (int64_t n = 1; n <= 5; ++n) run(session.get(), {noise({n, 1024}, 2)});
  EXPECT_EQ(plans_of(session.get()), 5U);
}

// The model is valid at 5 alone (and at 1, by broadcasting); a plan for a range must not hide that.
TEST_F(Range, leaves_the_models_faults_as_they_are) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"P"});
  g.input("z", PFRT_DTYPE_FLOAT32, {"Q"});
  g.node("Exp", {"x"}, {"e"});
  g.node("Add", {"e", "z"}, {"y"});
  g.output("y");
  const auto session = make_session(env_.get(), g);
  const Array z = noise({5}, 3);
  for (int64_t p = 1; p <= 8; ++p) {
    std::vector<Array> out;
    const Failure failure = try_run(session.get(), {noise({p}, 4), z}, &out);
    if (p == 1 || p == 5) {
      ASSERT_TRUE(ok(failure)) << p;
      EXPECT_EQ(out[0].dims, std::vector<int64_t>{5});
    } else {
      EXPECT_TRUE(fails(failure, PFRT_CODE_SHAPE_MISMATCH, {"Add"})) << p;
    }
  }
}

// A dimension of the output grows with P, except at a single length that is special.
TEST_F(Range, holds_only_what_the_model_says_there) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"P", 2});
  g.node("Shape", {"x"}, {"dims"}, {Attr::of_int("end", 1)});
  g.constant("special", int64s({1}, {7}));
  g.constant("one", int64s({1}, {1}));
  g.constant("zero", int64s({1}, {0}));
  g.node("Equal", {"dims", "special"}, {"is_seven"});
  g.node("Where", {"is_seven", "one", "dims"}, {"end"});
  g.node("Slice", {"x", "zero", "end", "zero"}, {"part"});
  g.node("Neg", {"part"}, {"y"});
  g.output("y");
  const auto session = make_session(env_.get(), g);
  for (int64_t p = 1; p <= 20; ++p) {
    const Array x = noise({p, 2}, static_cast<uint32_t>(p));
    const auto out = run(session.get(), {x});
    const int64_t rows = p == 7 ? 1 : p;
    ASSERT_EQ(out[0].dims, (std::vector<int64_t>{rows, 2})) << p;
    for (size_t i = 0; i < static_cast<size_t>(2 * rows); ++i)
      EXPECT_EQ(out[0].as<float>()[i], -x.as<float>()[i]) << p;
  }
}

// Memory for the far end of a range would be 64 MiB.
TEST_F(Range, takes_little_more_memory_than_a_plan_of_its_own) {
  const RunDesc options({.memory_limit = 2097152});
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"P", 1});
  g.input("z", PFRT_DTYPE_FLOAT32, {1, "P"});
  g.node("Mul", {"x", "z"}, {"square"});
  g.node("Softmax", {"square"}, {"soft"}, {Attr::of_int("axis", 0)});
  g.constant("axis", int64s({1}, {1}));
  g.node("ReduceMax", {"soft", "axis"}, {"y"});
  g.output("y");
  const auto session = make_session(env_.get(), g);
  for (int64_t p = 100; p < 120; ++p)
    ASSERT_TRUE(
        ok(try_run(session.get(), {noise({p, 1}, 8), noise({1, p}, 9)}, nullptr, options.get())))
        << p;
  EXPECT_LE(plans_of(session.get()), 6U);
}

TEST_F(Range, goes_on_where_it_ended) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"P"});
  g.node("Exp", {"x"}, {"e"});
  g.node("Neg", {"e"}, {"y"});
  g.output("y");
  const auto session = make_session(env_.get(), g);
  for (const int64_t p : {1, 2, 4096, 4097, 5000, 16000, 3}) {
    const Array x = noise({p}, static_cast<uint32_t>(p));
    const auto fresh = make_session(env_.get(), g);
    EXPECT_EQ(run(session.get(), {x})[0].bytes, run(fresh.get(), {x})[0].bytes) << p;
  }
  EXPECT_EQ(plans_of(session.get()), 3U);
}

TEST_F(Range, gives_unwanted_outputs_no_work_and_given_memory_the_result) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"P"});
  g.node("Exp", {"x"}, {"y"});
  g.node("Neg", {"x"}, {"z"});
  g.output("y");
  g.output("z");
  const auto session = make_session(env_.get(), g);
  for (int64_t p = 1; p < 10; ++p) {
    const Array x = noise({p}, static_cast<uint32_t>(p));
    const pfrt_io in = x.io();
    Array mine = noise({p}, 0);
    pfrt_io out[2] = {{}, mine.io()};
    out[0].struct_size = sizeof out[0];
    out[0].flags = PFRT_IO_SKIP;
    ASSERT_TRUE(ok(api().session->run(session.get(), &in, 1, out, 2, nullptr))) << p;
    for (size_t i = 0; i < static_cast<size_t>(p); ++i)
      EXPECT_EQ(mine.as<float>()[i], -x.as<float>()[i]);
  }
  EXPECT_EQ(plans_of(session.get()), 2U);
}

}  // namespace
}  // namespace pfrt_test

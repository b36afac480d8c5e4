// SPDX-License-Identifier: Apache-2.0
//
// An output in the memory of an input, such as a cache that a step writes into.
#include "test/capi/client.h"

namespace pfrt_test {
namespace {

constexpr int64_t kRoom = 4096, kWide = 64;

// present = past with |x| written at |at|.
GraphBuilder scattered_cache() {
  GraphBuilder g;
  g.input("past", PFRT_DTYPE_FLOAT32, {1, 1, kRoom, kWide});
  g.input("x", PFRT_DTYPE_FLOAT32, {1, 1, "T", kWide});
  g.input("at", PFRT_DTYPE_INT64, {1});
  g.node("TensorScatter", {"past", "x", "at"}, {"present"});
  g.output("present");
  return g;
}

class InPlace : public testing::Test {
 protected:
  // Runs with output 0 in the memory of |cache|, which is input 0.
  static Failure step(pfrt_session* session, Array& cache, const Array& x, int64_t at,
                      const pfrt_run_desc* desc = nullptr, pfrt_io_flags flags = PFRT_IO_IN_PLACE) {
    const Array place = int64s({1}, {at});
    const pfrt_io in[3] = {cache.io(), x.io(), place.io()};
    pfrt_io out = cache.io();
    out.flags = flags;
    return take(api().session->run(session, in, 3, &out, 1, desc));
  }
  Handle<pfrt_env> env_ = make_env();
};

TEST_F(InPlace, a_cache_is_written_where_it_is) {
  const auto session = make_session(env_.get(), scattered_cache());
  Array here = noise({1, 1, kRoom, kWide}, 1), elsewhere = here;
  // The limit leaves no memory for a copy.
  const RunDesc options({.memory_limit = 262144});
  for (const auto& [at, count] : {std::pair<int64_t, int64_t>{0, 1}, {7, 1}, {4000, 96}, {12, 3}}) {
    const Array x = noise({1, 1, count, kWide}, static_cast<uint32_t>(at + 5));
    ASSERT_TRUE(ok(step(session.get(), here, x, at, options.get()))) << at;
    elsewhere.bytes = run(session.get(), {elsewhere, x, int64s({1}, {at})})[0].bytes;
    EXPECT_EQ(here.bytes, elsewhere.bytes) << at;
  }
  EXPECT_TRUE(fails(step(session.get(), here, noise({1, 1, 2, kWide}, 1), kRoom - 1),
                    PFRT_CODE_INVALID_ARGUMENT, {"write_indices"}));
  EXPECT_EQ(here.bytes, elsewhere.bytes) << "it refused before it wrote";
}

TEST_F(InPlace, is_asked_for) {
  const auto session = make_session(env_.get(), scattered_cache());
  Array here = noise({1, 1, kRoom, kWide}, 1);
  EXPECT_TRUE(fails(step(session.get(), here, noise({1, 1, 1, kWide}, 2), 0, nullptr, 0),
                    PFRT_CODE_INVALID_ARGUMENT, {"'present'", "overlaps"}));
}

// The results equal those with separate memory, whether the old contents are read later or not.
TEST_F(InPlace, has_the_results_of_memory_apart) {
  GraphBuilder g;
  g.input("past", PFRT_DTYPE_FLOAT32, {300});
  g.node("Exp", {"past"}, {"present"});
  g.node("Neg", {"past"}, {"before"});
  g.node("Sub", {"present", "before"}, {"y"});
  g.output("present");
  g.output("y");
  for (const char* level : {"none", "all"}) {
    const auto options = make_options(PFRT_OPTIONS_SESSION, {{"optimization_level", level}});
    const auto session = make_session(env_.get(), g, options.get());
    Array here = noise({300}, 4);
    const auto want = run(session.get(), {here});
    const pfrt_io in = here.io();
    pfrt_io out[2] = {here.io(), {}};
    out[0].flags = PFRT_IO_IN_PLACE;
    out[1].struct_size = sizeof out[1];
    ASSERT_TRUE(ok(api().session->run(session.get(), &in, 1, out, 2, nullptr)));
    const Handle<pfrt_value> y(out[1].value);
    EXPECT_EQ(here.bytes, want[0].bytes) << level;
    EXPECT_EQ(array_of(y.get()).bytes, want[1].bytes) << level;
  }
}

// Another session's idle memory could be given back, so that a second attempt would succeed: on
// what the first one has overwritten.
TEST_F(InPlace, a_run_that_has_overwritten_its_input_is_not_tried_again) {
  constexpr int64_t kIdle = 2'000'000, kLength = 1024;
  const auto env = make_env({{"memory_limit", "60000000"}});
  GraphBuilder large;
  large.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  large.constant("axis", int64s({}, {0}));
  large.node("Exp", {"x"}, {"a"});
  large.node("CumSum", {"a", "axis"}, {"c"});
  large.node("Mul", {"c", "a"}, {"m"});
  large.node("ReduceSum", {"m"}, {"y"}, {Attr::of_int("keepdims", 0)});
  large.output("y");
  const auto other = make_session(env.get(), large);
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {kLength});
  g.constant("one", floats({1}, {1}));
  g.constant("times", int64s({1}, {3000}));
  g.node("Add", {"x", "one"}, {"y"});
  g.node("SequenceConstruct", {"y", "y"}, {"s"});
  g.node("ConcatFromSequence", {"s"}, {"c"}, {Attr::of_int("axis", 0)});
  g.node("Tile", {"c", "times"}, {"z"});
  g.output("y");
  g.output("z");
  const auto session = make_session(env.get(), g);
  const auto attempt = [&](Array& x) {
    const pfrt_io in = x.io();
    pfrt_io out[2] = {x.io(), {}};
    out[0].flags = PFRT_IO_IN_PLACE;
    out[1].struct_size = sizeof out[1];
    Failure failure = take(api().session->run(session.get(), &in, 1, out, 2, nullptr));
    const Handle<pfrt_value> z(out[1].value);
    if (failure.ok()) {
      EXPECT_EQ(array_of(z.get()).as<float>()[0], 6);
    }
    return failure;
  };
  const std::vector<float> fives(kLength, 5), sixes(kLength, 6);
  (void)run(other.get(), {noise({kIdle}, 3)});
  Array x = floats({kLength}, fives);
  EXPECT_TRUE(fails(attempt(x), PFRT_CODE_OUT_OF_MEMORY, {"not tried again"}));
  // The memory has been given back meanwhile.
  x = floats({kLength}, fives);
  ASSERT_TRUE(ok(attempt(x)));
  EXPECT_EQ(x.as<float>(), sixes);
}

TEST_F(InPlace, takes_no_memory_that_is_of_several_or_of_a_part) {
  GraphBuilder g;
  g.input("a", PFRT_DTYPE_FLOAT32, {4});
  g.input("b", PFRT_DTYPE_FLOAT32, {4});
  g.node("Add", {"a", "b"}, {"y"});
  g.output("y");
  const auto session = make_session(env_.get(), g);
  Array memory = floats({8}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Array shape = floats({4}, {0, 0, 0, 0});
  const auto view = [&](size_t first) {
    pfrt_io io = shape.io();
    io.tensor.data = memory.bytes.data() + first * sizeof(float);
    return io;
  };
  const auto attempt = [&](size_t a, size_t b, size_t y) {
    const pfrt_io in[2] = {view(a), view(b)};
    pfrt_io out = view(y);
    out.flags = PFRT_IO_IN_PLACE;
    return take(api().session->run(session.get(), in, 2, &out, 1, nullptr));
  };
  EXPECT_TRUE(fails(attempt(0, 0, 0), PFRT_CODE_INVALID_ARGUMENT, {"overlaps"}));
  EXPECT_TRUE(fails(attempt(0, 4, 2), PFRT_CODE_INVALID_ARGUMENT, {"overlaps"}));
  ASSERT_TRUE(ok(attempt(0, 4, 0)));
  ASSERT_TRUE(ok(attempt(0, 4, 4)));
  EXPECT_EQ(memory.as<float>(), (std::vector<float>{6, 8, 10, 12, 11, 14, 17, 20}));
}

}  // namespace
}  // namespace pfrt_test

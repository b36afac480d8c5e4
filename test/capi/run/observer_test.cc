// SPDX-License-Identifier: Apache-2.0
//
// Observers, which see values that a session gives besides its model's outputs.
#include <future>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

struct Seen {
  std::vector<std::pair<std::string, std::vector<float>>> values;
  pfrt_code answer = PFRT_CODE_OK;
  bool throws = false;

  static pfrt_code see(void* user, pfrt_string name, pfrt_value* value) {
    auto& self = *static_cast<Seen*>(user);
    self.values.emplace_back(text(name), array_of(value).as<float>());
    if (self.throws) throw 7;
    return self.answer;
  }
};

// y = 2 relu(x + 1) - 3, in four nodes.
GraphBuilder chain() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.constant("one", floats({}, {1}));
  g.constant("two", floats({}, {2}));
  g.constant("three", floats({}, {3}));
  g.node("Add", {"x", "one"}, {"a"});
  g.node("Relu", {"a"}, {"b"});
  g.node("Mul", {"b", "two"}, {"c"});
  g.node("Sub", {"c", "three"}, {"y"});
  g.output("y");
  return g;
}

class Observer : public testing::Test {
 protected:
  RunDesc observed(Seen& seen, pfrt_state* state = nullptr) {
    return RunDesc({.state = state, .observe = Seen::see, .observe_user = &seen});
  }
  // Runs for the model's own output alone; the extra outputs are left out.
  Failure step(pfrt_session* session, const pfrt_run_desc* desc, float x, float* y) {
    const Array in = floats({2}, {x, -9});
    const pfrt_io fed = in.io();
    pfrt_io out[3] = {};
    for (pfrt_io& io : out) io.struct_size = sizeof io;
    out[1].flags = out[2].flags = PFRT_IO_SKIP;
    Failure failure = take(api().session->run(session, &fed, 1, out, 3, desc));
    const Handle<pfrt_value> value(out[0].value);
    if (failure.ok()) *y = array_of(value.get()).as<float>()[0];
    EXPECT_EQ(out[1].value, nullptr);
    return failure;
  }
  Handle<pfrt_env> env_ = make_env();
};

TEST_F(Observer, sees_values_that_the_run_does_not_return) {
  const auto session = make_session(env_.get(), chain(), nullptr, {"a", "c"});
  Seen seen;
  RunDesc options = observed(seen);
  float y = 0;
  ASSERT_TRUE(ok(step(session.get(), options.get(), 4, &y)));
  EXPECT_EQ(y, 7);
  ASSERT_EQ(seen.values.size(), 2U);
  EXPECT_EQ(seen.values[0].first, "a");
  EXPECT_EQ(seen.values[0].second, (std::vector<float>{5, -8}));
  EXPECT_EQ(seen.values[1].first, "c");
  EXPECT_EQ(seen.values[1].second, (std::vector<float>{10, 0}));
  options.observe = nullptr;
  ASSERT_TRUE(ok(step(session.get(), options.get(), 4, &y)));
  EXPECT_EQ(seen.values.size(), 2U);
}

// Values that nobody observes are fused as without observers: here b with c, and y.
TEST_F(Observer, leaves_other_values_fused) {
  const auto steps_of = [&](const std::vector<std::string>& extra) {
    const auto session = make_session(env_.get(), chain(), nullptr, extra);
    run(session.get(), {floats({2}, {1, 2})});
    pfrt_report* report = nullptr;
    EXPECT_TRUE(ok(api().session->explain(session.get(), &report)));
    const Handle<pfrt_report> own(report);
    return api().report->row_count(report);
  };
  EXPECT_EQ(steps_of({}), 1U);
  EXPECT_LE(steps_of({"b"}), 2U);
}

TEST_F(Observer, may_end_the_run) {
  const auto session = make_session(env_.get(), chain(), nullptr, {"a", "c"});
  Seen seen;
  seen.answer = PFRT_CODE_CANCELLED;
  const auto options = observed(seen);
  float y = 0;
  EXPECT_TRUE(fails(step(session.get(), options.get(), 1, &y), PFRT_CODE_CANCELLED,
                    {"the observer of 'a' ended the run"}));
  EXPECT_EQ(seen.values.size(), 1U);
  seen.throws = true;
  EXPECT_TRUE(fails(step(session.get(), options.get(), 1, &y), PFRT_CODE_INTERNAL,
                    {"the observer of 'a' threw"}));
  seen.throws = false;
  seen.answer = PFRT_CODE_OK;
  EXPECT_TRUE(ok(step(session.get(), options.get(), 1, &y)));
}

TEST_F(Observer, sees_asynchronous_runs_and_those_with_a_state) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.input("h", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Add", {"x", "h"}, {"h_out"});
  g.node("Neg", {"h_out"}, {"inner"});
  g.node("Abs", {"inner"}, {"y"});
  g.output("y");
  g.output("h_out");
  const auto session = make_session(env_.get(), g, nullptr, {"inner"});
  pfrt_state* state = nullptr;
  ASSERT_TRUE(ok(api().state->create(session.get(), nullptr, 0, &state)));
  Seen seen;
  const auto options = observed(seen, state);
  const pfrt_string in = str("x"), out = str("y");
  for (int i = 0; i < 3; ++i) {
    const Array x = floats({1}, {2});
    const pfrt_io fed = x.io();
    pfrt_io result{};
    result.struct_size = sizeof result;
    ASSERT_TRUE(
        ok(api().session->run_named(session.get(), &in, &fed, 1, &out, &result, 1, options.get())));
    api().value->release(result.value);
  }
  api().state->release(state);
  ASSERT_EQ(seen.values.size(), 3U);
  EXPECT_EQ(seen.values[2].second, std::vector<float>{-6});

  const auto plain = make_session(env_.get(), chain(), nullptr, {"a"});
  Seen later;
  const auto async = observed(later);
  const Array x = floats({1}, {1});
  const pfrt_io fed = x.io();
  pfrt_io outputs[2] = {};
  for (pfrt_io& io : outputs) io.struct_size = sizeof io;
  std::promise<pfrt_code> done;
  ASSERT_TRUE(ok(api().session->run_async(
      plain.get(), &fed, 1, outputs, 2, async.get(),
      [](void* user, pfrt_status* status, pfrt_io* values, size_t count) {
        const pfrt_code code = take(status).code;
        for (size_t i = 0; i < count; ++i) api().value->release(values[i].value);
        static_cast<std::promise<pfrt_code>*>(user)->set_value(code);
      },
      &done)));
  EXPECT_EQ(done.get_future().get(), uint32_t{PFRT_CODE_OK});
  ASSERT_EQ(later.values.size(), 1U);
  EXPECT_EQ(later.values[0].second, std::vector<float>{2});
}

}  // namespace
}  // namespace pfrt_test

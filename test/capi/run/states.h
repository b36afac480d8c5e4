// SPDX-License-Identifier: Apache-2.0
//
// States and models for their tests: sums, caches that grow, and caches that are written in place.
#pragma once

#include <string>
#include <vector>

#include "test/capi/client.h"

namespace pfrt_test {

using Values = std::vector<float>;

struct StateReleaser {
  void operator()(pfrt_state* p) const { api().state->release(p); }
};
using StateHandle = std::unique_ptr<pfrt_state, StateReleaser>;

inline pfrt_state_pair pair_of(std::string_view input, std::string_view output,
                               pfrt_state_growth growth = PFRT_STATE_BY_NAMES, uint32_t axis = 0,
                               uint64_t capacity = 0) {
  return {sizeof(pfrt_state_pair), growth, axis, 0, str(input), str(output), capacity};
}

inline Failure try_state(pfrt_session* session, const std::vector<pfrt_state_pair>& pairs,
                         StateHandle* out = nullptr) {
  pfrt_state* made = nullptr;
  Failure failure = take(api().state->create(session, pairs.data(), pairs.size(), &made));
  StateHandle handle(made);
  EXPECT_EQ(failure.ok(), made != nullptr);
  if (out) *out = std::move(handle);
  return failure;
}

inline StateHandle make_state(pfrt_session* session,
                              const std::vector<pfrt_state_pair>& pairs = {}) {
  StateHandle out;
  EXPECT_TRUE(ok(try_state(session, pairs, &out)));
  return out;
}

inline StateHandle clone(const pfrt_state* state) {
  pfrt_state* made = nullptr;
  EXPECT_TRUE(ok(api().state->clone(state, &made)));
  return StateHandle(made);
}

inline RunDesc options_with(pfrt_state* state, const uint32_t* cancel = nullptr) {
  return RunDesc({.cancel = cancel, .state = state});
}
inline RunDesc keeping(pfrt_state* state) {
  return RunDesc({.flags = PFRT_RUN_KEEPS_STATE, .state = state});
}

// Returns the state's value of |input|; it has no dtype where there is none.
inline Array value_in(const pfrt_state* state, std::string_view input) {
  pfrt_value* raw = nullptr;
  EXPECT_TRUE(ok(api().state->get(state, str(input), &raw)));
  const Handle<pfrt_value> value(raw);
  return raw ? array_of(raw) : Array();
}

// h_out = x + h, y = -h_out.
inline GraphBuilder accumulator() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 2});
  g.input("h", PFRT_DTYPE_FLOAT32, {"N", 2});
  g.node("Add", {"x", "h"}, {"h_out"});
  g.node("Neg", {"h_out"}, {"y"});
  g.output("y");
  g.output("h_out");
  return g;
}

// present = past followed by x along axis 2; y = the sums of present along that axis.
inline GraphBuilder cache(int64_t heads = 2, int64_t size = 3) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", heads, "T", size});
  g.input("past_0", PFRT_DTYPE_FLOAT32, {"N", heads, "P", size});
  g.constant("axis", int64s({1}, {2}));
  g.node("Concat", {"past_0", "x"}, {"present_0"}, {Attr::of_int("axis", 2)});
  g.node("ReduceSum", {"present_0", "axis"}, {"y"}, {Attr::of_int("keepdims", 0)});
  g.output("y");
  g.output("present_0");
  return g;
}

class States : public testing::Test {
 protected:
  // Runs with |x| fed and |y| as result; the other ports are the state's.
  static Failure step(pfrt_session* session, const pfrt_run_desc* desc, const Array& x,
                      Array* y = nullptr) {
    const pfrt_string in = str("x"), out = str("y");
    const pfrt_io fed = x.io();
    pfrt_io result{};
    result.struct_size = sizeof result;
    Failure failure = take(api().session->run_named(session, &in, &fed, 1, &out, &result, 1, desc));
    const Handle<pfrt_value> value(result.value);
    if (failure.ok() && y) *y = array_of(value.get());
    return failure;
  }
  static std::string file(const char* name) { return testing::TempDir() + name; }

  Handle<pfrt_env> env_ = make_env();
};

// present = past with |x| written at |at|; y = the sums of present over its rows.
inline GraphBuilder scattered_cache(const DimSpec& room) {
  GraphBuilder g;
  g.opset(24);
  g.input("x", PFRT_DTYPE_FLOAT32, {1, 2, "T", 3});
  g.input("at", PFRT_DTYPE_INT64, {1});
  g.input("past", PFRT_DTYPE_FLOAT32, {1, 2, room, 3});
  g.constant("axis", int64s({1}, {2}));
  g.node("TensorScatter", {"past", "x", "at"}, {"present"}, {Attr::of_int("axis", -2)});
  g.node("ReduceSum", {"present", "axis"}, {"y"}, {Attr::of_int("keepdims", 0)});
  g.output("y");
  g.output("present");
  return g;
}

class CacheStates : public States {
 protected:
  static Failure write(pfrt_session* session, const pfrt_run_desc* desc, int64_t at, float x,
                       Array* y = nullptr) {
    const pfrt_string names[2] = {str("x"), str("at")}, out = str("y");
    const Array row = floats({1, 2, 1, 3}, Values(6, x)), place = int64s({1}, {at});
    const pfrt_io fed[2] = {row.io(), place.io()};
    pfrt_io result{};
    result.struct_size = sizeof result;
    Failure failure =
        take(api().session->run_named(session, names, fed, 2, &out, &result, 1, desc));
    const Handle<pfrt_value> value(result.value);
    if (failure.ok() && y) *y = array_of(value.get());
    return failure;
  }
};

// Returns the memory that |session| takes.
inline pfrt_memory_report report_of(const pfrt_session* session) {
  pfrt_memory_report out{};
  out.struct_size = sizeof out;
  EXPECT_TRUE(ok(api().session->memory_report(session, &out, nullptr, nullptr)));
  return out;
}

}  // namespace pfrt_test

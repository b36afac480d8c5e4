// SPDX-License-Identifier: Apache-2.0
//
// Whatever a client does with a state, with the n-th allocation failing, for every n: it is done as
// ever, or the error is OUT_OF_MEMORY and the state is as it was. Nothing is left behind. Within
// what is measured the test itself allocates nothing.
#include <array>
#include <cstring>

#include "test/allocation/failing_allocator.h"
#include "test/capi/run/states.h"

namespace pfrt_test {
namespace {

// A state's value, in memory of the test's.
struct Seen {
  std::array<int64_t, 4> dims{};
  std::array<char, 2048> bytes{};
  bool operator==(const Seen&) const = default;
};

Seen seen(const pfrt_state* state, const char* input) {
  Seen out;
  pfrt_value* value = nullptr;
  EXPECT_TRUE(ok(api().state->get(state, str(input), &value)));
  pfrt_tensor t{};
  t.struct_size = sizeof t;
  EXPECT_TRUE(ok(api().value->tensor(value, &t)));
  std::copy_n(t.dims, t.rank, out.dims.begin());
  std::memcpy(out.bytes.data(), t.data, t.bytes);
  api().value->release(value);
  return out;
}

// A call with a state that gives back all it gets.
struct Call {
  const char* name;
  pfrt_status* (*call)(pfrt_state* state, pfrt_session* session, pfrt_session* other);
};

pfrt_status* run_with(pfrt_state* state, pfrt_session* session, pfrt_run_flags flags) {
  static constexpr float kX[24] = {1, 2, 3};
  static constexpr int64_t kDims[4] = {2, 2, 1, 3};
  pfrt_run_desc desc{};
  desc.struct_size = sizeof desc;
  desc.flags = flags;
  desc.state = state;
  pfrt_io in[2] = {}, out[2] = {};
  for (pfrt_io* io : {&in[0], &in[1], &out[0], &out[1]}) io->struct_size = sizeof *io;
  in[0].tensor.struct_size = sizeof(pfrt_tensor);
  in[0].tensor.dtype = PFRT_DTYPE_FLOAT32;
  in[0].tensor.rank = 4;
  in[0].tensor.dims = kDims;
  in[0].tensor.data = const_cast<float*>(kX);
  in[0].tensor.bytes = 48;
  pfrt_status* const status = api().session->run(session, in, 2, out, 2, &desc);
  for (const pfrt_io& io : out) api().value->release(io.value);
  return status;
}

pfrt_status* released(pfrt_status* status, pfrt_state* made) {
  api().state->release(made);
  return status;
}

const Call kCalls[] = {
    {"clone",
     [](pfrt_state* state, pfrt_session*, pfrt_session*) {
       pfrt_state* made = nullptr;
       pfrt_status* const status = api().state->clone(state, &made);
       return released(status, made);
     }},
    {"clone_for",
     [](pfrt_state* state, pfrt_session*, pfrt_session* other) {
       pfrt_state* made = nullptr;
       pfrt_status* const status = api().state->clone_for(state, other, nullptr, 0, &made);
       return released(status, made);
     }},
    {"select_rows",
     [](pfrt_state* state, pfrt_session*, pfrt_session*) {
       static constexpr int64_t kRows[] = {1, 0, 1};
       return api().state->select_rows(state, kRows, 3);
     }},
    {"truncate", [](pfrt_state* state, pfrt_session*,
                    pfrt_session*) { return api().state->truncate(state, 1); }},
    {"set_outputs",
     [](pfrt_state* state, pfrt_session*, pfrt_session*) {
       pfrt_value* value = nullptr;
       if (pfrt_status* status = api().state->get(state, str("past_0"), &value)) return status;
       const pfrt_string name = str("present_0");
       pfrt_status* const status = api().state->set_outputs(state, &name, &value, 1);
       api().value->release(value);
       return status;
     }},
    {"run", [](pfrt_state* state, pfrt_session* session,
               pfrt_session*) { return run_with(state, session, 0); }},
    {"run that keeps it",
     [](pfrt_state* state, pfrt_session* session, pfrt_session*) {
       return run_with(state, session, PFRT_RUN_KEEPS_STATE);
     }},
    {"memory_report",
     [](pfrt_state*, pfrt_session* session, pfrt_session*) {
       pfrt_memory_report report{};
       report.struct_size = sizeof report;
       return api().session->memory_report(session, &report, nullptr, nullptr);
     }},
};

TEST(StateAllocationFailure, leaves_a_state_as_it_was) {
  const auto env = make_env();
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"num_threads", "1"}});
  for (const bool lasting : {false, true}) {
    const auto session = make_session(env.get(), cache(), options.get()),
               other = make_session(env.get(), cache(), options.get());
    const StateHandle base = make_state(session.get());
    {
      const auto value = value_of(floats({2, 2, 2, 3}, random_floats(24, 1)));
      ASSERT_TRUE(ok(api().state->set(base.get(), str("past_0"), value.get())));
    }
    const Seen before = seen(base.get(), "past_0");
    for (const Call& c : kCalls) {
      Seen after;
      {
        const StateHandle state = clone(base.get());
        ASSERT_TRUE(ok(c.call(state.get(), session.get(), other.get()))) << c.name;
        after = seen(state.get(), "past_0");
      }
      uint64_t n = 1;
      for (bool reached = true; reached && !HasFailure(); ++n) {
        const StateHandle state = clone(base.get());
        failing::arm(n, lasting);
        pfrt_status* const status = c.call(state.get(), session.get(), other.get());
        reached = failing::disarm();
        const bool failed = status != nullptr;
        if (failed) {
          EXPECT_TRUE(fails(status, PFRT_CODE_OUT_OF_MEMORY, {})) << c.name << ", request " << n;
        }
        EXPECT_EQ(seen(state.get(), "past_0"), failed ? before : after)
            << c.name << ", request " << n;
        EXPECT_EQ(seen(base.get(), "past_0"), before) << c.name << ", request " << n;
      }
      EXPECT_GT(n, 2u) << c.name;
    }
  }
}

// A run that could not begin leaves the turn to others, and nothing of a call stays.
TEST(StateAllocationFailure, leaves_nothing_behind) {
  const auto env = make_env();
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"num_threads", "1"}});
  const auto all = [&](uint64_t first, uint64_t step) {
    const auto session = make_session(env.get(), cache(), options.get()),
               other = make_session(env.get(), cache(), options.get());
    const StateHandle state = make_state(session.get());
    const auto value = value_of(floats({2, 2, 2, 3}, random_floats(24, 1)));
    ASSERT_TRUE(ok(api().state->set(state.get(), str("past_0"), value.get())));
    for (const Call& c : kCalls)
      for (uint64_t n = first; n < 200; n += step) {
        const StateHandle own = clone(state.get());
        failing::arm(n, false);
        pfrt_status* const status = c.call(own.get(), session.get(), other.get());
        failing::disarm();
        api().status->release(status);
        EXPECT_TRUE(ok(api().state->set(own.get(), str("past_0"), value.get()))) << c.name;
      }
  };
  all(1, 9);
  const int64_t live = failing::live();
  all(2, 9);
  EXPECT_EQ(failing::live() - live, 0);
}

}  // namespace
}  // namespace pfrt_test

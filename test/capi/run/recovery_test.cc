// SPDX-License-Identifier: Apache-2.0
//
// A session's behaviour when a provider fails, with a provider that fails where and as it is told
// (test/plugins/fault): the provider that takes over, the reason that is kept, and what the client
// sees.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>

#include "pyflame_rt/custom.h"
#include "test/capi/client.h"
#include "test/plugins/fault/fault.h"

namespace pfrt_test {
namespace {

constexpr std::string_view kFault = "FaultExecutionProvider", kCpu = "CPUExecutionProvider";

struct State {
  pfrt_provider_condition condition = PFRT_PROVIDER_CONDITION_UNSET;
  pfrt_code code = PFRT_CODE_OK;
  std::string name, reason;
  uint32_t failures = 0;
};

State state(const pfrt_session* session, size_t index = 0) {
  pfrt_provider_state s{};
  s.struct_size = sizeof s;
  EXPECT_TRUE(ok(api().session->provider_state(session, index, &s)));
  return {s.condition, s.code, text(s.name), text(s.reason), s.failures};
}

class Recovery : public testing::Test {
 protected:
  // Options of a session whose first provider is the faulty one.
  Handle<pfrt_options> options(const Settings& fault, std::string_view providers = "",
                               std::string_view fallback = "on") {
    auto out = make_options(PFRT_OPTIONS_SESSION, {{"session.fallback", fallback}});
    const std::string both = std::string(kFault) + "," + std::string(kCpu);
    set(out.get(), "providers", providers.empty() ? std::string_view(both) : providers);
    set(out.get(), "provider.fault.counters",
        std::to_string(reinterpret_cast<intptr_t>(&counters_)));
    for (const auto& [key, value] : fault)
      set(out.get(), "provider.fault." + std::string(key), value);
    return out;
  }
  void set(pfrt_options* o, std::string_view key, std::string_view value) {
    EXPECT_TRUE(ok(api().options->set_text(o, str(key), str(value)))) << key;
  }
  Handle<pfrt_session> session(const Settings& fault) {
    const auto o = options(fault);
    return make_session(env_.get(), graph(), o.get());
  }

  // y = |-(x + b) x|: four steps, of which some can work in place.
  static GraphBuilder graph() {
    GraphBuilder g;
    g.input("x", PFRT_DTYPE_FLOAT32, {"N", 3});
    g.constant("b", floats({3}, {1, 2, 3}));
    g.node("Add", {"x", "b"}, {"a"}, {}, "add");
    g.node("Neg", {"a"}, {"n"}, {}, "neg");
    g.node("Mul", {"n", "x"}, {"m"}, {}, "mul");
    g.node("Abs", {"m"}, {"y"}, {}, "abs");
    g.output("y");
    return g;
  }
  static std::vector<float> expected(const std::vector<float>& x) {
    std::vector<float> y;
    for (size_t i = 0; i < x.size(); ++i)
      y.push_back(std::fabs(-(x[i] + static_cast<float>(i % 3 + 1)) * x[i]));
    return y;
  }
  // Runs on |rows| rows and checks the result, and that the inputs are unchanged.
  static void check_run(pfrt_session* session, int64_t rows = 2) {
    const std::vector<float> x = random_floats(static_cast<size_t>(rows) * 3, 11);
    const Array input = floats({rows, 3}, x);
    std::vector<Array> out;
    ASSERT_TRUE(ok(try_run(session, {input}, &out)));
    EXPECT_EQ(out.at(0).as<float>(), expected(x));
    EXPECT_EQ(input.as<float>(), x) << "a run changed its input";
  }
  // The provider that runs a node, and the text about those that refused it.
  struct Row {
    std::string provider, refused;
  };
  static Row row(pfrt_session* session, std::string_view node) {
    pfrt_report* raw = nullptr;
    EXPECT_TRUE(ok(api().session->explain(session, &raw)));
    const Handle<pfrt_report> report(raw);
    for (size_t i = 0; i < api().report->row_count(raw); ++i) {
      pfrt_report_row r{};
      r.struct_size = sizeof r;
      EXPECT_TRUE(ok(api().report->row_at(raw, i, &r)));
      if (text(r.nodes).find(node) != std::string::npos) return {text(r.provider), text(r.refused)};
    }
    ADD_FAILURE() << "no row for " << node;
    return {};
  }
  static std::string notes(pfrt_session* session) {
    pfrt_report* raw = nullptr;
    EXPECT_TRUE(ok(api().session->explain(session, &raw)));
    const Handle<pfrt_report> report(raw);
    std::string out;
    for (size_t i = 0; i < api().report->note_count(raw); ++i)
      out += text(api().report->note_at(raw, i)) + "\n";
    return out;
  }
  // Expects the faulty provider to be out, and state, rows and notes to give the reason.
  void check_failed(pfrt_session* session, std::string_view reason, pfrt_code code) {
    const State s = state(session);
    EXPECT_EQ(s.name, kFault);
    EXPECT_EQ(s.condition, uint32_t{PFRT_PROVIDER_FAILED});
    EXPECT_EQ(s.code, code);
    EXPECT_NE(s.reason.find(reason), std::string::npos) << s.reason;
    EXPECT_GE(s.failures, 1u);
    EXPECT_EQ(state(session, 1).condition, uint32_t{PFRT_PROVIDER_ACTIVE});
    for (const char* node : {"add", "abs"}) {
      const Row r = row(session, node);
      EXPECT_EQ(r.provider, kCpu);
      EXPECT_NE(r.refused.find(kFault), std::string::npos) << r.refused;
      EXPECT_NE(r.refused.find(reason), std::string::npos) << r.refused;
    }
    EXPECT_NE(notes(session).find(reason), std::string::npos) << notes(session);
  }

  fault::Counters counters_;
  Handle<pfrt_env> env_ = make_env({{"plugin_path", PFRT_FAULT_PLUGINS}});
};

// Temporaries may be aligned to any power of two, and to nothing else.
TEST_F(Recovery, temporaries_are_aligned_as_a_program_wants_them) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Neg", {"x"}, {"a"});
  g.node("Abs", {"a"}, {"b"});
  g.node("Neg", {"b"}, {"c"});
  g.node("Abs", {"c"}, {"y"});
  g.output("y");
  for (const char* alignment : {"256", "4096", "65536"}) {
    const auto o = options({{"alignment", alignment}});
    const auto s = make_session(env_.get(), g, o.get());
    ASSERT_TRUE(s);
    for (const size_t n : {1, 100, 30000}) {
      counters_.aligned = 0;
      const std::vector<float> x = random_floats(n, 3);
      const auto y = run(s.get(), {floats({static_cast<int64_t>(n)}, x)})[0].as<float>();
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], std::abs(x[i]));
      EXPECT_GE(counters_.aligned, 3) << alignment;
    }
  }
  const auto odd = options({{"alignment", "96"}, {"times", "0"}});
  set(odd.get(), "session.fallback", "off");
  const auto s = make_session(env_.get(), g, odd.get());
  EXPECT_TRUE(fails(try_run(s.get(), {floats({1}, {1})}), PFRT_CODE_UNSUPPORTED,
                    {"aligned to 96", "any power of two"}));
}

TEST_F(Recovery, without_a_fault_the_provider_runs_everything) {
  const auto s = session({});
  ASSERT_TRUE(s);
  check_run(s.get());
  EXPECT_EQ(row(s.get(), "add").provider, kFault);
  EXPECT_EQ(row(s.get(), "abs").provider, kFault);
  EXPECT_EQ(counters_.calls[fault::kRun], 4);
  ASSERT_EQ(api().session->provider_state_count(s.get()), 2u);
  for (size_t i : {0u, 1u}) {
    EXPECT_EQ(state(s.get(), i).condition, uint32_t{PFRT_PROVIDER_ACTIVE});
    EXPECT_EQ(state(s.get(), i).failures, 0u);
    EXPECT_EQ(state(s.get(), i).reason, "");
  }
  pfrt_provider_state out{};
  out.struct_size = sizeof out;
  EXPECT_TRUE(fails(api().session->provider_state(s.get(), 2, &out), PFRT_CODE_INVALID_ARGUMENT,
                    {"2 of 2"}));
}

TEST_F(Recovery, one_that_does_not_open_leaves_its_nodes_to_the_next) {
  const auto s = session({{"stage", "open"}});
  ASSERT_TRUE(s);
  check_run(s.get());
  check_failed(s.get(), "injected fault in open", PFRT_CODE_PROVIDER);
  EXPECT_EQ(providers_of(s.get()), std::vector<std::string>{"CPUExecutionProvider"});
}

TEST_F(Recovery, one_that_fails_to_claim_leaves_its_nodes_to_the_next) {
  const auto s = session({{"stage", "claim"}, {"code", "internal"}});
  ASSERT_TRUE(s);
  check_run(s.get());
  check_failed(s.get(), "injected fault in claim", PFRT_CODE_INTERNAL);
  EXPECT_EQ(counters_.closes, 1);
}

TEST_F(Recovery, one_that_does_not_compile_leaves_its_nodes_to_the_next) {
  const auto s = session({{"stage", "compile"}});
  ASSERT_TRUE(s);
  check_run(s.get());
  check_failed(s.get(), "injected fault in compile", PFRT_CODE_PROVIDER);
  EXPECT_EQ(counters_.calls[fault::kCompile], 1) << "it is not asked again";
}

TEST_F(Recovery, one_whose_loops_throw_leaves_its_nodes_to_the_next) {
  for (const char* threads : {"1", "4"}) {
    const auto o = options({{"stage", "run"}, {"throws", "true"}});
    set(o.get(), "num_threads", threads);
    const auto s = make_session(env_.get(), graph(), o.get());
    ASSERT_TRUE(s);
    check_run(s.get());
    check_failed(s.get(), "an exception escaped the provider", PFRT_CODE_PROVIDER);
  }
}

// Calls of a provider are not interrupted; the deadline is checked right after each.
TEST_F(Recovery, a_slow_provider_is_found_out_at_the_deadline_of_the_creation) {
  for (const char* stage : {"open", "claim", "compile"}) {
    counters_.calls[fault::kCompile] = 0;
    const auto late = options({{"stage", stage}, {"delay_ms", "60"}});
    set(late.get(), "create_timeout_ms", "50");
    EXPECT_TRUE(fails(try_session(env_.get(), graph(), late.get()), PFRT_CODE_DEADLINE,
                      {"the deadline has passed"}))
        << stage;
    EXPECT_EQ(counters_.calls[fault::kCompile], std::string_view(stage) == "compile") << stage;
    EXPECT_EQ(counters_.executables, 0) << stage;
    const auto s = session({{"stage", stage}, {"delay_ms", "1"}});
    ASSERT_TRUE(s);
    check_run(s.get());
    EXPECT_EQ(state(s.get()).failures, 0u) << "being slow is no failure";
  }
}

TEST_F(Recovery, one_that_refuses_a_node_loses_that_node_alone) {
  const auto s = session(
      {{"stage", "compile"}, {"name_node", "true"}, {"times", "1"}, {"code", "unsupported"}});
  ASSERT_TRUE(s);
  check_run(s.get());
  EXPECT_EQ(row(s.get(), "add").provider, kCpu);
  EXPECT_NE(row(s.get(), "add").refused.find("injected fault in compile"), std::string::npos);
  for (const char* node : {"neg", "mul", "abs"}) EXPECT_EQ(row(s.get(), node).provider, kFault);
  EXPECT_EQ(state(s.get()).condition, uint32_t{PFRT_PROVIDER_ACTIVE});
}

TEST_F(Recovery, one_that_cannot_prepare_for_some_dimensions_leaves_its_nodes_to_the_next) {
  const auto s = session({{"stage", "specialise"}, {"after", "1"}});
  ASSERT_TRUE(s);
  check_run(s.get(), 2);
  EXPECT_EQ(row(s.get(), "add").provider, kFault);
  check_run(s.get(), 5);
  check_failed(s.get(), "injected fault in specialise", PFRT_CODE_PROVIDER);
  check_run(s.get(), 2);
  EXPECT_EQ(counters_.calls[fault::kRun], 4) << "only the first run was its";
  EXPECT_EQ(counters_.calls[fault::kSpecialise], 2);
}

TEST_F(Recovery, a_failed_run_starts_again_from_the_inputs) {
  // The third step of the second run fails, after two results have been written.
  const auto s = session({{"stage", "run"}, {"after", "6"}});
  ASSERT_TRUE(s);
  check_run(s.get());
  EXPECT_EQ(state(s.get()).condition, uint32_t{PFRT_PROVIDER_ACTIVE});
  check_run(s.get());
  check_failed(s.get(), "injected fault in run", PFRT_CODE_PROVIDER);
  EXPECT_EQ(counters_.calls[fault::kRun], 7);
  check_run(s.get());
  EXPECT_EQ(counters_.calls[fault::kRun], 7) << "a provider that is out runs nothing";
  EXPECT_EQ(counters_.programs, 0);
  EXPECT_EQ(counters_.executables, 0);
  EXPECT_EQ(counters_.closes, 1) << "nothing holds its device any more";
}

TEST_F(Recovery, a_failed_attempt_leaves_nothing_in_the_callers_memory) {
  for (const char* after : {"0", "1", "2", "3"}) {
    const auto s = session({{"stage", "run"}, {"after", after}, {"times", "1"}});
    ASSERT_TRUE(s);
    counters_.calls[fault::kRun] = 0;
    const std::vector<float> x = random_floats(6, 5);
    const Array input = floats({2, 3}, x);
    Array out = floats({2, 3}, std::vector<float>(6, 42.0f));
    pfrt_io in = input.io(), to = out.io();
    ASSERT_TRUE(ok(api().session->run(s.get(), &in, 1, &to, 1, nullptr)));
    EXPECT_EQ(to.value, nullptr);
    EXPECT_EQ(out.as<float>(), expected(x)) << "after step " << after;
    EXPECT_EQ(input.as<float>(), x);
    EXPECT_EQ(counters_.injected, 1);
    counters_.injected = 0;
  }
}

TEST_F(Recovery, failures_inside_bodies_and_second_plans_are_found_too) {
  GraphBuilder g;
  g.input("c", PFRT_DTYPE_BOOL, {});
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  g.input("d", PFRT_DTYPE_FLOAT32, {2});
  g.constant("d", floats({2}, {1, 1}));
  GraphBuilder yes(g, "yes"), no(g, "no");
  yes.node("Mul", {"x", "d"}, {"p"}, {}, "yes_mul");
  yes.output("p");
  no.node("Neg", {"x"}, {"q"}, {}, "no_neg");
  no.output("q");
  g.node("If", {"c"}, {"y"},
         {Attr::of_graph("then_branch", yes.get()), Attr::of_graph("else_branch", no.get())});
  g.output("y");
  const Array yes_input = array<uint8_t>({}, {1});
  Array condition = yes_input;
  condition.dtype = PFRT_DTYPE_BOOL;
  const Array x = floats({2}, {3, -4}), d = floats({2}, {2, 2});
  for (const bool feed : {false, true}) {
    const auto o = options({{"stage", "run"}, {"after", "1"}});
    counters_.calls[fault::kRun] = 0;
    const auto s = make_session(env_.get(), g, o.get());
    ASSERT_TRUE(s);
    const std::vector<Array> inputs = {condition, x, feed ? d : Array{}};
    const std::vector<float> want = feed ? std::vector<float>{6, -8} : std::vector<float>{3, -4};
    EXPECT_EQ(run(s.get(), inputs).at(0).as<float>(), want);
    EXPECT_EQ(state(s.get()).condition, uint32_t{PFRT_PROVIDER_ACTIVE});
    EXPECT_EQ(run(s.get(), inputs).at(0).as<float>(), want);
    EXPECT_EQ(state(s.get()).condition, uint32_t{PFRT_PROVIDER_FAILED});
  }
}

TEST_F(Recovery, a_lost_device_is_opened_again_once) {
  const auto s =
      session({{"stage", "run"}, {"code", "device_lost"}, {"after", "5"}, {"times", "1"}});
  ASSERT_TRUE(s);
  check_run(s.get());
  check_run(s.get());
  EXPECT_EQ(counters_.calls[fault::kOpen], 2);
  EXPECT_EQ(counters_.closes, 1) << "the lost handle is closed, the new one is open";
  const State after = state(s.get());
  EXPECT_EQ(after.condition, uint32_t{PFRT_PROVIDER_RECOVERED});
  EXPECT_EQ(after.code, uint32_t{PFRT_CODE_DEVICE_LOST});
  EXPECT_EQ(after.failures, 1u);
  EXPECT_NE(after.reason.find("injected fault in run"), std::string::npos) << after.reason;
  EXPECT_EQ(row(s.get(), "add").provider, kFault);
  EXPECT_NE(notes(s.get()).find("recovered"), std::string::npos);
  check_run(s.get());
}

TEST_F(Recovery, a_device_lost_twice_is_given_up) {
  for (const char* stage : {"claim", "compile", "specialise", "run"}) {
    const auto s = session({{"stage", stage}, {"code", "device_lost"}});
    ASSERT_TRUE(s) << stage;
    check_run(s.get());
    check_failed(s.get(), std::string("injected fault in ") + stage, PFRT_CODE_DEVICE_LOST);
    EXPECT_EQ(state(s.get()).failures, 2u) << stage;
    EXPECT_EQ(counters_.calls[fault::kOpen], 2) << stage;
    EXPECT_EQ(counters_.closes, 2) << stage;
    counters_.calls[fault::kOpen] = counters_.closes = 0;
  }
}

TEST_F(Recovery, a_device_lost_again_after_a_while_is_opened_again) {
  const auto o =
      options({{"stage", "run"}, {"code", "device_lost"}, {"after", "5"}, {"times", "1"}});
  set(o.get(), "session.device_reopen_ms", "1");
  const auto s = make_session(env_.get(), graph(), o.get());
  ASSERT_TRUE(s);
  for (int lost = 1; lost <= 3; ++lost) {
    counters_.calls[fault::kRun] = 5;
    check_run(s.get());
    EXPECT_EQ(state(s.get()).condition, uint32_t{PFRT_PROVIDER_RECOVERED});
    EXPECT_EQ(counters_.calls[fault::kOpen], 1 + lost);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(row(s.get(), "add").provider, kFault);

  // A run that loses the device twice goes on without it, however short the time.
  const auto always = options({{"stage", "run"}, {"code", "device_lost"}, {"delay_ms", "0"}});
  set(always.get(), "session.device_reopen_ms", "1");
  counters_.calls[fault::kOpen] = 0;
  const auto lost = make_session(env_.get(), graph(), always.get());
  ASSERT_TRUE(lost);
  check_run(lost.get());
  check_failed(lost.get(), "injected fault in run", PFRT_CODE_DEVICE_LOST);
  EXPECT_EQ(counters_.calls[fault::kOpen], 2);

  const auto none = options({});
  set(none.get(), "session.device_reopen_ms", "3000000000");
  EXPECT_TRUE(fails(try_session(env_.get(), make_model(env_.get(), graph()).get(), none.get()),
                    PFRT_CODE_INVALID_ARGUMENT, {"session.device_reopen_ms", "3000000000"}));
}

TEST_F(Recovery, a_provider_set_aside_is_readmitted) {
  const auto s = session({{"stage", "run"}, {"after", "5"}, {"times", "1"}});
  ASSERT_TRUE(s);
  for (const std::string_view name : {kFault, std::string_view("fault")}) {
    counters_.calls[fault::kRun] = 5;
    check_run(s.get());
    check_failed(s.get(), "injected fault in run", PFRT_CODE_PROVIDER);
    ASSERT_TRUE(ok(api().session->readmit(s.get(), str(name), nullptr)));
    EXPECT_EQ(state(s.get()).condition, uint32_t{PFRT_PROVIDER_RECOVERED});
    check_run(s.get());
    EXPECT_EQ(row(s.get(), "add").provider, kFault);
  }
  EXPECT_EQ(counters_.calls[fault::kOpen], 3);
  ASSERT_TRUE(ok(api().session->readmit(s.get(), str(kFault), nullptr)));
  EXPECT_EQ(counters_.calls[fault::kOpen], 3) << "it is in use";
  EXPECT_TRUE(fails(take(api().session->readmit(s.get(), str("Nobody"), nullptr)),
                    PFRT_CODE_NOT_FOUND, {"Nobody"}));
  EXPECT_TRUE(fails(take(api().session->readmit(nullptr, str(kFault), nullptr)),
                    PFRT_CODE_INVALID_ARGUMENT, {"session"}));
}

TEST_F(Recovery, a_provider_that_does_not_open_or_plan_stays_aside) {
  for (const char* stage : {"open", "compile"}) {
    counters_.calls[fault::kOpen] = counters_.calls[fault::kCompile] = 0;
    const auto s = session({{"stage", stage}, {"times", "2"}});
    ASSERT_TRUE(s) << stage;
    const std::string reason = std::string("injected fault in ") + stage;
    check_failed(s.get(), reason, PFRT_CODE_PROVIDER);
    EXPECT_TRUE(fails(take(api().session->readmit(s.get(), str(kFault), nullptr)),
                      PFRT_CODE_PROVIDER, {reason}));
    check_failed(s.get(), reason, PFRT_CODE_PROVIDER);
    check_run(s.get());
    ASSERT_TRUE(ok(api().session->readmit(s.get(), str(kFault), nullptr)));
    EXPECT_EQ(row(s.get(), "add").provider, kFault);
    check_run(s.get());
  }
}

TEST_F(Recovery, is_readmitted_while_others_run) {
  const auto s = session({{"stage", "run"}, {"after", "5"}, {"times", "1"}});
  ASSERT_TRUE(s);
  std::atomic<bool> over{false};
  std::thread runs([&] {
    for (int64_t rows = 1; !over; rows = rows % 3 + 1) check_run(s.get(), rows);
  });
  for (int round = 0; round < 20; ++round) {
    counters_.calls[fault::kRun] = 0;
    EXPECT_TRUE(ok(api().session->readmit(s.get(), str(kFault), nullptr)));
    check_run(s.get());
  }
  over = true;
  runs.join();
}

TEST_F(Recovery, a_device_that_is_lost_while_it_opens_is_opened_once_more) {
  const auto s = session({{"stage", "open"}, {"code", "device_lost"}, {"times", "1"}});
  ASSERT_TRUE(s);
  check_run(s.get());
  EXPECT_EQ(row(s.get(), "add").provider, kFault);
  EXPECT_EQ(state(s.get()).condition, uint32_t{PFRT_PROVIDER_RECOVERED});
  EXPECT_EQ(counters_.calls[fault::kOpen], 2);
}

TEST_F(Recovery, out_of_memory_releases_caches_and_tries_once_more) {
  const auto s =
      session({{"stage", "run"}, {"code", "out_of_memory"}, {"after", "12"}, {"times", "1"}});
  ASSERT_TRUE(s);
  for (int64_t rows : {1, 2, 3}) check_run(s.get(), rows);
  EXPECT_EQ(counters_.programs, 3) << "a program a signature is kept";
  check_run(s.get(), 2);
  EXPECT_EQ(counters_.programs, 1) << "only the one the second attempt made";
  const State after = state(s.get());
  EXPECT_EQ(after.condition, uint32_t{PFRT_PROVIDER_RECOVERED});
  EXPECT_EQ(after.code, uint32_t{PFRT_CODE_OUT_OF_MEMORY});
  EXPECT_EQ(row(s.get(), "add").provider, kFault);
}

TEST_F(Recovery, out_of_memory_releases_the_caches_of_other_sessions) {
  const auto idle = session({});
  ASSERT_TRUE(idle);
  check_run(idle.get());
  EXPECT_EQ(counters_.programs, 1);
  fault::Counters own;
  const auto o = options({{"stage", "specialise"}, {"code", "out_of_memory"}, {"times", "1"}});
  set(o.get(), "provider.fault.counters", std::to_string(reinterpret_cast<intptr_t>(&own)));
  const auto s = make_session(env_.get(), graph(), o.get());
  ASSERT_TRUE(s);
  check_run(s.get());
  EXPECT_EQ(counters_.programs, 0);
  check_run(idle.get());
}

TEST_F(Recovery, lasting_out_of_memory_is_a_clear_error) {
  const auto s =
      session({{"stage", "run"}, {"code", "out_of_memory"}, {"after", "4"}, {"times", "2"}});
  ASSERT_TRUE(s);
  check_run(s.get());
  EXPECT_TRUE(fails(try_run(s.get(), {floats({1, 3}, {1, 2, 3})}), PFRT_CODE_OUT_OF_MEMORY,
                    {"injected fault in run", "had been released", "second attempt"}));
  EXPECT_EQ(state(s.get()).condition, uint32_t{PFRT_PROVIDER_FAILING});
  EXPECT_EQ(state(s.get()).failures, 2u);
  check_run(s.get());
  EXPECT_EQ(state(s.get()).condition, uint32_t{PFRT_PROVIDER_RECOVERED});
  EXPECT_EQ(row(s.get(), "add").provider, kFault) << "memory is no reason to leave a provider";
  for (const char* stage : {"open", "claim", "compile"}) {
    const auto o = options({{"stage", stage}, {"code", "out_of_memory"}});
    counters_.calls[fault::kOpen] = 0;
    EXPECT_TRUE(fails(try_session(env_.get(), graph(), o.get()), PFRT_CODE_OUT_OF_MEMORY,
                      {"injected fault", "had been released"}))
        << stage;
  }
}

// The changes of a session's phase, as lines of the log tell them. The handle says the new phase
// while its line is written.
struct Phases {
  const pfrt_session* session = nullptr;
  std::vector<pfrt_session_phase> entered;
  std::string lines;

  static void hear(void* user, pfrt_log_level level, pfrt_string line) {
    auto& self = *static_cast<Phases*>(user);
    if (level != PFRT_LOG_DEBUG || text(line).find("session of graph") != 0) return;
    self.lines += text(line) + "\n";
    pfrt_session_phase phase = PFRT_PHASE_UNSET;
    if (self.session) {
      EXPECT_TRUE(ok(api().session->phase(self.session, &phase, nullptr)));
    }
    self.entered.push_back(phase);
  }
};

TEST_F(Recovery, phases_tell_what_is_being_done) {
  using List = std::vector<pfrt_session_phase>;
  const struct {
    const char *stage, *code, *times;
    bool succeeds;
    List phases;
  } cases[] = {
      {"run",
       "provider",
       "1",
       true,
       {PFRT_PHASE_RUNTIME_ERROR, PFRT_PHASE_RECOVERING, PFRT_PHASE_READY}},
      {"run",
       "device_lost",
       "1",
       true,
       {PFRT_PHASE_DEVICE_ERROR, PFRT_PHASE_DEVICE_RECOVERY, PFRT_PHASE_READY}},
      {"run",
       "out_of_memory",
       "1",
       true,
       {PFRT_PHASE_MEMORY_ERROR, PFRT_PHASE_MEMORY_RECOVERY, PFRT_PHASE_READY}},
      {"run",
       "out_of_memory",
       "2",
       false,
       {PFRT_PHASE_MEMORY_ERROR, PFRT_PHASE_MEMORY_RECOVERY, PFRT_PHASE_MEMORY_ERROR,
        PFRT_PHASE_FATAL_ERROR}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.code);
    Phases phases;
    env_ = make_env({{"plugin_path", PFRT_FAULT_PLUGINS}, {"log_level", "debug"}});
    ASSERT_TRUE(ok(api().env->set_logger(env_.get(), &Phases::hear, &phases)));
    counters_.calls[fault::kRun] = counters_.injected = 0;
    auto s = session({{"stage", c.stage}, {"code", c.code}, {"after", "4"}, {"times", c.times}});
    ASSERT_TRUE(s);
    EXPECT_EQ(phases.lines, "") << "creating a session has lines of its own";
    phases.session = s.get();
    check_run(s.get());
    EXPECT_EQ(try_run(s.get(), {floats({1, 3}, {1, 2, 3})}).ok(), c.succeeds);
    EXPECT_EQ(phases.entered, c.phases) << phases.lines;
    phases.session = nullptr;
    phases.lines.clear();
    s.reset();
    EXPECT_NE(
        phases.lines.find(c.succeeds ? "'g': Ready to Cleanup" : "'g': FatalError to Cleanup"),
        std::string::npos)
        << phases.lines;
    ASSERT_TRUE(ok(api().env->set_logger(env_.get(), nullptr, nullptr)));
  }
}

// These have no handle that would say the phase.
TEST_F(Recovery, phases_without_a_handle_are_lines_of_the_log) {
  const std::pair<pfrt_session_phase, const char*> names[] = {
      {PFRT_PHASE_INITIALIZING, "Initializing"},
      {PFRT_PHASE_INIT_ERROR, "InitError"},
      {PFRT_PHASE_CLEANUP, "Cleanup"}};
  EXPECT_LT(names[0].first, names[1].first);
  Phases phases;
  env_ = make_env({{"plugin_path", PFRT_FAULT_PLUGINS}, {"log_level", "debug"}});
  ASSERT_TRUE(ok(api().env->set_logger(env_.get(), &Phases::hear, &phases)));
  const auto o = options({{"stage", "open"}, {"code", "provider"}}, kFault);
  EXPECT_FALSE(try_session(env_.get(), graph(), o.get()).ok());
  EXPECT_NE(phases.lines.find(std::string(names[0].second) + " to "), std::string::npos)
      << phases.lines;
  EXPECT_NE(phases.lines.find(std::string(" to ") + names[1].second), std::string::npos)
      << phases.lines;
  EXPECT_EQ(phases.lines.find(names[2].second), std::string::npos) << phases.lines;
  ASSERT_TRUE(ok(api().env->set_logger(env_.get(), nullptr, nullptr)));
}

TEST_F(Recovery, without_fallback_every_failure_is_an_error) {
  const struct {
    const char* code;
    pfrt_code number;
  } codes[] = {{"provider", PFRT_CODE_PROVIDER},
               {"device_lost", PFRT_CODE_DEVICE_LOST},
               {"out_of_memory", PFRT_CODE_OUT_OF_MEMORY}};
  for (const auto& c : codes) {
    for (const char* stage : {"open", "claim", "compile"}) {
      const auto o = options({{"stage", stage}, {"code", c.code}}, "", "off");
      counters_.injected = 0;
      EXPECT_TRUE(fails(try_session(env_.get(), graph(), o.get()), c.number, {"injected fault"}))
          << stage;
      EXPECT_EQ(counters_.injected, 1) << "nothing is tried again";
    }
    for (const char* stage : {"specialise", "run"}) {
      const auto o = options({{"stage", stage}, {"code", c.code}}, "", "off");
      const auto s = make_session(env_.get(), graph(), o.get());
      ASSERT_TRUE(s);
      counters_.injected = 0;
      EXPECT_TRUE(
          fails(try_run(s.get(), {floats({1, 3}, {1, 2, 3})}), c.number, {"injected fault"}))
          << stage;
      EXPECT_EQ(counters_.injected, 1) << "nothing is tried again";
      EXPECT_EQ(state(s.get()).condition, uint32_t{PFRT_PROVIDER_FAILING});
      EXPECT_EQ(state(s.get()).code, c.number);
    }
  }
}

TEST_F(Recovery, faults_of_the_caller_leave_the_provider_in_use) {
  const struct {
    const char* code;
    pfrt_code number;
  } codes[] = {{"invalid_argument", PFRT_CODE_INVALID_ARGUMENT},
               {"shape_mismatch", PFRT_CODE_SHAPE_MISMATCH},
               {"cancelled", PFRT_CODE_CANCELLED},
               {"deadline", PFRT_CODE_DEADLINE}};
  for (const auto& c : codes) {
    for (const char* stage : {"specialise", "run"}) {
      counters_.calls[fault::kRun] = counters_.calls[fault::kSpecialise] = 0;
      const auto s = session({{"stage", stage}, {"code", c.code}, {"times", "1"}});
      ASSERT_TRUE(s);
      EXPECT_TRUE(fails(try_run(s.get(), {floats({1, 3}, {1, 2, 3})}), c.number, {}));
      EXPECT_EQ(state(s.get()).condition, uint32_t{PFRT_PROVIDER_ACTIVE}) << c.code << stage;
      EXPECT_EQ(state(s.get()).failures, 0u);
      check_run(s.get());
      EXPECT_EQ(row(s.get(), "add").provider, kFault);
    }
  }
}

TEST_F(Recovery, a_code_of_a_later_version_counts_as_a_failure_of_the_provider) {
  const auto s = session({{"stage", "run"}, {"code", "new"}});
  ASSERT_TRUE(s);
  check_run(s.get());
  check_failed(s.get(), "injected fault in run", 4711);
}

TEST_F(Recovery, where_nobody_takes_over_the_error_says_both_and_the_next_run_tries_again) {
  const auto o = options({{"stage", "run"}, {"times", "1"}}, kFault);
  const auto s = make_session(env_.get(), graph(), o.get());
  ASSERT_TRUE(s);
  EXPECT_TRUE(fails(try_run(s.get(), {floats({1, 3}, {1, 2, 3})}), PFRT_CODE_PROVIDER,
                    {"injected fault in run", "4 nodes have no provider"}));
  EXPECT_EQ(state(s.get()).condition, uint32_t{PFRT_PROVIDER_FAILING});
  EXPECT_EQ(state(s.get()).failures, 1u);
  check_run(s.get());
  EXPECT_EQ(state(s.get()).condition, uint32_t{PFRT_PROVIDER_RECOVERED});
}

TEST_F(Recovery, many_reasons_are_not_kept_for_ever) {
  const auto o = options({{"stage", "run"}, {"code", "internal"}}, kFault);
  const auto s = make_session(env_.get(), graph(), o.get());
  ASSERT_TRUE(s);
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(fails(try_run(s.get(), {floats({1, 3}, {1, 2, 3})}), PFRT_CODE_INTERNAL,
                      {"injected fault in run, the " + std::to_string(i + 1) + "."}));
  EXPECT_EQ(state(s.get()).failures, 100u);
  EXPECT_NE(state(s.get()).reason.find("too many ways"), std::string::npos);
}

TEST_F(Recovery, planning_some_dimensions_holds_up_no_run_of_others) {
  const auto s = session({{"stage", "specialise"}, {"after", "1"}, {"delay_ms", "2000"}});
  ASSERT_TRUE(s);
  check_run(s.get(), 2);
  std::atomic<bool> planned{false};
  std::thread slow([&] {
    check_run(s.get(), 3);
    planned = true;
  });
  while (counters_.calls[fault::kSpecialise] < 2)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  check_run(s.get(), 2);
  EXPECT_FALSE(planned);
  // Other runs that need the provider's plan wait for it, but not beyond their deadline.
  const RunDesc limit({.timeout_ms = 50});
  for (const int64_t rows : {4, 3}) {
    const Array x = floats({rows, 3}, random_floats(static_cast<size_t>(rows) * 3, 1));
    EXPECT_TRUE(fails(try_run(s.get(), {x}, nullptr, limit.get()), PFRT_CODE_DEADLINE, {}));
    EXPECT_FALSE(planned);
  }
  slow.join();
  check_run(s.get(), 3);
}

// A request that a client can provoke on purpose must not take the provider from others.
TEST_F(Recovery, one_request_that_is_refused_leaves_the_provider_in_use) {
  const auto s = session({{"stage", "specialise"}, {"code", "unsupported"}, {"after", "1"}});
  ASSERT_TRUE(s);
  check_run(s.get(), 2);
  const int64_t steps = counters_.calls[fault::kRun];
  EXPECT_GT(steps, 0);
  for (const int64_t rows : {3, 4, 3}) {
    check_run(s.get(), rows);
    EXPECT_EQ(counters_.calls[fault::kRun], steps) << rows;
    EXPECT_EQ(state(s.get()).condition, PFRT_PROVIDER_ACTIVE);
    EXPECT_EQ(state(s.get()).failures, 0u);
  }
  check_run(s.get(), 2);
  EXPECT_EQ(counters_.calls[fault::kRun], 2 * steps);
  EXPECT_EQ(row(s.get(), "add").provider, kFault);

  const auto off = options({{"stage", "specialise"}, {"code", "unsupported"}}, "", "off");
  const auto alone = make_session(env_.get(), graph(), off.get());
  EXPECT_TRUE(fails(try_run(alone.get(), {floats({1, 3}, {1, 2, 3})}), PFRT_CODE_UNSUPPORTED,
                    {"injected fault in specialise"}));
}

TEST_F(Recovery, a_request_that_all_refuse_says_who_refused_it) {
  const auto o = options({{"stage", "specialise"}, {"code", "unsupported"}}, kFault);
  const auto s = make_session(env_.get(), graph(), o.get());
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(fails(try_run(s.get(), {floats({1, 3}, {1, 2, 3})}), PFRT_CODE_UNSUPPORTED,
                      {"injected fault in specialise", "without it"}));
  EXPECT_EQ(state(s.get()).condition, PFRT_PROVIDER_ACTIVE);
}

// Passes make nodes that the first provider says it supports. When it is gone, the graph is
// optimised again for the next one.
TEST_F(Recovery, optimises_again_for_the_provider_that_takes_over) {
  static int asked;
  asked = 0;
  pfrt_provider_table eager{};
  eager.struct_size = sizeof eager;
  eager.abi = PFRT_ABI_VERSION;
  eager.devices = str("eager");
  eager.close = [](pfrt_provider*) {};
  eager.supports = [](pfrt_provider*, const pfrt_op_query* query, const pfrt_sink*) -> pfrt_code {
    asked += text(query->snapshot->nodes[query->node].op) == "Swish";
    return PFRT_CODE_OK;
  };
  eager.claim = [](pfrt_provider*, const pfrt_snapshot* s, const pfrt_claims* claims,
                   const pfrt_sink*) -> pfrt_code {
    for (uint32_t n = 0; n < s->node_count; ++n) claims->accept(claims, n, 1, 0);
    return PFRT_CODE_OK;
  };
  eager.compile = [](pfrt_provider* p, const pfrt_region*, size_t, size_t count, const pfrt_sink*,
                     pfrt_executable** out, size_t*) -> pfrt_code {
    std::fill_n(out, count, reinterpret_cast<pfrt_executable*>(p));
    return PFRT_CODE_OK;
  };
  eager.release_executable = [](pfrt_executable*) {};
  eager.specialise = [](pfrt_executable*, const pfrt_shapes*, const pfrt_sink* sink,
                        pfrt_program*) -> pfrt_code {
    return sink->fail(sink, PFRT_CODE_PROVIDER, PFRT_NO_INDEX, str("promised too much"));
  };
  eager.release_program = [](pfrt_executable*, pfrt_program*) {};
  pfrt_client_provider client{};
  client.struct_size = sizeof client;
  client.abi = PFRT_ABI_VERSION;
  client.name = str("EagerExecutionProvider");
  client.features = PFRT_PROVIDER_SUPPORTS;
  client.table = &eager;
  client.open = [](void*, pfrt_string, const pfrt_key_value*, size_t, const pfrt_sink*,
                   pfrt_provider** out) -> pfrt_code {
    static int device;
    *out = reinterpret_cast<pfrt_provider*>(&device);
    return PFRT_CODE_OK;
  };
  ASSERT_TRUE(ok(api().env->register_provider(env_.get(), &client)));

  GraphBuilder g;
  g.opset(24);
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Sigmoid", {"x"}, {"s"}, {}, "sigmoid");
  g.node("Mul", {"x", "s"}, {"y"}, {}, "mul");
  g.output("y");
  const auto o = options({}, "EagerExecutionProvider,FaultExecutionProvider");
  set(o.get(), "optimization_level", "all");
  const auto s = make_session(env_.get(), g, o.get());
  ASSERT_TRUE(s);
  EXPECT_GT(asked, 0);
  const float y = run(s.get(), {floats({1}, {2})}).at(0).as<float>().at(0);
  EXPECT_NEAR(y, 2 / (1 + std::exp(-2.0)), 1e-6);
  EXPECT_EQ(row(s.get(), "sigmoid").provider, kFault);
  EXPECT_EQ(state(s.get(), 0).condition, PFRT_PROVIDER_FAILED);
}

TEST_F(Recovery, sets_of_fed_initializers_keep_a_bounded_number_of_graphs) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  std::string sum = "x";
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i);
    g.input("b" + n, PFRT_DTYPE_FLOAT32, {2});
    g.constant("b" + n, floats({2}, {1, 1}));
    g.node("Add", {sum, "b" + n}, {"s" + n});
    sum = "s" + n;
  }
  g.output(sum);
  const auto o = options({});
  const auto s = make_session(env_.get(), g, o.get());
  ASSERT_TRUE(s);
  const auto run_with = [&](uint32_t set) {
    std::vector<Array> in = {floats({2}, {1, 2})};
    float more = 0;
    for (uint32_t i = 0; i < 6; ++i) {
      in.push_back((set >> i & 1) != 0 ? floats({2}, {10, 10}) : Array{});
      more += (set >> i & 1) != 0 ? 10.0F : 1.0F;
    }
    EXPECT_EQ(run(s.get(), in).at(0).as<float>(), (std::vector<float>{1 + more, 2 + more}));
  };
  const int64_t alone = counters_.executables;
  for (uint32_t set = 0; set < 64; ++set) {
    run_with(set);
    run_with(1);  // shapes that are used again and again stay
  }
  EXPECT_LE(counters_.executables, alone * 9);
  const int64_t compiled = counters_.calls[fault::kCompile];
  run_with(1);
  EXPECT_EQ(counters_.calls[fault::kCompile], compiled);
  run_with(2);
  EXPECT_GT(counters_.calls[fault::kCompile], compiled);
}

TEST_F(Recovery, runs_at_the_same_time_all_succeed) {
  for (const char* code : {"provider", "device_lost", "out_of_memory"}) {
    const bool once = std::string_view(code) != "provider";
    counters_.calls[fault::kRun] = 0;
    const auto s =
        session({{"stage", "run"}, {"code", code}, {"after", "101"}, {"times", once ? "1" : "0"}});
    ASSERT_TRUE(s);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 40; ++i) check_run(s.get(), 1 + i % 3);
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(state(s.get()).condition,
              once ? uint32_t{PFRT_PROVIDER_RECOVERED} : uint32_t{PFRT_PROVIDER_FAILED})
        << code;
  }
}

TEST_F(Recovery, states_may_be_read_while_runs_change_them) {
  const auto s = session({{"stage", "run"}, {"after", "50"}});
  ASSERT_TRUE(s);
  std::thread runs([&] {
    for (int i = 0; i < 30; ++i) check_run(s.get());
  });
  for (int i = 0; i < 200; ++i) {
    const State now = state(s.get());
    EXPECT_TRUE(now.condition == PFRT_PROVIDER_ACTIVE || !now.reason.empty());
  }
  runs.join();
  check_failed(s.get(), "injected fault in run", PFRT_CODE_PROVIDER);
}

TEST_F(Recovery, options_of_a_provider_are_checked_before_it_opens) {
  const struct {
    std::string_view key, value;
    std::initializer_list<std::string_view> parts;
  } wrong[] = {
      {"provider.fault.stages", "run", {"provider.fault.stages", "provider.fault.stage"}},
      {"provider.fault.after", "soon", {"provider.fault.after", "soon", "integer"}},
      {"provider.fault.stage", "never", {"provider.fault.stage", "never", "specialise"}},
      {"provider.fault.name_node", "maybe", {"provider.fault.name_node", "true or false"}},
      {"provider.moon.stage", "run", {"provider.moon.stage", "does not list"}},
  };
  for (const auto& w : wrong) {
    const auto o = options({});
    set(o.get(), w.key, w.value);
    EXPECT_TRUE(
        fails(try_session(env_.get(), graph(), o.get()), PFRT_CODE_INVALID_ARGUMENT, w.parts));
  }
  EXPECT_EQ(counters_.calls[fault::kOpen], 0);
  // A provider without a schema refuses unknown options itself, with fallback or without.
  const auto o = make_options(PFRT_OPTIONS_SESSION, {{"device", "null"}});
  set(o.get(), "provider.null.depth", "3");
  EXPECT_TRUE(
      fails(try_session(env_.get(), graph(), o.get()), PFRT_CODE_INVALID_ARGUMENT, {"'depth'"}));
}

TEST_F(Recovery, options_of_a_provider_are_listed_and_read_back) {
  size_t count = 0;
  ASSERT_TRUE(ok(api().env->provider_option_count(env_.get(), str(kFault), &count)));
  ASSERT_EQ(count, 9u);
  pfrt_option_info info{};
  info.struct_size = sizeof info;
  ASSERT_TRUE(ok(api().env->provider_option_at(env_.get(), str(kFault), 2, &info)));
  EXPECT_EQ(text(info.key), "provider.fault.after");
  EXPECT_EQ(info.type, uint32_t{PFRT_OPTION_INT});
  EXPECT_EQ(text(info.default_value), "0");
  EXPECT_TRUE(fails(api().env->provider_option_at(env_.get(), str(kFault), 9, &info),
                    PFRT_CODE_INVALID_ARGUMENT, {"9 of 9"}));
  ASSERT_TRUE(ok(api().env->provider_option_count(env_.get(), str(kCpu), &count)));
  EXPECT_EQ(count, 0u);
  EXPECT_TRUE(fails(api().env->provider_option_count(env_.get(), str("Moon"), &count),
                    PFRT_CODE_NOT_FOUND, {"Moon"}));
  EXPECT_EQ(counters_.calls[fault::kOpen], 0) << "listing opens no device";

  const auto o = make_options(PFRT_OPTIONS_SESSION);
  pfrt_string out{};
  EXPECT_TRUE(fails(api().options->get_text(o.get(), str("provider.fault.after"), &out),
                    PFRT_CODE_NOT_FOUND, {"not set"}));
  ASSERT_TRUE(ok(api().options->set_int(o.get(), str("provider.fault.after"), 7)));
  ASSERT_TRUE(ok(api().options->get_text(o.get(), str("provider.fault.after"), &out)));
  EXPECT_EQ(text(out), "7");
  ASSERT_TRUE(ok(api().options->set_bool(o.get(), str("provider.fault.name_node"), 1)));
  for (const char* key : {"provider.", "provider.fault", "provider.fault.", "provider..after"})
    EXPECT_TRUE(fails(api().options->set_text(o.get(), str(key), str("1")),
                      PFRT_CODE_INVALID_ARGUMENT, {key}));
  const auto r = make_options(PFRT_OPTIONS_OPTIMIZER);
  EXPECT_TRUE(fails(api().options->set_text(r.get(), str("provider.fault.after"), str("1")),
                    PFRT_CODE_INVALID_ARGUMENT, {"no such option"}));
}

}  // namespace
}  // namespace pfrt_test

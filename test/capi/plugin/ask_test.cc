// SPDX-License-Identifier: Apache-2.0
//
// Questions to a provider's device and the counters that it reports, with the provider of
// test/plugins/verbs.
#include <algorithm>
#include <cmath>
#include <string>
#include <thread>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

struct ReplyReleaser {
  void operator()(pfrt_reply* reply) const { api().env->reply_release(reply); }
};
using Reply = std::unique_ptr<pfrt_reply, ReplyReleaser>;

class Ask : public testing::Test {
 protected:
  Failure ask(std::string_view verb, std::string_view request = {}, Reply* out = nullptr,
              const pfrt_options* options = nullptr, const std::vector<pfrt_value*>& values = {},
              std::string_view provider = "verbs") {
    pfrt_ask_desc desc{};
    desc.struct_size = sizeof desc;
    desc.provider = str(provider);
    desc.verb = str(verb);
    desc.request = str(request);
    desc.values = values.data();
    desc.value_count = values.size();
    desc.options = options;
    pfrt_reply* raw = nullptr;
    const Failure failure = take(api().env->ask(env_.get(), &desc, &raw));
    EXPECT_EQ(failure.ok(), raw != nullptr);
    Reply reply(raw);
    if (out) *out = std::move(reply);
    return failure;
  }
  static std::string reply_text(const Reply& reply) {
    return text(api().env->reply_text(reply.get()));
  }

  Handle<pfrt_env> env_ = make_env({{"plugin_path", PFRT_VERBS_PLUGINS}});
};

TEST_F(Ask, answers_with_text_and_tensors) {
  const auto value = value_of(floats({2}, {1, 2}));
  Reply reply;
  ASSERT_TRUE(ok(ask("echo", "hello", &reply, nullptr, {value.get(), value.get()})));
  EXPECT_EQ(reply_text(reply), "hello.");
  ASSERT_EQ(api().env->reply_count(reply.get()), 2u);
  pfrt_string name{};
  pfrt_value* tensor = nullptr;
  ASSERT_TRUE(ok(api().env->reply_at(reply.get(), 1, &name, &tensor)));
  EXPECT_EQ(text(name), "t1");
  EXPECT_EQ(array_of(tensor).as<float>(), (std::vector<float>{1, 2}));
  api().value->retain(tensor);
  const Handle<pfrt_value> kept(tensor);
  EXPECT_TRUE(fails(api().env->reply_at(reply.get(), 2, &name, &tensor), PFRT_CODE_INVALID_ARGUMENT,
                    {"tensor 2 of 2"}));
  EXPECT_EQ(tensor, nullptr);
  reply.reset();
  env_.reset();
  EXPECT_EQ(array_of(kept.get()).as<float>(), (std::vector<float>{1, 2})) << "outlives all";
}

TEST_F(Ask, options_say_which_device_and_how_it_is_opened) {
  Reply reply;
  ASSERT_TRUE(ok(ask("who", {}, &reply)));
  EXPECT_EQ(reply_text(reply), "verbs of verbs, build ");
  const auto o =
      make_options(PFRT_OPTIONS_ASK, {{"device", "words"}, {"provider.verbs.build", "8"}});
  ASSERT_TRUE(ok(ask("who", {}, &reply, o.get(), {}, "VerbsExecutionProvider")));
  EXPECT_EQ(reply_text(reply), "verbs of words, build 8");
  const auto other = make_options(PFRT_OPTIONS_ASK, {{"device", "cpu"}});
  EXPECT_TRUE(fails(ask("who", {}, nullptr, other.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"does not open device 'cpu'", "verbs,words"}));
  const auto foreign = make_options(PFRT_OPTIONS_ASK, {{"provider.cpu.build", "8"}});
  EXPECT_TRUE(fails(ask("who", {}, nullptr, foreign.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"'provider.cpu.build' is for another provider"}));
  const auto unknown = make_options(PFRT_OPTIONS_ASK, {{"provider.verbs.colour", "8"}});
  EXPECT_TRUE(fails(ask("who", {}, nullptr, unknown.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"VerbsExecutionProvider", "an option that it does not have"}));
  const auto twice = make_options(PFRT_OPTIONS_ASK,
                                  {{"provider.verbs.build", "1"}, {"provider.Verbs.build", "2"}});
  EXPECT_TRUE(
      fails(ask("who", {}, nullptr, twice.get()), PFRT_CODE_INVALID_ARGUMENT, {"given twice"}));
}

TEST_F(Ask, says_who_takes_questions) {
  EXPECT_TRUE(fails(ask("who", {}, nullptr, nullptr, {}, "null"), PFRT_CODE_UNSUPPORTED,
                    {"NullExecutionProvider", "takes no questions", "VerbsExecutionProvider"}));
  EXPECT_TRUE(fails(ask("who", {}, nullptr, nullptr, {}, "cpu"), PFRT_CODE_UNSUPPORTED,
                    {"CPUExecutionProvider", "'who'", "it has measure"}));
  EXPECT_TRUE(
      fails(ask("who", {}, nullptr, nullptr, {}, "nobody"), PFRT_CODE_NOT_FOUND, {"'nobody'"}));
  EXPECT_TRUE(fails(ask("dance"), PFRT_CODE_UNSUPPORTED, {"'dance'", "it knows echo"}));
}

TEST_F(Ask, bad_arguments_are_errors) {
  EXPECT_TRUE(fails(ask(""), PFRT_CODE_INVALID_ARGUMENT, {"desc.verb is empty"}));
  EXPECT_TRUE(fails(ask("who", {}, nullptr, nullptr, {}, ""), PFRT_CODE_INVALID_ARGUMENT,
                    {"desc.provider is empty"}));
  EXPECT_TRUE(fails(ask("echo", {}, nullptr, nullptr, {nullptr}), PFRT_CODE_INVALID_ARGUMENT,
                    {"'desc.values[]'"}));
  pfrt_value* none = nullptr;
  ASSERT_TRUE(ok(api().value->create_optional(nullptr, &none)));
  const Handle<pfrt_value> optional(none);
  EXPECT_TRUE(fails(ask("echo", {}, nullptr, nullptr, {none}), PFRT_CODE_INVALID_ARGUMENT,
                    {"value 0 is not a tensor"}));
  const auto others = make_options(PFRT_OPTIONS_OPTIMIZER);
  EXPECT_TRUE(fails(ask("who", {}, nullptr, others.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"of kind optimizer, not ask"}));
  pfrt_ask_desc desc{};
  desc.struct_size = sizeof desc;
  pfrt_reply* reply = nullptr;
  EXPECT_TRUE(fails(api().env->ask(nullptr, &desc, &reply), PFRT_CODE_INVALID_ARGUMENT, {"'env'"}));
  EXPECT_TRUE(
      fails(api().env->ask(env_.get(), nullptr, &reply), PFRT_CODE_INVALID_ARGUMENT, {"'desc'"}));
  EXPECT_TRUE(fails(api().env->ask(env_.get(), &desc, nullptr), PFRT_CODE_INVALID_ARGUMENT,
                    {"'out_reply'"}));
  EXPECT_EQ(api().env->reply_count(nullptr), 0u);
  EXPECT_EQ(text(api().env->reply_text(nullptr)), "");
  api().env->reply_release(nullptr);
}

TEST_F(Ask, what_the_device_does_wrong_is_an_error) {
  EXPECT_TRUE(fails(ask("throw"), PFRT_CODE_PROVIDER, {"ask threw this"}));
  EXPECT_TRUE(fails(ask("lose"), PFRT_CODE_DEVICE_LOST, {"it is gone"}));
  EXPECT_TRUE(fails(ask("answer", "data"), PFRT_CODE_PROVIDER, {"its tensor 'a' has no data"}));
  Reply reply;
  ASSERT_TRUE(ok(ask("bytes", {}, &reply)));
  EXPECT_EQ(reply_text(reply), "\xff\xfe\x80");
}

struct Heard {
  std::vector<double> fractions;
  std::string stage;
  pfrt_options* cancel = nullptr;  // at once
};
void hear(void* user, double fraction, pfrt_string stage) {
  auto& heard = *static_cast<Heard*>(user);
  heard.fractions.push_back(fraction);
  heard.stage = text(stage);
  if (heard.cancel && heard.fractions.size() > 3) api().options->cancel(heard.cancel);
}

TEST_F(Ask, hears_of_progress_and_is_cancelled) {
  const auto o = make_options(PFRT_OPTIONS_ASK);
  Heard heard;
  heard.cancel = o.get();
  ASSERT_TRUE(ok(api().options->set_progress(o.get(), hear, &heard)));
  EXPECT_TRUE(fails(ask("wait", {}, nullptr, o.get()), PFRT_CODE_CANCELLED, {"asking"}));
  EXPECT_EQ(heard.stage, "asking");
  EXPECT_TRUE(std::is_sorted(heard.fractions.begin(), heard.fractions.end()));
  for (const double fraction : heard.fractions) EXPECT_TRUE(fraction >= 0 && fraction <= 1);
  EXPECT_TRUE(fails(ask("who", {}, nullptr, o.get()), PFRT_CODE_CANCELLED, {}))
      << "until it is reset";
  api().options->reset_cancel(o.get());
  heard.cancel = nullptr;
  EXPECT_TRUE(ok(ask("who", {}, nullptr, o.get())));
}

TEST_F(Ask, ends_at_its_timeout) {
  const auto o = make_options(PFRT_OPTIONS_ASK, {{"timeout_ms", "20"}});
  EXPECT_TRUE(fails(ask("wait", {}, nullptr, o.get()), PFRT_CODE_DEADLINE, {"'wait'"}));
}

TEST_F(Ask, is_cancelled_from_another_thread) {
  const auto o = make_options(PFRT_OPTIONS_ASK);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    api().options->cancel(o.get());
  });
  EXPECT_TRUE(fails(ask("wait", {}, nullptr, o.get()), PFRT_CODE_CANCELLED, {"'wait'"}));
  other.join();
}

// ---- counters ----

class Counters : public testing::Test {
 protected:
  // A session with two steps of the provider: y = |-x|.
  Handle<pfrt_session> session(std::string_view report) {
    GraphBuilder g;
    g.input("x", PFRT_DTYPE_FLOAT32, {2});
    g.node("Neg", {"x"}, {"n"}, {}, "neg");
    g.node("Abs", {"n"}, {"y"}, {}, "abs");
    g.output("y");
    const auto o = make_options(PFRT_OPTIONS_SESSION,
                                {{"providers", "VerbsExecutionProvider,CPUExecutionProvider"},
                                 {"assign", "priority"},
                                 {"optimization_level", "none"},
                                 {"provider.verbs.report", report}});
    return make_session(env_.get(), g, o.get());
  }
  static Handle<pfrt_report> explain(const Handle<pfrt_session>& session) {
    pfrt_report* report = nullptr;
    EXPECT_TRUE(ok(api().session->explain(session.get(), &report)));
    return Handle<pfrt_report>(report);
  }
  static pfrt_report_counter at(const Handle<pfrt_report>& report, size_t index) {
    pfrt_report_counter counter{};
    counter.struct_size = sizeof counter;
    EXPECT_TRUE(ok(api().report->counter_at(report.get(), index, &counter)));
    return counter;
  }

  Handle<pfrt_env> env_ = make_env({{"plugin_path", PFRT_VERBS_PLUGINS}});
};

TEST_F(Counters, are_in_the_report_after_a_run) {
  const auto s = session("good");
  EXPECT_EQ(api().report->counter_count(explain(s).get()), 0u);
  run(s.get(), {floats({2}, {1, -2})});
  const auto report = explain(s);
  ASSERT_EQ(api().report->counter_count(report.get()), 2u);
  const pfrt_report_counter cycles = at(report, 0), steps = at(report, 1);
  EXPECT_EQ(text(cycles.provider), "VerbsExecutionProvider");
  EXPECT_EQ(text(cycles.name), "cycles");
  EXPECT_EQ(text(cycles.unit), "cycles");
  EXPECT_EQ(cycles.value, 40);
  EXPECT_EQ(cycles.first_row, 0u);
  EXPECT_EQ(cycles.row_count, 1u);
  EXPECT_EQ(text(steps.name), "steps run");
  EXPECT_EQ(steps.value, 2);
  EXPECT_EQ(steps.first_row, 0u);
  EXPECT_EQ(steps.row_count, 2u);
  pfrt_report_counter none{};
  none.struct_size = sizeof none;
  EXPECT_TRUE(fails(api().report->counter_at(report.get(), 2, &none), PFRT_CODE_INVALID_ARGUMENT,
                    {"counter 2 of 2"}));
  EXPECT_EQ(api().report->counter_count(nullptr), 0u);
}

TEST_F(Counters, that_fail_are_a_note) {
  for (const auto& [how, why] :
       {std::pair{"throws", "report threw this"}, std::pair{"fails", "the counters are gone"},
        std::pair{"nameless", "has no name"}, std::pair{"step", "is of step 2"}}) {
    const auto s = session(how);
    run(s.get(), {floats({2}, {1, -2})});
    const auto report = explain(s);
    EXPECT_EQ(api().report->counter_count(report.get()), 0u) << how;
    bool noted = false;
    for (size_t i = 0; i < api().report->note_count(report.get()); ++i)
      noted |= text(api().report->note_at(report.get(), i)).find(why) != std::string::npos;
    EXPECT_TRUE(noted) << how;
    EXPECT_EQ(run(s.get(), {floats({2}, {1, -2})})[0].as<float>(), (std::vector<float>{1, 2}));
  }
}

TEST_F(Counters, may_be_odd) {
  const auto s = session("odd");
  run(s.get(), {floats({2}, {1, -2})});
  const auto report = explain(s);
  ASSERT_EQ(api().report->counter_count(report.get()), 4u);
  EXPECT_TRUE(std::isnan(at(report, 0).value));
  EXPECT_EQ(text(at(report, 0).unit), "");
}

}  // namespace
}  // namespace pfrt_test

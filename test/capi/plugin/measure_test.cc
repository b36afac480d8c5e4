// SPDX-License-Identifier: Apache-2.0
//
// The verb "measure" of env->ask: what the question says of threads, and the CPU's answer.
#include <sched.h>

#include <algorithm>

#include "pyflame_rt/custom.h"
#include "test/capi/client.h"

namespace pfrt_test {
namespace {

// A client's provider that answers every question by nothing.
struct Meter {
  uint32_t threads = 0;  // of the last question
};

pfrt_code ask_meter(pfrt_provider* provider, const pfrt_question* question, const pfrt_answer*,
                    const pfrt_sink*) {
  reinterpret_cast<Meter*>(provider)->threads = question->threads;
  return PFRT_CODE_OK;
}

const pfrt_provider_table kTable = [] {
  pfrt_provider_table t{};
  t.struct_size = sizeof t;
  t.abi = PFRT_ABI_VERSION;
  t.devices = str("meter");
  t.close = [](pfrt_provider*) {};
  t.claim = [](pfrt_provider*, const pfrt_snapshot*, const pfrt_claims*,
               const pfrt_sink*) -> pfrt_code { return PFRT_CODE_OK; };
  t.compile = [](pfrt_provider*, const pfrt_region*, size_t, size_t, const pfrt_sink*,
                 pfrt_executable**, size_t*) -> pfrt_code { return PFRT_CODE_UNSUPPORTED; };
  t.release_executable = [](pfrt_executable*) {};
  t.specialise = [](pfrt_executable*, const pfrt_shapes*, const pfrt_sink*,
                    pfrt_program*) -> pfrt_code { return PFRT_CODE_UNSUPPORTED; };
  t.release_program = [](pfrt_executable*, pfrt_program*) {};
  t.ask = ask_meter;
  return t;
}();

Failure add(pfrt_env* env, Meter& meter, const pfrt_provider_table* table = &kTable) {
  pfrt_client_provider c{};
  c.struct_size = sizeof c;
  c.abi = PFRT_ABI_VERSION;
  c.name = str("MeterExecutionProvider");
  c.features = PFRT_PROVIDER_ASK;
  c.table = table;
  c.open = [](void* user, pfrt_string, const pfrt_key_value*, size_t, const pfrt_sink*,
              pfrt_provider** out) -> pfrt_code {
    *out = static_cast<pfrt_provider*>(user);
    return PFRT_CODE_OK;
  };
  c.user = &meter;
  return take(api().env->register_provider(env, &c));
}

struct ReplyReleaser {
  void operator()(pfrt_reply* reply) const { api().env->reply_release(reply); }
};
using Reply = std::unique_ptr<pfrt_reply, ReplyReleaser>;

Failure measure(pfrt_env* env, std::string_view provider, std::string_view request,
                Reply* out = nullptr, const pfrt_options* options = nullptr) {
  pfrt_ask_desc desc{};
  desc.struct_size = sizeof desc;
  desc.provider = str(provider);
  desc.verb = str("measure");
  desc.request = str(request);
  desc.options = options;
  pfrt_reply* raw = nullptr;
  const Failure failure = take(api().env->ask(env, &desc, &raw));
  Reply reply(raw);
  if (out) *out = std::move(reply);
  return failure;
}

// Returns the tensor of that name; null, and a failure of the test, where there is none.
const pfrt_value* reply_tensor(const Reply& reply, std::string_view wanted) {
  for (size_t i = 0; i < api().env->reply_count(reply.get()); ++i) {
    pfrt_string name{};
    pfrt_value* value = nullptr;
    EXPECT_TRUE(ok(api().env->reply_at(reply.get(), i, &name, &value)));
    if (text(name) == wanted) return value;
  }
  ADD_FAILURE() << "no tensor " << wanted;
  return nullptr;
}

std::vector<std::string> reply_texts(const Reply& reply, std::string_view name) {
  pfrt_tensor t{};
  t.struct_size = sizeof t;
  EXPECT_TRUE(ok(api().value->tensor(reply_tensor(reply, name), &t)));
  EXPECT_EQ(t.dtype, uint32_t{PFRT_DTYPE_STRING});
  EXPECT_EQ(t.rank, 1u);
  std::vector<std::string> out;
  for (int64_t i = 0; t.rank == 1 && i < t.dims[0]; ++i)
    out.push_back(text(static_cast<const pfrt_string*>(t.data)[i]));
  return out;
}

TEST(Measure, the_question_says_how_many_threads_a_run_may_have) {
  Meter meter;
  const auto one = make_env({{"threads", "1"}});
  ASSERT_TRUE(add(one.get(), meter).ok());
  ASSERT_TRUE(ok(measure(one.get(), "meter", "")));
  EXPECT_EQ(meter.threads, 1u);
  const auto all = make_env();
  ASSERT_TRUE(add(all.get(), meter).ok());
  ASSERT_TRUE(ok(measure(all.get(), "meter", "")));
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_GE(meter.threads, 1u);
  EXPECT_LE(meter.threads, static_cast<uint32_t>(CPU_COUNT(&set)));
}

TEST(Measure, the_cpu_answers_with_vectors_and_text) {
  const auto env = make_env({{"threads", "1"}});
  Reply reply;
  ASSERT_TRUE(ok(measure(env.get(), "cpu", "seconds=0.01 only=read L", &reply)));
  EXPECT_EQ(reply_texts(reply, "name"), (std::vector<std::string>{"read L1", "read L2", "read L3"}))
      << "one thread, as the environment says: each name once";
  EXPECT_EQ(reply_texts(reply, "unit"), std::vector<std::string>(3, "GB/s"));
  const std::vector<std::string> notes = reply_texts(reply, "note");
  const auto threads = array_of(reply_tensor(reply, "threads")).as<int64_t>();
  const auto medians = array_of(reply_tensor(reply, "median")).as<double>();
  const auto bests = array_of(reply_tensor(reply, "best")).as<double>();
  ASSERT_EQ(notes.size(), 3u);
  ASSERT_EQ(threads.size(), 3u);
  ASSERT_EQ(medians.size(), 3u);
  ASSERT_EQ(bests.size(), 3u);
  const std::string said = text(api().env->reply_text(reply.get()));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(notes[i].empty());
    EXPECT_EQ(threads[i] == 1, medians[i] > 0);
    EXPECT_LE(medians[i], bests[i]);
    EXPECT_NE(said.find(notes[i] + "\n"), std::string::npos) << said;
  }
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 3) << said;
}

TEST(Measure, tells_progress_and_is_cancelled) {
  const auto env = make_env();
  struct Heard {
    pfrt_options* options;
    std::vector<double> fractions;
  };
  const auto options = make_options(PFRT_OPTIONS_ASK);
  Heard heard{options.get(), {}};
  ASSERT_TRUE(ok(api().options->set_progress(
      options.get(),
      [](void* user, double fraction, pfrt_string) {
        auto& self = *static_cast<Heard*>(user);
        self.fractions.push_back(fraction);
        if (self.fractions.size() == 3) api().options->cancel(self.options);
      },
      &heard)));
  Reply reply;
  EXPECT_TRUE(fails(measure(env.get(), "cpu", "threads=1 seconds=3600", &reply, options.get()),
                    PFRT_CODE_CANCELLED, {"CPUExecutionProvider", "'measure'"}));
  EXPECT_FALSE(reply);
  EXPECT_EQ(heard.fractions.size(), 3u);
  EXPECT_TRUE(std::is_sorted(heard.fractions.begin(), heard.fractions.end()));

  const auto soon = make_options(PFRT_OPTIONS_ASK, {{"timeout_ms", "1"}});
  EXPECT_TRUE(fails(measure(env.get(), "cpu", "threads=1 seconds=3600", nullptr, soon.get()),
                    PFRT_CODE_DEADLINE, {"CPUExecutionProvider"}));
}

TEST(Measure, who_answers_has_the_function) {
  Meter meter;
  pfrt_provider_table without = kTable;
  without.ask = nullptr;
  const auto env = make_env();
  EXPECT_TRUE(fails(add(env.get(), meter, &without), PFRT_CODE_INVALID_ARGUMENT, {"'ask'"}));
  pfrt_provider_table older = kTable;
  older.struct_size = offsetof(pfrt_provider_table, ask);
  EXPECT_TRUE(fails(add(env.get(), meter, &older), PFRT_CODE_INVALID_ARGUMENT, {"'ask'"}));
}

}  // namespace
}  // namespace pfrt_test

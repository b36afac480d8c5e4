// SPDX-License-Identifier: Apache-2.0
//
// Limits of memory: of a run, of a model, of an environment.
#include "test/capi/client.h"

namespace pfrt_test {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

RunDesc run_limit(int64_t bytes) { return RunDesc({.memory_limit = bytes}); }

// The size of y is the input's value.
GraphBuilder as_asked() {
  GraphBuilder g;
  g.input("shape", PFRT_DTYPE_INT64, {1});
  g.node("ConstantOfShape", {"shape"}, {"y"}, {}, "filler");
  g.output("y");
  return g;
}

TEST(MemoryLimit, of_a_run_holds_for_what_a_request_asks_for) {
  const auto env = make_env();
  const auto session = make_session(env.get(), as_asked());
  ASSERT_TRUE(session);
  const auto limit = run_limit(kMiB);
  const Failure failure = try_run(session.get(), {int64s({1}, {kMiB})}, nullptr, limit.get());
  EXPECT_TRUE(fails(failure, PFRT_CODE_OUT_OF_MEMORY,
                    {"'filler'", "4194304 bytes", "the run", "memory_limit=1048576"}));
  EXPECT_TRUE(ok(try_run(session.get(), {int64s({1}, {1000})}, nullptr, limit.get())));
  EXPECT_TRUE(ok(try_run(session.get(), {int64s({1}, {kMiB})})));
}

TEST(MemoryLimit, of_a_run_holds_for_what_it_works_in_and_what_others_left) {
  const auto env = make_env();
  const auto whole = make_options(PFRT_OPTIONS_SESSION, {{"session.halve_batch", "off"}});
  const auto session = make_session(env.get(), two_products(), whole.get());
  ASSERT_TRUE(session);
  const Array x = floats({512, 512}, random_floats(512 * 512, 2));
  const auto little = run_limit(kMiB + kMiB / 2), enough = run_limit(16 * kMiB);
  for (int round = 0; round < 2; ++round) {  // the second time there is a block to take
    const Failure failure = try_run(session.get(), {x}, nullptr, little.get());
    EXPECT_EQ(failure.code, uint32_t{PFRT_CODE_OUT_OF_MEMORY}) << round;
    EXPECT_NE(failure.message.find("the run"), std::string::npos) << failure.message;
    EXPECT_TRUE(failure.message.find("'first'") != std::string::npos ||
                failure.message.find("'second'") != std::string::npos)
        << failure.message;
    EXPECT_TRUE(ok(try_run(session.get(), {x}, nullptr, enough.get())));
    EXPECT_TRUE(ok(try_run(session.get(), {x}, nullptr, enough.get()))) << "each begins anew";
  }
}

TEST(MemoryLimit, of_an_environment_is_for_all_that_it_has) {
  const auto env = make_env({{"memory_limit", std::to_string(8 * kMiB)}});
  const auto session = make_session(env.get(), as_asked());
  ASSERT_TRUE(session);
  EXPECT_TRUE(fails(try_run(session.get(), {int64s({1}, {4 * kMiB})}), PFRT_CODE_OUT_OF_MEMORY,
                    {"the environment", "memory_limit=8388608"}));
  std::vector<Array> unused;
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(ok(try_run(session.get(), {int64s({1}, {kMiB})}, &unused))) << "what goes is back";
  // Results that are kept count until they are released.
  std::vector<Handle<pfrt_value>> kept;
  Failure failure;
  const auto shape = value_of(int64s({1}, {kMiB / 2}));
  for (int i = 0; i < 10 && failure.ok(); ++i) {
    pfrt_io in{}, out{};
    in.struct_size = out.struct_size = sizeof in;
    in.value = shape.get();
    failure = take(api().session->run(session.get(), &in, 1, &out, 1, nullptr));
    if (failure.ok()) kept.emplace_back(out.value);
  }
  EXPECT_EQ(failure.code, uint32_t{PFRT_CODE_OUT_OF_MEMORY});
  EXPECT_GE(kept.size(), 2u);
  kept.clear();
  EXPECT_TRUE(ok(try_run(session.get(), {int64s({1}, {kMiB})})));
}

TEST(MemoryLimit, of_a_model_holds_while_it_is_loaded) {
  const auto env = make_env();
  const std::vector<char> bytes(static_cast<size_t>(2 * kMiB), 'x');
  const auto load = [&](int64_t limit) {
    const auto options = make_options(PFRT_OPTIONS_LOAD, {{"memory_limit", std::to_string(limit)}});
    pfrt_model* model = nullptr;
    Failure failure = take(api().model->load_memory(
        env.get(), bytes.data(), bytes.size(), PFRT_COPY, nullptr, nullptr, options.get(), &model));
    api().model->release(model);
    return failure;
  };
  EXPECT_TRUE(fails(load(kMiB), PFRT_CODE_OUT_OF_MEMORY, {"the model", "memory_limit=1048576"}));
  EXPECT_NE(load(0).code, uint32_t{PFRT_CODE_OUT_OF_MEMORY}) << "it is no model, for other reasons";
  EXPECT_NE(load(8 * kMiB).code, uint32_t{PFRT_CODE_OUT_OF_MEMORY});
}

}  // namespace
}  // namespace pfrt_test

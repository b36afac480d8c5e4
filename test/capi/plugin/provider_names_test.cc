// SPDX-License-Identifier: Apache-2.0
//
// Everything that takes the name of a provider takes its other words too: "CPUExecutionProvider",
// "CPUProvider", "CPU" and "cpu" are one provider.
#include "test/capi/client.h"

namespace pfrt_test {
namespace {

constexpr const char* kCpuNames[] = {"CPUExecutionProvider", "CPUProvider", "CPU", "cpu", "Cpu",
                                     "cpuexecutionprovider"};

GraphBuilder relu() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  g.node("Relu", {"x"}, {"y"});
  g.output("y");
  return g;
}

TEST(ProviderNames, sessions_take_any) {
  const auto env = make_env();
  const GraphBuilder g = relu();
  for (const char* name : kCpuNames) {
    const auto options = make_options(PFRT_OPTIONS_SESSION, {{"providers", name}});
    const auto session = make_session(env.get(), g, options.get());
    EXPECT_EQ(providers_of(session.get()), (std::vector<std::string>{"CPUExecutionProvider"}));
    EXPECT_EQ(run(session.get(), {floats({2}, {-1, 2})})[0].as<float>(),
              (std::vector<float>{0, 2}));
  }
  const auto both =
      make_options(PFRT_OPTIONS_SESSION, {{"device", "null"}, {"providers", "null,cpu"}});
  EXPECT_EQ(providers_of(make_session(env.get(), g, both.get()).get()).size(), 2u);
}

TEST(ProviderNames, sessions_refuse_two_names_of_one) {
  const auto env = make_env();
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"providers", "cpu,CPUProvider"}});
  EXPECT_TRUE(fails(try_session(env.get(), relu(), options.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"provider CPUExecutionProvider is listed twice"}));
}

TEST(ProviderNames, tables_of_kernels_and_options_take_any) {
  const auto env = make_env();
  size_t known = 0;
  ASSERT_TRUE(ok(api().env->kernel_count(env.get(), str(kCpuNames[0]), &known)));
  EXPECT_GT(known, 100u);
  for (const char* name : kCpuNames) {
    size_t count = 0;
    EXPECT_TRUE(ok(api().env->kernel_count(env.get(), str(name), &count))) << name;
    EXPECT_EQ(count, known) << name;
    EXPECT_TRUE(ok(api().env->provider_option_count(env.get(), str(name), &count))) << name;
  }
}

TEST(ProviderNames, options_of_a_provider_take_any) {
  const auto env = make_env();
  for (const char* name : {"cpu", "CPU", "CPUExecutionProvider"}) {
    const std::string key = std::string("provider.") + name + ".nonesuch";
    const auto options = make_options(PFRT_OPTIONS_SESSION, {{key, "1"}});
    // The provider itself refuses an option that it does not know.
    EXPECT_TRUE(fails(try_session(env.get(), relu(), options.get()), PFRT_CODE_INVALID_ARGUMENT,
                      {"the CPU provider has no option 'nonesuch'"}));
  }
  const auto twice = make_options(PFRT_OPTIONS_SESSION,
                                  {{"provider.cpu.a", "1"}, {"provider.CPUProvider.a", "2"}});
  EXPECT_TRUE(fails(try_session(env.get(), relu(), twice.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"option 'a' of CPUExecutionProvider is given twice"}));
  const auto near = make_options(PFRT_OPTIONS_SESSION, {{"provider.cpo.a", "1"}});
  EXPECT_TRUE(fails(try_session(env.get(), relu(), near.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"does not list", "it lists CPUExecutionProvider", "did you mean 'cpu'?"}));
}

TEST(ProviderNames, unknown_ones_have_a_nearest) {
  const auto env = make_env();
  const std::pair<const char*, const char*> cases[] = {
      {"cpy", "did you mean 'cpu'?"},
      {"nul", "did you mean 'null'?"},
      {"CPUExecutionProvidr", "did you mean 'CPUExecutionProvider'?"}};
  for (const auto& [name, near] : cases) {
    const auto options = make_options(PFRT_OPTIONS_SESSION, {{"providers", name}});
    EXPECT_TRUE(
        fails(try_session(env.get(), relu(), options.get()), PFRT_CODE_NOT_FOUND, {name, near}));
    size_t count = 0;
    EXPECT_TRUE(fails(take(api().env->kernel_count(env.get(), str(name), &count)),
                      PFRT_CODE_NOT_FOUND, {near}));
  }
}

}  // namespace
}  // namespace pfrt_test

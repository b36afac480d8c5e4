// SPDX-License-Identifier: Apache-2.0
//
// A provider that is built twice: with this library's structs, and with larger ones.
#include <algorithm>
#include <cmath>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

constexpr uint32_t kMinors[] = {PFRT_ABI_MINOR, PFRT_ABI_MINOR + 1};
constexpr const char* kAges[] = {"now", "newer"};

Handle<pfrt_env> env_of(const char* age) {
  return make_env({{"plugin_path", std::string(PFRT_AGES "/") + age}});
}

// y = Softmax(Relu(x W + b)), with x float32[batch, 8]; the CPU runs Softmax.
GraphBuilder network(const std::vector<float>& w, const std::vector<float>& b) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"batch", 8});
  g.constant("w", floats({8, 5}, w));
  g.constant("b", floats({5}, b));
  g.node("MatMul", {"x", "w"}, {"product"});
  g.node("Add", {"product", "b"}, {"sum"});
  g.node("Relu", {"sum"}, {"hidden"});
  g.node("Softmax", {"hidden"}, {"y"}, {Attr::of_int("axis", 1)});
  g.output("hidden");
  g.output("y");
  return g;
}

TEST(PluginAges, each_minor_of_this_major_loads) {
  for (size_t age = 0; age < std::size(kAges); ++age) {
    const auto env = env_of(kAges[age]);
    bool found = false;
    for (size_t i = 0; i < api().env->plugin_count(env.get()); ++i) {
      pfrt_plugin_info info{};
      info.struct_size = sizeof info;
      ASSERT_TRUE(ok(api().env->plugin_at(env.get(), i, &info)));
      if (text(info.name) != "CustomExecutionProvider") continue;
      found = true;
      EXPECT_EQ(info.loaded, 1u) << kAges[age] << ": " << text(info.reason);
      EXPECT_EQ(info.abi_major, PFRT_ABI_MAJOR);
      EXPECT_EQ(info.abi_minor, kMinors[age]) << "the folder holds what its name says";
    }
    EXPECT_TRUE(found) << kAges[age];
  }
}

TEST(PluginAges, each_minor_of_this_major_computes) {
  const std::vector<float> w = random_floats(40, 1), b = random_floats(5, 2);
  for (const char* age : kAges) {
    const auto env = env_of(age);
    const auto options = make_options(
        PFRT_OPTIONS_SESSION, {{"providers", "CustomExecutionProvider,CPUExecutionProvider"}});
    const auto session = make_session(env.get(), network(w, b), options.get());
    ASSERT_TRUE(session) << age;
    for (int64_t batch : {1, 3, 900, 0}) {
      const std::vector<float> x = random_floats(static_cast<size_t>(batch * 8), 3);
      const auto outputs = run(session.get(), {floats({batch, 8}, x)});
      ASSERT_EQ(outputs.size(), 2u) << age;
      const auto hidden = outputs[0].as<float>();
      ASSERT_EQ(hidden.size(), static_cast<size_t>(batch * 5)) << age;
      for (int64_t i = 0; i < batch; ++i) {
        for (int64_t j = 0; j < 5; ++j) {
          double sum = b[static_cast<size_t>(j)];
          for (int64_t k = 0; k < 8; ++k)
            sum += static_cast<double>(x[static_cast<size_t>(i * 8 + k)]) *
                   static_cast<double>(w[static_cast<size_t>(k * 5 + j)]);
          EXPECT_NEAR(hidden[static_cast<size_t>(i * 5 + j)], std::max(sum, 0.0), 1e-5) << age;
        }
      }
    }
    pfrt_report* raw = nullptr;
    ASSERT_TRUE(ok(api().session->explain(session.get(), &raw)));
    const Handle<pfrt_report> report(raw);
    size_t own = 0;
    for (size_t i = 0; i < api().report->row_count(raw); ++i) {
      pfrt_report_row row{};
      row.struct_size = sizeof row;
      ASSERT_TRUE(ok(api().report->row_at(raw, i, &row)));
      own += text(row.provider) == "CustomExecutionProvider";
    }
    EXPECT_GE(own, 1u) << age << ": its steps ran";
  }
}

TEST(PluginAges, second_provider_of_one_name_is_turned_away) {
  // The folders hold the provider twice: one comes first, the other has another file name.
  const auto env = make_env({{"plugin_path", PFRT_AGES "/newer:" PFRT_AGES "/twin"}});
  size_t loaded = 0, rejected = 0;
  std::string reason;
  for (size_t i = 0; i < api().env->plugin_count(env.get()); ++i) {
    pfrt_plugin_info info{};
    info.struct_size = sizeof info;
    ASSERT_TRUE(ok(api().env->plugin_at(env.get(), i, &info)));
    if (text(info.name) != "CustomExecutionProvider") continue;
    ++(info.loaded ? loaded : rejected);
    if (!info.loaded) reason = text(info.reason);
  }
  EXPECT_EQ(loaded, 1u);
  EXPECT_EQ(rejected, 1u);
  EXPECT_NE(reason.find("is there already"), std::string::npos) << reason;
  EXPECT_NE(reason.find("newer/libpyflamert_provider_custom.so"), std::string::npos) << reason;
}

}  // namespace
}  // namespace pfrt_test

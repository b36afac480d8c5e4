// SPDX-License-Identifier: Apache-2.0
//
// The order of passes: that of their registration, except that each follows the passes that it
// names.
#include "core/pass/engine/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/pass/engine/passes.h"
#include "core/session/pass_options.h"

namespace pfrt::test {
namespace {

using Names = std::vector<std::string>;

class NamedPass final : public Pass {
 public:
  explicit NamedPass(std::string_view name, std::vector<std::string_view> after = {})
      : name_(name), after_(std::move(after)) {}
  std::string_view name() const override { return name_; }
  std::string_view description() const override { return "does nothing"; }
  OptLevel level() const override { return OptLevel::kBasic; }
  std::span<const std::string_view> after() const override { return after_; }
  Status run(std::shared_ptr<Graph>&, PassContext&, PassResult&) override { return {}; }

 private:
  std::string_view name_;
  std::vector<std::string_view> after_;
};

Status add(Pipeline& pipeline, std::string_view name, std::vector<std::string_view> after = {}) {
  return pipeline.add(std::make_unique<NamedPass>(name, std::move(after)));
}

TEST(Pipeline, passes_follow_those_that_they_say) {
  Pipeline pipeline({});
  ASSERT_TRUE(add(pipeline, "last", {"first", "middle", "absent"}).ok());
  ASSERT_TRUE(add(pipeline, "other").ok());
  ASSERT_TRUE(add(pipeline, "middle", {"first"}).ok());
  EXPECT_EQ(pipeline.names(), (Names{"other", "middle", "last"}));
  ASSERT_TRUE(add(pipeline, "first").ok());
  EXPECT_EQ(pipeline.names(), (Names{"other", "first", "middle", "last"}));
  auto graph = std::make_shared<Graph>("g");
  PassContext context;
  PassResult result;
  ASSERT_TRUE(pipeline.run(graph, context, result).ok());
  Names ran;
  for (const PassReport& report : pipeline.reports()) ran.push_back(report.pass);
  EXPECT_EQ(ran, pipeline.names());
  // A pass with a name that is taken replaces the first one, and its own order holds.
  ASSERT_TRUE(add(pipeline, "other", {"last"}).ok());
  EXPECT_EQ(pipeline.names(), (Names{"first", "middle", "last", "other"}));
}

TEST(Pipeline, passes_that_follow_each_other_are_refused) {
  Pipeline pipeline({});
  ASSERT_TRUE(add(pipeline, "a", {"c"}).ok());
  ASSERT_TRUE(add(pipeline, "b", {"a"}).ok());
  const Status status = add(pipeline, "c", {"b"});
  EXPECT_EQ(status.code(), Code::kINVALID_ARGUMENT);
  EXPECT_NE(status.message().find("adding pass 'c': these would run after each other in a circle"),
            std::string::npos)
      << status.message();
  EXPECT_EQ(pipeline.names(), (Names{"a", "b"}));
  EXPECT_EQ(add(pipeline, "self", {"self"}).code(), Code::kINVALID_ARGUMENT);
}

TEST(Pipeline, built_in_passes_are_listed_in_the_order_that_they_ask_for) {
  const Options options(PFRT_OPTIONS_OPTIMIZER);
  Names listed;
  for (std::string_view name : built_in_passes()) listed.emplace_back(name);
  PipelineConfig config;
  config.level = OptLevel::kAll;
  EXPECT_EQ(Pipeline::standard(config).names(), listed);
  // The order does not depend on that of their registration.
  Pipeline reversed(config);
  for (size_t i = listed.size(); i-- > 0;) {
    std::unique_ptr<Pass> pass = built_in_pass(listed[i], options);
    for (std::string_view name : pass->after())
      EXPECT_LT(std::ranges::find(listed, name) - listed.begin(), static_cast<ptrdiff_t>(i));
    ASSERT_TRUE(reversed.add(std::move(pass)).ok());
  }
  EXPECT_EQ(reversed.names(), listed);
}

}  // namespace
}  // namespace pfrt::test

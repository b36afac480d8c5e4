// SPDX-License-Identifier: Apache-2.0
//
// The cache of compiled models: unfinished entries leave nothing, caches of one folder share
// counts, and keys depend on the bytes.
#include "core/session/compiled_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "test/core/one_checksum.h"

namespace pfrt {
namespace {

namespace fs = std::filesystem;

class CompiledCaches : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pfrt_compiled_XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    auto graph = std::make_shared<Graph>("same");
    const ValueId x = graph->value("x");
    graph->inputs = graph->outputs = {x};
    Progress progress;
    auto model = Model::create(graph, {}, true, false, {}, progress, nullptr);
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = model.take();
    compiled_.graph = graph->clone();
    auto packed = Buffer::allocate(12 << 20);
    ASSERT_TRUE(packed.ok());
    compiled_.packed.emplace("panels", packed.take());
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::unique_ptr<CompiledCache> open(const CompiledCache* former = nullptr, uint64_t most = 0) {
    return std::make_unique<CompiledCache>(folder_, CacheLimits{.max_bytes = most}, nullptr,
                                           former);
  }
  std::shared_ptr<Model> model_of_file(const std::string& bytes) const {
    const std::string path = folder_ + "/model";
    std::ofstream(path) << bytes;
    auto file = os::MappedFile::open(path, true);
    EXPECT_TRUE(file.ok());
    Progress progress;
    auto model =
        Model::create(std::make_shared<Graph>("of files"), {}, false, false, {}, progress, nullptr);
    EXPECT_TRUE(model.ok()) << model.status().message();
    model.value()->set_files({{path, file.value()->stamp(), file.value()}}, "options");
    return model.take();
  }
  size_t files() const {
    const auto all = fs::directory_iterator(folder_);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

  std::string folder_;
  std::shared_ptr<Model> model_;
  Compiled compiled_;
};

TEST_F(CompiledCaches, what_is_stopped_leaves_nothing) {
  const auto cache = open();
  for (const int pieces : {0, 1, 2}) {
    int asked = 0;
    cache->put("key", compiled_, *model_, [&]() -> Status {
      return asked++ < pieces ? Status() : error(Code::kDEADLINE, "too late");
    });
    EXPECT_EQ(asked, pieces + 1);
    EXPECT_FALSE(cache->has("key"));
    EXPECT_EQ(files(), 0u);
  }
  cache->put("key", compiled_, *model_, [] { return Status(); });
  EXPECT_TRUE(cache->has("key"));
}

TEST_F(CompiledCaches, other_limits_go_on_counting) {
  const auto first = open();
  first->put("key", compiled_, *model_, nullptr);
  const auto second = open(first.get(), 1 << 20);
  EXPECT_NE(second->find("key", *model_, nullptr), nullptr);
  EXPECT_EQ(second->entries().statistics().stores, 1u);
  EXPECT_EQ(first->entries().statistics().hits, 1u);
  EXPECT_EQ(open()->entries().statistics().hits, 0u);
}

// A model that was made to be taken for another has an entry of its own.
TEST_F(CompiledCaches, models_of_one_checksum_have_other_keys) {
  const auto [one, other] = pfrt_test::of_one_checksum(8192);
  // The hash covers two texts with their sizes before the bytes of memory: "memory" and this.
  const std::string load_key(1024 - 8 - 6 - 8, 'k');
  const auto of_memory = [&](const std::string& bytes) {
    model_->set_memory(bytes.data(), bytes.size(), load_key);
    return model_->content(RunControl());
  };
  const std::string first = of_memory(one);
  EXPECT_EQ(of_memory(one), first);
  EXPECT_NE(of_memory(other), first);
}

TEST_F(CompiledCaches, files_of_one_checksum_have_other_keys) {
  const auto [one, other] = pfrt_test::of_one_checksum(8192);
  const std::string first = model_of_file(one)->content(RunControl());
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(model_of_file(one)->content(RunControl()), first);
  EXPECT_NE(model_of_file(other)->content(RunControl()), first);
}

TEST_F(CompiledCaches, keys_of_large_files_are_the_same_on_any_number_of_threads) {
  constexpr size_t kPiece = size_t{4} << 20;
  const std::string a(kPiece, 'a'), b(kPiece, 'b'), rest(12345, 'c');
  const std::string first = model_of_file(a + b + rest)->content(RunControl());
  RunControl four;
  four.width = 4;
  EXPECT_EQ(model_of_file(a + b + rest)->content(four), first);
  EXPECT_NE(model_of_file(b + a + rest)->content(four), first);
  EXPECT_NE(model_of_file(a + b + rest.substr(1))->content(four), first);
}

TEST_F(CompiledCaches, a_file_whose_reading_was_cancelled_is_read_again) {
  const auto model = model_of_file("a model");
  const uint32_t cancelled = 1;
  RunControl control;
  control.cancelled = &cancelled;
  EXPECT_EQ(model->content(control), "");
  EXPECT_EQ(model->content(RunControl()).size(), 64u);
}

}  // namespace
}  // namespace pfrt

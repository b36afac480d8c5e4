// SPDX-License-Identifier: Apache-2.0
//
// What a folder that others may reach gives: what was checked, of files of this user's alone.
#include "core/cache/store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace pfrt {
namespace {

namespace fs = std::filesystem;

class CacheFolder : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pfrt_store_XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    logger_.set_sink(
        [](void* user, pfrt_log_level, pfrt_string text) {
          static_cast<std::vector<std::string>*>(user)->emplace_back(text.data, text.size);
        },
        &lines_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string cache() const { return folder_ + "/cache"; }
  std::unique_ptr<CacheStore> open() {
    return std::make_unique<CacheStore>(cache(), std::vector<std::string>{".kind"}, CacheLimits(),
                                        &logger_);
  }
  static Status put(CacheStore& store, std::string_view head) {
    return store.put("key", ".kind", "test", head,
                     {{0, 5, [](const auto& write) { return write("bytes", 5); }}});
  }
  std::string entry() const {
    for (const auto& file : fs::directory_iterator(cache()))
      if (file.path().extension() == ".kind") return file.path();
    return "";
  }

  std::string folder_;
  Logger logger_;
  std::vector<std::string> lines_;
};

// A reader relies on the check of the head, and reads it afterwards.
TEST_F(CacheFolder, the_head_stays_what_was_checked) {
  const std::string head(10'000, 'h');
  ASSERT_TRUE(put(*open(), head).ok());
  const auto store = open();
  const auto found = store->find("key", ".kind");
  ASSERT_NE(found, nullptr);
  std::ofstream(entry(), std::ios::binary | std::ios::trunc) << "somebody else's";
  EXPECT_EQ(found->head, head);
  EXPECT_EQ(found->key, "key");
  EXPECT_EQ(found->of, "test");
}

}  // namespace
}  // namespace pfrt

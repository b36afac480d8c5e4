// SPDX-License-Identifier: Apache-2.0
//
// Cache folders that others may reach: an entry gives only contents that were checked, from files
// of this user's alone.
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

// A reader relies on the check of the head, and reads the head afterwards.
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

// A lifetime of more seconds than nanoseconds can count means for ever, not a time that has passed.
TEST_F(CacheFolder, entries_may_live_as_long_as_anybody_says) {
  for (const int64_t seconds : {int64_t{9'300'000'000}, int64_t{1} << 40, INT64_MAX}) {
    CacheStore store(cache(), {".kind"}, {.ttl_s = seconds}, &logger_);
    ASSERT_TRUE(put(store, "head").ok());
    EXPECT_NE(store.find("key", ".kind"), nullptr) << seconds;
    CacheStore again(cache(), {".kind"}, {.ttl_s = seconds}, &logger_);
    EXPECT_NE(again.find("key", ".kind"), nullptr) << seconds;
  }
}

TEST_F(CacheFolder, files_that_others_may_write_to_are_not_used) {
  ASSERT_TRUE(put(*open(), "head").ok());
  ASSERT_NE(open()->find("key", ".kind"), nullptr);
  ASSERT_EQ(::chmod(entry().c_str(), 0620), 0);
  EXPECT_EQ(open()->find("key", ".kind"), nullptr);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("no file of this user's"), std::string::npos) << lines_[0];
}

TEST_F(CacheFolder, links_to_files_are_not_used) {
  ASSERT_TRUE(put(*open(), "head").ok());
  const std::string path = entry(), elsewhere = folder_ + "/elsewhere";
  fs::rename(path, elsewhere);
  fs::create_symlink(elsewhere, path);
  EXPECT_EQ(open()->find("key", ".kind"), nullptr);
  EXPECT_EQ(lines_.size(), 1u);
}

TEST_F(CacheFolder, another_users_is_not_used) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  constexpr uid_t kOther = 65534;
  ASSERT_TRUE(put(*open(), "head").ok());
  ASSERT_EQ(::chown(cache().c_str(), kOther, kOther), 0);
  EXPECT_EQ(open()->find("key", ".kind"), nullptr);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("it belongs to user 65534"), std::string::npos) << lines_[0];
  const Status refused = put(*open(), "head");
  EXPECT_EQ(refused.code(), Code::kIO);
  ASSERT_EQ(::chown(cache().c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(entry().c_str(), kOther, kOther), 0);
  EXPECT_EQ(open()->find("key", ".kind"), nullptr);
}

// Other users may use a folder of root's, such as one that a service is given.
TEST_F(CacheFolder, of_root_is_used_by_another_user) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  ASSERT_EQ(::mkdir(cache().c_str(), 0700), 0);
  ASSERT_EQ(::chmod(cache().c_str(), 0777), 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  ASSERT_EQ(::seteuid(65534), 0);
  const bool stored = put(*open(), "head").ok(), found = open()->find("key", ".kind") != nullptr;
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_TRUE(stored);
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace pfrt

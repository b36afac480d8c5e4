// SPDX-License-Identifier: Apache-2.0
//
// Values by key in a file: others find them again, whole or not at all, whatever became of the
// file, and none is lost between processes.
#include "core/cache/stored_values.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

namespace pfrt {
namespace {

namespace fs = std::filesystem;

class ValuesInFile : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pfrt_values_XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    logger_.set_sink(
        [](void* user, pfrt_log_level, pfrt_string text) {
          static_cast<std::vector<std::string>*>(user)->emplace_back(text.data, text.size);
        },
        &lines_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A store and its values, opened as another process would.
  struct Opened {
    CacheStore store;
    StoredValues values;
    Opened(const std::string& folder, Logger* logger, size_t most)
        : store(folder, {".tuned"}, {.max_bytes = 0, .max_entries = 32, .ttl_s = 0}, logger),
          values(store, "machine", ".tuned", "values", logger, most) {}
  };
  std::unique_ptr<Opened> open(size_t most = 100) {
    return std::make_unique<Opened>(folder_ + "/cache", &logger_, most);
  }
  std::string path() const {
    for (const auto& file : fs::directory_iterator(folder_ + "/cache"))
      if (file.path().extension() == ".tuned") return file.path();
    return "";
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  std::string folder_;
  Logger logger_;
  std::vector<std::string> lines_;
};

using Found = std::optional<std::string>;

TEST_F(ValuesInFile, are_found_by_who_opens_the_folder_later) {
  const auto first = open();
  EXPECT_EQ(first->values.find("a"), Found());
  first->values.put("a", "one");
  first->values.put("b", std::string("\0\n=", 3));
  first->values.put("a", "two");
  EXPECT_EQ(first->values.find("a"), Found("two"));
  const auto second = open();
  EXPECT_EQ(second->values.find("a"), Found("two"));
  EXPECT_EQ(second->values.find("b"), Found(std::string("\0\n=", 3)));
  const auto list = second->store.list(true);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_TRUE(list[0].valid);
  EXPECT_EQ(list[0].of, "2 values");
  EXPECT_TRUE(lines_.empty()) << lines_.front();
}

TEST_F(ValuesInFile, of_two_who_have_it_open_are_all_kept) {
  const auto first = open(), second = open();
  first->values.put("a", "1");
  second->values.put("b", "2");
  first->values.put("c", "3");
  EXPECT_EQ(second->values.find("c"), Found()) << "it was put after its own";
  for (const char* key : {"a", "b", "c"}) {
    EXPECT_TRUE(first->values.find(key)) << key;
    EXPECT_TRUE(open()->values.find(key)) << key;
  }
}

TEST_F(ValuesInFile, of_processes_at_once_are_all_kept) {
  constexpr int kProcesses = 4, kEach = 25;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto own = open(1000);
      for (int i = 0; i < kEach; ++i)
        own->values.put(message("key ", p, " ", i), message("value ", p * i));
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const auto all = open(1000);
  for (int p = 0; p < kProcesses; ++p)
    for (int i = 0; i < kEach; ++i)
      EXPECT_EQ(all->values.find(message("key ", p, " ", i)), Found(message("value ", p * i)));
  EXPECT_TRUE(lines_.empty()) << lines_.front();
}

TEST_F(ValuesInFile, that_came_first_go_first) {
  const auto few = open(3);
  for (const char* key : {"a", "b", "c"}) few->values.put(key, key);
  few->values.put("a", "again");
  few->values.put("d", "d");
  const auto later = open(3);
  EXPECT_EQ(later->values.find("b"), Found());
  for (const char* key : {"a", "c", "d"}) EXPECT_TRUE(later->values.find(key)) << key;
}

TEST_F(ValuesInFile, of_a_torn_file_are_not_there_and_made_again) {
  open()->values.put("a", "one");
  const std::string file = path(), good = read(file);
  for (const size_t length : {size_t{0}, size_t{1}, size_t{60}, good.size() / 2, good.size() - 1}) {
    lines_.clear();
    write(file, good.substr(0, length));
    const auto torn = open();
    EXPECT_EQ(torn->values.find("a"), Found()) << length;
    ASSERT_EQ(lines_.size(), 1u) << length;
    EXPECT_NE(lines_[0].find("is not used and made again"), std::string::npos) << lines_[0];
    torn->values.put("b", "two");
    EXPECT_EQ(open()->values.find("b"), Found("two")) << length;
  }
  write(file, good + "more");
  EXPECT_EQ(open()->values.find("a"), Found());
}

TEST_F(ValuesInFile, of_a_file_with_any_bit_flipped_are_not_there) {
  open()->values.put("a", "one");
  const std::string file = path(), good = read(file);
  for (size_t i = 0; i < 8 * good.size(); i += 1009) {
    lines_.clear();
    std::string bad = good;
    bad[i / 8] = static_cast<char>(bad[i / 8] ^ 1 << i % 8);
    write(file, bad);
    ASSERT_EQ(open()->values.find("a"), Found()) << "bit " << i;
    ASSERT_EQ(lines_.size(), 1u) << "bit " << i;
  }
}

TEST_F(ValuesInFile, of_another_form_are_not_there) {
  const auto store = open();
  const auto put = [&](std::string_view head, const std::string& body) {
    const Status status = store->store.put(
        "machine", ".tuned", "foreign", head,
        {{0, body.size(), [&](const auto& to) { return to(body.data(), body.size()); }}});
    ASSERT_TRUE(status.ok()) << status.message();
  };
  const std::string sizes("\1\0\0\0\3\0\0\0", 8);
  put("values 1", sizes + "aone");
  EXPECT_EQ(open()->values.find("a"), Found("one"));
  EXPECT_TRUE(lines_.empty());
  const std::string huge("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
  for (const auto& [head, body] :
       std::vector<std::pair<std::string, std::string>>{{"values 2", sizes + "aone"},
                                                        {"", sizes + "aone"},
                                                        {"values 1", sizes + "aon"},
                                                        {"values 1", sizes + "aone."},
                                                        {"values 1", huge + "aone"},
                                                        {"values 1", "aone"}}) {
    lines_.clear();
    put(head, body);
    const auto other = open();
    EXPECT_EQ(other->values.find("a"), Found()) << head << body;
    ASSERT_EQ(lines_.size(), 1u) << head << body;
    EXPECT_NE(lines_[0].find("in another form"), std::string::npos) << lines_[0];
    other->values.put("a", "new");
    EXPECT_EQ(open()->values.find("a"), Found("new"));
  }
}

TEST_F(ValuesInFile, stay_with_who_cannot_write_them) {
  write(folder_ + "/cache", "a file where the folder should be");
  const auto values = open();
  values->values.put("a", "one");
  values->values.put("b", "two");
  EXPECT_EQ(values->values.find("a"), Found("one"));
  EXPECT_EQ(lines_.size(), 2u);
}

TEST_F(ValuesInFile, go_with_the_file) {
  open()->values.put("a", "one");
  EXPECT_EQ(open()->store.clear(), 1u);
  open()->values.put("b", "two");
  const auto later = open();
  EXPECT_EQ(later->values.find("a"), Found());
  EXPECT_EQ(later->values.find("b"), Found("two"));
}

}  // namespace
}  // namespace pfrt

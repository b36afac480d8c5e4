// SPDX-License-Identifier: Apache-2.0
//
// Generated code is published in the forms that people look for.
#include "providers/cpu/jit/published.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace pfrt::test {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Sets an environment variable for its lifetime.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(Published, code_is_dumped_and_named_for_perf) {
  const std::string folder = testing::TempDir() + "pfrt_published_" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  const std::string map = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  std::filesystem::remove(map);
  const std::string code("\x0f\x1f\xc3", 3);
  cpu::publish("unseen", code.data(), code.size());
  EXPECT_FALSE(std::filesystem::exists(map));
  {
    const Variable dump("PFRT_JIT_DUMP", folder), perf("PFRT_JIT_PERF", "1");
    cpu::publish("first", code.data(), code.size());
    cpu::publish("second", code.data(), code.size());
  }
  EXPECT_EQ(contents(folder + "/first.bin"), code);
  EXPECT_FALSE(std::filesystem::exists(folder + "/unseen.bin"));
  std::filesystem::remove_all(folder);
  const std::string lines = contents(map);
  std::filesystem::remove(map);
  char start[40];
  std::snprintf(start, sizeof start, "%zx 3 ", reinterpret_cast<size_t>(code.data()));
  EXPECT_EQ(lines, std::string(start) + "first\n" + start + "second\n");
}

TEST(Published, what_cannot_be_written_is_left) {
  const Variable dump("PFRT_JIT_DUMP", "/nowhere/at/all");
  cpu::publish("lost", "x", 1);
}

}  // namespace
}  // namespace pfrt::test

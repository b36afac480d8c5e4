// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/variable.h"

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace pfrt {
namespace {

constexpr char kName[] = "PFRT_VARIABLE_TEST";
constexpr int kSeen = 40, kUnseen = 41, kPlain = 42;

TEST(Variable, is_what_the_environment_says) {
  ASSERT_EQ(::setenv(kName, "value", 1), 0);
  EXPECT_STREQ(os::variable(kName), "value");
  ASSERT_EQ(::unsetenv(kName), 0);
  EXPECT_STREQ(os::variable(kName), "");
}

// The test below runs this in a copy of the program that belongs to another user and runs with that
// user's rights.
TEST(Variable, DISABLED_of_a_copy) {
  if (::getauxval(AT_SECURE) == 0) std::_Exit(kPlain);
  std::_Exit(*os::variable(kName) ? kSeen : kUnseen);
}

TEST(Variable, is_not_read_with_more_rights_than_the_user_has) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a program away";
  char folder[] = "/tmp/pfrt_variable_XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  ASSERT_EQ(::chmod(folder, 0755), 0);
  const std::string copy = std::string(folder) + "/test";
  std::filesystem::copy_file("/proc/self/exe", copy);
  ASSERT_EQ(::chown(copy.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(copy.c_str(), 04755), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv(kName, "value", 1);
    ::execl(copy.c_str(), copy.c_str(), "--gtest_also_run_disabled_tests",
            "--gtest_filter=Variable.DISABLED_of_a_copy", nullptr);
    std::_Exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kPlain) GTEST_SKIP() << "nobody's rights are changed in /tmp";
  EXPECT_EQ(WEXITSTATUS(status), kUnseen);
}

}  // namespace
}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// Quotas of cgroups, read from trees that the tests make.
#include "core/base/os/cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

namespace pfrt {
namespace {

class Cgroups : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "pfrt_cgroups_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  uint32_t limit() const { return os::cgroup_processors(root_); }

  std::string root_;
};

constexpr char kV2[] = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
constexpr char kV1[] =
    "30 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "31 23 0:28 / /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory\n";

TEST_F(Cgroups, none_is_no_limit) {
  EXPECT_EQ(limit(), 0u);
  write("/proc/self/cgroup", "0::/\n");
  write("/proc/self/mountinfo", kV2);
  EXPECT_EQ(limit(), 0u);
  write("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(limit(), 0u);
}

TEST_F(Cgroups, v2_takes_the_tightest_of_nested_groups) {
  write("/proc/self/cgroup", "0::/a/b/c\n");
  write("/proc/self/mountinfo", kV2);
  write("/sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
  EXPECT_EQ(limit(), 0u);
  write("/sys/fs/cgroup/a/cpu.max", "600000 100000\n");
  EXPECT_EQ(limit(), 6u);
  write("/sys/fs/cgroup/a/b/cpu.max", "250000 100000\n");
  EXPECT_EQ(limit(), 3u);  // rounded up
  write("/sys/fs/cgroup/a/b/c/cpu.max", "400000 100000\n");
  EXPECT_EQ(limit(), 3u);
  write("/sys/fs/cgroup/a/b/c/cpu.max", "1000 100000\n");
  EXPECT_EQ(limit(), 1u);
}

TEST_F(Cgroups, v1_reads_quota_and_period) {
  write("/proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/jobs/one\n");
  write("/proc/self/mountinfo", kV1);
  const std::string folder = "/sys/fs/cgroup/cpu,cpuacct/jobs";
  write(folder + "/one/cpu.cfs_quota_us", "-1\n");
  write(folder + "/one/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit(), 0u);
  write(folder + "/cpu.cfs_quota_us", "100000\n");
  write(folder + "/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(limit(), 2u);
}

// A container's mount shows its own group as the top, while the path is the host's.
TEST_F(Cgroups, containers_group_is_the_top_of_the_mount) {
  write("/proc/self/cgroup", "4:cpu:/docker/0a1b\n");
  write("/proc/self/mountinfo",
        "30 23 0:27 /docker/0a1b /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit(), 2u);
}

TEST_F(Cgroups, both_versions_at_once) {
  write("/proc/self/cgroup", "4:cpu,cpuacct:/x\n0::/y\n");
  write("/proc/self/mountinfo",
        std::string(kV1) + "32 23 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  write("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "400000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit(), 4u);
  write("/sys/fs/cgroup/unified/y/cpu.max", "200000 100000\n");
  EXPECT_EQ(limit(), 2u);
}

TEST_F(Cgroups, nonsense_is_no_limit) {
  write("/proc/self/cgroup", "\n:\n0:\n0::\nfoo\n0::/a\n");
  write("/proc/self/mountinfo", std::string("- \nx - cgroup2\n") + kV2);
  for (const char* text :
       {"", "0 0", "-5 100000", "9 -1", "word 100000", "99999999999999999999 1"}) {
    write("/sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(limit(), 0u) << text;
  }
}

TEST_F(Cgroups, memory_is_what_the_tightest_group_leaves) {
  EXPECT_EQ(os::available_memory(root_), 0u);
  write("/proc/meminfo", "MemTotal: 100 kB\nMemAvailable:   64 kB\nMemFree: 9 kB\n");
  EXPECT_EQ(os::available_memory(root_), 65536u);
  write("/proc/self/cgroup", "0::/a/b\n");
  write("/proc/self/mountinfo", kV2);
  write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  write("/sys/fs/cgroup/a/b/memory.current", "1000\n");
  EXPECT_EQ(os::available_memory(root_), 65536u);
  write("/sys/fs/cgroup/a/memory.max", "30000\n");
  write("/sys/fs/cgroup/a/memory.current", "20000\n");
  EXPECT_EQ(os::available_memory(root_), 10000u);
  write("/sys/fs/cgroup/a/memory.stat", "anon 7\ninactive_file 5000\nfile 6000\n");
  EXPECT_EQ(os::available_memory(root_), 15000u);
  write("/sys/fs/cgroup/a/memory.current", "40000\n");
  EXPECT_EQ(os::available_memory(root_), 1u);

  write("/proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/jobs/one\n");
  write("/proc/self/mountinfo", kV1);
  write("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "9000\n");
  write("/sys/fs/cgroup/memory/m/memory.usage_in_bytes", "4000\n");
  EXPECT_EQ(os::available_memory(root_), 5000u);
}

TEST_F(Cgroups, memory_is_short_above_what_a_group_should_have) {
  write("/proc/self/cgroup", "0::/a\n");
  write("/proc/self/mountinfo", kV2);
  write("/sys/fs/cgroup/a/memory.max", "30000\n");
  write("/sys/fs/cgroup/a/memory.high", "max\n");
  write("/sys/fs/cgroup/a/memory.current", "20000\n");
  EXPECT_EQ(os::available_memory(root_), 10000u);
  write("/sys/fs/cgroup/a/memory.high", "24000\n");
  EXPECT_EQ(os::available_memory(root_), 4000u);
  write("/sys/fs/cgroup/a/memory.max", "max\n");
  EXPECT_EQ(os::available_memory(root_), 4000u);
}

TEST_F(Cgroups, memory_stalls_where_it_stalls_the_most) {
  EXPECT_EQ(os::memory_stalled(root_), 0.0);
  write("/proc/pressure/memory",
        "some avg10=1.50 avg60=0.00 avg300=0.00 total=7\nfull avg10=9.00\n");
  EXPECT_DOUBLE_EQ(os::memory_stalled(root_), 1.5);
  write("/proc/self/cgroup", "0::/a/b\n");
  write("/proc/self/mountinfo", kV2);
  write("/sys/fs/cgroup/a/b/memory.pressure", "some avg10=0.25 avg60=0.00\n");
  EXPECT_DOUBLE_EQ(os::memory_stalled(root_), 1.5);
  write("/sys/fs/cgroup/a/memory.pressure", "some avg10=41.07 avg60=0.00\n");
  EXPECT_DOUBLE_EQ(os::memory_stalled(root_), 41.07);
  for (const char* text : {"", "none avg10=99", "some avg60=99", "some avg10=x", "some avg10=-3"}) {
    write("/sys/fs/cgroup/a/memory.pressure", text);
    EXPECT_DOUBLE_EQ(os::memory_stalled(root_), 1.5) << text;
  }
  write("/sys/fs/cgroup/a/memory.pressure", "some avg10=1000\n");
  EXPECT_DOUBLE_EQ(os::memory_stalled(root_), 100.0);
  write("/proc/self/cgroup", "5:memory:/m\n");
  write("/proc/self/mountinfo", kV1);
  write("/sys/fs/cgroup/memory/m/memory.pressure", "some avg10=80\n");
  EXPECT_DOUBLE_EQ(os::memory_stalled(root_), 1.5) << "v1 has no such file";
}

TEST(Processors, are_at_least_one) { EXPECT_GE(os::usable_processors(), 1u); }

TEST(Processors, a_thread_stays_on_the_one_it_is_pinned_to) {
  const std::vector<uint32_t> all = os::allowed_processors();
  ASSERT_FALSE(all.empty());
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_GE(all.size(), os::usable_processors());
  std::thread([&] {
    ASSERT_TRUE(os::pin_thread(all.back()));
    EXPECT_EQ(os::allowed_processors(), std::vector<uint32_t>{all.back()});
    EXPECT_EQ(os::usable_processors(), 1u);
  }).join();
  EXPECT_EQ(os::allowed_processors(), all) << "other threads stay as they are";
}

TEST(Memory, some_is_available) { EXPECT_GT(os::available_memory(), 0u); }

TEST(Clock, recent_time_is_close_behind) {
  const uint64_t recent = os::recent_ns(), now = os::monotonic_ns();
  EXPECT_LE(recent, now);
}

}  // namespace
}  // namespace pfrt

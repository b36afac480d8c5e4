// SPDX-License-Identifier: Apache-2.0
//
// The number of threads of a run: affinity, quota and options decide it when the run starts. An
// executor is told the number and records it.
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "test/capi/client.h"
#include "test/capi/plugin/custom_operator.h"

namespace pfrt_test {
namespace {

struct Told {
  uint32_t width = 1;  // loops of one thread need no executor
};

Handle<pfrt_env> telling_env(Told* told, const Settings& settings = {}) {
  auto env = make_env(settings);
  pfrt_executor executor{};
  executor.struct_size = sizeof executor;
  executor.user = told;
  executor.loop = [](void* user, uint32_t workers, uint64_t n,
                     void (*fn)(void*, uint64_t, uint32_t), void* arg) {
    static_cast<Told*>(user)->width = workers;
    for (uint64_t i = 0; i < n; ++i) fn(arg, i, 0);
  };
  EXPECT_TRUE(ok(api().env->set_executor(env.get(), &executor)));
  return env;
}

uint32_t width_of(pfrt_session* session, Told* told, const pfrt_run_desc* desc = nullptr) {
  told->width = 1;
  (void)run(session, {floats({64, 1024}, std::vector<float>(64 * 1024))}, desc);
  return told->width;
}

GraphBuilder loop_graph() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 1024});
  g.node("Softmax", {"x"}, {"y"});
  g.output("y");
  return g;
}

uint32_t processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<uint32_t>(CPU_COUNT(&set)) : 1;
}

// Returns the width of a run in a new process that |prefix| starts; 0 when it did not start.
uint32_t width_under(const std::string& prefix) {
  const std::string command =
      prefix + " /proc/" + std::to_string(getpid()) +
      "/exe --gtest_also_run_disabled_tests --gtest_filter=Width.DISABLED_report 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return 0;
  uint32_t width = 0;
  char line[512];
  while (std::fgets(line, sizeof line, pipe)) std::sscanf(line, "width %u", &width);
  return pclose(pipe) == 0 ? width : 0;
}

TEST(Width, is_shared_by_runs_that_are_under_way_at_once) {
  Told told;
  const auto env = telling_env(&told);
  TestOperator within("Within");
  within.infer = infer_like_input;
  ASSERT_TRUE(ok(within.add_to(env.get())));
  GraphBuilder g;
  g.opset(1, "acme");
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Within", {"x"}, {"y"}, {}, {}, "acme");
  g.output("y");
  const auto eight = make_options(PFRT_OPTIONS_SESSION, {{"num_threads", "8"}});
  const auto outer = make_session(env.get(), g);
  const auto inner = make_session(env.get(), loop_graph(), eight.get());
  EXPECT_EQ(width_of(inner.get(), &told), 8u);
  uint32_t beside_one = 0, of_its_own = 0;
  const RunDesc own({.num_threads = 8});
  within.compute = [&](const pfrt_op_compute* call) {
    beside_one = width_of(inner.get(), &told);
    of_its_own = width_of(inner.get(), &told, own.get());
    return compute_scaled(call);
  };
  (void)run(outer.get(), {floats({1}, {1})});
  EXPECT_EQ(beside_one, 7u);
  EXPECT_EQ(of_its_own, 8u);
  EXPECT_EQ(width_of(inner.get(), &told), 8u);
}

// width_under starts this in a new process.
TEST(Width, DISABLED_report) {
  Told told;
  const auto env = telling_env(&told);
  const auto session = make_session(env.get(), loop_graph());
  std::printf("width %u\n", width_of(session.get(), &told));
}

TEST(Width, follows_options) {
  Told told;
  const auto env = telling_env(&told, {{"threads", "5"}});
  const auto of_session = make_options(PFRT_OPTIONS_SESSION, {{"num_threads", "3"}});
  const auto session = make_session(env.get(), loop_graph(), of_session.get());
  EXPECT_EQ(width_of(session.get(), &told), 3u);
  for (const auto& [asked, given] : {std::pair{4, 4u}, {9, 5u}, {1, 1u}}) {
    const RunDesc options({.num_threads = asked});
    EXPECT_EQ(width_of(session.get(), &told, options.get()), given);
  }
}

TEST(Width, follows_the_affinity_of_the_moment) {
  Told told;
  const auto env = telling_env(&told);
  const auto session = make_session(env.get(), loop_graph());
  const uint32_t before = width_of(session.get(), &told);
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(width_of(session.get(), &told), 1u);
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(width_of(session.get(), &told), before);
}

TEST(Width, is_one_under_taskset_to_one_processor) {
  if (std::system("taskset -p $$ >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no taskset";
  EXPECT_EQ(width_under("taskset -c 0"), 1u);
}

// A group made for the test, where this process may make one: of cgroup v2, or of v1's cpu
// hierarchy.
class Group {
 public:
  Group() {
    for (const bool v2 : {true, false}) {
      path_ = std::string(v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu") + "/pyflame_rt_test_" +
              std::to_string(getpid());
      if (mkdir(path_.c_str(), 0755) != 0) continue;
      v2_ = v2;
      // A plain folder has no such files.
      const std::string file = path_ + (v2 ? "/cpu.max" : "/cpu.cfs_quota_us");
      if (access(file.c_str(), W_OK) == 0 && limit(100'000)) return;
      rmdir(path_.c_str());
    }
    path_.clear();
  }
  ~Group() {
    if (!path_.empty()) rmdir(path_.c_str());
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  bool made() const { return !path_.empty(); }
  // Limits the group to |quota| microseconds of processor time in every 100 milliseconds.
  bool limit(int quota) const {
    std::ofstream file(path_ + (v2_ ? "/cpu.max" : "/cpu.cfs_quota_us"));
    file << quota;
    if (v2_) file << " 100000";
    file.close();
    if (!v2_) {
      std::ofstream period(path_ + "/cpu.cfs_period_us");
      period << 100000;
    }
    std::ifstream back(path_ + (v2_ ? "/cpu.max" : "/cpu.cfs_quota_us"));
    int held = 0;
    return back >> held && held == quota;
  }
  // Start of a shell command that enters the group first.
  std::string enter() const { return "echo $$ > " + path_ + "/cgroup.procs && exec"; }

 private:
  std::string path_;
  bool v2_ = false;
};

TEST(Width, follows_the_quota_of_the_cgroup) {
  const Group group;
  if (!group.made()) GTEST_SKIP() << "no cgroup with a CPU quota can be made here";
  ASSERT_TRUE(group.limit(60'000));
  EXPECT_EQ(width_under(group.enter()), 1u);
  ASSERT_TRUE(group.limit(130'000));
  EXPECT_EQ(width_under(group.enter()), std::min(2u, processors()));
}

}  // namespace
}  // namespace pfrt_test

// SPDX-License-Identifier: Apache-2.0
//
// Code that is written when it is first run: once, whoever comes meanwhile, and not at all where
// the system gives no more executable pages.
#include "providers/cpu/jit/lazy_code.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "providers/cpu/jit/panel_microkernel.h"
#include "providers/cpu/jit/short_chain_microkernel.h"

namespace pfrt::test {
namespace {

using cpu::LazyCode;
using cpu::PanelMicrokernel;
using cpu::ShortChainMicrokernel;

void add_one(int* to) { ++*to; }
LazyCode<int>::Code added() { return &add_one; }

TEST(LazyCode, is_written_once) {
  const LazyCode<int> code;
  EXPECT_EQ(code.ready(), nullptr);
  int written = 0, runs = 0;
  for (int i = 0; i < 3; ++i)
    code.get([&] {
      ++written;
      return added();
    })(&runs);
  EXPECT_EQ(written, 1);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(code.ready(), &add_one);
}

TEST(LazyCode, is_not_asked_again_where_it_was_refused) {
  const LazyCode<int> code;
  int asked = 0;
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(code.get([&]() -> LazyCode<int>::Code {
      ++asked;
      return nullptr;
    }),
              nullptr);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(code.ready(), nullptr);
}

TEST(LazyCode, is_asked_again_where_there_was_no_memory) {
  const LazyCode<int> code;
  EXPECT_THROW(code.get([]() -> LazyCode<int>::Code { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_EQ(code.get(added), &add_one);
}

TEST(LazyCode, does_not_wait_for_ever) {
  const LazyCode<int> code;
  code.get([&] {
    EXPECT_EQ(code.get(added), nullptr);
    return added();
  });
  EXPECT_EQ(code.ready(), &add_one);
}

TEST(LazyCode, is_written_once_on_threads) {
  for (int round = 0; round < 50; ++round) {
    const LazyCode<int> code;
    std::atomic<int> written{0}, started{0}, ran{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (++started; started < 4;) {
        }
        int runs = 0;
        if (const auto made = code.get([&] {
              ++written;
              return added();
            }))
          made(&runs);
        ran += runs;
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(written, 1);
    EXPECT_GE(ran, 1);
    EXPECT_EQ(code.ready(), &add_one);
  }
}

constexpr const char* kForbidden = "PFRT_TEST_FORBID_CODE";

// Forbids the process to make any further page executable.
bool forbid_code() {
  constexpr auto kSyscall = static_cast<uint32_t>(offsetof(seccomp_data, nr));
  constexpr auto kProtection = static_cast<uint32_t>(offsetof(seccomp_data, args) + 2 * 8);
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSyscall),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kProtection),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(steps)), steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// The environment of a process that the test below starts. Microkernels exist, but the code that
// they would write later cannot be written.
class Forbidden final : public testing::Environment {
 public:
  void SetUp() override {
    if (std::getenv(kForbidden) == nullptr) return;
    const std::string asked = std::getenv("PFRT_ISA");
    for (const std::string& isa : {std::string("avx2"), asked}) {
      setenv("PFRT_ISA", isa.c_str(), 1);
      (void)PanelMicrokernel::get();
      (void)PanelMicrokernel::get_bf16_dot();
      for (const int64_t chain : {8, 16}) (void)ShortChainMicrokernel::get(chain);
    }
    if (!forbid_code()) std::exit(77);
    void* const page =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0) std::exit(78);
  }
};

[[maybe_unused]] const auto* const kForbiddenSet =
    testing::AddGlobalTestEnvironment(new Forbidden);  // gtest frees it

TEST(LazyCode, is_done_without_where_pages_cannot_be_made_executable) {
  if (PanelMicrokernel::get() == nullptr) GTEST_SKIP() << "needs avx2";
  // The output goes to a file, since its notes on skipped tests would be taken for this one's.
  const std::string said = testing::TempDir() + "pfrt_lazy_code_" + std::to_string(getpid());
  for (const char* const isa : {"avx2", "avx512"}) {
    const std::string command = std::string("PFRT_ISA=") + isa + " " + kForbidden + "=1 /proc/" +
                                std::to_string(getpid()) +
                                "/exe --gtest_filter='PanelMicrokernel.*:ShortChainMicrokernel.*:"
                                "Bf16Dot.*' > " +
                                said;
    const int status = std::system(command.c_str());
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "the system has no filters of calls";
    EXPECT_EQ(WEXITSTATUS(status), 0) << isa << ", " << std::ifstream(said).rdbuf();
  }
  std::filesystem::remove(said);
}

}  // namespace
}  // namespace pfrt::test

// SPDX-License-Identifier: Apache-2.0
//
// Loads and runs changed models for a while: pfrt_fuzz --seconds N [--seed S] FOLDER...
// The models are those of the folders (ONNX backend test cases); each round takes one, changes it
// and, when a session takes it, runs it on the case's inputs or on random ones. Nothing may crash,
// hang or take memory without bound. Rounds run in child processes; a round is repeated alone with
// --seed S --only ROUND, which also writes the model to round.onnx.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <new>
#include <pyflame_rt/pyflame_rt.hpp>
#include <string>
#include <thread>
#include <vector>

#include "cxxapi/cli/tensors/feed.h"
#include "cxxapi/cli/tensors/pb.h"
#include "test/fuzz/mutate.h"

namespace pfrt_fuzz {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t kMaxElements = 1 << 18;          // in a random input
constexpr int kHangSeconds = 60;                   // without a further round
constexpr uint64_t kMaxAddressSpace = 6ull << 30;  // bounds the sizes that a model itself asks for
constexpr long kMaxResidentKb = 8l << 20;          // for the process; sanitizers keep freed memory
constexpr uint64_t kRoundsAProcess = 2000;

struct Seed {
  fs::path folder;
  std::string model;
};

// Counts that the children report to the parent.
struct Shared {
  std::atomic<uint64_t> round;  // in progress
  std::atomic<uint64_t> refused, loaded, ran, failed;
};

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Seed> find_seeds(const std::vector<std::string>& folders) {
  std::vector<Seed> seeds;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().filename() != "model.onnx" || entry.file_size() > 200'000) continue;
      seeds.push_back({entry.path().parent_path(), read_file(entry.path())});
    }
  }
  std::sort(seeds.begin(), seeds.end(),
            [](const Seed& a, const Seed& b) { return a.folder < b.folder; });
  return seeds;
}

// Feeds the case's own input where it still has the declared element type, else random values.
bool feed_one(const pyflame_rt::NodeArg& arg, const fs::path& folder, size_t index, Random& random,
              cli::Feed* feed) {
  const fs::path file = folder / "test_data_set_0" / ("input_" + std::to_string(index) + ".pb");
  if (random() % 8 != 0 && fs::exists(file)) {
    try {
      (*feed)[arg.name] = cli::read_pb(file.string(), arg).value;
      return true;
    } catch (const std::exception&) {  // the type was changed
    }
  }
  if (arg.kind != pyflame_rt::ValueKind::Tensor) return false;
  std::vector<int64_t> shape = cli::fixed_shape(arg, {});
  int64_t count = 1;
  for (int64_t& n : shape) {
    if (random() % 16 == 0) n = static_cast<int64_t>(random() % 4);
    if (n < 0 || n > kMaxElements || count > kMaxElements) return false;
    count *= n;
  }
  if (count > kMaxElements) return false;
  try {
    (*feed)[arg.name] = cli::random_tensor(arg.dtype, std::move(shape), random());
  } catch (const std::exception&) {  // a type that has no random values
    return false;
  }
  return true;
}

void one_round(const std::vector<Seed>& seeds, uint64_t seed, uint64_t round, Shared* shared,
               bool alone) {
  Random random(seed * 1'000'003 + round);
  const Seed& start = seeds[random() % seeds.size()];
  const Seed& donor = seeds[random() % seeds.size()];
  std::vector<std::string> log;
  const std::string model = mutate(start.model, donor.model, random, &log);
  if (alone) {
    std::ofstream("round.onnx", std::ios::binary) << model;
    std::printf("%s\n", start.folder.c_str());
    for (const std::string& line : log) std::printf("  %s\n", line.c_str());
    std::fflush(stdout);
  }
  try {
    pyflame_rt::SessionOptions options;
    options.num_threads = 1 + static_cast<int>(round % 2);
    const pyflame_rt::InferenceSession session(model.data(), model.size(), options);
    ++shared->loaded;
    cli::Feed feed;
    const auto& inputs = session.get_inputs();
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!feed_one(inputs[i], start.folder, i, random, &feed)) return;
    pyflame_rt::RunOptions run;
    run.timeout_ms = 2000;
    session.run_values({}, feed, run);
    ++shared->ran;
  } catch (const pyflame_rt::PyFlameRTError& error) {
    ++(std::string(error.what()).empty() ? shared->failed : shared->refused);
    if (alone) std::printf("refused: %s\n", error.what());
  } catch (const std::bad_alloc&) {
    ++shared->refused;
  }
}

[[noreturn]] void child(const std::vector<Seed>& seeds, uint64_t seed, uint64_t first,
                        Shared* shared) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit limit{kMaxAddressSpace,
                     kMaxAddressSpace};  // sanitizers take all of the address space
  setrlimit(RLIMIT_AS, &limit);
#endif
  pyflame_rt::Environment::instance().set_logger([](auto...) {});
  for (uint64_t round = first; round < first + kRoundsAProcess; ++round) {
    shared->round = round;
    one_round(seeds, seed, round, shared, false);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    if (usage.ru_maxrss > kMaxResidentKb) {
      std::fprintf(stderr, "round %llu: %ld MiB resident\n", static_cast<unsigned long long>(round),
                   usage.ru_maxrss >> 10);
      _exit(3);
    }
  }
  std::exit(0);  // leaks are reported here
}

// Waits for |pid|; the round it hung or died in is left in |shared|.
int wait_for(pid_t pid, Shared* shared, Clock::time_point deadline, bool* timed_out) {
  uint64_t seen = shared->round;
  Clock::time_point moved = Clock::now();
  for (int status = 0;;) {
    if (waitpid(pid, &status, WNOHANG) == pid) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (shared->round != seen) {
      seen = shared->round;
      moved = Clock::now();
    }
    const bool hung = Clock::now() - moved > std::chrono::seconds(kHangSeconds);
    *timed_out = Clock::now() > deadline;
    if (!hung && !*timed_out) continue;
    kill(pid, hung ? SIGABRT : SIGKILL);
    waitpid(pid, &status, 0);
    if (hung) std::fprintf(stderr, "no progress in %d s\n", kHangSeconds);
    if (hung) *timed_out = false;
    return status;
  }
}

int fuzz(const std::vector<Seed>& seeds, uint64_t seed, int seconds, Shared* shared) {
  const Clock::time_point start = Clock::now();
  const Clock::time_point deadline = start + std::chrono::seconds(seconds);
  int faults = 0;
  uint64_t first = 0;
  while (Clock::now() < deadline) {
    const pid_t pid = fork();
    if (pid == 0) child(seeds, seed, first, shared);
    bool timed_out = false;
    const int status = wait_for(pid, shared, deadline, &timed_out);
    const bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!clean && !timed_out) {
      ++faults;
      std::printf("FAULT: repeat with --seed %llu --only %llu\n",
                  static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(shared->round.load()));
      std::fflush(stdout);
      first = shared->round + 1;
      continue;
    }
    first += kRoundsAProcess;
  }
  std::printf(
      "%llu rounds of %zu models: %llu loaded, %llu ran, %llu refused with a reason, %llu "
      "without; %d faults (seed %llu)\n",
      static_cast<unsigned long long>(shared->round.load() + 1), seeds.size(),
      static_cast<unsigned long long>(shared->loaded.load()),
      static_cast<unsigned long long>(shared->ran.load()),
      static_cast<unsigned long long>(shared->refused.load()),
      static_cast<unsigned long long>(shared->failed.load()), faults,
      static_cast<unsigned long long>(seed));
  return faults == 0 && shared->failed == 0 ? 0 : 1;
}

int main_of(int argc, char** argv) {
  int seconds = 10;
  uint64_t seed = 1;
  bool alone = false;
  uint64_t only = 0;
  std::vector<std::string> folders;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (word == "--seconds") {
      seconds = static_cast<int>(value());
    } else if (word == "--seed") {
      seed = value();
    } else if (word == "--only") {
      alone = true;
      only = value();
    } else {
      folders.push_back(word);
    }
  }
  const std::vector<Seed> seeds = find_seeds(folders);
  if (seeds.empty()) {
    std::fprintf(stderr, "usage: pfrt_fuzz [--seconds N] [--seed S] [--only ROUND] FOLDER...\n");
    return 2;
  }
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 2;
  Shared* shared = new (memory) Shared();
  if (!alone) return fuzz(seeds, seed, seconds, shared);
  one_round(seeds, seed, only, shared, true);
  return 0;
}

}  // namespace
}  // namespace pfrt_fuzz

int main(int argc, char** argv) { return pfrt_fuzz::main_of(argc, argv); }

// SPDX-License-Identifier: Apache-2.0
//
// The latency that an open profile adds to a model. Three sessions of the model take turns in
// blocks of runs: two without a profile, whose difference is chance, and one with. Prints the
// median of a run without, and of the ratios of blocks that follow each other. Runs on one thread,
// with free dimensions of 1. Arguments: MODEL...
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <pyflame_rt/pyflame_rt.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

constexpr int kBlocks = 301;
constexpr double kBlockUs = 4000;

double now_us() {
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(t).count();
}

class Runner {
 public:
  Runner(const std::string& model, const std::string& profile) : session_(model, options(profile)) {
    for (const pyflame_rt::NodeArg& port : session_.get_inputs()) {
      std::vector<int64_t> dims;
      for (const std::optional<int64_t>& dim : port.shape) dims.push_back(dim.value_or(1));
      pyflame_rt::Tensor zeros(dims, port.dtype);
      std::memset(zeros.data(), 0, zeros.size_bytes());
      feed_.emplace(port.name, std::move(zeros));
    }
  }
  double block(int runs) {
    const double start = now_us();
    for (int i = 0; i < runs; ++i) (void)session_.run({}, feed_);
    return (now_us() - start) / runs;
  }
  std::string end() { return session_.end_profiling(); }

 private:
  static pyflame_rt::SessionOptions options(const std::string& profile) {
    pyflame_rt::SessionOptions made;
    made.num_threads = 1;
    made.enable_profiling = !profile.empty();
    if (!profile.empty()) made.profile_file_prefix = profile;
    return made;
  }
  pyflame_rt::InferenceSession session_;
  std::unordered_map<std::string, pyflame_rt::Tensor> feed_;
};

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

void measure(const std::string& model) {
  const std::filesystem::path prefix =
      std::filesystem::temp_directory_path() / ("pfrt_bench_profile_" + std::to_string(getpid()));
  Runner plain(model, ""), again(model, ""), profiled(model, prefix.string());
  const std::array<Runner*, 3> sides = {&plain, &again, &profiled};
  for (Runner* side : sides) side->block(10);
  const int runs = std::max(1, static_cast<int>(kBlockUs / plain.block(10)));
  std::array<std::vector<double>, 3> samples;
  for (size_t block = 0; block < kBlocks; ++block)
    for (size_t turn = 0; turn < sides.size(); ++turn) {
      const size_t side = (block + turn) % sides.size();  // none is always the first
      samples[side].push_back(sides[side]->block(runs));
    }
  const std::string file = profiled.end();
  const auto bytes = std::filesystem::file_size(file);
  std::filesystem::remove(file);
  for (size_t block = 0; block < kBlocks; ++block)
    for (const size_t side : {1, 2}) samples[side][block] /= samples[0][block];
  std::printf("%-24s %10.2f %10.3f %10.3f %10.1f\n",
              std::filesystem::path(model).filename().c_str(), median(samples[0]),
              median(samples[1]), median(samples[2]), static_cast<double>(bytes) / 1e6);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: profile MODEL...\n");
    return 2;
  }
  std::printf("%-24s %10s %10s %10s %10s\n", "", "median us", "again", "profiled", "file MB");
  for (int i = 1; i < argc; ++i) measure(argv[i]);
  return 0;
} catch (const std::exception& fault) {
  std::fprintf(stderr, "profile: %s\n", fault.what());
  return 1;
}

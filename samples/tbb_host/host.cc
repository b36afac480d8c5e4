// SPDX-License-Identifier: Apache-2.0
//
// A program built on oneTBB that classifies handwritten digits: each batch of images is one of its
// tasks, which scales the pixels in a loop of its own and runs the session. The loops of the
// session are on the workers of the same arena, so that there are never more threads than the arena
// has. Argument: the folder with digits.onnx and digits_test.bin.
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <pyflame_rt/pyflame_rt.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Digit {
  uint8_t label;
  uint8_t pixels[64];  // 0..16
};

// The layout is described in digits/train.py.
std::vector<Digit> read_digits(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[8];
  uint32_t header[3];  // count, height, width
  file.read(magic, sizeof magic);
  file.read(reinterpret_cast<char*>(header), sizeof header);
  if (!file || std::memcmp(magic, "PFRTDIG1", sizeof magic) != 0 || header[1] != 8 ||
      header[2] != 8) {
    throw std::runtime_error(path + " is not a file of 8x8 digits");
  }
  std::vector<Digit> digits(header[0]);
  file.read(reinterpret_cast<char*>(digits.data()),
            static_cast<std::streamsize>(digits.size() * sizeof(Digit)));
  if (!file) throw std::runtime_error(path + " is truncated");
  return digits;
}

// Counts the digits, of |count|, that the session has right.
int classify(const pyflame_rt::InferenceSession& session, const Digit* digits, size_t count) {
  pyflame_rt::Tensor images({static_cast<int64_t>(count), 1, 8, 8}, pyflame_rt::DType::Float32);
  float* pixels = images.data_ptr<float>();
  tbb::parallel_for(size_t{0}, count, [&](size_t i) {
    for (size_t p = 0; p < 64; ++p)
      pixels[i * 64 + p] = static_cast<float>(digits[i].pixels[p]) / 16.0f;
  });
  const pyflame_rt::Tensor result = session.run({}, {{"image", images}})[0];
  const float* probabilities = result.data_ptr<float>();
  int right = 0;
  for (size_t i = 0; i < count; ++i) {
    const float* row = probabilities + i * 10;
    right += std::max_element(row, row + 10) - row == digits[i].label ? 1 : 0;
  }
  return right;
}

}  // namespace

int main(int argc, char** argv) try {
  pyflame_rt::EnvironmentOptions options;
  options.executor = "tbb";
  pyflame_rt::Environment::instance(options);  // before anything else of the API

  const std::string folder = argc > 1 ? argv[1] : ".";
  const std::vector<Digit> digits = read_digits(folder + "/digits_test.bin");
  const pyflame_rt::InferenceSession session(folder + "/digits.onnx");
  std::atomic<int> right{0};
  tbb::task_arena arena;  // where the program does all of its work
  arena.execute([&] {
    tbb::parallel_for(tbb::blocked_range<size_t>(0, digits.size(), 32), [&](const auto& batch) {
      right += classify(session, digits.data() + batch.begin(), batch.size());
    });
  });
  std::printf("%d of %zu held-out images are right, beside tasks of the host's own\n", right.load(),
              digits.size());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "tbb_host: %s\n", error.what());
  return 1;
}

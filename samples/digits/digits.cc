// SPDX-License-Identifier: Apache-2.0
//
// Classifies real handwritten digits: prints the first one's class and probability, draws a few
// more with the predicted class and the latency, then counts how many of all held-out images are
// right. Arguments: the folder with digits.onnx and digits_test.bin.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <pyflame_rt/pyflame_rt.hpp>
#include <string>
#include <vector>

namespace {

struct Digit {
  uint8_t label;
  uint8_t pixels[64];  // 0..16
};

// The layout is described in train.py.
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

void draw(const std::vector<const Digit*>& row, const std::vector<std::string>& captions) {
  static const char* kShades[] = {"  ", "\u2591\u2591", "\u2592\u2592", "\u2593\u2593",
                                  "\u2588\u2588"};
  for (int y = 0; y < 8; ++y) {
    for (const Digit* digit : row) {
      for (int x = 0; x < 8; ++x) std::fputs(kShades[digit->pixels[y * 8 + x] / 4], stdout);
      std::fputs("  ", stdout);
    }
    std::fputc('\n', stdout);
  }
  for (const std::string& caption : captions) std::printf("%-18s", caption.c_str());
  std::fputs("\n\n", stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : ".";
  const std::vector<Digit> digits = read_digits(folder + "/digits_test.bin");
  pyflame_rt::InferenceSession session(folder + "/digits.onnx");

  size_t right = 0;
  std::vector<const Digit*> row;
  std::vector<std::string> captions;
  for (size_t i = 0; i < digits.size(); ++i) {
    pyflame_rt::Tensor image({1, 1, 8, 8}, pyflame_rt::DType::Float32);
    for (int p = 0; p < 64; ++p)
      image.data_ptr<float>()[p] = static_cast<float>(digits[i].pixels[p]) / 16.0f;
    const auto started = std::chrono::steady_clock::now();
    const std::vector<pyflame_rt::Tensor> results = session.run({}, {{"image", image}});
    const auto us =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - started)
            .count();
    const float* probability = results[0].data_ptr<float>();
    int best = 0;
    for (int c = 1; c < 10; ++c) best = probability[c] > probability[best] ? c : best;
    right += best == digits[i].label;
    if (i == 0)
      std::printf("the first image is a %d with probability %.6f\n\n", best,
                  static_cast<double>(probability[best]));
    // The first run also plans; the pictures are of later ones.
    if (i >= 1 && i <= 8) {
      char caption[64];
      std::snprintf(caption, sizeof caption, "a %d  (%.0f us)", best, us);
      row.push_back(&digits[i]);
      captions.push_back(caption);
      if (row.size() == 4) {
        draw(row, captions);
        row.clear();
        captions.clear();
      }
    }
  }
  std::printf("%zu of %zu held-out images are right\n", right, digits.size());
  std::printf("accuracy %.1f %%\n",
              100.0 * static_cast<double>(right) / static_cast<double>(digits.size()));
  return 0;
} catch (const std::exception& e) {
  std::cerr << "digits: " << e.what() << "\n";
  return 1;
}

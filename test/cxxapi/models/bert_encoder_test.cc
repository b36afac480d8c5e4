// SPDX-License-Identifier: Apache-2.0
//
// Compares the encoder that bench/models/bert_encoder.py exports with PyTorch's results.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <pyflame_rt/pyflame_rt.hpp>

namespace pfrt_test {
namespace {

using namespace pyflame_rt;

const std::string kModels = PFRT_MODELS;
constexpr float kTolerance = 2e-5f;  // values are about 1

// Reads a .npy file of little-endian elements, which must have the given shape.
template <typename T>
Tensor npy(const std::string& path, const std::string& descr, const std::vector<int64_t>& shape) {
  constexpr size_t kHead = 10;  // magic, version, length of the header
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.size() < kHead) throw std::runtime_error("no data in " + path);
  const size_t header = static_cast<uint8_t>(bytes[8]) + 256u * static_cast<uint8_t>(bytes[9]);
  size_t count = 1;
  for (int64_t dim : shape) count *= static_cast<size_t>(dim);
  if (bytes.find("'descr': '" + descr + "'") > header ||
      bytes.size() != kHead + header + count * sizeof(T))
    throw std::runtime_error(path + " is not what was recorded");
  std::vector<T> values(count);
  std::memcpy(values.data(), bytes.data() + kHead + header, count * sizeof(T));
  return Tensor::from_vector(values, shape);
}

float largest_difference(const Tensor& a, const Tensor& b) {
  const float *x = a.data_ptr<float>(), *y = b.data_ptr<float>();
  float largest = 0;
  for (size_t i = 0; i < static_cast<size_t>(b.num_elements()); ++i) {
    if (!std::isfinite(x[i])) return INFINITY;
    largest = std::max(largest, std::abs(x[i] - y[i]));
  }
  return largest;
}

class BertEncoder : public testing::TestWithParam<OptLevel> {
 protected:
  // Compares the run's result with PyTorch's.
  static void run(const InferenceSession& session, int64_t batch, int64_t sequence) {
    const std::string folder =
        kModels + "/bert_encoder/" + std::to_string(batch) + "x" + std::to_string(sequence) + "/";
    std::unordered_map<std::string, Tensor> feed;
    for (const char* name : {"input_ids", "attention_mask", "token_type_ids"})
      feed.emplace(name, npy<int64_t>(folder + name + ".npy", "<i8", {batch, sequence}));
    const std::vector<int64_t> shape{batch, sequence, 64};
    const Tensor want = npy<float>(folder + "last_hidden_state.npy", "<f4", shape);
    const std::vector<Tensor> got = session.run({}, feed);
    ASSERT_EQ(got.size(), 1u);
    ASSERT_EQ(got[0].shape(), shape);
    EXPECT_LT(largest_difference(got[0], want), kTolerance);
  }
};

TEST_P(BertEncoder, answers_as_pytorch_at_any_batch_and_length) {
  SessionOptions options;
  options.optimization_level = GetParam();
  const InferenceSession session(kModels + "/bert_encoder.onnx", options);
  run(session, 1, 7);
  run(session, 3, 24);
  run(session, 1, 7);
}

INSTANTIATE_TEST_SUITE_P(Levels, BertEncoder,
                         testing::Values(OptLevel::None, OptLevel::Basic, OptLevel::Extended,
                                         OptLevel::All));

}  // namespace
}  // namespace pfrt_test

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <pyflame_rt/pyflame_rt.hpp>

#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using namespace pyflame_rt;

class Load : public InTemporaryFolder {
 protected:
  Load() { save_model(one_node("Neg", {{2}}), "model.pfm"); }
};

// Reads bytes that the program keeps in a string.
class StringReader : public Reader {
 public:
  explicit StringReader(std::string bytes) : bytes_(std::move(bytes)) {}
  uint64_t size() const override { return bytes_.size() + promised; }
  std::string name() const override { return "kept.pfm"; }
  uint64_t read_at(uint64_t offset, void* out, uint64_t bytes) override {
    if (throws) throw std::out_of_range("the archive is locked");
    const uint64_t n = std::min<uint64_t>(bytes, bytes_.size() - offset);
    std::memcpy(out, bytes_.data() + offset, n);
    return n;
  }
  uint64_t promised = 0;
  bool throws = false;

 private:
  std::string bytes_;
};

TEST_F(Load, from_a_reader) {
  StringReader reader(read_file("model.pfm"));
  const InferenceSession session(Model::load(reader));
  Tensor x({2}, DType::Float32);
  x.fill(3);
  EXPECT_EQ(session.run({}, {{"input", x}})[0].data_ptr<float>()[1], -3);
}

TEST_F(Load, a_reader_that_ends_early_is_an_invalid_model) {
  StringReader reader(read_file("model.pfm"));
  reader.promised = 5;
  try {
    Model::load(reader);
    FAIL() << "nothing was thrown";
  } catch (const InvalidModelError& error) {
    EXPECT_EQ(error.code(), static_cast<pfrt_code>(PFRT_CODE_DATA_LOSS));
    EXPECT_NE(std::string(error.what()).find("kept.pfm"), std::string::npos) << error.what();
  }
}

TEST_F(Load, what_a_reader_throws_comes_out) {
  StringReader reader(read_file("model.pfm"));
  reader.throws = true;
  EXPECT_THROW(Model::load(reader), std::out_of_range);
}

TEST_F(Load, tells_its_progress) {
  std::vector<double> fractions;
  LoadOptions options;
  options.progress = [&](double fraction, const std::string&) {
    fractions.push_back(fraction);
    return true;
  };
  const Model model = Model::load("model.pfm", options);
  ASSERT_FALSE(fractions.empty());
  EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
  EXPECT_EQ(fractions.back(), 1.0);
  fractions.clear();
  model.save("again.pfm", options);
  ASSERT_FALSE(fractions.empty());
  EXPECT_EQ(fractions.back(), 1.0);
}

TEST_F(Load, is_stopped_by_its_listener) {
  LoadOptions options;
  options.progress = [](double, const std::string&) { return false; };
  try {
    Model::load("model.pfm", options);
    FAIL() << "nothing was thrown";
  } catch (const BackendError& error) {
    EXPECT_EQ(error.code(), static_cast<pfrt_code>(PFRT_CODE_CANCELLED));
  }
  options.progress = [](double, const std::string&) -> bool { throw std::out_of_range("enough"); };
  EXPECT_THROW(Model::load("model.pfm", options), std::out_of_range);
  EXPECT_THROW(Model::load("model.pfm").save("other.pfm", options), std::out_of_range);
  EXPECT_THROW(load_model("other.pfm"), PyFlameRTError);
}

}  // namespace
}  // namespace pfrt_test

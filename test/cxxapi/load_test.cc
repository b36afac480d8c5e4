// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
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

// ---- files of the importer in test/plugins/importers ----

class LoadRows : public InTemporaryFolder {
 protected:
  LoadRows() {
    write_file("w.rows", "rows\nweight w 1 2 3\nweight b 10 20 30\nmeta epoch 7\n");
    write_file("g.rows", "rows\nentry forward\nentry encode\n");
  }
  static std::vector<float> run(const Graph& graph, const std::vector<float>& x) {
    const InferenceSession session(Model::from_graph(graph));
    const Tensor input = Tensor::from_vector(x, {static_cast<int64_t>(x.size())});
    const Tensor y = session.run({}, {{"x", input}})[0];
    return {y.data_ptr<float>(), y.data_ptr<float>() + x.size()};
  }
  template <class Error>
  static std::string message_of(const std::string& path, const LoadOptions& options) {
    try {
      load_model(path, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  }
};

TEST_F(LoadRows, a_definer_builds_the_graph_of_weights) {
  LoadOptions options;
  std::optional<Weights> kept;
  Graph late;
  options.definer = [&](Graph& graph, const Weights& weights) {
    kept = weights;
    graph.add_input(TensorInfo("x", {{3}}, DType::Float32));
    for (const auto& [name, tensor] : weights.tensors()) graph.add_initializer(name, tensor);
    graph.add_node(make_node("product", "Mul", {"x", "w"}, {"p"}));
    graph.add_node(make_node("sum", "Add", {"p", "b"}, {"y"}));
    graph.add_output(TensorInfo("y", {{3}}, DType::Float32));
    late = Graph(graph.shared());
  };
  EXPECT_EQ(run(load_model("w.rows", options), {1, 1, 1}), (std::vector<float>{11, 22, 33}));
  ASSERT_TRUE(kept);
  EXPECT_EQ((*kept)["w"].data_ptr<float>()[2], 3);
  EXPECT_TRUE(kept->contains("b"));
  EXPECT_EQ(kept->meta().at("epoch"), "7");
  try {
    (void)(*kept)["conv9"];
    FAIL() << "nothing was thrown";
  } catch (const NotFoundError& error) {
    EXPECT_NE(std::string(error.what()).find("'conv9' among the 2"), std::string::npos);
  }
  EXPECT_THROW(late.set_name("late"), InvalidArgumentError);
}

TEST_F(LoadRows, what_a_definer_throws_comes_out) {
  LoadOptions options;
  options.definer = [](Graph&, const Weights&) { throw std::out_of_range("no such layer"); };
  EXPECT_THROW(load_model("w.rows", options), std::out_of_range);
  EXPECT_NE(message_of<UnsupportedFormatError>("w.rows", {}).find("weights (2 tensors), no graph"),
            std::string::npos);
  EXPECT_NE(message_of<InvalidArgumentError>("g.rows", options).find("a definer was given"),
            std::string::npos);
}

TEST_F(LoadRows, entries_and_options_of_importers) {
  LoadOptions options;
  options.entry = "encode";
  options.extra["import.rows.scale"] = "3";
  const Model model = Model::load("g.rows", options);
  EXPECT_EQ(model.entry(), "encode");
  EXPECT_EQ(model.entries(), (std::vector<std::string>{"forward", "encode"}));
  EXPECT_EQ(run(model.graph(), {1, 2}), (std::vector<float>{6, 12}));
  options.entry = "decode";
  EXPECT_NE(message_of<InvalidArgumentError>("g.rows", options).find("forward, encode"),
            std::string::npos);
  const auto listed = Environment::instance().importer_options("Rows");
  ASSERT_EQ(listed.size(), 4u);
  EXPECT_EQ(listed[1].key, "import.rows.describe");
  EXPECT_EQ(listed[1].choices, "short long");
  EXPECT_THROW(Environment::instance().importer_options("Moon"), NotFoundError);
  EXPECT_TRUE(Model::from_graph(one_node("Neg", {{2}})).entries().empty());
}

}  // namespace
}  // namespace pfrt_test

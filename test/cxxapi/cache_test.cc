// SPDX-License-Identifier: Apache-2.0
//
// Sessions that start from the cache of compiled models give the results of other sessions. Further
// tests have entries that are damaged, gone, or cut short while they are in use.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <pyflame_rt/cache/binary_cache.hpp>
#include <pyflame_rt/pyflame_rt.hpp>
#include <thread>

#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using namespace pyflame_rt;
using cache::BinaryCache;
using cache::CacheConfig;
using cache::CacheStats;
namespace fs = std::filesystem;

Tensor cache_noise(const std::vector<int64_t>& shape, int seed) {
  Tensor tensor(shape, DType::Float32);
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.data_ptr<float>()[i] =
        static_cast<float>(std::sin(static_cast<double>(i * 37 + seed * 11)));
  return tensor;
}

void add_cache_node(Graph& graph, const std::string& op, const std::vector<std::string>& inputs,
                    const std::string& output) {
  graph.add_node(make_node(output + "_node", op, inputs, {output}));
}

// A model with a convolution whose weights are scaled by the normalisation behind it, and are more
// than are computed at once; a product; a dimension that varies; an input with a default.
Graph cache_model() {
  Graph graph("cached");
  graph.add_input(TensorInfo("x", {{std::nullopt, 64, 8, 8}}, DType::Float32));
  graph.add_input(TensorInfo("shift", {{64}}, DType::Float32));
  graph.add_initializer("shift", cache_noise({64}, 1));
  graph.add_initializer("w", cache_noise({64, 64, 3, 3}, 2));
  for (const char* name : {"scale", "bias", "mean"})
    graph.add_initializer(name, cache_noise({64}, name[0]));
  Tensor ones({64}, DType::Float32);
  ones.fill(1.F);
  graph.add_initializer("var", ones);
  const auto conv = make_node("conv", "Conv", {"x", "w"}, {"c"});
  conv->set_attr("pads", std::vector<int64_t>{1, 1, 1, 1});
  graph.add_node(conv);
  add_cache_node(graph, "BatchNormalization", {"c", "scale", "bias", "mean", "var"}, "n");
  add_cache_node(graph, "Relu", {"n"}, "r");
  add_cache_node(graph, "GlobalAveragePool", {"r"}, "g");
  add_cache_node(graph, "Flatten", {"g"}, "f");
  add_cache_node(graph, "Add", {"f", "shift"}, "s");
  graph.add_initializer("p", cache_noise({64, 300}, 3));
  add_cache_node(graph, "MatMul", {"s", "p"}, "y");
  graph.add_output(TensorInfo("y", {{std::nullopt, 300}}, DType::Float32));
  return graph;
}

class Cache : public InTemporaryFolder {
 protected:
  void SetUp() override {
    save_model(cache_model(), "model.onnx");
    options_.cache_dir = folder_.path() + "/kept";
    options_.num_threads = 1;
    SessionOptions plain = options_;
    plain.cache_dir = "off";
    expected_ = run(InferenceSession("model.onnx", plain));
  }
  static std::vector<float> run(const InferenceSession& session) {
    const std::vector<Tensor> out = session.run({}, {{"x", cache_noise({2, 64, 8, 8}, 4)}});
    return {out[0].data_ptr<float>(), out[0].data_ptr<float>() + out[0].num_elements()};
  }
  BinaryCache kept() const {
    CacheConfig config;
    config.cache_dir = options_.cache_dir;
    return BinaryCache(config);
  }
  // Returns the file of the only entry.
  std::string entry() const {
    std::string found;
    for (const auto& file : fs::directory_iterator(options_.cache_dir))
      if (file.path().extension() == ".compiled") found = file.path();
    return found;
  }
  SessionOptions options_;
  std::vector<float> expected_;
};

TEST_F(Cache, sessions_from_an_entry_give_the_same) {
  EXPECT_EQ(run(InferenceSession("model.onnx", options_)), expected_);
  EXPECT_EQ(kept().get_stats().stores, 1u);
  const InferenceSession again("model.onnx", options_);
  EXPECT_EQ(kept().get_stats().hits, 1u);
  EXPECT_EQ(run(again), expected_);
  EXPECT_EQ(again.get_inputs().size(), 2u);
  EXPECT_EQ(again.get_inputs()[0].shape[0], std::nullopt);
  EXPECT_TRUE(again.get_inputs()[1].has_initializer);
  EXPECT_EQ(again.get_outputs()[0].name, "y");
}

TEST_F(Cache, entries_are_smaller_than_what_they_save) {
  (void)InferenceSession("model.onnx", options_);
  // The scaled weights are kept only in packed forms: transformed, with 16 numbers for 9, and as
  // they are.
  EXPECT_LT(fs::file_size(entry()), fs::file_size("model.onnx") * 5 / 2);
}

TEST_F(Cache, a_default_may_be_fed_to_a_session_from_an_entry) {
  (void)InferenceSession("model.onnx", options_);
  const InferenceSession session("model.onnx", options_);
  Tensor zeros({64}, DType::Float32);
  const auto fed = session.run({}, {{"x", cache_noise({1, 64, 8, 8}, 4)}, {"shift", zeros}});
  SessionOptions plain = options_;
  plain.cache_dir = "off";
  const auto other = InferenceSession("model.onnx", plain)
                         .run({}, {{"x", cache_noise({1, 64, 8, 8}, 4)}, {"shift", zeros}});
  EXPECT_EQ(std::memcmp(fed[0].data(), other[0].data(), fed[0].size_bytes()), 0);
}

TEST_F(Cache, the_model_of_a_session_from_an_entry_is_whole) {
  (void)InferenceSession("model.onnx", options_);
  const InferenceSession session("model.onnx", options_);
  EXPECT_EQ(session.get_model().graph().nodes().size(), cache_model().nodes().size());
  EXPECT_EQ(session.get_model().stats().node_count, cache_model().nodes().size());
  session.get_model().save("copy.onnx");
  SessionOptions plain;
  plain.num_threads = 1;
  EXPECT_EQ(run(InferenceSession("copy.onnx", plain)), expected_);
}

TEST_F(Cache, any_bit_that_flips_is_found) {
  (void)InferenceSession("model.onnx", options_);
  const std::string path = entry(), good = read_file(path);
  for (size_t i = 0; i < 200; ++i) {
    std::string bad = good;
    bad[i * 7919 % bad.size()] ^= static_cast<char>(1 << i % 8);
    write_file(path, bad);
    ASSERT_EQ(run(InferenceSession("model.onnx", options_)), expected_) << "byte " << i;
    ASSERT_EQ(fs::file_size(path), good.size()) << "it was made again";
  }
  EXPECT_GE(kept().get_stats().invalid, 200u);
}

TEST_F(Cache, an_entry_of_any_length_is_found_out) {
  (void)InferenceSession("model.onnx", options_);
  const std::string path = entry(), good = read_file(path);
  for (size_t length : {size_t{0}, size_t{1}, size_t{50}, size_t{88}, size_t{500}, good.size() / 2,
                        good.size() - 1}) {
    write_file(path, good.substr(0, length));
    EXPECT_EQ(run(InferenceSession("model.onnx", options_)), expected_) << length;
  }
  write_file(path, good + "more");
  EXPECT_EQ(run(InferenceSession("model.onnx", options_)), expected_);
}

TEST_F(Cache, an_entry_that_is_cut_short_while_it_is_used_is_left) {
  (void)InferenceSession("model.onnx", options_);
  const InferenceSession session("model.onnx", options_);
  EXPECT_EQ(run(session), expected_);
  ASSERT_EQ(::truncate(entry().c_str(), 100), 0);
  EXPECT_EQ(run(session), expected_);
  EXPECT_EQ(run(session), expected_);
}

TEST_F(Cache, an_entry_that_is_written_to_while_it_is_used_is_left) {
  (void)InferenceSession("model.onnx", options_);
  const InferenceSession session("model.onnx", options_);
  std::fstream file(entry(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(fs::file_size(entry()) / 2));
  file << std::string(5000, 'x');
  file.close();
  EXPECT_EQ(run(session), expected_);
}

TEST_F(Cache, a_folder_that_is_removed_while_it_is_used_does_no_harm) {
  const InferenceSession first("model.onnx", options_);
  const InferenceSession second("model.onnx", options_);
  fs::remove_all(options_.cache_dir);
  EXPECT_EQ(run(second), expected_);
  EXPECT_EQ(run(InferenceSession("model.onnx", options_)), expected_);
  EXPECT_NE(entry(), "");
}

TEST_F(Cache, a_folder_that_cannot_be_made_or_written_to_does_no_harm) {
  write_file("file", "");
  options_.cache_dir = folder_.path() + "/file/below";
  EXPECT_EQ(run(InferenceSession("model.onnx", options_)), expected_);
  if (::geteuid() == 0) return;  // no mode stops root
  fs::create_directory("closed");
  fs::permissions("closed", fs::perms::owner_read | fs::perms::owner_exec);
  options_.cache_dir = folder_.path() + "/closed";
  EXPECT_EQ(run(InferenceSession("model.onnx", options_)), expected_);
}

TEST_F(Cache, an_entry_that_others_may_write_to_is_not_used) {
  (void)InferenceSession("model.onnx", options_);
  ASSERT_EQ(::chmod(entry().c_str(), 0666), 0);
  EXPECT_EQ(run(InferenceSession("model.onnx", options_)), expected_);
  EXPECT_EQ(kept().get_stats().hits, 0u);
  EXPECT_EQ(kept().get_stats().invalid, 1u);
}

TEST_F(Cache, a_model_that_changes_is_another) {
  (void)InferenceSession("model.onnx", options_);
  Graph graph = cache_model();
  Tensor zeros({64, 300}, DType::Float32);
  graph.remove_initializer("p");
  graph.add_initializer("p", zeros);
  save_model(graph, "model.onnx");
  for (const float value : run(InferenceSession("model.onnx", options_))) EXPECT_EQ(value, 0);
}

TEST_F(Cache, limits_are_kept) {
  CacheConfig config;
  config.cache_dir = options_.cache_dir;
  config.max_entries = 2;
  const BinaryCache cache(config);
  const Graph graph = one_node("Relu", {{4}});
  for (const char* key : {"a", "b", "c"}) cache.put(key, graph);
  EXPECT_EQ(cache.entry_count(), 2u);
  EXPECT_EQ(cache.get_stats().evictions, 1u);
  config.max_size_bytes = 1000;
  EXPECT_THROW(BinaryCache(config).put("d", graph), UnsupportedError);
  config.max_size_bytes = cache.total_size() - 1;
  EXPECT_EQ(BinaryCache(config).evict_if_needed(), 1u);
  config.ttl = std::chrono::seconds(-1);
  EXPECT_THROW(BinaryCache{config}, InvalidArgumentError);
}

TEST_F(Cache, graphs_come_back_as_they_went) {
  const BinaryCache cache = kept();
  EXPECT_EQ(cache.get("a key"), nullptr);
  cache.put("a key", cache_model());
  const auto graph = cache.get("a key");
  ASSERT_NE(graph, nullptr);
  SessionOptions plain = options_;
  plain.cache_dir = "off";
  EXPECT_EQ(run(InferenceSession(*graph, plain)), expected_);
  ASSERT_TRUE(cache.get_info("a key").has_value());
  EXPECT_TRUE(cache.get_info("a key")->is_valid);
  EXPECT_EQ(cache.get_info("a key")->kind, "graph");
  EXPECT_EQ(cache.get_info("another"), std::nullopt);
  EXPECT_TRUE(cache.remove("a key"));
  EXPECT_FALSE(cache.remove("a key"));
  EXPECT_THROW((void)cache.has(""), InvalidArgumentError);
}

TEST_F(Cache, a_model_without_a_file_and_one_with_own_passes_are_not_kept) {
  (void)InferenceSession(cache_model(), options_);
  EXPECT_EQ(kept().entry_count(), 0u);
}

TEST_F(Cache, a_model_in_memory_is_kept_by_its_bytes) {
  std::ifstream file("model.onnx", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  LoadOptions load;
  load.cache_dir = options_.cache_dir;
  for (const uint64_t hits : {0u, 1u}) {
    const Model model = Model::load(bytes.data(), bytes.size(), load);
    EXPECT_EQ(run(InferenceSession(model, options_)), expected_);
    EXPECT_EQ(kept().get_stats().hits, hits);
  }
  EXPECT_EQ(run(InferenceSession("model.onnx", options_)), expected_);
  EXPECT_EQ(kept().entry_count(), 2u);
}

// A byte before the weights leaves them unaligned in the file, so that processes could not map
// them. The product of one row reads them in place.
TEST_F(Cache, what_is_not_aligned_in_a_file_is_aligned_in_the_entry) {
  for (const size_t odd : {0, 1, 2, 3}) {
    Graph graph(std::string(odd + 1, 'g'));
    graph.add_input(TensorInfo("x", {{1, 256}}, DType::Float32));
    graph.add_initializer("w", cache_noise({256, 300}, 5));
    add_cache_node(graph, "MatMul", {"x", "w"}, "y");
    graph.add_output(TensorInfo("y", {{1, 300}}, DType::Float32));
    save_model(graph, "odd.onnx");
    std::vector<float> results[3];
    SessionOptions plain = options_;
    plain.cache_dir = "off";
    for (int i = 0; i < 3; ++i) {
      const InferenceSession session("odd.onnx", i == 0 ? plain : options_);
      const auto out = session.run({}, {{"x", cache_noise({1, 256}, 6)}});
      results[i].assign(out[0].data_ptr<float>(), out[0].data_ptr<float>() + 300);
      EXPECT_EQ(results[i], results[0]);
    }
  }
  EXPECT_EQ(kept().get_stats().hits, 4u);
}

using CacheThreads = Cache;

TEST_F(CacheThreads, fill_and_read_one_folder) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      SessionOptions own = options_;
      for (int i = 0; i < 5; ++i) {
        own.precision = (i + t) % 2 ? "fp32" : "ieee";
        const InferenceSession session("model.onnx", own);
        if (own.precision == "fp32" && run(session) != expected_) ++wrong;
        if (i == 3) (void)kept().clear();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace pfrt_test

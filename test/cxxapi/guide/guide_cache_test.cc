// SPDX-License-Identifier: Apache-2.0
//
// The guide's C++ snippets on caches and mapped files, as it writes them.
#include <gtest/gtest.h>

#include "pyflame_rt/cache/binary_cache.hpp"
#include "pyflame_rt/cache/mmap_loader.hpp"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using namespace pyflame_rt;
using namespace pyflame_rt::cache;

using GuideCache = InTemporaryFolder;

CacheConfig guide_config(const std::string& folder) {
  CacheConfig config;
  config.cache_dir = folder + "/pyflame_cache";
  config.max_size_bytes = 1ULL * 1024 * 1024 * 1024;  // 1GB
  config.max_entries = 100;
  config.ttl = std::chrono::hours(24);  // 24 hour expiration
  config.use_mmap = true;
  return config;
}

TEST_F(GuideCache, using_the_cache) {
  save_model(one_node("Relu", {{1, 10}}), "model.pfm");
  SessionOptions session_options, options;
  BinaryCache cache(guide_config(folder_.path()));

  for (int time = 0; time < 2; ++time) {
    // Compute cache key
    std::string key = CacheKey::compute("model.pfm", session_options);

    // Check if cached
    EXPECT_EQ(cache.has(key), time == 1);
    if (cache.has(key)) {
      auto graph = cache.get(key);
      // Use cached graph...
      EXPECT_EQ(graph->nodes().size(), 1u);
    } else {
      // Load and cache
      auto graph = load_model("model.pfm");
      cache.put(key, *graph);
    }
  }

  // Or use get_or_compile for convenience
  auto graph =
      cache.get_or_compile("model.pfm", options, [&]() { return compile_model("model.pfm"); });
  EXPECT_EQ(graph->nodes().size(), 1u);
}

TEST_F(GuideCache, warm_up) {
  for (const char* name : {"model_a.pfm", "model_b.pfm", "model_c.pfm"})
    save_model(one_node("Relu", {{1, name[6]}}), name);
  SessionOptions session_options;
  BinaryCache cache(guide_config(folder_.path()));

  std::vector<std::string> model_paths = {"model_a.pfm", "model_b.pfm", "model_c.pfm"};

  cache.warmup(model_paths, session_options);

  EXPECT_EQ(cache.entry_count(), 3u);
}

TEST_F(GuideCache, mapped_files) {
  save_model(one_node("Relu", {{1, 10}}), "model.pfm");
  write_file("weights.bin", std::string(4096, 'w'));

  // Check if file can be memory-mapped
  bool loaded = false;
  if (MMapLoader::can_mmap("model.pfm")) {
    auto graph = MMapLoader::load("model.pfm");
    loaded = graph->nodes().size() == 1;
  }
  EXPECT_TRUE(loaded);

  // Open file with memory mapping
  auto file = MappedFile::open("weights.bin");
  ASSERT_TRUE(file && file->is_valid());
  if (file && file->is_valid()) {
    // Provide access hints
    file->advise(MappedFile::Advice::Sequential);

    // Lock in memory for predictable performance
    file->lock();

    // Access data
    const void* data = file->data();
    size_t size = file->size();
    EXPECT_EQ(std::string(static_cast<const char*>(data), size), std::string(4096, 'w'));
  }
  EXPECT_EQ(MappedFile::open("absent.bin"), nullptr);
  EXPECT_FALSE(MMapLoader::can_mmap("."));
}

TEST_F(GuideCache, lazy_tensors) {
  std::string bytes(4096, '\0');
  const float value = 2.5F;
  std::memcpy(&bytes[256], &value, sizeof value);
  write_file("weights.bin", bytes);
  const size_t offset = 256;
  const std::vector<int64_t> shape = {2, 3};

  // Create lazy tensor
  auto file = std::make_shared<MappedFile>();
  *file = std::move(*MappedFile::open("weights.bin"));

  LazyTensor lazy(file, offset, shape, DType::Float32);

  // Metadata available immediately
  std::string text = "Shape: ";
  for (auto dim : lazy.shape()) text += std::to_string(dim) + " ";
  EXPECT_EQ(text, "Shape: 2 3 ");
  EXPECT_FALSE(lazy.is_materialized());

  // Data loaded on first access
  Tensor tensor = lazy.materialize();
  EXPECT_EQ(tensor.data_ptr<float>()[0], value);
  EXPECT_TRUE(lazy.is_materialized());
  EXPECT_EQ(LazyTensor(file, offset - 1, {1}, DType::Float32).materialize().num_elements(), 1);
  EXPECT_THROW(LazyTensor(file, 4000, {1000}, DType::Float32), InputError);
  EXPECT_THROW(LazyTensor(nullptr, 0, {1}, DType::Float32), InputError);
}

TEST_F(GuideCache, compile_options) {
  save_model(one_node("Relu", {{1, 10}}), "model.pfm");
  CompileOptions options;
  options.cache_dir = folder_.path() + "/kept";
  options.dynamic_batch = true;
  options.input_shapes["input"] = {4, 20};
  for (int time = 0; time < 2; ++time) {
    const auto graph = compile_model("model.pfm", options);
    const TensorInfo input = graph->inputs()[0];
    EXPECT_EQ(input.shape, (Shape{std::nullopt, 20}));
  }
  options.input_shapes["absent"] = {1};
  EXPECT_THROW((void)compile_model("model.pfm", options), InputError);
  options.input_shapes = {{"input", {1}}};
  EXPECT_THROW((void)compile_model("model.pfm", options), ShapeMismatchError);
  options.optimization_level = 7;
  EXPECT_THROW((void)compile_model("model.pfm", options), InvalidArgumentError);
}

}  // namespace
}  // namespace pfrt_test

// SPDX-License-Identifier: Apache-2.0
//
// Pools, arenas, caches and allocators of C++; snippets of the guide are as printed.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <pyflame_rt/pyflame_rt.hpp>
#include <string>
#include <thread>
#include <vector>

#include "pyflame_rt/memory/memory_pool.hpp"

namespace {

using namespace pyflame_rt::memory;  // NOLINT(google-build-using-namespace): as in the guide

TEST(GuideMemory, pool) {
  testing::internal::CaptureStdout();
  // Configure the pool
  PoolConfig config;
  config.size_classes = {64, 128, 256, 512, 1024, 2048, 4096};
  config.max_blocks_per_class = 64;
  config.alignment = 64;  // Cache line alignment
  config.thread_safe = true;
  config.track_stats = true;

  MemoryPool pool(config);

  // Allocate memory
  void* ptr = pool.allocate(256);

  // Aligned allocation
  void* aligned_ptr = pool.allocate_aligned(1024, 64);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned_ptr) % 64, 0u);

  // Deallocate
  pool.deallocate(ptr);
  pool.deallocate(aligned_ptr);

  // Check statistics
  auto stats = pool.get_stats();
  std::cout << "Pool hit rate: " << stats.hit_rate() << std::endl;
  std::cout << "Current usage: " << stats.current_usage << " bytes" << std::endl;
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "Pool hit rate: 0.5\nCurrent usage: 0 bytes\n");
}

TEST(GuideMemory, arena) {
  testing::internal::CaptureStdout();
  Arena arena(1024 * 1024);  // 1MB arena

  // Fast linear allocations
  void* temp1 = arena.allocate(100);
  void* temp2 = arena.allocate(200);
  void* temp3 = arena.allocate(300);

  std::cout << "Arena used: " << arena.used() << " bytes" << std::endl;
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "Arena used: 620 bytes\n");
  EXPECT_LE(static_cast<char*>(temp1) + 100, temp2);
  EXPECT_LE(static_cast<char*>(temp2) + 200, temp3);

  // Reset all at once (very fast)
  arena.reset();
  EXPECT_EQ(arena.used(), 0u);
  EXPECT_EQ(arena.allocate(1), temp1);
}

TEST(GuideMemory, scoped_arena) {
  Arena arena(1024 * 1024);

  {
    ScopedArena scope(arena);
    void* temp = scope.allocate(512);
    // Use temp...
    std::memset(temp, 0, 512);
    EXPECT_EQ(arena.used(), 512u);
  }  // Automatically resets to saved offset

  // Arena is back to original state
  EXPECT_EQ(arena.used(), 0u);
}

TEST(Arena, overflows_and_rewinds) {
  Arena arena(1000);
  EXPECT_EQ(arena.capacity(), 1000u);
  EXPECT_EQ(Arena().capacity(), Arena::kDefaultCapacity);
  void* const outer = arena.allocate(600);
  std::memset(outer, 1, 600);
  {
    ScopedArena first(arena);
    auto* const over = static_cast<char*>(first.allocate(600));
    std::memset(over, 2, 600);
    EXPECT_EQ(arena.overflow_blocks(), 1u);
    EXPECT_GE(arena.overflow_bytes(), 600u);
    {
      ScopedArena second(arena);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(second.allocate_aligned(5000, 4096)) % 4096, 0u);
      second.allocate(10);
      EXPECT_EQ(arena.overflow_blocks(), 2u);
    }
    EXPECT_EQ(arena.overflow_blocks(), 1u);
    EXPECT_EQ(over[599], 2);
  }
  EXPECT_EQ(arena.overflow_blocks(), 0u);
  EXPECT_EQ(arena.used(), 600u);
  EXPECT_EQ(arena.remaining(), 400u);
  EXPECT_EQ(static_cast<char*>(outer)[599], 1);
  EXPECT_THROW(arena.allocate_aligned(1, 3), pyflame_rt::InvalidArgumentError);
  EXPECT_THROW(arena.allocate(SIZE_MAX - 8), std::bad_alloc);
}

TEST(BufferCache, keeps_what_fits_and_drops_the_oldest) {
  BufferCache cache(2, 10000);
  void* const first = cache.acquire(1000);
  cache.release(first);
  EXPECT_EQ(cache.acquire(600), first);
  void* const second = cache.acquire(400);
  EXPECT_NE(second, first);
  EXPECT_EQ(cache.hits(), 1u);
  EXPECT_EQ(cache.misses(), 2u);
  cache.release(second);
  cache.release(first);
  EXPECT_THROW(cache.release(first), pyflame_rt::InvalidArgumentError);
  cache.clear();
  void* all[3] = {cache.acquire(3000), cache.acquire(3000), cache.acquire(9000)};
  for (void* each : all) cache.release(each);
  EXPECT_EQ(cache.cached_buffers(), 1u) << "12,000 bytes are too many";
  EXPECT_EQ(cache.cached_bytes(), 9000u);
}

TEST(BufferCache, has_the_guides_names) {
  BufferCache& cache = global_buffer_cache();
  EXPECT_EQ(&cache, &global_buffer_cache());
  void* const first = cache.get_buffer(1000);
  cache.return_buffer(first);
  void* const second = cache.get_buffer(900);
  EXPECT_EQ(second, first);
  cache.return_buffer(second);
  const BufferCacheStats stats = cache.get_stats();
  EXPECT_EQ(stats.cached_buffers, 1u);
  EXPECT_EQ(stats.cached_bytes, 1000u);
  EXPECT_EQ(stats.hits, 1u);
  EXPECT_EQ(stats.misses, 1u);
  EXPECT_DOUBLE_EQ(stats.hit_rate(), 0.5);
  EXPECT_DOUBLE_EQ(BufferCacheStats().hit_rate(), 0.0);
  cache.clear();
  EXPECT_EQ(cache.get_stats().cached_buffers, 0u);
}

std::shared_ptr<pyflame_rt::Node> node_of(const char* op, std::vector<std::string> inputs,
                                          const char* output) {
  return std::make_shared<pyflame_rt::Node>(output, op, std::move(inputs),
                                            std::vector<std::string>{output});
}

// y = relu(relu(x w) w) w. The inner values are in the run's block.
pyflame_rt::InferenceSession chained_products(const pyflame_rt::SessionOptions& options = {}) {
  pyflame_rt::Graph graph("planned");
  graph.add_input({"x", {std::nullopt, 32}, pyflame_rt::DType::Float32});
  graph.add_initializer(
      "w", pyflame_rt::Tensor::from_vector(std::vector<float>(32 * 32, 0.5f), {32, 32}));
  graph.add_node(node_of("MatMul", {"x", "w"}, "h"));
  graph.add_node(node_of("Relu", {"h"}, "r"));
  graph.add_node(node_of("MatMul", {"r", "w"}, "i"));
  graph.add_node(node_of("Relu", {"i"}, "s"));
  graph.add_node(node_of("MatMul", {"s", "w"}, "y"));
  graph.add_output({"y", {std::nullopt, 32}, pyflame_rt::DType::Float32});
  return pyflame_rt::InferenceSession(graph, options);
}

float first_of(const pyflame_rt::InferenceSession& session, int64_t rows) {
  const auto x = pyflame_rt::Tensor::from_vector(std::vector<float>(32 * rows, 1.0f), {rows, 32});
  return session.run({}, {{"x", x}}).at(0).data_ptr<float>()[0];
}

// Gives every item a place of its own, side by side.
class SidePlanner : public IMemoryPlanner {
 public:
  MemoryPlan create_plan(const MemoryRequest& request) override {
    ++calls;
    if (refuses) throw pyflame_rt::UnsupportedError("no plan today", PFRT_CODE_UNSUPPORTED);
    if (throws) throw std::runtime_error("out of ideas");
    MemoryPlan plan;
    for (const MemoryItem& item : request.items) {
      plan.bytes = (plan.bytes + item.alignment - 1) / item.alignment * item.alignment;
      plan.offsets.push_back(overlaps ? 0 : plan.bytes);
      plan.bytes += item.bytes;
    }
    EXPECT_EQ(request.graph, "planned");
    EXPECT_EQ(request.memory, "host");
    EXPECT_FALSE(request.items.empty());
    if (short_by_one) plan.offsets.pop_back();
    return plan;
  }
  int calls = 0;
  bool refuses = false, throws = false, overlaps = false, short_by_one = false;
};

// Implements the planner under its other name, CreatePlan.
class SeedPlanner : public SidePlanner {
 public:
  MemoryPlan create_plan(const MemoryRequest& request) override { return CreatePlan(request); }
  MemoryPlan CreatePlan(const MemoryRequest& request) override {
    return SidePlanner::create_plan(request);
  }
};

TEST(MemoryPlanner, of_the_programs_own) {
  pyflame_rt::Environment& env = pyflame_rt::Environment::instance();
  const float expected = first_of(chained_products(), 3);
  for (const auto& planner : {std::make_shared<SidePlanner>(),
                              std::shared_ptr<SidePlanner>(std::make_shared<SeedPlanner>())}) {
    env.set_memory_planner(planner);
    const pyflame_rt::InferenceSession session = chained_products();
    EXPECT_EQ(first_of(session, 3), expected);
    EXPECT_EQ(planner->calls, 1);
    planner->overlaps = true;
    try {
      first_of(session, 4);
      ADD_FAILURE() << "items overlap";
    } catch (const pyflame_rt::InvalidArgumentError& fault) {
      EXPECT_NE(std::string(fault.what()).find("overlap"), std::string::npos) << fault.what();
    }
    planner->short_by_one = true;
    EXPECT_THROW(first_of(session, 5), pyflame_rt::InvalidArgumentError);
    planner->refuses = true;
    EXPECT_THROW(first_of(session, 6), pyflame_rt::UnsupportedError);
    planner->refuses = false;
    planner->throws = true;
    try {
      first_of(session, 7);
      ADD_FAILURE() << "it threw";
    } catch (const pyflame_rt::PyFlameRTError& fault) {
      EXPECT_NE(std::string(fault.what()).find("out of ideas"), std::string::npos) << fault.what();
    }
    env.set_memory_planner(nullptr);
    EXPECT_EQ(first_of(session, 8), expected);
  }
  class Nothing : public IMemoryPlanner {};
  env.set_memory_planner(std::make_shared<Nothing>());
  EXPECT_THROW(first_of(chained_products(), 3), pyflame_rt::UnsupportedError);
  env.set_memory_planner(nullptr);
}

TEST(SessionMemoryOptions, are_fields) {
  pyflame_rt::SessionOptions options;
  EXPECT_TRUE(options.enable_mem_reuse && options.enable_mem_pattern && options.halve_batch);
  const float expected = first_of(chained_products(), 3);
  options.enable_mem_reuse = options.enable_mem_pattern = options.halve_batch = false;
  options.extra["session.use_env_allocators"] = "0";
  EXPECT_TRUE(options.validate().empty());
  const pyflame_rt::InferenceSession session = chained_products(options);
  EXPECT_EQ(first_of(session, 3), expected);
  EXPECT_EQ(session.memory_report().idle, 0u) << "nothing is kept";
  pyflame_rt::RunOptions little;
  const int64_t rows = 4096;  // 512 KiB each
  little.memory_limit = 900 << 10;
  const auto x = pyflame_rt::Tensor::from_vector(std::vector<float>(32 * rows, 1.0f), {rows, 32});
  EXPECT_THROW(session.run({}, {{"x", x}}, little), pyflame_rt::OutOfMemoryError);
  const pyflame_rt::InferenceSession halving = chained_products();
  EXPECT_EQ(halving.run({}, {{"x", x}}, little).at(0).data_ptr<float>()[0], expected);
  EXPECT_EQ(halving.statistics().in_parts, 1u);
}

// Runs each loop, and each task, on threads that it starts for it.
class OwnThreads : public pyflame_rt::IExecutor {
 public:
  ~OwnThreads() override {
    for (std::thread& thread : tasks) thread.join();
  }
  uint32_t width() const override { return 3; }
  void loop(uint32_t workers, uint64_t n, const Body& body) override {
    ++loops;
    std::vector<std::thread> threads;
    for (uint32_t worker = 0; worker < workers; ++worker)
      threads.emplace_back([&, worker] {
        for (uint64_t i = worker; i < n; i += workers)
          if (!loses || i != 0) body(i, worker);
      });
    for (std::thread& thread : threads) thread.join();
    if (throws) throw 1;
  }
  bool submit(Task task) override {
    if (loses) return false;
    tasks.emplace_back(std::move(task));
    return true;
  }
  std::atomic<int> loops{0};
  bool loses = false, throws = false;
  std::vector<std::thread> tasks;
};

// A product that is large enough for several threads.
pyflame_rt::InferenceSession large_product() {
  pyflame_rt::Graph graph("large");
  graph.add_input({"x", {std::nullopt, 512}, pyflame_rt::DType::Float32});
  graph.add_initializer(
      "w", pyflame_rt::Tensor::from_vector(std::vector<float>(512 * 512, 0.25f), {512, 512}));
  graph.add_node(node_of("MatMul", {"x", "w"}, "y"));
  graph.add_output({"y", {std::nullopt, 512}, pyflame_rt::DType::Float32});
  return pyflame_rt::InferenceSession(graph);
}

float large_result(const pyflame_rt::InferenceSession& session) {
  const auto x = pyflame_rt::Tensor::from_vector(std::vector<float>(512 * 512, 1.0f), {512, 512});
  return session.run({}, {{"x", x}}).at(0).data_ptr<float>()[512 * 512 - 1];
}

TEST(Threads, of_the_programs_own) {
  pyflame_rt::Environment& env = pyflame_rt::Environment::instance();
  const auto threads = std::make_shared<OwnThreads>();
  env.set_executor(threads);
  const pyflame_rt::InferenceSession session = large_product();
  EXPECT_EQ(large_result(session), 128.0f);
  EXPECT_GT(threads->loops.load(), 0);
  threads->throws = true;
  EXPECT_EQ(large_result(session), 128.0f) << "everything was called";
  threads->loses = true;
  EXPECT_THROW(large_result(session), pyflame_rt::BackendError);
  env.set_executor(nullptr);
  EXPECT_EQ(large_result(session), 128.0f);
  EXPECT_EQ(threads.use_count(), 1) << "it is let go";
}

class Hooks : public pyflame_rt::IThreadHooks {
 public:
  void* create(std::function<void()> main) override {
    if (refuses) throw std::runtime_error("no thread");
    ++alive;
    ++made;
    return new std::thread(std::move(main));
  }
  void join(void* thread) override {
    auto* const made_here = static_cast<std::thread*>(thread);
    made_here->join();
    delete made_here;
    --alive;
  }
  std::atomic<int> alive{0}, made{0};
  bool refuses = false;
};

TEST(Threads, start_and_end_by_the_programs_hooks) {
  pyflame_rt::Environment& env = pyflame_rt::Environment::instance();
  for (const bool refuses : {false, true}) {
    const auto hooks = std::make_shared<Hooks>();
    hooks->refuses = refuses;
    env.set_thread_hooks(hooks);
    pyflame_rt::RunOptions wide;
    wide.num_threads = 3;
    const pyflame_rt::InferenceSession session = large_product();
    const auto x = pyflame_rt::Tensor::from_vector(std::vector<float>(512 * 512, 1.0f), {512, 512});
    EXPECT_EQ(session.run({}, {{"x", x}}, wide).at(0).data_ptr<float>()[0], 128.0f);
    env.set_thread_hooks(nullptr);
    EXPECT_EQ(hooks->alive.load(), 0);
    EXPECT_EQ(hooks->made.load() > 0, !refuses);
    EXPECT_EQ(hooks.use_count(), 1);
  }
}

TEST(MemoryPools, say_what_is_wrong) {
  PoolConfig config;
  config.memory_limit = 1 << 20;
  MemoryPool pool(config);
  try {
    pool.allocate(2 << 20);
    ADD_FAILURE() << "the limit is 1 MiB";
  } catch (const pyflame_rt::OutOfMemoryError& e) {
    EXPECT_NE(std::string(e.what()).find("memory_limit=1048576"), std::string::npos) << e.what();
  }
  int elsewhere = 0;
  EXPECT_THROW(pool.deallocate(&elsewhere), pyflame_rt::NotFoundError);
  void* const data = pool.allocate(10);
  pool.deallocate(data);
  EXPECT_THROW(pool.deallocate(data), pyflame_rt::InvalidArgumentError);
  config.alignment = 3;
  EXPECT_THROW(MemoryPool{config}, pyflame_rt::InvalidArgumentError);
}

// Counts its blocks and calls, and gives at most |limit| bytes at a time.
struct Counting : IAllocator {
  std::atomic<int> alive{0}, calls{0};
  size_t limit = SIZE_MAX;
  void* Alloc(size_t size) override {
    if (size > limit) return nullptr;
    ++alive;
    ++calls;
    return std::malloc(size);  // aligned by malloc alone
  }
  void Free(void* p) override {
    --alive;
    std::free(p);
  }
};

TEST(AdvancedMemoryPool, delegates_what_is_not_its_own) {
  Counting base;
  {
    AdvancedMemoryPool pool(100000, &base);
    EXPECT_EQ(base.alive, 1);
    void* const inside = pool.Alloc(50000);
    void* const beyond = pool.Alloc(80000);
    EXPECT_EQ(base.alive, 2) << "it expands";
    void* const foreign = base.Alloc(10);
    pool.Free(foreign);
    EXPECT_EQ(base.alive, 2);
    pool.Free(inside);
    pool.Free(beyond);
    base.limit = 0;
    EXPECT_EQ(pool.Alloc(1 << 20), nullptr);
  }
  EXPECT_EQ(base.alive, 0);
}

pyflame_rt::Graph relu() {
  pyflame_rt::Graph graph("relu");
  graph.add_input({"x", {{-1, 256}}, pyflame_rt::DType::Float32});
  graph.add_output({"y", {{-1, 256}}, pyflame_rt::DType::Float32});
  graph.add_node(std::make_shared<pyflame_rt::Node>("n", "Relu", std::vector<std::string>{"x"},
                                                    std::vector<std::string>{"y"}));
  return graph;
}

pyflame_rt::Tensor rows(int64_t n) {
  pyflame_rt::Tensor tensor({n, 256}, pyflame_rt::DType::Float32);
  tensor.fill(-1.0f);
  return tensor;
}

TEST(Allocators, of_clients_serve_runs) {
  const auto own = std::make_shared<Counting>();
  pyflame_rt::Environment::instance().set_allocator(own);
  {
    pyflame_rt::InferenceSession session(relu());
    const auto out = session.run({}, {{"x", rows(40)}});
    EXPECT_EQ(out.at(0).shape().at(0), 40);
    EXPECT_GT(own->calls.load(), 0);
    own->limit = 1 << 20;
    EXPECT_THROW(session.run({}, {{"x", rows(4000)}}), pyflame_rt::OutOfMemoryError);
  }
  pyflame_rt::Environment::instance().set_allocator(nullptr);
  EXPECT_EQ(own->alive, 0);
  EXPECT_EQ(own.use_count(), 1) << "it is let go of";
}

TEST(GlobalMemoryPool, counts_runs_and_limits_them) {
  pyflame_rt::InferenceSession session(relu());
  session.run({}, {{"x", rows(8)}});
  const PoolStats before = global_pool().get_stats();
  for (int i = 0; i < 10; ++i) session.run({}, {{"x", rows(8)}});
  const PoolStats after = global_pool().get_stats();
  EXPECT_GE(after.num_allocations - before.num_allocations, 20u) << "an output and a block each";
  EXPECT_GE(after.pool_hits - before.pool_hits, 10u);
  EXPECT_GT(after.hit_rate(), 0.0);
  EXPECT_EQ(after.current_usage, before.current_usage);

  PoolConfig config;
  config.memory_limit = 8 << 20;
  set_global_pool_config(config);
  MemoryPool& pool = global_pool();
  {
    const auto out = session.run({}, {{"x", rows(1000)}});
    EXPECT_GE(pool.get_stats().current_usage, 1000u * 1024) << "the output is of the pool";
    EXPECT_THROW(session.run({}, {{"x", rows(20000)}}), pyflame_rt::OutOfMemoryError);
  }
  EXPECT_THROW(pool.reset(), pyflame_rt::UnsupportedError);
  reset_global_pool_config();
  EXPECT_EQ(session.run({}, {{"x", rows(20000)}}).at(0).shape().at(0), 20000);
}

TEST(GlobalMemoryPool, is_shared_by_threads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      pyflame_rt::InferenceSession session(relu());
      for (int64_t i = 1; i < 50; ++i)
        EXPECT_EQ(session.run({}, {{"x", rows(i)}}).at(0).shape().at(0), i);
    });
  for (std::thread& each : threads) each.join();
}

// The process has a single environment, so this test needs to run before any other has made it.
TEST(EnvironmentOptions, take_further_keys) {
  if (pyflame_rt::Environment::has_instance()) GTEST_SKIP() << "there is an environment";
  pyflame_rt::EnvironmentOptions options;
  options.extra = {{"nosuch", "1"}};
  EXPECT_THROW((void)pyflame_rt::Environment::instance(options), pyflame_rt::InputError);
  ASSERT_FALSE(pyflame_rt::Environment::has_instance());
  options.extra = {{"memory_limit", "65536"}, {"memory_idle_s", "1"}};
  (void)pyflame_rt::Environment::instance(options);
  const pyflame_rt::InferenceSession session = chained_products();
  (void)first_of(session, 3);
  EXPECT_THROW((void)first_of(session, 1 << 20), pyflame_rt::OutOfMemoryError);
}

}  // namespace

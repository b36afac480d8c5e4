// SPDX-License-Identifier: Apache-2.0
//
// The table of memory pools, and the memory that sessions and environments report and give back.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "pyflame_rt/custom.h"
#include "test/capi/client.h"

namespace pfrt_test {
namespace {

pfrt_pool_config pool_config_of(uint64_t limit) {
  pfrt_pool_config config{};
  config.struct_size = sizeof config;
  config.memory_limit = limit;
  return config;
}

pfrt_pool_stats pool_stats_of(pfrt_memory_pool* pool) {
  pfrt_pool_stats stats{};
  stats.struct_size = sizeof stats;
  EXPECT_EQ(api().memory->pool_stats(pool, &stats), nullptr);
  return stats;
}

pfrt_code pool_code_of(pfrt_status* status) { return take(status).code; }

TEST(PoolTable, gives_and_takes) {
  pfrt_memory_pool* pool = nullptr;
  const pfrt_pool_config config = pool_config_of(1 << 20);
  ASSERT_EQ(api().memory->create_pool(&config, nullptr, &pool), nullptr);
  void* data = nullptr;
  ASSERT_EQ(api().memory->allocate(pool, 100, 4096, &data), nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 4096, 0u);
  std::memset(data, 1, 100);
  void* larger = nullptr;
  ASSERT_EQ(api().memory->reallocate(pool, data, 300000, &larger), nullptr);
  EXPECT_EQ(static_cast<char*>(larger)[99], 1);
  void* none = &none;
  EXPECT_EQ(pool_code_of(api().memory->allocate(pool, 2 << 20, 0, &none)), PFRT_CODE_OUT_OF_MEMORY);
  EXPECT_EQ(none, nullptr);
  ASSERT_TRUE(ok(api().memory->allocate(pool, 10, 0, &data)));
  EXPECT_TRUE(ok(api().memory->deallocate(pool, data)));
  EXPECT_EQ(pool_code_of(api().memory->deallocate(pool, data)), PFRT_CODE_INVALID_ARGUMENT);
  EXPECT_EQ(pool_code_of(api().memory->deallocate(pool, &none)), PFRT_CODE_NOT_FOUND);
  EXPECT_EQ(pool_stats_of(pool).current_usage, 300000u);
  EXPECT_EQ(api().memory->reset(pool), nullptr);
  EXPECT_EQ(pool_stats_of(pool).current_usage, 0u);
  uint64_t bytes = 0;
  EXPECT_EQ(api().memory->trim(pool, &bytes), nullptr);
  EXPECT_GE(bytes, 300000u);
  EXPECT_EQ(api().memory->reserve(pool, 1000), nullptr);
  EXPECT_EQ(api().memory->reset_stats(pool), nullptr);
  EXPECT_EQ(pool_stats_of(pool).num_allocations, 0u);
  api().memory->release_pool(pool);
}

TEST(PoolTable, takes_its_restrictions) {
  pfrt_memory_pool* pool = nullptr;
  pfrt_pool_config config = pool_config_of(0);
  config.flags = PFRT_POOL_NO_GROWTH | PFRT_POOL_NO_STATS;
  config.initial_pool_size = 1 << 16;
  ASSERT_TRUE(ok(api().memory->create_pool(&config, nullptr, &pool)));
  void* data = nullptr;
  EXPECT_TRUE(ok(api().memory->allocate(pool, 1000, 0, &data)));
  void* more = nullptr;
  EXPECT_TRUE(fails(api().memory->allocate(pool, 1 << 20, 0, &more), PFRT_CODE_OUT_OF_MEMORY, {}));
  EXPECT_EQ(pool_stats_of(pool).num_allocations, 0u) << "nobody counts";
  api().memory->release_pool(pool);
}

TEST(PoolTable, refuses_what_it_does_not_know) {
  pfrt_memory_pool* pool = nullptr;
  pfrt_pool_config config = pool_config_of(0);
  config.flags = 64;
  EXPECT_EQ(pool_code_of(api().memory->create_pool(&config, nullptr, &pool)),
            PFRT_CODE_UNSUPPORTED);
  config = pool_config_of(0);
  config.size_class_count = 2;
  EXPECT_EQ(pool_code_of(api().memory->create_pool(&config, nullptr, &pool)),
            PFRT_CODE_INVALID_ARGUMENT);
  EXPECT_EQ(pool, nullptr);
  config = pool_config_of(0);
  config.flags = PFRT_POOL_ONE_THREAD;
  EXPECT_EQ(pool_code_of(api().memory->set_global_pool(&config)), PFRT_CODE_INVALID_ARGUMENT);
  void* data = nullptr;
  EXPECT_EQ(pool_code_of(api().memory->allocate(nullptr, 1, 0, &data)), PFRT_CODE_INVALID_ARGUMENT);
  ASSERT_EQ(api().memory->global_pool(&pool), nullptr);
  EXPECT_EQ(pool_code_of(api().memory->reset(pool)), PFRT_CODE_UNSUPPORTED);
  api().memory->release_pool(pool);
  api().memory->release_pool(nullptr);
}

// An allocator that has no memory, and counts its calls and releases.
struct NoMemory {
  int asked = 0, released = 0;
  pfrt_allocator table() {
    pfrt_allocator out{};
    out.struct_size = sizeof out;
    out.user = this;
    out.allocate = [](void* user, uint64_t, uint64_t) -> void* {
      ++static_cast<NoMemory*>(user)->asked;
      return nullptr;
    };
    out.free = [](void*, void*, uint64_t) { ADD_FAILURE() << "nothing was given"; };
    out.release = [](void* user) { ++static_cast<NoMemory*>(user)->released; };
    return out;
  }
};

TEST(PoolTable, takes_from_the_allocator_below) {
  NoMemory nothing;
  const pfrt_allocator below = nothing.table();
  pfrt_memory_pool* pool = nullptr;
  ASSERT_EQ(api().memory->create_pool(nullptr, &below, &pool), nullptr);
  void* data = nullptr;
  EXPECT_EQ(pool_code_of(api().memory->allocate(pool, 10, 0, &data)), PFRT_CODE_OUT_OF_MEMORY);
  EXPECT_GT(nothing.asked, 0);
  EXPECT_EQ(nothing.released, 0);
  api().memory->release_pool(pool);
  EXPECT_EQ(nothing.released, 1);
  const pfrt_pool_config config = [] {
    pfrt_pool_config out = pool_config_of(0);
    out.initial_pool_size = 4096;
    return out;
  }();
  EXPECT_EQ(pool_code_of(api().memory->create_pool(&config, &below, &pool)),
            PFRT_CODE_OUT_OF_MEMORY);
  EXPECT_EQ(nothing.released, 2) << "also when the call fails";
}

struct SignatureRows {
  std::vector<std::pair<std::string, uint64_t>> all;
  static void add(void* user, pfrt_string signature, uint64_t bytes) {
    static_cast<SignatureRows*>(user)->all.emplace_back(text(signature), bytes);
  }
};

pfrt_memory_report memory_report_of(pfrt_session* session, SignatureRows* rows = nullptr) {
  pfrt_memory_report report{};
  report.struct_size = sizeof report;
  EXPECT_TRUE(ok(
      api().session->memory_report(session, &report, rows ? &SignatureRows::add : nullptr, rows)));
  return report;
}

std::string session_phase_of(pfrt_session* session) {
  pfrt_session_phase phase = PFRT_PHASE_UNSET;
  pfrt_string name{};
  EXPECT_TRUE(ok(api().session->phase(session, &phase, &name)));
  return text(name);
}

TEST(SessionMemory, is_reported_and_given_back) {
  const auto env = make_env();
  const auto session = make_session(env.get(), two_products());
  ASSERT_TRUE(session);
  EXPECT_EQ(memory_report_of(session.get()).peak, 0u);
  ASSERT_TRUE(ok(try_run(session.get(), {noise({300, 512}, 1)})));
  ASSERT_TRUE(ok(try_run(session.get(), {noise({100, 512}, 1)})));
  SignatureRows rows;
  const pfrt_memory_report report = memory_report_of(session.get(), &rows);
  EXPECT_GE(report.packed, 512u * 512 * 4);
  EXPECT_GE(report.idle, 300u * 512 * 4);
  EXPECT_EQ(report.in_use, 0u);
  ASSERT_EQ(rows.all.size(), 2u);
  EXPECT_EQ(rows.all[1].first, "x[300,512]");
  EXPECT_GT(rows.all[1].second, rows.all[0].second);
  uint64_t bytes = 0;
  EXPECT_TRUE(ok(api().session->trim(session.get(), &bytes)));
  EXPECT_EQ(bytes, report.idle);
  EXPECT_EQ(memory_report_of(session.get()).idle, 0u);
  ASSERT_TRUE(ok(try_run(session.get(), {noise({100, 512}, 1)})));
  EXPECT_TRUE(ok(api().env->trim(env.get(), &bytes)));
  EXPECT_GT(bytes, 0u);
  EXPECT_EQ(memory_report_of(session.get()).idle, 0u);
  ASSERT_TRUE(ok(try_run(session.get(), {noise({100, 512}, 1)})));
}

// An operator that looks at the phase of the session that it is a step of.
struct Looker {
  const pfrt_session* session = nullptr;
  pfrt_session_phase seen = PFRT_PHASE_UNSET;
  static pfrt_code compute(void* user, const pfrt_op_compute* call) {
    auto& self = *static_cast<Looker*>(user);
    EXPECT_TRUE(ok(api().session->phase(self.session, &self.seen, nullptr)));
    std::memcpy(call->outputs[0].data, call->inputs[0].data, call->inputs[0].bytes);
    return PFRT_CODE_OK;
  }
};

TEST(SessionMemory, phase_is_executing_in_the_middle_of_a_run) {
  Looker looker;
  pfrt_custom_op op{};
  op.struct_size = sizeof op;
  op.abi = PFRT_ABI_VERSION;
  op.domain = str("acme");
  op.name = str("Look");
  op.min_inputs = 1;
  op.infer = [](void*, const pfrt_op_infer* call) {
    return call->set_output(call, 0, call->inputs[0].dtype, call->inputs[0].rank,
                            call->inputs[0].dims);
  };
  op.compute = &Looker::compute;
  op.user = &looker;
  const auto env = make_env();
  ASSERT_TRUE(ok(api().env->register_operator(env.get(), &op)));
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {64});
  g.node("Exp", {"x"}, {"e"});
  g.node("Look", {"e"}, {"l"}, {}, {}, "acme");
  g.node("Log", {"l"}, {"y"});
  g.output("y");
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  looker.session = session.get();
  run(session.get(), {noise({64}, 1)});
  EXPECT_EQ(looker.seen, uint32_t{PFRT_PHASE_EXECUTING});
  EXPECT_EQ(session_phase_of(session.get()), "Ready");
}

TEST(SessionMemory, phases_tell_a_failed_run) {
  const auto env = make_env({{"memory_limit", std::to_string(8 << 20)}});
  const auto session = make_session(env.get(), two_products());
  ASSERT_TRUE(session);
  EXPECT_EQ(session_phase_of(session.get()), "Ready");
  EXPECT_EQ(try_run(session.get(), {noise({4000, 512}, 1)}).code,
            uint32_t{PFRT_CODE_OUT_OF_MEMORY});
  EXPECT_EQ(session_phase_of(session.get()), "FatalError");
  ASSERT_TRUE(ok(try_run(session.get(), {noise({10, 512}, 1)})));
  EXPECT_EQ(session_phase_of(session.get()), "Ready");
}

// Makes a folder of this test's whose proc gives the numbers of the system's memory.
std::string system_with(const std::string& name, const std::string& kilobytes,
                        const std::string& stalled) {
  const std::filesystem::path root =
      std::filesystem::path(testing::TempDir()) /
      (name + "_" + testing::UnitTest::GetInstance()->current_test_info()->name());
  std::filesystem::create_directories(root / "proc/pressure");
  std::ofstream(root / "proc/meminfo") << "MemAvailable: " << kilobytes << " kB\n";
  std::ofstream(root / "proc/pressure/memory") << "some avg10=" << stalled << " avg60=0.00\n";
  return root.string();
}

uint64_t idle_after_a_run(const Settings& settings) {
  const auto env = make_env(settings);
  const auto session = make_session(env.get(), two_products());
  EXPECT_TRUE(ok(try_run(session.get(), {noise({300, 512}, 1)})));
  return memory_report_of(session.get()).idle;
}

TEST(MemoryPressure, has_runs_give_back_what_is_idle) {
  const std::string enough = system_with("enough", "8000000", "1.00");
  const std::string little = system_with("little", "1000", "0.00");
  const std::string stalled = system_with("stalled", "8000000", "31.50");
  const auto watch = [](const std::string& root) {
    return idle_after_a_run({{"memory_pressure", "watch"}, {"memory_pressure_root", root}});
  };
  EXPECT_GT(watch(enough), 0u);
  EXPECT_EQ(watch(little), 0u);
  EXPECT_EQ(watch(stalled), 0u);
  EXPECT_GT(idle_after_a_run({{"memory_pressure_root", little}}), 0u) << "it is off by default";
}

TEST(MemoryPressure, has_runs_with_a_state_give_back_what_is_idle) {
  const std::string little = system_with("little", "1000", "0.00");
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 512});
  g.input("h", PFRT_DTYPE_FLOAT32, {"N", 512});
  g.constant("w", noise({512, 512}, 7));
  g.node("MatMul", {"x", "w"}, {"a"});
  g.node("MatMul", {"a", "w"}, {"b"});
  g.node("Add", {"b", "h"}, {"h_out"});
  g.output("h_out");
  const auto idle = [&](const Settings& settings) {
    const auto env = make_env(settings);
    const auto session = make_session(env.get(), g);
    pfrt_state* state = nullptr;
    EXPECT_TRUE(ok(api().state->create(session.get(), nullptr, 0, &state)));
    const RunDesc options({.state = state});
    const Array x = noise({300, 512}, 1);
    const pfrt_string in = str("x");
    const pfrt_io fed = x.io();
    EXPECT_TRUE(ok(
        api().session->run_named(session.get(), &in, &fed, 1, nullptr, nullptr, 0, options.get())));
    api().state->release(state);
    return memory_report_of(session.get()).idle;
  };
  EXPECT_GT(idle({}), 0u);
  EXPECT_EQ(idle({{"memory_pressure", "watch"}, {"memory_pressure_root", little}}), 0u);
}

// Returns whether the session's idle memory goes away while nobody calls except to look.
bool idle_goes(const Settings& settings) {
  const auto env = make_env(settings);
  const auto session = make_session(env.get(), two_products());
  EXPECT_TRUE(ok(try_run(session.get(), {noise({300, 512}, 1)})));
  for (int i = 0; i < 3000; ++i) {
    if (memory_report_of(session.get()).idle == 0) {
      EXPECT_TRUE(ok(try_run(session.get(), {noise({300, 512}, 1)}))) << "it runs as before";
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(IdleMemory, is_freed_after_a_while) { EXPECT_TRUE(idle_goes({{"memory_idle_s", "1"}})); }

TEST(IdleMemory, is_freed_when_memory_is_short_and_nobody_runs) {
  const std::string root = system_with("later", "8000000", "0.00");
  const auto env = make_env({{"memory_pressure", "watch"}, {"memory_pressure_root", root}});
  const auto session = make_session(env.get(), two_products());
  EXPECT_TRUE(ok(try_run(session.get(), {noise({300, 512}, 1)})));
  EXPECT_GT(memory_report_of(session.get()).idle, 0u);
  system_with("later", "1000", "0.00");
  bool gone = false;
  for (int i = 0; i < 3000 && !gone; ++i) {
    gone = memory_report_of(session.get()).idle == 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(gone);
}

TEST(IdleMemory, has_maintenance_that_ends_with_the_environment) {
  const int before = threads_now();
  for (int i = 0; i < 20; ++i) {
    const auto env = make_env({{"memory_idle_s", "1"}});
    std::vector<Handle<pfrt_session>> sessions;
    for (int s = 0; s < 4; ++s) sessions.push_back(make_session(env.get(), add_graph()));
    EXPECT_TRUE(ok(try_run(sessions[0].get(), {floats({1, 3}, {0, 0, 0})})));
    EXPECT_GT(threads_now(), 0);
  }
  EXPECT_LE(threads_now(), before);
}

}  // namespace
}  // namespace pfrt_test

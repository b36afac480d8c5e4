// SPDX-License-Identifier: Apache-2.0
//
// Runs for which memory does not suffice, and which are done in parts of fewer rows; a client's
// planner of memory, and the options of sessions about memory.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

constexpr int64_t kKiB = 1024, kRow = 16 * kKiB;  // bytes of a row of the inner value

// h = x a has 16 KiB a row, y = softmax(relu(h) b) t has 32 bytes. x is [N, 64].
GraphBuilder narrow_wide_narrow(const std::vector<DimSpec>& x = {"N", 64}, int64_t axis = 1) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, x);
  g.input("t", PFRT_DTYPE_FLOAT32, {});
  g.constant("a", floats({64, 4096}, random_floats(64 * 4096, 1)));
  g.constant("b", floats({4096, 8}, random_floats(4096 * 8, 2)));
  g.node("MatMul", {"x", "a"}, {"h"}, {}, "first");
  g.node("Relu", {"h"}, {"r"});
  g.node("MatMul", {"r", "b"}, {"s"}, {}, "second");
  g.node("Softmax", {"s"}, {"p"}, {Attr::of_int("axis", axis)}, "soft");
  g.node("Mul", {"p", "t"}, {"y"});
  g.output("y");
  return g;
}

std::vector<Array> inputs_of(int64_t rows) {
  return {floats({rows, 64}, random_floats(static_cast<size_t>(rows) * 64, 7)), floats({}, {3})};
}

// Options of a run that may take the memory of |rows| rows, and a little more.
RunDesc room_for(int64_t rows, pfrt_state* state = nullptr) {
  return RunDesc({.memory_limit = rows * kRow + 8 * kKiB, .state = state});
}

Handle<pfrt_options> apart(const Settings& more = {}) {
  Settings settings = more;
  settings.emplace_back("deterministic", "batch");
  settings.emplace_back("num_threads", "1");
  return make_options(PFRT_OPTIONS_SESSION, settings);
}

uint64_t in_parts(const pfrt_session* session) {
  pfrt_session_statistics s{};
  s.struct_size = sizeof s;
  EXPECT_TRUE(ok(api().session->statistics(session, &s)));
  return s.in_parts;
}

struct Log {
  std::mutex mutex;
  std::string lines;
  static void add(void* user, pfrt_log_level, pfrt_string line) {
    auto& self = *static_cast<Log*>(user);
    const std::lock_guard<std::mutex> lock(self.mutex);
    self.lines += text(line) + "\n";
  }
  bool has(std::string_view part) const { return lines.find(part) != std::string::npos; }
};

TEST(BatchParts, give_the_bits_of_one_run) {
  Log log;
  const auto env = make_env({{"log_level", "debug"}});
  ASSERT_TRUE(ok(api().env->set_logger(env.get(), &Log::add, &log)));
  const auto options = apart({{"log_level", "debug"}});
  const auto session = make_session(env.get(), narrow_wide_narrow(), options.get());
  ASSERT_TRUE(session);
  for (const int64_t rows : {2, 7, 32, 61}) {
    SCOPED_TRACE(rows);
    const std::vector<Array> x = inputs_of(rows);
    const std::vector<Array> whole = run(session.get(), x);
    for (const int64_t room : {rows - 1, (rows + 1) / 2, int64_t{1}}) {
      SCOPED_TRACE(room);
      const uint64_t before = in_parts(session.get());
      const auto limit = room_for(room);
      std::vector<Array> out;
      ASSERT_TRUE(ok(try_run(session.get(), x, &out, limit.get())));
      EXPECT_EQ(in_parts(session.get()), before + 1);
      EXPECT_EQ(out[0].dims, whole[0].dims);
      EXPECT_EQ(out[0].bytes, whole[0].bytes);
    }
  }
  EXPECT_TRUE(log.has("a run of 7 rows was done in parts of at most 4")) << log.lines;
  EXPECT_TRUE(log.has("to MemoryRecovery")) << log.lines;
  EXPECT_TRUE(log.has("MemoryRecovery to Ready")) << log.lines;
  EXPECT_FALSE(log.has("FatalError")) << log.lines;
  ASSERT_TRUE(ok(api().env->set_logger(env.get(), nullptr, nullptr)));
}

TEST(BatchParts, are_close_to_one_run_on_any_kernels) {
  const auto env = make_env();
  const auto session = make_session(env.get(), narrow_wide_narrow());
  const std::vector<Array> x = inputs_of(48);
  const std::vector<float> whole = run(session.get(), x)[0].as<float>();
  const auto limit = room_for(20);
  std::vector<Array> out;
  ASSERT_TRUE(ok(try_run(session.get(), x, &out, limit.get())));
  EXPECT_EQ(in_parts(session.get()), 1u);
  const std::vector<float> parts = out[0].as<float>();
  ASSERT_EQ(parts.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(parts[i], whole[i], 1e-5) << i;
}

TEST(BatchParts, write_to_the_memory_that_outputs_are_bound_to) {
  const auto env = make_env();
  const auto options = apart();
  const auto session = make_session(env.get(), narrow_wide_narrow(), options.get(), {"s"});
  const std::vector<Array> x = inputs_of(16);
  const std::vector<Array> whole = run(session.get(), x);
  const auto limit = room_for(5);
  Array y{PFRT_DTYPE_FLOAT32, {16, 8}, std::vector<char>(whole[0].bytes.size())};
  pfrt_io in[2] = {x[0].io(), x[1].io()}, out[2]{};
  out[0] = y.io();
  out[1].struct_size = sizeof(pfrt_io);
  ASSERT_TRUE(ok(api().session->run(session.get(), in, 2, out, 2, limit.get())));
  EXPECT_EQ(in_parts(session.get()), 1u);
  EXPECT_EQ(y.bytes, whole[0].bytes);
  const Handle<pfrt_value> s(out[1].value);
  EXPECT_EQ(array_of(s.get()).bytes, whole[1].bytes) << "an extra output, which the run allocated";
  out[0].flags = PFRT_IO_SKIP;
  out[1] = {};
  out[1].struct_size = sizeof(pfrt_io);
  ASSERT_TRUE(ok(api().session->run(session.get(), in, 2, out, 2, limit.get())));
  const Handle<pfrt_value> alone(out[1].value);
  EXPECT_EQ(array_of(alone.get()).bytes, whole[1].bytes);
}

TEST(BatchParts, say_that_not_even_one_row_fits) {
  const auto env = make_env();
  const auto session = make_session(env.get(), narrow_wide_narrow());
  const auto limit = room_for(0);
  EXPECT_TRUE(fails(try_run(session.get(), inputs_of(9), nullptr, limit.get()),
                    PFRT_CODE_OUT_OF_MEMORY, {"the run", "row 0 of 9 by itself"}));
  pfrt_string name{};
  pfrt_session_phase phase = PFRT_PHASE_UNSET;
  ASSERT_TRUE(ok(api().session->phase(session.get(), &phase, &name)));
  EXPECT_EQ(text(name), "FatalError");
  EXPECT_EQ(in_parts(session.get()), 0u);
  EXPECT_TRUE(ok(try_run(session.get(), inputs_of(9))));
}

TEST(BatchParts, are_not_made_where_rows_meet_or_nobody_wants_them) {
  const auto env = make_env();
  const auto limit = room_for(20);
  const std::vector<Array> x = inputs_of(32);
  const auto mixing = make_session(env.get(), narrow_wide_narrow({"N", 64}, 0));
  EXPECT_TRUE(fails(try_run(mixing.get(), x, nullptr, limit.get()), PFRT_CODE_OUT_OF_MEMORY,
                    {"cannot be halved", "Softmax 'soft'"}));
  EXPECT_TRUE(ok(try_run(mixing.get(), x)));
  const auto fixed = make_session(env.get(), narrow_wide_narrow({32, 64}));
  const Failure failure = try_run(fixed.get(), x, nullptr, limit.get());
  EXPECT_TRUE(fails(failure, PFRT_CODE_OUT_OF_MEMORY, {"the run"}));
  EXPECT_EQ(failure.message.find("halved"), std::string::npos) << failure.message;
  for (const char* key : {"session.halve_batch", "session.fallback"}) {
    const auto off = make_options(PFRT_OPTIONS_SESSION, {{key, "off"}});
    const auto session = make_session(env.get(), narrow_wide_narrow(), off.get());
    EXPECT_EQ(try_run(session.get(), x, nullptr, limit.get()).code,
              uint32_t{PFRT_CODE_OUT_OF_MEMORY})
        << key;
    EXPECT_TRUE(ok(try_run(session.get(), x))) << key;
  }
}

// Gives the C library's memory in pieces of at most |largest| bytes, and calls |each| at every
// piece.
struct SmallPieces {
  uint64_t largest = UINT64_MAX;
  std::function<void()> each;

  pfrt_allocator table() {
    pfrt_allocator t{};
    t.struct_size = sizeof t;
    t.user = this;
    t.allocate = [](void* user, uint64_t bytes, uint64_t alignment) -> void* {
      auto& self = *static_cast<SmallPieces*>(user);
      if (bytes > self.largest) return nullptr;
      if (self.each) self.each();
      return std::aligned_alloc(alignment, bytes);
    };
    t.free = [](void*, void* data, uint64_t) { std::free(data); };
    return t;
  }
};

TEST(BatchParts, stop_with_the_run) {
  SmallPieces memory;
  const auto env = make_env();
  const pfrt_allocator table = memory.table();
  ASSERT_TRUE(ok(api().env->set_allocator(env.get(), &table)));
  const auto session = make_session(env.get(), narrow_wide_narrow());
  const std::vector<Array> x = inputs_of(32);
  memory.largest = 10 * kRow;
  std::vector<Array> out;
  EXPECT_TRUE(ok(try_run(session.get(), x, &out)));
  EXPECT_EQ(in_parts(session.get()), 1u);
  uint32_t cancel = 0;
  const RunDesc cancelled({.cancel = &cancel});
  memory.each = [&] { std::atomic_ref(cancel).store(1); };  // at any allocation of a part
  EXPECT_EQ(try_run(session.get(), x, nullptr, cancelled.get()).code,
            uint32_t{PFRT_CODE_CANCELLED});
  memory.each = [] { std::this_thread::sleep_for(std::chrono::milliseconds(30)); };
  const RunDesc late({.timeout_ms = 25});
  EXPECT_EQ(try_run(session.get(), x, nullptr, late.get()).code, uint32_t{PFRT_CODE_DEADLINE});
  memory.each = nullptr;
  EXPECT_TRUE(ok(try_run(session.get(), x, &out)));
}

TEST(BatchParts, are_not_for_runs_with_a_state) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 64});
  g.input("h", PFRT_DTYPE_FLOAT32, {"N", 8});
  g.constant("a", floats({64, 4096}, random_floats(64 * 4096, 1)));
  g.constant("b", floats({4096, 8}, random_floats(4096 * 8, 2)));
  g.node("MatMul", {"x", "a"}, {"w"});
  g.node("Relu", {"w"}, {"r"});
  g.node("MatMul", {"r", "b"}, {"s"});
  g.node("Add", {"s", "h"}, {"h_out"});
  g.output("h_out");
  const auto env = make_env();
  const auto session = make_session(env.get(), g);
  const std::string_view names[] = {"h", "h_out"};
  const pfrt_state_pair pair = {sizeof(pfrt_state_pair), PFRT_STATE_BY_NAMES, 0, 0,
                                str(names[0]),           str(names[1]),       0};
  pfrt_state* state = nullptr;
  ASSERT_TRUE(ok(api().state->create(session.get(), &pair, 1, &state)));
  const Array x = inputs_of(32)[0];
  const auto limit = room_for(20, state);
  pfrt_io in[2] = {x.io(), {}}, out{};
  in[1].struct_size = out.struct_size = sizeof(pfrt_io);
  EXPECT_TRUE(fails(api().session->run(session.get(), in, 2, &out, 1, limit.get()),
                    PFRT_CODE_OUT_OF_MEMORY, {"the run"}));
  EXPECT_EQ(in_parts(session.get()), 0u);
  api().state->release(state);
  const auto without = room_for(20);
  EXPECT_TRUE(ok(try_run(session.get(), {x, floats({32, 8}, std::vector<float>(256))}, nullptr,
                         without.get())));
  EXPECT_EQ(in_parts(session.get()), 1u);
}

// ---- planners

// Places items one behind the other, and records them.
struct Planner {
  std::mutex mutex;
  std::vector<std::string> names;
  std::string graph, memory;
  int calls = 0, releases = 0;
  std::function<pfrt_code(pfrt_memory_request*)> spoil;  // called after all is placed

  pfrt_memory_planner table() {
    pfrt_memory_planner t{};
    t.struct_size = sizeof t;
    t.user = this;
    t.create_plan = [](void* user, pfrt_memory_request* request) -> pfrt_code {
      auto& self = *static_cast<Planner*>(user);
      const std::lock_guard<std::mutex> lock(self.mutex);
      ++self.calls;
      self.graph = text(request->graph);
      self.memory = text(request->memory);
      self.names.clear();
      for (size_t i = 0; i < request->count; ++i) {
        const auto& item = *static_cast<const pfrt_memory_item*>(
            pfrt_at(request->items, request->items->struct_size, i));
        EXPECT_LE(item.first, item.last);
        request->bytes = (request->bytes + item.alignment - 1) / item.alignment * item.alignment;
        request->offsets[i] = request->bytes;
        request->bytes += item.bytes;
        self.names.push_back(text(item.name));
      }
      return self.spoil ? self.spoil(request) : pfrt_code{PFRT_CODE_OK};
    };
    t.release = [](void* user) { ++static_cast<Planner*>(user)->releases; };
    return t;
  }
};

TEST(MemoryPlanner, of_a_client_places_what_runs_work_in) {
  Planner planner;
  {
    const auto env = make_env();
    const auto session = make_session(env.get(), narrow_wide_narrow());
    const std::vector<Array> own = run(session.get(), inputs_of(5));
    const pfrt_memory_planner table = planner.table();
    ASSERT_TRUE(ok(api().env->set_memory_planner(env.get(), &table)));
    EXPECT_EQ(run(session.get(), inputs_of(5))[0].bytes, own[0].bytes);
    EXPECT_EQ(planner.calls, 0) << "it had this plan";
    const auto other = make_session(env.get(), narrow_wide_narrow());
    EXPECT_EQ(run(other.get(), inputs_of(5))[0].bytes, own[0].bytes);
    EXPECT_EQ(planner.calls, 1);
    EXPECT_EQ(planner.graph, "g");
    EXPECT_EQ(planner.memory, "host");
    EXPECT_NE(std::find(planner.names.begin(), planner.names.end(), "first"), planner.names.end());
    ASSERT_TRUE(ok(api().env->set_memory_planner(env.get(), nullptr)));
    EXPECT_TRUE(ok(try_run(other.get(), inputs_of(6))));
    EXPECT_EQ(planner.calls, 1);
    EXPECT_EQ(planner.releases, 1);
  }
  EXPECT_EQ(planner.releases, 1);
}

TEST(MemoryPlanner, that_is_wrong_fails_the_run_and_no_more) {
  Planner planner;
  const auto env = make_env();
  const pfrt_memory_planner table = planner.table();
  ASSERT_TRUE(ok(api().env->set_memory_planner(env.get(), &table)));
  const auto session = make_session(env.get(), narrow_wide_narrow());
  const auto run_fails = [&](pfrt_code code, std::initializer_list<std::string_view> parts) {
    EXPECT_TRUE(fails(try_run(session.get(), inputs_of(3)), code, parts));
  };
  planner.spoil = [](pfrt_memory_request* r) -> pfrt_code {
    std::fill_n(r->offsets, r->count, 0);
    return PFRT_CODE_OK;
  };
  run_fails(PFRT_CODE_INVALID_ARGUMENT, {"memory planner", "overlap", "'first'", "'second'"});
  planner.spoil = [](pfrt_memory_request* r) -> pfrt_code { return r->bytes = 1, PFRT_CODE_OK; };
  run_fails(PFRT_CODE_INVALID_ARGUMENT, {"memory planner", "not inside of the 1 bytes"});
  planner.spoil = [](pfrt_memory_request* r) -> pfrt_code {
    ++r->offsets[0];
    r->bytes += 64;
    return PFRT_CODE_OK;
  };
  run_fails(PFRT_CODE_INVALID_ARGUMENT, {"memory planner", "no multiple of 64"});
  planner.spoil = [](pfrt_memory_request* r) {
    return r->fail(r, PFRT_CODE_UNSUPPORTED, str("the day is too short"));
  };
  run_fails(PFRT_CODE_UNSUPPORTED, {"graph 'g'", "failed: the day is too short"});
  planner.spoil = [](pfrt_memory_request*) -> pfrt_code { throw 1; };
  run_fails(PFRT_CODE_INTERNAL, {"the memory planner threw"});
  planner.spoil = nullptr;
  EXPECT_TRUE(ok(try_run(session.get(), inputs_of(3))));
  pfrt_memory_planner empty{};
  empty.struct_size = sizeof empty;
  EXPECT_TRUE(fails(api().env->set_memory_planner(env.get(), &empty), PFRT_CODE_INVALID_ARGUMENT,
                    {"memory planner", "NULL"}));
}

// ---- options of memory

struct Use {
  uint64_t idle = 0, block = 0;
};

Use use_of(pfrt_session* session) {
  Use out;
  pfrt_memory_report report{};
  report.struct_size = sizeof report;
  EXPECT_TRUE(ok(api().session->memory_report(
      session, &report,
      [](void* user, pfrt_string, uint64_t bytes) { static_cast<Use*>(user)->block += bytes; },
      &out)));
  out.idle = report.idle;
  return out;
}

TEST(MemoryOptions, say_whether_memory_is_used_again_and_kept) {
  const auto env = make_env();
  GraphBuilder g;  // a chain of products, each as large as the one before
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 64});
  g.constant("w", floats({64, 64}, random_floats(64 * 64, 1)));
  const char* last = "x";
  for (const char* name : {"a", "b", "c", "d", "y"}) {
    g.node("MatMul", {last, "w"}, {name});
    last = name;
  }
  g.output("y");
  const Array x = floats({16, 64}, random_floats(16 * 64, 3));
  const auto session = [&](const Settings& settings) {
    const auto options = make_options(PFRT_OPTIONS_SESSION, settings);
    return make_session(env.get(), g, options.get());
  };
  const auto plain = session({}), apart_from_each_other = session({{"enable_mem_reuse", "false"}}),
             freed = session({{"enable_mem_pattern", "false"}});
  const std::vector<Array> expected = run(plain.get(), {x});
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(run(plain.get(), {x})[0].bytes, expected[0].bytes);
    EXPECT_EQ(run(apart_from_each_other.get(), {x})[0].bytes, expected[0].bytes);
    EXPECT_EQ(run(freed.get(), {x})[0].bytes, expected[0].bytes);
  }
  EXPECT_GE(use_of(apart_from_each_other.get()).block, 4u * 16 * 64 * 4);
  EXPECT_LT(use_of(plain.get()).block, 4u * 16 * 64 * 4);
  EXPECT_GT(use_of(plain.get()).idle, 0u);
  EXPECT_EQ(use_of(freed.get()).idle, 0u);
  EXPECT_EQ(use_of(freed.get()).block, use_of(plain.get()).block) << "the plan is kept";
}

TEST(MemoryOptions, say_whose_allocator_runs_use) {
  SmallPieces memory;
  int allocations = 0;
  memory.each = [&] { ++allocations; };
  const auto env = make_env();
  const pfrt_allocator table = memory.table();
  ASSERT_TRUE(ok(api().env->set_allocator(env.get(), &table)));
  const auto model = make_model(env.get(), narrow_wide_narrow());
  const auto own = make_options(PFRT_OPTIONS_SESSION, {{"session.use_env_allocators", "0"}}),
             shared = make_options(PFRT_OPTIONS_SESSION, {{"session.use_env_allocators", "1"}});
  allocations = 0;
  const auto first = make_session(env.get(), model.get(), own.get());
  const std::vector<Array> y = run(first.get(), inputs_of(8));
  EXPECT_EQ(allocations, 0);
  const auto second = make_session(env.get(), model.get(), shared.get());
  EXPECT_EQ(run(second.get(), inputs_of(8))[0].bytes, y[0].bytes);
  EXPECT_GE(allocations, 2) << "the result and the block";
}

}  // namespace
}  // namespace pfrt_test

// SPDX-License-Identifier: Apache-2.0
//
// Calls of a session to its provider: all regions in one call, device words, constants that it does
// not fold, and calls that are asked to stop while they are at work.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "pyflame_rt/custom.h"
#include "test/capi/client.h"
#include "test/plugins/compile_each.h"
#include "test/plugins/elementwise.h"

namespace pfrt_test {
namespace {

enum class Call {
  kNone,
  kOpen,
  kClaim,
  kSupports,
  kCompile,
  kConstants,
  kPack,
  kSpecialise,
  kAllocate,
  kCopy
};

// The state of a provider of elementwise operators.
struct Watched {
  Call stuck = Call::kNone;         // the call that goes on until it is stopped
  pfrt_options* reset = nullptr;    // are no longer cancelled once it was stopped
  bool on_device = false;           // programs work in the provider's own memory
  std::atomic<bool> broken{false};  // steps fail
  std::atomic<bool> reached{false}, gave_up{false};
  std::vector<size_t> compiles;  // regions in each call
  std::vector<std::string> graphs;
  std::string device;
  std::atomic<int> asked{0};  // times that it was asked whether it runs Swish
  pfrt_code stop(Call now, const pfrt_sink* sink) {
    if (stuck != now) return PFRT_CODE_OK;
    reached = true;
    const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < late) {
      if (const pfrt_code code = sink->stop(sink)) {
        if (reset) api().options->reset_cancel(reset);
        return code;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    gave_up = true;
    return PFRT_CODE_INTERNAL;
  }
};

struct WatchedExecutable {
  Watched* owner;
  elementwise::Region region;
  uint32_t source = 0;
  pfrt_packed_constant packed{};
};

Watched& watched(pfrt_provider* p) { return *reinterpret_cast<Watched*>(p); }
WatchedExecutable& watched(pfrt_executable* e) { return *reinterpret_cast<WatchedExecutable*>(e); }

pfrt_code claim_watched(pfrt_provider* p, const pfrt_snapshot* snapshot, const pfrt_claims* claims,
                        const pfrt_sink* sink) {
  if (const pfrt_code code = watched(p).stop(Call::kClaim, sink)) return code;
  for (uint32_t n = 0; n < snapshot->node_count; ++n)
    if (elementwise::find(*snapshot, n))
      claims->accept(claims, n, 0, 0);
    else
      claims->refuse(claims, n, str("not elementwise"));
  return PFRT_CODE_OK;
}

void release_watched(pfrt_executable* e) { delete &watched(e); }

pfrt_code compile_watched_one(pfrt_provider* p, const pfrt_region* region, const pfrt_sink* sink,
                              pfrt_executable** out) {
  if (const pfrt_code code = watched(p).stop(Call::kCompile, sink)) return code;
  auto made = std::make_unique<WatchedExecutable>(
      WatchedExecutable{&watched(p), elementwise::Region(*region)});
  if (watched(p).stuck == Call::kPack) {
    made->source = *made->region.constants().begin();
    made->packed.sources = &made->source;
    made->packed.source_count = 1;
    made->packed.recipe = str("watched");
    made->packed.bytes = 4;
    made->packed.user = &watched(p);
    made->packed.pack = [](void* user, const void* const*, void*, const pfrt_sink* s) -> pfrt_code {
      return static_cast<Watched*>(user)->stop(Call::kPack, s);
    };
  }
  *out = reinterpret_cast<pfrt_executable*>(made.release());
  return PFRT_CODE_OK;
}

pfrt_code compile_watched(pfrt_provider* p, const pfrt_region* regions, size_t size, size_t count,
                          const pfrt_sink* sink, pfrt_executable** out, size_t* at) {
  watched(p).compiles.push_back(count);
  return compile_each<compile_watched_one, release_watched>(p, regions, size, count, sink, out, at);
}

pfrt_code run_watched(void* state, const pfrt_step_context* context) {
  const auto& step = *static_cast<const elementwise::Step*>(state);
  if (static_cast<Watched*>(step.owner)->broken)
    return context->fail(context, PFRT_CODE_PROVIDER, str("it broke"));
  step.compute(context->buffers);
  return PFRT_CODE_OK;
}

pfrt_code specialise_watched(pfrt_executable* e, const pfrt_shapes* shapes, const pfrt_sink* sink,
                             pfrt_program* out) {
  Watched* const owner = watched(e).owner;
  if (const pfrt_code code = owner->stop(Call::kSpecialise, sink)) return code;
  const pfrt_memory_kind memory = owner->on_device ? PFRT_MEMORY_DEVICE : PFRT_MEMORY_HOST;
  elementwise::fill(watched(e).region.specialise(*shapes, memory, run_watched, owner).release(),
                    out);
  return PFRT_CODE_OK;
}

pfrt_code allocate_watched(pfrt_provider* p, uint64_t, uint64_t bytes, uint32_t alignment,
                           const pfrt_sink* sink, void** out) {
  if (const pfrt_code code = watched(p).stop(Call::kAllocate, sink)) return code;
  *out = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  return *out ? PFRT_CODE_OK : PFRT_CODE_OUT_OF_MEMORY;
}

pfrt_code copy_watched(pfrt_provider* p, uint64_t, const pfrt_device_copy* copies, size_t size,
                       size_t count, const pfrt_sink* sink) {
  if (const pfrt_code code = watched(p).stop(Call::kCopy, sink)) return code;
  for (size_t i = 0; i < count; ++i) {
    const auto& copy = *static_cast<const pfrt_device_copy*>(pfrt_at(copies, size, i));
    std::memcpy(copy.dst, copy.src, copy.bytes);
  }
  return PFRT_CODE_OK;
}

const pfrt_provider_table& watched_table() {
  static const pfrt_provider_table table = [] {
    pfrt_provider_table t{};
    t.struct_size = sizeof t;
    t.abi = PFRT_ABI_VERSION;
    t.devices = str("watch, watch2");
    t.close = [](pfrt_provider*) {};
    t.claim = claim_watched;
    t.compile = compile_watched;
    t.release_executable = release_watched;
    t.specialise = specialise_watched;
    t.release_program = [](pfrt_executable*, pfrt_program* program) {
      delete static_cast<elementwise::Program*>(program->handle);
    };
    t.supports = [](pfrt_provider* p, const pfrt_op_query* query, const pfrt_sink* sink) {
      watched(p).asked += text(query->snapshot->nodes[query->node].op) == "Swish";
      if (const pfrt_code code = watched(p).stop(Call::kSupports, sink)) return code;
      return sink->fail(sink, PFRT_CODE_UNSUPPORTED_OPERATOR, query->node, str("never"));
    };
    t.constants = [](pfrt_executable* e, const pfrt_sink* sink, const pfrt_packed_constant** out,
                     size_t* size, size_t* count) -> pfrt_code {
      if (const pfrt_code code = watched(e).owner->stop(Call::kConstants, sink)) return code;
      *out = &watched(e).packed;
      *size = sizeof(pfrt_packed_constant);
      *count = watched(e).packed.pack ? 1 : 0;
      return PFRT_CODE_OK;
    };
    t.allocate = allocate_watched;
    t.release_memory = [](pfrt_provider*, void* memory) { std::free(memory); };
    t.copy = copy_watched;
    return t;
  }();
  return table;
}

class ProviderCalls : public testing::Test {
 protected:
  void add(pfrt_provider_features features = 0) {
    pfrt_client_provider client{};
    client.struct_size = sizeof client;
    client.abi = PFRT_ABI_VERSION;
    client.name = str("WatchExecutionProvider");
    client.features = features | PFRT_PROVIDER_CONSTANTS;
    client.table = &watched_table();
    client.user = &watched_;
    client.open = [](void* user, pfrt_string device, const pfrt_key_value*, size_t,
                     const pfrt_sink* sink, pfrt_provider** out) -> pfrt_code {
      auto& self = *static_cast<Watched*>(user);
      self.device = text(device);
      if (const pfrt_code code = self.stop(Call::kOpen, sink)) return code;
      *out = static_cast<pfrt_provider*>(user);
      return PFRT_CODE_OK;
    };
    ASSERT_TRUE(ok(api().env->register_provider(env_.get(), &client)));
  }
  Handle<pfrt_options> options(Settings more = {}) {
    Settings all{{"providers", "watch,cpu"}};
    all.insert(all.end(), more.begin(), more.end());
    return make_options(PFRT_OPTIONS_SESSION, all);
  }
  // Calls |fn|, in which the provider comes to |stuck|, with options that another thread then
  // cancels.
  template <typename Fn>
  void expect_cancelled(Call stuck, pfrt_options* options, Fn fn) {
    expect_stopped(
        stuck, [&] { api().options->cancel(options); }, fn);
  }
  template <typename Fn>
  void expect_cancelled(Call stuck, uint32_t& number, Fn fn) {
    expect_stopped(
        stuck, [&] { std::atomic_ref(number).store(1); }, fn);
  }
  template <typename Cancel, typename Fn>
  void expect_stopped(Call stuck, Cancel cancel, Fn fn) {
    watched_.stuck = stuck;
    watched_.reached = watched_.gave_up = false;
    std::thread other([&] {
      while (!watched_.reached) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      cancel();
    });
    const Failure failure = fn();
    watched_.reached = true;
    other.join();
    watched_.stuck = Call::kNone;
    EXPECT_TRUE(fails(failure, PFRT_CODE_CANCELLED, {"cancelled"}));
    EXPECT_FALSE(watched_.gave_up);
  }
  // Expects that |fn|, in which the provider comes to |stuck|, ends at its deadline.
  template <typename Fn>
  void expect_deadline(Call stuck, Fn fn) {
    watched_.stuck = stuck;
    watched_.gave_up = false;
    EXPECT_TRUE(fails(fn(), PFRT_CODE_DEADLINE, {"deadline"}));
    EXPECT_FALSE(watched_.gave_up);
    watched_.stuck = Call::kNone;
  }
  // Expects the provider's state in |session|.
  static void expect_state(pfrt_session* session, pfrt_provider_condition condition,
                           uint32_t failures) {
    pfrt_provider_state state{};
    state.struct_size = sizeof state;
    ASSERT_TRUE(ok(api().session->provider_state(session, 0, &state)));
    EXPECT_EQ(state.condition, condition);
    EXPECT_EQ(state.failures, failures);
    EXPECT_EQ(text(state.reason).find("it broke") != std::string::npos, failures > 0);
  }

  Watched watched_;
  Handle<pfrt_env> env_ = make_env();
};

GraphBuilder scaled() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.constant("w", floats({1}, {3}));
  g.node("Mul", {"x", "w"}, {"y"});
  g.output("y");
  return g;
}

// Passes ask about the one operator that this may become.
GraphBuilder swish() {
  GraphBuilder g;
  g.opset(24);
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Sigmoid", {"x"}, {"s"});
  g.node("Mul", {"x", "s"}, {"y"});
  g.output("y");
  return g;
}

TEST_F(ProviderCalls, all_regions_come_in_one_call_and_those_of_bodies_too) {
  add();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.input("c", PFRT_DTYPE_BOOL, {});
  g.node("Neg", {"x"}, {"a"});
  g.node("Softmax", {"a"}, {"b"});  // refused by the provider
  g.node("Abs", {"b"}, {"d"});
  GraphBuilder yes(g, "yes"), no(g, "no");
  yes.node("Neg", {"d"}, {"t"});
  yes.output("t");
  no.node("Add", {"d", "d"}, {"e"});
  no.output("e");
  g.node("If", {"c"}, {"y"},
         {Attr::of_graph("then_branch", yes.get()), Attr::of_graph("else_branch", no.get())});
  g.output("y");
  const auto o = options({{"optimization_level", "none"}});
  const auto session = make_session(env_.get(), g, o.get());
  ASSERT_TRUE(session);
  EXPECT_EQ(watched_.compiles, (std::vector<size_t>{4}));
  Array on = array<uint8_t>({}, {1});
  on.dtype = PFRT_DTYPE_BOOL;
  const auto out = run(session.get(), {floats({1}, {5}), on});
  EXPECT_EQ(out[0].as<float>(), std::vector<float>{-1});
}

TEST_F(ProviderCalls, device_is_any_word_that_a_provider_opens) {
  add();
  for (const char* word : {"watch", "watch2"}) {
    const auto o = make_options(PFRT_OPTIONS_SESSION, {{"device", word}});
    const auto session = make_session(env_.get(), scaled(), o.get());
    ASSERT_TRUE(session) << word;
    EXPECT_EQ(watched_.device, word);
    const std::vector<std::string> used = providers_of(session.get());
    ASSERT_EQ(used.size(), 2u);
    EXPECT_EQ(used[1], "CPUExecutionProvider");
    EXPECT_EQ(run(session.get(), {floats({2}, {1, 2})})[0].as<float>(), (std::vector<float>{3, 6}));
  }
  const auto wrong = make_options(PFRT_OPTIONS_SESSION, {{"device", "watch3"}});
  EXPECT_TRUE(fails(try_session(env_.get(), scaled(), wrong.get()), PFRT_CODE_NOT_FOUND,
                    {"watch3", "watch2 (WatchExecutionProvider)", "did you mean"}));
}

TEST_F(ProviderCalls, a_graph_made_for_one_device_is_not_given_to_another) {
  add(PFRT_PROVIDER_SUPPORTS);
  const auto model = make_model(env_.get(), swish());
  std::vector<Handle<pfrt_session>> kept;
  const auto asked = [&](const char* word) {
    watched_.asked = 0;
    const auto o = make_options(PFRT_OPTIONS_SESSION, {{"device", word}});
    kept.push_back(make_session(env_.get(), model.get(), o.get()));
    return watched_.asked.load();
  };
  EXPECT_GT(asked("watch"), 0);
  EXPECT_EQ(asked("watch"), 0) << "the same graph";
  EXPECT_GT(asked("watch2"), 0);
}

TEST_F(ProviderCalls, device_of_its_own_results_is_not_asked_for_constants) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.constant("w", floats({1}, {3}));
  g.node("Neg", {"w"}, {"v"});
  g.node("Mul", {"x", "v"}, {"y"});
  g.output("y");
  add(PFRT_PROVIDER_NO_FOLD);
  const auto o = options();
  const auto session = make_session(env_.get(), g, o.get());
  ASSERT_TRUE(session);
  EXPECT_EQ(watched_.compiles, (std::vector<size_t>{1})) << "the session's own regions alone";
  EXPECT_EQ(run(session.get(), {floats({2}, {1, 2})})[0].as<float>(), (std::vector<float>{-3, -6}));
  const auto alone = make_options(PFRT_OPTIONS_SESSION, {{"providers", "watch"}});
  const auto unfolded = make_session(env_.get(), g, alone.get());
  ASSERT_TRUE(unfolded);
  EXPECT_EQ(run(unfolded.get(), {floats({1}, {1})})[0].as<float>(), std::vector<float>{-3});
}

TEST_F(ProviderCalls, each_ends_when_the_session_is_cancelled) {
  add();
  for (const Call stuck :
       {Call::kOpen, Call::kClaim, Call::kCompile, Call::kConstants, Call::kPack}) {
    SCOPED_TRACE(static_cast<int>(stuck));
    const auto o = options();
    expect_cancelled(stuck, o.get(), [&] { return try_session(env_.get(), scaled(), o.get()); });
    const auto limited = options({{"create_timeout_ms", "20"}});
    expect_deadline(stuck, [&] { return try_session(env_.get(), scaled(), limited.get()); });
  }
  const auto o = options();
  EXPECT_TRUE(make_session(env_.get(), scaled(), o.get()));
}

TEST_F(ProviderCalls, a_question_that_is_stopped_is_no_answer) {
  add(PFRT_PROVIDER_SUPPORTS);
  const auto model = make_model(env_.get(), swish());
  const auto limited = options({{"create_timeout_ms", "20"}});
  expect_deadline(Call::kSupports,
                  [&] { return try_session(env_.get(), model.get(), limited.get()); });
  const auto o = options();
  watched_.reset = o.get();
  expect_cancelled(Call::kSupports, o.get(),
                   [&] { return try_session(env_.get(), model.get(), o.get()); });
  watched_.asked = 0;
  EXPECT_TRUE(make_session(env_.get(), model.get(), o.get()));
  EXPECT_GT(watched_.asked, 0) << "a graph that was cut short was kept";
}

TEST_F(ProviderCalls, device_memory_and_copies_are_stopped_with_the_run) {
  watched_.on_device = true;
  add(PFRT_PROVIDER_MEMORY);
  for (const Call stuck : {Call::kAllocate, Call::kCopy})
    for (const bool constant_is_there : {false, true}) {
      SCOPED_TRACE(static_cast<int>(stuck) + (constant_is_there ? 100 : 0));
      const auto o = options();
      const auto session = make_session(env_.get(), scaled(), o.get());
      ASSERT_TRUE(session);
      if (constant_is_there) {
        EXPECT_EQ(run(session.get(), {floats({1}, {1})})[0].as<float>(), std::vector<float>{3});
      }
      const Array x = floats({2}, {1, 2});
      const RunDesc limited({.timeout_ms = 20});
      expect_deadline(stuck, [&] { return try_run(session.get(), {x}, nullptr, limited.get()); });
      uint32_t cancel = 0;
      const RunDesc stopped({.cancel = &cancel});
      expect_cancelled(stuck, cancel,
                       [&] { return try_run(session.get(), {x}, nullptr, stopped.get()); });
      EXPECT_EQ(run(session.get(), {x})[0].as<float>(), (std::vector<float>{3, 6}));
      expect_state(session.get(), PFRT_PROVIDER_ACTIVE, 0);
    }
}

TEST_F(ProviderCalls, a_provider_is_not_taken_back_when_that_is_stopped) {
  add();
  const auto o = options();
  const auto session = make_session(env_.get(), scaled(), o.get());
  ASSERT_TRUE(session);
  const auto readmit = [&](const pfrt_run_desc* with) {
    return take(api().session->readmit(session.get(), str("watch"), with));
  };
  watched_.broken = true;
  EXPECT_EQ(run(session.get(), {floats({1}, {1})})[0].as<float>(), std::vector<float>{3});
  expect_state(session.get(), PFRT_PROVIDER_FAILED, 1);
  watched_.broken = false;
  for (const Call stuck : {Call::kOpen, Call::kClaim, Call::kCompile, Call::kConstants}) {
    SCOPED_TRACE(static_cast<int>(stuck));
    const RunDesc limited({.timeout_ms = 20});
    expect_deadline(stuck, [&] { return readmit(limited.get()); });
    expect_state(session.get(), PFRT_PROVIDER_FAILED, 1);
    uint32_t cancel = 0;
    const RunDesc stopped({.cancel = &cancel});
    expect_cancelled(stuck, cancel, [&] { return readmit(stopped.get()); });
    expect_state(session.get(), PFRT_PROVIDER_FAILED, 1);
    EXPECT_EQ(run(session.get(), {floats({1}, {2})})[0].as<float>(), std::vector<float>{6});
  }
  const RunDesc wrong({.timeout_ms = -1});
  EXPECT_TRUE(fails(readmit(wrong.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"taking a provider into use again", "timeout_ms is -1"}));
  EXPECT_TRUE(ok(readmit(nullptr)));
  expect_state(session.get(), PFRT_PROVIDER_RECOVERED, 1);
  EXPECT_EQ(run(session.get(), {floats({1}, {1})})[0].as<float>(), std::vector<float>{3});
}

TEST_F(ProviderCalls, deadline_of_a_run_holds_while_its_shape_is_prepared) {
  add();
  const auto o = options();
  const auto session = make_session(env_.get(), scaled(), o.get());
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {floats({1}, {1})})[0].as<float>(), std::vector<float>{3});
  watched_.stuck = Call::kSpecialise;
  const RunDesc limited({.timeout_ms = 20});
  EXPECT_TRUE(fails(try_run(session.get(), {floats({2}, {1, 2})}, nullptr, limited.get()),
                    PFRT_CODE_DEADLINE, {"deadline"}));
  EXPECT_FALSE(watched_.gave_up);
  // Runs of prepared shapes go on meanwhile.
  watched_.reached = false;
  uint32_t cancel = 0;
  const RunDesc stopped({.cancel = &cancel});
  std::thread other([&] {
    EXPECT_TRUE(fails(try_run(session.get(), {floats({3}, {1, 2, 3})}, nullptr, stopped.get()),
                      PFRT_CODE_CANCELLED, {"cancelled"}));
  });
  while (!watched_.reached) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(run(session.get(), {floats({1}, {2})})[0].as<float>(), std::vector<float>{6});
  std::atomic_ref(cancel).store(1);
  other.join();
  EXPECT_FALSE(watched_.gave_up);
  watched_.stuck = Call::kNone;
  EXPECT_EQ(run(session.get(), {floats({2}, {1, 2})})[0].as<float>(), (std::vector<float>{3, 6}));
}

}  // namespace
}  // namespace pfrt_test

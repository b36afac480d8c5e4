// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "pyflame_rt/custom.h"
#include "test/capi/client.h"
#include "test/plugins/compile_each.h"

namespace pfrt_test {
namespace {

// The state of a client's provider, which negates and counts the calls that it gets.
struct Negator {
  std::atomic<int> opened{0}, closed{0}, ran{0}, released{0};
  uint32_t width = 0;                // width of its steps
  std::atomic<uint32_t> workers{0};  // workers of its last step
};

struct Executable {
  Negator* owner;
  uint32_t input, output;
};

struct Program {
  Negator* owner;
  uint64_t count;
  pfrt_buffer buffers[2]{};
  pfrt_step step{};
  uint32_t read = 0, write = 1, node;
};

Negator* negator(pfrt_provider* p) { return reinterpret_cast<Negator*>(p); }

pfrt_code open_negator(void* user, pfrt_string device, const pfrt_key_value*, size_t,
                       const pfrt_sink* sink, pfrt_provider** out) {
  if (text(device) != "negator")
    return sink->fail(sink, PFRT_CODE_NOT_FOUND, PFRT_NO_INDEX, device);
  ++static_cast<Negator*>(user)->opened;
  *out = static_cast<pfrt_provider*>(user);
  return PFRT_CODE_OK;
}

pfrt_code claim(pfrt_provider*, const pfrt_snapshot* s, const pfrt_claims* claims,
                const pfrt_sink*) {
  for (uint32_t n = 0; n < s->node_count; ++n) {
    if (text(s->nodes[n].op) == "Neg") {
      claims->accept(claims, n, 1, 0);
    } else {
      claims->refuse(claims, n, str("it negates, nothing else"));
    }
  }
  return PFRT_CODE_OK;
}

// Numbers of constants in the snapshot: all, and those without their bytes.
struct Constants {
  int all = 0, without = 0;
} constants;

pfrt_code claim_and_look(pfrt_provider* p, const pfrt_snapshot* s, const pfrt_claims* claims,
                         const pfrt_sink* sink) {
  constants = {};
  for (uint32_t v = 0; v < s->value_count; ++v) {
    if (!(s->values[v].flags & PFRT_SNAPSHOT_CONSTANT)) continue;
    ++constants.all;
    constants.without += s->values[v].data == nullptr;
  }
  return claim(p, s, claims, sink);
}

pfrt_code compile_one(pfrt_provider* p, const pfrt_region* region, const pfrt_sink* sink,
                      pfrt_executable** out) {
  if (region->node_count != 1)
    return sink->fail(sink, PFRT_CODE_UNSUPPORTED, region->nodes[1], str("one node at a time"));
  const pfrt_snapshot_node& node = region->snapshot->nodes[region->nodes[0]];
  *out = reinterpret_cast<pfrt_executable*>(
      new Executable{negator(p), node.inputs[0], node.outputs[0]});
  return PFRT_CODE_OK;
}
void release_executable(pfrt_executable* e) { delete reinterpret_cast<Executable*>(e); }

pfrt_code run_step(void* state, const pfrt_step_context* context) {
  const auto* program = static_cast<const Program*>(state);
  ++program->owner->ran;
  program->owner->workers = context->workers;
  const auto* x = static_cast<const float*>(context->buffers[0]);
  auto* y = static_cast<float*>(context->buffers[1]);
  for (uint64_t i = 0; i < program->count; ++i) y[i] = -x[i];
  return PFRT_CODE_OK;
}

pfrt_code specialise(pfrt_executable* e, const pfrt_shapes* shapes, const pfrt_sink*,
                     pfrt_program* out) {
  const auto* executable = reinterpret_cast<Executable*>(e);
  auto* program = new Program{};
  program->owner = executable->owner;
  program->count = 1;
  for (int32_t i = 0; i < shapes->ranks[executable->input]; ++i)
    program->count *= static_cast<uint64_t>(shapes->dims[executable->input][i]);
  program->buffers[0].kind = PFRT_BUFFER_IN;
  program->buffers[1].kind = PFRT_BUFFER_OUT;
  for (pfrt_buffer& buffer : program->buffers) buffer.bytes = program->count * sizeof(float);
  program->step.run = run_step;
  program->step.state = program;
  program->step.reads = &program->read;
  program->step.writes = &program->write;
  program->step.read_count = program->step.write_count = 1;
  program->step.nodes = &program->node;
  program->step.node_count = 1;
  program->step.kernel = str("negate");
  program->step.width = program->owner->width;
  out->buffer_size = sizeof(pfrt_buffer);
  out->step_size = sizeof(pfrt_step);
  out->buffer_count = 2;
  out->step_count = 1;
  out->buffers = program->buffers;
  out->steps = &program->step;
  out->handle = program;
  return PFRT_CODE_OK;
}

pfrt_provider_table negator_table() {
  pfrt_provider_table t{};
  t.struct_size = sizeof t;
  t.abi = PFRT_ABI_VERSION;
  t.devices = str("negator");
  t.close = [](pfrt_provider* p) { ++negator(p)->closed; };
  t.claim = claim;
  t.compile = compile_each<compile_one, release_executable>;
  t.release_executable = release_executable;
  t.specialise = specialise;
  t.release_program = [](pfrt_executable*, pfrt_program* p) {
    delete static_cast<Program*>(p->handle);
  };
  return t;
}
const pfrt_provider_table kTable = negator_table();

Failure add(pfrt_env* env, Negator& negator, std::string_view name,
            const pfrt_provider_table* table = &kTable, pfrt_provider_features features = 0) {
  pfrt_client_provider c{};
  c.struct_size = sizeof c;
  c.abi = PFRT_ABI_VERSION;
  c.name = str(name);
  c.features = features;
  c.table = table;
  c.open = open_negator;
  c.release = [](void* user) { ++static_cast<Negator*>(user)->released; };
  c.user = &negator;
  return take(api().env->register_provider(env, &c));
}

GraphBuilder neg_graph() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Relu", {"x"}, {"r"});
  g.node("Neg", {"r"}, {"y"});
  g.output("y");
  return g;
}

TEST(ClientProvider, has_no_more_workers_than_a_step_is_wide) {
  for (const auto& [width, workers] : {std::pair{0u, 4u}, {1u, 1u}, {3u, 3u}, {9u, 4u}}) {
    SCOPED_TRACE(width);
    Negator counts;
    counts.width = width;
    const auto env = make_env();
    ASSERT_TRUE(ok(add(env.get(), counts, "NegatorExecutionProvider")));
    const auto options = make_options(
        PFRT_OPTIONS_SESSION,
        {{"providers", "NegatorExecutionProvider,CPUExecutionProvider"}, {"num_threads", "4"}});
    const auto session = make_session(env.get(), neg_graph(), options.get());
    run(session.get(), {floats({3}, {1, 2, 3})});
    EXPECT_EQ(counts.workers, workers);
  }
}

TEST(ClientProvider, sees_the_bytes_of_constants_unless_it_can_do_without) {
  const std::vector<float> weights = random_floats(256 * 256, 5);
  std::vector<char> odd(weights.size() * sizeof(float) + 1);
  std::memcpy(odd.data() + 1, weights.data(), odd.size() - 1);
  const Array even = floats({256, 256}, weights);
  pfrt_tensor view = even.view();
  view.data = odd.data() + 1;
  std::vector<Array> results;
  constexpr pfrt_provider_features kDeferred = PFRT_PROVIDER_DEFERRED;
  for (const pfrt_provider_features features : {pfrt_provider_features{0}, kDeferred}) {
    SCOPED_TRACE(features);
    Negator counts;
    const auto env = make_env();
    pfrt_provider_table table = kTable;
    table.claim = claim_and_look;
    ASSERT_TRUE(ok(add(env.get(), counts, "NegatorExecutionProvider", &table, features)));
    pfrt_value* raw = nullptr;
    ASSERT_TRUE(ok(api().value->wrap_unaligned(&view, nullptr, nullptr, &raw)));
    const Handle<pfrt_value> w(raw);
    GraphBuilder g;
    g.input("x", PFRT_DTYPE_FLOAT32, {2, 256});
    ASSERT_TRUE(ok(api().graph->add_initializer_value(g.get(), str("w"), w.get())));
    g.node("MatMul", {"x", "w"}, {"p"});
    g.node("Neg", {"p"}, {"y"});
    g.output("y");
    const auto model = make_model(env.get(), g);
    const auto options = make_options(
        PFRT_OPTIONS_SESSION, {{"providers", "NegatorExecutionProvider,CPUExecutionProvider"}});
    const auto session = make_session(env.get(), model.get(), options.get());
    EXPECT_EQ(constants.all, 1);
    EXPECT_EQ(constants.without, features ? 1 : 0);
    results.push_back(run(session.get(), {floats({2, 256}, random_floats(512, 6))})[0]);
    EXPECT_EQ(counts.ran, 1);
  }
  EXPECT_EQ(results[0].bytes, results[1].bytes);
}

TEST(ClientProvider, runs_what_it_claims_and_is_released_at_the_end) {
  Negator negator;
  {
    auto env = make_env();
    ASSERT_TRUE(add(env.get(), negator, "NegatorExecutionProvider").ok());
    const auto options = make_options(
        PFRT_OPTIONS_SESSION, {{"providers", "NegatorExecutionProvider,CPUExecutionProvider"}});
    auto session = make_session(env.get(), neg_graph(), options.get());
    ASSERT_TRUE(session);
    EXPECT_EQ(providers_of(session.get())[0], "NegatorExecutionProvider");
    EXPECT_EQ(run(session.get(), {floats({3}, {-1, 2, 3})})[0].as<float>(),
              (std::vector<float>{-0.0f, -2, -3}));
    EXPECT_EQ(negator.ran, 1);
    // A provider that is not named takes no part.
    const auto other = make_session(env.get(), neg_graph());
    run(other.get(), {floats({1}, {1})});
    EXPECT_EQ(negator.opened, 1);

    env.reset();  // the session lives on
    run(session.get(), {floats({1}, {1})});
    EXPECT_EQ(negator.ran, 2);
    EXPECT_EQ(negator.released, 0);
  }
  EXPECT_EQ(negator.closed, 1);
  EXPECT_EQ(negator.released, 1);
}

// ------------------------------------------------------------------ parts of buffers

// Two steps negate the halves of the input into the halves of the output.
struct Halves {
  uint64_t count = 0;
  pfrt_buffer buffers[6]{};
  pfrt_step steps[2]{};
  struct Half {
    Halves* all;
    uint32_t read, write;
  } halves[2]{};
};
void (*spoil_halves)(Halves&) = nullptr;

pfrt_code specialise_halves(pfrt_executable* e, const pfrt_shapes* shapes, const pfrt_sink*,
                            pfrt_program* out) {
  const auto* executable = reinterpret_cast<Executable*>(e);
  auto* program = new Halves{};
  program->count = static_cast<uint64_t>(shapes->dims[executable->input][0]);
  const uint64_t bytes = program->count * sizeof(float), half = bytes / 2;
  program->buffers[0].kind = PFRT_BUFFER_IN;
  program->buffers[1].kind = PFRT_BUFFER_OUT;
  program->buffers[0].bytes = program->buffers[1].bytes = bytes;
  for (uint32_t i = 0; i < 2; ++i) {
    for (uint32_t side = 0; side < 2; ++side) {
      pfrt_buffer& part = program->buffers[2 + 2 * side + i];
      part.kind = PFRT_BUFFER_PART;
      part.index = side;
      part.bytes = half;
      part.offset = i * half;
    }
    program->halves[i] = {program, 2 + i, 4 + i};
    pfrt_step& step = program->steps[i];
    step.state = &program->halves[i];
    step.run = [](void* state, const pfrt_step_context* context) -> pfrt_code {
      const auto& own = *static_cast<const Halves::Half*>(state);
      const auto* x = static_cast<const float*>(context->buffers[own.read]);
      auto* y = static_cast<float*>(context->buffers[own.write]);
      for (uint64_t n = 0; n < own.all->count / 2; ++n) y[n] = -x[n];
      return PFRT_CODE_OK;
    };
    step.reads = &program->halves[i].read;
    step.writes = &program->halves[i].write;
    step.read_count = step.write_count = 1;
    step.kernel = str("negate_half");
  }
  if (spoil_halves) spoil_halves(*program);
  out->buffer_size = sizeof(pfrt_buffer);
  out->step_size = sizeof(pfrt_step);
  out->buffer_count = 6;
  out->step_count = 2;
  out->buffers = program->buffers;
  out->steps = program->steps;
  out->handle = program;
  return PFRT_CODE_OK;
}

pfrt_provider_table halves_table() {
  pfrt_provider_table t = negator_table();
  t.specialise = specialise_halves;
  t.release_program = [](pfrt_executable*, pfrt_program* p) {
    delete static_cast<Halves*>(p->handle);
  };
  return t;
}

TEST(ClientProvider, buffers_may_be_parts_of_others) {
  const pfrt_provider_table table = halves_table();
  spoil_halves = nullptr;
  Negator negator;
  const auto env = make_env();
  ASSERT_TRUE(add(env.get(), negator, "HalvesExecutionProvider", &table).ok());
  for (const char* mode : {"sequential", "parallel"}) {
    const auto options = make_options(
        PFRT_OPTIONS_SESSION,
        {{"providers", "HalvesExecutionProvider,CPUExecutionProvider"}, {"execution_mode", mode}});
    const auto session = make_session(env.get(), neg_graph(), options.get());
    EXPECT_EQ(run(session.get(), {floats({4}, {1, 2, 3, 4})})[0].as<float>(),
              (std::vector<float>{-1, -2, -3, -4}));
  }
}

TEST(ClientProvider, parts_that_do_not_fit_are_refused) {
  struct {
    void (*spoil)(Halves&);
    const char* text;
  } const kCases[] = {
      {[](Halves& h) { h.buffers[2].index = 6; },
       "buffer 2 is part of buffer 6, which is not there"},
      {[](Halves& h) { h.buffers[2].index = 3; }, "which is itself a part"},
      {[](Halves& h) { h.buffers[3].offset = 12; }, "is 8 bytes from byte 12 on of buffer 0"},
      {[](Halves& h) { h.buffers[5].bytes = UINT64_MAX - 4; }, "of buffer 1, which has 16"},
  };
  const pfrt_provider_table table = halves_table();
  for (const auto& c : kCases) {
    spoil_halves = c.spoil;
    Negator negator;
    const auto env = make_env();
    ASSERT_TRUE(add(env.get(), negator, "HalvesExecutionProvider", &table).ok());
    const auto options =
        make_options(PFRT_OPTIONS_SESSION, {{"providers", "HalvesExecutionProvider"}});
    GraphBuilder g;
    g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
    g.node("Neg", {"x"}, {"y"});
    g.output("y");
    const auto session = make_session(env.get(), g, options.get());
    ASSERT_TRUE(session);
    EXPECT_TRUE(fails(try_run(session.get(), {floats({4}, {1, 2, 3, 4})}), PFRT_CODE_PROVIDER,
                      {"HalvesExecutionProvider returned a program", c.text}));
  }
  spoil_halves = nullptr;
}

TEST(ClientProvider, is_listed) {
  Negator negator;
  const auto env = make_env();
  const size_t before = api().env->provider_count(env.get());
  ASSERT_TRUE(add(env.get(), negator, "NegatorExecutionProvider").ok());
  ASSERT_EQ(api().env->provider_count(env.get()), before + 1);
  pfrt_provider_info info{};
  info.struct_size = sizeof info;
  ASSERT_TRUE(ok(api().env->provider_at(env.get(), before, &info)));
  EXPECT_EQ(text(info.name), "NegatorExecutionProvider");
  EXPECT_EQ(text(info.devices), "negator");
  EXPECT_EQ(info.available, 1u);
  EXPECT_EQ(info.path.size, 0u);
  size_t kernels = 7;
  EXPECT_TRUE(ok(api().env->kernel_count(env.get(), str("NegatorExecutionProvider"), &kernels)));
  EXPECT_EQ(kernels, 0u);
}

TEST(ClientProvider, may_not_take_a_name_that_is_taken) {
  Negator first, second, third;
  const auto env = make_env();
  ASSERT_TRUE(add(env.get(), first, "NegatorExecutionProvider").ok());
  EXPECT_TRUE(fails(add(env.get(), second, "NegatorExecutionProvider"), PFRT_CODE_INVALID_ARGUMENT,
                    {"'NegatorExecutionProvider' of the client", "registered before"}));
  EXPECT_EQ(second.released, 1);
  EXPECT_TRUE(fails(add(env.get(), third, "CPUExecutionProvider"), PFRT_CODE_INVALID_ARGUMENT,
                    {"'CPUExecutionProvider'", "plug-in", "libpyflamert_provider_cpu.so"}));
  EXPECT_EQ(third.released, 1);
  EXPECT_EQ(first.released, 0);
}

TEST(ClientProvider, needs_its_functions) {
  Negator negator;
  const auto env = make_env();
  pfrt_provider_table table = kTable;
  table.specialise = nullptr;
  EXPECT_TRUE(fails(add(env.get(), negator, "P", &table), PFRT_CODE_INVALID_ARGUMENT,
                    {"'P'", "specialise"}));
  EXPECT_TRUE(fails(add(env.get(), negator, "P", &kTable, PFRT_PROVIDER_KERNELS),
                    PFRT_CODE_INVALID_ARGUMENT, {"'P'", "kernel_count"}));
  EXPECT_TRUE(fails(add(env.get(), negator, "P", nullptr), PFRT_CODE_INVALID_ARGUMENT, {"table"}));
  EXPECT_TRUE(fails(add(env.get(), negator, ""), PFRT_CODE_INVALID_ARGUMENT, {"name"}));
  EXPECT_EQ(negator.released, 4);
}

// ------------------------------------------------------------------ what functions throw

// A function that gives something back cannot report an error, so its exception only reaches the
// log.
TEST(ClientProvider, exceptions_of_functions_that_give_back_end_there) {
  struct Lines {
    std::mutex mutex;
    std::string all;
  } lines;
  Negator negator;
  pfrt_provider_table table = kTable;
  table.close = [](pfrt_provider* p) {
    kTable.close(p);
    throw 7;
  };
  table.release_executable = [](pfrt_executable* e) {
    kTable.release_executable(e);
    throw 7;
  };
  table.release_program = [](pfrt_executable* e, pfrt_program* p) {
    kTable.release_program(e, p);
    throw std::string("thrown");
  };
  {
    const auto env = make_env({{"log_level", "warning"}});
    ASSERT_TRUE(ok(api().env->set_logger(
        env.get(),
        [](void* user, pfrt_log_level, pfrt_string line) {
          Lines& to = *static_cast<Lines*>(user);
          const std::lock_guard lock(to.mutex);
          to.all += text(line) + "\n";
          throw 7;
        },
        &lines)));
    ASSERT_TRUE(ok(add(env.get(), negator, "NegatorExecutionProvider", &table)));
    const auto options = make_options(
        PFRT_OPTIONS_SESSION, {{"providers", "NegatorExecutionProvider,CPUExecutionProvider"}});
    const auto session = make_session(env.get(), neg_graph(), options.get());
    ASSERT_TRUE(session);
    EXPECT_EQ(run(session.get(), {floats({2}, {1, 2})})[0].as<float>(),
              (std::vector<float>{-1, -2}));
  }
  EXPECT_EQ(negator.closed, 1);
  EXPECT_EQ(negator.released, 1);
  for (const char* function : {"close", "release_executable", "release_program"})
    EXPECT_NE(lines.all.find(std::string("an exception escaped its function ") + function),
              std::string::npos)
        << lines.all;
}

TEST(ClientProvider, exceptions_of_constants_and_pack_are_its_failures) {
  static bool in_pack;
  pfrt_provider_table table = kTable;
  table.constants = [](pfrt_executable*, const pfrt_sink*, const pfrt_packed_constant** out,
                       size_t* size, size_t* count) -> pfrt_code {
    if (!in_pack) throw 7;
    static pfrt_packed_constant constant{};
    constant.bytes = 4;
    constant.recipe = str("own");
    constant.pack = [](void*, const void* const*, void*, const pfrt_sink*) -> pfrt_code {
      throw 7;
    };
    *out = &constant;
    *size = sizeof constant;
    *count = 1;
    return PFRT_CODE_OK;
  };
  for (const bool pack : {false, true}) {
    SCOPED_TRACE(pack);
    in_pack = pack;
    Negator negator;
    const auto env = make_env({{"log_level", "off"}});
    ASSERT_TRUE(
        ok(add(env.get(), negator, "NegatorExecutionProvider", &table, PFRT_PROVIDER_CONSTANTS)));
    const auto alone = make_options(PFRT_OPTIONS_SESSION,
                                    {{"providers", "NegatorExecutionProvider,CPUExecutionProvider"},
                                     {"session.fallback", "off"}});
    EXPECT_TRUE(fails(try_session(env.get(), neg_graph(), alone.get()), PFRT_CODE_PROVIDER,
                      {"an exception escaped the provider"}));
    const auto both = make_options(
        PFRT_OPTIONS_SESSION, {{"providers", "NegatorExecutionProvider,CPUExecutionProvider"}});
    const auto session = make_session(env.get(), neg_graph(), both.get());
    ASSERT_TRUE(session);
    EXPECT_EQ(run(session.get(), {floats({1}, {1})})[0].as<float>(), std::vector<float>{-1});
    EXPECT_EQ(negator.ran, 0);
  }
}

// With this many groups, a sort that compares NaNs would go wrong.
TEST(ClientProvider, times_that_are_no_numbers_say_nothing) {
  pfrt_provider_table table = kTable;
  table.claim = [](pfrt_provider*, const pfrt_snapshot* s, const pfrt_claims* claims,
                   const pfrt_sink*) -> pfrt_code {
    const double times[] = {std::nan(""), -1, 5, HUGE_VAL, 3, -HUGE_VAL};
    for (uint32_t n = 0; n < s->node_count; ++n) {
      claims->accept(claims, n, times[n % 6], 0);
      claims->group(claims, &n, 1, times[(n + 1) % 6]);
    }
    return PFRT_CODE_OK;
  };
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  std::string at = "x";
  for (int i = 0; i < 60; ++i) {
    const std::string next = "n" + std::to_string(i);
    g.node("Neg", {at}, {next});
    g.output(next);
    at = next;
  }
  Negator negator;
  const auto env = make_env();
  ASSERT_TRUE(ok(add(env.get(), negator, "NegatorExecutionProvider", &table)));
  const auto options = make_options(PFRT_OPTIONS_SESSION,
                                    {{"providers", "NegatorExecutionProvider,CPUExecutionProvider"},
                                     {"optimization_level", "none"}});
  const auto session = make_session(env.get(), g, options.get());
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {floats({1}, {1})}).back().as<float>(), std::vector<float>{1});
}

// What a provider saw of the values that it was asked about, and of the wishes for its region.
struct Seen {
  std::map<std::string, pfrt_snapshot_value_flags> flags;
  pfrt_compile_hints hints = 0;
} seen;

pfrt_code claim_and_see(pfrt_provider* p, const pfrt_snapshot* s, const pfrt_claims* claims,
                        const pfrt_sink* sink) {
  for (uint32_t v = 0; v < s->value_count; ++v) {
    const auto& value =
        *static_cast<const pfrt_snapshot_value*>(pfrt_at(s->values, s->value_size, v));
    seen.flags[text(value.name)] = value.flags;
  }
  return claim(p, s, claims, sink);
}

pfrt_code compile_and_see(pfrt_provider* p, const pfrt_region* region, const pfrt_sink* sink,
                          pfrt_executable** out) {
  seen.hints = region->hints;
  return compile_one(p, region, sink, out);
}

TEST(ClientProvider, sees_what_values_are_and_what_is_wished) {
  pfrt_provider_table table = kTable;
  table.claim = claim_and_see;
  table.compile = compile_each<compile_and_see, release_executable>;
  GraphBuilder g = neg_graph();
  g.constant("c", floats({1}, {1}));
  g.node("Add", {"r", "c"}, {"sum"});
  g.node("SequenceConstruct", {"sum"}, {"list"});
  g.node("SequenceLength", {"list"}, {"length"});
  g.output("length");
  for (const char* level : {"none", "basic"}) {
    SCOPED_TRACE(level);
    seen = {};
    Negator negator;
    const auto env = make_env();
    ASSERT_TRUE(ok(add(env.get(), negator, "NegatorExecutionProvider", &table)));
    const auto options = make_options(
        PFRT_OPTIONS_SESSION, {{"providers", "NegatorExecutionProvider,CPUExecutionProvider"},
                               {"optimization_level", level}});
    const auto session = make_session(env.get(), g, options.get());
    ASSERT_TRUE(session);
    run(session.get(), {floats({1}, {1})});
    EXPECT_EQ(seen.flags["x"], pfrt_snapshot_value_flags{PFRT_SNAPSHOT_GRAPH_INPUT});
    EXPECT_EQ(seen.flags["y"], pfrt_snapshot_value_flags{PFRT_SNAPSHOT_GRAPH_OUTPUT});
    EXPECT_EQ(seen.flags["r"], 0u);
    EXPECT_EQ(seen.flags["c"], pfrt_snapshot_value_flags{PFRT_SNAPSHOT_CONSTANT});
    EXPECT_EQ(seen.flags["list"], pfrt_snapshot_value_flags{PFRT_SNAPSHOT_NOT_TENSOR});
    EXPECT_EQ((seen.hints & PFRT_COMPILE_APART) != 0, level == std::string("none"));
  }
}

// A provider's lines of the log, of every level and of those that there are not.
pfrt_code claim_and_log(pfrt_provider* p, const pfrt_snapshot* s, const pfrt_claims* claims,
                        const pfrt_sink* sink) {
  for (const pfrt_log_level level :
       {uint32_t{PFRT_LOG_UNSET}, uint32_t{PFRT_LOG_DEBUG}, uint32_t{PFRT_LOG_INFO},
        uint32_t{PFRT_LOG_WARNING}, uint32_t{PFRT_LOG_ERROR}, uint32_t{PFRT_LOG_OFF}, 99u})
    sink->log(sink, level, str("from the negator"));
  return claim(p, s, claims, sink);
}

TEST(ClientProvider, logs_at_the_levels_that_are_wanted) {
  pfrt_provider_table table = kTable;
  table.claim = claim_and_log;
  const std::pair<const char*, std::set<pfrt_log_level>> cases[] = {
      {"debug", {PFRT_LOG_DEBUG, PFRT_LOG_INFO, PFRT_LOG_WARNING, PFRT_LOG_ERROR}},
      {"info", {PFRT_LOG_INFO, PFRT_LOG_WARNING, PFRT_LOG_ERROR}},
      {"warning", {PFRT_LOG_WARNING, PFRT_LOG_ERROR}},
      {"error", {PFRT_LOG_ERROR}},
      {"off", {}}};
  for (const auto& [word, wanted] : cases) {
    SCOPED_TRACE(word);
    Negator negator;
    std::set<pfrt_log_level> heard;
    const auto env = make_env({{"log_level", word}});
    ASSERT_TRUE(ok(api().env->set_logger(
        env.get(),
        [](void* user, pfrt_log_level level, pfrt_string line) {
          if (text(line).find("from the negator") != std::string::npos)
            static_cast<std::set<pfrt_log_level>*>(user)->insert(level);
        },
        &heard)));
    ASSERT_TRUE(ok(add(env.get(), negator, "NegatorExecutionProvider", &table)));
    const auto options = make_options(
        PFRT_OPTIONS_SESSION, {{"providers", "NegatorExecutionProvider,CPUExecutionProvider"}});
    ASSERT_TRUE(make_session(env.get(), neg_graph(), options.get()));
    EXPECT_EQ(heard, wanted);
  }
}

// A packed constant in a struct of any size, with room for members of a later minor.
struct {
  pfrt_packed_constant constant;
  uint64_t more[3];
  size_t size;
} packed;

TEST(ClientProvider, lists_constants_by_their_size) {
  pfrt_provider_table table = kTable;
  table.constants = [](pfrt_executable*, const pfrt_sink*, const pfrt_packed_constant** out,
                       size_t* size, size_t* count) -> pfrt_code {
    *out = &packed.constant;
    *size = packed.size;
    *count = 1;
    return PFRT_CODE_OK;
  };
  packed = {};
  packed.constant.recipe = str("four zeros");
  packed.constant.bytes = 4;
  packed.constant.pack = [](void*, const void* const*, void* out, const pfrt_sink*) -> pfrt_code {
    std::memset(out, 0, 4);
    return PFRT_CODE_OK;
  };
  const auto session_with = [&](size_t size, uint64_t more) {
    packed.size = size;
    packed.more[1] = more;
    Negator negator;
    const auto env = make_env();
    EXPECT_TRUE(
        ok(add(env.get(), negator, "NegatorExecutionProvider", &table, PFRT_PROVIDER_CONSTANTS)));
    GraphBuilder g;
    g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
    g.node("Neg", {"x"}, {"y"});
    g.output("y");
    const auto alone =
        make_options(PFRT_OPTIONS_SESSION,
                     {{"providers", "NegatorExecutionProvider"}, {"session.fallback", "off"}});
    return try_session(env.get(), g, alone.get());
  };
  constexpr size_t kSize = sizeof(pfrt_packed_constant);
  EXPECT_TRUE(ok(session_with(kSize, 0)));
  EXPECT_TRUE(ok(session_with(kSize + 24, 0)));
  EXPECT_TRUE(fails(session_with(kSize + 24, 1), PFRT_CODE_UNSUPPORTED,
                    {"NegatorExecutionProvider", "pfrt_packed_constant", "newer headers"}));
  for (const size_t size : {size_t{0}, kSize - 8, kSize + 4, size_t{1} << 30})
    EXPECT_TRUE(fails(session_with(size, 0), PFRT_CODE_PROVIDER,
                      {"NegatorExecutionProvider", "pfrt_packed_constant", "sizeof"}));
}

// A change of what a program is made of, as a newer or a careless provider makes it.
struct Spoiled {
  void (*buffer)(pfrt_buffer&) = nullptr;
  void (*step)(pfrt_step&) = nullptr;
} spoiled;

pfrt_code specialise_spoiled(pfrt_executable* e, const pfrt_shapes* shapes, const pfrt_sink* sink,
                             pfrt_program* out) {
  const pfrt_code code = specialise(e, shapes, sink, out);
  auto* program = static_cast<Program*>(out->handle);
  if (spoiled.buffer) spoiled.buffer(program->buffers[1]);
  if (spoiled.step) spoiled.step(program->step);
  return code;
}

TEST(ClientProvider, words_without_a_meaning_refuse_its_program) {
  pfrt_provider_table table = kTable;
  table.specialise = specialise_spoiled;
  const struct {
    Spoiled what;
    pfrt_code code;
    const char* says;
  } cases[] = {
      {{[](pfrt_buffer& b) { b.reserved = 5; }, nullptr}, PFRT_CODE_UNSUPPORTED, "pfrt_buffer"},
      {{[](pfrt_buffer& b) { b.kind = 99; }, nullptr}, PFRT_CODE_UNSUPPORTED, "kind 99"},
      {{[](pfrt_buffer& b) { b.kind = PFRT_BUFFER_UNSET; }, nullptr},
       PFRT_CODE_PROVIDER,
       "kind is not set"},
      {{[](pfrt_buffer& b) { b.memory = 99; }, nullptr}, PFRT_CODE_UNSUPPORTED, "kind 99"},
      {{nullptr, [](pfrt_step& s) { s.flags = 64; }}, PFRT_CODE_UNSUPPORTED, "flags 64"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.says);
    spoiled = c.what;
    Negator negator;
    const auto env = make_env();
    ASSERT_TRUE(ok(add(env.get(), negator, "NegatorExecutionProvider", &table)));
    GraphBuilder g;
    g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
    g.node("Neg", {"x"}, {"y"});
    g.output("y");
    const auto alone =
        make_options(PFRT_OPTIONS_SESSION, {{"providers", "NegatorExecutionProvider"}});
    const auto session = make_session(env.get(), g, alone.get());
    ASSERT_TRUE(session);
    EXPECT_TRUE(fails(try_run(session.get(), {floats({2}, {1, 2})}), c.code,
                      {"NegatorExecutionProvider", c.says}));
    const auto both = make_options(
        PFRT_OPTIONS_SESSION, {{"providers", "NegatorExecutionProvider,CPUExecutionProvider"}});
    const auto next = make_session(env.get(), g, both.get());
    ASSERT_TRUE(next);
    EXPECT_EQ(run(next.get(), {floats({2}, {1, 2})})[0].as<float>(), (std::vector<float>{-1, -2}));
  }
}

// Arguments for tuning that specialise was given, and the results of using them.
struct Tuned {
  bool given = false;
  pfrt_compile_hints hints = 0;
  pfrt_tuning tuning{};
  std::string before;  // value found in the cache
  pfrt_code found = 0, kept = 0, no_key = 0, no_value = 0, long_value = 0;
  std::vector<uint64_t> left;
} tuned;
std::string tuned_fingerprint;

pfrt_code compile_and_look(pfrt_provider* p, const pfrt_region* region, const pfrt_sink* sink,
                           pfrt_executable** out) {
  tuned.hints = region->hints;
  return compile_one(p, region, sink, out);
}

pfrt_code specialise_and_tune(pfrt_executable* e, const pfrt_shapes* shapes, const pfrt_sink* sink,
                              pfrt_program* out) {
  tuned.given = sink->tuning != nullptr;
  if (const pfrt_tuning* const t = sink->tuning) {
    tuned.tuning = *t;
    pfrt_string value{};
    tuned.found = t->recall(t, str("negate/2"), &value);
    tuned.before = text(value);
    tuned.left = {t->left_ns(t, 0), t->left_ns(t, 400'000'000), t->left_ns(t, UINT64_MAX),
                  t->left_ns(t, 1)};
    const std::string most(4096, 'v'), more(4097, 'v');
    tuned.kept = t->remember(t, str("negate/2"), str(most));
    tuned.no_key = t->remember(t, str(""), str("x"));
    tuned.no_value = t->remember(t, str("x"), str(""));
    tuned.long_value = t->remember(t, str("x"), str(more));
  }
  return specialise(e, shapes, sink, out);
}

class Tuning : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pfrt_tuning_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    tuned_fingerprint = "negator 1";
    table_ = kTable;
    table_.compile = compile_each<compile_and_look, release_executable>;
    table_.specialise = specialise_and_tune;
    table_.fingerprint = [](pfrt_provider*, const pfrt_sink*, pfrt_string* out) -> pfrt_code {
      *out = str(tuned_fingerprint);
      return PFRT_CODE_OK;
    };
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Runs in a new environment, as another process would.
  void run_with(std::vector<std::pair<std::string, std::string>> more,
                pfrt_provider_features features = PFRT_PROVIDER_FINGERPRINT) {
    tuned = {};
    Negator counts;
    const auto env = make_env();
    ASSERT_TRUE(ok(add(env.get(), counts, "NegatorExecutionProvider", &table_, features)));
    more.emplace_back("providers", "NegatorExecutionProvider,CPUExecutionProvider");
    pfrt_options* raw = nullptr;
    ASSERT_TRUE(ok(api().options->create(PFRT_OPTIONS_SESSION, &raw)));
    const Handle<pfrt_options> options(raw);
    for (const auto& [key, value] : more)
      ASSERT_TRUE(ok(api().options->set_text(raw, str(key), str(value)))) << key;
    const auto session = make_session(env.get(), neg_graph(), raw);
    ASSERT_TRUE(session);
    EXPECT_EQ(run(session.get(), {floats({2}, {1, -2})})[0].as<float>(),
              (std::vector<float>{-1, 0}));
  }
  std::string folder_;
  pfrt_provider_table table_{};
};

TEST_F(Tuning, is_given_to_specialise_where_the_session_tunes) {
  run_with({{"cache_dir", folder_}});
  EXPECT_FALSE(tuned.given);
  EXPECT_EQ(tuned.hints & PFRT_COMPILE_TUNE, 0u);
  run_with({{"cache_dir", folder_},
            {"tune", "on"},
            {"tune_search", "model"},
            {"tune_iterations", "7"},
            {"tune_repeats", "5"},
            {"tune_budget_s", "2"}});
  ASSERT_TRUE(tuned.given);
  EXPECT_NE(tuned.hints & PFRT_COMPILE_TUNE, 0u);
  EXPECT_EQ(tuned.tuning.search, uint32_t{PFRT_TUNE_MODEL});
  EXPECT_EQ(tuned.tuning.iterations, 7u);
  EXPECT_EQ(tuned.tuning.repeats, 5u);
  EXPECT_EQ(tuned.left, (std::vector<uint64_t>{2'000'000'000, 1'600'000'000, 0, 0}));
  EXPECT_EQ(tuned.found, PFRT_CODE_NOT_FOUND);
  EXPECT_EQ(tuned.before, "");
  EXPECT_EQ(tuned.kept, PFRT_CODE_OK);
  for (const pfrt_code code : {tuned.no_key, tuned.no_value, tuned.long_value})
    EXPECT_EQ(code, PFRT_CODE_INVALID_ARGUMENT);
}

TEST_F(Tuning, recalls_what_the_same_provider_has_remembered) {
  run_with({{"cache_dir", folder_}, {"tune", "on"}});
  EXPECT_EQ(tuned.found, PFRT_CODE_NOT_FOUND);
  run_with({{"cache_dir", folder_}, {"tune", "on"}});
  EXPECT_EQ(tuned.found, PFRT_CODE_OK);
  EXPECT_EQ(tuned.before, std::string(4096, 'v'));
  run_with({{"cache_dir", folder_}, {"tune", "cached"}});
  EXPECT_EQ(tuned.found, PFRT_CODE_OK);
  EXPECT_EQ(tuned.hints & PFRT_COMPILE_TUNE, 0u);
  EXPECT_EQ(tuned.left.front(), 0u) << "nothing may be measured";
  tuned_fingerprint = "negator 2";
  run_with({{"cache_dir", folder_}, {"tune", "on"}});
  EXPECT_EQ(tuned.found, PFRT_CODE_NOT_FOUND) << "another provider's";
}

TEST_F(Tuning, keeps_nothing_without_a_folder_or_a_fingerprint) {
  for (int i = 0; i < 2; ++i) {
    run_with({{"cache_dir", "off"}, {"tune", "on"}});
    EXPECT_EQ(tuned.found, PFRT_CODE_NOT_FOUND);
    EXPECT_EQ(tuned.kept, PFRT_CODE_OK);
    EXPECT_EQ(tuned.left.front(), 3'000'000'000u);
    run_with({{"cache_dir", folder_}, {"tune", "on"}}, 0);
    EXPECT_EQ(tuned.found, PFRT_CODE_NOT_FOUND);
    EXPECT_EQ(tuned.kept, PFRT_CODE_OK);
  }
}

}  // namespace
}  // namespace pfrt_test

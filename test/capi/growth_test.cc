// SPDX-License-Identifier: Apache-2.0
//
// The rules by which structs of the C ABI grow, held for every struct that a client hands over, for
// every out-parameter, and for every number that a client may take from newer headers.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>

#include "pyflame_rt/custom.h"
#include "test/capi/client.h"

namespace pfrt_test {
namespace {

// A struct as the headers of a later minor have it, with three more members.
template <typename T>
class Newer {
 public:
  explicit Newer(const T& from) {
    std::memcpy(bytes_, &from, sizeof from);
    get()->struct_size = sizeof bytes_;
  }
  T* get() { return reinterpret_cast<T*>(bytes_); }
  uint64_t member(size_t i) const {
    uint64_t out = 0;
    std::memcpy(&out, bytes_ + sizeof(T) + i * sizeof out, sizeof out);
    return out;
  }
  void set_member(size_t i, uint64_t value) {
    std::memcpy(bytes_ + sizeof(T) + i * sizeof value, &value, sizeof value);
  }

 private:
  alignas(T) char bytes_[sizeof(T) + 3 * sizeof(uint64_t)] = {};
};

class TemporaryFolder {
 public:
  TemporaryFolder() { EXPECT_NE(mkdtemp(path_.data()), nullptr); }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "pfrt_growth_XXXXXX";
};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

template <typename T>
using Call = std::function<Failure(const T*)>;

// Holds the rules for a struct called |name| that |call| hands over. |good| is one that the call
// takes, also several times.
template <typename T>
void expect_read(const char* name, const T& good, const Call<T>& call) {
  SCOPED_TRACE(name);
  EXPECT_TRUE(ok(call(&good)));
  Newer<T> newer(good);
  EXPECT_TRUE(ok(call(newer.get()))) << "what is not known is zero";
  for (size_t i = 0; i < 3; ++i) {
    Newer<T> asks(good);
    asks.set_member(i, uint64_t{1} << 40);
    EXPECT_TRUE(fails(call(asks.get()), PFRT_CODE_UNSUPPORTED,
                      {name, std::to_string(sizeof(T)), std::to_string(sizeof(T) + 24),
                       std::to_string(sizeof(T) + i * 8 + 5), "newer headers"}));
  }
  for (const size_t size : {size_t{0}, size_t{4}, sizeof(T) - 8, sizeof(T) + 3, size_t{1} << 20}) {
    T other = good;
    other.struct_size = static_cast<uint32_t>(size);
    EXPECT_TRUE(fails(call(&other), PFRT_CODE_INVALID_ARGUMENT,
                      {name, "struct_size", "sizeof", size ? std::to_string(size) : "not set"}));
  }
  if constexpr (requires(T t) { t.reserved; }) {
    T other = good;
    other.reserved = 17;
    EXPECT_TRUE(fails(call(&other), PFRT_CODE_UNSUPPORTED, {name, "reserved", "17"}));
  }
  if constexpr (requires(T t) { t.flags; }) {
    T other = good;
    other.flags |= uint64_t{1} << 40;
    EXPECT_TRUE(fails(call(&other), PFRT_CODE_UNSUPPORTED, {name, "flags", "1099511627776"}));
  }
}

template <typename T>
T sized() {
  T out{};
  out.struct_size = sizeof out;
  return out;
}

pfrt_value_info info_of(const char* name) {
  static constexpr int64_t kDims[] = {2};
  auto info = sized<pfrt_value_info>();
  info.name = str(name);
  info.kind = PFRT_VALUE_TENSOR;
  info.dtype = PFRT_DTYPE_FLOAT32;
  info.rank = 1;
  info.dims = kDims;
  return info;
}

class Growth : public testing::Test {
 protected:
  const Handle<pfrt_env> env_ = make_env();
};

TEST_F(Growth, holds_for_descriptions_of_graphs) {
  const auto add_to = [](auto fn) {
    return [fn](const pfrt_value_info* info) {
      const GraphBuilder g;
      return take((api().graph->*fn)(g.get(), info));
    };
  };
  expect_read<pfrt_value_info>("pfrt_value_info", info_of("x"), add_to(&pfrt_graph_api::add_input));
  expect_read<pfrt_value_info>("pfrt_value_info", info_of("x"),
                               add_to(&pfrt_graph_api::add_output));
  expect_read<pfrt_value_info>("pfrt_value_info", info_of("x"),
                               add_to(&pfrt_graph_api::set_value_info));
  GraphBuilder g;
  const auto node = sized<pfrt_node>();
  expect_read<pfrt_node>("pfrt_node", node, [&](const pfrt_node* n) {
    return take(api().graph->add_node(g.get(), n, nullptr));
  });
  auto attr = sized<pfrt_attr>();
  attr.name = str("alpha");
  attr.type = PFRT_ATTR_FLOAT;
  const uint32_t id = g.node("Elu", {"x"}, {"y"});
  expect_read<pfrt_attr>("pfrt_attr", attr, [&](const pfrt_attr* a) {
    return take(api().graph->set_attr(g.get(), id, a));
  });
  expect_read<pfrt_attr>("pfrt_attr", attr, [&](const pfrt_attr* a) {
    pfrt_node with = node;
    with.attrs = a;
    with.attr_count = 1;
    return take(api().graph->add_node(g.get(), &with, nullptr));
  });
}

TEST_F(Growth, holds_for_descriptions_of_sessions_and_runs) {
  const auto model = make_model(env_.get(), add_graph());
  auto desc = sized<pfrt_session_desc>();
  desc.model = model.get();
  pfrt_session* raw = nullptr;
  const auto create = [&](const pfrt_session_desc* d) {
    Failure failure = take(api().session->create(env_.get(), d, &raw));
    api().session->release(raw);
    return failure;
  };
  expect_read<pfrt_session_desc>("pfrt_session_desc", desc, create);

  const Array x = floats({1, 3}, {1, 2, 3});
  const auto value = value_of(x);
  const pfrt_string name = str("x");
  pfrt_value* const values[] = {value.get()};
  auto sample = sized<pfrt_sample>();
  sample.names = &name;
  sample.values = values;
  sample.count = 1;
  expect_read<pfrt_sample>("pfrt_sample", sample, [&](const pfrt_sample* s) {
    pfrt_session_desc with = desc;
    with.samples = s;
    with.sample_count = 1;
    return create(&with);
  });

  auto source = sized<pfrt_sample_source>();
  source.next = [](void*, pfrt_sample*) -> pfrt_code { return PFRT_CODE_OK; };
  source.rewind = [](void*) -> pfrt_code { return PFRT_CODE_OK; };
  expect_read<pfrt_sample_source>("pfrt_sample_source", source, [&](const pfrt_sample_source* s) {
    pfrt_session_desc with = desc;
    with.sample_source = s;
    return create(&with);
  });

  const auto session = make_session(env_.get(), model.get());
  std::vector<float> room(3);
  auto out = sized<pfrt_io>();
  out.tensor = floats({1, 3}, room).view();
  out.tensor.data = room.data();
  const auto run_with = [&](const pfrt_io* in, const pfrt_io* to) {
    return take(api().session->run(session.get(), in, 1, const_cast<pfrt_io*>(to), 1, nullptr));
  };
  const pfrt_io in = x.io();
  expect_read<pfrt_io>("pfrt_io", in, [&](const pfrt_io* io) { return run_with(io, &out); });
  expect_read<pfrt_io>("pfrt_io", out, [&](const pfrt_io* io) { return run_with(&in, io); });
  EXPECT_EQ(room, (std::vector<float>{2, 4, 6}));
  const pfrt_string input = str("x"), output = str("y");
  expect_read<pfrt_io>("pfrt_io", in, [&](const pfrt_io* io) {
    return take(api().session->run_named(session.get(), &input, io, 1, &output, &out, 1, nullptr));
  });
}

TEST_F(Growth, elements_of_an_array_have_one_size) {
  GraphBuilder g;
  pfrt_attr attrs[] = {sized<pfrt_attr>(), sized<pfrt_attr>()};
  for (pfrt_attr& attr : attrs) attr.type = PFRT_ATTR_INT;
  attrs[1].struct_size += 8;
  auto node = sized<pfrt_node>();
  node.attrs = attrs;
  node.attr_count = 2;
  EXPECT_TRUE(fails(api().graph->add_node(g.get(), &node, nullptr), PFRT_CODE_INVALID_ARGUMENT,
                    {"pfrt_attr", "element 1", std::to_string(sizeof(pfrt_attr) + 8)}));
  const auto session = make_session(env_.get(), add_graph());
  pfrt_io outputs[] = {sized<pfrt_io>(), sized<pfrt_io>()};
  outputs[1].struct_size = 0;
  EXPECT_TRUE(fails(api().session->run(session.get(), nullptr, 0, outputs, 2, nullptr),
                    PFRT_CODE_INVALID_ARGUMENT, {"pfrt_io", "element 1"}));
}

TEST_F(Growth, frozen_views_have_one_size) {
  const Array x = floats({1, 3}, {1, 2, 3});
  const auto session = make_session(env_.get(), add_graph());
  for (const uint32_t size : {0u, 72u, 88u, 104u}) {
    pfrt_io in = x.io();
    in.tensor.struct_size = size;
    auto out = sized<pfrt_io>();
    EXPECT_TRUE(fails(api().session->run(session.get(), &in, 1, &out, 1, nullptr),
                      PFRT_CODE_INVALID_ARGUMENT, {"'x'", "pfrt_tensor", "struct_size"}));
    pfrt_value* value = nullptr;
    EXPECT_TRUE(fails(api().value->wrap_tensor(&in.tensor, nullptr, nullptr, &value),
                      PFRT_CODE_INVALID_ARGUMENT, {"pfrt_tensor", "struct_size"}));
    EXPECT_TRUE(fails(api().value->wrap_unaligned(&in.tensor, nullptr, nullptr, &value),
                      PFRT_CODE_INVALID_ARGUMENT, {"pfrt_tensor", "struct_size"}));
    GraphBuilder g;
    EXPECT_TRUE(
        fails(api().graph->add_initializer(g.get(), str("w"), &in.tensor, 0, nullptr, nullptr),
              PFRT_CODE_INVALID_ARGUMENT, {"pfrt_tensor", "struct_size"}));
    const auto made = value_of(x);
    EXPECT_TRUE(fails(api().value->tensor(made.get(), &in.tensor), PFRT_CODE_INVALID_ARGUMENT,
                      {"pfrt_tensor", "struct_size"}));
  }
  pfrt_io in = x.io();
  in.tensor.reserved = 1;
  auto out = sized<pfrt_io>();
  EXPECT_TRUE(fails(api().session->run(session.get(), &in, 1, &out, 1, nullptr),
                    PFRT_CODE_UNSUPPORTED, {"'x'", "pfrt_tensor", "reserved"}));
}

TEST_F(Growth, holds_for_pairs_of_a_state) {
  GraphBuilder g;
  g.input("h", PFRT_DTYPE_FLOAT32, {2});
  g.node("Relu", {"h"}, {"h_out"});
  g.output("h_out");
  const auto session = make_session(env_.get(), g);
  auto pair = sized<pfrt_state_pair>();
  pair.growth = PFRT_STATE_REPLACED;
  pair.input = str("h");
  pair.output = str("h_out");
  const auto create = [&](const pfrt_state_pair* p) {
    pfrt_state* state = nullptr;
    Failure failure = take(api().state->create(session.get(), p, 1, &state));
    api().state->release(state);
    return failure;
  };
  expect_read<pfrt_state_pair>("pfrt_state_pair", pair, create);
  pair.growth = 99;
  EXPECT_TRUE(fails(create(&pair), PFRT_CODE_UNSUPPORTED, {"growth 99"}));
}

// Counts the releases of what a client handed over: every call has one, also one that fails.
struct Releases {
  int calls = 0, count = 0;
  static void add(void* user) { ++static_cast<Releases*>(user)->count; }
};

TEST_F(Growth, holds_for_what_replaces_the_librarys_own) {
  Releases releases;
  const auto counted = [&](auto fn, auto* given) {
    const uint32_t size = given->struct_size;
    // A struct that ends before its release cannot be released.
    if (size >= sizeof *given && size % 8 == 0 && size < 4096) ++releases.calls;
    Failure failure = take((api().env->*fn)(env_.get(), given));
    EXPECT_TRUE(ok((api().env->*fn)(env_.get(), nullptr)));
    return failure;
  };
  auto allocator = sized<pfrt_allocator>();
  allocator.user = &releases;
  allocator.allocate = [](void*, uint64_t, uint64_t) -> void* { return nullptr; };
  allocator.free = [](void*, void*, uint64_t) {};
  allocator.release = &Releases::add;
  expect_read<pfrt_allocator>("pfrt_allocator", allocator, [&](const pfrt_allocator* a) {
    return counted(&pfrt_env_api::set_allocator, a);
  });
  auto executor = sized<pfrt_executor>();
  executor.user = &releases;
  executor.loop = [](void*, uint32_t, uint64_t n, void (*fn)(void*, uint64_t, uint32_t),
                     void* arg) {
    for (uint64_t i = 0; i < n; ++i) fn(arg, i, 0);
  };
  executor.release = &Releases::add;
  expect_read<pfrt_executor>("pfrt_executor", executor, [&](const pfrt_executor* e) {
    return counted(&pfrt_env_api::set_executor, e);
  });
  auto hooks = sized<pfrt_thread_hooks>();
  hooks.user = &releases;
  hooks.create = [](void*, void (*)(void*), void*, void**) -> pfrt_code {
    return PFRT_CODE_PROVIDER;
  };
  hooks.join = [](void*, void*) {};
  hooks.release = &Releases::add;
  expect_read<pfrt_thread_hooks>("pfrt_thread_hooks", hooks, [&](const pfrt_thread_hooks* h) {
    return counted(&pfrt_env_api::set_thread_hooks, h);
  });
  auto planner = sized<pfrt_memory_planner>();
  planner.user = &releases;
  planner.create_plan = [](void*, pfrt_memory_request*) -> pfrt_code { return PFRT_CODE_OK; };
  planner.release = &Releases::add;
  expect_read<pfrt_memory_planner>(
      "pfrt_memory_planner", planner,
      [&](const pfrt_memory_planner* p) { return counted(&pfrt_env_api::set_memory_planner, p); });
  EXPECT_EQ(releases.count, releases.calls);
}

TEST_F(Growth, holds_for_what_is_registered) {
  Releases releases;
  auto op = sized<pfrt_custom_op>();
  op.abi = PFRT_ABI_VERSION;
  op.domain = str("acme");
  op.name = str("Same");
  op.max_inputs = PFRT_ANY_NUMBER;
  op.compute = [](void*, const pfrt_op_compute*) -> pfrt_code { return PFRT_CODE_OK; };
  op.release = &Releases::add;
  op.user = &releases;
  expect_read<pfrt_custom_op>("pfrt_custom_op", op, [&](const pfrt_custom_op* o) {
    Failure failure = take(api().env->register_operator(env_.get(), o));
    if (failure.ok()) {
      EXPECT_TRUE(ok(api().env->unregister_operator(env_.get(), str("acme"), str("Same"))));
    }
    return failure;
  });
  EXPECT_EQ(releases.count, 2 + 3 + 2) << "two that it took, three newer ones, a word, a flag";

  auto pass = sized<pfrt_custom_pass>();
  pass.abi = PFRT_ABI_VERSION;
  pass.name = str("SamePass");
  pass.run = [](void*, pfrt_pass_call*) -> pfrt_code { return PFRT_CODE_OK; };
  expect_read<pfrt_custom_pass>("pfrt_custom_pass", pass, [&](const pfrt_custom_pass* p) {
    return take(api().env->register_pass(make_env().get(), p));
  });
  expect_read<pfrt_custom_pass>("pfrt_custom_pass", pass, [&](const pfrt_custom_pass* p) {
    pfrt_optimizer* optimizer = nullptr;
    EXPECT_TRUE(ok(api().optimizer->create(env_.get(), nullptr, &optimizer)));
    Failure failure = take(api().optimizer->add_custom_pass(optimizer, p));
    api().optimizer->release(optimizer);
    return failure;
  });
  pass.level = 99;
  EXPECT_TRUE(fails(api().env->register_pass(env_.get(), &pass), PFRT_CODE_UNSUPPORTED,
                    {"SamePass", "level 99"}));

  static constexpr pfrt_provider_table kTable = [] {
    pfrt_provider_table t{};
    t.struct_size = sizeof t;
    t.abi = PFRT_ABI_VERSION;
    t.devices = {"none", 4};
    t.close = [](pfrt_provider*) {};
    t.claim = [](pfrt_provider*, const pfrt_snapshot*, const pfrt_claims*,
                 const pfrt_sink*) -> pfrt_code { return PFRT_CODE_OK; };
    t.compile = [](pfrt_provider*, const pfrt_region*, size_t, size_t, const pfrt_sink*,
                   pfrt_executable**, size_t*) -> pfrt_code { return PFRT_CODE_UNSUPPORTED; };
    t.release_executable = [](pfrt_executable*) {};
    t.specialise = [](pfrt_executable*, const pfrt_shapes*, const pfrt_sink*,
                      pfrt_program*) -> pfrt_code { return PFRT_CODE_UNSUPPORTED; };
    t.release_program = [](pfrt_executable*, pfrt_program*) {};
    return t;
  }();
  auto provider = sized<pfrt_client_provider>();
  provider.abi = PFRT_ABI_VERSION;
  provider.name = str("OwnExecutionProvider");
  provider.features = PFRT_PROVIDER_BATCH;
  provider.table = &kTable;
  provider.open = [](void*, pfrt_string, const pfrt_key_value*, size_t, const pfrt_sink*,
                     pfrt_provider**) -> pfrt_code { return PFRT_CODE_NOT_FOUND; };
  const auto add = [](const pfrt_client_provider* p) {
    return take(api().env->register_provider(make_env().get(), p));
  };
  expect_read<pfrt_client_provider>("pfrt_client_provider", provider, add);
  provider.features = PFRT_PROVIDER_BATCH << 1;
  EXPECT_TRUE(fails(add(&provider), PFRT_CODE_UNSUPPORTED,
                    {"pfrt_client_provider", std::to_string(PFRT_PROVIDER_BATCH << 1)}));
  pfrt_provider_table unset = kTable;
  unset.struct_size = 0;
  provider.features = 0;
  provider.table = &unset;
  EXPECT_TRUE(fails(add(&provider), PFRT_CODE_INVALID_ARGUMENT, {"struct_size", "not set"}));
}

TEST_F(Growth, holds_for_requests) {
  auto ask = sized<pfrt_ask_desc>();
  ask.provider = str("WSEExecutionProvider");
  ask.verb = str("machine");
  expect_read<pfrt_ask_desc>("pfrt_ask_desc", ask, [&](const pfrt_ask_desc* a) {
    pfrt_reply* reply = nullptr;
    Failure failure = take(api().env->ask(env_.get(), a, &reply));
    api().env->reply_release(reply);
    return failure;
  });

  const auto services = make_env({{"plugin_path", PFRT_BROKEN_PLUGINS}});
  auto service = sized<pfrt_service_desc>();
  service.name = str("idle");
  expect_read<pfrt_service_desc>("pfrt_service_desc", service, [&](const pfrt_service_desc* s) {
    return take(api().env->service_check(services.get(), s));
  });
  pfrt_service* running = nullptr;
  expect_read<pfrt_service_desc>("pfrt_service_desc", service, [&](const pfrt_service_desc* s) {
    api().env->service_stop(running);
    return take(api().env->service_start(services.get(), s, &running));
  });
  api().env->service_stop(running);
  ASSERT_TRUE(ok(api().env->service_start(services.get(), &service, &running)));
  ask.provider = {};
  ask.verb = str("hello");
  expect_read<pfrt_ask_desc>("pfrt_ask_desc", ask, [&](const pfrt_ask_desc* a) {
    pfrt_reply* reply = nullptr;
    Failure failure = take(api().env->service_ask(running, a, &reply));
    api().env->reply_release(reply);
    return failure;
  });
  api().env->service_stop(running);

  const TemporaryFolder here;
  const std::string folder = here.path();
  auto cache = sized<pfrt_cache_config>();
  cache.folder = str(folder);
  expect_read<pfrt_cache_config>("pfrt_cache_config", cache, [&](const pfrt_cache_config* c) {
    pfrt_cache* made = nullptr;
    Failure failure = take(api().cache->open(env_.get(), c, &made));
    api().cache->release(made);
    return failure;
  });
  expect_read<pfrt_cache_config>("pfrt_cache_config", cache, [&](const pfrt_cache_config* c) {
    return take(api().cache->set_default(env_.get(), c));
  });

  auto pool = sized<pfrt_pool_config>();
  pool.flags = PFRT_POOL_NO_STATS;
  const auto create = [&](const pfrt_pool_config* c) {
    pfrt_memory_pool* made = nullptr;
    Failure failure = take(api().memory->create_pool(c, nullptr, &made));
    api().memory->release_pool(made);
    return failure;
  };
  expect_read<pfrt_pool_config>("pfrt_pool_config", pool, create);
}

// A model's bytes in memory, as readers of all sizes give them.
struct Bytes {
  std::string text;
  int released = 0;
  static pfrt_code read(void* user, uint64_t offset, uint64_t bytes, void* out,
                        uint64_t* out_read) {
    const std::string& text = static_cast<Bytes*>(user)->text;
    *out_read = std::min<uint64_t>(bytes, text.size() - offset);
    std::memcpy(out, text.data() + offset, *out_read);
    return PFRT_CODE_OK;
  }
};

TEST_F(Growth, holds_for_readers) {
  const TemporaryFolder here;
  const std::string path = here.path() + "/model.pfm";
  const auto model = make_model(env_.get(), add_graph());
  ASSERT_TRUE(ok(api().model->save(env_.get(), model.get(), str(path), nullptr)));
  Bytes bytes{read_file(path)};
  auto reader = sized<pfrt_reader>();
  reader.size = bytes.text.size();
  reader.name = str("model.pfm");
  reader.read_at = &Bytes::read;
  reader.release = [](void* user) { ++static_cast<Bytes*>(user)->released; };
  reader.user = &bytes;
  expect_read<pfrt_reader>("pfrt_reader", reader, [&](const pfrt_reader* r) {
    pfrt_model* made = nullptr;
    Failure failure = take(api().model->load_reader(env_.get(), r, nullptr, &made));
    api().model->release(made);
    return failure;
  });
  EXPECT_EQ(bytes.released, 2 + 3 + 1) << "two that it took, three newer ones, a reserved word";
}

// ---- out-parameters ----

// Holds the rules for an out-parameter that |call| fills in: of what is there before only
// struct_size is read.
template <typename T>
void expect_filled(const char* name, const std::function<Failure(T*)>& call) {
  SCOPED_TRACE(name);
  T out;
  std::memset(static_cast<void*>(&out), 0xee, sizeof out);
  out.struct_size = sizeof out;
  EXPECT_TRUE(ok(call(&out)));
  EXPECT_EQ(out.struct_size, sizeof out);
  Newer<T> newer(out);
  for (size_t i = 0; i < 3; ++i) newer.set_member(i, std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(ok(call(newer.get())));
  EXPECT_EQ(newer.get()->struct_size, sizeof(T) + 24);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(newer.member(i), 0u) << "what is not known is unset";
  for (const size_t size : {size_t{0}, size_t{4}, sizeof(T) - 8, sizeof(T) + 3, size_t{1} << 20}) {
    T other = out;
    other.struct_size = static_cast<uint32_t>(size);
    const T before = other;
    EXPECT_TRUE(fails(call(&other), PFRT_CODE_INVALID_ARGUMENT,
                      {name, "struct_size", size ? std::to_string(size) : "not set"}));
    EXPECT_EQ(std::memcmp(&before, &other, sizeof other), 0) << "nothing is written";
  }
}

TEST_F(Growth, holds_for_lists_of_an_environment) {
  expect_filled<pfrt_option_info>("pfrt_option_info", [](pfrt_option_info* out) {
    return take(api().options->schema_at(PFRT_OPTIONS_SESSION, 0, out));
  });
  expect_filled<pfrt_option_info>("pfrt_option_info", [&](pfrt_option_info* out) {
    return take(api().env->provider_option_at(env_.get(), str("WSEExecutionProvider"), 0, out));
  });
  const auto services = make_env({{"plugin_path", PFRT_BROKEN_PLUGINS}});
  expect_filled<pfrt_option_info>("pfrt_option_info", [&](pfrt_option_info* out) {
    return take(api().env->service_option_at(services.get(), str("idle"), 0, out));
  });
  expect_filled<pfrt_plugin_info>("pfrt_plugin_info", [&](pfrt_plugin_info* out) {
    EXPECT_GT(api().env->plugin_count(env_.get()), 0u);
    return take(api().env->plugin_at(env_.get(), 0, out));
  });
  expect_filled<pfrt_provider_info>("pfrt_provider_info", [&](pfrt_provider_info* out) {
    EXPECT_GT(api().env->provider_count(env_.get()), 0u);
    return take(api().env->provider_at(env_.get(), 0, out));
  });
  expect_filled<pfrt_kernel_info>("pfrt_kernel_info", [&](pfrt_kernel_info* out) {
    return take(api().env->kernel_at(env_.get(), str("CPUExecutionProvider"), 0, out));
  });
  expect_filled<pfrt_operator_info>("pfrt_operator_info", [](pfrt_operator_info* out) {
    return take(api().env->operator_at(0, out));
  });
}

TEST_F(Growth, holds_for_what_is_read_of_models_and_sessions) {
  const GraphBuilder g = add_graph();
  expect_filled<pfrt_value_info>("pfrt_value_info", [&](pfrt_value_info* out) {
    return take(api().graph->input_at(g.get(), 0, out));
  });
  expect_filled<pfrt_node>(
      "pfrt_node", [&](pfrt_node* out) { return take(api().graph->node_at(g.get(), 0, out)); });
  const auto model = make_model(env_.get(), g);
  expect_filled<pfrt_model_info>("pfrt_model_info", [&](pfrt_model_info* out) {
    return take(api().model->info(model.get(), out));
  });
  const auto session = make_session(env_.get(), model.get());
  expect_filled<pfrt_value_info>("pfrt_value_info", [&](pfrt_value_info* out) {
    return take(api().session->output_at(session.get(), 0, out));
  });
  expect_filled<pfrt_provider_state>("pfrt_provider_state", [&](pfrt_provider_state* out) {
    return take(api().session->provider_state(session.get(), 0, out));
  });
  expect_filled<pfrt_session_statistics>(
      "pfrt_session_statistics", [&](pfrt_session_statistics* out) {
        return take(api().session->statistics(session.get(), out));
      });
  expect_filled<pfrt_memory_report>("pfrt_memory_report", [&](pfrt_memory_report* out) {
    return take(api().session->memory_report(session.get(), out, nullptr, nullptr));
  });
  pfrt_report* raw = nullptr;
  ASSERT_TRUE(ok(api().session->explain(session.get(), &raw)));
  const Handle<pfrt_report> report(raw);
  expect_filled<pfrt_report_row>("pfrt_report_row", [&](pfrt_report_row* out) {
    return take(api().report->row_at(report.get(), 0, out));
  });
}

TEST_F(Growth, holds_for_counts) {
  GraphBuilder product;
  product.input("x", PFRT_DTYPE_FLOAT32, {2, 8});
  product.constant("w", noise({8, 4}, 1));
  product.node("MatMul", {"x", "w"}, {"y"});
  product.output("y");
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"providers", "WSEExecutionProvider"}});
  const auto session = make_session(env_.get(), product, options.get());
  ASSERT_TRUE(session);
  run(session.get(), {noise({2, 8}, 2)});
  pfrt_report* raw = nullptr;
  ASSERT_TRUE(ok(api().session->explain(session.get(), &raw)));
  const Handle<pfrt_report> report(raw);
  expect_filled<pfrt_report_counter>("pfrt_report_counter", [&](pfrt_report_counter* out) {
    return take(api().report->counter_at(report.get(), 0, out));
  });

  GraphBuilder g = add_graph();
  pfrt_optimizer* optimizer = nullptr;
  ASSERT_TRUE(ok(api().optimizer->create(env_.get(), nullptr, &optimizer)));
  ASSERT_TRUE(ok(api().optimizer->add_default_passes(optimizer)));
  pfrt_optimization* result = nullptr;
  ASSERT_TRUE(ok(api().optimizer->run(optimizer, g.get(), {}, 0, &result)));
  expect_filled<pfrt_pass_stats>("pfrt_pass_stats", [&](pfrt_pass_stats* out) {
    return take(api().optimizer->totals(result, out));
  });
  expect_filled<pfrt_pass_report>("pfrt_pass_report", [&](pfrt_pass_report* out) {
    Failure failure = take(api().optimizer->report_at(result, 0, out));
    if (failure.ok()) {
      EXPECT_EQ(out->stats->struct_size, sizeof(pfrt_pass_stats));
    }
    return failure;
  });
  api().optimizer->release_result(result);
  api().optimizer->release(optimizer);

  const TemporaryFolder here;
  const std::string folder = here.path();
  auto config = sized<pfrt_cache_config>();
  config.folder = str(folder);
  pfrt_cache* cache = nullptr;
  ASSERT_TRUE(ok(api().cache->open(env_.get(), &config, &cache)));
  expect_filled<pfrt_cache_statistics>("pfrt_cache_statistics", [&](pfrt_cache_statistics* out) {
    return take(api().cache->statistics(cache, out));
  });
  api().cache->release(cache);
  pfrt_memory_pool* pool = nullptr;
  ASSERT_TRUE(ok(api().memory->create_pool(nullptr, nullptr, &pool)));
  expect_filled<pfrt_pool_stats>("pfrt_pool_stats", [&](pfrt_pool_stats* out) {
    return take(api().memory->pool_stats(pool, out));
  });
  api().memory->release_pool(pool);
}

TEST_F(Growth, holds_for_the_first_question_too) {
  auto info = sized<pfrt_abi_info>();
  Newer<pfrt_abi_info> newer(info);
  newer.set_member(1, 1);
  EXPECT_NE(pfrt_get_api(PFRT_ABI_VERSION, newer.get()), nullptr);
  EXPECT_EQ(newer.member(1), 0u);
  for (const uint32_t size : {0u, 8u, 1u << 20}) {
    info.struct_size = size;
    info.message = str("before");
    EXPECT_EQ(pfrt_get_api(PFRT_ABI_VERSION, &info), nullptr);
    EXPECT_EQ(text(info.message), "before") << "nothing is written";
  }
}

// ---- numbers ----

TEST_F(Growth, numbers_that_are_not_set_are_a_mistake_and_unknown_ones_unsupported) {
  pfrt_options* options = nullptr;
  EXPECT_TRUE(fails(api().options->create(PFRT_OPTIONS_UNSET, &options), PFRT_CODE_INVALID_ARGUMENT,
                    {"kind", "not set"}));
  EXPECT_TRUE(
      fails(api().options->create(99, &options), PFRT_CODE_UNSUPPORTED, {"kind 99", "ABI 2."}));
  auto option = sized<pfrt_option_info>();
  EXPECT_TRUE(fails(api().options->schema_at(99, 0, &option), PFRT_CODE_UNSUPPORTED, {"kind 99"}));

  const auto load = [&](pfrt_memory_mode mode) {
    pfrt_model* model = nullptr;
    return take(
        api().model->load_memory(env_.get(), "abc", 3, mode, nullptr, nullptr, nullptr, &model));
  };
  EXPECT_TRUE(fails(load(PFRT_MEMORY_MODE_UNSET), PFRT_CODE_INVALID_ARGUMENT, {"PFRT_COPY"}));
  EXPECT_TRUE(fails(load(99), PFRT_CODE_UNSUPPORTED, {"mode 99"}));

  pfrt_value* value = nullptr;
  const int64_t dims[] = {2};
  EXPECT_TRUE(fails(api().value->create_tensor(PFRT_DTYPE_UNSET, dims, 1, &value),
                    PFRT_CODE_INVALID_ARGUMENT, {"dtype", "not set"}));
  EXPECT_TRUE(
      fails(api().value->create_tensor(99, dims, 1, &value), PFRT_CODE_UNSUPPORTED, {"dtype 99"}));
  EXPECT_TRUE(fails(api().value->create_sequence(99, nullptr, 0, &value), PFRT_CODE_UNSUPPORTED,
                    {"dtype 99"}));
  Array x = floats({1, 3}, {1, 2, 3});
  x.dtype = 99;
  const pfrt_tensor view = x.view();
  EXPECT_TRUE(fails(api().value->wrap_tensor(&view, nullptr, nullptr, &value),
                    PFRT_CODE_UNSUPPORTED, {"dtype 99"}));
  const auto session = make_session(env_.get(), add_graph());
  EXPECT_TRUE(fails(try_run(session.get(), {x}), PFRT_CODE_UNSUPPORTED, {"'x'", "dtype 99"}));

  GraphBuilder g;
  for (uint32_t pfrt_value_info::*member :
       {&pfrt_value_info::kind, &pfrt_value_info::dtype, &pfrt_value_info::key_dtype}) {
    pfrt_value_info info = info_of("v");
    info.*member = 99;
    EXPECT_TRUE(
        fails(api().graph->add_input(g.get(), &info), PFRT_CODE_UNSUPPORTED, {"'v'", " 99"}));
  }
  auto attr = sized<pfrt_attr>();
  attr.name = str("a");
  const uint32_t id = g.node("Relu", {"x"}, {"y"});
  EXPECT_TRUE(fails(api().graph->set_attr(g.get(), id, &attr), PFRT_CODE_INVALID_ARGUMENT,
                    {"'a'", "type"}));
  attr.type = 99;
  EXPECT_TRUE(
      fails(api().graph->set_attr(g.get(), id, &attr), PFRT_CODE_UNSUPPORTED, {"'a'", "type 99"}));
}

}  // namespace
}  // namespace pfrt_test

// SPDX-License-Identifier: Apache-2.0
#include "test/capi/client.h"

#include <dirent.h>

#include <random>

namespace pfrt_test {

int threads_now() {
  int count = 0;
  DIR* folder = opendir("/proc/self/task");
  while (folder && readdir(folder)) ++count;
  if (folder) closedir(folder);
  return count - 2;  // "." and ".."
}
namespace {

std::string describe(const Failure& failure) {
  std::string out = text(api().status->code_text(failure.code)) + " \"" + failure.message + "\"";
  for (const Failure& child : failure.children) out += "\n  " + describe(child);
  return out;
}

std::vector<pfrt_string> views(const std::vector<std::string>& strings) {
  std::vector<pfrt_string> out;
  for (const std::string& s : strings) out.push_back(str(s));
  return out;
}

Failure create_session(pfrt_env* env, pfrt_model* model, const pfrt_options* options,
                       const std::vector<std::string>& extra, pfrt_session** out) {
  const std::vector<pfrt_string> names = views(extra);
  pfrt_session_desc desc{};
  desc.struct_size = sizeof desc;
  desc.model = model;
  desc.options = options;
  desc.extra_outputs = names.data();
  desc.extra_output_count = names.size();
  return take(api().session->create(env, &desc, out));
}

}  // namespace

const pfrt_api& api() {
  static const pfrt_api* const table = pfrt_get_api(PFRT_ABI_VERSION, nullptr);
  return *table;
}

Failure take(pfrt_status* status) {
  Failure out;
  if (!status) return out;
  const auto copy = [](const auto& self, const pfrt_status* from) -> Failure {
    Failure to;
    to.code = api().status->code(from);
    to.message = text(api().status->message(from));
    for (size_t i = 0; i < api().status->child_count(from); ++i)
      to.children.push_back(self(self, api().status->child(from, i)));
    return to;
  };
  out = copy(copy, status);
  api().status->release(status);
  return out;
}

testing::AssertionResult ok(Failure failure) {
  if (failure.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << describe(failure);
}
testing::AssertionResult ok(pfrt_status* status) { return ok(take(status)); }

testing::AssertionResult fails(const Failure& failure, pfrt_code code,
                               std::initializer_list<std::string_view> parts) {
  if (failure.code != code)
    return testing::AssertionFailure()
           << "expected " << text(api().status->code_text(code)) << ", got " << describe(failure);
  for (std::string_view part : parts)
    if (failure.message.find(part) == std::string::npos)
      return testing::AssertionFailure() << "no '" << part << "' in " << describe(failure);
  return testing::AssertionSuccess();
}
testing::AssertionResult fails(pfrt_status* status, pfrt_code code,
                               std::initializer_list<std::string_view> parts) {
  return fails(take(status), code, parts);
}

Handle<pfrt_options> make_options(pfrt_options_kind kind, const Settings& settings) {
  pfrt_options* raw = nullptr;
  EXPECT_TRUE(ok(api().options->create(kind, &raw)));
  Handle<pfrt_options> options(raw);
  for (const auto& [key, value] : settings)
    EXPECT_TRUE(ok(api().options->set_text(raw, str(key), str(value))));
  return options;
}

RunDesc::RunDesc(const RunSettings& settings)
    : pfrt_run_desc{sizeof(pfrt_run_desc), settings.log_level,   settings.cancel,
                    settings.timeout_ms,   settings.num_threads, settings.priority,
                    settings.memory_limit, str(settings.tag),    settings.flags,
                    settings.state,        settings.observe,     settings.observe_user} {}

Handle<pfrt_env> make_env(const Settings& settings) {
  const auto options = make_options(PFRT_OPTIONS_ENV, {{"log_level", "off"}});
  for (const auto& [key, value] : settings)
    EXPECT_TRUE(ok(api().options->set_text(options.get(), str(key), str(value))));
  pfrt_env* raw = nullptr;
  EXPECT_TRUE(ok(api().env->create(options.get(), &raw)));
  return Handle<pfrt_env>(raw);
}

pfrt_tensor Array::view() const {
  pfrt_tensor t{};
  t.struct_size = sizeof t;
  t.dtype = dtype;
  t.rank = static_cast<uint32_t>(dims.size());
  t.data = const_cast<char*>(bytes.data());
  t.bytes = bytes.size();
  t.dims = dims.data();
  return t;
}

pfrt_io Array::io() const {
  pfrt_io io{};
  io.struct_size = sizeof io;
  io.tensor = view();
  return io;
}

Array floats(std::vector<int64_t> dims, const std::vector<float>& values) {
  return array(std::move(dims), values);
}
Array noise(std::vector<int64_t> dims, uint32_t seed) {
  int64_t count = 1;
  for (const int64_t d : dims) count *= d;
  return floats(std::move(dims), random_floats(static_cast<size_t>(count), seed));
}
Array int64s(std::vector<int64_t> dims, const std::vector<int64_t>& values) {
  return array(std::move(dims), values);
}

std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::minstd_rand engine(seed + 1);
  std::vector<float> out(count);
  for (float& f : out) f = static_cast<float>(engine() % 2000003u) / 1000001.5f - 1.0f;
  return out;
}

Array array_of(const pfrt_value* value) {
  pfrt_tensor t{};
  t.struct_size = sizeof t;
  EXPECT_TRUE(ok(api().value->tensor(value, &t)));
  Array out{t.dtype, {t.dims, t.dims + t.rank}, {}};
  out.bytes.resize(t.bytes);
  if (t.bytes) std::memcpy(out.bytes.data(), t.data, t.bytes);
  return out;
}

Handle<pfrt_value> value_of(const Array& array) {
  pfrt_value* raw = nullptr;
  EXPECT_TRUE(
      ok(api().value->create_tensor(array.dtype, array.dims.data(), array.dims.size(), &raw)));
  pfrt_tensor t{};
  t.struct_size = sizeof t;
  EXPECT_TRUE(ok(api().value->tensor(raw, &t)));
  EXPECT_EQ(t.bytes, array.bytes.size());
  if (t.bytes == array.bytes.size() && t.bytes) std::memcpy(t.data, array.bytes.data(), t.bytes);
  return Handle<pfrt_value>(raw);
}

Attr Attr::of_int(std::string name, int64_t value) {
  Attr a;
  a.name = std::move(name);
  a.type = PFRT_ATTR_INT;
  a.i = value;
  return a;
}
Attr Attr::of_float(std::string name, float value) {
  Attr a;
  a.name = std::move(name);
  a.type = PFRT_ATTR_FLOAT;
  a.f = value;
  return a;
}
Attr Attr::of_string(std::string name, std::string value) {
  Attr a;
  a.name = std::move(name);
  a.type = PFRT_ATTR_STRING;
  a.s = std::move(value);
  return a;
}
Attr Attr::of_ints(std::string name, std::vector<int64_t> values) {
  Attr a;
  a.name = std::move(name);
  a.type = PFRT_ATTR_INTS;
  a.ints = std::move(values);
  return a;
}
Attr Attr::of_graph(std::string name, pfrt_graph* graph) {
  Attr a;
  a.name = std::move(name);
  a.type = PFRT_ATTR_GRAPH;
  a.graph = graph;
  return a;
}

GraphBuilder::GraphBuilder(std::string_view name) {
  pfrt_graph* raw = nullptr;
  EXPECT_TRUE(ok(api().graph->create(str(name), &raw)));
  graph_.reset(raw);
}

GraphBuilder::GraphBuilder(GraphBuilder& outer, std::string_view name) {
  pfrt_graph* raw = nullptr;
  EXPECT_TRUE(ok(api().graph->create_subgraph(outer.get(), str(name), &raw)));
  graph_.reset(raw);
}

void GraphBuilder::opset(int64_t version, std::string_view domain) {
  EXPECT_TRUE(ok(api().graph->set_opset(get(), str(domain), version)));
}

void GraphBuilder::input(std::string_view name, pfrt_dtype dtype,
                         const std::vector<DimSpec>& dims) {
  std::vector<int64_t> sizes;
  std::vector<pfrt_string> names;
  for (const DimSpec& d : dims) {
    sizes.push_back(d.size);
    names.push_back(str(d.name));
  }
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  info.kind = PFRT_VALUE_TENSOR;
  info.dtype = dtype;
  info.rank = static_cast<int32_t>(dims.size());
  info.name = str(name);
  info.dims = sizes.data();
  info.dim_names = names.data();
  EXPECT_TRUE(ok(api().graph->add_input(get(), &info)));
}

void GraphBuilder::output(std::string_view name) {
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  info.rank = -1;
  info.name = str(name);
  EXPECT_TRUE(ok(api().graph->add_output(get(), &info)));
}

void GraphBuilder::constant(std::string_view name, const Array& value) {
  const pfrt_tensor t = value.view();
  EXPECT_TRUE(ok(api().graph->add_initializer(get(), str(name), &t, 0, nullptr, nullptr)));
}

Failure GraphBuilder::try_node(std::string_view op, const std::vector<std::string>& inputs,
                               const std::vector<std::string>& outputs,
                               const std::vector<Attr>& attrs, std::string_view name,
                               std::string_view domain, uint32_t* out_id) {
  const auto in = views(inputs), out = views(outputs);
  std::vector<std::vector<pfrt_string>> strings;
  for (const Attr& a : attrs) strings.push_back(views(a.strings));
  std::vector<pfrt_attr> list;
  for (size_t i = 0; i < attrs.size(); ++i) {
    const Attr& from = attrs[i];
    pfrt_attr a{};
    a.struct_size = sizeof a;
    a.type = from.type;
    a.name = str(from.name);
    a.i = from.i;
    a.f = from.f;
    a.s = str(from.s);
    a.ints = from.ints.data();
    a.floats = from.floats.data();
    a.strings = strings[i].data();
    a.count = from.ints.size() + from.floats.size() + from.strings.size();
    a.graph = from.graph;
    a.tensor = from.tensor;
    list.push_back(a);
  }
  pfrt_node node{};
  node.struct_size = sizeof node;
  node.name = str(name);
  node.op = str(op);
  node.domain = str(domain);
  node.inputs = in.data();
  node.input_count = in.size();
  node.outputs = out.data();
  node.output_count = out.size();
  node.attrs = list.data();
  node.attr_count = list.size();
  return take(api().graph->add_node(get(), &node, out_id));
}

uint32_t GraphBuilder::node(std::string_view op, const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs, const std::vector<Attr>& attrs,
                            std::string_view name, std::string_view domain) {
  uint32_t id = 0;
  EXPECT_TRUE(ok(try_node(op, inputs, outputs, attrs, name, domain, &id)));
  return id;
}

Handle<pfrt_model> make_model(pfrt_env* env, const GraphBuilder& graph) {
  pfrt_model* raw = nullptr;
  EXPECT_TRUE(ok(api().model->from_graph(env, graph.get(), nullptr, &raw)));
  return Handle<pfrt_model>(raw);
}

Failure try_model(pfrt_env* env, const GraphBuilder& graph) {
  pfrt_model* raw = nullptr;
  Failure failure = take(api().model->from_graph(env, graph.get(), nullptr, &raw));
  EXPECT_EQ(failure.ok(), raw != nullptr);
  api().model->release(raw);
  return failure;
}

Handle<pfrt_session> make_session(pfrt_env* env, pfrt_model* model, const pfrt_options* options,
                                  const std::vector<std::string>& extra) {
  pfrt_session* raw = nullptr;
  EXPECT_TRUE(ok(create_session(env, model, options, extra, &raw)));
  return Handle<pfrt_session>(raw);
}

Handle<pfrt_session> make_session(pfrt_env* env, const GraphBuilder& graph,
                                  const pfrt_options* options,
                                  const std::vector<std::string>& extra) {
  const auto model = make_model(env, graph);
  return model ? make_session(env, model.get(), options, extra) : nullptr;
}

Failure try_session(pfrt_env* env, pfrt_model* model, const pfrt_options* options,
                    const std::vector<std::string>& extra) {
  pfrt_session* raw = nullptr;
  Failure failure = create_session(env, model, options, extra, &raw);
  EXPECT_EQ(failure.ok(), raw != nullptr);
  api().session->release(raw);
  return failure;
}

Failure try_session(pfrt_env* env, const GraphBuilder& graph, const pfrt_options* options,
                    const std::vector<std::string>& extra) {
  pfrt_model* raw = nullptr;
  Failure failure = take(api().model->from_graph(env, graph.get(), nullptr, &raw));
  const Handle<pfrt_model> model(raw);
  return failure.ok() ? try_session(env, model.get(), options, extra) : failure;
}

std::vector<std::string> providers_of(const pfrt_session* session) {
  std::vector<std::string> out;
  for (size_t i = 0; i < api().session->provider_state_count(session); ++i) {
    pfrt_provider_state state{};
    state.struct_size = sizeof state;
    EXPECT_TRUE(ok(api().session->provider_state(session, i, &state)));
    if (state.condition != PFRT_PROVIDER_FAILED) out.push_back(text(state.name));
  }
  return out;
}

Failure try_run(pfrt_session* session, const std::vector<Array>& inputs,
                std::vector<Array>* outputs, const pfrt_run_desc* desc) {
  std::vector<pfrt_io> in, out(api().session->output_count(session));
  for (const Array& a : inputs) in.push_back(a.io());
  for (pfrt_io& io : out) io.struct_size = sizeof io;
  Failure failure =
      take(api().session->run(session, in.data(), in.size(), out.data(), out.size(), desc));
  if (outputs) outputs->clear();
  for (pfrt_io& io : out) {
    EXPECT_EQ(failure.ok(), io.value != nullptr);
    if (outputs && io.value && api().value->kind(io.value) == PFRT_VALUE_TENSOR)
      outputs->push_back(array_of(io.value));
    api().value->release(io.value);
  }
  return failure;
}

std::vector<Array> run(pfrt_session* session, const std::vector<Array>& inputs,
                       const pfrt_run_desc* desc) {
  std::vector<Array> outputs;
  EXPECT_TRUE(ok(try_run(session, inputs, &outputs, desc)));
  return outputs;
}

GraphBuilder add_graph() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 3});
  g.constant("b", floats({3}, {1, 2, 3}));
  g.node("Add", {"x", "b"}, {"y"}, {}, "add");
  g.output("y");
  return g;
}

GraphBuilder slow_graph() {
  constexpr int64_t kSize = 512;
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {kSize, kSize});
  g.constant("w", floats({kSize, kSize}, random_floats(kSize * kSize, 7)));
  std::string last = "x";
  for (int i = 0; i < 400; ++i) {
    const std::string next = "y" + std::to_string(i);
    g.node("MatMul", {last, "w"}, {next});
    last = next;
  }
  g.output(last);
  return g;
}

GraphBuilder two_products() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 512});
  g.constant("w", floats({512, 512}, random_floats(512 * 512, 1)));
  g.node("MatMul", {"x", "w"}, {"h"}, {}, "first");
  g.node("MatMul", {"h", "w"}, {"y"}, {}, "second");
  g.output("y");
  return g;
}

}  // namespace pfrt_test

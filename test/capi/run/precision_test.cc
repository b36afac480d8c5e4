// SPDX-License-Identifier: Apache-2.0
//
// Precision "auto", with a provider of the test's own whose products err as they are told.
#include <array>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "pyflame_rt/custom.h"
#include "test/capi/client.h"
#include "test/plugins/compile_each.h"

namespace pfrt_test {
namespace {

constexpr int64_t kSize = 4;

// Relative error of product "m<i>" at each precision.
constexpr std::array<float, 3> kBf16 = {1e-4f, 1e-3f, 0.1f}, kFast = {1e-5f, 1e-4f, 1e-3f};

struct Product {
  float error;
  uint32_t input, output;
  const float* weights;
  uint32_t node;
  int64_t rows = 0;
  pfrt_buffer buffers[2]{};
  pfrt_step step{};
  uint32_t read = 0, write = 1;
};

pfrt_code claim(pfrt_provider*, const pfrt_snapshot* s, const pfrt_claims* claims,
                const pfrt_sink*) {
  for (uint32_t n = 0; n < s->node_count; ++n)
    if (text(s->nodes[n].op) == "MatMul")
      claims->accept(claims, n, 1, 0);
    else
      claims->refuse(claims, n, str("it multiplies, nothing else"));
  return PFRT_CODE_OK;
}

pfrt_code compile_one(pfrt_provider*, const pfrt_region* region, const pfrt_sink*,
                      pfrt_executable** out) {
  const pfrt_snapshot* s = region->snapshot;
  const pfrt_snapshot_node& node = s->nodes[region->nodes[0]];
  const pfrt_compile_hints hints = region->node_hints ? region->node_hints[0] : region->hints;
  const size_t index = static_cast<size_t>(text(node.name).back() - '0');
  const float error = (hints & PFRT_COMPILE_BF16)   ? kBf16[index]
                      : (hints & PFRT_COMPILE_FAST) ? kFast[index]
                                                    : 0.0f;
  *out = reinterpret_cast<pfrt_executable*>(
      new Product{error, node.inputs[0], node.outputs[0],
                  static_cast<const float*>(s->values[node.inputs[1]].data), region->nodes[0]});
  return PFRT_CODE_OK;
}

void release_executable(pfrt_executable* e) { delete reinterpret_cast<Product*>(e); }

pfrt_code multiply(void* state, const pfrt_step_context* context) {
  const auto& p = *static_cast<const Product*>(state);
  const auto* x = static_cast<const float*>(context->buffers[0]);
  auto* y = static_cast<float*>(context->buffers[1]);
  for (int64_t i = 0; i < p.rows; ++i)
    for (int64_t j = 0; j < kSize; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < kSize; ++k)
        sum +=
            static_cast<double>(x[i * kSize + k]) * static_cast<double>(p.weights[k * kSize + j]);
      y[i * kSize + j] = static_cast<float>(sum * (1 + static_cast<double>(p.error)));
    }
  return PFRT_CODE_OK;
}

pfrt_code specialise(pfrt_executable* e, const pfrt_shapes* shapes, const pfrt_sink* sink,
                     pfrt_program* out) {
  const uint32_t input = reinterpret_cast<Product*>(e)->input;
  if (shapes->ranks[input] < 0)
    return sink->fail(sink, PFRT_CODE_UNSUPPORTED, PFRT_NO_INDEX, str("rows are not known"));
  auto* p = new Product(*reinterpret_cast<Product*>(e));
  p->rows = shapes->dims[p->input][0];
  p->buffers[0].kind = PFRT_BUFFER_IN;
  p->buffers[1].kind = PFRT_BUFFER_OUT;
  for (pfrt_buffer& b : p->buffers)
    b.bytes = static_cast<uint64_t>(p->rows * kSize) * sizeof(float);
  p->step.run = multiply;
  p->step.state = p;
  p->step.reads = &p->read;
  p->step.writes = &p->write;
  p->step.read_count = p->step.write_count = 1;
  p->step.nodes = &p->node;
  p->step.node_count = 1;
  p->step.kernel = str("multiply");
  out->buffer_size = sizeof(pfrt_buffer);
  out->step_size = sizeof(pfrt_step);
  out->buffer_count = 2;
  out->step_count = 1;
  out->buffers = p->buffers;
  out->steps = &p->step;
  out->handle = p;
  return PFRT_CODE_OK;
}

const pfrt_provider_table& multiplier() {
  static const pfrt_provider_table table = [] {
    pfrt_provider_table t{};
    t.struct_size = sizeof t;
    t.abi = PFRT_ABI_VERSION;
    t.devices = str("multiplier");
    t.close = [](pfrt_provider*) {};
    t.claim = claim;
    t.compile = compile_each<compile_one, release_executable>;
    t.release_executable = release_executable;
    t.specialise = specialise;
    t.release_program = [](pfrt_executable*, pfrt_program* p) {
      delete static_cast<Product*>(p->handle);
    };
    return t;
  }();
  return table;
}

Handle<pfrt_env> env_with_multiplier() {
  auto env = make_env();
  pfrt_client_provider c{};
  c.struct_size = sizeof c;
  c.abi = PFRT_ABI_VERSION;
  c.name = str("MultiplierExecutionProvider");
  c.table = &multiplier();
  c.open = [](void*, pfrt_string, const pfrt_key_value*, size_t, const pfrt_sink*,
              pfrt_provider** out) -> pfrt_code {
    static int opened;
    *out = reinterpret_cast<pfrt_provider*>(&opened);
    return PFRT_CODE_OK;
  };
  EXPECT_TRUE(ok(api().env->register_provider(env.get(), &c)));
  return env;
}

// Three products, one after another, whose errors add up.
GraphBuilder chain() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", kSize});
  std::string from = "x";
  for (int i = 0; i < 3; ++i) {
    const std::string n = std::to_string(i);
    std::vector<float> weights = random_floats(kSize * kSize, 7 + static_cast<uint32_t>(i));
    for (float& w : weights) w = std::fabs(w);
    g.constant("w" + n, floats({kSize, kSize}, weights));
    g.node("MatMul", {from, "w" + n}, {"p" + n}, {}, "m" + n);
    g.node("Abs", {"p" + n}, {"y" + n});
    from = "y" + n;
  }
  g.output("y2");
  return g;
}

struct Answer {
  std::vector<float> y;
  std::string kinds;  // precisions of the products: b, f or .
  std::vector<std::string> notes;
};

Answer answer(const Settings& settings, const Array& x) {
  const auto env = env_with_multiplier();
  Settings all = {{"providers", "MultiplierExecutionProvider,CPUExecutionProvider"}};
  all.insert(all.end(), settings.begin(), settings.end());
  const auto options = make_options(PFRT_OPTIONS_SESSION, all);
  const auto session = make_session(env.get(), chain(), options.get());
  Answer out;
  if (!session) return out;
  out.y = run(session.get(), {x})[0].as<float>();
  pfrt_report* made = nullptr;
  EXPECT_TRUE(ok(api().session->explain(session.get(), &made)));
  const Handle<pfrt_report> report(made);
  for (size_t i = 0; i < api().report->row_count(report.get()); ++i) {
    pfrt_report_row step{};
    step.struct_size = sizeof step;
    EXPECT_TRUE(ok(api().report->row_at(report.get(), i, &step)));
    if (text(step.kernel) != "multiply") continue;
    const std::string why = text(step.reason);
    out.kinds += why.find("bf16") != std::string::npos   ? "b"
                 : why.find("fast") != std::string::npos ? "f"
                                                         : ".";
  }
  for (size_t i = 0; i < api().report->note_count(report.get()); ++i)
    out.notes.push_back(text(api().report->note_at(report.get(), i)));
  return out;
}

double error(const Answer& a, const Answer& exact) {
  double error = 0, largest = 0;
  for (size_t i = 0; i < exact.y.size(); ++i) {
    error =
        std::max(error, std::fabs(static_cast<double>(a.y[i]) - static_cast<double>(exact.y[i])));
    largest = std::max(largest, std::fabs(static_cast<double>(exact.y[i])));
  }
  return error / largest;
}

TEST(PrecisionAuto, takes_the_cheapest_that_stays_inside_the_error) {
  const Array x = floats({2, kSize}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Answer exact = answer({}, x);
  EXPECT_EQ(exact.kinds, "...");
  const Answer wide = answer({{"precision", "auto"}, {"max_error", "0.01"}}, x);
  EXPECT_EQ(wide.kinds, "bbf");
  EXPECT_LE(error(wide, exact), 0.01);
  EXPECT_GT(error(wide, exact), 0.001);
  const Answer narrow = answer({{"precision", "auto"}, {"max_error", "0.0005"}}, x);
  EXPECT_EQ(narrow.kinds, "bf.");
  EXPECT_LE(error(narrow, exact), 0.0005);
  const Answer all = answer({{"precision", "auto"}, {"max_error", "1"}}, x);
  EXPECT_EQ(all.kinds, "bbb");
  const Answer none = answer({{"precision", "auto"}, {"max_error", "0"}}, x);
  EXPECT_EQ(none.kinds, "...");
  EXPECT_EQ(none.y, exact.y);
}

TEST(PrecisionAuto, says_what_it_chose_and_on_what) {
  const Array x = floats({1, kSize}, {1, 2, 3, 4});
  const Answer found = answer({{"precision", "auto"}, {"max_error", "0.01"}}, x);
  std::string notes;
  for (const std::string& note : found.notes) notes += note + "\n";
  EXPECT_NE(notes.find("of 3 products 2 bf16, 1 fast, 0 fp32"), std::string::npos) << notes;
  EXPECT_NE(notes.find("inputs made up"), std::string::npos) << notes;
}

TEST(PrecisionAuto, is_measured_on_given_samples) {
  const auto env = env_with_multiplier();
  const auto options = make_options(
      PFRT_OPTIONS_SESSION,
      {{"providers", "MultiplierExecutionProvider,CPUExecutionProvider"}, {"precision", "auto"}});
  const auto model = make_model(env.get(), chain());
  const auto create = [&](std::string_view name, const Array& array) {
    const Handle<pfrt_value> value = value_of(array);
    const pfrt_string names[] = {str(name)};
    pfrt_value* const values[] = {value.get()};
    const pfrt_sample sample{sizeof sample, 0, names, values, 1};
    pfrt_session_desc desc{};
    desc.struct_size = sizeof desc;
    desc.model = model.get();
    desc.options = options.get();
    desc.samples = &sample;
    desc.sample_count = 1;
    pfrt_session* session = nullptr;
    Failure failure = take(api().session->create(env.get(), &desc, &session));
    std::string note;
    if (session) {
      pfrt_report* report = nullptr;
      EXPECT_TRUE(ok(api().session->explain(session, &report)));
      for (size_t i = 0; i < api().report->note_count(report); ++i)
        note += text(api().report->note_at(report, i)) + "\n";
      api().report->release(report);
      api().session->release(session);
    }
    return std::pair(std::move(failure), std::move(note));
  };
  const auto given = create("x", floats({3, kSize}, std::vector<float>(3 * kSize, 0.5f)));
  EXPECT_TRUE(ok(given.first));
  EXPECT_NE(given.second.find("1 given inputs"), std::string::npos) << given.second;
  EXPECT_TRUE(fails(create("z", floats({1, kSize}, {1, 2, 3, 4})).first, PFRT_CODE_INPUT, {"z"}));
  EXPECT_TRUE(fails(create("x", floats({1, 3}, {1, 2, 3})).first, PFRT_CODE_SHAPE_MISMATCH,
                    {"sample 0", "x"}));
  EXPECT_TRUE(fails(create("x", int64s({1, kSize}, {1, 2, 3, 4})).first, PFRT_CODE_DTYPE_MISMATCH,
                    {"sample 0", "x"}));
}

// ---- samples that are asked for one by one ----

// Gives samples of input "x", and counts what is alive of them.
struct Source {
  std::vector<std::vector<float>> samples;  // rows of x
  std::string name = "x";
  int alive = 0, most_alive = 0, reads = 0, rewinds = 0;
  int fail_at_read = -1;
  pfrt_code code = PFRT_CODE_OK;
  bool throws = false, endless = false;

  pfrt_sample_source get() {
    pfrt_sample_source source{};
    source.struct_size = sizeof source;
    source.user = this;
    source.next = [](void* user, pfrt_sample* out) {
      return static_cast<Source*>(user)->next(*out);
    };
    source.rewind = [](void* user) -> pfrt_code {
      auto& self = *static_cast<Source*>(user);
      self.at_ = 0;
      ++self.rewinds;
      return PFRT_CODE_OK;
    };
    return source;
  }

 private:
  pfrt_code next(pfrt_sample& out) {
    EXPECT_EQ(out.struct_size, sizeof out);
    EXPECT_EQ(out.count, 0u);
    value_.reset();
    if (reads++ == fail_at_read) {
      if (throws) throw std::runtime_error("thrown");
      return code;
    }
    if (at_ == samples.size() && endless) at_ = 0;
    if (at_ == samples.size()) return PFRT_CODE_OK;
    const std::vector<float>& row = samples[at_++];
    auto* kept = new std::pair<Source*, Array>(
        this, floats({static_cast<int64_t>(row.size()) / kSize, kSize}, row));
    most_alive = std::max(most_alive, ++alive);
    const pfrt_tensor view = kept->second.view();
    pfrt_value* value = nullptr;
    EXPECT_TRUE(ok(api().value->wrap_tensor(
        &view,
        [](void* user, void*) {
          auto* all = static_cast<std::pair<Source*, Array>*>(user);
          --all->first->alive;
          delete all;
        },
        kept, &value)));
    value_.reset(value);
    names_[0] = str(name);
    values_[0] = value;
    out.names = names_;
    out.values = values_;
    out.count = 1;
    return PFRT_CODE_OK;
  }
  size_t at_ = 0;
  Handle<pfrt_value> value_;
  pfrt_string names_[1] = {};
  pfrt_value* values_[1] = {};
};

struct Made {
  Failure failure;
  std::string notes;
  Handle<pfrt_session> session;
};

Made create_with(pfrt_env* env, const GraphBuilder& g, const Settings& settings,
                 const pfrt_sample_source* source) {
  const auto options = make_options(PFRT_OPTIONS_SESSION, settings);
  const auto model = make_model(env, g);
  pfrt_session_desc desc{};
  desc.struct_size = sizeof desc;
  desc.model = model.get();
  desc.options = options.get();
  desc.sample_source = source;
  pfrt_session* raw = nullptr;
  Made out;
  out.failure = take(api().session->create(env, &desc, &raw));
  out.session.reset(raw);
  if (!raw) return out;
  pfrt_report* report = nullptr;
  EXPECT_TRUE(ok(api().session->explain(raw, &report)));
  for (size_t i = 0; i < api().report->note_count(report); ++i)
    out.notes += text(api().report->note_at(report, i)) + "\n";
  api().report->release(report);
  return out;
}

const Settings kAuto = {{"providers", "MultiplierExecutionProvider,CPUExecutionProvider"},
                        {"precision", "auto"}};

// y = x W - 1, where W leaves x as it is: near x = 1, y has little but the error of the product.
GraphBuilder cancelling() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", kSize});
  std::vector<float> unit(kSize * kSize);
  for (size_t i = 0; i < kSize; ++i) unit[i * kSize + i] = 1;
  g.constant("w0", floats({kSize, kSize}, unit));
  g.constant("one", floats({}, {1}));
  g.node("MatMul", {"x", "w0"}, {"p0"}, {}, "m0");
  g.node("Sub", {"p0", "one"}, {"y"});
  g.output("y");
  return g;
}

TEST(SampleSource, is_read_one_sample_at_a_time) {
  const auto env = env_with_multiplier();
  Source source;
  for (int i = 0; i < 9; ++i)
    source.samples.push_back(std::vector<float>(kSize, 10.0f + static_cast<float>(i)));
  const pfrt_sample_source c = source.get();
  const Made made = create_with(env.get(), cancelling(), kAuto, &c);
  ASSERT_TRUE(ok(made.failure));
  EXPECT_NE(made.notes.find("9 given inputs"), std::string::npos) << made.notes;
  EXPECT_NE(made.notes.find("1 bf16"), std::string::npos) << made.notes;
  EXPECT_EQ(source.most_alive, 1);
  EXPECT_GT(source.rewinds, 2);
  const int reads = source.reads;
  run(made.session.get(), {floats({1, kSize}, {1, 2, 3, 4})});
  EXPECT_EQ(source.reads, reads) << "it is read by create alone";
}

TEST(SampleSource, counts_with_its_last_sample_as_a_list_does) {
  const auto env = env_with_multiplier();
  Source source;
  source.samples.assign(5, std::vector<float>(kSize, 10.0f));
  source.samples.push_back(std::vector<float>(kSize, 1.001f));
  const pfrt_sample_source c = source.get();
  const Made made = create_with(env.get(), cancelling(), kAuto, &c);
  ASSERT_TRUE(ok(made.failure));
  EXPECT_NE(made.notes.find("of 1 products 0 bf16, 0 fast, 1 fp32"), std::string::npos)
      << made.notes;

  std::vector<Handle<pfrt_value>> values;
  std::vector<pfrt_value*> raw;
  for (const auto& row : source.samples) {
    values.push_back(value_of(floats({1, kSize}, row)));
    raw.push_back(values.back().get());
  }
  const pfrt_string name = str("x");
  std::vector<pfrt_sample> list;
  for (pfrt_value*& value : raw) list.push_back({sizeof(pfrt_sample), 0, &name, &value, 1});
  const auto options = make_options(PFRT_OPTIONS_SESSION, kAuto);
  const auto model = make_model(env.get(), cancelling());
  pfrt_session_desc desc{};
  desc.struct_size = sizeof desc;
  desc.model = model.get();
  desc.options = options.get();
  desc.samples = list.data();
  desc.sample_count = list.size();
  pfrt_session* session = nullptr;
  ASSERT_TRUE(ok(api().session->create(env.get(), &desc, &session)));
  const Handle<pfrt_session> owner(session);
  pfrt_report* report = nullptr;
  ASSERT_TRUE(ok(api().session->explain(session, &report)));
  const Handle<pfrt_report> report_owner(report);
  std::string notes;
  for (size_t i = 0; i < api().report->note_count(report); ++i)
    notes += text(api().report->note_at(report, i)) + "\n";
  EXPECT_NE(notes.find("of 1 products 0 bf16, 0 fast, 1 fp32"), std::string::npos) << notes;

  desc.sample_source = &c;
  pfrt_session* none = nullptr;
  EXPECT_TRUE(fails(api().session->create(env.get(), &desc, &none), PFRT_CODE_INVALID_ARGUMENT,
                    {"samples and a sample_source"}));
}

TEST(SampleSource, without_samples_leaves_made_up_inputs) {
  const auto env = env_with_multiplier();
  Source source;
  const pfrt_sample_source c = source.get();
  const Made made = create_with(env.get(), chain(), kAuto, &c);
  ASSERT_TRUE(ok(made.failure));
  EXPECT_NE(made.notes.find("inputs made up"), std::string::npos) << made.notes;
}

TEST(SampleSource, is_not_read_where_nothing_needs_it) {
  const auto env = env_with_multiplier();
  Source source;
  source.samples.push_back({1, 2, 3, 4});
  const pfrt_sample_source c = source.get();
  EXPECT_TRUE(
      ok(create_with(env.get(), chain(), {{"providers", "CPUExecutionProvider"}}, &c).failure));
  EXPECT_EQ(source.reads, 0);
}

TEST(SampleSource, errors_are_those_of_create) {
  const auto env = env_with_multiplier();
  for (const int at : {0, 1, 5, 9}) {
    Source source;
    source.samples.assign(3, {1, 2, 3, 4});
    source.fail_at_read = at;
    source.code = PFRT_CODE_IO;
    const pfrt_sample_source c = source.get();
    EXPECT_TRUE(fails(create_with(env.get(), chain(), kAuto, &c).failure, PFRT_CODE_IO,
                      {"creating a session", "reading sample", "input/output error"}))
        << at;
  }
  Source source;
  source.samples.assign(3, {1, 2, 3, 4});
  source.fail_at_read = 1;
  source.throws = true;
  pfrt_sample_source c = source.get();
  EXPECT_TRUE(fails(create_with(env.get(), chain(), kAuto, &c).failure, PFRT_CODE_INTERNAL,
                    {"reading sample 1", "exception escaped"}));
  Source other;
  other.samples.assign(3, {1, 2, 3, 4});
  other.name = "z";
  c = other.get();
  EXPECT_TRUE(fails(create_with(env.get(), chain(), kAuto, &c).failure, PFRT_CODE_INPUT,
                    {"sample 0", "'z'"}));
  for (const bool next : {true, false}) {
    pfrt_sample_source half = source.get();
    (next ? reinterpret_cast<void*&>(half.next) : reinterpret_cast<void*&>(half.rewind)) = nullptr;
    EXPECT_TRUE(fails(create_with(env.get(), chain(), kAuto, &half).failure,
                      PFRT_CODE_INVALID_ARGUMENT,
                      {next ? "desc.sample_source.next" : "desc.sample_source.rewind"}));
  }
}

TEST(SampleSource, that_has_no_end_is_stopped_by_the_deadline) {
  const auto env = env_with_multiplier();
  for (const char* option : {"precision", "verify"}) {
    Source source;
    source.samples.push_back({1, 2, 3, 4});
    source.endless = true;
    const pfrt_sample_source c = source.get();
    Settings settings = {{"create_timeout_ms", "300"}};
    settings.emplace_back(option, std::string_view(option) == "verify" ? "on" : "auto");
    EXPECT_TRUE(
        fails(create_with(env.get(), chain(), settings, &c).failure, PFRT_CODE_DEADLINE, {}))
        << option;
    EXPECT_EQ(source.most_alive, 1);
  }
}

// Makes Relu take 0 where its input is 12345, which no input made up is.
pfrt_code spoil(void*, pfrt_pass_call* call) {
  const pfrt_graph_api& g = *call->api->graph;
  const auto add = [&](const char* name, float value) {
    Array array = floats({}, {value});
    const pfrt_tensor view = array.view();
    return ok(g.add_initializer(call->graph, str(name), &view, 0, nullptr, nullptr));
  };
  EXPECT_TRUE(add("bad", 12345));
  EXPECT_TRUE(add("nothing", 0));
  const auto node = [&](const char* op, const std::vector<pfrt_string>& in, const char* out) {
    pfrt_node n{};
    n.struct_size = sizeof n;
    n.op = str(op);
    n.inputs = in.data();
    n.input_count = in.size();
    const pfrt_string name = str(out);
    n.outputs = &name;
    n.output_count = 1;
    EXPECT_TRUE(ok(g.add_node(call->graph, &n, nullptr)));
  };
  node("Equal", {str("x"), str("bad")}, "is_bad");
  node("Where", {str("is_bad"), str("nothing"), str("x")}, "other");
  uint32_t relu = 0;
  EXPECT_TRUE(ok(g.find_node(call->graph, str("relu"), &relu)));
  const pfrt_string other = str("other");
  EXPECT_TRUE(ok(g.set_node_inputs(call->graph, relu, &other, 1)));
  call->stats->modified = 1;
  return PFRT_CODE_OK;
}

TEST(SampleSource, is_what_passes_are_verified_with) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", kSize});
  g.node("Relu", {"x"}, {"y"}, {}, "relu");
  g.output("y");
  for (const bool given : {false, true}) {
    const auto env = make_env();
    pfrt_custom_pass pass{};
    pass.struct_size = sizeof pass;
    pass.abi = PFRT_ABI_VERSION;
    pass.name = str("Spoil");
    pass.run = spoil;
    ASSERT_TRUE(ok(api().env->register_pass(env.get(), &pass)));
    Source source;
    source.samples.assign(6, {1, 2, 3, 4});
    if (given) source.samples[4] = {1, 2, 12345, 4};
    const pfrt_sample_source c = source.get();
    const Made made = create_with(env.get(), g, {{"verify", "on"}}, &c);
    ASSERT_TRUE(ok(made.failure));
    EXPECT_EQ(made.notes.find("'Spoil' changes results") != std::string::npos, given) << made.notes;
    EXPECT_EQ(made.notes.find(", given") != std::string::npos, given) << made.notes;
    EXPECT_EQ(source.most_alive, 1);
    EXPECT_EQ(run(made.session.get(), {floats({1, kSize}, {0, 0, 12345, 0})})[0].as<float>()[2],
              given ? 12345.0f : 0.0f);
  }
}

TEST(PrecisionAuto, max_error_is_its_own) {
  const auto env = make_env();
  auto options = make_options(PFRT_OPTIONS_SESSION, {{"max_error", "0.01"}});
  EXPECT_TRUE(fails(try_session(env.get(), add_graph(), options.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"max_error", "auto", "fp32"}));
  options = make_options(PFRT_OPTIONS_SESSION, {{"precision", "auto"}});
  EXPECT_TRUE(fails(api().options->set_text(options.get(), str("max_error"), str("-1")),
                    PFRT_CODE_INVALID_ARGUMENT, {"max_error", "-1"}));
  EXPECT_TRUE(ok(try_session(env.get(), add_graph(), options.get())));
}

TEST(NodePrecision, is_that_of_the_node_in_place_of_all) {
  const Array x = floats({2, kSize}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Answer exact = answer({}, x);
  const Answer one = answer({{"node_precision", "m1=bf16"}}, x);
  EXPECT_EQ(one.kinds, ".b.");
  EXPECT_NEAR(error(one, exact), static_cast<double>(kBf16[1]), 1e-5);
  // A node may be named by its output; other nodes have the session's precision.
  EXPECT_EQ(answer({{"node_precision", "p0=fast,m2=bf16"}}, x).kinds, "f.b");
  const Answer all_but_one = answer({{"precision", "bf16"}, {"node_precision", "m2=fp32"}}, x);
  const double first_two = static_cast<double>(kBf16[0]) + static_cast<double>(kBf16[1]);
  EXPECT_NEAR(error(all_but_one, exact), first_two, 1e-5);
}

// Three products, in the branches of an If, of which one has a Loop around its product.
GraphBuilder nested() {
  GraphBuilder g;
  g.input("c", PFRT_DTYPE_BOOL, {});
  g.input("x", PFRT_DTYPE_FLOAT32, {2, kSize});
  std::vector<float> weights = random_floats(kSize * kSize, 7);
  for (float& w : weights) w = std::fabs(w);
  g.constant("w", floats({kSize, kSize}, weights));
  g.constant("once", int64s({}, {1}));
  g.node("MatMul", {"x", "w"}, {"a"}, {}, "m0");
  GraphBuilder yes(g, "yes");
  yes.node("MatMul", {"a", "w"}, {"t"}, {}, "m1");
  yes.output("t");
  GraphBuilder no(g, "no");
  GraphBuilder body(no, "body");
  body.input("i", PFRT_DTYPE_INT64, {});
  body.input("go", PFRT_DTYPE_BOOL, {});
  body.input("v", PFRT_DTYPE_FLOAT32, {2, kSize});
  body.node("Identity", {"go"}, {"go_on"});
  body.node("MatMul", {"v", "w"}, {"u"}, {}, "a/m2");
  body.output("go_on");
  body.output("u");
  no.node("Loop", {"once", "", "a"}, {"f"}, {Attr::of_graph("body", body.get())}, "again");
  no.output("f");
  g.node("If", {"c"}, {"y"},
         {Attr::of_graph("then_branch", yes.get()), Attr::of_graph("else_branch", no.get())},
         "choose");
  g.output("y");
  return g;
}

TEST(NodePrecision, reaches_nodes_of_bodies) {
  const auto env = env_with_multiplier();
  const Array x = floats({2, kSize}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto result = [&](bool yes, const Settings& settings) {
    Settings all = {{"providers", "MultiplierExecutionProvider,CPUExecutionProvider"}};
    all.insert(all.end(), settings.begin(), settings.end());
    const auto options = make_options(PFRT_OPTIONS_SESSION, all);
    const auto session = make_session(env.get(), nested(), options.get());
    Array c{PFRT_DTYPE_BOOL, {}, {static_cast<char>(yes)}};
    return Answer{run(session.get(), {c, x})[0].as<float>(), {}, {}};
  };
  const Answer yes = result(true, {}), no = result(false, {});
  const auto expect = [&](const char* setting, double of_yes, double of_no) {
    SCOPED_TRACE(setting);
    EXPECT_NEAR(error(result(true, {{"node_precision", setting}}), yes), of_yes, of_yes / 50);
    EXPECT_NEAR(error(result(false, {{"node_precision", setting}}), no), of_no, of_no / 50);
  };
  const double bf16[] = {static_cast<double>(kBf16[0]), static_cast<double>(kBf16[1]),
                         static_cast<double>(kBf16[2])};
  expect("choose/m1=bf16", bf16[1], 0);
  expect("y/t=bf16", bf16[1], 0);
  // A name may have a '/' itself.
  expect("choose/again/a/m2=bf16", 0, bf16[2]);
  expect("choose/f/u=bf16", 0, bf16[2]);
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"node_precision", "m1=bf16"}});
  EXPECT_TRUE(fails(try_session(env.get(), nested(), options.get()), PFRT_CODE_NOT_FOUND, {"'m1'"}))
      << "the node around it has to be named";
}

TEST(NodePrecision, that_means_nothing_is_refused) {
  const auto env = env_with_multiplier();
  const auto refused = [&](const Settings& settings, pfrt_code code,
                           std::initializer_list<std::string_view> parts) {
    const auto options = make_options(PFRT_OPTIONS_SESSION, settings);
    EXPECT_TRUE(fails(try_session(env.get(), chain(), options.get()), code, parts));
  };
  refused({{"node_precision", "m7=bf16"}}, PFRT_CODE_NOT_FOUND, {"'m7'", "did you mean 'm"});
  for (const char* const bad : {"m1", "m1=", "=bf16", "m1=int8", "m1=auto"})
    refused({{"node_precision", bad}}, PFRT_CODE_INVALID_ARGUMENT,
            {std::string("'") + bad + "'", "NAME=ieee"});
  refused({{"precision", "auto"}, {"node_precision", "m1=bf16"}}, PFRT_CODE_INVALID_ARGUMENT,
          {"auto", "one of the two"});
}

}  // namespace
}  // namespace pfrt_test

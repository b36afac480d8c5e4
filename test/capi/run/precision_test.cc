// SPDX-License-Identifier: Apache-2.0
//
// Precision "auto", with a provider of the test's own whose products err as they are told.
#include <array>
#include <cmath>
#include <cstdlib>
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

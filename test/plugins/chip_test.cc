// SPDX-License-Identifier: Apache-2.0
//
// Whole models on a device with everything that a provider may have (chip/chip.cc): the digits
// model, and a decoder of two layers whose state stays on the device.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

struct StateReleaser {
  void operator()(pfrt_state* p) const { api().state->release(p); }
};

constexpr int64_t kWords = 50, kWidth = 32, kParts = 2, kInner = 64, kTokens = 128, kLayers = 2;
constexpr int64_t kPart = kWidth / kParts;

// Weights that keep activations near unit size.
Array weights(std::vector<int64_t> dims) {
  static uint32_t seed = 0;
  size_t count = 1;
  for (const int64_t d : dims) count *= static_cast<size_t>(d);
  std::vector<float> values = random_floats(count, ++seed);
  if (dims.size() == 2)
    for (float& v : values) v *= 1.7F / std::sqrt(static_cast<float>(dims[0]));
  return floats(std::move(dims), values);
}

// A decoder as exporters write it: each operator is a node, keys and values of earlier tokens are
// inputs, and the new ones are outputs.
class Decoder {
 public:
  Decoder() : graph_("decoder") {
    graph_.input("ids", PFRT_DTYPE_INT64, {"N", 1});
    number("third", int64s({}, {2}));
    number("two", floats({}, {2}));
    number("small", floats({}, {1e-5F}));
    number("one", floats({}, {1}));
    number("half", floats({}, {0.5F}));
    number("root_two", floats({}, {std::sqrt(2.0F)}));
    number("root_size", floats({}, {std::sqrt(static_cast<float>(kPart))}));
    number("last", int64s({1}, {-1}));
    number("split", int64s({4}, {0, 0, kParts, kPart}));
    number("join", int64s({3}, {0, 0, kWidth}));
    for (int64_t layer = 0; layer < kLayers; ++layer)
      for (const char* what : {"key", "value"})
        graph_.input(port("past", what, layer), PFRT_DTYPE_FLOAT32, {"N", kParts, "P", kPart});
    std::string x = embed();
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      x = node("Add", {x, attention(normal(x), layer)});
      x = node("Add", {x, feed_forward(normal(x))});
    }
    graph_.node("Identity", {linear(normal(x), kWidth, kWords)}, {"logits"});
    graph_.output("logits");
    for (int64_t layer = 0; layer < kLayers; ++layer)
      for (const char* what : {"key", "value"}) graph_.output(port("present", what, layer));
  }
  const GraphBuilder& graph() const { return graph_; }

 private:
  static std::string port(const char* when, const char* what, int64_t layer) {
    return std::string(when) + "_" + what + "_" + std::to_string(layer);
  }
  void number(const std::string& name, const Array& value) { graph_.constant(name, value); }
  std::string constant(const Array& value) {
    const std::string name = "c" + std::to_string(next_++);
    graph_.constant(name, value);
    return name;
  }
  std::string node(const char* op, const std::vector<std::string>& inputs,
                   const std::vector<Attr>& attrs = {}) {
    const std::string name = "v" + std::to_string(next_++);
    graph_.node(op, inputs, {name}, attrs);
    return name;
  }
  std::string linear(const std::string& x, int64_t in, int64_t out) {
    const std::string product = node("MatMul", {x, constant(weights({in, out}))});
    return node("Add", {product, constant(weights({out}))});
  }
  std::string normal(const std::string& x) {
    const std::vector<Attr> keep = {Attr::of_int("keepdims", 1)};
    const std::string centred = node("Sub", {x, node("ReduceMean", {x, "last"}, keep)});
    const std::string variance = node("ReduceMean", {node("Pow", {centred, "two"}), "last"}, keep);
    const std::string deviation = node("Sqrt", {node("Add", {variance, "small"})});
    const std::string unit = node("Div", {centred, deviation});
    return node("Add",
                {node("Mul", {unit, constant(weights({kWidth}))}), constant(weights({kWidth}))});
  }
  std::string heads(const std::string& x) {
    const std::string split = node("Reshape", {linear(x, kWidth, kWidth), "split"});
    return node("Transpose", {split}, {Attr::of_ints("perm", {0, 2, 1, 3})});
  }
  std::string remembered(const char* what, int64_t layer, const std::string& fresh) {
    const std::string present = port("present", what, layer);
    graph_.node("Concat", {port("past", what, layer), fresh}, {present}, {Attr::of_int("axis", 2)});
    return present;
  }
  std::string attention(const std::string& x, int64_t layer) {
    const std::string query = heads(x), key = remembered("key", layer, heads(x)),
                      value = remembered("value", layer, heads(x));
    const std::string turned = node("Transpose", {key}, {Attr::of_ints("perm", {0, 1, 3, 2})});
    const std::string scores = node("Div", {node("MatMul", {query, turned}), "root_size"});
    const std::string share = node("Softmax", {scores}, {Attr::of_int("axis", -1)});
    const std::string mixed =
        node("Transpose", {node("MatMul", {share, value})}, {Attr::of_ints("perm", {0, 2, 1, 3})});
    return linear(node("Reshape", {mixed, "join"}), kWidth, kWidth);
  }
  std::string feed_forward(const std::string& x) {
    const std::string in = linear(x, kWidth, kInner);
    const std::string erf = node("Erf", {node("Div", {in, "root_two"})});
    const std::string gelu = node("Mul", {node("Mul", {in, node("Add", {erf, "one"})}), "half"});
    return linear(gelu, kInner, kWidth);
  }
  std::string embed() {
    const std::vector<Attr> rows = {Attr::of_int("axis", 0)};
    const std::string dims = node("Shape", {port("past", "key", 0)});
    const std::string count = node("Gather", {dims, "third"}, rows);
    const std::string word = node("Gather", {constant(weights({kWords, kWidth})), "ids"}, rows);
    const std::string place = node("Gather", {constant(weights({kTokens, kWidth})), count}, rows);
    return node("Add", {word, place});
  }

  GraphBuilder graph_;
  int next_ = 0;
};

// Bytes that have crossed to and from the chip so far.
struct Traffic {
  int64_t to_device = 0, to_host = 0, on_device = 0;
};

class Chip : public testing::Test {
 protected:
  Handle<pfrt_session> session(const GraphBuilder& g, const char* providers = "chip,cpu") {
    const auto options = make_options(PFRT_OPTIONS_SESSION, {{"providers", providers}});
    return make_session(env_.get(), g, options.get());
  }
  Traffic traffic() {
    pfrt_ask_desc desc{};
    desc.struct_size = sizeof desc;
    desc.provider = str("chip");
    desc.verb = str("traffic");
    pfrt_reply* reply = nullptr;
    EXPECT_TRUE(ok(api().env->ask(env_.get(), &desc, &reply)));
    Traffic out;
    const std::string answer = text(api().env->reply_text(reply));
    long long to = 0, from = 0, on = 0;
    EXPECT_EQ(
        std::sscanf(answer.c_str(), "to_device %lld to_host %lld on_device %lld", &to, &from, &on),
        3)
        << answer;
    api().env->reply_release(reply);
    out.to_device = to;
    out.to_host = from;
    out.on_device = on;
    return out;
  }
  static uint64_t plans_of(const pfrt_session* session) {
    pfrt_session_statistics out{};
    out.struct_size = sizeof out;
    EXPECT_TRUE(ok(api().session->statistics(session, &out)));
    return out.plans;
  }
  static std::map<std::string, double> counters_of(pfrt_session* session, uint32_t rows_at_least,
                                                   const char* name) {
    pfrt_report* report = nullptr;
    EXPECT_TRUE(ok(api().session->explain(session, &report)));
    const Handle<pfrt_report> own(report);
    std::map<std::string, double> out;
    for (size_t i = 0; i < api().report->counter_count(report); ++i) {
      pfrt_report_counter counter{};
      counter.struct_size = sizeof counter;
      EXPECT_TRUE(ok(api().report->counter_at(report, i, &counter)));
      if (text(counter.name) == name && counter.row_count >= rows_at_least)
        out[std::to_string(counter.first_row)] = counter.value;
    }
    return out;
  }
  Handle<pfrt_env> env_ = make_env({{"plugin_path", PFRT_CHIP_PLUGINS}});
};

TEST_F(Chip, runs_the_digits_model) {
  pfrt_model* raw = nullptr;
  ASSERT_TRUE(ok(api().model->load_file(env_.get(), str(PFRT_DIGITS), nullptr, &raw)));
  const Handle<pfrt_model> model(raw);
  const auto chip = make_options(PFRT_OPTIONS_SESSION, {{"providers", "chip"}});
  const auto cpu = make_options(PFRT_OPTIONS_SESSION, {{"providers", "cpu"}});
  const auto on_chip = make_session(env_.get(), model.get(), chip.get());
  const auto on_cpu = make_session(env_.get(), model.get(), cpu.get());
  ASSERT_TRUE(on_chip && on_cpu);
  for (int64_t batch = 1; batch <= 4; ++batch) {
    const Array image = floats({batch, 1, 8, 8}, random_floats(static_cast<size_t>(64 * batch), 3));
    const auto got = run(on_chip.get(), {image})[0].as<float>(),
               want = run(on_cpu.get(), {image})[0].as<float>();
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
  }
  const auto cycles = counters_of(on_chip.get(), 1, "cycles");
  EXPECT_GE(cycles.size(), 8U);
  for (const auto& [row, value] : cycles) EXPECT_GT(value, 0) << row;
}

TEST_F(Chip, decodes_with_its_state_on_the_device) {
  const Decoder decoder;
  const auto on_chip = session(decoder.graph(), "chip"), on_cpu = session(decoder.graph(), "cpu");
  ASSERT_TRUE(on_chip && on_cpu);
  std::unique_ptr<pfrt_state, StateReleaser> states[2];
  RunDesc options[2];
  pfrt_session* const sessions[2] = {on_chip.get(), on_cpu.get()};
  for (int i = 0; i < 2; ++i) {
    pfrt_state* made = nullptr;
    ASSERT_TRUE(ok(api().state->create(sessions[i], nullptr, 0, &made)));
    states[i].reset(made);
    options[i].state = made;
  }
  const pfrt_string in = str("ids"), out = str("logits");
  Traffic before;
  int64_t token = 7;
  for (int64_t step = 0; step < 100; ++step) {
    const Array ids = int64s({1, 1}, {token});
    std::vector<float> logits[2];
    for (int i = 0; i < 2; ++i) {
      const pfrt_io fed = ids.io();
      pfrt_io result{};
      result.struct_size = sizeof result;
      ASSERT_TRUE(ok(
          api().session->run_named(sessions[i], &in, &fed, 1, &out, &result, 1, options[i].get())));
      const Handle<pfrt_value> value(result.value);
      logits[i] = array_of(value.get()).as<float>();
    }
    ASSERT_EQ(logits[0].size(), static_cast<size_t>(kWords));
    for (size_t w = 0; w < logits[0].size(); ++w)
      ASSERT_NEAR(logits[0][w], logits[1][w], 2e-4) << "step " << step << ", word " << w;
    token = std::max_element(logits[0].begin(), logits[0].end()) - logits[0].begin();
    if (step == 1) {
      before = traffic();
      EXPECT_EQ(plans_of(sessions[0]), 2U);
    }
  }
  EXPECT_EQ(api().state->length(states[0].get()), 100);
  EXPECT_EQ(plans_of(sessions[0]), 2U) << "no plan after the second step";
  EXPECT_EQ(plans_of(sessions[1]), 2U);
  const Traffic after = traffic();
  EXPECT_EQ(after.to_device - before.to_device, 98 * 8) << "the ids";
  EXPECT_EQ(after.to_host - before.to_host, 98 * kWords * 4) << "the logits";
}

// A prompt goes on in three ways, of which the best two are kept at each step, with looks ahead.
TEST_F(Chip, searches_with_the_rows_of_its_state_on_the_device) {
  const Decoder decoder;
  const auto on_chip = session(decoder.graph(), "chip"), on_cpu = session(decoder.graph(), "cpu");
  ASSERT_TRUE(on_chip && on_cpu);
  std::unique_ptr<pfrt_state, StateReleaser> states[2];
  pfrt_session* const sessions[2] = {on_chip.get(), on_cpu.get()};
  for (int i = 0; i < 2; ++i) {
    pfrt_state* made = nullptr;
    ASSERT_TRUE(ok(api().state->create(sessions[i], nullptr, 0, &made)));
    states[i].reset(made);
  }
  const auto step = [&](const std::vector<int64_t>& words, pfrt_run_flags flags) {
    const Array ids = int64s({static_cast<int64_t>(words.size()), 1}, words);
    std::vector<float> logits[2];
    for (int i = 0; i < 2; ++i) {
      const RunDesc options({.flags = flags, .state = states[i].get()});
      const pfrt_string in = str("ids"), out = str("logits");
      const pfrt_io fed = ids.io();
      pfrt_io result{};
      result.struct_size = sizeof result;
      EXPECT_TRUE(
          ok(api().session->run_named(sessions[i], &in, &fed, 1, &out, &result, 1, options.get())));
      const Handle<pfrt_value> value(result.value);
      if (value) logits[i] = array_of(value.get()).as<float>();
    }
    EXPECT_EQ(logits[0].size(), words.size() * kWords);
    ASSERT_EQ(logits[0].size(), logits[1].size());
    for (size_t w = 0; w < logits[0].size(); ++w) ASSERT_NEAR(logits[0][w], logits[1][w], 2e-4);
  };
  const auto select = [&](const std::vector<int64_t>& rows) {
    const Traffic before = traffic();
    for (const auto& state : states)
      EXPECT_TRUE(ok(api().state->select_rows(state.get(), rows.data(), rows.size())));
    const Traffic after = traffic();
    EXPECT_EQ(after.to_device, before.to_device);
    EXPECT_EQ(after.to_host, before.to_host);
    EXPECT_GT(after.on_device, before.on_device);
  };
  step({7}, 0);
  step({9}, 0);
  select({0, 0, 0});
  for (int64_t i = 0; i < 12; ++i) {
    step({(3 * i) % kWords, (5 * i + 1) % kWords, (7 * i + 2) % kWords}, 0);
    step({1, 2, 3}, PFRT_RUN_KEEPS_STATE);
    select({i % 3, (i + 2) % 3});
    select({0, 1, i % 2});
  }
  EXPECT_EQ(api().state->length(states[0].get()), 14);
}

TEST_F(Chip, refuses_one_signature_and_stays_for_others) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 3});
  g.node("Relu", {"x"}, {"y"});
  g.output("y");
  const auto s = session(g);
  int64_t moved = 0;
  for (const int64_t n : {2, 13, 5, 13, 7}) {
    const Array x = floats({n, 3}, random_floats(static_cast<size_t>(3 * n), 5));
    const auto y = run(s.get(), {x})[0].as<float>();
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], std::max(0.0F, x.as<float>()[i]));
    const int64_t now = traffic().to_device;
    EXPECT_EQ(now - moved, n == 13 ? 0 : 12 * n) << n;
    moved = now;
  }
}

Array which_of(bool yes) {
  Array out{PFRT_DTYPE_BOOL, {}, std::vector<char>(1, yes)};
  return out;
}

// Both branches, and the nodes before them, have rows of their own.
TEST_F(Chip, is_divided_among_all_regions_of_a_session) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {4});
  g.input("which", PFRT_DTYPE_BOOL, {});
  g.node("Relu", {"x"}, {"positive"});
  GraphBuilder yes(g, "yes"), no(g, "no");
  yes.node("Add", {"positive", "positive"}, {"doubled"});
  yes.output("doubled");
  no.node("Sqrt", {"positive"}, {"root"});
  no.node("Mul", {"root", "root"}, {"same"});
  no.output("same");
  g.node("If", {"which"}, {"y"},
         {Attr::of_graph("then_branch", yes.get()), Attr::of_graph("else_branch", no.get())});
  g.output("y");
  const auto s = session(g);
  ASSERT_TRUE(s);
  for (const bool which : {true, false})
    EXPECT_EQ(run(s.get(), {floats({4}, {4, -1, 9, 1}), which_of(which)})[0].as<float>(),
              which ? (std::vector<float>{8, 0, 18, 2}) : (std::vector<float>{4, 0, 9, 1}));
  const auto first = counters_of(s.get(), 1, "first row"), rows = counters_of(s.get(), 1, "rows");
  ASSERT_EQ(first.size(), 3U);
  std::map<double, double> places;
  for (const auto& [row, at] : first) places[at] = rows.at(row);
  double next = 0;
  for (const auto& [at, count] : places) {
    EXPECT_GE(at, next);
    next = at + count;
  }
  EXPECT_LE(next, 64);
}

TEST_F(Chip, tells_the_run_whose_work_failed_and_no_other) {
  GraphBuilder g;
  g.input("table", PFRT_DTYPE_FLOAT32, {3, 2});
  g.input("at", PFRT_DTYPE_INT64, {1});
  g.node("Gather", {"table", "at"}, {"y"});
  g.output("y");
  const auto s = session(g, "chip");
  const Array table = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(fails(try_run(s.get(), {table, int64s({1}, {3})}), PFRT_CODE_INPUT,
                      {"an index is out of range"}));
    EXPECT_EQ(run(s.get(), {table, int64s({1}, {2})})[0].as<float>(), (std::vector<float>{5, 6}));
  }
}

TEST_F(Chip, is_another_device_by_another_word) {
  const auto options =
      make_options(PFRT_OPTIONS_SESSION, {{"providers", "chip"}, {"device", "chip2"}});
  const auto s = make_session(env_.get(), add_graph(), options.get());
  EXPECT_EQ(run(s.get(), {floats({1, 3}, {1, 1, 1})})[0].as<float>(),
            (std::vector<float>{2, 3, 4}));
  EXPECT_EQ(traffic().to_device, 0) << "the other chip has done nothing";
}

}  // namespace
}  // namespace pfrt_test

// SPDX-License-Identifier: Apache-2.0
//
// Whole models on the wafer-scale provider, as a client sees it: values compared with the CPU's, a
// decoder's caches, plans, questions, and refusals.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "test/cxxapi/temporary_folder.h"
#include "test/plugins/wse_models.h"

namespace pfrt_test::wse {
namespace {

struct Releaser {
  void operator()(pfrt_state* p) const { api().state->release(p); }
};

class Wse : public testing::Test {
 protected:
  static Handle<pfrt_options> options(const char* device, const char* arithmetic) {
    return make_options(PFRT_OPTIONS_SESSION,
                        {{"device", device}, {"provider.wse.arithmetic", arithmetic}});
  }
  // Returns the answer's text. The question must succeed.
  std::string ask(const std::string& verb, const std::string& request = "",
                  const char* device = "wse2") {
    pfrt_reply* reply = nullptr;
    EXPECT_TRUE(ok(asked(verb, request, device, &reply))) << verb << " " << request;
    if (reply == nullptr) return "";
    const std::string answer = text(api().env->reply_text(reply));
    api().env->reply_release(reply);
    return answer;
  }
  Failure try_ask(const std::string& verb, const std::string& request) {
    pfrt_reply* reply = nullptr;
    return take(asked(verb, request, "wse2", &reply));
  }
  std::set<std::string> providers_of(pfrt_session* session) {
    pfrt_report* report = nullptr;
    EXPECT_TRUE(ok(api().session->explain(session, &report)));
    const Handle<pfrt_report> own(report);
    std::set<std::string> out;
    for (size_t i = 0; i < api().report->row_count(report); ++i) {
      pfrt_report_row row{};
      row.struct_size = sizeof row;
      EXPECT_TRUE(ok(api().report->row_at(report, i, &row)));
      out.insert(text(row.provider));
    }
    return out;
  }
  Handle<pfrt_env> env_ = make_env({{"plugin_path", PFRT_OWN_PLUGINS}});

 private:
  pfrt_status* asked(const std::string& verb, const std::string& request, const char* device,
                     pfrt_reply** reply) {
    pfrt_ask_desc desc{};
    desc.struct_size = sizeof desc;
    desc.provider = str("wse");
    desc.verb = str(verb);
    desc.request = str(request);
    options_ = make_options(PFRT_OPTIONS_ASK, {{"device", device}});
    desc.options = options_.get();
    return api().env->ask(env_.get(), &desc, reply);
  }
  Handle<pfrt_options> options_;
};

// Compares |got| with |want|, relative to the largest element, and the position of the largest
// where that is clear.
void expect_near(const std::vector<float>& got, const std::vector<float>& want, float tolerance,
                 const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  float largest = 0;
  for (const float v : want) largest = std::max(largest, std::fabs(v));
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance * largest) << what << ", element " << i;
  std::vector<float> sorted = want;
  std::sort(sorted.rbegin(), sorted.rend());
  if (sorted.size() < 2 || sorted[0] - sorted[1] <= 2 * tolerance * largest) return;
  EXPECT_EQ(std::max_element(got.begin(), got.end()) - got.begin(),
            std::max_element(want.begin(), want.end()) - want.begin())
      << what;
}

TEST_F(Wse, models_give_what_the_cpu_gives) {
  struct Case {
    const char* name;
    GraphBuilder graph;
    std::vector<Array> feed;
  };
  std::vector<Case> cases;
  cases.push_back(
      {"squeezenet", squeezenet(64), {floats({1, 3, 64, 64}, random_floats(12288, 1))}});
  cases.push_back({"encoder", encoder(12), {floats({1, 12, 64}, random_floats(768, 2))}});
  std::vector<Array> fed = {int64s({1, 1}, {7})};
  for (uint32_t i = 0; i < 4; ++i) fed.push_back(floats({1, 2, 5, 16}, random_floats(160, 10 + i)));
  cases.push_back({"decoder", decoder(), std::move(fed)});
  for (const Case& c : cases) {
    const auto cpu = make_session(env_.get(), c.graph);
    ASSERT_TRUE(cpu) << c.name;
    const std::vector<float> want = run(cpu.get(), c.feed)[0].as<float>();
    for (const char* device : {"wse2", "wse3"})
      for (const char* arithmetic : {"fp32", "fp16"}) {
        const std::string what = std::string(c.name) + " on " + device + " in " + arithmetic;
        const auto chosen = options(device, arithmetic);
        const auto s = make_session(env_.get(), c.graph, chosen.get());
        ASSERT_TRUE(s) << what;
        const float tolerance = arithmetic[2] == '3' ? 1e-4F : 2e-2F;
        expect_near(run(s.get(), c.feed)[0].as<float>(), want, tolerance, what);
        EXPECT_EQ(providers_of(s.get()).count("WSEExecutionProvider"), 1U) << what;
      }
  }
}

TEST_F(Wse, runs_the_digits_model_alone) {
  pfrt_model* raw = nullptr;
  ASSERT_TRUE(ok(api().model->load_file(env_.get(), str(PFRT_DIGITS), nullptr, &raw)));
  const Handle<pfrt_model> model(raw);
  const auto cpu = make_session(env_.get(), model.get());
  for (const char* device : {"wse", "wse2", "wse3"}) {
    const auto chosen = options(device, "fp16");
    const auto s = make_session(env_.get(), model.get(), chosen.get());
    ASSERT_TRUE(s) << device;
    for (const int64_t batch : {1, 3}) {
      const Array image =
          floats({batch, 1, 8, 8}, random_floats(static_cast<size_t>(64 * batch), 3));
      expect_near(run(s.get(), {image})[0].as<float>(), run(cpu.get(), {image})[0].as<float>(),
                  2e-2F, device);
    }
    EXPECT_EQ(providers_of(s.get()), std::set<std::string>{"WSEExecutionProvider"}) << device;
  }
}

TEST_F(Wse, decodes_with_its_caches_on_the_wafer) {
  const GraphBuilder graph = decoder();
  const auto chosen = options("wse2", "fp32");
  const auto on_wafer = make_session(env_.get(), graph, chosen.get());
  const auto on_cpu = make_session(env_.get(), graph);
  ASSERT_TRUE(on_wafer && on_cpu);
  pfrt_session* const sessions[2] = {on_wafer.get(), on_cpu.get()};
  std::unique_ptr<pfrt_state, Releaser> states[2];
  RunDesc runs[2];
  for (int i = 0; i < 2; ++i) {
    pfrt_state* made = nullptr;
    ASSERT_TRUE(ok(api().state->create(sessions[i], nullptr, 0, &made)));
    states[i].reset(made);
    runs[i].state = made;
  }
  const pfrt_string in = str("ids"), out = str("logits");
  // The session's wafer is found by its options.
  const auto traffic = [&] {
    pfrt_ask_desc desc{};
    desc.struct_size = sizeof desc;
    desc.provider = str("wse");
    desc.verb = str("traffic");
    const auto same =
        make_options(PFRT_OPTIONS_ASK, {{"device", "wse2"}, {"provider.wse.arithmetic", "fp32"}});
    desc.options = same.get();
    pfrt_reply* reply = nullptr;
    EXPECT_TRUE(ok(api().env->ask(env_.get(), &desc, &reply)));
    const std::string answer = text(api().env->reply_text(reply));
    api().env->reply_release(reply);
    long long to = 0, from = 0, on = 0;
    EXPECT_EQ(
        std::sscanf(answer.c_str(), "to_device %lld to_host %lld on_device %lld", &to, &from, &on),
        3)
        << answer;
    return std::pair<int64_t, int64_t>(to, from);
  };
  std::pair<int64_t, int64_t> before;
  int64_t token = 7;
  for (int64_t step = 0; step < 100; ++step) {
    const Array ids = int64s({1, 1}, {token});
    std::vector<float> logits[2];
    for (int i = 0; i < 2; ++i) {
      const pfrt_io fed = ids.io();
      pfrt_io result{};
      result.struct_size = sizeof result;
      ASSERT_TRUE(
          ok(api().session->run_named(sessions[i], &in, &fed, 1, &out, &result, 1, runs[i].get())));
      const Handle<pfrt_value> value(result.value);
      logits[i] = array_of(value.get()).as<float>();
    }
    expect_near(logits[0], logits[1], 1e-4F, "step " + std::to_string(step));
    token = std::max_element(logits[1].begin(), logits[1].end()) - logits[1].begin();
    if (step == 1) before = traffic();
  }
  EXPECT_EQ(api().state->length(states[0].get()), 100);
  const auto after = traffic();
  // A token's id goes to the wafer and its logits come back; no part of a cache crosses.
  EXPECT_EQ(after.first - before.first, 98 * 8);
  EXPECT_EQ(after.second - before.second, 98 * kDecoderWords * 4);
}

TEST_F(Wse, counts_cycles_without_values_when_asked_to) {
  const GraphBuilder graph = encoder(12);
  const auto chosen = make_options(PFRT_OPTIONS_SESSION,
                                   {{"device", "wse2"}, {"provider.wse.timing_only", "true"}});
  const auto s = make_session(env_.get(), graph, chosen.get());
  ASSERT_TRUE(s);
  EXPECT_TRUE(fails(try_run(s.get(), {floats({1, 12, 64}, random_floats(768, 2))}),
                    PFRT_CODE_INVALID_ARGUMENT, {"timing_only"}));
}

TEST_F(Wse, ends_a_long_step_at_the_deadline) {
  GraphBuilder g;
  constexpr int64_t kSize = 1536;
  g.input("x", PFRT_DTYPE_FLOAT32, {kSize, kSize});
  g.constant("w", floats({kSize, kSize}, random_floats(kSize * kSize, 1)));
  g.node("MatMul", {"x", "w"}, {"y"});
  g.output("y");
  const auto chosen = options("wse2", "fp16");
  const auto s = make_session(env_.get(), g, chosen.get());
  ASSERT_TRUE(s);
  const Array x = floats({kSize, kSize}, random_floats(kSize * kSize, 2));
  const RunDesc soon({.timeout_ms = 30});
  EXPECT_TRUE(fails(try_run(s.get(), {x}, nullptr, soon.get()), PFRT_CODE_DEADLINE, {}));
}

TEST_F(Wse, takes_nothing_where_it_is_not_named) {
  const auto s = make_session(env_.get(), encoder(12));
  ASSERT_TRUE(s);
  run(s.get(), {floats({1, 12, 64}, random_floats(768, 2))});
  EXPECT_EQ(providers_of(s.get()).count("WSEExecutionProvider"), 0U);
}

#if defined(PFRT_TOOL)
// Returns the output of a shell command, both streams.
std::string output_of(const std::string& command) {
  std::string out;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return out;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) out += static_cast<char>(c);
  pclose(pipe);
  return out;
}

// The installation lacks the provider's file.
TEST_F(Wse, is_missed_by_those_alone_who_ask_for_it) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const fs::path own = PFRT_OWN_PLUGINS, root = folder.path();
  const fs::path lib = root / "lib", plugins = lib / "pyflame_rt" / "plugins";
  fs::create_directories(plugins);
  for (const auto& file : fs::directory_iterator(own))
    if (file.path().filename() != "libpyflamert_provider_wse.so")
      fs::copy_file(file.path(), plugins / file.path().filename());
  for (const auto& file : fs::directory_iterator(own.parent_path().parent_path()))
    if (file.path().filename().string().rfind("libpyflamert_c.so", 0) == 0)
      fs::copy_file(file.path(), lib / file.path().filename());
  const std::string tool =
      "LD_LIBRARY_PATH=" + lib.string() + " " + PFRT_TOOL + " run " + PFRT_DIGITS;
  EXPECT_NE(output_of(tool).find("probabilities"), std::string::npos) << output_of(tool);
  const std::string asked = output_of(tool + " --device wse2");
  EXPECT_NE(asked.find("no provider opens device 'wse2'; devices are cpu (CPUExecutionProvider)"),
            std::string::npos)
      << asked;
}
#endif

TEST_F(Wse, runs_branches_in_their_own_places) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {4});
  g.input("which", PFRT_DTYPE_BOOL, {});
  g.node("Relu", {"x"}, {"positive"});
  GraphBuilder yes(g, "yes"), no(g, "no");
  yes.node("Add", {"positive", "positive"}, {"doubled"});
  yes.output("doubled");
  no.node("Sqrt", {"positive"}, {"root"});
  no.output("root");
  g.node("If", {"which"}, {"y"},
         {Attr::of_graph("then_branch", yes.get()), Attr::of_graph("else_branch", no.get())});
  g.output("y");
  const auto chosen = options("wse2", "fp16");
  const auto s = make_session(env_.get(), g, chosen.get());
  ASSERT_TRUE(s);
  for (const bool which : {true, false}) {
    const Array flag{PFRT_DTYPE_BOOL, {}, std::vector<char>(1, which)};
    EXPECT_EQ(run(s.get(), {floats({4}, {4, -1, 9, 1}), flag})[0].as<float>(),
              which ? (std::vector<float>{8, 0, 18, 2}) : (std::vector<float>{2, 0, 3, 1}));
  }
}

// A model with dimensions that only a run knows, or with none: branches of different ranks,
// data-dependent outputs, loops, sequences, empty tensors.
struct Late {
  const char* name;
  std::function<void(GraphBuilder&)> build;
  std::vector<std::vector<Array>> feeds;
};

Array flag(bool value) { return {PFRT_DTYPE_BOOL, {}, std::vector<char>(1, value)}; }

// Starts a graph with an If whose branches give -|x| and |x| as a matrix.
void branch(GraphBuilder& g) {
  g.input("x", PFRT_DTYPE_FLOAT32, {4});
  g.input("which", PFRT_DTYPE_BOOL, {});
  g.constant("square", int64s({2}, {2, 2}));
  GraphBuilder yes(g, "yes"), no(g, "no");
  yes.node("Neg", {"x"}, {"line"});
  yes.output("line");
  no.node("Reshape", {"x", "square"}, {"matrix"});
  no.output("matrix");
  g.node("If", {"which"}, {"y"},
         {Attr::of_graph("then_branch", yes.get()), Attr::of_graph("else_branch", no.get())});
}

std::vector<Late> late_models() {
  const std::vector<std::vector<Array>> either = {{floats({4}, {1, 2, 3, 4}), flag(true)},
                                                  {floats({4}, {4, 3, 2, 1}), flag(false)},
                                                  {floats({4}, {1, 0, 2, 0}), flag(true)}};
  const std::vector<std::vector<Array>> lines = {{floats({5}, {1, -1, 2, 0, 3})},
                                                 {floats({5}, {1, 1, 1, 1, 1})},
                                                 {floats({5}, {-1, -1, -1, -1, -1})}};
  const std::vector<std::vector<Array>> counted = {{int64s({}, {3}), floats({4}, {1, 2, 3, 4})},
                                                   {int64s({}, {5}), floats({4}, {4, 3, 2, 1})}};
  std::vector<Late> out;
  for (const char* op : {"Relu", "Softmax", "Identity", "Exp", "ReduceSum", "Shape", "Transpose"})
    out.push_back({op,
                   [op](GraphBuilder& g) {
                     branch(g);
                     g.node(op, {"y"}, {"z"});
                     g.output("z");
                   },
                   either});
  out.push_back({"If and MatMul",
                 [](GraphBuilder& g) {
                   branch(g);
                   g.constant("shape", int64s({2}, {1, 4}));
                   g.constant("w", floats({4, 3}, random_floats(12, 1)));
                   g.node("Reshape", {"y", "shape"}, {"row"});
                   g.node("MatMul", {"row", "w"}, {"z"});
                   g.output("z");
                 },
                 either});
  out.push_back({"NonZero",
                 [](GraphBuilder& g) {
                   g.input("x", PFRT_DTYPE_FLOAT32, {5});
                   g.constant("axis", int64s({1}, {0}));
                   g.node("Relu", {"x"}, {"positive"});
                   g.node("NonZero", {"positive"}, {"places"});
                   g.node("Squeeze", {"places", "axis"}, {"list"});
                   g.node("Gather", {"x", "list"}, {"chosen"});
                   g.node("Exp", {"chosen"}, {"z"});
                   g.output("z");
                 },
                 lines});
  out.push_back({"Compress and MatMul",
                 [](GraphBuilder& g) {
                   g.input("x", PFRT_DTYPE_FLOAT32, {5});
                   g.constant("zero", floats({}, {0}));
                   g.constant("m", floats({5, 6}, random_floats(30, 2)));
                   g.constant("w", floats({6, 3}, random_floats(18, 3)));
                   g.node("Greater", {"x", "zero"}, {"kept"});
                   g.node("Compress", {"m", "kept"}, {"rows"}, {Attr::of_int("axis", 0)});
                   g.node("MatMul", {"rows", "w"}, {"y"});
                   g.node("Softmax", {"y"}, {"z"});
                   g.output("z");
                 },
                 lines});
  out.push_back(
      {"Loop",
       [](GraphBuilder& g) {
         g.input("n", PFRT_DTYPE_INT64, {});
         g.input("x", PFRT_DTYPE_FLOAT32, {4});
         GraphBuilder body(g, "body");
         body.input("i", PFRT_DTYPE_INT64, {});
         body.input("go", PFRT_DTYPE_BOOL, {});
         body.input("sum", PFRT_DTYPE_FLOAT32, {4});
         body.node("Identity", {"go"}, {"on"});
         body.node("Add", {"sum", "x"}, {"next"});
         body.node("Relu", {"next"}, {"seen"});
         for (const char* name : {"on", "next", "seen"}) body.output(name);
         g.node("Loop", {"n", "", "x"}, {"last", "all"}, {Attr::of_graph("body", body.get())});
         g.node("Softmax", {"all"}, {"z"});
         g.output("last");
         g.output("z");
       },
       counted});
  out.push_back({"Scan",
                 [](GraphBuilder& g) {
                   g.input("x", PFRT_DTYPE_FLOAT32, {"steps", 4});
                   g.constant("start", floats({4}, {0, 0, 0, 0}));
                   GraphBuilder body(g, "body");
                   body.input("sum", PFRT_DTYPE_FLOAT32, {4});
                   body.input("row", PFRT_DTYPE_FLOAT32, {4});
                   body.node("Add", {"sum", "row"}, {"next"});
                   body.node("Tanh", {"next"}, {"seen"});
                   body.output("next");
                   body.output("seen");
                   g.node("Scan", {"start", "x"}, {"last", "all"},
                          {Attr::of_graph("body", body.get()), Attr::of_int("num_scan_inputs", 1)});
                   g.node("Neg", {"all"}, {"z"});
                   g.output("z");
                 },
                 {{noise({3, 4}, 1)}, {noise({6, 4}, 2)}, {noise({1, 4}, 3)}}});
  out.push_back({"sequence",
                 [](GraphBuilder& g) {
                   g.input("x", PFRT_DTYPE_FLOAT32, {"n", 4});
                   g.constant("second", int64s({}, {-1}));
                   g.node("SplitToSequence", {"x"}, {"rows"}, {Attr::of_int("keepdims", 0)});
                   g.node("SequenceAt", {"rows", "second"}, {"last"});
                   g.node("Exp", {"last"}, {"e"});
                   g.node("ConcatFromSequence", {"rows"}, {"whole"}, {Attr::of_int("axis", 0)});
                   g.node("Neg", {"whole"}, {"z"});
                   g.output("e");
                   g.output("z");
                 },
                 {{noise({3, 4}, 1)}, {noise({5, 4}, 2)}, {noise({1, 4}, 3)}}});
  return out;
}

std::vector<Late> empty_models() {
  const std::vector<std::vector<Array>> rows = {{noise({0, 4}, 1)}, {noise({3, 4}, 2)}};
  const auto one = [&](const char* name, const char* op, std::vector<Attr> attrs = {}) {
    return Late{name,
                [op, attrs](GraphBuilder& g) {
                  g.input("x", PFRT_DTYPE_FLOAT32, {"n", 4});
                  g.node(op, {"x"}, {"y"}, attrs);
                  g.output("y");
                },
                rows};
  };
  std::vector<Late> out = {one("Relu", "Relu"),
                           one("Softmax", "Softmax"),
                           one("Softmax of nothing", "Softmax", {Attr::of_int("axis", 0)}),
                           one("LogSoftmax", "LogSoftmax"),
                           one("ReduceSum", "ReduceSum"),
                           one("Transpose", "Transpose"),
                           one("Shape", "Shape"),
                           one("Flatten", "Flatten")};
  out.push_back({"products",
                 [](GraphBuilder& g) {
                   g.input("x", PFRT_DTYPE_FLOAT32, {"n", 4});
                   g.constant("w", floats({4, 3}, random_floats(12, 1)));
                   g.constant("b", floats({3}, {1, 2, 3}));
                   g.node("MatMul", {"x", "w"}, {"y"});
                   g.node("Gemm", {"x", "w", "b"}, {"z"});
                   g.node("Concat", {"y", "z"}, {"all"}, {Attr::of_int("axis", 1)});
                   g.output("all");
                 },
                 rows});
  out.push_back({"a product over nothing",
                 [](GraphBuilder& g) {
                   g.input("x", PFRT_DTYPE_FLOAT32, {2, "n"});
                   g.input("w", PFRT_DTYPE_FLOAT32, {"n", 3});
                   g.constant("b", floats({3}, {1, 2, 3}));
                   g.node("MatMul", {"x", "w"}, {"y"});
                   g.node("Gemm", {"x", "w", "b"}, {"z"});
                   g.output("y");
                   g.output("z");
                 },
                 {{noise({2, 0}, 1), noise({0, 3}, 2)}, {noise({2, 5}, 3), noise({5, 3}, 4)}}});
  out.push_back({"images",
                 [](GraphBuilder& g) {
                   g.input("x", PFRT_DTYPE_FLOAT32, {"n", 2, 6, 6});
                   g.constant("w", floats({4, 2, 3, 3}, random_floats(72, 1)));
                   g.constant("s", floats({4}, {1, 2, 3, 4}));
                   g.node("Conv", {"x", "w"}, {"c"});
                   g.node("BatchNormalization", {"c", "s", "s", "s", "s"}, {"b"});
                   g.node("MaxPool", {"b"}, {"p"}, {Attr::of_ints("kernel_shape", {2, 2})});
                   g.node("GlobalAveragePool", {"p"}, {"y"});
                   g.output("y");
                 },
                 {{noise({0, 2, 6, 6}, 1)}, {noise({2, 2, 6, 6}, 2)}}});
  return out;
}

void expect_as_on_the_cpu(pfrt_env* env, const Late& model) {
  SCOPED_TRACE(model.name);
  GraphBuilder graph;
  model.build(graph);
  const auto cpu = make_session(env, graph);
  const auto chosen =
      make_options(PFRT_OPTIONS_SESSION, {{"device", "wse2"}, {"provider.wse.arithmetic", "fp32"}});
  const auto wafer = make_session(env, graph, chosen.get());
  ASSERT_TRUE(cpu && wafer);
  for (int repeat = 0; repeat < 2; ++repeat)
    for (const std::vector<Array>& feed : model.feeds) {
      const std::vector<Array> want = run(cpu.get(), feed), got = run(wafer.get(), feed);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_EQ(got[i].dims, want[i].dims) << "output " << i;
        if (want[i].dtype == PFRT_DTYPE_FLOAT32)
          expect_near(got[i].as<float>(), want[i].as<float>(), 1e-5F, model.name);
        else
          EXPECT_EQ(got[i].bytes, want[i].bytes);
      }
    }
  pfrt_report* report = nullptr;
  EXPECT_TRUE(ok(api().session->explain(wafer.get(), &report)));
  const Handle<pfrt_report> own(report);
}

TEST_F(Wse, runs_models_whose_dimensions_only_a_run_knows) {
  for (const Late& model : late_models()) expect_as_on_the_cpu(env_.get(), model);
}

TEST_F(Wse, runs_models_with_empty_tensors) {
  for (const Late& model : empty_models()) expect_as_on_the_cpu(env_.get(), model);
}

// No run has happened, and yet explain works.
TEST_F(Wse, explains_models_whose_dimensions_only_a_run_knows) {
  for (const Late& model : late_models()) {
    GraphBuilder graph;
    model.build(graph);
    const auto chosen = options("wse2", "fp32");
    const auto s = make_session(env_.get(), graph, chosen.get());
    ASSERT_TRUE(s) << model.name;
    EXPECT_FALSE(providers_of(s.get()).empty()) << model.name;
  }
}

TEST_F(Wse, refuses_a_layer_without_a_place_and_says_what_it_needs) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {1, 4096});
  g.constant("w", floats({4096, 64}, random_floats(4096 * 64, 1)));
  g.node("MatMul", {"x", "w"}, {"h"}, {}, "large");
  g.node("Relu", {"h"}, {"y"});
  g.output("y");
  const auto chosen =
      make_options(PFRT_OPTIONS_SESSION, {{"device", "wse2"}, {"provider.wse.fabric", "2x2"}});
  const auto s = make_session(env_.get(), g, chosen.get());
  ASSERT_TRUE(s) << "the CPU takes what the wafer does not";
  EXPECT_EQ(run(s.get(), {floats({1, 4096}, random_floats(4096, 2))})[0].as<float>().size(), 64U);
  pfrt_report* report = nullptr;
  ASSERT_TRUE(ok(api().session->explain(s.get(), &report)));
  const Handle<pfrt_report> own(report);
  pfrt_report_row row{};
  row.struct_size = sizeof row;
  ASSERT_TRUE(ok(api().report->row_at(report, 0, &row)));
  const std::string refused = text(row.refused);
  EXPECT_NE(refused.find("layer 'large' does not fit: needs "), std::string::npos) << refused;
  EXPECT_NE(refused.find("limit 49,152 B, over by "), std::string::npos) << refused;
}

TEST_F(Wse, answers_questions) {
  EXPECT_TRUE(fails(try_ask("dance", ""), PFRT_CODE_UNSUPPORTED, {"machine, plan"}));
  EXPECT_TRUE(fails(try_ask("plan", ""), PFRT_CODE_NOT_FOUND, {"make a session"}));
  EXPECT_TRUE(fails(try_ask("product", "gemm=8x8"), PFRT_CODE_INVALID_ARGUMENT, {"MxKxN"}));
  EXPECT_TRUE(
      fails(try_ask("product", "gemm=8x8x8 grid=0"), PFRT_CODE_INVALID_ARGUMENT, {"1 to 750"}));
  EXPECT_TRUE(
      fails(try_ask("product", "gemm=8x8x8 sides=3"), PFRT_CODE_INVALID_ARGUMENT, {"grid"}));
  EXPECT_TRUE(fails(try_ask("language-model", "heads=6 kv_heads=4"), PFRT_CODE_INVALID_ARGUMENT,
                    {"does not divide"}));
  EXPECT_TRUE(fails(try_ask("validate", "hop=fast"), PFRT_CODE_INVALID_ARGUMENT, {"hop=2"}));
  for (const auto& [verb, request] :
       std::vector<std::pair<const char*, const char*>>{{"machine", ""},
                                                        {"product", "gemm=64x64x64 grid=8"},
                                                        {"product", "gemv=64x64 grid=8"},
                                                        {"language-model", "layers=2"}}) {
    const std::string plain = ask(verb, request);
    EXPECT_EQ(plain.rfind("simulated wse2 ", 0), 0U) << plain;
    const std::string json = ask(verb, std::string(request) + " json");
    EXPECT_NE(json.find("\"simulated\": true"), std::string::npos) << json;
  }
}

TEST_F(Wse, shows_what_lies_on_it) {
  const auto s = make_session(env_.get(), encoder(12),
                              make_options(PFRT_OPTIONS_SESSION, {{"device", "wse3"}}).get());
  ASSERT_TRUE(s);
  run(s.get(), {floats({1, 12, 64}, random_floats(768, 2))});
  const std::string table = ask("plan", "", "wse3"), picture = ask("plan", "svg", "wse3");
  EXPECT_EQ(table.rfind("simulated wse3 ", 0), 0U) << table;
  EXPECT_NE(table.find("cycles from input to output"), std::string::npos) << table;
  EXPECT_EQ(picture.rfind("<svg", 0), 0U);
  EXPECT_NE(picture.find("</svg>"), std::string::npos);
}

// The scale of the picture has 50 colours and five marks; the longest at work has the last colour.
TEST_F(Wse, draws_a_scale_and_can_be_read_in_the_dark) {
  const auto s = make_session(env_.get(), encoder(12),
                              make_options(PFRT_OPTIONS_SESSION, {{"device", "wse3"}}).get());
  ASSERT_TRUE(s);
  run(s.get(), {floats({1, 12, 64}, random_floats(768, 2))});
  const std::string picture = ask("plan", "svg", "wse3");
  EXPECT_NE(picture.find("colour: cycles a run in which a PE of these layers computes"),
            std::string::npos);
  EXPECT_NE(picture.find(" us a run at "), std::string::npos);
  EXPECT_NE(picture.find(">0</text>"), std::string::npos);
  EXPECT_NE(picture.find(" cycles</text>"), std::string::npos);
  EXPECT_NE(picture.find("no layer"), std::string::npos);
  const std::string fill = "fill=\"#";
  const auto colour = [&](const std::string& rect) { return rect.substr(rect.find(fill) + 7, 6); };
  const auto darkness = [&](const std::string& rect) {
    int sum = 0;
    for (size_t i = 0; i < 6; i += 2) sum -= std::stoi(colour(rect).substr(i, 2), nullptr, 16);
    return sum;
  };
  std::vector<std::string> scale, stages;
  std::istringstream lines(picture);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("<rect", 0) != 0 || line.find("class=") != std::string::npos) continue;
    (line.find("<title>") == std::string::npos ? scale : stages).push_back(line);
  }
  ASSERT_EQ(scale.size(), 50U);
  for (size_t i = 1; i < scale.size(); ++i) EXPECT_GT(darkness(scale[i]), darkness(scale[i - 1]));
  ASSERT_GT(stages.size(), 1U);
  int most = -1000;
  for (const std::string& stage : stages) most = std::max(most, darkness(stage));
  EXPECT_GE(most, darkness(scale.back()));
  // The paper and the letters upon it change with the mode; none is left to a page's own colours.
  EXPECT_NE(picture.find("@media (prefers-color-scheme: dark)"), std::string::npos);
  size_t texts = 0;
  for (size_t at = 0; (at = picture.find("<text", at)) != std::string::npos; ++at, ++texts)
    EXPECT_NE(picture.substr(at, picture.find('>', at) - at).find(fill), std::string::npos);
  EXPECT_GT(texts, 6U);
}

TEST_F(Wse, draws_names_of_any_kind) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {1, 64});
  g.constant("w", floats({64, 64}, random_floats(4096, 1)));
  g.node("MatMul", {"x", "w"}, {"h"}, {}, "</title><b>&\"\n\x01\xff\xef\xbf\xbf\xc3\xa9");
  g.node("Relu", {"h"}, {"y"}, {}, std::string(100000, '<'));
  g.output("y");
  const auto s =
      make_session(env_.get(), g, make_options(PFRT_OPTIONS_SESSION, {{"device", "wse2"}}).get());
  ASSERT_TRUE(s);
  run(s.get(), {floats({1, 64}, random_floats(64, 2))});
  const std::string picture = ask("plan", "svg");
  const std::string bad = "\xef\xbf\xbd";  // U+FFFD
  EXPECT_NE(picture.find("&lt;/title&gt;&lt;b&gt;&amp;&quot;" + bad + bad + bad + bad + bad + bad +
                         "\xc3\xa9: "),
            std::string::npos)
      << picture.substr(0, 20000);
  EXPECT_LT(picture.size(), 30000U);
}

// The CPU's part is not in the wafer's figures, so there is no time of a run and no results a
// second.
TEST_F(Wse, a_plan_names_what_others_run_and_gives_no_time_of_a_run) {
  GraphBuilder g;
  branch(g);
  g.node("Relu", {"y"}, {"z"}, {}, "after");
  g.output("z");
  const auto s =
      make_session(env_.get(), g, make_options(PFRT_OPTIONS_SESSION, {{"device", "wse2"}}).get());
  ASSERT_TRUE(s);
  run(s.get(), {floats({4}, {1, 2, 3, 4}), flag(true)});
  const std::string table = ask("plan"), json = ask("plan", "json");
  EXPECT_EQ(table.find("cycles from input to output"), std::string::npos) << table;
  EXPECT_NE(table.find("what others run (If"), std::string::npos) << table;
  EXPECT_NE(json.find("\"cycles_a_result\": null"), std::string::npos) << json;
}

// The answer depends on machine and kind of program, and changed numbers have no such line.
TEST_F(Wse, says_what_was_held_against_published_figures) {
  const std::string held = "held against published figures (pfrt wse validate)";
  EXPECT_NE(ask("product", "gemv=64x64 grid=8").find("MeshGEMV fp16: " + held), std::string::npos);
  EXPECT_EQ(ask("product", "gemm=64x64x64 grid=8").find(held), std::string::npos)
      << "MeshGEMM was measured on wse3";
  EXPECT_NE(ask("product", "gemm=64x64x64 grid=8", "wse3").find("MeshGEMM fp16: " + held),
            std::string::npos);
  EXPECT_EQ(ask("language-model", "layers=2", "wse3").find(held), std::string::npos);
  pfrt_ask_desc desc{};
  desc.struct_size = sizeof desc;
  desc.provider = str("wse");
  desc.verb = str("product");
  desc.request = str("gemv=64x64 grid=8");
  const auto faster =
      make_options(PFRT_OPTIONS_ASK, {{"device", "wse2"}, {"provider.wse.clock", "1.1e9"}});
  desc.options = faster.get();
  pfrt_reply* reply = nullptr;
  ASSERT_TRUE(ok(api().env->ask(env_.get(), &desc, &reply)));
  const std::string answer = text(api().env->reply_text(reply));
  api().env->reply_release(reply);
  EXPECT_EQ(answer.find(held), std::string::npos) << answer;
  EXPECT_NE(answer.find("the caller changed clock_hz"), std::string::npos) << answer;
}

// A plan computes nothing with the weights, so they are not copied.
TEST_F(Wse, a_plan_takes_no_copy_of_the_weights) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {1, 512});
  g.constant("w", floats({512, 512}, random_floats(512 * 512, 1)));
  g.node("MatMul", {"x", "w"}, {"y"});
  g.output("y");
  const auto chosen = make_options(PFRT_OPTIONS_SESSION,
                                   {{"device", "wse2"}, {"provider.wse.timing_only", "true"}});
  const auto s = make_session(env_.get(), g, chosen.get());
  ASSERT_TRUE(s);
  EXPECT_TRUE(fails(try_run(s.get(), {floats({1, 512}, random_floats(512, 2))}),
                    PFRT_CODE_INVALID_ARGUMENT, {"timing_only"}));
  pfrt_ask_desc desc{};
  desc.struct_size = sizeof desc;
  desc.provider = str("wse");
  desc.verb = str("traffic");
  const auto same =
      make_options(PFRT_OPTIONS_ASK, {{"device", "wse2"}, {"provider.wse.timing_only", "true"}});
  desc.options = same.get();
  pfrt_reply* reply = nullptr;
  ASSERT_TRUE(ok(api().env->ask(env_.get(), &desc, &reply)));
  const std::string answer = text(api().env->reply_text(reply));
  api().env->reply_release(reply);
  long long to = -1;
  ASSERT_EQ(std::sscanf(answer.c_str(), "to_device %lld", &to), 1) << answer;
  EXPECT_LT(to, 512 * 512 * 4) << answer;
}

TEST_F(Wse, takes_machines_from_files) {
  const TemporaryFolder folder;
  const std::string path = std::string(folder.path()) + "/m.json";
  const auto with = [&](const std::string& contents) {
    std::ofstream(path) << contents;
    return make_options(
        PFRT_OPTIONS_SESSION,
        {{"providers", "wse"}, {"provider.wse.machine_file", path}, {"session.fallback", "off"}});
  };
  for (const char* bad :
       {"", "{", "[]", "{\"name\": \"x\", \"numbers\": {\"hop\": [1, \"me\"]}}"}) {
    const auto chosen = with(bad);
    EXPECT_TRUE(fails(try_session(env_.get(), encoder(12), chosen.get()),
                      PFRT_CODE_INVALID_ARGUMENT, {"machine file"}))
        << bad;
  }
}

}  // namespace
}  // namespace pfrt_test::wse

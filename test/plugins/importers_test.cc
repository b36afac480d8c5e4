// SPDX-License-Identifier: Apache-2.0
//
// What the host gives importers, and what becomes of it: options, definers, states, entries,
// declining. test/plugins/importers has the importer.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "test/capi/client.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using Floats = std::vector<float>;

struct Definer {
  pfrt_define_fn fn = nullptr;
  void* user = nullptr;
};

class Importers : public InTemporaryFolder {
 protected:
  const Handle<pfrt_env> env_ = make_env({{"plugin_path", PFRT_TEST_IMPORTERS}});

  // Loads |lines| from a file called |name|.
  Failure try_load(const std::string& name, const std::string& lines, Handle<pfrt_model>* out,
                   const Settings& settings = {}, Definer definer = {}) {
    write_file(name, "rows\n" + lines);
    const auto options = make_options(PFRT_OPTIONS_LOAD, settings);
    if (definer.fn) {
      EXPECT_TRUE(ok(api().options->set_definer(options.get(), definer.fn, definer.user)));
    }
    pfrt_model* raw = nullptr;
    Failure failure = take(api().model->load_file(env_.get(), str(name), options.get(), &raw));
    EXPECT_EQ(failure.ok(), raw != nullptr);
    Handle<pfrt_model> model(raw);
    if (out) *out = std::move(model);
    return failure;
  }
  Handle<pfrt_model> load(const std::string& name, const std::string& lines,
                          const Settings& settings = {}, Definer definer = {}) {
    Handle<pfrt_model> out;
    EXPECT_TRUE(ok(try_load(name, lines, &out, settings, definer)));
    return out;
  }
  Floats run_with(pfrt_model* model, const Floats& x) {
    const auto session = make_session(env_.get(), model);
    const auto dim = static_cast<int64_t>(x.size());
    return run(session.get(), {floats({dim}, x)})[0].as<float>();
  }
  static std::vector<std::string> warnings_of(const pfrt_model* model) {
    std::vector<std::string> out;
    for (size_t i = 0; i < api().model->warning_count(model); ++i) {
      pfrt_string text{};
      EXPECT_TRUE(ok(api().model->warning_at(model, i, &text)));
      out.push_back(pfrt_test::text(text));
    }
    return out;
  }
};

// ---- options ----

TEST_F(Importers, options_are_listed) {
  for (const char* const name : {"Rows", "rows"}) {
    size_t count = 0;
    ASSERT_TRUE(ok(api().env->importer_option_count(env_.get(), str(name), &count)));
    ASSERT_EQ(count, 4u);
    pfrt_option_info info{};
    info.struct_size = sizeof info;
    ASSERT_TRUE(ok(api().env->importer_option_at(env_.get(), str(name), 1, &info)));
    EXPECT_EQ(text(info.key), "import.rows.describe");
    EXPECT_EQ(info.type, static_cast<pfrt_option_type>(PFRT_OPTION_STRING));
    EXPECT_EQ(text(info.choices), "short long");
    EXPECT_EQ(text(info.doc), "say something");
    EXPECT_TRUE(fails(api().env->importer_option_at(env_.get(), str(name), 4, &info),
                      PFRT_CODE_INVALID_ARGUMENT, {"option 4 of 4"}));
  }
  size_t count = 7;
  ASSERT_TRUE(ok(api().env->importer_option_count(env_.get(), str("ONNX"), &count)));
  EXPECT_EQ(count, 0u);
  EXPECT_TRUE(fails(api().env->importer_option_count(env_.get(), str("Row"), &count),
                    PFRT_CODE_NOT_FOUND, {"'Row'", "Rows", "Columns", "ONNX", "did you mean"}));
}

TEST_F(Importers, options_reach_the_importer) {
  const auto model = load("x.rows", "", {{"import.rows.scale", "3"}});
  EXPECT_EQ(run_with(model.get(), {1, 2}), (Floats{3, 6}));
  const auto typed = make_options(PFRT_OPTIONS_LOAD);
  ASSERT_TRUE(ok(api().options->set_float(typed.get(), str("import.rows.scale"), 0.5)));
  pfrt_model* raw = nullptr;
  ASSERT_TRUE(ok(api().model->load_file(env_.get(), str("x.rows"), typed.get(), &raw)));
  const Handle<pfrt_model> half(raw);
  EXPECT_EQ(run_with(half.get(), {1, 2}), (Floats{0.5f, 1}));
}

TEST_F(Importers, options_are_checked_before_the_importer_is_called) {
  EXPECT_TRUE(fails(try_load("x.rows", "only nobody", nullptr, {{"import.rows.scal", "3"}}),
                    PFRT_CODE_INVALID_ARGUMENT,
                    {"no option 'import.rows.scal'", "the nearest is 'import.rows.scale'",
                     "there are scale, describe, strict, most"}));
  EXPECT_TRUE(fails(try_load("x.rows", "", nullptr, {{"import.rows.colour", "red"}}),
                    PFRT_CODE_INVALID_ARGUMENT, {"'import.rows.colour'", "there are scale"}));
  EXPECT_TRUE(fails(try_load("x.rows", "", nullptr, {{"import.rows.scale", "big"}}),
                    PFRT_CODE_INVALID_ARGUMENT,
                    {"'import.rows.scale'", "'big'", "a finite number"}));
  EXPECT_TRUE(fails(try_load("x.rows", "", nullptr, {{"import.rows.most", "1.5"}}),
                    PFRT_CODE_INVALID_ARGUMENT, {"'import.rows.most'", "an integer"}));
  EXPECT_TRUE(fails(try_load("x.rows", "", nullptr, {{"import.rows.strict", "maybe"}}),
                    PFRT_CODE_INVALID_ARGUMENT, {"'import.rows.strict'", "true or false"}));
  EXPECT_TRUE(fails(try_load("x.rows", "", nullptr, {{"import.rows.describe", "wide"}}),
                    PFRT_CODE_INVALID_ARGUMENT, {"'import.rows.describe'", "short long"}));
  EXPECT_TRUE(fails(try_load("x.rows", "", nullptr, {{"import.moon.scale", "1"}}),
                    PFRT_CODE_INVALID_ARGUMENT, {"there is not", "rows", "columns"}));
  EXPECT_TRUE(ok(try_load("x.rows", "", nullptr, {{"import.columns.scale", "1"}})))
      << "options of others are theirs";
}

// ---- definers ----

constexpr const char* kWeights = "weight w 1 2 3\nweight b 10 20 30\nmeta epoch 7\n";

pfrt_value_info port(const char* name) {
  static constexpr int64_t kDims[] = {3};
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  info.kind = PFRT_VALUE_TENSOR;
  info.dtype = PFRT_DTYPE_FLOAT32;
  info.name = str(name);
  info.rank = 1;
  info.dims = kDims;
  return info;
}

// What a definer of the test was given, and what it kept.
struct Seen {
  int calls = 0;
  std::vector<std::string> names;
  std::string meta;
  Handle<pfrt_graph> graph;
  Handle<pfrt_value> value;
};

// y = x * w + b, of the weights with these names.
pfrt_code linear(void* user, const pfrt_definition* definition) {
  auto& seen = *static_cast<Seen*>(user);
  ++seen.calls;
  const pfrt_weights& weights = *definition->weights;
  for (size_t i = 0; i < weights.count; ++i) seen.names.push_back(text(weights.names[i]));
  for (size_t i = 0; i < weights.meta_count; ++i)
    seen.meta += text(weights.meta[i].key) + "=" + text(weights.meta[i].value);
  const pfrt_graph_api& graphs = *api().graph;
  pfrt_graph* const g = definition->graph;
  const pfrt_value_info x = port("x"), y = port("y");
  EXPECT_TRUE(ok(graphs.add_input(g, &x)));
  for (size_t i = 0; i < weights.count; ++i)
    EXPECT_TRUE(ok(graphs.add_initializer_value(g, weights.names[i], weights.values[i])));
  const auto node = [&](const char* op, const char* a, const char* b, const char* out) {
    const pfrt_string inputs[] = {str(a), str(b)}, output = str(out);
    pfrt_node n{};
    n.struct_size = sizeof n;
    n.op = str(op);
    n.inputs = inputs;
    n.input_count = 2;
    n.outputs = &output;
    n.output_count = 1;
    EXPECT_TRUE(ok(graphs.add_node(g, &n, nullptr)));
  };
  node("Mul", "x", "w", "product");
  node("Add", "product", "b", "y");
  EXPECT_TRUE(ok(graphs.add_output(g, &y)));
  graphs.retain(g);
  seen.graph.reset(g);
  api().value->retain(weights.values[0]);
  seen.value.reset(weights.values[0]);
  return PFRT_CODE_OK;
}

TEST_F(Importers, a_definer_builds_the_graph_of_weights) {
  Seen seen;
  const auto model = load("x.rows", kWeights, {}, {linear, &seen});
  EXPECT_EQ(seen.calls, 1);
  EXPECT_EQ(seen.names, (std::vector<std::string>{"w", "b"}));
  EXPECT_EQ(seen.meta, "epoch=7");
  EXPECT_EQ(run_with(model.get(), {1, 1, 1}), (Floats{11, 22, 33}));
  EXPECT_EQ(array_of(seen.value.get()).as<float>(), (Floats{1, 2, 3})) << "it may be kept";
  EXPECT_TRUE(fails(api().graph->set_name(seen.graph.get(), str("late")),
                    PFRT_CODE_INVALID_ARGUMENT, {"the load is over", "model->graph"}));
  EXPECT_EQ(run_with(model.get(), {2, 2, 2}), (Floats{12, 24, 36}));
}

TEST_F(Importers, weights_without_a_definer_are_no_model) {
  EXPECT_TRUE(fails(try_load("x.rows", kWeights, nullptr), PFRT_CODE_UNSUPPORTED_FORMAT,
                    {"x.rows", "holds weights (2 tensors), no graph", "definer"}));
}

TEST_F(Importers, what_a_definer_says_is_the_error_of_the_load) {
  const Definer refuses{[](void*, const pfrt_definition* d) {
    return d->fail(d, PFRT_CODE_UNSUPPORTED_OPERATOR, str("there is no such layer"));
  }};
  const Definer declines{
      [](void*, const pfrt_definition*) -> pfrt_code { return PFRT_CODE_UNSUPPORTED_FORMAT; }};
  const Definer throws{[](void*, const pfrt_definition*) -> pfrt_code { throw 7; }};
  for (const char* const lines : {"", "swallow\n"}) {
    const std::string file = std::string(kWeights) + lines;
    EXPECT_TRUE(fails(try_load("x.rows", file, nullptr, {}, refuses),
                      PFRT_CODE_UNSUPPORTED_OPERATOR,
                      {"x.rows", "the definer failed", "there is no such layer"}));
    EXPECT_TRUE(fails(try_load("x.rows", file, nullptr, {}, declines), PFRT_CODE_UNSUPPORTED_FORMAT,
                      {"x.rows", "the definer failed", "unsupported format"}));
    EXPECT_TRUE(fails(try_load("x.rows", file, nullptr, {}, throws), PFRT_CODE_INTERNAL,
                      {"x.rows", "the definer let an exception out"}));
  }
  // It may also leave the graph in a state that is no model.
  const Definer empty{[](void*, const pfrt_definition* d) -> pfrt_code {
    const pfrt_value_info y = port("y");
    EXPECT_TRUE(ok(api().graph->add_output(d->graph, &y)));
    return PFRT_CODE_OK;
  }};
  EXPECT_TRUE(
      fails(try_load("x.rows", kWeights, nullptr, {}, empty), PFRT_CODE_VALIDATION, {"'y'"}));
}

TEST_F(Importers, a_definer_that_is_not_needed_is_a_mistake) {
  Seen seen;
  EXPECT_TRUE(fails(try_load("x.rows", "", nullptr, {}, {linear, &seen}),
                    PFRT_CODE_INVALID_ARGUMENT, {"x.rows", "a definer was given", "rows file"}));
  EXPECT_EQ(seen.calls, 0);
  const auto model = load("x.rows", "");
  ASSERT_TRUE(ok(api().model->save(env_.get(), model.get(), str("x.pfm"), nullptr)));
  const auto options = make_options(PFRT_OPTIONS_LOAD);
  ASSERT_TRUE(ok(api().options->set_definer(options.get(), linear, &seen)));
  pfrt_model* raw = nullptr;
  EXPECT_TRUE(fails(api().model->load_file(env_.get(), str("x.pfm"), options.get(), &raw),
                    PFRT_CODE_INVALID_ARGUMENT, {"a definer was given", "pfm file"}));
  const GraphBuilder graph = add_graph();
  EXPECT_TRUE(fails(api().model->from_graph(env_.get(), graph.get(), options.get(), &raw),
                    PFRT_CODE_INVALID_ARGUMENT, {"a definer is for files"}));
  const auto session = make_options(PFRT_OPTIONS_SESSION);
  EXPECT_TRUE(fails(api().options->set_definer(session.get(), linear, &seen),
                    PFRT_CODE_INVALID_ARGUMENT, {"kind session, not load"}));
}

TEST_F(Importers, models_of_different_definers_are_not_taken_for_each_other_by_a_cache) {
  const auto add_only = [](void*, const pfrt_definition* d) -> pfrt_code {
    const pfrt_value_info x = port("x"), y = port("y");
    const pfrt_string inputs[] = {str("x"), str("b")}, output = str("y");
    pfrt_node n{};
    n.struct_size = sizeof n;
    n.op = str("Add");
    n.inputs = inputs;
    n.input_count = 2;
    n.outputs = &output;
    n.output_count = 1;
    EXPECT_TRUE(ok(api().graph->add_input(d->graph, &x)));
    EXPECT_TRUE(ok(api().graph->add_initializer_value(d->graph, str("b"), d->weights->values[1])));
    EXPECT_TRUE(ok(api().graph->add_node(d->graph, &n, nullptr)));
    EXPECT_TRUE(ok(api().graph->add_output(d->graph, &y)));
    return PFRT_CODE_OK;
  };
  const std::string cache = folder_.path() + "/cache";
  const Settings settings{{"cache_dir", cache}};
  const auto session_options = make_options(PFRT_OPTIONS_SESSION, settings);
  for (int again = 0; again < 2; ++again) {
    Seen seen;
    for (const Definer& definer : {Definer{linear, &seen}, Definer{add_only, nullptr}}) {
      const auto model = load("x.rows", kWeights, settings, definer);
      const auto session = make_session(env_.get(), model.get(), session_options.get());
      EXPECT_EQ(run(session.get(), {floats({3}, {1, 1, 1})})[0].as<float>(),
                definer.user ? (Floats{11, 22, 33}) : (Floats{11, 21, 31}));
    }
    EXPECT_EQ(seen.calls, 1);
  }
}

// ---- states ----

struct StateReleaser {
  void operator()(pfrt_state* p) const { api().state->release(p); }
};
using StateHandle = std::unique_ptr<pfrt_state, StateReleaser>;

StateHandle state_of(pfrt_session* session) {
  pfrt_state* raw = nullptr;
  EXPECT_TRUE(ok(api().state->create(session, nullptr, 0, &raw)));
  return StateHandle(raw);
}

// Runs twice with x = 1 and x = 2, and returns the second result.
Floats two_steps(pfrt_session* session) {
  const StateHandle state = state_of(session);
  if (!state) return {};
  EXPECT_EQ(api().state->input_count(state.get()), 1u);
  const RunDesc desc({.state = state.get()});
  run(session, {floats({1}, {1}), Array()}, &desc);
  return run(session, {floats({1}, {2}), Array()}, &desc)[0].as<float>();
}

TEST_F(Importers, declare_states) {
  const auto sums = load("x.rows", "state");
  EXPECT_EQ(two_steps(make_session(env_.get(), sums.get()).get()), (Floats{3}));
  const auto grows = load("x.rows", "state grows");
  EXPECT_EQ(two_steps(make_session(env_.get(), grows.get()).get()), (Floats{1, 2}));
}

TEST_F(Importers, states_are_kept_in_files_and_copies) {
  const auto model = load("x.rows", "state grows");
  for (const char* const name : {"x.pfm", "x.onnx"}) {
    ASSERT_TRUE(ok(api().model->save(env_.get(), model.get(), str(name), nullptr)));
    pfrt_model* raw = nullptr;
    ASSERT_TRUE(ok(api().model->load_file(env_.get(), str(name), nullptr, &raw)));
    const Handle<pfrt_model> again(raw);
    EXPECT_EQ(two_steps(make_session(env_.get(), again.get()).get()), (Floats{1, 2})) << name;
  }
  pfrt_graph* raw_graph = nullptr;
  ASSERT_TRUE(ok(api().model->graph(model.get(), &raw_graph)));
  const Handle<pfrt_graph> graph(raw_graph);
  const auto session_of_graph = [&] {
    pfrt_model* raw = nullptr;
    EXPECT_TRUE(ok(api().model->from_graph(env_.get(), graph.get(), nullptr, &raw)));
    const Handle<pfrt_model> copy(raw);
    return make_session(env_.get(), copy.get());
  };
  EXPECT_EQ(two_steps(session_of_graph().get()), (Floats{1, 2}));
  const auto declare = [&](const char* value) {
    EXPECT_TRUE(ok(api().graph->set_metadata(graph.get(), str("pyflame_rt.state.h"), str(value))));
  };
  declare("grows:0:64 following");
  EXPECT_EQ(two_steps(session_of_graph().get()), (Floats{1, 2}));
  declare("grows:0 gone");
  pfrt_state* state = nullptr;
  EXPECT_TRUE(fails(api().state->create(session_of_graph().get(), nullptr, 0, &state),
                    PFRT_CODE_INVALID_ARGUMENT, {"no names of inputs"}))
      << "a part of a graph has not all pairs";
  for (const char* const value :
       {"grows following", "grows:x following", "shrinks following", "replaced:1 following",
        "replaced", "", "replaced ", "grows:0:0 following", "grows:0:x following",
        "grows:0: following", "replaced:0:4 following", "in_place:0 following",
        "by_names:0:4 following"}) {
    declare(value);
    EXPECT_TRUE(fails(api().state->create(session_of_graph().get(), nullptr, 0, &state),
                      PFRT_CODE_INVALID_MODEL, {"pyflame_rt.state.h", "way of growth"}))
        << value;
  }
}

TEST_F(Importers, states_have_to_fit_the_graph) {
  EXPECT_TRUE(fails(try_load("x.rows", "state nowhere", nullptr), PFRT_CODE_INVALID_MODEL,
                    {"x.rows", "'h'", "'nowhere'", "no such output"}));
  EXPECT_TRUE(fails(try_load("x.rows", "state odd", nullptr), PFRT_CODE_UNSUPPORTED,
                    {"x.rows", "growth", "77"}));
  EXPECT_TRUE(fails(try_load("x.rows", "state roomy", nullptr), PFRT_CODE_INVALID_ARGUMENT,
                    {"x.rows", "'h'", "capacity"}));
}

TEST_F(Importers, inputs_with_initializers_have_defaults) {
  const auto model = load("x.rows", "default 10 20");
  const auto session = make_session(env_.get(), model.get());
  const Array x = floats({2}, {1, 2});
  EXPECT_EQ(run(session.get(), {x, Array()})[0].as<float>(), (Floats{11, 22}));
  EXPECT_EQ(run(session.get(), {x, floats({2}, {3, 4})})[0].as<float>(), (Floats{4, 6}));
  EXPECT_EQ(run(session.get(), {x, floats({1}, {5})})[0].as<float>(), (Floats{6, 7}))
      << "other dimensions than the default's, as the input declares";
  EXPECT_EQ(run(session.get(), {x, Array()})[0].as<float>(), (Floats{11, 22}));
}

// ---- handles that are kept ----

TEST_F(Importers, handles_of_a_graph_that_are_kept_cannot_edit_its_model) {
  const auto model = load("x.rows", "body\nkeep");
  const auto run_both = [&] {
    const auto session = make_session(env_.get(), model.get());
    return run(session.get(), {floats({2}, {1, 2}), Array{PFRT_DTYPE_BOOL, {}, {1}}})[0]
        .as<float>();
  };
  EXPECT_EQ(run_both(), (Floats{2, 4}));
  const auto poked = load("y.rows", "poke");
  const auto warnings = warnings_of(poked.get());
  ASSERT_EQ(warnings.size(), 5u);
  for (const std::string& warning : warnings)
    EXPECT_NE(warning.find("the load is over"), std::string::npos) << warning;
  EXPECT_EQ(run_both(), (Floats{2, 4}));
}

// ---- declining ----

TEST_F(Importers, that_decline_leave_the_file_to_the_next) {
  pfrt_model_info info{};
  info.struct_size = sizeof info;
  const auto format_of = [&](const char* name, const char* lines) {
    const auto model = load(name, lines);
    EXPECT_TRUE(ok(api().model->info(model.get(), &info)));
    return text(info.format);
  };
  EXPECT_EQ(format_of("x.rows", ""), "rows") << "the extension comes first";
  EXPECT_EQ(format_of("x", ""), "columns") << "then who is surest";
  EXPECT_EQ(format_of("x.rows", "only Columns"), "columns");
  EXPECT_EQ(format_of("x.columns", "only Rows"), "rows");
  EXPECT_EQ(format_of("x", "only Rows"), "rows");
}

TEST_F(Importers, that_all_decline_are_listed_with_their_reasons) {
  EXPECT_TRUE(fails(try_load("x.rows", "only Nobody", nullptr), PFRT_CODE_UNSUPPORTED_FORMAT,
                    {"x.rows", "no importer takes it", "Rows (it is for Nobody only)",
                     "Columns (it is for Nobody only)"}));
}

TEST_F(Importers, are_checked_for_options_one_by_one) {
  EXPECT_TRUE(fails(try_load("x.rows", "only Columns", nullptr, {{"import.columns.scal", "3"}}),
                    PFRT_CODE_INVALID_ARGUMENT, {"import.columns.scale"}));
  const auto model = load("x.rows", "only Columns", {{"import.columns.scale", "3"}});
  EXPECT_EQ(run_with(model.get(), {1, 2}), (Floats{3, 6}));
}

// ---- entries ----

TEST_F(Importers, choose_among_entries_of_a_file) {
  const std::string lines = "entry forward\nentry encode\nentry decode";
  const auto scale_of = [&](const Settings& settings, const char* entry) {
    const auto model = load("x.rows", lines, settings);
    pfrt_model_info info{};
    info.struct_size = sizeof info;
    EXPECT_TRUE(ok(api().model->info(model.get(), &info)));
    EXPECT_EQ(text(info.entry), entry);
    EXPECT_EQ(text(info.entries), "forward,encode,decode");
    return run_with(model.get(), {1})[0];
  };
  EXPECT_EQ(scale_of({}, "forward"), 1);
  EXPECT_EQ(scale_of({{"entry", "decode"}}, "decode"), 3);
  EXPECT_TRUE(fails(try_load("x.rows", lines, nullptr, {{"entry", "encod"}}),
                    PFRT_CODE_INVALID_ARGUMENT,
                    {"no entry 'encod'", "forward, encode, decode", "did you mean 'encode'"}));
  EXPECT_TRUE(fails(try_load("x.rows", "", nullptr, {{"entry", "forward"}}),
                    PFRT_CODE_INVALID_ARGUMENT, {"'entry' is 'forward'", "rows file"}));
}

TEST_F(Importers, entries_are_known_to_a_cache) {
  const std::string cache = folder_.path() + "/cache", lines = "entry one\nentry two";
  write_file("x.rows", "rows\n" + lines);
  // Files that have changed just now are not kept.
  std::filesystem::last_write_time(
      "x.rows", std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  for (int again = 0; again < 2; ++again) {
    for (const char* const entry : {"one", "two"}) {
      const auto options =
          make_options(PFRT_OPTIONS_LOAD, {{"cache_dir", cache}, {"entry", entry}});
      pfrt_model* raw = nullptr;
      ASSERT_TRUE(ok(api().model->load_file(env_.get(), str("x.rows"), options.get(), &raw)));
      const Handle<pfrt_model> model(raw);
      pfrt_model_info info{};
      info.struct_size = sizeof info;
      ASSERT_TRUE(ok(api().model->info(model.get(), &info)));
      EXPECT_EQ(text(info.entry), entry);
      EXPECT_EQ(text(info.entries), "one,two");
      EXPECT_EQ(run_with(model.get(), {1}), (Floats{std::string(entry) == "one" ? 1.f : 2.f}));
    }
  }
}

}  // namespace
}  // namespace pfrt_test

// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "test/capi/client.h"
#include "test/onnx_writer.h"

namespace pfrt_test {
namespace {

using onnx_writer::float_attribute;
using onnx_writer::function;
using onnx_writer::Graph;
using onnx_writer::graph_attribute;
using onnx_writer::int_attribute;
using onnx_writer::ints_attribute;
using onnx_writer::kBool;
using onnx_writer::kFloat;
using onnx_writer::kInt64;
using onnx_writer::Message;
using onnx_writer::model;
using onnx_writer::node;
using onnx_writer::raw_bytes;
using onnx_writer::string_attribute;
using onnx_writer::tensor;
using onnx_writer::value_info;

Failure load(pfrt_env* env, const std::string& bytes, Handle<pfrt_model>* out = nullptr) {
  pfrt_model* raw = nullptr;
  Failure failure = take(api().model->load_memory(env, bytes.data(), bytes.size(), PFRT_COPY,
                                                  nullptr, nullptr, nullptr, &raw));
  EXPECT_EQ(failure.ok(), raw != nullptr);
  Handle<pfrt_model> model(raw);
  if (out) *out = std::move(model);
  return failure;
}

Failure load(pfrt_env* env, const Message& message, Handle<pfrt_model>* out = nullptr) {
  return load(env, message.bytes(), out);
}

// y = x + b with b = {1, 2, 3}.
Graph add_three() {
  Graph g;
  g.nodes = {node("Add", {"x", "b"}, {"y"}, {}, "add")};
  g.initializers = {tensor("b", kFloat, {3}, raw_bytes<float>({1, 2, 3}))};
  g.inputs = {value_info("x", kFloat, {-1, 3})};
  g.outputs = {value_info("y", kFloat, {-1, 3})};
  return g;
}

// A model with every kind of thing that a file holds: attributes of all sorts, a body, strings, a
// function.
Message rich_model() {
  Graph body;
  body.name = "body";
  body.nodes = {node("Relu", {"c"}, {"r"})};
  body.outputs = {value_info("r", kFloat, {})};
  Graph other;
  other.name = "other";
  other.nodes = {node("Neg", {"c"}, {"r"})};
  other.outputs = {value_info("r", kFloat, {})};
  Graph g;
  g.nodes = {
      node("Conv", {"x", "w"}, {"c"},
           {ints_attribute("pads", {1, 1, 1, 1}), int_attribute("group", 1),
            string_attribute("auto_pad", "NOTSET")},
           "conv"),
      node("If", {"flag"}, {"i"},
           {graph_attribute("then_branch", body.message()),
            graph_attribute("else_branch", other.message())},
           "choice"),
      node("Twice", {"i"}, {"t"}, {float_attribute("slope", 0.5f)}, "call", "local"),
      node("Reshape", {"t", "shape"}, {"y"}, {}, "flat"),
  };
  g.initializers = {tensor("w", kFloat, {2, 1, 3, 3}, raw_bytes(std::vector<float>(18, 0.25f))),
                    tensor("shape", kInt64, {2}, raw_bytes<int64_t>({0, -1}))};
  g.inputs = {value_info("x", kFloat, {-1, 1, 4, 4}), value_info("flag", kBool, {})};
  g.outputs = {value_info("y", kFloat, {-1, 32})};
  const Message twice = function(
      "local", "Twice", {"a"}, {"b"}, {"slope"},
      {node("LeakyRelu", {"a"}, {"m"}, {onnx_writer::reference_attribute("alpha", "slope", 1)}),
       node("Add", {"m", "m"}, {"b"})},
      {{"", 17}});
  return model(g, {{"", 17}, {"local", 1}}, {twice});
}

// A folder for this test, which is removed in the end.
class TempFolder {
 public:
  TempFolder() {
    std::string name = testing::TempDir() + "pfrt_onnx_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  void write(const std::string& name, std::string_view bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::filesystem::path path_;
};

class ImportOnnx : public testing::Test {
 protected:
  Handle<pfrt_env> env = make_env();
};

TEST_F(ImportOnnx, runs_what_the_writer_wrote) {
  Handle<pfrt_model> made;
  ASSERT_TRUE(ok(load(env.get(), model(add_three()), &made)));
  EXPECT_EQ(api().model->warning_count(made.get()), 0u);
  const auto session = make_session(env.get(), made.get());
  EXPECT_EQ(run(session.get(), {floats({1, 3}, {0, 0, 0})})[0].as<float>(),
            (std::vector<float>{1, 2, 3}));
}

TEST_F(ImportOnnx, options_of_a_load_reach_the_importer_they_are_for) {
  const std::string bytes = model(add_three()).bytes();
  const auto load_with = [&](const char* key) {
    const auto options = make_options(PFRT_OPTIONS_LOAD, {{key, "1"}});
    pfrt_model* raw = nullptr;
    Failure failure = take(api().model->load_memory(
        env.get(), bytes.data(), bytes.size(), PFRT_COPY, nullptr, nullptr, options.get(), &raw));
    api().model->release(raw);
    return failure;
  };
  EXPECT_TRUE(fails(load_with("import.onnx.speed"), PFRT_CODE_INVALID_ARGUMENT,
                    {"no option 'import.onnx.speed'", "there are none"}));
  EXPECT_TRUE(fails(load_with("import.moon.speed"), PFRT_CODE_INVALID_ARGUMENT,
                    {"'import.moon.speed'", "there are pfm", "onnx"}));
  EXPECT_TRUE(ok(load_with("import.pfm.speed"))) << "it is another's";
}

TEST_F(ImportOnnx, denotations_are_kept_and_handed_back) {
  const auto dim = [](const Message& size, std::string_view denotation) {
    return Message(size).text(3, denotation);
  };
  const Message shape = Message()
                            .message(1, dim(Message().text(2, "N"), "DATA_BATCH"))
                            .message(1, dim(Message().number(1, 3), "50%, or so%2C"));
  const Message image =
      Message().message(1, Message().number(1, kFloat).message(2, shape)).text(6, "IMAGE");
  const Message feature =
      Message()
          .message(1, Message().number(1, kFloat).message(
                          2, Message()
                                 .message(1, Message().text(2, "N"))
                                 .message(1, dim(Message().number(1, 3), "DATA_FEATURE"))))
          .text(6, "");
  Graph g = add_three();
  g.nodes.push_back(node("Relu", {"y"}, {"z"}));
  g.inputs = {Message().text(1, "x").message(2, image)};
  g.outputs = {value_info("z", kFloat, {-1, 3})};
  const Message inner = Message().text(1, "y").message(2, feature);
  const Message file = Message()
                           .number(1, 8)
                           .message(7, Message(g.message()).message(13, inner))
                           .message(8, Message().number(2, 17));
  Handle<pfrt_model> made;
  ASSERT_TRUE(ok(load(env.get(), file, &made)));
  const TempFolder folder;
  const auto save_as = [&](const pfrt_model* model, const std::string& name) {
    EXPECT_TRUE(ok(api().model->save(env.get(), model, str(folder / name), nullptr)));
    std::ifstream in(folder / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const auto expect_kept = [&](const std::string& bytes) {
    EXPECT_NE(bytes.find(image.bytes()), std::string::npos);
    EXPECT_NE(bytes.find("DATA_FEATURE"), std::string::npos);
    EXPECT_EQ(bytes.find("onnx.denotation"), std::string::npos) << "it is no metadata of the file";
  };
  expect_kept(save_as(made.get(), "direct.onnx"));
  save_as(made.get(), "between.pfm");
  const std::string between = folder / "between.pfm";
  pfrt_model* raw = nullptr;
  ASSERT_TRUE(ok(api().model->load_file(env.get(), str(between), nullptr, &raw)));
  const Handle<pfrt_model> again(raw);
  expect_kept(save_as(again.get(), "again.onnx"));
  // A value that is gone, or has another rank, has no denotations of dimensions.
  pfrt_graph* raw_graph = nullptr;
  ASSERT_TRUE(ok(api().model->graph(made.get(), &raw_graph)));
  const Handle<pfrt_graph> graph(raw_graph);
  pfrt_value_info flat{};
  flat.struct_size = sizeof flat;
  flat.kind = PFRT_VALUE_TENSOR;
  flat.dtype = PFRT_DTYPE_FLOAT32;
  flat.name = str("x");
  flat.rank = 1;
  const int64_t three = 3;
  flat.dims = &three;
  ASSERT_TRUE(ok(api().graph->replace_input(graph.get(), 0, &flat)));
  ASSERT_TRUE(ok(api().model->from_graph(env.get(), graph.get(), nullptr, &raw)));
  const Handle<pfrt_model> edited(raw);
  const std::string bytes = save_as(edited.get(), "edited.onnx");
  EXPECT_EQ(bytes.find("DATA_BATCH"), std::string::npos);
  EXPECT_NE(bytes.find("IMAGE"), std::string::npos);
}

TEST_F(ImportOnnx, inlines_model_local_functions) {
  Handle<pfrt_model> made;
  ASSERT_TRUE(ok(load(env.get(), rich_model(), &made)));
  const auto session = make_session(env.get(), made.get());
  ASSERT_TRUE(session);
  const Array x = floats({1, 1, 4, 4}, std::vector<float>(16, 1));
  const Array yes{PFRT_DTYPE_BOOL, {}, {1}}, no{PFRT_DTYPE_BOOL, {}, {0}};
  const auto relu = run(session.get(), {x, yes})[0];
  EXPECT_EQ(relu.dims, (std::vector<int64_t>{1, 32}));
  EXPECT_EQ(relu.as<float>()[0], 2.0f) << "a corner sees four ones, a quarter each, twice";
  EXPECT_EQ(relu.as<float>()[5], 4.5f);
  // The other branch is negative: the function's slope halves it, then it is doubled.
  EXPECT_EQ(run(session.get(), {x, no})[0].as<float>()[0], -1.0f);
}

TEST_F(ImportOnnx, function_that_calls_itself_is_refused) {
  Graph g;
  g.nodes = {node("Loopy", {"x"}, {"y"}, {}, "call", "local")};
  g.inputs = {value_info("x", kFloat, {2})};
  g.outputs = {value_info("y", kFloat, {2})};
  const Message loopy =
      function("local", "Loopy", {"a"}, {"b"}, {}, {node("Loopy", {"a"}, {"b"}, {}, "", "local")},
               {{"", 17}, {"local", 1}});
  EXPECT_TRUE(fails(load(env.get(), model(g, {{"", 17}, {"local", 1}}, {loopy})),
                    PFRT_CODE_INVALID_MODEL, {"Loopy", "itself"}));
}

TEST_F(ImportOnnx, functions_cannot_grow_without_end) {
  // Each level calls the next one twice: 2^40 nodes from 40 functions.
  std::vector<Message> functions;
  for (int i = 0; i < 40; ++i) {
    const std::string next = i == 39 ? "Relu" : "F" + std::to_string(i + 1);
    const std::string domain = i == 39 ? "" : "local";
    functions.push_back(function(
        "local", "F" + std::to_string(i), {"a"}, {"c"}, {},
        {node(next, {"a"}, {"b"}, {}, "", domain), node(next, {"b"}, {"c"}, {}, "", domain)},
        {{"", 17}, {"local", 1}}));
  }
  Graph g;
  g.nodes = {node("F0", {"x"}, {"y"}, {}, "call", "local")};
  g.inputs = {value_info("x", kFloat, {2})};
  g.outputs = {value_info("y", kFloat, {2})};
  EXPECT_TRUE(fails(load(env.get(), model(g, {{"", 17}, {"local", 1}}, functions)),
                    PFRT_CODE_INVALID_MODEL, {"nodes"}));
}

TEST_F(ImportOnnx, newer_opset_is_a_warning) {
  Handle<pfrt_model> made;
  ASSERT_TRUE(ok(load(env.get(), model(add_three(), {{"", 999}}), &made)));
  std::string warnings;
  for (size_t i = 0; i < api().model->warning_count(made.get()); ++i) {
    pfrt_string warning{};
    ASSERT_TRUE(ok(api().model->warning_at(made.get(), i, &warning)));
    warnings += text(warning) + "\n";
  }
  EXPECT_NE(warnings.find("999"), std::string::npos) << warnings;
  EXPECT_NE(warnings.find("28"), std::string::npos) << warnings;
}

TEST_F(ImportOnnx, cyclic_graph_names_the_nodes) {
  Graph g;
  g.nodes = {node("Add", {"x", "c"}, {"a"}, {}, "one"), node("Relu", {"a"}, {"c"}, {}, "two")};
  g.inputs = {value_info("x", kFloat, {2})};
  g.outputs = {value_info("c", kFloat, {2})};
  EXPECT_TRUE(fails(load(env.get(), model(g)), PFRT_CODE_VALIDATION, {"one", "two"}));
}

TEST_F(ImportOnnx, missing_value_names_node_and_value) {
  Graph g = add_three();
  g.nodes.push_back(node("Mul", {"y", "absent"}, {"z"}, {}, "mul"));
  EXPECT_TRUE(fails(load(env.get(), model(g)), PFRT_CODE_VALIDATION, {"mul", "absent"}));
}

TEST_F(ImportOnnx, payload_of_the_wrong_size_names_the_tensor) {
  for (const size_t count : {0u, 1u, 2u, 4u}) {
    Graph g = add_three();
    g.initializers = {tensor("b", kFloat, {3}, raw_bytes(std::vector<float>(count, 1)))};
    EXPECT_TRUE(fails(load(env.get(), model(g)), PFRT_CODE_INVALID_MODEL,
                      {"'b'", "float32", "[3]", "12", std::to_string(count * 4)}))
        << count;
  }
}

TEST_F(ImportOnnx, impossible_dims_name_the_tensor) {
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{-3}, {INT64_MAX, INT64_MAX}, {int64_t{1} << 61}, {3, -1}}) {
    Graph g = add_three();
    g.initializers = {tensor("b", kFloat, dims, raw_bytes<float>({1, 2, 3}))};
    EXPECT_TRUE(fails(load(env.get(), model(g)), PFRT_CODE_INVALID_MODEL, {"'b'"}));
  }
  Graph g = add_three();
  g.initializers = {tensor("b", 77, {3}, raw_bytes<float>({1, 2, 3}))};
  EXPECT_TRUE(fails(load(env.get(), model(g)), PFRT_CODE_UNSUPPORTED, {"'b'", "77"}));
}

TEST_F(ImportOnnx, repeated_initializer_is_named) {
  Graph g = add_three();
  g.initializers.push_back(g.initializers[0]);
  EXPECT_TRUE(fails(load(env.get(), model(g)), PFRT_CODE_INVALID_MODEL, {"'b'", "twice"}));
}

TEST_F(ImportOnnx, other_files_are_not_taken_for_models) {
  pfrt_model* raw = nullptr;
  const TempFolder folder;
  for (const std::string& bytes :
       {std::string("GIF89a and so on"), std::string("{\"json\": 1}"), std::string(100, '\xff'),
        std::string(1, '\0'), std::string("\x08\x08", 2)}) {
    folder.write("m.onnx", bytes);
    const Failure failure =
        take(api().model->load_file(env.get(), str(folder / "m.onnx"), nullptr, &raw));
    EXPECT_FALSE(failure.ok());
    EXPECT_NE(failure.message.find("m.onnx"), std::string::npos) << failure.message;
    EXPECT_EQ(raw, nullptr);
  }
}

// Saves models again and reads their IR version, the file's first field.
class SaveOnnx : public ImportOnnx {
 protected:
  int64_t saved_version(const Message& message, const char* by_way_of = nullptr) {
    Handle<pfrt_model> made;
    EXPECT_TRUE(ok(load(env.get(), message, &made)));
    if (by_way_of) {
      const std::string path = folder_ / by_way_of;
      EXPECT_TRUE(ok(take(api().model->save(env.get(), made.get(),
                                            pfrt_string{path.data(), path.size()}, nullptr))));
      pfrt_model* read = nullptr;
      EXPECT_TRUE(ok(take(api().model->load_file(env.get(), pfrt_string{path.data(), path.size()},
                                                 nullptr, &read))));
      made = Handle<pfrt_model>(read);
    }
    return written(made.get());
  }
  // Saves the graph alone, which has no file's version.
  int64_t version_of_graph(const Message& message) {
    Handle<pfrt_model> read;
    EXPECT_TRUE(ok(load(env.get(), message, &read)));
    pfrt_graph* graph = nullptr;
    EXPECT_TRUE(ok(take(api().model->graph(read.get(), &graph))));
    const Handle<pfrt_graph> owned(graph);
    pfrt_model* made = nullptr;
    EXPECT_TRUE(ok(take(api().model->from_graph(env.get(), graph, nullptr, &made))));
    return written(Handle<pfrt_model>(made).get());
  }

 private:
  int64_t written(pfrt_model* model) {
    const std::string path = folder_ / "saved.onnx";
    EXPECT_TRUE(ok(
        take(api().model->save(env.get(), model, pfrt_string{path.data(), path.size()}, nullptr))));
    std::ifstream file(path, std::ios::binary);
    const int tag = file.get(), version = file.get();
    EXPECT_EQ(tag, 1 << 3);
    return version;
  }
  TempFolder folder_;
};

TEST_F(SaveOnnx, models_keep_their_ir_version) {
  for (const int64_t version : {4, 7, 8, 10, 11}) {
    const Message file = model(add_three(), {{"", 13}}, {}, version);
    EXPECT_EQ(saved_version(file), version);
    EXPECT_EQ(saved_version(file, "between.pfm"), version);
    EXPECT_EQ(saved_version(file, "between.onnx"), version);
  }
  // Version 4 was the first with initializers that are no inputs.
  Graph listed = add_three();
  listed.inputs.push_back(value_info("b", kFloat, {3}));
  EXPECT_EQ(saved_version(model(listed, {{"", 8}}, {}, 3)), 4);
}

TEST_F(SaveOnnx, what_a_model_holds_may_need_a_newer_ir_version) {
  constexpr int64_t kFloat8 = 17, kInt4 = 22;
  for (const auto& [type, needed] : {std::pair(kFloat8, 9), std::pair(kInt4, 10)}) {
    Graph g;
    g.nodes = {node("Identity", {"x"}, {"y"})};
    g.inputs = {value_info("x", type, {4})};
    g.outputs = {value_info("y", type, {4})};
    EXPECT_EQ(saved_version(model(g, {{"", 21}}, {}, 8)), needed);
  }
}

TEST_F(SaveOnnx, graphs_get_the_ir_version_of_their_opset) {
  using Versions = std::pair<int64_t, int64_t>;
  for (const auto& [opset, version] :
       {Versions{9, 4}, Versions{11, 6}, Versions{13, 7}, Versions{17, 8}, Versions{20, 9},
        Versions{21, 10}, Versions{23, 10}})
    EXPECT_EQ(version_of_graph(model(add_three(), {{"", opset}}, {}, 11)), version) << opset;
}

class ImportOnnxExternal : public ImportOnnx {
 protected:
  // Loads the model of the folder "model", whose 3 floats are in |location|.
  Failure load_with(const std::string& location,
                    const std::vector<std::pair<std::string, std::string>>& more = {},
                    Handle<pfrt_model>* out = nullptr) {
    Graph g = add_three();
    g.initializers = {onnx_writer::external_tensor("b", kFloat, {3}, location, more)};
    folder.write("model/m.onnx", model(g).bytes());
    pfrt_model* raw = nullptr;
    Failure failure =
        take(api().model->load_file(env.get(), str(folder / "model/m.onnx"), nullptr, &raw));
    Handle<pfrt_model> made(raw);
    if (out) *out = std::move(made);
    return failure;
  }

  const std::string numbers = raw_bytes<float>({1, 2, 3});
  TempFolder folder;
};

TEST_F(ImportOnnxExternal, data_beside_the_model_is_read) {
  folder.write("model/w.bin", std::string(8, '\x7f') + numbers + std::string(8, '\x7f'));
  folder.write("model/deep/w.bin", numbers);
  for (const auto& [location, more] :
       {std::pair<std::string, std::vector<std::pair<std::string, std::string>>>{
            "w.bin", {{"offset", "8"}, {"length", "12"}}},
        {"deep/w.bin", {}},
        {"./deep/w.bin", {}}}) {
    SCOPED_TRACE(location);
    Handle<pfrt_model> made;
    ASSERT_TRUE(ok(load_with(location, more, &made)));
    const auto session = make_session(env.get(), made.get());
    EXPECT_EQ(run(session.get(), {floats({1, 3}, {0, 0, 0})})[0].as<float>(),
              (std::vector<float>{1, 2, 3}));
  }
}

TEST_F(ImportOnnxExternal, data_outside_the_folder_is_refused) {
  folder.write("secret.bin", numbers);
  folder.write("model/inside.bin", numbers);
  folder.write("model/deep/keep", "");
  ASSERT_EQ(symlink("../secret.bin", (folder / "model/link.bin").c_str()), 0);
  ASSERT_EQ(symlink("..", (folder / "model/up").c_str()), 0);
  ASSERT_EQ(symlink((folder / "secret.bin").c_str(), (folder / "model/absolute.bin").c_str()), 0);
  for (const std::string& location :
       {std::string("../secret.bin"), std::string("deep/../../secret.bin"), folder / "secret.bin",
        folder / "model/inside.bin", std::string("link.bin"), std::string("up/secret.bin"),
        std::string("absolute.bin"), std::string("/etc/passwd"), std::string("..")}) {
    SCOPED_TRACE(location);
    const Failure failure = load_with(location);
    EXPECT_FALSE(failure.ok());
    EXPECT_NE(failure.message.find("'b'"), std::string::npos) << failure.message;
    EXPECT_NE(failure.message.find(location), std::string::npos) << failure.message;
  }
}

TEST_F(ImportOnnxExternal, missing_file_is_named) {
  EXPECT_TRUE(fails(load_with("nowhere.bin"), PFRT_CODE_NOT_FOUND, {"'b'", "nowhere.bin"}));
  for (const std::string& location : {std::string(), std::string("."), std::string("w\0.bin", 6)}) {
    const Failure failure = load_with(location);
    EXPECT_FALSE(failure.ok());
    EXPECT_NE(failure.message.find("'b'"), std::string::npos) << failure.message;
  }
}

TEST_F(ImportOnnxExternal, data_past_the_end_of_the_file_is_refused) {
  folder.write("model/w.bin", numbers);
  using More = std::vector<std::pair<std::string, std::string>>;
  for (const More& more : {More{{"offset", "4"}}, More{{"offset", "13"}}, More{{"length", "13"}},
                           More{{"length", "8"}}, More{{"offset", "-4"}}, More{{"offset", "x"}},
                           More{{"length", ""}}, More{{"offset", "18446744073709551612"}},
                           More{{"offset", "18446744073709551612"}, {"length", "12"}}}) {
    const Failure failure = load_with("w.bin", more);
    EXPECT_FALSE(failure.ok()) << more[0].first << " " << more[0].second;
    EXPECT_NE(failure.message.find("'b'"), std::string::npos) << failure.message;
  }
}

TEST_F(ImportOnnxExternal, needs_a_folder) {
  Graph g = add_three();
  g.initializers = {onnx_writer::external_tensor("b", kFloat, {3}, "w.bin")};
  EXPECT_TRUE(fails(load(env.get(), model(g)), PFRT_CODE_UNSUPPORTED, {"'b'", "w.bin"}));
}

// Any damaged bytes give a model or one clear error.
class ImportOnnxDamage : public ImportOnnx {
 protected:
  void load_and_use(const std::string& bytes) {
    Handle<pfrt_model> made;
    const Failure failure = load(env.get(), bytes, &made);
    if (!failure.ok()) {
      EXPECT_NE(failure.code, uint32_t{PFRT_CODE_INTERNAL}) << failure.message;
      EXPECT_FALSE(failure.message.empty());
      return;
    }
    const Failure planned = try_session(env.get(), made.get());
    EXPECT_NE(planned.code, uint32_t{PFRT_CODE_INTERNAL}) << planned.message;
  }
};

TEST_F(ImportOnnxDamage, truncated_at_every_length) {
  for (const Message& message : {model(add_three()), rich_model()}) {
    const std::string& bytes = message.bytes();
    ASSERT_TRUE(ok(load(env.get(), bytes)));
    for (size_t size = 0; size < bytes.size(); ++size) {
      SCOPED_TRACE(size);
      load_and_use(bytes.substr(0, size));
      if (HasFailure()) return;
    }
  }
}

TEST_F(ImportOnnxDamage, flipped_bytes) {
  const std::string good = rich_model().bytes();
  std::minstd_rand random(2000);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = good;
    const size_t at = random() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(1 + random() % 255));
    SCOPED_TRACE("flip " + std::to_string(i) + " at " + std::to_string(at));
    load_and_use(bytes);
    if (HasFailure()) return;
  }
}

TEST_F(ImportOnnxDamage, bodies_nested_without_end) {
  Graph inner;
  inner.nodes = {node("Relu", {"x"}, {"r"})};
  inner.outputs = {value_info("r", kFloat, {2})};
  for (int depth = 0; depth < 2000; ++depth) {
    Graph outer;
    const Message body = inner.message();
    outer.nodes = {node(
        "If", {"flag"}, {"r"},
        {graph_attribute("then_branch", body), graph_attribute("else_branch", Graph{}.message())})};
    outer.outputs = {value_info("r", kFloat, {2})};
    inner = std::move(outer);
  }
  inner.inputs = {value_info("x", kFloat, {2}), value_info("flag", kBool, {})};
  EXPECT_TRUE(fails(load(env.get(), model(inner)), PFRT_CODE_INVALID_MODEL, {}));
}

}  // namespace
}  // namespace pfrt_test

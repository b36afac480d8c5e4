// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <fstream>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

// The name of a file for this test, which is removed in the end.
class ModelPath {
 public:
  explicit ModelPath(const std::string& name)
      : path_(testing::TempDir() + "pfrt_" + std::to_string(getpid()) + "_" + name) {}
  ~ModelPath() { unlink(path_.c_str()); }
  ModelPath(const ModelPath&) = delete;
  ModelPath& operator=(const ModelPath&) = delete;
  const std::string& path() const { return path_; }
  void write(std::string_view bytes) const {
    std::ofstream(path_, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  std::string read() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string path_;
};

// Returns add_graph as the bytes of a .pfm file.
std::string pfm_bytes(pfrt_env* env) {
  const ModelPath file("bytes.pfm");
  const auto model = make_model(env, add_graph());
  EXPECT_TRUE(ok(api().model->save(env, model.get(), str(file.path()), nullptr)));
  return file.read();
}

struct Releases {
  int count = 0;
  void* data = nullptr;
  static void call(void* user, void* data) {
    ++static_cast<Releases*>(user)->count;
    static_cast<Releases*>(user)->data = data;
  }
};

TEST(Model, of_copied_memory_needs_it_during_the_call_only) {
  const auto env = make_env();
  std::string bytes = pfm_bytes(env.get());
  ASSERT_FALSE(bytes.empty());
  Releases releases;
  pfrt_model* raw = nullptr;
  ASSERT_TRUE(ok(api().model->load_memory(env.get(), bytes.data(), bytes.size(), PFRT_COPY,
                                          Releases::call, &releases, nullptr, &raw)));
  const Handle<pfrt_model> model(raw);
  bytes.assign(bytes.size(), '\xff');
  const auto session = make_session(env.get(), raw);
  EXPECT_EQ(run(session.get(), {floats({1, 3}, {0, 0, 0})})[0].as<float>(),
            (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(releases.count, 0);
}

TEST(Model, of_borrowed_memory_releases_it_once_after_the_last_view) {
  auto env = make_env();
  // The bytes are aligned as the payloads need it, so views go straight into this memory.
  const std::string bytes = pfm_bytes(env.get());
  ASSERT_FALSE(bytes.empty());
  std::vector<char> room(bytes.size() + 64);
  char* data = room.data() + (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) % 64;
  std::memcpy(data, bytes.data(), bytes.size());
  Releases releases;
  pfrt_model* raw = nullptr;
  ASSERT_TRUE(ok(api().model->load_memory(env.get(), data, bytes.size(), PFRT_BORROW,
                                          Releases::call, &releases, nullptr, &raw)));
  auto session = make_session(env.get(), raw);
  api().model->release(raw);
  env.reset();
  EXPECT_EQ(releases.count, 0);
  EXPECT_EQ(run(session.get(), {floats({1, 3}, {0, 0, 0})})[0].as<float>(),
            (std::vector<float>{1, 2, 3}));
  session.reset();
  EXPECT_EQ(releases.count, 1);
  EXPECT_EQ(releases.data, data);
}

TEST(Model, of_borrowed_memory_releases_it_once_on_failure) {
  const auto env = make_env();
  const std::string good = pfm_bytes(env.get());
  ASSERT_GT(good.size(), 100u);
  for (const std::string& bytes :
       {std::string("no model at all"), good.substr(0, 90), std::string(), std::string(64, '\0')}) {
    Releases releases;
    pfrt_model* raw = nullptr;
    EXPECT_FALSE(ok(api().model->load_memory(env.get(), bytes.data(), bytes.size(), PFRT_BORROW,
                                             Releases::call, &releases, nullptr, &raw)));
    EXPECT_EQ(raw, nullptr);
    EXPECT_EQ(releases.count, 1);
  }
  Releases releases;
  EXPECT_FALSE(ok(api().model->load_memory(nullptr, good.data(), good.size(), PFRT_BORROW,
                                           Releases::call, &releases, nullptr, nullptr)));
  EXPECT_EQ(releases.count, 1);
  const auto wrong = make_options(PFRT_OPTIONS_SESSION);
  pfrt_model* raw = nullptr;
  EXPECT_FALSE(ok(api().model->load_memory(env.get(), good.data(), good.size(), PFRT_BORROW,
                                           Releases::call, &releases, wrong.get(), &raw)));
  EXPECT_EQ(releases.count, 2);
}

TEST(Model, memory_mode_must_be_given) {
  const auto env = make_env();
  pfrt_model* raw = nullptr;
  for (const auto& [mode, code] :
       {std::pair<pfrt_memory_mode, pfrt_code>{0, PFRT_CODE_INVALID_ARGUMENT},
        {3, PFRT_CODE_UNSUPPORTED}})
    EXPECT_TRUE(
        fails(api().model->load_memory(env.get(), "PFM", 3, mode, nullptr, nullptr, nullptr, &raw),
              code, {"mode"}));
}

TEST(Model, file_that_is_not_there_is_named) {
  const auto env = make_env();
  pfrt_model* raw = nullptr;
  EXPECT_TRUE(fails(api().model->load_file(env.get(), str("/nowhere/at/all.onnx"), nullptr, &raw),
                    PFRT_CODE_NOT_FOUND, {"/nowhere/at/all.onnx"}));
  EXPECT_FALSE(ok(api().model->load_file(env.get(), str(""), nullptr, &raw)));
  EXPECT_FALSE(ok(api().model->load_file(env.get(), str("/"), nullptr, &raw)));
  EXPECT_EQ(raw, nullptr);
}

TEST(Model, unknown_format_lists_the_known_ones) {
  const auto env = make_env();
  const ModelPath file("text.txt");
  file.write("certainly no model\n");
  pfrt_model* raw = nullptr;
  EXPECT_TRUE(fails(api().model->load_file(env.get(), str(file.path()), nullptr, &raw),
                    PFRT_CODE_UNSUPPORTED_FORMAT, {file.path(), "pfm", "onnx"}));
  const ModelPath empty("empty.onnx");
  empty.write("");
  EXPECT_TRUE(fails(api().model->load_file(env.get(), str(empty.path()), nullptr, &raw),
                    PFRT_CODE_INVALID_MODEL, {empty.path(), "empty"}));
}

TEST(Model, saved_and_loaded_computes_the_same) {
  const auto env = make_env();
  const Array x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto model = make_model(env.get(), add_graph());
  for (const char* name : {"round.pfm", "round.onnx"}) {
    const ModelPath file(name);
    ASSERT_TRUE(ok(api().model->save(env.get(), model.get(), str(file.path()), nullptr))) << name;
    pfrt_model* raw = nullptr;
    ASSERT_TRUE(ok(api().model->load_file(env.get(), str(file.path()), nullptr, &raw))) << name;
    const Handle<pfrt_model> loaded(raw);
    const auto session = make_session(env.get(), raw);
    EXPECT_EQ(run(session.get(), {x})[0].as<float>(), (std::vector<float>{2, 4, 6, 5, 7, 9}));
    pfrt_model_info info{};
    info.struct_size = sizeof info;
    ASSERT_TRUE(ok(api().model->info(raw, &info)));
    EXPECT_EQ(info.node_count, 1u);
    EXPECT_EQ(info.initializer_count, 1u);
    EXPECT_EQ(info.parameter_count, 3u);
    EXPECT_EQ(info.parameter_bytes, 12u);
    EXPECT_EQ(std::string("round.") + text(info.format), name);
    // This saves over the mapped file: the old one stays until the new one is whole.
    ASSERT_TRUE(ok(api().model->save(env.get(), raw, str(file.path()), nullptr)));
    EXPECT_EQ(run(session.get(), {x})[0].as<float>(), (std::vector<float>{2, 4, 6, 5, 7, 9}));
  }
  EXPECT_FALSE(ok(api().model->save(env.get(), model.get(), str("/nowhere/at/all.pfm"), nullptr)));
  EXPECT_FALSE(ok(api().model->save(env.get(), model.get(), str("model.unknown"), nullptr)));
}

TEST(Model, loading_can_be_cancelled) {
  const auto env = make_env();
  const ModelPath file("cancel.onnx");
  const auto model = make_model(env.get(), add_graph());
  ASSERT_TRUE(ok(api().model->save(env.get(), model.get(), str(file.path()), nullptr)));
  const auto options = make_options(PFRT_OPTIONS_LOAD);
  api().options->cancel(options.get());
  pfrt_model* raw = nullptr;
  EXPECT_TRUE(fails(api().model->load_file(env.get(), str(file.path()), options.get(), &raw),
                    PFRT_CODE_CANCELLED, {}));
  api().options->reset_cancel(options.get());
  EXPECT_TRUE(ok(api().model->load_file(env.get(), str(file.path()), options.get(), &raw)));
  api().model->release(raw);
}

TEST(Model, unsupported_operators_are_reported_all_at_once) {
  const auto env = make_env();
  GraphBuilder g;
  g.opset(17);
  g.opset(3, "org.example");
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  g.node("Convv", {"x"}, {"a"}, {}, "typo");
  g.node("Relu", {"a"}, {"b"});
  g.node("Frobnicate", {"b"}, {"c"}, {}, "foreign", "org.example");
  g.output("c");
  // The model can be made, read and saved: only a session needs the operators.
  const auto model = make_model(env.get(), g);
  ASSERT_TRUE(model);
  EXPECT_GE(api().model->warning_count(model.get()), 1u);
  const Failure failure = try_session(env.get(), model.get());
  EXPECT_TRUE(fails(failure, PFRT_CODE_UNSUPPORTED_OPERATOR, {"2 faults"}));
  ASSERT_EQ(failure.children.size(), 2u);
  EXPECT_TRUE(fails(failure.children[0], PFRT_CODE_UNSUPPORTED_OPERATOR,
                    {"Convv", "'typo'", "ai.onnx", "17", "'Conv'"}));
  EXPECT_TRUE(fails(failure.children[1], PFRT_CODE_UNSUPPORTED_OPERATOR,
                    {"Frobnicate", "'foreign'", "org.example", "3"}));
}

TEST(Model, unsupported_types_name_the_node_and_the_types) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_COMPLEX128, {2});
  g.node("Conv", {"x", "x"}, {"a"}, {}, "strange");
  g.output("a");
  const Failure failure = try_session(env.get(), g);
  EXPECT_FALSE(failure.ok());
  EXPECT_NE(failure.message.find("strange"), std::string::npos) << failure.message;
}

TEST(Model, wrong_number_of_inputs_is_a_fault_of_the_node) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  g.node("Add", {"x"}, {"a"}, {}, "lonely");
  g.node("Relu", {""}, {"b"}, {}, "hollow");
  g.output("a");
  g.output("b");
  const Failure failure = try_session(env.get(), g);
  EXPECT_TRUE(fails(failure, PFRT_CODE_INVALID_MODEL, {"2 faults"}));
  ASSERT_EQ(failure.children.size(), 2u);
  EXPECT_NE(failure.children[0].message.find("lonely"), std::string::npos);
  EXPECT_NE(failure.children[1].message.find("hollow"), std::string::npos);
}

// Graphs made by hand may give as attributes what newer operators take as inputs.
TEST(GuideForms, reshape_takes_its_shape_as_an_attribute) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {6});
  g.node("Reshape", {"x"}, {"y"}, {Attr::of_ints("shape", {2, -1})});
  g.output("y");
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {floats({6}, {1, 2, 3, 4, 5, 6})})[0].dims,
            (std::vector<int64_t>{2, 3}));
}

TEST(GuideForms, slice_takes_starts_and_ends_as_attributes) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {6});
  g.node("Slice", {"x"}, {"y"}, {Attr::of_ints("starts", {1}), Attr::of_ints("ends", {5})});
  g.node("Slice", {"x"}, {"z"},
         {Attr::of_ints("starts", {5}), Attr::of_ints("ends", {-7}), Attr::of_ints("axes", {0}),
          Attr::of_ints("steps", {-2})});
  g.output("y");
  g.output("z");
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  const auto outputs = run(session.get(), {floats({6}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(outputs[0].as<float>(), (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(outputs[1].as<float>(), (std::vector<float>{6, 4, 2}));
}

TEST(GuideForms, constant_takes_a_shape_for_its_values) {
  const auto env = make_env();
  GraphBuilder g;
  Attr values;
  values.name = "value_floats";
  values.type = PFRT_ATTR_FLOATS;
  values.floats = {1, 2, 3, 4};
  g.node("Constant", {}, {"k"}, {values, Attr::of_ints("shape", {2, 2})});
  g.input("x", PFRT_DTYPE_FLOAT32, {2, 2});
  g.node("Add", {"x", "k"}, {"y"});
  g.output("y");
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  EXPECT_EQ(run(session.get(), {floats({2, 2}, {0, 0, 0, 0})})[0].as<float>(),
            (std::vector<float>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace pfrt_test

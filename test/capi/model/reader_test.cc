// SPDX-License-Identifier: Apache-2.0
//
// Models whose bytes the client reads, and how long work (loading, saving, making a session,
// optimising) reports progress and stops.
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <map>
#include <thread>

#include "test/capi/client.h"
#include "test/onnx_writer.h"

namespace pfrt_test {
namespace {

// A file for this test, which is removed in the end.
class ReaderFile {
 public:
  explicit ReaderFile(const std::string& name)
      : path_(testing::TempDir() + "pfrt_reader_" + std::to_string(getpid()) + "_" + name) {}
  ~ReaderFile() { unlink(path_.c_str()); }
  ReaderFile(const ReaderFile&) = delete;
  ReaderFile& operator=(const ReaderFile&) = delete;
  const std::string& path() const { return path_; }
  std::string read() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(std::string_view bytes) const {
    std::ofstream(path_, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::string path_;
};

// y = x + b with |count| numbers in b.
GraphBuilder large_graph(size_t count) {
  GraphBuilder g("large");
  const auto n = static_cast<int64_t>(count);
  g.input("x", PFRT_DTYPE_FLOAT32, {n});
  g.constant("b", floats({n}, random_floats(count, 3)));
  g.node("Add", {"x", "b"}, {"y"});
  g.output("y");
  return g;
}

std::string saved(pfrt_env* env, const GraphBuilder& g, const char* name) {
  const ReaderFile file(name);
  const auto model = make_model(env, g);
  EXPECT_TRUE(ok(api().model->save(env, model.get(), str(file.path()), nullptr)));
  return file.read();
}

// A client's own archive of files.
struct Archive {
  std::map<std::string, std::string> files;
  std::string name = "model.onnx", reading = name;
  uint64_t promised = 0, at_most = UINT64_MAX, fail_at = UINT64_MAX, lie = 0;
  pfrt_code code = PFRT_CODE_IO;
  int released = 0, reads = 0;
  uint64_t next = 0;
  bool in_order = true;

  pfrt_reader reader(const std::string& of) {
    reading = of;
    next = 0;
    pfrt_reader r{};
    r.struct_size = sizeof r;
    r.size = promised ? promised : files[of].size();
    r.name = str(name);
    r.user = this;
    r.release = [](void* user) { ++static_cast<Archive*>(user)->released; };
    r.open_beside = [](void* user, pfrt_string location, pfrt_reader* out) -> pfrt_code {
      auto& self = *static_cast<Archive*>(user);
      if (!self.files.count(text(location))) return PFRT_CODE_NOT_FOUND;
      *out = self.reader(text(location));
      return PFRT_CODE_OK;
    };
    r.read_at = [](void* user, uint64_t offset, uint64_t bytes, void* out,
                   uint64_t* out_read) -> pfrt_code {
      auto& self = *static_cast<Archive*>(user);
      const std::string& file = self.files[self.reading];
      ++self.reads;
      self.in_order &= offset == self.next;
      if (offset >= self.fail_at) return self.code;
      const uint64_t left = offset < file.size() ? file.size() - offset : 0;
      const uint64_t n = std::min({bytes, left, self.at_most});
      if (n) std::memcpy(out, file.data() + offset, n);
      self.next = offset + n;
      *out_read = n + self.lie;
      return PFRT_CODE_OK;
    };
    return r;
  }
  Failure load(pfrt_env* env, Handle<pfrt_model>* out = nullptr,
               const pfrt_options* options = nullptr) {
    const pfrt_reader r = reader("model");
    pfrt_model* raw = nullptr;
    Failure failure = take(api().model->load_reader(env, &r, options, &raw));
    EXPECT_EQ(failure.ok(), raw != nullptr);
    Handle<pfrt_model> model(raw);
    if (out) *out = std::move(model);
    return failure;
  }
};

TEST(Reader, gives_a_model_as_a_file_does) {
  const auto env = make_env();
  for (const char* format : {"model.pfm", "model.onnx"}) {
    Archive archive;
    archive.name = format;
    archive.files["model"] = saved(env.get(), large_graph(1000), format);
    Handle<pfrt_model> model;
    ASSERT_TRUE(ok(archive.load(env.get(), &model)));
    EXPECT_EQ(archive.released, 1);
    EXPECT_TRUE(archive.in_order);
    const auto session = make_session(env.get(), model.get());
    const std::vector<float> b = random_floats(1000, 3);
    EXPECT_EQ(run(session.get(), {floats({1000}, std::vector<float>(1000, 0))})[0].as<float>(), b);
    // Without a name the content tells the format.
    archive.name = "";
    EXPECT_TRUE(ok(archive.load(env.get())));
  }
}

TEST(Reader, may_give_its_bytes_in_small_pieces) {
  const auto env = make_env();
  Archive archive;
  archive.name = "";
  archive.files["model"] = saved(env.get(), add_graph(), "small.pfm");
  archive.at_most = 7;
  EXPECT_TRUE(ok(archive.load(env.get())));
  EXPECT_EQ(static_cast<size_t>(archive.reads), (archive.files["model"].size() + 6) / 7);
}

TEST(Reader, that_ends_early_is_data_loss) {
  const auto env = make_env();
  Archive archive;
  archive.files["model"] = saved(env.get(), add_graph(), "short.pfm");
  archive.promised = archive.files["model"].size() + 10;
  EXPECT_TRUE(fails(archive.load(env.get()), PFRT_CODE_DATA_LOSS,
                    {"model.onnx", "ended", std::to_string(archive.files["model"].size())}));
  EXPECT_EQ(archive.released, 1);
}

TEST(Reader, faults_are_passed_on_with_their_code) {
  const auto env = make_env();
  Archive archive;
  archive.files["model"] = saved(env.get(), add_graph(), "faulty.pfm");
  archive.fail_at = 0;
  EXPECT_TRUE(fails(archive.load(env.get()), PFRT_CODE_IO, {"reader failed", "byte 0"}));
  archive.code = PFRT_CODE_CANCELLED;
  EXPECT_TRUE(fails(archive.load(env.get()), PFRT_CODE_CANCELLED, {}));
  archive.fail_at = UINT64_MAX;
  archive.lie = 1000000;
  EXPECT_TRUE(fails(archive.load(env.get()), PFRT_CODE_INVALID_ARGUMENT, {"1000"}));
  EXPECT_EQ(archive.released, 3);
}

TEST(Reader, impossible_sizes_and_bytes_are_errors) {
  const auto env = make_env();
  Archive archive;
  archive.files["model"] = "no model";
  EXPECT_FALSE(ok(archive.load(env.get())));
  archive.promised = UINT64_MAX;
  EXPECT_TRUE(fails(archive.load(env.get()), PFRT_CODE_OUT_OF_MEMORY, {"model.onnx"}));
  archive.promised = 0;
  archive.files["model"].clear();
  EXPECT_TRUE(fails(archive.load(env.get()), PFRT_CODE_INVALID_MODEL, {"empty"}));
  EXPECT_EQ(archive.released, 3);
  pfrt_reader none{};
  none.struct_size = sizeof none;
  none.size = 1;
  pfrt_model* model = nullptr;
  EXPECT_TRUE(fails(api().model->load_reader(env.get(), &none, nullptr, &model),
                    PFRT_CODE_INVALID_ARGUMENT, {"read_at"}));
  EXPECT_FALSE(ok(api().model->load_reader(env.get(), nullptr, nullptr, &model)));
  // The reader is released even when every other argument is wrong.
  const pfrt_reader r = archive.reader("model");
  EXPECT_FALSE(ok(api().model->load_reader(nullptr, &r, nullptr, &model)));
  EXPECT_EQ(archive.released, 4);
}

// An ONNX model whose constant lies in the file "weights.bin" beside it.
std::string with_external_data() {
  onnx_writer::Graph g;
  g.nodes = {onnx_writer::node("Add", {"x", "b"}, {"y"}, {}, "add")};
  g.initializers = {onnx_writer::external_tensor("b", onnx_writer::kFloat, {3}, "weights.bin")};
  g.inputs = {onnx_writer::value_info("x", onnx_writer::kFloat, {-1, 3})};
  g.outputs = {onnx_writer::value_info("y", onnx_writer::kFloat, {-1, 3})};
  return onnx_writer::model(g).bytes();
}

TEST(Reader, opens_files_beside_the_model) {
  const auto env = make_env();
  Archive archive;
  archive.files["model"] = with_external_data();
  const float numbers[] = {4, 5, 6};
  archive.files["weights.bin"] = std::string(reinterpret_cast<const char*>(numbers), 12);
  Handle<pfrt_model> model;
  ASSERT_TRUE(ok(archive.load(env.get(), &model)));
  EXPECT_EQ(archive.released, 2);
  const auto session = make_session(env.get(), model.get());
  EXPECT_EQ(run(session.get(), {floats({1, 3}, {1, 1, 1})})[0].as<float>(),
            (std::vector<float>{5, 6, 7}));
  archive.files.erase("weights.bin");
  EXPECT_TRUE(fails(archive.load(env.get()), PFRT_CODE_NOT_FOUND, {"weights.bin"}));
  pfrt_reader alone = archive.reader("model");
  alone.open_beside = nullptr;
  pfrt_model* raw = nullptr;
  EXPECT_TRUE(fails(api().model->load_reader(env.get(), &alone, nullptr, &raw),
                    PFRT_CODE_UNSUPPORTED, {"weights.bin", "open_beside"}));
}

// ---- progress and cancel ----

struct Listener {
  std::vector<double> fractions;
  std::vector<std::string> stages;
  double cancel_at = 2;
  pfrt_options* options = nullptr;

  static void hear(void* user, double fraction, pfrt_string stage) {
    auto& self = *static_cast<Listener*>(user);
    self.fractions.push_back(fraction);
    if (self.stages.empty() || self.stages.back() != text(stage))
      self.stages.push_back(text(stage));
    if (fraction >= self.cancel_at) api().options->cancel(self.options);
  }
  Handle<pfrt_options> listen(pfrt_options_kind kind = PFRT_OPTIONS_LOAD,
                              const Settings& settings = {}) {
    auto made = make_options(kind, settings);
    options = made.get();
    EXPECT_TRUE(ok(api().options->set_progress(options, hear, this)));
    return made;
  }
  void expect_whole() const {
    ASSERT_FALSE(fractions.empty());
    EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
    EXPECT_GE(fractions.front(), 0.0);
    EXPECT_EQ(fractions.back(), 1.0);
  }
};

TEST(Progress, of_a_load_rises_to_one) {
  const auto env = make_env();
  for (const char* format : {"big.pfm", "big.onnx"}) {
    const ReaderFile file(format);
    const auto model = make_model(env.get(), large_graph(4u << 20));
    Listener saving;
    const auto saving_options = saving.listen();
    ASSERT_TRUE(
        ok(api().model->save(env.get(), model.get(), str(file.path()), saving_options.get())));
    saving.expect_whole();
    EXPECT_GT(saving.fractions.size(), 3u);

    Listener loading;
    const auto options = loading.listen();
    pfrt_model* raw = nullptr;
    ASSERT_TRUE(ok(api().model->load_file(env.get(), str(file.path()), options.get(), &raw)));
    api().model->release(raw);
    loading.expect_whole();
    EXPECT_EQ(loading.stages.front(), "import");

    Listener reading;
    const auto reader_options = reading.listen();
    Archive archive;
    archive.name = format;
    archive.files["model"] = file.read();
    ASSERT_TRUE(ok(archive.load(env.get(), nullptr, reader_options.get())));
    reading.expect_whole();
    EXPECT_EQ(reading.stages.front(), "read");
    EXPECT_GT(reading.fractions.size(), loading.fractions.size());
  }
}

TEST(Progress, is_for_options_of_work) {
  const auto environment = make_options(PFRT_OPTIONS_ENV);
  EXPECT_TRUE(fails(api().options->set_progress(environment.get(), Listener::hear, nullptr),
                    PFRT_CODE_INVALID_ARGUMENT, {"environment", "load", "session", "optimizer"}));
  const auto others = make_options(PFRT_OPTIONS_OPTIMIZER);
  EXPECT_FALSE(ok(api().options->set_progress(nullptr, nullptr, nullptr)));
  const auto env = make_env();
  const auto model = make_model(env.get(), add_graph());
  EXPECT_TRUE(fails(api().model->save(env.get(), model.get(), str("x.pfm"), others.get()),
                    PFRT_CODE_INVALID_ARGUMENT, {"saving", "optimizer"}));
}

// A model that takes a while to optimise: chains of operators that fuse, and products.
GraphBuilder layers(int count) {
  GraphBuilder g("layers");
  g.input("x", PFRT_DTYPE_FLOAT32, {4, 64});
  std::string from = "x";
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    g.constant("w" + n, noise({64, 64}, static_cast<uint32_t>(i)));
    g.constant("b" + n, noise({64}, static_cast<uint32_t>(i) + 1000));
    g.node("MatMul", {from, "w" + n}, {"p" + n});
    g.node("Add", {"p" + n, "b" + n}, {"s" + n});
    g.node("Relu", {"s" + n}, {"r" + n});
    from = "r" + n;
  }
  g.output(from);
  return g;
}

TEST(Progress, of_a_session_rises_to_one) {
  const auto env = make_env();
  for (const char* precision : {"fp32", "auto"}) {
    Listener listener;
    const auto options =
        listener.listen(PFRT_OPTIONS_SESSION, {{"precision", precision}, {"verify", "on"}});
    ASSERT_TRUE(ok(try_session(env.get(), layers(3), options.get())));
    listener.expect_whole();
    EXPECT_GT(listener.fractions.size(), 8u);
    std::vector<std::string> stages = {"open providers", "optimise", "compile", "done"};
    if (std::string_view(precision) == "auto")
      stages.insert(stages.begin() + 2, "choose precisions");
    EXPECT_EQ(listener.stages, stages);
    const size_t told = listener.fractions.size();
    const auto session = make_session(env.get(), layers(1), options.get());
    const size_t made = listener.fractions.size();
    EXPECT_GT(made, told);
    run(session.get(), {noise({4, 64}, 1)});
    EXPECT_EQ(listener.fractions.size(), made) << "runs tell nothing";
  }
}

TEST(Progress, cancel_stops_a_session_wherever_it_is_and_is_reset) {
  const auto env = make_env();
  for (const double at : {0.0, 0.05, 0.3, 0.5, 0.6, 0.8}) {
    Listener listener;
    listener.cancel_at = at;
    const auto options = listener.listen(PFRT_OPTIONS_SESSION);
    EXPECT_TRUE(fails(try_session(env.get(), layers(3), options.get()), PFRT_CODE_CANCELLED, {}))
        << at;
    EXPECT_LT(listener.fractions.back(), 1.0);
    EXPECT_EQ(try_session(env.get(), layers(1), options.get()).code, uint32_t{PFRT_CODE_CANCELLED})
        << "a cancel holds";
    api().options->reset_cancel(options.get());
    listener.cancel_at = 2;
    EXPECT_TRUE(ok(try_session(env.get(), layers(1), options.get())));
  }
}

TEST(Progress, that_ends_with_one_is_a_session) {
  const auto env = make_env();
  Listener listener;
  listener.cancel_at = 1;
  const auto options = listener.listen(PFRT_OPTIONS_SESSION);
  EXPECT_TRUE(ok(try_session(env.get(), layers(1), options.get()))) << "it was ready";
}

TEST(Progress, of_a_cache_key_is_told_to_nobody) {
  const auto env = make_env();
  const ReaderFile file("key.pfm");
  const auto model = make_model(env.get(), layers(1));
  ASSERT_TRUE(ok(api().model->save(env.get(), model.get(), str(file.path()), nullptr)));
  Listener listener;
  const auto options = listener.listen(PFRT_OPTIONS_SESSION);
  EXPECT_TRUE(ok(api().cache->key(
      env.get(), str(file.path()), options.get(), [](void*, pfrt_string) {}, nullptr)));
  EXPECT_TRUE(listener.fractions.empty());
}

struct OptimizerReleaser {
  void operator()(pfrt_optimizer* o) const { api().optimizer->release(o); }
};
using Optimizer = std::unique_ptr<pfrt_optimizer, OptimizerReleaser>;

Optimizer make_optimizer(pfrt_env* env, const pfrt_options* options) {
  pfrt_optimizer* raw = nullptr;
  EXPECT_TRUE(ok(api().optimizer->create(env, options, &raw)));
  EXPECT_TRUE(ok(api().optimizer->add_default_passes(raw)));
  return Optimizer(raw);
}

Failure optimise(const Optimizer& optimizer, const GraphBuilder& g, std::string_view pass = {},
                 uint32_t until_fixed_point = 0) {
  pfrt_optimization* result = nullptr;
  Failure failure =
      take(api().optimizer->run(optimizer.get(), g.get(), str(pass), until_fixed_point, &result));
  api().optimizer->release_result(result);
  return failure;
}

TEST(Progress, of_an_optimizer_rises_to_one) {
  const auto env = make_env();
  for (const uint32_t until_fixed_point : {0u, 1u}) {
    Listener listener;
    const auto options = listener.listen(PFRT_OPTIONS_OPTIMIZER, {{"level", "all"}});
    const Optimizer optimizer = make_optimizer(env.get(), options.get());
    EXPECT_TRUE(listener.fractions.empty());
    ASSERT_TRUE(ok(optimise(optimizer, layers(3), {}, until_fixed_point)));
    listener.expect_whole();
    EXPECT_GT(listener.fractions.size(), 6u);
    EXPECT_EQ(listener.stages, (std::vector<std::string>{"prepare", "optimise", "done"}));
    listener.fractions.clear();
    ASSERT_TRUE(ok(optimise(optimizer, layers(1), "ConstantFoldingPass")));
    listener.expect_whole();
    // The optimizer's copy of the options has their listener, whenever that is set.
    const size_t told = listener.fractions.size();
    ASSERT_TRUE(ok(api().options->set_progress(options.get(), nullptr, nullptr)));
    ASSERT_TRUE(ok(optimise(optimizer, layers(1))));
    EXPECT_EQ(listener.fractions.size(), told);
  }
}

TEST(Progress, cancel_stops_an_optimizer_and_leaves_the_graph) {
  const auto env = make_env();
  for (const double at : {0.0, 0.1, 0.5}) {
    Listener listener;
    listener.cancel_at = at;
    const auto options = listener.listen(PFRT_OPTIONS_OPTIMIZER);
    const Optimizer optimizer = make_optimizer(env.get(), options.get());
    const GraphBuilder g = layers(3);
    EXPECT_TRUE(fails(optimise(optimizer, g), PFRT_CODE_CANCELLED, {})) << at;
    EXPECT_EQ(api().graph->node_count(g.get()), 9u);
    EXPECT_LT(listener.fractions.back(), 1.0);
    api().options->reset_cancel(options.get());
    listener.cancel_at = 2;
    EXPECT_TRUE(ok(optimise(optimizer, g)));
    EXPECT_LT(api().graph->node_count(g.get()), 9u);
  }
}

TEST(Progress, cancel_stops_a_load_wherever_it_is_and_is_reset) {
  const auto env = make_env();
  for (const char* format : {"cancel.pfm", "cancel.onnx"}) {
    Archive archive;
    archive.name = format;
    archive.files["model"] = saved(env.get(), large_graph(2u << 20), format);
    const std::string& bytes = archive.files["model"];
    for (const double at : {0.0, 0.2, 0.5, 0.6, 0.9}) {
      Listener listener;
      listener.cancel_at = at;
      const auto options = listener.listen();
      EXPECT_TRUE(
          fails(archive.load(env.get(), nullptr, options.get()), PFRT_CODE_CANCELLED, {"loading"}))
          << at;
      EXPECT_LT(listener.fractions.back(), 1.0);
      // A cancel holds until it is reset, for any way to load.
      pfrt_model* raw = nullptr;
      EXPECT_EQ(take(api().model->load_memory(env.get(), bytes.data(), bytes.size(), PFRT_COPY,
                                              nullptr, nullptr, options.get(), &raw))
                    .code,
                uint32_t{PFRT_CODE_CANCELLED});
      api().options->reset_cancel(options.get());
      listener.cancel_at = 2;
      EXPECT_TRUE(ok(archive.load(env.get(), nullptr, options.get())));
    }
  }
}

TEST(Progress, cancel_stops_a_model_of_many_nodes_in_any_stage) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  constexpr int kNodes = 20000;
  for (int i = 0; i < kNodes; ++i)
    g.node("Relu", {i ? "v" + std::to_string(i - 1) : "x"}, {"v" + std::to_string(i)});
  g.output("v" + std::to_string(kNodes - 1));
  const std::string bytes = saved(env.get(), g, "nodes.onnx");
  for (const double at : {0.1, 0.4, 0.92, 0.95}) {
    Listener listener;
    listener.cancel_at = at;
    const auto options = listener.listen();
    pfrt_model* raw = nullptr;
    EXPECT_EQ(take(api().model->load_memory(env.get(), bytes.data(), bytes.size(), PFRT_COPY,
                                            nullptr, nullptr, options.get(), &raw))
                  .code,
              uint32_t{PFRT_CODE_CANCELLED})
        << at;
    EXPECT_EQ(raw, nullptr);
  }
}

TEST(Progress, a_cancelled_save_leaves_the_old_file) {
  const auto env = make_env();
  const auto model = make_model(env.get(), large_graph(4u << 20));
  for (const char* format : {"kept.pfm", "kept.onnx"}) {
    const ReaderFile file(format);
    file.write("the old one");
    for (const double at : {0.0, 0.5}) {
      Listener listener;
      listener.cancel_at = at;
      const auto options = listener.listen();
      EXPECT_TRUE(fails(api().model->save(env.get(), model.get(), str(file.path()), options.get()),
                        PFRT_CODE_CANCELLED, {"saving"}));
      EXPECT_EQ(file.read(), "the old one");
    }
    EXPECT_TRUE(ok(api().model->save(env.get(), model.get(), str(file.path()), nullptr)));
    EXPECT_GT(file.read().size(), size_t{16} << 20);
  }
}

}  // namespace
}  // namespace pfrt_test

// SPDX-License-Identifier: Apache-2.0
//
// Files that models are read from and written to: files that are not regular, places that files
// beside a model may have, their digests, and the files that a killed save leaves behind.
#include <dlfcn.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "test/capi/client.h"
#include "test/onnx_writer.h"

namespace pfrt_test {
namespace {

namespace fs = std::filesystem;

const std::vector<float> kNumbers = {1, 2, 3, 4};
constexpr const char* kDigest /* of kNumbers, as sha1sum prints it */ =
    "c26df9440df999ae7d765499acd5ca855709702f";

class Files : public testing::Test {
 protected:
  Files() {
    std::string name = testing::TempDir() + "pfrt_files_XXXXXX";
    folder_ = mkdtemp(name.data());
    // Without an alarm, a read that waits for a peer would wait for ever.
    alarm(120);
  }
  ~Files() override {
    alarm(0);
    fs::remove_all(folder_);
  }

  fs::path at(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, std::string_view bytes) const {
    fs::create_directories(at(name).parent_path());
    std::ofstream(at(name), std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  void link(const std::string& from, const std::string& to) const {
    fs::create_directories(at(from).parent_path());
    fs::create_symlink(to, at(from));
  }
  // A model of y = x + b, with b in |location|.
  static std::string model(std::string_view location,
                           const std::vector<std::pair<std::string, std::string>>& more = {}) {
    onnx_writer::Graph g;
    g.nodes = {onnx_writer::node("Add", {"x", "b"}, {"y"})};
    g.initializers = {onnx_writer::external_tensor("b", onnx_writer::kFloat, {4}, location, more)};
    g.inputs = {onnx_writer::value_info("x", onnx_writer::kFloat, {4})};
    g.outputs = {onnx_writer::value_info("y", onnx_writer::kFloat, {4})};
    return onnx_writer::model(g).bytes();
  }
  // Loads the model and, when that succeeds, runs it.
  Failure load(const std::string& name, const Settings& settings = {}) const {
    const auto options = make_options(PFRT_OPTIONS_LOAD, settings);
    const std::string path = at(name);
    pfrt_model* raw = nullptr;
    Failure failure = take(api().model->load_file(env_.get(), str(path), options.get(), &raw));
    const Handle<pfrt_model> own(raw);
    if (failure.ok()) {
      std::vector<Array> y;
      EXPECT_TRUE(
          ok(try_run(make_session(env_.get(), own.get()).get(), {floats({4}, {0, 0, 0, 0})}, &y)));
      EXPECT_EQ(y.at(0).as<float>(), kNumbers);
    }
    return failure;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder_))
      out.push_back(entry.path().filename());
    std::sort(out.begin(), out.end());
    return out;
  }

  Handle<pfrt_env> env_ = make_env();
  const std::string bytes_ = onnx_writer::raw_bytes(kNumbers);
  fs::path folder_;
};

// ---- regular files alone ----

TEST_F(Files, that_are_not_regular_are_refused_at_once) {
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  fs::create_directory(at("folder"));
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(at("socket").string().size(), sizeof address.sun_path);
  at("socket").string().copy(address.sun_path, sizeof address.sun_path);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  for (const auto& [name, what] : {std::pair("pipe", "a pipe"), std::pair("folder", "a folder"),
                                   std::pair("socket", "a socket")}) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(fails(load(name), PFRT_CODE_IO, {name, what}));
    write("outer.onnx", model(name));
    EXPECT_TRUE(fails(load("outer.onnx"), PFRT_CODE_IO, {name}));
  }
  close(fd);
  link("device", "/dev/zero");
  EXPECT_TRUE(fails(load("device"), PFRT_CODE_IO, {"a device"}));
}

TEST_F(Files, are_read_through_a_descriptor_that_is_one) {
  write("model.onnx", model("data"));
  write("data", bytes_);
  EXPECT_TRUE(ok(load("model.onnx")));
  EXPECT_TRUE(
      fails(load(std::string("model.onnx\0.pfm", 15)), PFRT_CODE_INVALID_ARGUMENT, {"NUL"}));
}

// ---- beside a model ----

// HuggingFace's cache keeps models so: names are links to contents.
TEST_F(Files, beside_a_model_may_be_links_to_where_its_own_leads) {
  write("blobs/1234", model("model.onnx_data"));
  write("blobs/5678", bytes_);
  link("snapshots/x/model.onnx", "../../blobs/1234");
  link("snapshots/x/model.onnx_data", "../../blobs/5678");
  EXPECT_TRUE(ok(load("snapshots/x/model.onnx")));
  EXPECT_TRUE(fails(load("snapshots/x/model.onnx", {{"confine", "strict"}}),
                    PFRT_CODE_INVALID_MODEL, {"leaves the model's folder"}));
  // Names may be deeper, and a file may lie only beside the link's target.
  write("blobs/9abc", model("deep/data"));
  link("snapshots/y/model.onnx", "../../blobs/9abc");
  link("snapshots/y/deep/data", "../../../blobs/5678");
  EXPECT_TRUE(ok(load("snapshots/y/model.onnx")));
  write("blobs/def0", model("5678"));
  link("snapshots/z/model.onnx", "../../blobs/def0");
  EXPECT_TRUE(ok(load("snapshots/z/model.onnx")));
  EXPECT_TRUE(fails(load("snapshots/z/model.onnx", {{"confine", "strict"}}), PFRT_CODE_NOT_FOUND,
                    {"5678"}));
}

TEST_F(Files, beside_a_model_stay_inside) {
  write("secret", bytes_);
  write("blobs/1234", model("data"));
  write("blobs/inner", bytes_);
  // The model is a plain file: links may not leave its folder.
  write("plain/model.onnx", model("data"));
  link("plain/data", "../blobs/inner");
  EXPECT_TRUE(fails(load("plain/model.onnx"), PFRT_CODE_INVALID_MODEL, {"leaves"}));
  // The model is a link, and its data leads to yet another folder.
  link("snapshot/model.onnx", "../blobs/1234");
  link("snapshot/data", "../secret");
  EXPECT_TRUE(fails(load("snapshot/model.onnx"), PFRT_CODE_INVALID_MODEL, {"leaves"}));
  // A sibling folder whose name begins with the allowed one's is another folder.
  write("blobs2/inner", bytes_);
  fs::remove(at("snapshot/data"));
  link("snapshot/data", "../blobs2/inner");
  EXPECT_TRUE(fails(load("snapshot/model.onnx"), PFRT_CODE_INVALID_MODEL, {"leaves"}));
  // Links do not widen the locations that a model itself may name.
  for (const std::string& location :
       {std::string("../blobs/inner"), std::string("../secret"), at("blobs/inner").string(),
        std::string("none/../../secret")}) {
    SCOPED_TRACE(location);
    write("blobs/5678", model(location));
    fs::remove(at("snapshot/other.onnx"));
    link("snapshot/other.onnx", "../blobs/5678");
    EXPECT_FALSE(load("snapshot/other.onnx").ok());
  }
}

TEST_F(Files, beside_a_model_are_held_against_their_digest) {
  write("data", bytes_);
  write("model.onnx", model("data", {{"checksum", "6d76f9e9e5ae5e6cb22d8ae3f8f8ae4e1ca81ec9"}}));
  EXPECT_TRUE(fails(load("model.onnx"), PFRT_CODE_DATA_LOSS, {"data", "SHA-1", "6d76f9e9", "'b'"}));
  write("model.onnx", model("data", {{"checksum", kDigest}}));
  EXPECT_TRUE(ok(load("model.onnx")));
  write("model.onnx", model("data", {{"checksum", "12345"}}));
  EXPECT_TRUE(fails(load("model.onnx"), PFRT_CODE_INVALID_MODEL, {"12345"}));
}

// ---- saves ----

GraphBuilder sum_graph() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {4});
  g.constant("b", floats({4}, kNumbers));
  g.node("Add", {"x", "b"}, {"y"});
  g.output("y");
  return g;
}

// Forks a child that saves to |path| and calls |then| in the middle of it.
template <typename Then>
pid_t save_in_child(const std::string& path, Then then) {
  const pid_t child = fork();
  if (child != 0) return child;
  const auto env = make_env();
  const auto model = make_model(env.get(), sum_graph());
  const auto options = make_options(PFRT_OPTIONS_LOAD);
  (void)take(api().options->set_progress(
      options.get(),
      [](void* user, double fraction, pfrt_string) {
        if (fraction > 0.5) (*static_cast<Then*>(user))();
      },
      &then));
  (void)take(api().model->save(env.get(), model.get(), str(path), options.get()));
  _exit(0);
}

TEST_F(Files, of_a_save_that_was_killed_go_with_the_next) {
  write("model.pfm.1", "somebody's");
  write("model.pfm.pfrt-notours", "somebody's");
  for (const std::string name : {"model.pfm", "model.onnx"}) {
    SCOPED_TRACE(name);
    for (int i = 0; i < 3; ++i) {
      const pid_t child = save_in_child(at(name), [] { raise(SIGKILL); });
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFSIGNALED(status));
    }
    ASSERT_EQ(names().size(), 3u) << "each save removes what the one before it left";
    const auto model = make_model(env_.get(), sum_graph());
    const std::string path = at(name);
    ASSERT_TRUE(ok(api().model->save(env_.get(), model.get(), str(path), nullptr)));
    EXPECT_EQ(names(), (std::vector<std::string>{name, "model.pfm.1", "model.pfm.pfrt-notours"}));
    EXPECT_TRUE(ok(load(name)));
    fs::remove(at(name));
  }
}

TEST_F(Files, of_a_save_still_going_on_elsewhere_stay) {
  int started[2], go_on[2];
  ASSERT_EQ(pipe(started), 0);
  ASSERT_EQ(pipe(go_on), 0);
  const std::string path = at("model.pfm");
  bool waited = false;
  const pid_t child = save_in_child(path, [&] {
    char byte = 0;
    if (std::exchange(waited, true)) return;
    if (::write(started[1], &byte, 1) != 1 || ::read(go_on[0], &byte, 1) != 1) _exit(1);
  });
  char byte = 0;
  ASSERT_EQ(::read(started[0], &byte, 1), 1);
  const auto model = make_model(env_.get(), sum_graph());
  EXPECT_TRUE(ok(api().model->save(env_.get(), model.get(), str(path), nullptr)));
  EXPECT_EQ(names().size(), 2u);
  ASSERT_EQ(::write(go_on[1], &byte, 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(names(), std::vector<std::string>{"model.pfm"});
  EXPECT_TRUE(ok(load("model.pfm")));
  for (const int fd : {started[0], started[1], go_on[0], go_on[1]}) close(fd);
}

// ---- shared objects ----

// A plug-in that is cut anywhere gives a reason in the list and does not end the process.
TEST_F(Files, of_plugins_that_are_cut_short_are_reasons) {
  Dl_info library{};
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(&pfrt_get_api), &library), 0);
  const fs::path whole = fs::path(library.dli_fname).parent_path() /
                         "pyflame_rt/plugins/libpyflamert_provider_null.so";
  const fs::path cut = at("libpyflamert_provider_cut.so");
  const auto size = fs::file_size(whole);
  for (const auto left : {size / 8, size / 4, size / 2, size * 3 / 4, size - 1, size_t{64},
                          size_t{63}, size_t{1}, size_t{0}}) {
    SCOPED_TRACE(left);
    fs::copy_file(whole, cut, fs::copy_options::overwrite_existing);
    fs::resize_file(cut, left);
    const auto env = make_env({{"plugin_path", folder_.native()}});
    pfrt_plugin_info info{};
    info.struct_size = sizeof info;
    ASSERT_TRUE(ok(api().env->plugin_at(env.get(), 0, &info)));
    EXPECT_EQ(text(info.path), cut.string());
    EXPECT_NE(text(info.reason).find("cut short"), std::string::npos) << text(info.reason);
  }
  fs::remove(cut);
  ASSERT_EQ(mkfifo(cut.c_str(), 0600), 0);
  const auto env = make_env({{"plugin_path", folder_.native()}});
  pfrt_plugin_info info{};
  info.struct_size = sizeof info;
  ASSERT_TRUE(ok(api().env->plugin_at(env.get(), 0, &info)));
  EXPECT_NE(text(info.reason).find("a pipe"), std::string::npos) << text(info.reason);
}

// ---- damage ----

// With any byte changed, a .pfm file is refused or computes the same results.
TEST_F(Files, of_models_with_one_byte_changed_never_change_results) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 4});
  g.constant("w", floats({4, 3}, random_floats(12, 1)));
  g.constant("b", floats({3}, random_floats(3, 2)));
  g.node("Gemm", {"x", "w", "b"}, {"p"}, {Attr::of_float("alpha", 0.5f)});
  g.node("Clip", {"p"}, {"q"});
  g.node("Softmax", {"q"}, {"y"}, {Attr::of_int("axis", 1)});
  g.output("y");
  const auto model = make_model(env_.get(), g);
  const std::string path = at("model.pfm");
  ASSERT_TRUE(ok(api().model->save(env_.get(), model.get(), str(path), nullptr)));
  std::ifstream file(path, std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(file), {}};
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int flip : {0x01, 0x03, 0x80}) {
      std::string bytes = good;
      bytes[i] = static_cast<char>(bytes[i] ^ flip);
      pfrt_model* raw = nullptr;
      const Failure failure = take(api().model->load_memory(
          env_.get(), bytes.data(), bytes.size(), PFRT_COPY, nullptr, nullptr, nullptr, &raw));
      const Handle<pfrt_model> own(raw);
      ASSERT_TRUE(failure.code == PFRT_CODE_DATA_LOSS || failure.code == PFRT_CODE_INVALID_MODEL ||
                  failure.code == PFRT_CODE_UNSUPPORTED_FORMAT)
          << "byte " << i << " of " << good.size() << " ^ " << flip << ": " << failure.message;
    }
  }
}

}  // namespace
}  // namespace pfrt_test

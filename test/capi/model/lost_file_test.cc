// SPDX-License-Identifier: Apache-2.0
//
// Model files that are cut short while they are mapped and in use, and the effects on the host's
// signal handlers.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <thread>

#include "test/capi/client.h"
#include "test/onnx_writer.h"

namespace pfrt_test {
namespace {

constexpr size_t kCount = 1u << 18;  // numbers in the constant: 1 MiB
constexpr auto kN = static_cast<int64_t>(kCount);

const std::vector<float>& numbers() {
  static const std::vector<float> all = random_floats(kCount, 11);
  return all;
}

class TempFile {
 public:
  explicit TempFile(const std::string& name)
      : path_(testing::TempDir() + "pfrt_lost_" + std::to_string(getpid()) + "_" + name) {}
  ~TempFile() { unlink(path_.c_str()); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const std::string& path() const { return path_; }
  void write(std::string_view bytes) const {
    std::ofstream(path_, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  void cut(off_t size) const { EXPECT_EQ(truncate(path_.c_str(), size), 0); }

 private:
  std::string path_;
};

// y = x + b, |repeat| times, with b large enough to be a view of the file.
GraphBuilder sum_graph(int repeat) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {kN});
  g.constant("b", floats({kN}, numbers()));
  for (int i = 0; i < repeat; ++i)
    g.node("Add", {i ? "y" + std::to_string(i - 1) : "x", "b"}, {"y" + std::to_string(i)});
  g.output("y" + std::to_string(repeat - 1));
  return g;
}

void save_pfm(pfrt_env* env, const TempFile& file, int repeat) {
  const auto model = make_model(env, sum_graph(repeat));
  ASSERT_TRUE(ok(api().model->save(env, model.get(), str(file.path()), nullptr)));
}

onnx_writer::Graph onnx_sum(onnx_writer::Message b, std::string name) {
  onnx_writer::Graph g;
  g.name = std::move(name);
  g.nodes = {onnx_writer::node("Add", {"x", "b"}, {"y"}, {}, "add")};
  g.initializers = {std::move(b)};
  g.inputs = {onnx_writer::value_info("x", onnx_writer::kFloat, {kN})};
  g.outputs = {onnx_writer::value_info("y", onnx_writer::kFloat, {kN})};
  return g;
}

// Returns an ONNX model whose numbers stand at |odd| modulo 4; its name's length shifts them there.
std::string embedded(size_t odd = 0) {
  const std::string raw = onnx_writer::raw_bytes(numbers());
  for (std::string name = "g"; name.size() < 9; name += "g") {
    const auto b = onnx_writer::tensor("b", onnx_writer::kFloat, {kN}, raw);
    std::string bytes = onnx_writer::model(onnx_sum(b, name)).bytes();
    if (bytes.find(raw) % 4 == odd) return bytes;
  }
  ADD_FAILURE() << "no name aligns the numbers";
  return {};
}

Failure load(pfrt_env* env, const std::string& path, Handle<pfrt_model>* out) {
  pfrt_model* raw = nullptr;
  Failure failure = take(api().model->load_file(env, str(path), nullptr, &raw));
  out->reset(raw);
  return failure;
}

Failure sum(pfrt_session* session, std::vector<float>* y = nullptr) {
  std::vector<Array> outputs;
  Failure failure = try_run(session, {floats({kN}, std::vector<float>(kCount, 0))}, &outputs);
  if (failure.ok() && y) *y = outputs[0].as<float>();
  return failure;
}

// Loads the model in |path| and cuts |data|, the file that holds its numbers.
void expect_loss(pfrt_env* env, const std::string& path, const TempFile& data) {
  Handle<pfrt_model> model, other;
  const TempFile whole("whole.pfm");
  save_pfm(env, whole, 1);
  ASSERT_TRUE(ok(load(env, path, &model)));
  ASSERT_TRUE(ok(load(env, whole.path(), &other)));
  const auto first = make_session(env, model.get()), second = make_session(env, model.get());
  const auto untouched = make_session(env, other.get());
  std::vector<float> y;
  ASSERT_TRUE(ok(sum(first.get(), &y)));
  EXPECT_EQ(y, numbers());

  data.cut(100);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(fails(sum(first.get()), PFRT_CODE_DATA_LOSS, {data.path()}));
    EXPECT_TRUE(fails(sum(second.get()), PFRT_CODE_DATA_LOSS, {data.path()}));
  }
  // Making the file long again does not bring the mapping back.
  data.cut(2 << 20);
  EXPECT_TRUE(fails(sum(first.get()), PFRT_CODE_DATA_LOSS, {data.path()}));
  EXPECT_TRUE(fails(try_session(env, model.get()), PFRT_CODE_DATA_LOSS, {data.path()}));
  const TempFile target("target.pfm");
  EXPECT_TRUE(fails(api().model->save(env, model.get(), str(target.path()), nullptr),
                    PFRT_CODE_DATA_LOSS, {data.path()}));
  EXPECT_NE(access(target.path().c_str(), F_OK), 0);
  pfrt_graph* graph = nullptr;
  ASSERT_TRUE(ok(api().model->graph(model.get(), &graph)));
  const Handle<pfrt_graph> own_graph(graph);
  pfrt_model* again = nullptr;
  EXPECT_TRUE(fails(api().model->from_graph(env, graph, nullptr, &again), PFRT_CODE_DATA_LOSS, {}));
  pfrt_value* value = nullptr;
  EXPECT_TRUE(fails(api().graph->initializer_for_write(graph, str("b"), &value),
                    PFRT_CODE_DATA_LOSS, {"'b'"}));

  // Everything else still works, and so does a new load of the content.
  EXPECT_TRUE(ok(sum(untouched.get(), &y)));
  EXPECT_EQ(y, numbers());
  Handle<pfrt_model> fresh;
  ASSERT_TRUE(ok(load(env, whole.path(), &fresh)));
  EXPECT_TRUE(ok(sum(make_session(env, fresh.get()).get(), &y)));
  EXPECT_EQ(y, numbers());
}

TEST(LostFile, of_a_pfm_model) {
  const auto env = make_env();
  const TempFile file("model.pfm");
  save_pfm(env.get(), file, 1);
  expect_loss(env.get(), file.path(), file);
}

TEST(LostFile, of_an_onnx_model) {
  const auto env = make_env();
  const TempFile file("model.onnx");
  file.write(embedded());
  expect_loss(env.get(), file.path(), file);
}

// Packed weights keep the old numbers and weights that are read in place get the new: a mixture of
// two models.
TEST(LostFile, that_is_written_to_in_place) {
  const auto env = make_env();
  for (const char* name : {"model.pfm", "model.onnx"}) {
    SCOPED_TRACE(name);
    const bool pfm = std::string_view(name) == "model.pfm";
    const TempFile file(name);
    if (pfm) {
      save_pfm(env.get(), file, 1);
    } else {
      file.write(embedded());
    }
    const timespec long_ago[2] = {{1000000000, 0}, {1000000000, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, file.path().c_str(), long_ago, 0), 0);
    Handle<pfrt_model> model, fresh;
    ASSERT_TRUE(ok(load(env.get(), file.path(), &model)));
    const auto session = make_session(env.get(), model.get());
    ASSERT_TRUE(ok(sum(session.get())));

    {
      std::fstream in_place(file.path(), std::ios::binary | std::ios::in | std::ios::out);
      in_place.seekp(1 << 19);  // among the numbers
      in_place.write(std::string(64, 'w').data(), 64);
    }
    EXPECT_TRUE(fails(sum(session.get()), PFRT_CODE_DATA_LOSS,
                      {file.path(), "was written to", "renaming"}));
    EXPECT_TRUE(fails(try_session(env.get(), model.get()), PFRT_CODE_DATA_LOSS, {file.path()}));

    // The changed file is another model, which loads anew.
    if (pfm) continue;  // its checksums are wrong now
    ASSERT_TRUE(ok(load(env.get(), file.path(), &fresh)));
    EXPECT_TRUE(ok(sum(make_session(env.get(), fresh.get()).get())));
  }
}

TEST(LostFile, that_another_is_renamed_over_is_no_loss) {
  const auto env = make_env();
  const TempFile file("model.onnx"), next("next.onnx");
  file.write(embedded());
  Handle<pfrt_model> model;
  ASSERT_TRUE(ok(load(env.get(), file.path(), &model)));
  const auto session = make_session(env.get(), model.get());
  next.write("another model");
  ASSERT_EQ(rename(next.path().c_str(), file.path().c_str()), 0);
  std::vector<float> y;
  EXPECT_TRUE(ok(sum(session.get(), &y)));
  EXPECT_EQ(y, numbers());
}

// Bytes at odd addresses are copied by the first run that needs them; after that the file is not
// needed.
TEST(LostFile, before_its_numbers_are_copied) {
  const auto env = make_env();
  for (const bool ran : {false, true}) {
    SCOPED_TRACE(ran);
    const TempFile file("odd.onnx");
    file.write(embedded(3));
    Handle<pfrt_model> model;
    ASSERT_TRUE(ok(load(env.get(), file.path(), &model)));
    const auto session = make_session(env.get(), model.get());
    std::vector<float> y;
    if (ran) {
      ASSERT_TRUE(ok(sum(session.get(), &y)));
      EXPECT_EQ(y, numbers());
    }
    file.cut(100);
    if (ran) {
      EXPECT_TRUE(ok(sum(session.get(), &y)));
      EXPECT_EQ(y, numbers());
    } else {
      EXPECT_TRUE(fails(sum(session.get()), PFRT_CODE_DATA_LOSS, {file.path()}));
    }
  }
}

TEST(LostFile, beside_an_onnx_model) {
  const auto env = make_env();
  const TempFile file("outer.onnx"), data("outer.bin");
  const std::string location = data.path().substr(data.path().rfind('/') + 1);
  data.write(onnx_writer::raw_bytes(numbers()));
  file.write(
      onnx_writer::model(
          onnx_sum(onnx_writer::external_tensor("b", onnx_writer::kFloat, {kN}, location), "g"))
          .bytes());
  expect_loss(env.get(), file.path(), data);
}

TEST(LostFile, that_no_constant_needs_is_no_loss) {
  const auto env = make_env();
  const TempFile file("copied.onnx");
  onnx_writer::Graph g = onnx_sum(
      onnx_writer::tensor("b", onnx_writer::kFloat, {1}, onnx_writer::raw_bytes<float>({2})), "g");
  file.write(onnx_writer::model(g).bytes());
  Handle<pfrt_model> model;
  ASSERT_TRUE(ok(load(env.get(), file.path(), &model)));
  const auto session = make_session(env.get(), model.get());
  file.cut(0);
  std::vector<float> y;
  EXPECT_TRUE(ok(sum(session.get(), &y)));
  EXPECT_EQ(y[0], 2.0f);
}

TEST(LostFile, in_the_middle_of_runs_on_many_threads) {
  const auto env = make_env();
  const TempFile file("threads.pfm");
  save_pfm(env.get(), file, 40);
  Handle<pfrt_model> model;
  ASSERT_TRUE(ok(load(env.get(), file.path(), &model)));
  const auto session = make_session(env.get(), model.get());
  std::vector<float> right;
  ASSERT_TRUE(ok(sum(session.get(), &right)));
  std::atomic<int> runs{0}, losses{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (;;) {
        std::vector<float> y;
        const Failure failure = sum(session.get(), &y);
        ++runs;
        if (failure.ok() && y == right) continue;
        if (failure.code == PFRT_CODE_DATA_LOSS)
          ++losses;
        else
          ++wrong;
        return;
      }
    });
  while (runs < 8) std::this_thread::yield();
  file.cut(4096);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(losses, 4);
  EXPECT_EQ(wrong, 0);
}

// ---- the host's handlers, in processes of their own ----

std::atomic<int> signals_heard{0};
std::atomic<void*> signal_at{nullptr};
struct sigaction before_host {};

void plain(int) { ++signals_heard; }
// Mends the page that the signal names, as hosts that map files do.
void informed(int, siginfo_t* info, void*) {
  ++signals_heard;
  signal_at = info->si_addr;
  if (info->si_code > 0)
    mmap(info->si_addr, 1, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
void passing_on(int signal, siginfo_t* info, void* context) {
  ++signals_heard;
  if (before_host.sa_flags & SA_SIGINFO) before_host.sa_sigaction(signal, info, context);
}

void set_handler(void (*fn)(int)) {
  struct sigaction action {};
  action.sa_handler = fn;
  sigaction(SIGBUS, &action, nullptr);
}
void set_handler(void (*fn)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = fn;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, &before_host);
}
struct sigaction handler() {
  struct sigaction action {};
  sigaction(SIGBUS, nullptr, &action);
  return action;
}

// Maps a page of the host's own whose file is gone; touching it raises SIGBUS.
volatile char* gone_page() {
  char name[] = "/tmp/pfrt_host_XXXXXX";
  const int fd = mkstemp(name);
  unlink(name);
  if (ftruncate(fd, 4096) != 0) return nullptr;
  void* page = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  if (ftruncate(fd, 0) != 0) return nullptr;
  close(fd);
  return static_cast<volatile char*>(page);
}

// A session of a model whose file is still whole.
struct Loaded {
  Handle<pfrt_env> env;
  TempFile file{"host.pfm"};
  Handle<pfrt_model> model;
  Handle<pfrt_session> session;
  explicit Loaded(const Settings& settings = {}) : env(make_env(settings)) {
    save_pfm(env.get(), file, 1);
    EXPECT_TRUE(ok(load(env.get(), file.path(), &model)));
    session = make_session(env.get(), model.get());
    EXPECT_TRUE(ok(sum(session.get())));
  }
  bool loses() {
    file.cut(0);
    return sum(session.get()).code == PFRT_CODE_DATA_LOSS;
  }
};

[[noreturn]] void leave(bool right) { _exit(right && !testing::Test::HasFailure() ? 0 : 1); }

void informed_host() {
  set_handler(informed);
  bool right = true;
  {
    Loaded l;
    right &= handler().sa_sigaction != informed;
    raise(SIGBUS);
    right &= signals_heard == 1;
    volatile char* page = gone_page();
    right &= *page == 0 && signals_heard == 2 && signal_at == page;
    right &= l.loses() && signals_heard == 2;
  }
  // When the last mapping is gone, the host's handler is back in place.
  right &= handler().sa_sigaction == informed && (handler().sa_flags & SA_SIGINFO);
  leave(right);
}

void plain_host() {
  set_handler(plain);
  bool right = true;
  {
    Loaded l;
    raise(SIGBUS);
    right &= signals_heard == 1;
    right &= l.loses() && signals_heard == 1;
  }
  right &= handler().sa_handler == plain;
  leave(right);
}

void ignoring_host() {
  set_handler(SIG_IGN);
  bool right = true;
  {
    Loaded l;
    raise(SIGBUS);
    right &= l.loses();
  }
  right &= handler().sa_handler == SIG_IGN;
  leave(right);
}

void host_on_top() {
  bool right = true;
  {
    Loaded first;
    set_handler(passing_on);
    right &= first.loses() && signals_heard >= 1;
  }
  // Ours stays in the host's chain; the next model comes over it, and the chain has an end.
  right &= handler().sa_sigaction == passing_on;
  signals_heard = 0;
  {
    Loaded second;
    right &= second.loses();
  }
  right &= handler().sa_sigaction == passing_on;
  leave(right);
}

void host_on_top_of_default() {
  Loaded first;
  set_handler(passing_on);
  Loaded second;
  *gone_page();  // no mapping of the library: it goes through the chain to the default
  leave(true);
}

void switched_off() {
  set_handler(plain);
  Loaded l(Settings{{"guard_mapped_files", "false"}});
  bool right = handler().sa_handler == plain;
  // The bytes are in memory, so neither runs nor later sessions need the file.
  l.file.cut(0);
  std::vector<float> y;
  right &= sum(l.session.get(), &y).ok() && y == numbers();
  const auto later =
      make_session(l.env.get(), l.model.get(),
                   make_options(PFRT_OPTIONS_SESSION, {{"optimization_level", "none"}}).get());
  right &= sum(later.get(), &y).ok() && y == numbers();
  leave(right && signals_heard == 0);
}

void default_host_raises() {
  set_handler(SIG_DFL);
  Loaded l;
  raise(SIGBUS);
  leave(true);
}

void default_host_faults() {
  set_handler(SIG_DFL);
  Loaded l;
  *gone_page();
  leave(true);
}

void ignoring_host_faults() {
  set_handler(SIG_IGN);
  Loaded l;
  *gone_page();
  leave(true);
}

class LostFileHost : public testing::Test {
 protected:
  LostFileHost() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(LostFileHost, with_a_handler_that_wants_information) {
  EXPECT_EXIT(informed_host(), testing::ExitedWithCode(0), "");
}
TEST_F(LostFileHost, with_a_plain_handler) {
  EXPECT_EXIT(plain_host(), testing::ExitedWithCode(0), "");
}
TEST_F(LostFileHost, that_ignores_the_signal) {
  EXPECT_EXIT(ignoring_host(), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(ignoring_host_faults(), testing::KilledBySignal(SIGBUS), "");
}
TEST_F(LostFileHost, with_the_default_ends_as_without_us) {
  EXPECT_EXIT(default_host_raises(), testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(default_host_faults(), testing::KilledBySignal(SIGBUS), "");
}
TEST_F(LostFileHost, that_puts_its_handler_over_ours) {
  EXPECT_EXIT(host_on_top(), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(host_on_top_of_default(), testing::KilledBySignal(SIGBUS), "");
}
TEST_F(LostFileHost, may_switch_the_handler_off) {
  EXPECT_EXIT(switched_off(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace pfrt_test

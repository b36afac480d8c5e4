// SPDX-License-Identifier: Apache-2.0
#include "test/hosts/host.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "test/hosts/models.h"

namespace host {
namespace {

struct Failed {
  pfrt_code code;
  std::string message;
};

const pfrt_api& api() {
  static const pfrt_api* const table = pfrt_get_api(PFRT_ABI_VERSION, nullptr);
  return *table;
}

pfrt_string str(std::string_view text) { return {text.data(), text.size()}; }

void check_status(pfrt_status* status) {
  if (!status) return;
  Failed failed{api().status->code(status), {}};
  const pfrt_string text = api().status->message(status);
  failed.message.assign(text.data, text.size);
  api().status->release(status);
  throw failed;
}

// Owns a handle and releases it.
template <typename T>
class Owned {
 public:
  explicit Owned(void (*release)(T*)) : release_(release) {}
  ~Owned() { release_(handle_); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  T** out() { return &handle_; }
  T* get() const { return handle_; }

 private:
  T* handle_ = nullptr;
  void (*release_)(T*);
};

void set_options(pfrt_options_kind kind, const char* key, const char* value,
                 Owned<pfrt_options>& options) {
  check_status(api().options->create(kind, options.out()));
  check_status(api().options->set_text(options.get(), str(key), str(value)));
}

// Runs with pseudo-random inputs, with |free| for dynamic dimensions, and appends the results'
// bytes.
void run(pfrt_session* session, int64_t free, std::string& results) {
  static const pfrt_string words[] = {{"Mixed", 5}, {"CASE", 4}};
  const size_t inputs = api().session->input_count(session);
  const size_t outputs = api().session->output_count(session);
  std::vector<pfrt_io> in(inputs, pfrt_io{}), out(outputs, pfrt_io{});
  std::vector<std::vector<int64_t>> dims(inputs);
  std::vector<std::vector<float>> data(inputs);
  static const bool flag = true;
  for (size_t i = 0; i < inputs; ++i) {
    pfrt_value_info info{};
    info.struct_size = sizeof info;
    check_status(api().session->input_at(session, i, &info));
    size_t count = 1;
    for (int32_t d = 0; d < info.rank; ++d) {
      dims[i].push_back(info.dims[d] < 0 ? free : info.dims[d]);
      count *= static_cast<size_t>(dims[i].back());
    }
    data[i] = pfrt_models::numbers(count, static_cast<uint32_t>(i + 5));
    in[i].struct_size = sizeof(pfrt_io);
    pfrt_tensor& t = in[i].tensor;
    t.struct_size = sizeof t;
    t.dtype = info.dtype;
    t.rank = static_cast<uint32_t>(dims[i].size());
    t.dims = dims[i].data();
    t.data = data[i].data();
    t.bytes = 4 * count;
    if (info.dtype == PFRT_DTYPE_BOOL) t.data = const_cast<bool*>(&flag);
    if (info.dtype == PFRT_DTYPE_STRING) {
      t.data = const_cast<pfrt_string*>(words);
      t.bytes = sizeof words;
    }
  }
  for (pfrt_io& io : out) io.struct_size = sizeof io;
  check_status(api().session->run(session, in.data(), inputs, out.data(), outputs, nullptr));
  for (const pfrt_io& io : out) {
    Owned<pfrt_value> value(api().value->release);
    *value.out() = io.value;
    pfrt_tensor t{};
    t.struct_size = sizeof t;
    check_status(api().value->tensor(io.value, &t));
    if (t.dtype != PFRT_DTYPE_STRING) {
      results.append(static_cast<const char*>(t.data), t.bytes);
      continue;
    }
    const auto* texts = static_cast<const pfrt_string*>(t.data);
    for (int64_t i = 0; i < t.dims[0]; ++i) results.append(texts[i].data, texts[i].size);
  }
}

void open_session(pfrt_env* env, const pfrt_model* model, const char* threads,
                  Owned<pfrt_session>& session) {
  Owned<pfrt_options> options(api().options->release);
  set_options(PFRT_OPTIONS_SESSION, "num_threads", threads, options);
  pfrt_session_desc desc{};
  desc.struct_size = sizeof desc;
  desc.model = const_cast<pfrt_model*>(model);
  desc.options = options.get();
  check_status(api().session->create(env, &desc, session.out()));
}

void run_model(pfrt_env* env, const pfrt_model* model, const char* threads, std::string& results) {
  Owned<pfrt_session> session(api().session->release);
  open_session(env, model, threads, session);
  run(session.get(), 3, results);
  run(session.get(), 17, results);
}

// Appends the message of a run with a tensor that is far too large: it has numbers in it.
void fail_on_purpose(pfrt_env* env, const pfrt_model* model, std::string& results) {
  Owned<pfrt_session> session(api().session->release);
  open_session(env, model, "1", session);
  const std::vector<float> data(12345, 0.5f);
  const int64_t dims[] = {1, 12345};
  pfrt_io in{}, out{};
  in.struct_size = out.struct_size = sizeof in;
  in.tensor.struct_size = sizeof in.tensor;
  in.tensor.dtype = PFRT_DTYPE_FLOAT32;
  in.tensor.rank = 2;
  in.tensor.dims = dims;
  in.tensor.data = const_cast<float*>(data.data());
  in.tensor.bytes = 4 * data.size();
  try {
    check_status(api().session->run(session.get(), &in, 1, &out, 1, nullptr));
  } catch (const Failed& failed) {
    results += failed.message;
    return;
  }
  throw Failed{PFRT_CODE_INTERNAL, "a run with a wrong shape succeeded"};
}

// Avoids std::filesystem, which computes with floats: some hosts cannot bear that.
class Folder {
 public:
  Folder() {
    const char* parent = std::getenv("TMPDIR");
    path_ = std::string(parent ? parent : "/tmp") + "/pfrt_host_XXXXXX";
    if (!mkdtemp(path_.data())) throw Failed{PFRT_CODE_IO, "no temporary folder"};
  }
  ~Folder() {
    for (const char* name : kFiles) unlink(file(name).c_str());
    rmdir(path_.c_str());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  static constexpr const char* kFiles[] = {"saved.pfm", "saved.onnx"};
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string all_work(const char* threads, const char* log_level) {
  std::string results;
  const Folder folder;
  Owned<pfrt_options> options(api().options->release);
  set_options(PFRT_OPTIONS_ENV, "log_level", log_level, options);
  Owned<pfrt_env> env(api().env->release);
  check_status(api().env->create(options.get(), env.out()));
  const auto& models = *api().model;
  {
    Owned<pfrt_model> digits(models.release);
    check_status(models.load_file(env.get(), str(PFRT_DIGITS), nullptr, digits.out()));
    run_model(env.get(), digits.get(), threads, results);
    fail_on_purpose(env.get(), digits.get(), results);
  }
  const std::string bytes[] = {pfrt_models::layers(), pfrt_models::control()};
  for (const std::string& onnx : bytes) {
    Owned<pfrt_model> model(models.release);
    check_status(models.load_memory(env.get(), onnx.data(), onnx.size(), PFRT_COPY, nullptr,
                                    nullptr, nullptr, model.out()));
    run_model(env.get(), model.get(), threads, results);
    for (const char* name : Folder::kFiles) {
      const std::string path = folder.file(name);
      check_status(models.save(env.get(), model.get(), str(path), nullptr));
      Owned<pfrt_model> again(models.release);
      check_status(models.load_file(env.get(), str(path), nullptr, again.out()));
      run_model(env.get(), again.get(), threads, results);
    }
  }
  return results;
}

}  // namespace

std::string try_work(pfrt_code* code, const char* threads, const char* log_level) {
  *code = PFRT_CODE_OK;
  try {
    return all_work(threads, log_level);
  } catch (const Failed& failed) {
    *code = failed.code;
    return failed.message;
  }
}

std::string work(const char* threads, const char* log_level) {
  pfrt_code code = PFRT_CODE_OK;
  std::string results = try_work(&code, threads, log_level);
  if (code == PFRT_CODE_OK) return results;
  std::fprintf(stderr, "failed with code %u: %s\n", code, results.c_str());
  std::_Exit(1);
}

Opened::Opened() {
  pfrt_model* model = nullptr;
  check_status(api().env->create(nullptr, &env_));
  check_status(api().model->load_file(env_, str(PFRT_DIGITS), nullptr, &model));
  pfrt_session_desc desc{};
  desc.struct_size = sizeof desc;
  desc.model = model;
  check_status(api().session->create(env_, &desc, &session_));
  api().model->release(model);
}

Opened::~Opened() {
  api().session->release(session_);
  api().env->release(env_);
}

std::string Opened::run() const {
  std::string results;
  host::run(session_, 64, results);
  return results;
}

int compare_states(const char* when, const State& expected, const State& found) {
  int differences = 0;
  const auto complain = [&](const std::string& name, const std::string& was,
                            const std::string& is) {
    std::fprintf(stderr, "%s: %s was '%s', is '%s'\n", when, name.c_str(), was.c_str(), is.c_str());
    ++differences;
  };
  for (const auto& [name, was] : expected) {
    const auto is = found.find(name);
    if (is == found.end() || is->second != was)
      complain(name, was, is == found.end() ? "" : is->second);
  }
  for (const auto& [name, is] : found)
    if (!expected.contains(name)) complain(name, "", is);
  return differences ? 1 : 0;
}

int compare_results(const char* when, int argc, char** argv, const std::string& results) {
  std::string reference;
  if (std::FILE* file = argc > 1 ? std::fopen(argv[1], "rb") : nullptr) {
    char piece[4096];
    for (size_t n; (n = std::fread(piece, 1, sizeof piece, file)) > 0;) reference.append(piece, n);
    std::fclose(file);
  }
  if (reference.empty()) {
    std::fprintf(stderr, "%s: there are no results of the plain host to compare with\n", when);
    return 1;
  }
  if (results == reference) return 0;
  std::fprintf(stderr, "%s: %zu bytes of results differ from the plain host's %zu\n", when,
               results.size(), reference.size());
  return 1;
}

int check(const char* when, int argc, char** argv) {
  const State before = state();
  const std::string results = work();
  const int changed = compare_states(when, before, state());
  return compare_results(when, argc, argv, results) | changed;
}

int in_child(const std::function<int()>& fn) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    std::exit(fn());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int on_thread(size_t stack, const std::function<int()>& fn) {
  struct Call {
    const std::function<int()>* fn;
    int code;
  } call{&fn, 1};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (stack) pthread_attr_setstacksize(&attributes, stack);
  pthread_t thread;
  const int error = pthread_create(
      &thread, &attributes,
      [](void* arg) -> void* {
        auto* c = static_cast<Call*>(arg);
        c->code = (*c->fn)();
        return nullptr;
      },
      &call);
  pthread_attr_destroy(&attributes);
  if (error) {
    std::fprintf(stderr, "no thread with a stack of %zu bytes: %d\n", stack, error);
    return 1;
  }
  pthread_join(thread, nullptr);
  return call.code;
}

}  // namespace host

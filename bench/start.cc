// SPDX-License-Identifier: Apache-2.0
//
// Makes a session of a model and runs it once, ours or the peer's. Prints how many milliseconds
// after |T0| (CLOCK_MONOTONIC in milliseconds, read before this process was started) the session
// was there and the run was over, less the time that making inputs took, and the peak memory. The
// program has nothing else in it, so it starts as a program of any kind would. Arguments:
//
//   start ours|LIBRARY MODEL T0 [--hold] [NAME DTYPE DIMS FILE ...]
//
// LIBRARY is ONNX Runtime's; DTYPE is ONNX's number, DIMS are joined by 'x', FILE has the elements.
// --hold waits for the end of the standard input before it leaves. start.py, beside this file,
// calls it.
#include <dlfcn.h>
#include <pyflame_rt/pyflame_rt.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

double now_ms() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

// Reads VmHWM, since getrusage's maximum begins with what the parent process had.
long peak_kilobytes() {
  std::ifstream status("/proc/self/status");
  long kilobytes = 0;
  for (std::string word; status >> word;)
    if (word == "VmHWM:" && status >> kilobytes) break;
  return kilobytes;
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "start: %s\n", what.c_str());
  std::_Exit(1);
}

struct Input {
  std::string name, bytes;
  int dtype = 0;
  std::vector<int64_t> dims;
};

Input input_of(char** words) {
  Input input;
  input.name = words[0];
  input.dtype = std::atoi(words[1]);
  for (const char* at = words[2]; *at;) {
    char* end = nullptr;
    input.dims.push_back(std::strtoll(at, &end, 10));
    at = *end ? end + 1 : end;
  }
  std::ifstream file(words[3], std::ios::binary);
  input.bytes.assign(std::istreambuf_iterator<char>(file), {});
  return input;
}

pfrt_string str(const std::string& text) { return {text.data(), text.size()}; }

class Ours {
 public:
  explicit Ours(const std::string& model) {
    check(api_->env->create(nullptr, &env_));
    check(api_->model->load_file(env_, str(model), nullptr, &model_));
    pfrt_options* options = nullptr;
    check(api_->options->create(PFRT_OPTIONS_SESSION, &options));
    check(api_->options->set_int(options, str("num_threads"), 1));
    pfrt_session_desc desc{};
    desc.struct_size = sizeof desc;
    desc.model = model_;
    desc.options = options;
    check(api_->session->create(env_, &desc, &session_));
  }
  void feed(std::vector<Input>& inputs) {
    in_.resize(api_->session->input_count(session_));
    for (size_t i = 0; i < in_.size(); ++i) {
      in_[i] = pfrt_io{};
      in_[i].struct_size = sizeof in_[i];
      in_[i].tensor.struct_size = sizeof in_[i].tensor;
      pfrt_value_info info{};
      info.struct_size = sizeof info;
      check(api_->session->input_at(session_, i, &info));
      for (Input& given : inputs) {
        if (given.name != std::string(info.name.data, info.name.size)) continue;
        pfrt_tensor& t = in_[i].tensor;
        t.dtype = static_cast<pfrt_dtype>(given.dtype);
        t.rank = static_cast<uint32_t>(given.dims.size());
        t.dims = given.dims.data();
        t.data = given.bytes.data();
        t.bytes = given.bytes.size();
      }
    }
    out_.resize(api_->session->output_count(session_));
    for (pfrt_io& out : out_) {
      out = pfrt_io{};
      out.struct_size = sizeof out;
      out.tensor.struct_size = sizeof out.tensor;
    }
  }
  void run() {
    check(api_->session->run(session_, in_.data(), in_.size(), out_.data(), out_.size(), nullptr));
  }

 private:
  void check(pfrt_status* status) {
    if (!status) return;
    const pfrt_string text = api_->status->message(status);
    fail(std::string(text.data, text.size));
  }
  const pfrt_api* const api_ = pfrt_get_api(PFRT_ABI_VERSION, nullptr);
  pfrt_env* env_ = nullptr;
  pfrt_model* model_ = nullptr;
  pfrt_session* session_ = nullptr;
  std::vector<pfrt_io> in_, out_;
};

// A session of the peer, called by slots of its table (cxxapi/cli/peer.cc has more of them).
class Peer {
 public:
  Peer(const std::string& library, const std::string& model) {
    void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const base = handle ? ::dlsym(handle, "OrtGetApiBase") : nullptr;
    if (!base) fail("cannot open " + library);
    struct Base {
      void* const* (*get_api)(uint32_t version);
    };
    table_ = reinterpret_cast<const Base* (*)()>(base)()->get_api(20);
    if (!table_) fail("the peer is too old");
    void *env = nullptr, *options = nullptr;
    call(3, 3, "start", &env);
    call(10, &options);
    call(24, options, 1);
    call(25, options, 1);
    call(23, options, 99);
    call(7, static_cast<const void*>(env), model.c_str(), static_cast<const void*>(options),
         &session_);
  }
  void feed(std::vector<Input>& inputs) {
    void *memory = nullptr, *allocator = nullptr;
    call(69, 1, 0, &memory);
    call(78, &allocator);
    for (Input& given : inputs) {
      void* value = nullptr;
      call(49, static_cast<const void*>(memory), static_cast<void*>(given.bytes.data()),
           given.bytes.size(), static_cast<const int64_t*>(given.dims.data()), given.dims.size(),
           given.dtype, &value);
      values_.push_back(value);
      names_.push_back(given.name.c_str());
    }
    size_t count = 0;
    call(31, static_cast<const void*>(session_), &count);
    for (size_t i = 0; i < count; ++i) {
      char* name = nullptr;
      call(37, static_cast<const void*>(session_), i, allocator, &name);
      output_names_.push_back(name);
    }
    outputs_.resize(count);
  }
  void run() {
    call(9, session_, static_cast<const void*>(nullptr), names_.data(), values_.data(),
         values_.size(), output_names_.data(), output_names_.size(), outputs_.data());
  }

 private:
  template <class... Args>
  void call(size_t slot, Args... args) {
    void* const status = reinterpret_cast<void* (*)(Args...)>(table_[slot])(args...);
    if (status) fail(reinterpret_cast<const char* (*)(const void*)>(table_[2])(status));
  }
  void* const* table_ = nullptr;
  void* session_ = nullptr;
  std::vector<const char*> names_, output_names_;
  std::vector<void*> values_, outputs_;
};

template <typename Side>
int measure(Side& side, double start, bool hold, std::vector<char*> words) {
  const double session = now_ms() - start;
  std::vector<Input> inputs;
  for (size_t i = 0; i + 4 <= words.size(); i += 4) inputs.push_back(input_of(&words[i]));
  side.feed(inputs);
  const double before = now_ms();
  side.run();
  const double run = session + now_ms() - before;
  std::printf("%.3f %.3f %ld\n", session, run, peak_kilobytes());
  std::fflush(stdout);
  while (hold && std::getchar() != EOF) {
  }
  std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) fail("start ours|LIBRARY MODEL T0 [--hold] [NAME DTYPE DIMS FILE ...]");
  const double start = std::atof(argv[3]);
  const bool hold = argc > 4 && std::strcmp(argv[4], "--hold") == 0;
  const std::vector<char*> words(argv + (hold ? 5 : 4), argv + argc);
  if (std::strcmp(argv[1], "ours") == 0) {
    Ours ours(argv[2]);
    return measure(ours, start, hold, words);
  }
  Peer peer(argv[1], argv[2]);
  return measure(peer, start, hold, words);
}

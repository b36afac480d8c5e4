// SPDX-License-Identifier: Apache-2.0
//
// Times llama.cpp through its C API, which it opens at run time, so that no header of it is needed:
//
//   llama LIBRARIES BACKEND MODEL.gguf --threads N --past P --seconds S [--prompt T] [--logits
//   FILE]
//
// LIBRARIES is the folder of its shared libraries, BACKEND the word of libggml-cpu-BACKEND.so,
// which decides the instruction set. Prints JSON: the median of one token after P past ones, or of
// a prompt of T tokens. --logits writes the float32 logits of the last token that was timed.
#include <dirent.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

// Structures that the API passes by value, and that this program only hands on from the API's own
// defaults. They are larger than in any version. The calling convention passes both in memory,
// whatever they hold.
struct Parameters {
  unsigned char bytes[1024];
};
struct Batch {
  int32_t tokens = 0;
  int32_t* ids = nullptr;
  float* embeddings = nullptr;
  int32_t* positions = nullptr;
  int32_t* sequence_counts = nullptr;
  int32_t** sequences = nullptr;
  int8_t* logits = nullptr;
};

std::runtime_error failure(const std::string& what) { return std::runtime_error(what); }

// The file in |folder| called |name|.so, or |name| with a version before or after the suffix.
std::string library_in(const std::string& folder, const std::string& name) {
  DIR* const files = opendir(folder.c_str());
  if (files == nullptr) throw failure(folder + " cannot be read");
  std::string found;
  while (const dirent* entry = readdir(files)) {
    const std::string file = entry->d_name;
    const bool named = file.compare(0, name.size(), name) == 0 && file.size() > name.size() &&
                       file[name.size()] == '.' && file.find(".so") != std::string::npos;
    if (named && (found.empty() || file < found)) found = file;
  }
  closedir(files);
  if (found.empty()) throw failure(folder + " has no " + name + ".so");
  return folder + "/" + found;
}

void* opened(const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) throw failure(dlerror());
  return handle;
}

template <typename Function>
Function* symbol(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found == nullptr) throw failure(std::string("the library has no ") + name);
  return reinterpret_cast<Function*>(found);
}

void log_errors(int level, const char* text, void*) {
  constexpr int kError = 4;
  if (level == kError) std::fputs(text, stderr);
}

class Llama {
 public:
  Llama(const std::string& folder, const std::string& backend, const std::string& model,
        int threads) {
    opened(library_in(folder, "libggml-base"));
    void* const ggml = opened(library_in(folder, "libggml"));
    library_ = opened(library_in(folder, "libllama"));
    symbol<void(void (*)(int, const char*, void*), void*)>(library_, "llama_log_set")(log_errors,
                                                                                      nullptr);
    const std::string cpu = folder + "/libggml-cpu-" + backend + ".so";
    if (symbol<void*(const char*)>(ggml, "ggml_backend_load")(cpu.c_str()) == nullptr)
      throw failure(cpu + " does not load on this machine");
    symbol<void()>(library_, "llama_backend_init")();
    void* const loaded =
        symbol<void*(const char*, Parameters)>(library_, "llama_model_load_from_file")(
            model.c_str(), symbol<Parameters()>(library_, "llama_model_default_params")());
    if (loaded == nullptr) throw failure(model + " does not load");
    context_ = symbol<void*(void*, Parameters)>(library_, "llama_init_from_model")(
        loaded, symbol<Parameters()>(library_, "llama_context_default_params")());
    if (context_ == nullptr) throw failure("no context can be made");
    symbol<void(void*, int32_t, int32_t)>(library_, "llama_set_n_threads")(context_, threads,
                                                                           threads);
    tokens_ =
        static_cast<int64_t>(symbol<uint32_t(const void*)>(library_, "llama_n_ctx")(context_));
    memory_ = symbol<void*(const void*)>(library_, "llama_get_memory")(context_);
    decode_ = symbol<int32_t(void*, Batch)>(library_, "llama_decode");
    batch_ = symbol<Batch(int32_t*, int32_t)>(library_, "llama_batch_get_one");
    synchronize_ = symbol<void(void*)>(library_, "llama_synchronize");
    remove_ = symbol<bool(void*, int32_t, int32_t, int32_t)>(library_, "llama_memory_seq_rm");
  }

  int64_t most_tokens() const { return tokens_; }
  // Keeps only the first |kept| tokens of what was decoded.
  void forget_after(int kept) {
    if (!remove_(memory_, 0, kept, -1)) throw failure("tokens cannot be forgotten");
  }
  double decode(std::vector<int32_t>& ids) {
    const auto start = Clock::now();
    if (decode_(context_, batch_(ids.data(), static_cast<int32_t>(ids.size()))) != 0)
      throw failure("llama_decode failed");
    synchronize_(context_);
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  const float* logits() const {
    return symbol<float*(void*, int32_t)>(library_, "llama_get_logits_ith")(context_, -1);
  }
  int32_t vocabulary() const {
    const void* const model =
        symbol<const void*(const void*)>(library_, "llama_get_model")(context_);
    const void* const words =
        symbol<const void*(const void*)>(library_, "llama_model_get_vocab")(model);
    return symbol<int32_t(const void*)>(library_, "llama_vocab_n_tokens")(words);
  }

 private:
  void* library_ = nullptr;
  void* context_ = nullptr;
  void* memory_ = nullptr;
  int64_t tokens_ = 0;
  int32_t (*decode_)(void*, Batch) = nullptr;
  Batch (*batch_)(int32_t*, int32_t) = nullptr;
  void (*synchronize_)(void*) = nullptr;
  bool (*remove_)(void*, int32_t, int32_t, int32_t) = nullptr;
};

// Tokens 1, 0, 1, 0, ...: the ids that pfrt makes up are of these two.
std::vector<int32_t> ids_of(int64_t count) {
  std::vector<int32_t> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = i % 2 == 0 ? 1 : 0;
  return out;
}

int run(int argc, char** argv) {
  if (argc < 4 || argc % 2 != 0)
    throw failure(
        "usage: llama LIBRARIES BACKEND MODEL.gguf --threads N --past P --seconds S [--prompt T] "
        "[--logits FILE]");
  std::map<std::string, std::string> given = {
      {"--threads", "1"}, {"--past", "0"}, {"--seconds", "1"}, {"--prompt", "1"}, {"--logits", ""}};
  for (int i = 4; i + 1 < argc; i += 2) {
    if (given.count(argv[i]) == 0) throw failure(std::string("'") + argv[i] + "' is no option");
    given[argv[i]] = argv[i + 1];
  }
  const int past = std::max(0, std::atoi(given["--past"].c_str()));
  const int64_t tokens = std::max(1, std::atoi(given["--prompt"].c_str()));
  Llama llama(argv[1], argv[2], argv[3], std::max(1, std::atoi(given["--threads"].c_str())));
  if (past + tokens > llama.most_tokens())
    throw failure("a context has room for " + std::to_string(llama.most_tokens()) + " tokens");
  std::vector<int32_t> before = ids_of(past), timed = ids_of(tokens);
  if (past > 0) llama.decode(before);
  llama.decode(timed);  // warms up
  const double limit = std::atof(given["--seconds"].c_str());
  std::vector<double> times;
  double total = 0;
  do {
    llama.forget_after(past);
    times.push_back(llama.decode(timed));
    total += times.back();
  } while (total < limit);
  if (!given["--logits"].empty()) {
    std::FILE* const file = std::fopen(given["--logits"].c_str(), "wb");
    const auto count = static_cast<size_t>(llama.vocabulary());
    if (file == nullptr || std::fwrite(llama.logits(), sizeof(float), count, file) != count ||
        std::fclose(file) != 0)
      throw failure(given["--logits"] + " cannot be written");
  }
  std::sort(times.begin(), times.end());
  std::printf("{\"median_s\": %.9g, \"best_s\": %.9g, \"runs\": %zu}\n", times[times.size() / 2],
              times[0], times.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "llama: %s\n", error.what());
    return 1;
  }
}

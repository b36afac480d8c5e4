// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/peer.h"

#include <dlfcn.h>

#include <chrono>
#include <cstring>

#include "cxxapi/cli/line/usage_error.h"

namespace cli {
namespace {

using pyflame_rt::DType;
using pyflame_rt::Tensor;

// Positions in the peer's table; they never move.
enum Slot : size_t {
  kGetErrorMessage = 2,
  kCreateEnv = 3,
  kCreateSession = 7,
  kRun = 9,
  kCreateSessionOptions = 10,
  kSetGraphOptimizationLevel = 23,
  kSetIntraOpNumThreads = 24,
  kSetInterOpNumThreads = 25,
  kCreateTensorWithData = 49,
  kIsTensor = 50,
  kGetTensorMutableData = 51,
  kGetTensorElementType = 60,
  kGetDimensionsCount = 61,
  kGetDimensions = 62,
  kGetTensorTypeAndShape = 65,
  kCreateCpuMemoryInfo = 69,
  kReleaseEnv = 92,
  kReleaseStatus = 93,
  kReleaseMemoryInfo = 94,
  kReleaseSession = 95,
  kReleaseValue = 96,
  kReleaseTensorTypeAndShape = 99,
  kReleaseSessionOptions = 100,
};

// Values of the peer's enums.
constexpr int kLogError = 3;
constexpr int kOptimizeAll = 99;
constexpr int kArenaAllocator = 1;
constexpr int kDefaultMemory = 0;
constexpr uint32_t kNewestApi = 30;
constexpr uint32_t kOldestApi = 10;

struct ApiBase {
  void* const* (*get_api)(uint32_t version);
  const char* (*version)();
};

}  // namespace

template <class... Args>
void Peer::call(size_t slot, Args... args) {
  using Function = void* (*)(Args...);
  void* status = reinterpret_cast<Function>(table_[slot])(args...);
  if (status == nullptr) return;
  using Message = const char* (*)(const void*);
  const std::string text = reinterpret_cast<Message>(table_[kGetErrorMessage])(status);
  release(kReleaseStatus, status);
  throw UsageError("the peer says: " + text);
}

void Peer::release(size_t slot, void* object) {
  using Function = void (*)(void*);
  if (object != nullptr) reinterpret_cast<Function>(table_[slot])(object);
}

Peer::Peer(const std::string& library, const std::string& model, int threads) {
  library_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) throw UsageError("cannot open the peer: " + std::string(::dlerror()));
  void* symbol = ::dlsym(library_, "OrtGetApiBase");
  if (symbol == nullptr)
    throw UsageError("'" + library + "' is not ONNX Runtime: it has no OrtGetApiBase");
  const auto* base = reinterpret_cast<const ApiBase* (*)()>(symbol)();
  version_ = base->version();
  for (uint32_t v = kNewestApi; table_ == nullptr && v >= kOldestApi; --v)
    table_ = base->get_api(v);
  if (table_ == nullptr)
    throw UsageError("'" + library + "' offers none of the API versions 10 to 30");
  try {
    create(model, threads);
  } catch (...) {
    destroy();
    throw;
  }
}

void Peer::create(const std::string& model, int threads) {
  const auto start = std::chrono::steady_clock::now();
  call(kCreateEnv, kLogError, "pfrt", &env_);
  void* options = nullptr;
  call(kCreateSessionOptions, &options);
  try {
    call(kSetIntraOpNumThreads, options, threads);
    call(kSetInterOpNumThreads, options, 1);
    call(kSetGraphOptimizationLevel, options, kOptimizeAll);
    call(kCreateSession, static_cast<const void*>(env_), model.c_str(),
         static_cast<const void*>(options), &session_);
  } catch (...) {
    release(kReleaseSessionOptions, options);
    throw;
  }
  release(kReleaseSessionOptions, options);
  load_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  call(kCreateCpuMemoryInfo, kArenaAllocator, kDefaultMemory, &memory_);
}

Peer::~Peer() { destroy(); }

// The library stays open: its threads may still be leaving.
void Peer::destroy() {
  release_outputs();
  for (void* value : input_values_) release(kReleaseValue, value);
  release(kReleaseMemoryInfo, memory_);
  release(kReleaseSession, session_);
  release(kReleaseEnv, env_);
}

void Peer::bind(std::vector<std::pair<std::string, Tensor>> inputs,
                std::vector<std::string> output_names) {
  inputs_ = std::move(inputs);
  output_names_ = std::move(output_names);
  for (auto& [name, tensor] : inputs_) {
    if (tensor.dtype() == DType::String)
      throw UsageError("input '" + name + "': strings are not benched with a peer");
    void* value = nullptr;
    // Element types have ONNX's numbers on both sides.
    call(kCreateTensorWithData, static_cast<const void*>(memory_), tensor.data(),
         tensor.size_bytes(), tensor.shape().data(), tensor.ndim(),
         static_cast<int>(to_c(tensor.dtype())), &value);
    input_values_.push_back(value);
    input_texts_.push_back(name.c_str());
  }
  for (const std::string& name : output_names_) output_texts_.push_back(name.c_str());
  output_values_.assign(output_names_.size(), nullptr);
}

void Peer::run() {
  release_outputs();
  call(kRun, session_, static_cast<const void*>(nullptr), input_texts_.data(),
       static_cast<void* const*>(input_values_.data()), input_values_.size(), output_texts_.data(),
       output_texts_.size(), output_values_.data());
}

void Peer::release_outputs() {
  for (void*& value : output_values_) {
    release(kReleaseValue, value);
    value = nullptr;
  }
}

Tensor Peer::output_at(size_t index) {
  void* value = output_values_[index];
  int is_tensor = 0;
  call(kIsTensor, static_cast<const void*>(value), &is_tensor);
  if (is_tensor == 0) return {};
  void* info = nullptr;
  call(kGetTensorTypeAndShape, static_cast<const void*>(value), &info);
  int type = 0;
  size_t rank = 0;
  call(kGetTensorElementType, static_cast<const void*>(info), &type);
  call(kGetDimensionsCount, static_cast<const void*>(info), &rank);
  std::vector<int64_t> shape(rank);
  call(kGetDimensions, static_cast<const void*>(info), shape.data(), rank);
  release(kReleaseTensorTypeAndShape, info);
  const DType dtype = pyflame_rt::dtype_from_c(static_cast<pfrt_dtype>(type));
  if (dtype == DType::String || dtype == DType::Undefined) return {};
  Tensor tensor(shape, dtype);
  void* data = nullptr;
  call(kGetTensorMutableData, value, &data);
  if (tensor.size_bytes() != 0) std::memcpy(tensor.data(), data, tensor.size_bytes());
  return tensor;
}

std::vector<Tensor> Peer::outputs() {
  std::vector<Tensor> out;
  for (size_t i = 0; i < output_values_.size(); ++i) out.push_back(output_at(i));
  return out;
}

}  // namespace cli

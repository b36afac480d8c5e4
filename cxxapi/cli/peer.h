// SPDX-License-Identifier: Apache-2.0
//
// ONNX Runtime as the other side of a bench: its shared library is opened at run time and driven
// through its C table by slot number, so that none of its headers is needed. One thread at a time;
// owns the library's objects it makes.
#pragma once

#include <memory>
#include <pyflame_rt/tensor.hpp>
#include <string>
#include <utility>
#include <vector>

namespace cli {

class Peer {
 public:
  // Throws UsageError when |library| is not ONNX Runtime or refuses the model.
  Peer(const std::string& library, const std::string& model, int threads);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const std::string& version() const { return version_; }
  double load_seconds() const { return load_seconds_; }
  // Borrows the tensors, which must outlive the runs.
  void bind(std::vector<std::pair<std::string, pyflame_rt::Tensor>> inputs,
            std::vector<std::string> output_names);
  void run();
  // Copies of the last run's outputs; an invalid tensor where the output is not a tensor of
  // numbers.
  std::vector<pyflame_rt::Tensor> outputs();

 private:
  template <class... Args>
  void call(size_t slot, Args... args);
  void release(size_t slot, void* object);
  void release_outputs();
  pyflame_rt::Tensor output_at(size_t index);
  void create(const std::string& model, int threads);
  void destroy();

  void* library_ = nullptr;
  void* const* table_ = nullptr;
  std::string version_;
  double load_seconds_ = 0;
  void* env_ = nullptr;
  void* session_ = nullptr;
  void* memory_ = nullptr;
  std::vector<std::pair<std::string, pyflame_rt::Tensor>> inputs_;
  std::vector<std::string> output_names_;
  std::vector<void*> input_values_, output_values_;
  std::vector<const char*> input_texts_, output_texts_;
};

}  // namespace cli

// SPDX-License-Identifier: Apache-2.0
//
// Graphs run once, on the CPU. Each call prepares the graph anew: use an InferenceSession to run a
// graph more than once.
#pragma once

#include <pyflame_rt/backend.hpp>
#include <pyflame_rt/registry.hpp>
#include <pyflame_rt/session.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace pyflame_rt {

// A backend that runs graphs with a session of the CPU provider. Thread-safe.
class CPUExecutor : public Backend {
 public:
  const std::string& name() const override { return name_; }
  bool supports_op(const std::string& op_type) const override {
    return OperatorRegistry::instance().has(op_type);
  }
  // Names of all operators, sorted.
  std::vector<std::string> get_supported_ops() const override {
    return OperatorRegistry::instance().list_ops();
  }
  std::vector<Tensor> execute(const Graph& graph,
                              const std::unordered_map<std::string, Tensor>& input_feed,
                              const std::vector<std::string>& output_names = {}) override {
    SessionOptions options;
    options.device = "cpu";
    return InferenceSession(graph, options).run(output_names, input_feed);
  }

 private:
  const std::string name_ = "cpu";
};

}  // namespace pyflame_rt

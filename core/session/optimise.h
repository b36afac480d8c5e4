// SPDX-License-Identifier: Apache-2.0
//
// Answers passes' questions to providers: constants computed, fusions agreed to, results compared.
#pragma once

#include <memory>
#include <vector>

#include "core/exec/compiled_graph.h"
#include "core/pass/engine/pass.h"
#include "core/verify/verify.h"

namespace pfrt {

// Answers questions for as long as the candidates' providers live, which it keeps.
class PassServices {
 public:
  // |verifier| may be null.
  explicit PassServices(CompileServices services, Verifier* verifier = nullptr)
      : services_(std::move(services)), verifier_(verifier) {}

  // Valid while this object lives.
  PassContext context();

 private:
  Result<std::vector<ValuePtr>> evaluate(std::shared_ptr<const Graph> graph) const;
  std::string refuses(const Graph& graph, const Node& node, std::span<const Node* const> epilogue,
                      std::string_view target);
  Result<std::optional<double>> cost(const Graph& graph, std::span<const Node* const> nodes,
                                     std::string_view target) const;
  const Candidate* find(std::string_view target) const;

  const CompileServices services_;
  Verifier* verifier_;
  Status stopped_;  // of the question that was stopped first
};

}  // namespace pfrt

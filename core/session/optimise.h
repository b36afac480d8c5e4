// SPDX-License-Identifier: Apache-2.0
//
// What passes ask of providers: constants computed, fusions agreed to, results compared.
#pragma once

#include <memory>
#include <vector>

#include "core/exec/compiled.h"
#include "core/pass/pass.h"

namespace pfrt {

// Answers questions for as long as the candidates' providers live, which it keeps.
class PassServices {
 public:
  PassServices(std::vector<Candidate> candidates, PackedStore* packed, Logger* logger)
      : candidates_(std::move(candidates)), packed_(packed), logger_(logger) {}

  // Valid while this object lives.
  PassContext context();

 private:
  Result<std::vector<ValuePtr>> evaluate(std::shared_ptr<const Graph> graph) const;
  std::string refuses(const Graph& graph, const Node& node, std::span<const Node* const> tail,
                      std::string_view target) const;
  const Candidate* find(std::string_view target) const;

  std::vector<Candidate> candidates_;
  PackedStore* packed_;
  Logger* logger_;
};

}  // namespace pfrt

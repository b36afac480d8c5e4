// SPDX-License-Identifier: Apache-2.0
//
// What passes ask of providers: constants computed, fusions agreed to, results compared.
#pragma once

#include <memory>
#include <vector>

#include "core/exec/compiled.h"
#include "core/pass/pass.h"
#include "core/session/verify.h"

namespace pfrt {

// Answers questions for as long as the candidates' providers live, which it keeps.
class PassServices {
 public:
  // |progress| and |verifier| may be null.
  PassServices(std::vector<Candidate> candidates, PackedStore* packed, Logger* logger,
               const Progress* progress = nullptr, Verifier* verifier = nullptr)
      : candidates_(std::move(candidates)),
        packed_(packed),
        logger_(logger),
        verifier_(verifier),
        progress_(progress ? *progress : Progress()) {}

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
  Verifier* verifier_;
  const Progress progress_;
};

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// Finds whether two canonical graphs give the same results: runs both, each as it is, on given
// inputs and on generated ones of several shapes and ranges, and compares all outputs. Rounding may
// differ; a difference as large as a perturbation of the inputs by their own rounding makes is no
// fault. Not thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/exec/compiled_graph.h"
#include "core/model/sample_source.h"

namespace pfrt {

class Verifier {
 public:
  struct Context : CompileServices {
    std::vector<NamedValues> samples;  // given inputs; other names are left out
    // More of them, read anew for each comparison; null: none. Outlives the verifier.
    SampleSource* source = nullptr;
    // Time limit of one run, after which |before| counts as refusing it, since loops may be
    // endless.
    double seconds = 20;
  };
  explicit Verifier(Context context);
  ~Verifier();

  // Describes how |after| differs from |before|, or is empty. |before| is kept with its results for
  // the next call; inputs that it refuses to run are not counted. Fails when the caller cancels, or
  // when there is no memory left.
  Result<std::string> difference(const std::shared_ptr<const Graph>& before,
                                 const std::shared_ptr<const Graph>& after);

  // Sentences about what was compared, and what could not be and why.
  std::vector<std::string> notes() const;

 private:
  struct Trial;
  struct Reference;
  Status refer_to(const std::shared_ptr<const Graph>& before);
  Status add_samples();
  Status add_trials();
  // A trial of given inputs; null, with a warning, where they cannot be run.
  Result<std::unique_ptr<Trial>> attempt_given(const NamedValues& sample);
  Result<std::string> compare_source(CompiledGraph& after);
  // A trial with |inputs|; UNSET where |before| refuses them.
  Result<std::unique_ptr<Trial>> attempt(std::vector<ValuePtr> inputs);
  Result<std::unique_ptr<Trial>> attempt(uint32_t variant, uint32_t draw);
  Result<std::string> compare(const Trial& trial, CompiledGraph& after);
  Result<bool> seen_again(Trial& trial, CompiledGraph& after);
  Result<std::unique_ptr<CompiledGraph>> compile(std::shared_ptr<const Graph> graph) const;
  void warn(const std::string& text);

  const Context context_;
  std::unique_ptr<Reference> reference_;
  uint64_t comparisons_ = 0, runs_ = 0;
  std::set<std::string> warnings_;
};

}  // namespace pfrt

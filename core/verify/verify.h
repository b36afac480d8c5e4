// SPDX-License-Identifier: Apache-2.0
//
// Whether two canonical graphs give the same results: both are run, each as it is, on inputs made
// up in several shapes and ranges and on given ones, and all outputs compared. Rounding may differ;
// what a change of input by its own rounding changes as much is not held against anybody. Not
// thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/exec/compiled_graph.h"
#include "core/model/ports.h"

namespace pfrt {

class Verifier {
 public:
  struct Context : CompileServices {
    std::vector<NamedValues> samples;  // given inputs: one of each name, a graph's others are left
    // Of one run, after which |before| counts as refusing it: loops may be endless.
    double seconds = 20;
  };
  explicit Verifier(Context context);
  ~Verifier();

  // Empty, or how |after| differs from |before|, which is kept with its results for the next call.
  // What |before| itself refuses to run is not counted. Fails when the caller cancels, or when
  // there is no memory left.
  Result<std::string> difference(const std::shared_ptr<const Graph>& before,
                                 const std::shared_ptr<const Graph>& after);

  // What was compared, and what could not be and why, for people.
  std::vector<std::string> notes() const;

 private:
  struct Trial;
  struct Reference;
  Status refer_to(const std::shared_ptr<const Graph>& before);
  Status add_samples();
  Status add_trials();
  // The trial that |inputs| make; UNSET where |before| refuses them.
  Result<std::unique_ptr<Trial>> attempt(std::vector<ValuePtr> inputs);
  Result<std::unique_ptr<Trial>> attempt(uint32_t variant, uint32_t draw);
  Result<std::string> compare(const Trial& trial, CompiledGraph& after);
  Result<bool> seen_again(Trial& trial, CompiledGraph& after);
  Result<std::unique_ptr<CompiledGraph>> compile(std::shared_ptr<const Graph> graph) const;
  Status run(CompiledGraph& graph, const std::vector<ValuePtr>& inputs, double seconds,
             std::vector<ValuePtr>& outputs) const;
  void warn(const std::string& text);

  const Context context_;
  std::unique_ptr<Reference> reference_;
  uint64_t comparisons_ = 0, runs_ = 0;
  std::set<std::string> warnings_;
};

}  // namespace pfrt

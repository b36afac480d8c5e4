// SPDX-License-Identifier: Apache-2.0
//
// Precision "auto": each node's float32 products get the cheapest arithmetic that keeps every
// output within the allowed error of precision "fp32". Each node is tried alone, in bf16 and then
// in fast. Nodes are then taken in the order of least error for the work saved, as many as the
// error measured of all of them together allows. The choice depends on the graph, the inputs and
// the machine's kernels, not on time. Not thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/exec/compiled_graph.h"
#include "core/verify/rounding_noise.h"
#include "core/verify/verify.h"

namespace pfrt {

struct PrecisionChoice {
  std::vector<NodePrecision> nodes;  // by node id; empty = fp32 for all
  std::vector<std::string> notes;    // for people
};

class PrecisionSearch {
 public:
  struct Context : CompileServices {
    const std::vector<NamedValues>* samples = nullptr;  // in place of generated inputs; may be null
    // Gives them where there are no |samples|, and is read anew for each measurement, so that none
    // is kept; null: none. Outlives the search.
    SampleSource* source = nullptr;
    // Allowed error of an element of an output, relative to the output's largest magnitude.
    double max_error = 0;
  };
  explicit PrecisionSearch(Context context);
  ~PrecisionSearch();

  // Fails when the caller cancels, when there is no memory left, or when |samples| are not inputs
  // of the graph; what cannot be run is left at fp32, with a note.
  Result<PrecisionChoice> choose(std::shared_ptr<const Graph> graph);

 private:
  struct Trial;
  struct Product;
  struct Level;
  using Hints = std::vector<NodePrecision>;

  Status add_trials(PrecisionChoice& choice);
  Status add_trial(std::vector<ValuePtr> inputs, bool* added);
  // Counts the samples of the source, which the graph has to accept.
  Result<size_t> try_source();
  Result<Trial> trial_of(const NamedValues& sample);
  // Calls |fn| with the first |most| trials, until it returns false.
  Status each_trial(size_t most, const std::function<Result<bool>(const Trial&)>& fn);
  // The largest error of any output with |hints|, over the first |trials| trials.
  Result<double> error_of(const Hints& hints, size_t trials);
  // Gives as many of |products| the level as the error allows, and returns the others.
  Result<std::vector<Product>> spend(const Level& level, std::vector<Product> products,
                                     Hints& hints);
  Result<std::unique_ptr<CompiledGraph>> compile(const Hints* hints) const;
  Status run(CompiledGraph& graph, const std::vector<ValuePtr>& inputs,
             std::vector<ValuePtr>& outputs) const;

  const Context context_;
  std::shared_ptr<const Graph> graph_;
  std::unique_ptr<CompiledGraph> reference_;
  std::vector<OutputTraits> traits_;
  std::vector<Trial> trials_;
  bool of_source_ = false;  // the source's samples are the trials
};

}  // namespace pfrt

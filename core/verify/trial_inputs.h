// SPDX-License-Identifier: Apache-2.0
//
// Generates inputs to try a graph with: every dimension that is not fixed gets several sizes, 1 and
// odd ones among them, and equal names get equal sizes; values are drawn from a seed, in several
// ranges. The same arguments give the same values, everywhere. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "core/ir/graph.h"

namespace pfrt {

class TrialInputs {
 public:
  // Generates values for |inputs| of |graph|, which must outlive this.
  TrialInputs(const Graph& graph, std::vector<ValueId> inputs)
      : graph_(graph), inputs_(std::move(inputs)) {}

  // Whether variants differ in their shapes.
  bool dynamic() const;
  // |variant| selects sizes and ranges, and |draw| the values in them. UNSUPPORTED for an input of
  // a kind that is not generated; INVALID_ARGUMENT for one that would be too large.
  Result<std::vector<ValuePtr>> make(uint32_t variant, uint32_t draw) const;

 private:
  const Graph& graph_;
  const std::vector<ValueId> inputs_;
};

// Whether a trial that fails with |code| ends the whole search.
inline bool ends_all(Code code) { return code == Code::kCANCELLED || code == Code::kOUT_OF_MEMORY; }

// Describes inputs, such as "x float32[2,3], n int64[]".
std::string describe_inputs(const Graph& graph, const std::vector<ValueId>& inputs,
                            const std::vector<ValuePtr>& values);

}  // namespace pfrt

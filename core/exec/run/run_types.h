// SPDX-License-Identifier: Apache-2.0
//
// What goes into a run of a graph and what comes out of it, whoever runs it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/exec/run/control.h"
#include "core/ir/graph.h"
#include "core/memory/tensor.h"

namespace pfrt {

// What a session's runs have done so far.
struct RunStatistics {
  std::atomic<uint64_t> runs{0}, failures{0};
  std::atomic<uint64_t> plans{0}, planning_ns{0};  // a segment's plan for dimensions is one
  std::atomic<uint64_t> in_parts{0};               // of the runs that succeeded
};

// One row of explain.
struct StepReport {
  std::string nodes, ops, provider, kernel, reason, refused, tuning;
  uint64_t bytes = 0, flops = 0;
  double estimated_ns = 0, measured_ns = 0;
  uint64_t started_ns = 0;  // on the system's monotonic clock; 0 = not measured
  uint32_t lane = 0;
};

// A figure that a device counted in the last run of |row_count| steps, from row |first_row| on.
struct CounterReport {
  size_t first_row = 0, row_count = 0;
  std::string provider, name, unit;
  double value = 0;
};

// What explain has of a plan.
struct PlanReport {
  std::vector<StepReport> steps;
  std::vector<CounterReport> counters;
  std::vector<std::string> faults;  // why counters are missing, a sentence each
};

// Host memory of what runs a graph.
struct MemoryUse {
  uint64_t packed = 0, in_use = 0, idle = 0, peak = 0;
  std::unordered_set<const Buffer*> counted;                 // of packed
  std::vector<std::pair<std::string, uint64_t>> signatures;  // and bytes of their blocks
};

// Where an output shall go: |data| null = wherever the run puts it, which must be host memory
// unless |on_device|. |buffer| is what |data| belongs to when it is memory of a device. |at_most|:
// |buffer| has room for |bytes| bytes, and a value of fewer may lie there.
struct OutputRequest {
  bool wanted = true;
  bool on_device = false;
  bool at_most = false;
  bool in_place = false;  // |data| is an input's, which the run may overwrite
  void* data = nullptr;
  uint64_t bytes = 0;
  std::shared_ptr<Buffer> buffer;

  Device* device() const { return buffer ? buffer->device().get() : nullptr; }
};

// A graph made ready to run. run is thread-safe.
class RunnableGraph {
 public:
  virtual ~RunnableGraph() = default;
  virtual const Graph& graph() const = 0;
  // The graph's inputs without a constant, then the captures' inner values.
  virtual const std::vector<ValueId>& inputs() const = 0;
  // How many values the list of inputs that run gets had better have room for.
  virtual size_t values_at_once() const { return inputs().size(); }
  // |inputs| in inputs() order, types checked by the caller; what only they hold may be changed in
  // place. |outputs| in the graph's order; where a request gave memory the value is over that
  // memory.
  virtual Status run(std::vector<ValuePtr> inputs, const std::vector<OutputRequest>& requests,
                     const RunControl& control, std::vector<ValuePtr>& outputs) = 0;
};

}  // namespace pfrt

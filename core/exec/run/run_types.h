// SPDX-License-Identifier: Apache-2.0
//
// Arguments and results of runs of a graph, and reports about them.
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

// Counts of a session's runs so far.
struct RunStatistics {
  std::atomic<uint64_t> runs{0}, failures{0};
  std::atomic<uint64_t> plans{0}, planning_ns{0};  // a plan is one segment's, for one signature
  std::atomic<uint64_t> in_parts{0};               // among the runs that succeeded
};

// A row of explain.
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

// Results of explain for a plan.
struct PlanReport {
  std::vector<StepReport> steps;
  std::vector<CounterReport> counters;
  std::vector<std::string> faults;  // why counters are missing, a sentence each
};

// Memory that a compiled graph uses: the host's, and blocks of runs on devices.
struct MemoryUse {
  uint64_t packed = 0, in_use = 0, idle = 0, peak = 0;
  uint64_t device_in_use = 0, device_idle = 0;
  std::unordered_set<const Buffer*> counted;                 // buffers counted in |packed|
  std::vector<std::pair<std::string, uint64_t>> signatures;  // with the bytes of their blocks
};

// The place of an output. |data| null: the run chooses it, in host memory unless |on_device|.
// |buffer| owns |data| when that is memory of a device. |at_most|: |data| has room for |bytes|
// bytes, a value of fewer may lie there, and one that does not suit lies elsewhere.
struct OutputRequest {
  bool wanted = true;
  bool given = false;  // the result goes to |data|, which is null where it is to have no bytes
  bool on_device = false;
  bool at_most = false;
  bool in_place = false;                // |data| is an input's, which the run may overwrite
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;  // elements that |data| was given for; unset = any
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
  // Number of values that the list of inputs given to run should have room for.
  virtual size_t values_at_once() const { return inputs().size(); }
  // |inputs| are in inputs() order, with types checked by the caller; values that only they hold
  // may be changed in place. |outputs| are in the graph's order; where a request gave memory, the
  // value uses it.
  virtual Status run(std::vector<ValuePtr> inputs, const std::vector<OutputRequest>& requests,
                     const RunControl& control, std::vector<ValuePtr>& outputs) = 0;
};

}  // namespace pfrt

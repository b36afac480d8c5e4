// SPDX-License-Identifier: Apache-2.0
//
// A canonical graph made ready to run: partitioned, compiled by its providers, with its bodies
// compiled likewise. A run walks segments; the dimensions of everything in a segment follow from
// what entered it, so each segment is specialised, and its buffers placed in one block, once for
// each input signature. run is thread-safe.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/os/progress.h"
#include "core/exec/control.h"
#include "core/exec/packed.h"
#include "core/ir/graph.h"
#include "core/op/engine/inference.h"
#include "core/plan/partition.h"

namespace pfrt {

// The arithmetic of a node's float32 products, a hint of plugin.h, and why, for people.
struct NodePrecision {
  pfrt_compile_hints hint = 0;
  std::string note;
};

struct CompileContext {
  std::vector<Candidate> candidates;
  PackedStore* packed = nullptr;
  Logger* logger = nullptr;
  bool fallback = true;                // a node refused while compiling goes to the next provider
  const Provider** culprit = nullptr;  // set when compiling fails in a provider's call; not null
  const Progress* progress = nullptr;  // may stop it; null = nobody does
  bool concurrent_steps = false;       // independent steps of a run at once
  bool run_once = false;               // not worth generating code or packing constants
  bool tune = false;                   // but for what is run once
  pfrt_compile_hints precision = 0;    // the hint of session option "precision"
  // The same for each node of the graph, by its id; null = one for all. Bodies have the one.
  const std::vector<NodePrecision>* node_precision = nullptr;
};

// One row of explain.
struct StepReport {
  std::string nodes, ops, provider, kernel, reason, refused;
  uint64_t bytes = 0, flops = 0;
  double estimated_ns = 0, measured_ns = 0;
  uint64_t started_ns = 0;  // on the system's monotonic clock; 0 = not measured
  uint32_t lane = 0;
};

// Where an output shall go: |data| null = wherever the run puts it, which must be host memory
// unless |on_device|. |buffer| is what |data| belongs to when it is memory of a device.
struct OutputRequest {
  bool wanted = true;
  bool on_device = false;
  void* data = nullptr;
  uint64_t bytes = 0;
  std::shared_ptr<Buffer> buffer;

  Device* device() const { return buffer ? buffer->device().get() : nullptr; }
};

class SegmentPlan;
struct Segment;

class CompiledGraph {
 public:
  // |graph| is canonical and not edited afterwards.
  static Result<std::unique_ptr<CompiledGraph>> create(std::shared_ptr<const Graph> graph,
                                                       const CompileContext& context);
  ~CompiledGraph();
  CompiledGraph(const CompiledGraph&) = delete;
  CompiledGraph& operator=(const CompiledGraph&) = delete;

  // The graph's inputs without a constant, then the captures' inner values.
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const Graph& graph() const { return *graph_; }

  // |inputs| in inputs() order, types checked by the caller; what only they hold may be changed in
  // place. |outputs| in the graph's order; where
  // a request gave memory the value is over that memory.
  Status run(std::vector<ValuePtr> inputs, const std::vector<OutputRequest>& requests,
             const RunControl& control, std::vector<ValuePtr>& outputs);

  // Drops the plans of all signatures with their idle memory; runs under way keep theirs.
  void release_memory();

  // Steps of the plans used last; plans those segments that can be planned from the graph alone.
  std::vector<StepReport> explain();

 private:
  CompiledGraph() = default;
  Status compile(const CompileContext& context);
  Status compile_bodies(const CompileContext& context);
  void number_slots();
  void note_last_reads();
  Result<std::shared_ptr<SegmentPlan>> plan_for(Segment& segment,
                                                const std::vector<ValuePtr>& slots,
                                                const RunControl& control);
  Result<std::shared_ptr<SegmentPlan>> make_plan(Segment& segment, InferState state,
                                                 const std::vector<Device*>& resident,
                                                 const Provider** culprit);
  Status run_host(const Segment& segment, std::vector<ValuePtr>& slots, const RunControl& control);
  // The node's inputs, in host memory where its operator reads them.
  Result<std::vector<ValuePtr>> inputs_of(const Node& node, const std::vector<ValuePtr>& slots,
                                          const RunControl& control) const;
  // A node with bodies.
  Status run_control_flow(const Node& node, const std::vector<ValuePtr>& node_inputs,
                          const std::vector<ValuePtr>& slots, const RunControl& control,
                          std::vector<ValuePtr>& node_outputs);

  std::shared_ptr<const Graph> graph_;
  std::vector<NodeId> order_;
  std::vector<ValueId> inputs_;
  std::unique_ptr<Snapshot> snapshot_;
  Partition partition_;
  bool concurrent_steps_ = false;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<uint32_t> slot_of_;  // by value id; kNoId = lives inside one segment
  uint32_t slot_count_ = 0;
  InferState base_state_;
  std::unordered_map<const Graph*, std::unique_ptr<CompiledGraph>> bodies_;
};

}  // namespace pfrt

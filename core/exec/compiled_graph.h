// SPDX-License-Identifier: Apache-2.0
//
// A canonical graph made ready to run: partitioned and compiled by its providers, with its bodies
// compiled too. A run walks segments. The dimensions of everything in a segment follow from its
// inputs, so each segment is specialised, and its buffers placed in one block, once for each input
// signature. run is thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/os/progress.h"
#include "core/exec/packed.h"
#include "core/exec/run/run_types.h"
#include "core/ir/graph.h"
#include "core/op/engine/inference.h"
#include "core/plan/stages.h"

namespace pfrt {

// Arithmetic of a node's float32 products, a hint of plugin.h, with the reason for messages.
struct NodePrecision {
  pfrt_compile_hints hint = 0;
  std::string note;
};

// Packed constants by the provider's name for them and by their contents.
using PackedBuffers = std::map<std::string, std::shared_ptr<Buffer>>;
struct PackedConstants {
  PackedBuffers buffers;
  std::set<const void*> sources;  // identities of the source buffers
};

// Services for compiling: providers, a store of packed constants to share, a log, and a progress
// that may stop it. |packed| and |logger| outlive the compiled graph.
struct CompileServices {
  std::vector<Candidate> candidates;
  PackedStore* packed = nullptr;
  Logger* logger = nullptr;  // may be null
  Progress progress;
  bool tells = false;                                   // |progress| hears how far compiling is
  std::shared_ptr<RunStatistics> statistics = nullptr;  // counts plans; may be null
  const PackedBuffers* stored = nullptr;                // constants packed earlier; may be null
  PackedConstants* made = nullptr;  // gets all packed constants that the graph uses; may be null
  Tuning* tuning = nullptr;         // for graphs that run often; outlives them; null: none
};

// Rules for the memory and time of runs.
struct RunRules {
  bool concurrent_steps = false;  // independent steps of a run go on at once
  bool reuse = true;              // values that are not alive at once may lie in the same place
  bool keep_blocks = true;        // a run's blocks are kept for the next run
};

// Precisions of nodes by their ids, of a graph and of bodies in it.
using GraphPrecisions = std::unordered_map<const Graph*, std::vector<NodePrecision>>;

struct CompileOptions {
  bool fallback = true;  // a node refused while compiling goes to the next provider
  RunRules rules = {};
  bool run_once = false;  // the graph is not worth generating code or packing constants
  bool apart = false;     // each node gets a step of its own
  AssignBy assign = AssignBy::kCost;
  pfrt_compile_hints precision = 0;  // the hint of session option "precision"
  // The hint of each node of the graph, by its id; null = |precision| for all.
  const std::vector<NodePrecision>* node_precision = nullptr;
  // The hints of the bodies' nodes, by body; a body that is not there, or null, has |precision|.
  const GraphPrecisions* body_precision = nullptr;
};

class PlanRange;
enum class SignaturePart : uint8_t;
class SegmentPlan;
class Staging;
struct RunDimensions;
struct Segment;
struct StageExecutable;
struct Variation;

class CompiledGraph : public RunnableGraph {
 public:
  // |graph| is canonical and not edited afterwards. A provider whose call fails is named as the
  // culprit.
  static Result<std::unique_ptr<CompiledGraph>> create(std::shared_ptr<const Graph> graph,
                                                       const CompileServices& services,
                                                       const CompileOptions& options = {});
  ~CompiledGraph() override;
  CompiledGraph(const CompiledGraph&) = delete;
  CompiledGraph& operator=(const CompiledGraph&) = delete;

  const std::vector<ValueId>& inputs() const override { return inputs_; }
  const Graph& graph() const override { return *graph_; }
  size_t values_at_once() const override { return slot_count_; }
  Status run(std::vector<ValuePtr> inputs, const std::vector<OutputRequest>& requests,
             const RunControl& control, std::vector<ValuePtr>& outputs) override;

  // Drops the plans of all signatures with their idle memory; runs under way keep theirs.
  void release_memory();

  // Frees idle blocks that were given back before |given_ns|; returns their bytes.
  uint64_t trim(uint64_t given_ns = UINT64_MAX);
  // Adds this graph's memory to |out|.
  void add_memory(MemoryUse& out) const;
  // Whether a run is at work in a block of its memory.
  bool at_work() const;

  // Adds to |out| the steps of the plans used last, after planning the segments that can be planned
  // from the graph alone.
  void explain(PlanReport& out);

 private:
  CompiledGraph() = default;
  class Compilation;
  // Makes a graph that is not compiled yet, without its bodies.
  static Result<std::unique_ptr<CompiledGraph>> make(std::shared_ptr<const Graph> graph,
                                                     const CompileServices& services);
  // |where| tells this graph from the others compiled with it.
  Status pack_constants(StageExecutable& stage, std::string_view where,
                        const CompileServices& services, Staging& staging) const;
  void number_slots();
  void note_last_reads();
  // Slots that wanted outputs are made from, and those outputs; empty when all are wanted.
  std::vector<bool> wanted_slots(const std::vector<OutputRequest>& requests) const;
  bool makes_wanted(const Segment& segment, const std::vector<bool>& wanted) const;
  // A plan, and the dimensions that a run gives it.
  struct RunPlan {
    std::shared_ptr<SegmentPlan> plan;
    std::shared_ptr<const RunDimensions> dimensions;  // null: nothing varies
  };
  Result<RunPlan> plan_for(Segment& segment, const std::vector<ValuePtr>& slots,
                           const RunControl& control);
  std::string signature_text(const Segment& segment, const std::vector<int64_t>& key) const;
  struct Reading;
  // A plan that was not made for exactly these dimensions.
  Result<RunPlan> plan_of_others(Segment& segment, const Reading& reading) const;
  // A plan of a range that holds the dimensions read; null where there is none.
  Result<RunPlan> plan_in_range(Segment& segment, const Reading& reading) const;
  // Adds a range where the dimensions read have grown from those planned last.
  Status add_range(Segment& segment, const Reading& reading) const;
  // Null where no range is possible, or it takes too much memory.
  Result<std::shared_ptr<PlanRange>> make_range(const Segment& segment, const Reading& reading,
                                                const Variation& variation) const;
  std::vector<SignaturePart> parts_of(const Segment& segment, const Reading& reading) const;
  void grow(const Segment& segment, const Variation& variation,
            const std::function<Dim(const Dim&)>& change, InferState& state) const;
  InferState entered(const Segment& segment, const Reading& reading) const;
  // Sets dimensions in |state|, and contents that decide some, to those that the segment is about
  // to read.
  void enter(const Segment& segment, const std::vector<ValuePtr>& slots, InferState& state) const;
  // |least| has the least dimensions of values that vary, or is null. |control| may stop the
  // planning; null: nothing does.
  Result<std::shared_ptr<SegmentPlan>> make_plan(const Segment& segment, InferState state,
                                                 const std::vector<Device*>& resident,
                                                 const RunDimensions* least,
                                                 const RunControl* control) const;
  Status run_host(Segment& segment, std::vector<ValuePtr>& slots, const RunControl& control);
  // The name of the host's operator in the run's profile.
  uint32_t profile_name(Segment& segment, const RunControl& control) const;
  // The node's inputs, in host memory where its operator reads them.
  Result<std::vector<ValuePtr>> inputs_of(const Node& node, const std::vector<ValuePtr>& slots,
                                          const RunControl& control) const;
  // Runs a node with bodies.
  Status run_control_flow(const Node& node, const std::vector<ValuePtr>& node_inputs,
                          const std::vector<ValuePtr>& slots, const RunControl& control,
                          std::vector<ValuePtr>& node_outputs);

  std::shared_ptr<const Graph> graph_;
  std::vector<NodeId> order_;
  std::vector<ValueId> inputs_;
  std::unique_ptr<Snapshot> snapshot_;
  Partition partition_;
  RunRules rules_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<uint32_t> slot_of_;  // by value id; kNoId = lives inside one segment
  uint32_t slot_count_ = 0;
  std::vector<uint32_t> output_in_, next_output_;  // OutputTargets
  std::shared_ptr<RunStatistics> statistics_;      // may be null
  InferState base_state_;
  std::unordered_map<const Graph*, std::unique_ptr<CompiledGraph>> bodies_;
};

}  // namespace pfrt

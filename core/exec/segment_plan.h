// SPDX-License-Identifier: Apache-2.0
//
// A plan of a segment for one input signature: its stages' programs, every buffer's place, and the
// loop that runs the steps. Immutable once built, except for measured times; execute is
// thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/exec/block_pool.h"
#include "core/exec/host/host_ops.h"
#include "core/exec/host/prepared.h"
#include "core/exec/run/run_types.h"
#include "core/op/engine/inference.h"
#include "core/plan/levels.h"
#include "core/plan/stages.h"

namespace pfrt {

class PlanTable;
struct BlockItem;
class MemoryPlanner;
struct RunRules;

struct StageExecutable {
  const Stage* stage = nullptr;
  std::shared_ptr<Executable> executable;
  std::vector<std::shared_ptr<Buffer>> constants;  // packed
};

struct Segment {
  bool host = false;
  uint32_t host_node = 0;                 // snapshot index
  const host::HostOp* host_op = nullptr;  // of that node; null where it has bodies instead
  host::Prepared prepared;                // by that operator
  std::vector<StageExecutable> stages;
  std::vector<NodeId> order;
  std::vector<ValueId> live_in;    // values with a slot that it reads
  std::vector<bool> contents_key;  // by live_in: the contents decide dimensions
  std::vector<bool> last_here;     // by live_in: nothing after the segment reads it
  std::vector<ValueId> live_out;   // values with a slot that it writes
  // Slots that nothing reads after an operator of the host, which may therefore change a value in
  // place if nobody else holds it.
  std::vector<uint32_t> last_read;

  std::shared_ptr<PlanTable> plans;
  // Index of the host operator's name in the session's profile, + 1; 0 = none yet.
  std::atomic<uint32_t> profiled{0};
  mutable std::mutex mutex;  // guards |blocks|
  // Memory of runs: the host's first, then that of each device which plans have used.
  mutable std::vector<std::shared_ptr<BlockPool>> blocks{std::make_shared<BlockPool>()};

  // Blocks in the memory of |device|; null = the host.
  std::shared_ptr<BlockPool> blocks_in(const std::shared_ptr<Device>& device) const;
};

// The caller's memory for a graph's outputs, by slot.
struct OutputTargets {
  const std::vector<OutputRequest>& requests;
  const std::vector<uint32_t>& first;  // by slot: an output that is in it, or kNoId
  const std::vector<uint32_t>& next;   // by output: another that is in the same slot, or kNoId

  // The request with the caller's memory for |slot|; null where there is none.
  const OutputRequest* of(uint32_t slot) const {
    uint32_t at = slot < first.size() && !requests.empty() ? first[slot] : kNoId;
    while (at != kNoId && !requests[at].data) at = next[at];
    return at == kNoId ? nullptr : &requests[at];
  }
};

// Dimensions of a run that its plan does not know: those of each value that varies in the plan.
struct RunDimensions {
  std::vector<Dims> dims;
  std::vector<const int64_t*> by_value;  // into |dims|; null where the value does not vary
};

// buffer_at and step_at read a program's arrays, whose strides the program gives.
inline const pfrt_buffer& buffer_at(const pfrt_program& p, uint32_t i) {
  return *reinterpret_cast<const pfrt_buffer*>(reinterpret_cast<const char*>(p.buffers) +
                                               size_t{p.buffer_size} * i);
}

inline const pfrt_step& step_at(const pfrt_program& p, uint32_t i) {
  return *reinterpret_cast<const pfrt_step*>(reinterpret_cast<const char*>(p.steps) +
                                             size_t{p.step_size} * i);
}

// Dimensions of a type in which all are known.
inline Dims dims_of(const Type& type) {
  Dims dims;
  for (const Dim& d : type.shape) dims.push_back(d.value());
  return dims;
}

class SegmentPlan {
 public:
  // |state| holds the type of every value of the segment, |resident| by slot the device that a
  // value to be read lives on (empty: all are on the host). Independent steps run at once only
  // where all is on the host. |least| has the least dimensions of values that vary, of which
  // |state| has the largest; null: none vary. |control| may stop the build; null: nothing does.
  static Result<std::shared_ptr<SegmentPlan>> build(
      const Graph& graph, const Snapshot& snapshot, const Segment& segment,
      const std::vector<uint32_t>& slot_of, InferState state, const std::vector<Device*>& resident,
      const RunRules& rules, const RunDimensions* least, const RunControl* control);
  ~SegmentPlan();
  SegmentPlan(const SegmentPlan&) = delete;
  SegmentPlan& operator=(const SegmentPlan&) = delete;

  // Reads and writes |slots|. |targets| has memory that the caller wants values in. |wanted| marks
  // the slots that are read afterwards, and steps that none of these needs are not run; null = all.
  // |dimensions| has those of the values that vary; null: none vary.
  Status execute(std::vector<ValuePtr>& slots, const OutputTargets& targets,
                 const RunControl& control, const std::vector<bool>* wanted,
                 const RunDimensions* dimensions);
  // Bytes of the block of host memory that its steps work in.
  uint64_t block_bytes() const { return block_bytes_; }
  void report(const Graph& graph, const Snapshot& snapshot, const Partition& partition,
              PlanReport& out) const;
  // Describes its steps to |profile| before they are first recorded.
  void describe_to(Profile& profile, const Graph& graph, const Snapshot& snapshot,
                   const Partition& partition) noexcept;

 private:
  enum class Place : uint8_t { kUnused, kLiveIn, kConstant, kBlock, kOutput, kAllocated };
  static constexpr uint32_t kAlignment = 64;  // of all memory
  // A buffer of a program. Programs' buffers stand one after another.
  struct Entry {
    Place place = Place::kUnused;
    uint32_t space = 0;     // the memory it is in: an index into spaces_
    size_t source = kNone;  // the entry whose memory it shares
    uint32_t slot = kNoId;  // kLiveIn, kOutput, kAllocated
    const void* constant = nullptr;
    uint64_t within = 0;  // bytes from the start of the memory it shares with |source|
    uint64_t offset = 0;  // kBlock
    uint64_t bytes = 0;
    uint32_t alignment = kAlignment;  // kBlock
    ValueId value = kNoId;            // kOutput, kAllocated
  };
  static constexpr size_t kNone = SIZE_MAX;
  // A copy made before a program's first step, of a value that is not in the memory where the
  // program wants it.
  struct DeviceTransfer {
    size_t from;  // entry, or kNone: the value in |slot|
    uint32_t slot;
    size_t to;  // entry
    ValueId value;
    pfrt_dtype dtype;
    size_t rank;
  };
  // A memory that blocks are planned in: the host's, then that of each device used.
  struct Space {
    std::shared_ptr<Device> device = nullptr;  // null = host
    std::string_view name = "host";            // of its provider
    uint64_t bytes = 0;                        // of a block
    uint32_t alignment = kAlignment;           // of a block
    std::shared_ptr<BlockPool> blocks = nullptr;
  };
  struct Program {
    const StageExecutable* stage = nullptr;
    ProgramTable program;
    bool made = false;
    Provider* told = nullptr;  // steps learn which run they serve; null: no need
    size_t first_entry = 0;
    size_t first_step = 0;
    std::vector<DeviceTransfer> transfers;
  };
  struct StepRef {
    const pfrt_step* step;
    uint32_t program;
    NodeId node;  // first node that it computes, for errors; kNoId when it names none
  };
  struct OutputValue {
    ValueId value;
    uint32_t slot;
    pfrt_dtype dtype;
    Dims dims;       // empty for unknown ones
    uint64_t bytes;  // where they are known
    bool known;
    uint32_t space;
    uint32_t replaces = kNoId;  // slot of an input whose memory it may take
  };
  // The part of a plan that a run does when not all outputs are wanted.
  struct Needs {
    std::vector<bool> steps;    // by step
    std::vector<bool> entries;  // by entry: something reads it
    std::vector<bool> outputs;  // by output: a step that runs reads or writes it
  };
  struct Frame;
  struct Call;

  SegmentPlan() = default;
  Needs needs_of(const std::vector<bool>& wanted) const;
  Status make_outputs(std::vector<ValuePtr>& slots, const OutputTargets& targets,
                      const Frame& frame) const;
  static bool replaces(const OutputValue& output, const OutputRequest& target,
                       const std::vector<ValuePtr>& slots);
  // |output| with its dimensions in a run, in place of the largest ones.
  static OutputValue in_run(const OutputValue& output, const RunDimensions& dimensions);
  // The parts that a plan's programs are made of.
  struct Source {
    const Graph& graph;
    const Snapshot& snapshot;
    const pfrt_shapes& shapes;
    const InferState& state;
    const std::vector<uint32_t>& slot_of;
    const std::vector<Device*>& resident;
    const RunDimensions* least;  // may be null
    const RunControl* control;   // may be null
    Stop stop() const { return control ? control->stopper() : Stop(); }
  };
  // Constants on their way to a device.
  using Uploads = std::vector<std::pair<Provider::HostBytes, std::shared_ptr<Buffer>>>;
  Status add_program(const Source& source, const StageExecutable& stage);
  // |source|'s shapes in the form that the stage's provider gets.
  static Result<pfrt_shapes> shapes_for(const Source& source, const StageExecutable& stage);
  Result<Entry> make_entry(const Source& source, const StageExecutable& stage,
                           const pfrt_buffer& buffer, Transfers& transfers, Uploads& fresh);
  Status place_output(const Source& source, const StageExecutable& stage, const pfrt_buffer& buffer,
                      Entry& entry);
  Status place_constant(const Source& source, const StageExecutable& stage,
                        const pfrt_buffer& buffer, Transfers& transfers, Uploads& fresh,
                        Entry& entry);
  Status add_steps(const Source& source, const std::string& who);
  Status place_sub_buffers(const StageExecutable& stage, const InferState& state);
  std::vector<bool> have_sub_buffers(const std::vector<size_t>& root) const;
  std::vector<StepUse> claims(const std::vector<size_t>& root) const;
  uint32_t space_of(Provider& provider);
  Status place_input(const Source& source, const StageExecutable& stage, const pfrt_buffer& buffer,
                     Entry& entry);
  Result<const void*> upload(Provider& provider, const void* host, uint64_t bytes, const Stop& stop,
                             Transfers& transfers, Uploads& fresh);
  std::vector<std::string_view> entry_names(const std::vector<size_t>& root) const;
  Result<uint64_t> ask_planner(MemoryPlanner& planner, std::string_view memory,
                               const std::vector<size_t>& root, const std::vector<size_t>& owner,
                               std::vector<BlockItem>& items) const;
  struct Liveness;
  Liveness liveness(const std::vector<size_t>& root, const std::vector<uint32_t>& time);
  void share_in_place(std::vector<size_t>& root, Liveness& live) const;
  Status place_buffers(const Segment& segment, const std::vector<uint32_t>& slot_of,
                       bool concurrent, bool reuse);
  // Finds outputs that may take the memory of an input that nothing reads any more when they are
  // written.
  void find_replacements(const Segment& segment, const std::vector<uint32_t>& slot_of,
                         const std::vector<uint32_t>& time);
  bool dies_before_written(uint32_t slot, size_t input, size_t output,
                           const std::vector<uint32_t>& time) const;
  std::vector<StepReport> rows(const Graph& graph, const Snapshot& snapshot,
                               const Partition& partition) const;
  // Reports counters of the programs' last runs; |first_row| is the row of the first step.
  void report_counters(size_t first_row, PlanReport& out) const;
  uint32_t profile_name(uint32_t step) const {
    const uint32_t first = profiled_.load(std::memory_order_relaxed);
    return first ? first - 1 + step : Profile::kDropped;
  }
  Status run_level(Frame& frame, const std::vector<uint32_t>& steps);
  // |clock_ns| has the end time of the step before, and gets that of this one; may be null.
  Status run_step(Frame& frame, uint32_t at, uint32_t workers, uint32_t lane, char* scratch,
                  uint64_t* clock_ns);
  // A run's blocks, by space; none where the space needs none, or is the host. They go back to
  // their pools with this.
  struct DeviceBlocks {
    explicit DeviceBlocks(const SegmentPlan& plan) : plan_(plan) {}
    ~DeviceBlocks();
    DeviceBlocks(const DeviceBlocks&) = delete;
    DeviceBlocks& operator=(const DeviceBlocks&) = delete;
    // Blocks that are taken are kept for other runs only once the run has succeeded.
    Status take(const RunControl& control);
    void keep() { keep_ = plan_.keep_blocks_; }
    // Null where the plan uses no memory of the device.
    char* base_of(uint32_t space) const {
      return taken_[space] ? static_cast<char*>(taken_[space]->buffer->data()) : nullptr;
    }

   private:
    const SegmentPlan& plan_;
    std::vector<std::unique_ptr<BlockPool::Block>> taken_;
    bool keep_ = false;
  };
  // Start of the buffers in a block of host memory.
  char* base_of(const BlockPool::Block& block) const;
  // Bytes of a block, with room for its alignment.
  uint64_t block_room() const { return block_bytes_ + (spaces_[0].alignment - kAlignment); }
  // Brings |block|'s pointers, by entry, up to date for a run.
  void point(BlockPool::Block& block, const DeviceBlocks& device_blocks,
             const std::vector<ValuePtr>& slots) const;
  Status run_device_transfers(const Program& program, const Frame& frame) const;

  // The error for a block of |bytes| that could not be allocated.
  Status fail_block(uint64_t bytes, Status status) const;
  // Puts the name and type of output |o| in front of |status|.
  Status fail_output(const OutputValue& o, Status status) const;

  const Graph* graph_ = nullptr;  // outlives this
  std::vector<Program> programs_;
  std::vector<Entry> entries_;
  std::vector<size_t> moving_;  // entries whose memory differs from run to run
  uint64_t number_ = 0;         // no other plan has it
  std::vector<StepRef> steps_;
  std::vector<std::vector<uint32_t>> levels_;  // steps that run at once, level after level
  struct Measured {                            // of a step's last profiled run
    std::atomic<uint64_t> started_ns, took_ns;
    std::atomic<uint32_t> lane;

    void set(uint64_t started, uint64_t took, uint32_t on_lane) {
      started_ns.store(started, std::memory_order_relaxed);
      took_ns.store(took, std::memory_order_relaxed);
      lane.store(on_lane, std::memory_order_relaxed);
    }
  };
  std::vector<Measured> measured_;
  // Index of the first step's name in the session's profile, + 1; 0 = none yet.
  std::atomic<uint32_t> profiled_{0};
  // Entries that produce the values passed between stages.
  std::unordered_map<ValueId, size_t> inner_;
  Result<Tensor> allocate_in(uint32_t space, pfrt_dtype dtype, Dims dims,
                             const RunControl& control) const;
  std::vector<OutputValue> outputs_;
  struct Mirror {  // a value's copy in another space
    ValueId value;
    uint32_t space;
    size_t entry;
  };
  std::vector<Mirror> mirrors_;
  std::vector<Space> spaces_ = std::vector<Space>(1);
  std::vector<std::shared_ptr<Buffer>> uploaded_;  // constants on devices
  uint64_t block_bytes_ = 0, scratch_bytes_ = 0;   // on the host
  bool keep_blocks_ = true;
};

}  // namespace pfrt

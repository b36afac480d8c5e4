// SPDX-License-Identifier: Apache-2.0
//
// A segment at one input signature: its stages' programs, every buffer's place, and the loop that
// runs the steps. Immutable once built but for measured times and the pool of idle blocks; execute
// is thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "core/exec/compiled.h"

namespace pfrt {

struct StageExecutable {
  const Stage* stage = nullptr;
  std::shared_ptr<Executable> executable;
  std::vector<std::shared_ptr<Buffer>> constants;  // packed
};

struct Segment {
  bool host = false;
  uint32_t host_node = 0;  // snapshot index
  std::vector<StageExecutable> stages;
  std::vector<NodeId> order;
  std::vector<ValueId> live_in;    // values with a slot that it reads
  std::vector<bool> contents_key;  // of live_in: the contents decide dimensions
  std::vector<ValueId> live_out;   // values with a slot that it writes

  std::mutex mutex;
  std::list<std::pair<std::vector<int64_t>, std::shared_ptr<SegmentPlan>>>
      plans;  // most recently used first
};

class SegmentPlan {
 public:
  // |state| holds the type of every value of the segment. |culprit| is set when a provider's call
  // fails.
  static Result<std::shared_ptr<SegmentPlan>> build(const Graph& graph, const Snapshot& snapshot,
                                                    Segment& segment,
                                                    const std::vector<uint32_t>& slot_of,
                                                    InferState state, const Provider** culprit);
  ~SegmentPlan();
  SegmentPlan(const SegmentPlan&) = delete;
  SegmentPlan& operator=(const SegmentPlan&) = delete;

  // Reads and writes |slots|. |targets| has, by slot, memory that the caller wants the value in.
  Status execute(std::vector<ValuePtr>& slots, const std::vector<OutputRequest>& targets,
                 const RunControl& control);
  void report(const Graph& graph, const Snapshot& snapshot, const Partition& partition,
              std::vector<StepReport>& rows) const;

 private:
  enum class Place : uint8_t { kUnused, kLiveIn, kConstant, kBlock, kOutput, kAllocated };
  // One buffer of one program; programs' buffers stand one after another.
  struct Entry {
    Place place = Place::kUnused;
    uint32_t slot = kNoId;  // kLiveIn, kOutput, kAllocated
    const void* constant = nullptr;
    uint64_t offset = 0;  // kBlock
    uint64_t bytes = 0;
    ValueId value = kNoId;  // kOutput, kAllocated
  };
  struct Program {
    StageExecutable* stage = nullptr;
    pfrt_program program{};
    bool made = false;
    size_t first_entry = 0;
  };
  struct StepRef {
    const pfrt_step* step;
    uint32_t program;
  };
  struct Frame;

  SegmentPlan() = default;
  Status add_program(const Graph& graph, const Snapshot& snapshot, StageExecutable& stage,
                     const pfrt_shapes& shapes, const InferState& state,
                     const std::vector<uint32_t>& slot_of);
  Status place_buffers();
  Result<std::shared_ptr<Buffer>> take_block(uint32_t workers);
  void give_block(std::shared_ptr<Buffer> block);

  std::vector<Program> programs_;
  std::vector<Entry> entries_;
  std::vector<StepRef> steps_;
  std::vector<std::atomic<uint64_t>> measured_ns_;
  std::vector<std::pair<ValueId, size_t>>
      inner_;  // values passed between stages: where they are produced
  struct OutputValue {
    ValueId value;
    uint32_t slot;
    pfrt_dtype dtype;
    Dims dims;  // empty for unknown ones
    bool known;
  };
  std::vector<OutputValue> outputs_;
  uint64_t block_bytes_ = 0, scratch_bytes_ = 0;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Buffer>> idle_;
};

}  // namespace pfrt

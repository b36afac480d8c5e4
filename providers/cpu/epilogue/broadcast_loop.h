// SPDX-License-Identifier: Apache-2.0
//
// A generated loop at one signature: where its operands lie is known. It runs over ranges of
// elements, as a step of its own or as the epilogue of another kernel. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "providers/cpu/epilogue/byte_table.h"
#include "providers/cpu/jit/elementwise_loop.h"
#include "providers/cpu/kernel/float_range.h"
#include "providers/cpu/loop/broadcast_index.h"
#include "providers/cpu/loop/loop_plan.h"

namespace pfrt::cpu {

class BroadcastLoop {
 public:
  // An image in nChw16c that the loop runs over: the elements of a block of 16 channels, and for
  // each input slot of one element a channel the number of such blocks; 0 for the other slots.
  struct Image {
    int64_t block = 0;
    std::vector<int64_t> blocks;
  };
  // Makes the loop of |plan|: |operands| are by input slot, |elements| are those of each output.
  // nullopt where one element serves too few neighbours, or too many operands would have to be
  // copied. With |image|, operands that are not by channel are whole or have one element.
  static std::optional<BroadcastLoop> make(const LoopPlan& plan, LoopCode code,
                                           std::span<const BroadcastIndex> operands,
                                           int64_t elements, const Image* image = nullptr);

  // Elements [begin, end); |bases| holds the tensors' first elements by slot. An output may be an
  // input's memory as in ElementwiseLoop::run, where that input is whole.
  void run(const void* const* bases, int64_t begin, int64_t end) const;

  uint32_t inputs() const { return inputs_; }
  uint32_t outputs() const { return outputs_; }
  std::string_view name() const { return code_.loop->name(); }
  int64_t elements() const { return elements_; }
  double flops() const { return flops_; }

 private:
  // An input of fewer elements.
  struct Operand {
    uint32_t slot;
    BroadcastIndex index;
  };
  // An input of one element a channel, of an image in nChw16c.
  struct ByChannel {
    uint32_t slot;
    int64_t blocks;
  };
  BroadcastLoop() = default;
  void run_by_channel(const void* const* bases, int64_t begin, int64_t end) const;
  void run_copied(const void* const* bases, int64_t begin, int64_t end) const;
  // Makes a table if the loop makes bytes of bytes by so many operations that looking them up takes
  // less time.
  void make_table(double operations);
  // |copies| hold the elements of |copied|, from |begin| on.
  template <typename Copied>
  void run_pieces(const void* const* bases, int64_t begin, int64_t end, const Copied& copied,
                  std::span<const void* const> copies) const;
  const void* element(const void* base, uint32_t slot, int64_t index) const {
    return static_cast<const char*>(base) + index * sizes_[slot];
  }

  LoopCode code_;
  uint32_t inputs_ = 0, outputs_ = 0;
  std::vector<int64_t> sizes_;    // of an element, by slot
  std::vector<uint32_t> whole_;   // slots whose elements are those of the whole, outputs too
  std::vector<Operand> in_runs_;  // read where they lie, run by run
  std::vector<Operand> copied_;   // block by block
  std::vector<ByChannel> by_channel_;
  int64_t block_ = 0;  // elements of 16 channels, where operands are by channel
  int64_t elements_ = 0;
  double flops_ = 0;
  std::shared_ptr<const ByteTable> table_;  // the loop's results by byte; null: no table
};

// The loop that Run::apply_epilogue computes; its slots are buffers of the program. The slot of the
// head's output and that of the loop's are the same buffer where elements have the same size.
class Epilogue {
 public:
  Epilogue(BroadcastLoop loop, std::vector<uint32_t> buffers)
      : loop_(std::move(loop)), buffers_(std::move(buffers)) {}

  // |of| finds the range of what the loop puts out, which is float32, for |buffer|, a FloatRange.
  void give_range(RangeFn of, uint32_t buffer) { range_of_ = of, range_ = buffer; }

  void start(void* const* buffers) const;  // before the first element of a run
  void run(void* const* buffers, int64_t begin, int64_t end) const;
  const BroadcastLoop& loop() const { return loop_; }
  const std::vector<uint32_t>& buffers() const { return buffers_; }

 private:
  BroadcastLoop loop_;
  std::vector<uint32_t> buffers_;  // by slot
  RangeFn range_of_ = nullptr;     // null: the range is not asked for
  uint32_t range_ = 0;             // buffer
};

}  // namespace pfrt::cpu

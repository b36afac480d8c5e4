// SPDX-License-Identifier: Apache-2.0
//
// A plan for signatures that differ in one number, as those of a decoder whose state grows by a
// token a run. Its programs are made for a range of that number. Dimensions that vary are formulas
// of it, where inference with a symbol in its place gives some, and are inferred anew from each
// run's signature elsewhere: a range holds what the model says at that length and nothing else.
// Thread-safe.
#pragma once

#include <functional>
#include <optional>

#include "core/base/made_once.h"
#include "core/exec/dim_formulas.h"
#include "core/exec/segment_plan.h"

namespace pfrt {

// The meaning of a number in a signature.
enum class SignaturePart : uint8_t {
  kDimension,  // of a value whose contents decide no dimensions
  kDevice,     // the device that a value lives on
  kOther
};

// The numbers in which signatures differ, all by one amount.
struct Variation {
  std::vector<uint32_t> at;  // positions
  int64_t from = 0;          // the number at the first of them

  // The growth from |before| to |now|, regardless of the devices that values live on; nullopt when
  // they differ otherwise, or not at all. |parts| is by position of |now|.
  static std::optional<Variation> between(std::span<const int64_t> before,
                                          std::span<const int64_t> now,
                                          const std::vector<SignaturePart>& parts);
};

class PlanRange {
 public:
  // Gives a state the types and contents of what a run is about to read.
  using Enter = std::function<void(InferState&)>;

  // Types and contents of values while the number goes from its least to its most.
  struct Bounds {
    InferState least, now, most;  // inferred
  };
  // Types with the symbol |number| for the number; inferred.
  struct Symbolic {
    Dim number;
    InferState state;
  };
  // Null where some dimension does not grow with the number. |key| is the signature of
  // |bounds.now|.
  static std::shared_ptr<PlanRange> make(const Graph& graph, const std::vector<NodeId>& order,
                                         std::span<const int64_t> key, Variation variation,
                                         int64_t least, int64_t most, const Bounds& bounds);
  // Takes formulas from |symbolic|, if they say what inference has said at the range's bounds.
  void set_formulas(const Symbolic& symbolic, const Bounds& bounds);

  // The least dimensions of values that vary, for SegmentPlan::build.
  const RunDimensions& least() const { return least_; }
  // The state at the range's far end, until there is a plan.
  const InferState& most() const { return most_; }
  void set_plan(std::shared_ptr<SegmentPlan> plan) {
    plan_ = std::move(plan);
    most_ = {};
  }
  const std::shared_ptr<SegmentPlan>& plan() const { return plan_; }

  // Whether |key| differs from the range's in nothing but its number, and that is in range.
  bool holds(std::span<const int64_t> key) const;
  // The dimensions at |key|, which the range holds. UNSUPPORTED where the model's dimensions there
  // exceed the plan's room; other errors are the model's.
  Result<std::shared_ptr<const RunDimensions>> dimensions(std::span<const int64_t> key,
                                                          const Enter& enter, const Stop& stop);

 private:
  // An output of a node that depends on the number.
  struct Seen {
    ValueId value;
    bool varies, contents_vary;
    Type most;  // at the far end or, where nothing varies, in all runs
    std::optional<Shape> contents;
  };
  PlanRange(const Graph& graph, std::span<const int64_t> key, Variation variation, int64_t least,
            int64_t most)
      : graph_(graph),
        key_(key.begin(), key.end()),
        variation_(std::move(variation)),
        least_number_(least),
        most_number_(most) {}
  bool see(const std::vector<NodeId>& order, const Bounds& bounds);
  bool see_value(ValueId value, const Bounds& bounds, RunDimensions& least);
  Result<std::shared_ptr<const RunDimensions>> infer_at(const Enter& enter);
  // Null where no formulas tell.
  std::shared_ptr<const RunDimensions> by_formulas(int64_t number) const;

  const Graph& graph_;  // outlives this
  const std::vector<int64_t> key_;
  const Variation variation_;
  const int64_t least_number_, most_number_;
  std::vector<NodeId> nodes_;  // nodes that depend on the number
  std::vector<Seen> seen_;     // by value: their inputs, then their outputs
  RunDimensions least_;
  InferState most_;
  std::optional<DimFormulas> formulas_;  // of the values that vary, in the order of |seen_|
  std::shared_ptr<SegmentPlan> plan_;
  std::mutex mutex_;  // guards |state_|
  InferState state_;
  MadeOnce<int64_t, std::shared_ptr<const RunDimensions>> numbers_{32};
};

}  // namespace pfrt

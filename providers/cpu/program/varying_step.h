// SPDX-License-Identifier: Apache-2.0
//
// A step whose dimensions vary from run to run: the steps of a fusion group, made for the
// dimensions of a run and kept for others of the same. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/made_once.h"
#include "core/base/status.h"
#include "providers/cpu/program/step.h"

namespace pfrt::cpu {

// A copy of the shapes that a program was made with.
class KeptShapes {
 public:
  explicit KeptShapes(const pfrt_shapes& shapes);
  // The kept shapes, but dims[v] are the dimensions of each value v of |values|; |pointers| holds
  // the result's.
  pfrt_shapes with(std::span<const uint32_t> values, const int64_t* const* dims,
                   std::vector<const int64_t*>& pointers) const;
  size_t rank(uint32_t value) const { return dims_[value].size(); }

 private:
  std::vector<int32_t> ranks_;
  std::vector<std::vector<int64_t>> dims_;
  std::vector<const int64_t*> pointers_;
};

// The group's steps at some dimensions.
struct MadeSteps {
  std::deque<Step> steps;
  // A buffer of the steps: one of the program, or PFRT_NO_INDEX and an offset in memory that only
  // these steps use.
  struct Place {
    uint32_t buffer = PFRT_NO_INDEX;
    uint64_t offset = 0;
  };
  std::vector<Place> places;
  uint64_t own_bytes = 0, scratch_bytes = 0;
};

class VaryingStep {
 public:
  using Make = std::function<Result<std::shared_ptr<const MadeSteps>>(const pfrt_shapes&)>;
  // The dimensions of |values| vary.
  VaryingStep(std::shared_ptr<const KeptShapes> shapes, std::vector<uint32_t> values, Make make)
      : shapes_(std::move(shapes)), values_(std::move(values)), make_(std::move(make)) {}

  // Memory that the made steps may use: a buffer of the program, and the program's scratch. Runs
  // that need more take it elsewhere.
  void set_memory(uint32_t own, uint64_t own_bytes, uint64_t scratch_bytes) {
    own_ = own;
    own_bytes_ = own_bytes;
    scratch_bytes_ = scratch_bytes;
  }
  Result<std::shared_ptr<const MadeSteps>> make(const pfrt_shapes& shapes) const {
    return make_(shapes);
  }
  pfrt_code run(const pfrt_step_context& context);

 private:
  Result<std::shared_ptr<const MadeSteps>> steps_for(const int64_t* const* dims);
  std::shared_ptr<const KeptShapes> shapes_;
  std::vector<uint32_t> values_;
  Make make_;
  uint32_t own_ = PFRT_NO_INDEX;
  uint64_t own_bytes_ = 0, scratch_bytes_ = 0;
  MadeOnce<std::vector<int64_t>, std::shared_ptr<const MadeSteps>> made_{16};  // by dimensions
};

}  // namespace pfrt::cpu

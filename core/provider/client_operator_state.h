// SPDX-License-Identifier: Apache-2.0
//
// What a registered operator prepared for one node of a plan (custom.h, create_state). Movable;
// released with the object, after the runs that use it.
#pragma once

#include <string>
#include <utility>

#include "core/provider/client_operator.h"

namespace pfrt {

class OperatorState {
 public:
  // Makes the state of |node|, an index into |snapshot|, whose constants outlive it. |label| names
  // the node in errors; |sink| says whether to stop.
  static Result<OperatorState> create(const ClientOperator& op, const pfrt_snapshot& snapshot,
                                      uint32_t node, const std::string& label,
                                      const pfrt_sink& sink);
  explicit OperatorState(const ClientOperator& op, void* state = nullptr)
      : op_(&op), state_(state) {}
  OperatorState(OperatorState&& other) noexcept
      : op_(other.op_), state_(std::exchange(other.state_, nullptr)) {}
  OperatorState& operator=(OperatorState&&) = delete;
  ~OperatorState() { op_->release_state(state_); }

  const ClientOperator& op() const { return *op_; }
  void* get() const { return state_; }  // null where the operator has none

 private:
  const ClientOperator* op_;
  void* state_;
};

}  // namespace pfrt

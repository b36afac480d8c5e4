// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/spread_loop.h"

#include <algorithm>
#include <array>

#include "providers/cpu/kernels/in_float32.h"
#include "providers/cpu/row_norm.h"

namespace pfrt::cpu {

SpreadLoop::SpreadLoop(const LoopPlan& plan, UnitCode code, std::vector<Spread> operands,
                       int64_t elements)
    : code_(std::move(code)),
      operands_(std::move(operands)),
      outputs_(static_cast<uint32_t>(plan.outputs.size())),
      elements_(elements) {
  double operations = 0;
  for (const Operation& op : plan.expression.operations()) operations += operand_count(op.prim) > 0;
  flops_ = operations * static_cast<double>(elements);
}

void SpreadLoop::run(const void* const* bases, int64_t begin, int64_t end) const {
  std::array<const void*, LoopPlan::kMostPointers> at;
  for (int64_t from = begin; from < end;) {
    int64_t to = end;
    for (uint32_t i = 0; i < inputs(); ++i) {
      const Spread& operand = operands_[i];
      int64_t index = from;
      if (operand.each && !operand.whole) {
        index = from % operand.period;
        to = std::min(to, from + operand.period - index);
      } else if (!operand.each) {
        const int64_t piece = from / operand.inner;
        index = piece % operand.period;
        to = std::min(to, (piece + 1) * operand.inner);
      }
      at[i] = static_cast<const float*>(bases[i]) + index;
    }
    for (uint32_t i = inputs(); i < inputs() + outputs(); ++i)
      at[i] = static_cast<const float*>(bases[i]) + from;
    code_.loop->run(at.data(), code_.constants->data(), 0, to - from);
    from = to;
  }
}

void Tail::run(void* const* buffers, int64_t begin, int64_t end) const {
  std::array<const void*, LoopPlan::kMostPointers> bases;
  for (size_t i = 0; i < buffers_.size(); ++i) bases[i] = buffers[buffers_[i]];
  loop_.run(bases.data(), begin, end);
}

void Run::run_tail(int64_t begin, int64_t end) const {
  if (widened_ != nullptr && widened_->narrow != nullptr)
    widened_->narrow(static_cast<const float*>(widened_->output) + begin,
                     static_cast<uint16_t*>(context_->buffers[outputs_[0]]) + begin, end - begin);
  if (extras_.tail != nullptr) extras_.tail->run(context_->buffers, begin, end);
  if (extras_.norm != nullptr) extras_.norm->finished(context_->buffers, begin, end);
}

}  // namespace pfrt::cpu

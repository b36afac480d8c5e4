// SPDX-License-Identifier: Apache-2.0
//
// An operator whose functions are C callbacks (custom.h), and the provider that runs such
// operators: each node becomes a step of its own, so that it takes part in plans like any other.
// Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "core/op/engine/operator_set.h"
#include "core/provider/provider.h"
#include "pyflame_rt/custom.h"

namespace pfrt {

class ClientOperator final : public CustomOperator {
 public:
  // |op| may be smaller than this header's struct. |keep| is held as long as the operator; its last
  // reference releases what |op| points to.
  static Result<std::shared_ptr<const ClientOperator>> create(const pfrt_custom_op& op,
                                                              std::string origin,
                                                              std::shared_ptr<void> keep);
  ClientOperator(const pfrt_custom_op& op, std::string origin, OperatorDef row, OperatorTypes types,
                 std::shared_ptr<void> keep);

  Status infer(Inference& inference) const override;
  bool has_states() const { return op_.create_state != nullptr; }
  // OK or a code of the ABI's table, never CANCELLED or DEADLINE unless |context| says stop. An
  // exception of the callback becomes PROVIDER.
  pfrt_code create_state(const pfrt_op_create& context, void** out_state) const;
  void release_state(void* state) const noexcept;
  // The same for the compute callback.
  pfrt_code compute(const pfrt_op_compute& context) const;

 private:
  const std::shared_ptr<void> keep_;
  const pfrt_custom_op op_;
  mutable std::recursive_timed_mutex
      serial_;  // a step may run a session that uses the operator again
};

// Default of session option "image.max_pixels".
inline constexpr uint64_t kDefaultMaxPixels = uint64_t{1} << 26;

// Adds the provider of |set|'s operators, which refuses everything else, to |candidates|; none
// where |set| is null. Operators that decode images make no larger ones than |max_pixels|.
Status add_client_operators(const std::shared_ptr<const OperatorSet>& set, Logger* logger,
                            std::vector<Candidate>& candidates,
                            uint64_t max_pixels = kDefaultMaxPixels);

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// A run cut into parts of fewer rows of its batch, where the graph is known to compute each row by
// itself (batch_rows.h). Outputs are allocated as a whole, and each part writes its rows of them.
// One thread at a time.
#pragma once

#include <functional>
#include <vector>

#include "core/base/status.h"
#include "core/batch/batch_rows.h"
#include "core/exec/run/run_types.h"
#include "core/ir/graph.h"

namespace pfrt {

class BatchParts {
 public:
  // |where| has the place among |inputs| of each input of the graph. The error says what is in the
  // way; it is NOT_FOUND where no input has a batch.
  static Result<BatchParts> of(const Graph& graph, const std::vector<size_t>& where,
                               const std::vector<ValuePtr>& inputs,
                               const std::vector<OutputRequest>& requests);

  int64_t batch() const { return batch_; }
  // Allocates the outputs for which the caller has given no memory.
  Status allocate();

  // Runs one part, of inputs and requests that are placed as those of the whole.
  using RunPart = std::function<Status(const std::vector<ValuePtr>& inputs,
                                       const std::vector<OutputRequest>& requests,
                                       std::vector<ValuePtr>& outputs)>;
  // Runs half the rows at a time, and half of that wherever memory does not suffice; |most| gets
  // the number that was left. |inputs| and |outputs| are how many ports the session has.
  Status run(const RunPart& run_part, size_t inputs, size_t outputs, int64_t& most) const;
  std::vector<ValuePtr> outputs(size_t ports) const;

 private:
  // A value by rows of the batch.
  struct Rows {
    size_t at = 0;  // its place among the session's inputs or outputs
    BatchRows::Port port = BatchRows::Port::kSame;
    Tensor whole;
    uint64_t row_bytes = 0;  // of a row of the batch
    int64_t per_row = 0;     // its own rows for each row of the batch

    // False where rows do not begin at bytes of their own.
    bool measure(int64_t batch);
    Tensor part(int64_t first, int64_t count) const;
  };

  std::vector<ValuePtr> inputs(size_t ports, int64_t first, int64_t count) const;
  std::vector<OutputRequest> requests(size_t ports, int64_t first, int64_t count) const;
  // Copies what a part has made, where it does not lie where it was asked for.
  Status take(const std::vector<ValuePtr>& made, int64_t first, int64_t count) const;
  Status take_inputs(const BatchRows& known, const std::vector<size_t>& where,
                     const std::vector<ValuePtr>& inputs);
  Status take_outputs(const Graph& graph, const BatchRows& known,
                      const std::vector<OutputRequest>& requests);

  int64_t batch_ = 0;
  std::vector<Rows> inputs_, outputs_;
};

}  // namespace pfrt

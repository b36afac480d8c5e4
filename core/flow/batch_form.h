// SPDX-License-Identifier: Apache-2.0
//
// Tells how requests to a session share a run: which of its inputs and outputs have rows of a
// batch, which requests fit together, how their rows become one input, and which rows of an output
// are whose. Immutable once made, and thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/batch/batch_rows.h"
#include "core/flow/request.h"
#include "core/session/session.h"

namespace pfrt {

class BatchForm {
 public:
  static BatchForm of(const Session& session);

  // Why no two requests share a run; empty where they may.
  const std::string& unshared() const { return unshared_; }

  // The place of a request among the others.
  struct Place {
    int64_t rows = 1;
    std::string shape;  // requests fit together that have the same; empty: with no other
  };
  Place place(const std::vector<ValuePtr>& inputs) const;

  // The inputs of a run of |requests|, which fit together and have |rows| in all. Copies of the
  // last row fill |padded| rows; what they give is nobody's. One request without padding is not
  // copied.
  Result<std::vector<ValuePtr>> join(std::span<const Request* const> requests, int64_t rows,
                                     int64_t padded) const;
  // Rows |first| to |first| + |count| of output |index|, which a run of |padded| rows has made.
  Result<ValuePtr> part(size_t index, const ValuePtr& whole, int64_t first, int64_t count,
                        int64_t padded) const;

 private:
  std::vector<BatchRows::Port> inputs_, outputs_;  // by the session's
  std::string unshared_;
};

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// Finds whether a graph computes each row of a batch by itself, so that runs of some of the rows
// give the same as one run of all. It is proved operator by operator, on symbolic shapes; operators
// that are not known to keep rows apart count as mixing them. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/ir/graph.h"

namespace pfrt {

struct BatchRows {
  enum class Port : uint8_t {
    kMixed,  // not known to be either
    kSame,   // the same for all rows
    kRows,   // rows are along its first dimension, equally many for each row of the batch
  };
  std::vector<Port> inputs;           // of the graph's inputs without a constant
  std::vector<Port> outputs;          // of the graph's outputs
  std::vector<std::string> mixed_by;  // by output: why it is mixed
};

// |graph| is canonical, with types of its inputs. NOT_FOUND where every input has a number as first
// dimension.
Result<BatchRows> batch_rows(const Graph& graph);

// The first node of |graph| whose arithmetic certainly mixes rows of the batch, and how; empty
// where none is known. Quantizing by the range of a whole tensor counts wherever the tensor comes
// from an input of more than one row, in bodies too.
Result<std::string> mixes_rows(const Graph& graph);

}  // namespace pfrt

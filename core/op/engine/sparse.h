// SPDX-License-Identifier: Apache-2.0
//
// Makes sparse constants the dense tensors that operators take.
#pragma once

#include "core/ir/graph.h"

namespace pfrt {

// All elements of a SPARSE value. The caller has checked that there are not too many.
Result<Tensor> dense_of(const Value& sparse);

// Makes sparse initializers of |graph| that nodes, or bodies of nodes, use dense; its outputs stay
// as they are. |bytes| counts the dense bytes of all graphs of a model: UNSUPPORTED beyond 256 MiB,
// or 64 times the size of the constant in the file where that is more.
Status make_initializers_dense(Graph& graph, uint64_t& bytes);

}  // namespace pfrt

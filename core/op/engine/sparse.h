// SPDX-License-Identifier: Apache-2.0
//
// Sparse constants as the dense tensors that operators take.
#pragma once

#include "core/ir/graph.h"

namespace pfrt {

// All elements of a SPARSE value. The caller has checked that there are not too many.
Result<Tensor> dense_of(const Value& sparse);

// Sparse initializers of |graph| that nodes, or bodies of nodes, use become dense; its outputs stay
// as they are. |bytes| counts what all graphs of a model have made: UNSUPPORTED beyond 256 MiB, or
// 64 times what the file has of the constant where that is more.
Status make_initializers_dense(Graph& graph, uint64_t& bytes);

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// The order of nodes in a file: producers first, as the standard asks. Pure; thread-safe.
#pragma once

#include "pfrt_onnx.pb.h"

namespace pfrt::onnx {

// Sorts the nodes of |graph|, not those of bodies, and leaves them where they are when they are in
// order already. A value that a body uses counts as used by the body's node. A cycle leaves its
// nodes and all that depend on them at the end.
void sort_nodes(::pfrt_onnx_wire::GraphProto* graph);

}  // namespace pfrt::onnx

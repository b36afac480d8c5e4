// SPDX-License-Identifier: Apache-2.0
//
// Warnings about the Resize nodes of a graph. Pure; thread-safe.
#pragma once

#include <string>

#include "core/ir/graph.h"

namespace pfrt {

// A sentence on the nodes of canonical |graph| and its bodies that align corners by scales under
// which a length is not a whole number: PyTorch and ONNX Runtime compute something else there.
// Empty where there are none.
std::string fractional_lengths(const Graph& graph);

}  // namespace pfrt

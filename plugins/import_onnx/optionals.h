// SPDX-License-Identifier: Apache-2.0
//
// Whether optionals hold tensors or sequences of them, which the graph API does not say and nodes
// tell: what makes them, what is taken out of them, and what passes them on. Pure; thread-safe.
#pragma once

#include "pfrt_onnx.pb.h"

namespace pfrt::onnx {

// Corrects the declared types of optionals of |graph| and its bodies: an optional that holds a
// sequence becomes one of a sequence. If no node tells, the type stays one of a tensor.
void declare_optional_sequences(::pfrt_onnx_wire::GraphProto* graph);

}  // namespace pfrt::onnx

// SPDX-License-Identifier: Apache-2.0
//
// Denotations of types and dimensions ("IMAGE", "DATA_BATCH"), which mean nothing to the runtime.
// They are kept as metadata of the graph, so that every copy of the model has them: the key
// "onnx.denotation.<value>", and as value that of the type and then of each dimension, with commas
// between. Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "pfrt_onnx.pb.h"

namespace pfrt::onnx {

namespace wire = ::pfrt_onnx_wire;

inline constexpr std::string_view kDenotationKey = "onnx.denotation.";

// The value of the metadata; empty where the type has no denotation.
std::string denotations_of(const wire::TypeProto& type);
// Puts the denotations of |text| into |out|; those of dimensions only where the rank is as it was.
void write_denotations(std::string_view text, wire::TypeProto* out);

}  // namespace pfrt::onnx

// SPDX-License-Identifier: Apache-2.0
//
// Whether bytes look like an ONNX model. Pure; thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::onnx {

// 0 = certainly not, up to 95: protobuf has no magic number. |size| may be less than the whole
// file's.
uint32_t probe(const void* data, uint64_t size);

}  // namespace pfrt::onnx

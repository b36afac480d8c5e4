// SPDX-License-Identifier: Apache-2.0
//
// Writes the graph of an export request as an ONNX model. Tensor data goes from the graph's own
// memory to the file around protobuf; when the whole would pass protobuf's limit of 2 GiB,
// initializers go into a second file named
// "<model file>.data". Belongs to the calling thread; nothing is kept.
#pragma once

#include "core/base/status.h"
#include "pyflame_rt/plugin.h"

namespace pfrt::onnx {

// UNSUPPORTED for what ONNX cannot say, CANCELLED when the request is stopped.
Status write_model(const pfrt_export_request& request, const pfrt_sink& sink);

}  // namespace pfrt::onnx

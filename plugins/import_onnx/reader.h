// SPDX-License-Identifier: Apache-2.0
//
// Reads an ONNX model into the graph of an import request: types, initializers, nodes with their
// bodies, metadata; calls of model-local functions are inlined. Belongs to the calling thread;
// nothing is kept.
#pragma once

#include "core/base/status.h"
#include "pyflame_rt/plugin.h"

namespace pfrt::onnx {

// INVALID_MODEL for what is not a well-formed model, UNSUPPORTED for what this version cannot
// express, CANCELLED when the request is stopped. On failure the graph is partly filled.
Status read_model(const pfrt_import_request& request, const pfrt_sink& sink);

}  // namespace pfrt::onnx

// SPDX-License-Identifier: Apache-2.0
//
// The operators of this plug-in, a source each.
#pragma once

#include "plugins/ops/onnx_op.h"

namespace pfrt::ops {

pfrt_custom_op regex_full_match();
pfrt_custom_op tokenizer();

}  // namespace pfrt::ops

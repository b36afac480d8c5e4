// SPDX-License-Identifier: Apache-2.0
//
// Where the runtime means something else than ONNX Runtime, with the reason.
#pragma once

#include <string>

#include "test/empty/table.h"

namespace pfrt_empty {

bool is_excepted(const NodeLine& node, const std::string& variant);

}  // namespace pfrt_empty

// SPDX-License-Identifier: Apache-2.0
//
// Cases in which the runtime deliberately differs from ONNX Runtime, each with the reason.
#pragma once

#include <string>

#include "test/empty/table.h"

namespace pfrt_empty {

bool is_excepted(const NodeLine& node, const std::string& variant);

}  // namespace pfrt_empty

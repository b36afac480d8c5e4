// SPDX-License-Identifier: Apache-2.0
//
// The make and refuse functions of the quantization family's table. Pure functions; thread-safe.
#pragma once

#include <string>

#include "providers/cpu/row/kernel.h"

namespace pfrt::cpu {

Result<Kernel> make_quantize(const SnapshotNode& node);
Result<Kernel> make_dequantize(const SnapshotNode& node);
Result<Kernel> make_dynamic_quantize(const SnapshotNode& node);
std::string refuse_quantize(const SnapshotNode& node);
std::string refuse_dequantize(const SnapshotNode& node);

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
//
// The make and refuse functions of the quantization family's table. Pure functions; thread-safe.
#pragma once

#include <string>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

Result<Kernel> make_quantize(const KernelRequest& node);
Result<Kernel> make_dequantize(const KernelRequest& node);
std::string refuse_dynamic_quantize(const KernelRequest& node);
Result<Kernel> make_dynamic_quantize(const KernelRequest& node);
std::string refuse_quantize(const KernelRequest& node);
std::string refuse_dequantize(const KernelRequest& node);

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pfrt::cpu {

// a / b rounded up, for b > 0.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

}  // namespace pfrt::cpu

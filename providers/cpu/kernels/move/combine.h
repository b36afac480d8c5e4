// SPDX-License-Identifier: Apache-2.0
//
// Combines a scattered update with the element that it falls on. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "pyflame_rt/types.h"

namespace pfrt::cpu {

enum class Reduction { kNone, kAdd, kMul, kMax, kMin };

// nullopt for an unknown name.
std::optional<Reduction> reduction_from_name(std::string_view name);

// to[i] = to[i] combined with from[i], of |n| elements. Integers wrap; NaN wins in max and min.
using CombineFn = void (*)(void* to, const void* from, int64_t n, Reduction reduction);
// nullptr for types without arithmetic. kNone is the caller's: it is a copy; complex types have no
// kMax and kMin.
CombineFn combine_fn(pfrt_dtype dtype);

}  // namespace pfrt::cpu

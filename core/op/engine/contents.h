// SPDX-License-Identifier: Apache-2.0
//
// Contents of small integer tensors as symbolic elements, which inference tracks: shapes, axes,
// pads. Pure; thread-safe.
#pragma once

#include <cstddef>
#include <optional>

#include "core/ir/graph.h"

namespace pfrt {

// Whether contents of tensors of |dtype| are tracked (Inference::data).
bool holds_data(pfrt_dtype dtype);
// Number of elements above which contents are not tracked.
inline constexpr size_t kMaxData = 1024;
// Contents of a constant in the form of Inference::data; nullopt for nullptr, too many, or other
// types.
std::optional<Shape> contents_of(const Tensor* constant);
// |element| as an element of |dtype|: wrapped like a cast; unknown where int64 cannot tell.
Dim narrow(pfrt_dtype dtype, Dim element);

}  // namespace pfrt

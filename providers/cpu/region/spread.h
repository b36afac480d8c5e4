// SPDX-License-Identifier: Apache-2.0
//
// How a broadcast operand lies in the tensor that it is broadcast to, where that is simple: its
// dimensions are neighbours there. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace pfrt::cpu {

using Dims = std::span<const int64_t>;

// Row-major layout does not see leading ones.
Dims without_leading_ones(Dims dims);

// Element i of the whole takes element (i / inner) % period of the operand. A product of symbolic
// dimensions is -1.
struct Spread {
  bool each;   // inner is 1 whatever the symbols are: neighbours of the whole are neighbours here
  bool whole;  // an element for every element
  int64_t inner, period;

  // Elements of the whole for which the operand's are neighbours or one; -1 when not known.
  int64_t piece() const { return each ? period : inner; }
};

// nullopt: |own| does not broadcast to |whole|, or not simply ([2, 1, 2] to [2, 2, 2]).
std::optional<Spread> spread(Dims own, Dims whole);

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
//
// The pattern in which a broadcast operand is repeated in the tensor that it is broadcast to, as
// far as symbolic dimensions tell. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pfrt::cpu {

using Dims = std::span<const int64_t>;

// Row-major layout does not see leading ones.
Dims without_leading_ones(Dims dims);
// Returns |dims| and so many dimensions of 1 behind them.
std::vector<int64_t> with_ones(Dims dims, uint32_t ones);

struct BroadcastPattern {
  bool each;   // neighbours of the whole are neighbours here, whatever the symbols are
  bool whole;  // an element for every element
  // Elements of the whole for which the operand's are neighbours, or one; -1 when not known.
  int64_t run;
};

// nullopt where |own| is not known to broadcast to |whole|.
std::optional<BroadcastPattern> broadcast_pattern(Dims own, Dims whole);

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
//
// Strings in operators that only move or compare elements (Gather, Concat, Pad, Equal, Unique,
// ...). No such operator has code for strings: each string is given a number, the operator runs on
// the numbers as on any int64, and the strings are fetched by the numbers that come out. The
// functions change only the Rewriter's graph; thread-safe on different graphs.
#pragma once

#include <string_view>

#include "core/op/engine/rewriter.h"

namespace pfrt {

// The host's operators around such a node, all of kStringDomain:
//   StringPositions(a, b, ...) -> for each input its elements' positions in all of them joined
//   StringCodes(a, b, ...)     -> for each input its elements' ranks among the distinct texts of
//                                 all, in byte order, "" always being 0; last these texts
//   StringTake(numbers, a, b, ...) -> the strings at these positions of a, b, ... joined
// Surrounds the Rewriter's node, still of its own opset, if it is such an operator and has strings.
Status number_strings(Rewriter& rewriter);

// Undoes number_strings in |graph|, but not in its bodies, so that standard operators move the
// strings. UNSUPPORTED where a number is used otherwise.
Status restore_strings(Graph& graph);

// Makes a Cast between strings and types that the host does not read and write go by float32 or
// int32, which have all of their values. The host reads and writes texts of numbers of 8 bits or
// more that are not float8.
Status widen_string_cast(Rewriter& rewriter);

}  // namespace pfrt

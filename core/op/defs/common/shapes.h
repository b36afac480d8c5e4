// SPDX-License-Identifier: Apache-2.0
//
// Checks on ranks and dimensions with one wording, defaults of single attributes, and counts for
// cost. Checks pass where something is unknown. The functions change only the Rewriter or Inference
// they are given.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/op/engine/inference.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {

// Number of elements of dimensions [begin, end); symbols and unknown ones count as one.
double elements(const Shape& shape, size_t begin = 0, size_t end = SIZE_MAX);
// The product of dimensions [begin, end), symbols first and numbers joined, so that equal volumes
// read alike.
Dim volume(SymbolTable& symbols, const Shape& shape, size_t begin = 0, size_t end = SIZE_MAX);
// The dimension of |out| at |hole| that Reshape of |in| finds from the others and the elements.
struct RestOfShape {
  Dim dim;
  bool open = false;    // any number fits, since another is 0
  bool uneven = false;  // no number fits
};
RestOfShape rest_of_shape(SymbolTable& symbols, const Shape& in, const Shape& out, size_t hole);
// No dimension list is longer. A longer one makes an unknown rank, and a run refuses it.
constexpr int64_t kHighestRank = 64;
// The number of elements of input |i|, a scalar or a list of axes or dimensions; nullopt when it is
// unknown or no valid rank.
std::optional<int64_t> list_length(const Inference& inference, size_t i);

Status expect_rank(const Inference& inference, size_t input, size_t rank);
Status expect_rank_at_least(const Inference& inference, size_t input, size_t rank);
// The better known of two dimensions, which must be equal.
Result<Dim> same_dim(const Inference& inference, Dim a, Dim b, std::string_view what);
// Fails when input |i| is present and its shape is known to differ from |expected|.
Status expect_shape(const Inference& inference, size_t i, const Shape& expected);

// Sets the attribute to |fallback| when it is absent; an attribute of another type is a fault.
Status fill_int(Rewriter& rewriter, std::string_view name, int64_t fallback);
Status fill_float(Rewriter& rewriter, std::string_view name, float fallback);
Status fill_string(Rewriter& rewriter, std::string_view name, std::string_view fallback);
Status fill_ints(Rewriter& rewriter, std::string_view name, const std::vector<int64_t>& fallback);

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
#include "core/op/defs/common/shapes.h"

#include <algorithm>

#include "core/op/defs/common/helpers.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {

double elements(const Shape& shape, size_t begin, size_t end) {
  double count = 1;
  for (size_t i = begin; i < std::min(end, shape.size()); ++i)
    if (shape[i].known()) count *= static_cast<double>(shape[i].value());
  return count;
}

Dim volume(SymbolTable& symbols, const Shape& shape, size_t begin, size_t end) {
  Dim names = 1, numbers = 1;
  for (size_t i = begin; i < std::min(end, shape.size()); ++i) {
    Dim& part = shape[i].known() ? numbers : names;
    part = symbols.mul(part, shape[i]);
  }
  return symbols.mul(names, numbers);
}

// Equal factors cancel before anything is multiplied: that keeps symbols short, and a copied batch
// of 0 does not hide the rest.
RestOfShape rest_of_shape(SymbolTable& symbols, const Shape& in, const Shape& out, size_t hole) {
  Shape above = in, below;
  for (size_t i = 0; i < out.size(); ++i) {
    if (i == hole) continue;
    const auto same = std::find(above.begin(), above.end(), out[i]);
    if (same != above.end()) {
      above.erase(same);
    } else {
      below.push_back(out[i]);
    }
  }
  RestOfShape rest;
  const Dim divisor = volume(symbols, below);
  rest.open = divisor.is(0);
  if (rest.open) return rest;
  // Numbers are divided separately if that is exact: "N*12" by 4 is "N*3".
  Shape names;
  Dim numbers = 1;
  for (const Dim& d : above) {
    if (d.known()) {
      numbers = symbols.mul(numbers, d);
    } else {
      names.push_back(d);
    }
  }
  const bool both = divisor.known() && numbers.known();
  rest.uneven = both && names.empty() && numbers.value() % divisor.value() != 0;
  if (rest.uneven) return rest;
  if (both && numbers.value() % divisor.value() == 0) {
    names.push_back(numbers.value() / divisor.value());
    rest.dim = volume(symbols, names);
  } else {
    rest.dim = symbols.floor_div(volume(symbols, above), divisor);
  }
  return rest;
}

std::optional<int64_t> list_length(const Inference& inference, size_t i) {
  if (!inference.has_shape(i)) return std::nullopt;
  if (inference.rank(i) == 0) return 1;
  if (inference.rank(i) != 1 || !inference.shape(i)[0].known()) return std::nullopt;
  const int64_t length = inference.shape(i)[0].value();
  return length >= 0 && length <= kHighestRank ? std::optional(length) : std::nullopt;
}

Status expect_rank(const Inference& inference, size_t input, size_t rank) {
  if (!inference.has_shape(input) || inference.rank(input) == rank) return {};
  return inference.fail("input ", input, " has shape ",
                        inference.symbols().text(inference.shape(input)), ", expected rank ", rank);
}

Status expect_rank_at_least(const Inference& inference, size_t input, size_t rank) {
  if (!inference.has_shape(input) || inference.rank(input) >= rank) return {};
  return inference.fail("input ", input, " has shape ",
                        inference.symbols().text(inference.shape(input)), ", expected rank ", rank,
                        " or more");
}

Result<Dim> same_dim(const Inference& inference, Dim a, Dim b, std::string_view what) {
  if (a.known() && b.known() && a.value() != b.value())
    return inference.fail(what, " must agree but are ", a.value(), " and ", b.value());
  if (a.known()) return a;
  if (b.known() || a.unknown()) return b;
  return a;
}

Status expect_shape(const Inference& inference, size_t i, const Shape& expected) {
  if (!inference.has_shape(i)) return {};
  const Shape& found = inference.shape(i);
  bool agrees = found.size() == expected.size();
  for (size_t d = 0; agrees && d < found.size(); ++d)
    agrees = !found[d].known() || !expected[d].known() || found[d] == expected[d];
  if (agrees) return {};
  return inference.fail("input ", i, " has shape ", inference.symbols().text(found), ", expected ",
                        inference.symbols().text(expected));
}

Status fill_int(Rewriter& rewriter, std::string_view name, int64_t fallback) {
  const AttrDefault one{rewriter.node().op, name, PFRT_ATTR_INT, static_cast<double>(fallback)};
  return fill_defaults(rewriter, {&one, 1});
}

Status fill_float(Rewriter& rewriter, std::string_view name, float fallback) {
  const AttrDefault one{rewriter.node().op, name, PFRT_ATTR_FLOAT, static_cast<double>(fallback)};
  return fill_defaults(rewriter, {&one, 1});
}

Status fill_string(Rewriter& rewriter, std::string_view name, std::string_view fallback) {
  const Attribute* attr = rewriter.node().attr(name);
  if (!attr)
    rewriter.node().set_attr(Attribute::of_string(std::string(name), std::string(fallback)));
  if (!attr || attr->type == PFRT_ATTR_STRING) return {};
  return rewriter.fail("attribute '", name, "' has type ", attr->type, ", expected a string");
}

Status fill_ints(Rewriter& rewriter, std::string_view name, const std::vector<int64_t>& fallback) {
  const Attribute* attr = rewriter.node().attr(name);
  if (!attr) rewriter.node().set_attr(Attribute::of_ints(std::string(name), fallback));
  if (!attr || attr->type == PFRT_ATTR_INTS) return {};
  return rewriter.fail("attribute '", name, "' has type ", attr->type,
                       ", expected a list of integers");
}

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
#include "core/exec/dim_formulas.h"

#include <algorithm>
#include <utility>

namespace pfrt {
namespace {

std::optional<int64_t> value_of(DimOp op, int64_t a, int64_t b) {
  int64_t out = 0;
  switch (op) {
    case DimOp::kAdd:
      return __builtin_add_overflow(a, b, &out) ? std::nullopt : std::optional(out);
    case DimOp::kSub:
      return __builtin_sub_overflow(a, b, &out) ? std::nullopt : std::optional(out);
    case DimOp::kMul:
      return __builtin_mul_overflow(a, b, &out) ? std::nullopt : std::optional(out);
    case DimOp::kDiv:
      return a < 0 || b <= 0 || a % b != 0 ? std::nullopt : std::optional(a / b);
    case DimOp::kMin:
      return std::min(a, b);
    case DimOp::kMax:
      return std::max(a, b);
    case DimOp::kBroadcast:
      return a == b || b == 1 ? std::optional(a) : a == 1 ? std::optional(b) : std::nullopt;
    case DimOp::kNone:
      break;
  }
  return std::nullopt;
}

}  // namespace

// |known| has the symbols that have a term.
std::optional<uint32_t> DimFormulas::add(const SymbolTable& symbols, Dim number, const Dim& dim,
                                         std::vector<std::pair<uint32_t, uint32_t>>& known) {
  if (dim.unknown()) return std::nullopt;
  if (dim == number) return 0;
  Term term;
  if (dim.known()) {
    term.constant = dim.value();
  } else {
    const auto at = std::ranges::find(known, dim.symbol(), &std::pair<uint32_t, uint32_t>::first);
    if (at != known.end()) return at->second;
    const DimExpression expression = symbols.expression(dim);
    if (expression.op == DimOp::kNone) return std::nullopt;
    const auto a = add(symbols, number, expression.a, known);
    const auto b = add(symbols, number, expression.b, known);
    if (!a || !b) return std::nullopt;
    term = {expression.op, 0, *a, *b};
  }
  const auto index = static_cast<uint32_t>(terms_.size());
  terms_.push_back(term);
  if (!dim.known()) known.emplace_back(dim.symbol(), index);
  return index;
}

std::optional<DimFormulas> DimFormulas::of(const SymbolTable& symbols, Dim number,
                                           const std::vector<Shape>& shapes) {
  DimFormulas out;
  std::vector<std::pair<uint32_t, uint32_t>> known;
  for (const Shape& shape : shapes)
    for (const Dim& dim : shape) {
      const auto term = out.add(symbols, number, dim, known);
      if (!term) return std::nullopt;
      out.dims_.push_back(*term);
    }
  return out;
}

std::optional<std::vector<int64_t>> DimFormulas::at(int64_t n) const {
  std::vector<int64_t> values(terms_.size());
  values[0] = n;
  for (size_t i = 1; i < terms_.size(); ++i) {
    const Term& term = terms_[i];
    if (term.op == DimOp::kNone) {
      values[i] = term.constant;
      continue;
    }
    const auto value = value_of(term.op, values[term.a], values[term.b]);
    if (!value) return std::nullopt;
    values[i] = *value;
  }
  std::vector<int64_t> out;
  out.reserve(dims_.size());
  for (const uint32_t term : dims_) out.push_back(values[term]);
  return out;
}

}  // namespace pfrt

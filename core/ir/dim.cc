// SPDX-License-Identifier: Apache-2.0
#include "core/ir/dim.h"

#include <algorithm>

#include "core/base/status.h"

namespace pfrt {
namespace {

constexpr std::string_view kNameless = "?";
constexpr char kQuote = '\'';

bool is_quoted(std::string_view text) {
  return text.size() > 2 && text.front() == kQuote && text.find(kQuote, 1) == text.size() - 1;
}

const char* sign_of(DimOp op) {
  switch (op) {
    case DimOp::kAdd:
      return "+";
    case DimOp::kSub:
      return "-";
    case DimOp::kMul:
      return "*";
    case DimOp::kDiv:
      return "/";
    case DimOp::kMin:
      return " min ";
    case DimOp::kMax:
      return " max ";
    case DimOp::kBroadcast:
      return "~";
    case DimOp::kNone:
      break;
  }
  return "";
}

int64_t floor_quotient(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

}  // namespace

Dim SymbolTable::symbol(std::string_view name) {
  if (name.empty() || name.starts_with(kNameless)) return {};
  const bool nameless = name.find(kNameless) != std::string_view::npos && !is_quoted(name);
  return intern({std::string(name), {}, nameless, true});
}

Dim SymbolTable::quoted(std::string_view name) {
  return intern({message("'", name, "'"), {}, false, true});
}

bool SymbolTable::settled(const Dim& dim) const {
  const std::string text = name(dim.symbol());
  return text.starts_with(kNameless) || is_quoted(text);
}

Dim SymbolTable::fresh() {
  std::lock_guard lock(mutex_);
  symbols_.push_back({message(kNameless, symbols_.size()), {}, true, true});
  return Dim::of_symbol(static_cast<uint32_t>(symbols_.size() - 1));
}

uint32_t SymbolTable::size() const {
  std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(symbols_.size());
}

bool SymbolTable::append(Symbol symbol) {
  std::lock_guard lock(mutex_);
  const bool named = !symbol.name.starts_with(kNameless);
  if (named && !ids_.try_emplace(symbol.name, static_cast<uint32_t>(symbols_.size())).second)
    return false;
  symbols_.push_back(std::move(symbol));
  return true;
}

Dim SymbolTable::intern(Symbol symbol) {
  std::lock_guard lock(mutex_);
  auto [it, is_new] = ids_.try_emplace(symbol.name, static_cast<uint32_t>(symbols_.size()));
  if (is_new) symbols_.push_back(std::move(symbol));
  return Dim::of_symbol(it->second);
}

SymbolTable::Symbol SymbolTable::at(uint32_t id) const {
  std::lock_guard lock(mutex_);
  return id < symbols_.size() ? symbols_[id] : symbols_.front();
}

std::string SymbolTable::given_name(const Dim& dim) const {
  if (!dim.symbolic()) return {};
  Symbol symbol = at(dim.symbol());
  if (symbol.nameless) return {};
  return is_quoted(symbol.name) ? symbol.name.substr(1, symbol.name.size() - 2)
                                : std::move(symbol.name);
}

std::string SymbolTable::name(uint32_t id) const { return at(id).name; }

DimExpression SymbolTable::expression(const Dim& dim) const {
  return dim.symbolic() ? at(dim.symbol()).expression : DimExpression();
}

bool SymbolTable::certainly_natural(const Dim& dim) const {
  return dim.known() ? dim.value() >= 0 : dim.symbolic() && at(dim.symbol()).natural;
}

std::string SymbolTable::text(const Dim& dim) const {
  return dim.known() ? std::to_string(dim.value()) : name(dim.symbol());
}

std::string SymbolTable::text(const Shape& shape) const {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? "," : "") + text(shape[i]);
  return out + "]";
}

// The symbol of the expression, with operands in the order of their texts where they may be
// exchanged.
Dim SymbolTable::make(DimOp op, Dim a, Dim b) {
  if (a.unknown() || b.unknown()) return {};
  std::string left = text(a), right = text(b);
  if (op != DimOp::kSub && op != DimOp::kDiv && right < left) {
    std::swap(left, right);
    std::swap(a, b);
  }
  // Nested expressions stop growing at a length that no reader would follow.
  if (left.size() + right.size() > 120) return {};
  const auto nameless = [&](const Dim& dim) { return dim.symbolic() && at(dim.symbol()).nameless; };
  return intern({message("(", left, sign_of(op), right, ")"),
                 {op, a, b},
                 nameless(a) || nameless(b),
                 op != DimOp::kSub && certainly_natural(a) && certainly_natural(b)});
}

Dim SymbolTable::add(Dim a, Dim b) {
  int64_t out;
  if (a.known() && b.known())
    return __builtin_add_overflow(a.value(), b.value(), &out) ? Dim() : Dim(out);
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  return make(DimOp::kAdd, a, b);
}

Dim SymbolTable::sub(Dim a, Dim b) {
  int64_t out;
  if (a.known() && b.known())
    return __builtin_sub_overflow(a.value(), b.value(), &out) ? Dim() : Dim(out);
  if (b.is(0)) return a;
  if (a == b) return 0;
  return make(DimOp::kSub, a, b);
}

Dim SymbolTable::mul(Dim a, Dim b) {
  int64_t out;
  if (a.known() && b.known())
    return __builtin_mul_overflow(a.value(), b.value(), &out) ? Dim() : Dim(out);
  if (a.is(0) || b.is(0)) return 0;
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  return make(DimOp::kMul, a, b);
}

Dim SymbolTable::floor_div(Dim a, Dim b) {
  if (b.is(0)) return {};
  if (b.is(1)) return a;
  if (a.known() && b.known()) {
    if (a.value() == INT64_MIN && b.value() == -1) return {};
    return floor_quotient(a.value(), b.value());
  }
  if (a == b) return 1;
  return make(DimOp::kDiv, a, b);
}

Dim SymbolTable::ceil_div(Dim a, Dim b) { return floor_div(add(a, sub(b, 1)), b); }

Dim SymbolTable::min(Dim a, Dim b) {
  if (a.known() && b.known()) return std::min(a.value(), b.value());
  return a == b ? a : make(DimOp::kMin, a, b);
}

Dim SymbolTable::max(Dim a, Dim b) {
  if (a.known() && b.known()) return std::max(a.value(), b.value());
  return a == b ? a : make(DimOp::kMax, a, b);
}

Dim SymbolTable::broadcast(Dim a, Dim b) { return make(DimOp::kBroadcast, a, b); }

Dim SymbolTable::product(const Shape& shape, size_t begin, size_t end) {
  Dim out = 1;
  for (size_t i = begin; i < std::min(end, shape.size()); ++i) out = mul(out, shape[i]);
  return out;
}

}  // namespace pfrt

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

int64_t floor_quotient(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

}  // namespace

Dim SymbolTable::symbol(std::string_view name) {
  if (name.empty() || name.starts_with(kNameless)) return {};
  return intern(std::string(name));
}

Dim SymbolTable::quoted(std::string_view name) { return intern(message("'", name, "'")); }

bool SymbolTable::settled(const Dim& dim) const {
  const std::string text = name(dim.symbol());
  return text.starts_with(kNameless) || is_quoted(text);
}

Dim SymbolTable::fresh() {
  std::lock_guard lock(mutex_);
  names_.push_back(message(kNameless, names_.size()));
  return Dim::of_symbol(static_cast<uint32_t>(names_.size() - 1));
}

Dim SymbolTable::intern(std::string name) {
  std::lock_guard lock(mutex_);
  auto [it, is_new] = ids_.try_emplace(std::move(name), static_cast<uint32_t>(names_.size()));
  if (is_new) names_.push_back(it->first);
  return Dim::of_symbol(it->second);
}

std::string SymbolTable::given_name(const Dim& dim) const {
  std::string out = dim.symbolic() ? name(dim.symbol()) : std::string();
  if (is_quoted(out)) return out.substr(1, out.size() - 2);
  return out.find(kNameless) == std::string::npos ? out : std::string();
}

std::string SymbolTable::name(uint32_t id) const {
  std::lock_guard lock(mutex_);
  return id < names_.size() ? names_[id] : "?";
}

std::string SymbolTable::text(const Dim& dim) const {
  return dim.known() ? std::to_string(dim.value()) : name(dim.symbol());
}

std::string SymbolTable::text(const Shape& shape) const {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? "," : "") + text(shape[i]);
  return out + "]";
}

Dim SymbolTable::expression(const char* op, Dim a, Dim b, bool commutes) {
  if (a.unknown() || b.unknown()) return {};
  std::string left = text(a), right = text(b);
  if (commutes && right < left) std::swap(left, right);
  // Expressions of expressions stop growing at a length no reader would follow.
  if (left.size() + right.size() > 120) return {};
  return intern(message("(", left, op, right, ")"));
}

Dim SymbolTable::add(Dim a, Dim b) {
  int64_t out;
  if (a.known() && b.known())
    return __builtin_add_overflow(a.value(), b.value(), &out) ? Dim() : Dim(out);
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  return expression("+", a, b, true);
}

Dim SymbolTable::sub(Dim a, Dim b) {
  int64_t out;
  if (a.known() && b.known())
    return __builtin_sub_overflow(a.value(), b.value(), &out) ? Dim() : Dim(out);
  if (b.is(0)) return a;
  if (a == b) return 0;
  return expression("-", a, b, false);
}

Dim SymbolTable::mul(Dim a, Dim b) {
  int64_t out;
  if (a.known() && b.known())
    return __builtin_mul_overflow(a.value(), b.value(), &out) ? Dim() : Dim(out);
  if (a.is(0) || b.is(0)) return 0;
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  return expression("*", a, b, true);
}

Dim SymbolTable::floor_div(Dim a, Dim b) {
  if (b.is(0)) return {};
  if (b.is(1)) return a;
  if (a.known() && b.known()) {
    if (a.value() == INT64_MIN && b.value() == -1) return {};
    return floor_quotient(a.value(), b.value());
  }
  if (a == b) return 1;
  return expression("/", a, b, false);
}

Dim SymbolTable::ceil_div(Dim a, Dim b) { return floor_div(add(a, sub(b, 1)), b); }

Dim SymbolTable::min(Dim a, Dim b) {
  if (a.known() && b.known()) return std::min(a.value(), b.value());
  return a == b ? a : expression(" min ", a, b, true);
}

Dim SymbolTable::max(Dim a, Dim b) {
  if (a.known() && b.known()) return std::max(a.value(), b.value());
  return a == b ? a : expression(" max ", a, b, true);
}

Dim SymbolTable::product(const Shape& shape, size_t begin, size_t end) {
  Dim out = 1;
  for (size_t i = begin; i < std::min(end, shape.size()); ++i) out = mul(out, shape[i]);
  return out;
}

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// Dimensions that may be symbolic. A Dim is a number, a symbol (equal symbols are equal dimensions)
// or unknown. Arithmetic on known numbers gives numbers; on symbols it gives the symbol of the
// expression, the same for all that read alike ("(4*N)"); anything with an unknown is unknown.
// SymbolTable is thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pfrt {

class Dim {
 public:
  constexpr Dim() = default;  // unknown
  constexpr Dim(int64_t value)
      : value_(value), symbol_(kNumber) {}  // NOLINT(google-explicit-constructor)
  static constexpr Dim of_symbol(uint32_t id) {
    Dim d;
    d.symbol_ = id;
    return d;
  }

  // Numbers may be negative: a Dim also carries elements of shape tensors (-1 in Reshape).
  constexpr bool known() const { return symbol_ == kNumber; }
  constexpr bool symbolic() const { return symbol_ != kNumber && symbol_ != 0; }
  constexpr bool unknown() const { return symbol_ == 0; }
  constexpr int64_t value() const { return value_; }
  constexpr uint32_t symbol() const { return symbol_; }
  constexpr bool is(int64_t v) const { return known() && value_ == v; }
  // True if certainly equal: two unknowns are not.
  friend constexpr bool operator==(const Dim& a, const Dim& b) {
    return a.symbol_ == b.symbol_ && a.value_ == b.value_ && !a.unknown();
  }

 private:
  static constexpr uint32_t kNumber = UINT32_MAX;
  int64_t value_ = 0;
  uint32_t symbol_ = 0;
};

using Shape = std::vector<Dim>;

enum class DimOp : uint8_t { kNone, kAdd, kSub, kMul, kDiv, kMin, kMax, kBroadcast };

// The expression that a symbol stands for; kNone: the symbol itself.
struct DimExpression {
  DimOp op = DimOp::kNone;
  Dim a, b;
};

// The symbols of a model: its graph and all subgraphs share the table.
class SymbolTable {
 public:
  struct Symbol {
    std::string name;
    DimExpression expression;
    bool nameless = false;  // made with fresh() somewhere in it
    bool natural = true;    // certainly not negative
  };
  // The largest symbol plus one.
  uint32_t size() const;
  Symbol at(uint32_t id) const;
  // Adds |symbol| after all others; false where one has its name.
  bool append(Symbol symbol);

  Dim symbol(std::string_view name);  // unknown for "" and names that begin with '?'
  Dim fresh();                        // "?1", equal to no other
  // The symbol for a name that is no word: no expression reads like it.
  Dim quoted(std::string_view name);
  bool settled(const Dim& dim) const;  // made by fresh or quoted
  std::string name(uint32_t id) const;
  // The name as users and files know it: "" for numbers, unknowns and anything made with fresh().
  std::string given_name(const Dim& dim) const;
  DimExpression expression(const Dim& dim) const;
  // Whether it is certainly not negative: a number >= 0, or made of dimensions without subtraction.
  bool certainly_natural(const Dim& dim) const;
  // A number or a name; "?" for unknown.
  std::string text(const Dim& dim) const;
  std::string text(const Shape& shape) const;

  Dim add(Dim a, Dim b);
  Dim sub(Dim a, Dim b);
  Dim mul(Dim a, Dim b);
  Dim floor_div(Dim a, Dim b);  // unknown when b is 0
  Dim ceil_div(Dim a, Dim b);
  Dim min(Dim a, Dim b);
  Dim max(Dim a, Dim b);
  // The broadcast of two dimensions, where only a run can tell whether one is 1.
  Dim broadcast(Dim a, Dim b);
  // Product of all; 1 for none.
  Dim product(const Shape& shape, size_t begin = 0, size_t end = SIZE_MAX);

 private:
  Dim make(DimOp op, Dim a, Dim b);
  Dim intern(Symbol symbol);
  mutable std::mutex mutex_;
  std::vector<Symbol> symbols_{{"?", {}, true, false}};
  std::unordered_map<std::string, uint32_t> ids_;
};

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// Dimensions as functions of one number, for plans of a range of it: the expressions that inference
// gives for a symbol, to be evaluated at each run's number. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/ir/dim.h"

namespace pfrt {

class DimFormulas {
 public:
  // The formulas of |shapes| in |number|; nullopt where a dimension is unknown, or has another
  // symbol in it.
  static std::optional<DimFormulas> of(const SymbolTable& symbols, Dim number,
                                       const std::vector<Shape>& shapes);

  // The dimensions of all shapes, one after another, where the number is |n|. nullopt where a
  // division leaves a remainder, dimensions to be broadcast differ, or a number overflows: only the
  // operators' own rules can then tell what that means.
  std::optional<std::vector<int64_t>> at(int64_t n) const;

 private:
  struct Term {
    DimOp op = DimOp::kNone;
    int64_t constant = 0;   // of kNone
    uint32_t a = 0, b = 0;  // earlier terms
  };
  std::optional<uint32_t> add(const SymbolTable& symbols, Dim number, const Dim& dim,
                              std::vector<std::pair<uint32_t, uint32_t>>& known);

  std::vector<Term> terms_{Term()};  // the first is the number
  std::vector<uint32_t> dims_;       // a term for each dimension
};

}  // namespace pfrt

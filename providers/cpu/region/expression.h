// SPDX-License-Identifier: Apache-2.0
//
// A small straight-line program on vectors of float32: what one generated loop computes for each
// vector of elements. Operations are what both instruction sets have; operators' meanings (NaN,
// saturation) are composed from them in lower.cc. Built by one thread, then immutable and
// thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pfrt::cpu {

enum class Prim : uint8_t {
  kInput,     // elements of slot |slot|
  kScalar,    // the one element of slot |slot|, broadcast
  kConstant,  // constant number |slot|, broadcast
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,  // a > b ? a : b, as the instruction does it: b when either is NaN or both are zero
  kMin,  // a < b ? a : b
  kAnd,  // of the bits
  kOr,
  kXor,
  kSqrt,
  kRound,  // to nearest even
  kFloor,
  kCeil,
  kExponent,   // 2 to the power of a - 127, for integers a in [1, 254]; anything for others
  kLess,       // a < b ? all bits : none
  kUnordered,  // a or b is NaN ? all bits : none
  kFma,        // a * b + c, rounded once
  kBlend,      // the bits of b where a's are set, c's elsewhere
};

// Operands |a|, |b| and |c| a prim has.
int operand_count(Prim prim);

using Term = uint16_t;  // index of an operation
inline constexpr Term kNoTerm = UINT16_MAX;

struct Operation {
  Prim prim;
  Term a = kNoTerm, b = kNoTerm, c = kNoTerm;
  uint16_t slot = 0;
};

class Expression {
 public:
  Term constant(float value);
  Term constant_bits(uint32_t bits);
  // |slot| is the pointer's position; asking twice gives the same term.
  Term input(uint16_t slot) { return leaf(Prim::kInput, slot); }
  Term scalar(uint16_t slot) { return leaf(Prim::kScalar, slot); }
  Term op(Prim prim, Term a, Term b = kNoTerm, Term c = kNoTerm);
  void store(Term term) { outputs_.push_back(term); }

  const std::vector<Operation>& operations() const { return operations_; }
  const std::vector<Term>& outputs() const { return outputs_; }
  const std::vector<uint32_t>& constants() const { return constants_; }
  // Equal keys mean equal code: operations and outputs, but not the constants' values.
  std::string key() const;

 private:
  Term leaf(Prim prim, uint16_t slot);
  std::vector<Operation> operations_;
  std::vector<Term> outputs_;
  std::vector<uint32_t> constants_;
};

// Registers of an expression's terms by liveness. Constants have none: they are memory operands.
struct Registers {
  static constexpr int kNone = -1;
  std::vector<int> of;
  int count = 0;
  bool scalars_pinned = false;  // loaded once, before the loop
};

// Scalars are pinned when that fits |limit|; |count| exceeds |limit| when nothing does.
Registers allocate_registers(const Expression& expression, int limit);

}  // namespace pfrt::cpu

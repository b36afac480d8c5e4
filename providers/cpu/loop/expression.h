// SPDX-License-Identifier: Apache-2.0
//
// A small straight-line program on vectors: what one generated loop computes for each vector of
// elements. A term is a vector register of 32-bit lanes, one an element: float32, int32, or a mask
// (all bits or none). Elements of 64 bits take two terms, the first and the second half of the
// elements. Memory may hold shorter types: a load widens, a store narrows. Operations are what both
// instruction sets have; operators' meanings (NaN, saturation, wrapping) are composed from them in
// lower*.cc. Built by one thread, then immutable and thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "pyflame_rt/types.h"

namespace pfrt::cpu {

enum class Prim : uint8_t {
  kInput,      // elements of slot |slot|, as |type| lies in lanes; of 64 bits, the first half
  kInputHigh,  // the second half
  kScalar,     // the one element of slot |slot|, broadcast
  kConstant,   // constant number |slot|, broadcast
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
  kScale,  // a times 2 to the power of floor(b), rounded once; |a| in [1/2, 2), b in [-150, 129)
  kLess,   // a < b ? all bits : none
  kLessEqual,
  kEqual,
  kUnordered,  // a or b is NaN ? all bits : none
  kFma,        // a * b + c, rounded once
  kBlend,      // the bits of b where a's are set, c's elsewhere
  kLookUp,     // of table b, a constant, the element that the low three bits of a say
  kRoundFp16,  // to the nearest float16, as float32

  kIntAdd,  // of int32, wrapping around
  kIntSub,
  kIntMul,
  kIntMax,
  kIntMin,
  kIntAbs,
  kIntEqual,
  kIntGreater,
  kShiftLeft,   // by |slot| bits
  kShiftRight,  // by |slot| bits, zeros coming in
  kShiftSigned,
  kToFloat,   // int32 to the nearest float32
  kTruncate,  // float32 to int32; the least one where that is out of range
  kNearest,  // float32 to the nearest int32, ties to even; the least one where that is out of range

  kLongAdd,  // of int64, wrapping around
  kLongSub,
  kLongMulLow,  // the products of the low 32 bits, unsigned
  kLongEqual,
  kLongGreater,
  kLongShiftLeft,  // by |slot| bits
  kLongShiftRight,
  kWidenLow,   // int32 lanes of the first half to int64
  kWidenHigh,  // of the second half
  kNarrow,     // the low 32 bits of the int64 lanes of a, then of b
  kDoubleAdd,  // of float64
  kDoubleSub,
  kDoubleNarrow,  // float64 lanes of a, then of b, to the nearest float32
  // int64 lanes of a, then of b, which are no constants, to the nearest float32.
  kLongToFloat,
  // float32 lanes of the first or the second half to int64, truncated; what is out of range to the
  // least or the greatest, NaN to 0.
  kFloatToLongLow,
  kFloatToLongHigh,
};

// Operands |a|, |b| and |c| a prim has.
int operand_count(Prim prim);

using Term = uint16_t;  // index of an operation
inline constexpr Term kNoTerm = UINT16_MAX;

struct Operation {
  Prim prim;
  Term a = kNoTerm, b = kNoTerm, c = kNoTerm;
  uint16_t slot = 0;
  pfrt_dtype type = 0;  // in memory, of inputs and scalars
};

// An output: |term| is stored, or for elements of 64 bits |term| and |high|.
struct Stored {
  Term term, high;
  pfrt_dtype type;
};

class Expression {
 public:
  Term constant(float value);
  Term constant_bits(uint32_t bits);
  Term constant_long(uint64_t bits);  // in 64-bit lanes
  Term table(const std::array<uint32_t, 8>& bits);
  // |slot| is the pointer's position; asking twice gives the same term.
  Term input(uint16_t slot, pfrt_dtype type) { return leaf(Prim::kInput, slot, type); }
  Term input_high(uint16_t slot, pfrt_dtype type) { return leaf(Prim::kInputHigh, slot, type); }
  Term scalar(uint16_t slot, pfrt_dtype type) { return leaf(Prim::kScalar, slot, type); }
  Term op(Prim prim, Term a, Term b = kNoTerm, Term c = kNoTerm);
  Term shift(Prim prim, Term a, uint16_t bits);
  void store(const Stored& stored) { outputs_.push_back(stored); }

  // This expression with the scalars of |slots| read as neighbours.
  Expression with_neighbours(const std::vector<bool>& slots) const;

  const std::vector<Operation>& operations() const { return operations_; }
  const std::vector<Stored>& outputs() const { return outputs_; }
  // Constants in the form that loops read: a constant of 32 or 64 bits is repeated.
  using Constant = std::array<uint64_t, 4>;
  const std::vector<Constant>& constants() const { return constants_; }
  // Equal keys mean equal code: operations and outputs, but not the constants' values.
  std::string key() const;

 private:
  Term leaf(Prim prim, uint16_t slot, pfrt_dtype type);
  Term constant(const Constant& bits);
  std::vector<Operation> operations_;
  std::vector<Stored> outputs_;
  std::vector<Constant> constants_;
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

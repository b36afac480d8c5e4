// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/loop/expression.h"

#include <algorithm>
#include <array>
#include <bit>

namespace pfrt::cpu {
namespace {

// The lowest free register, so that the count stays small.
class Pool {
 public:
  int take() {
    const auto free = std::find(used_.begin(), used_.end(), false);
    const int reg = static_cast<int>(free - used_.begin());
    if (free == used_.end()) used_.push_back(false);
    used_[static_cast<size_t>(reg)] = true;
    return reg;
  }
  void give(int reg) { used_[static_cast<size_t>(reg)] = false; }
  int count() const { return static_cast<int>(used_.size()); }

 private:
  std::vector<bool> used_;
};

std::array<Term, 3> operands(const Operation& op) { return {op.a, op.b, op.c}; }

Registers allocate(const Expression& expression, bool pin_scalars) {
  const std::vector<Operation>& ops = expression.operations();
  std::vector<size_t> last_use(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    last_use[i] = i;
    for (Term t : operands(ops[i]))
      if (t != kNoTerm) last_use[t] = i;
  }
  Registers out;
  out.of.assign(ops.size(), Registers::kNone);
  out.scalars_pinned = pin_scalars;
  Pool pool;
  const auto pinned = [&](size_t i) { return pin_scalars && ops[i].prim == Prim::kScalar; };
  for (size_t i = 0; i < ops.size(); ++i)
    if (pinned(i)) out.of[i] = pool.take();
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].prim == Prim::kConstant || pinned(i)) continue;
    const auto release = [&](Term t) {
      if (t == kNoTerm || pinned(t) || out.of[t] == Registers::kNone || last_use[t] != i) return;
      pool.give(out.of[t]);
      last_use[t] = SIZE_MAX;  // only once, even when an operand appears twice
    };
    // Fused operations write over |a| before they have read |b| and |c|.
    const bool overwrites = ops[i].prim == Prim::kFma || ops[i].prim == Prim::kBlend;
    const bool distinct = ops[i].a != ops[i].b && ops[i].a != ops[i].c;
    if (!overwrites || distinct) release(ops[i].a);
    if (!overwrites) release(ops[i].b);
    if (!overwrites) release(ops[i].c);
    out.of[i] = pool.take();
    for (Term t : operands(ops[i])) release(t);
    if (last_use[i] == i) pool.give(out.of[i]);  // only stored
  }
  out.count = pool.count();
  return out;
}

}  // namespace

int operand_count(Prim prim) {
  switch (prim) {
    case Prim::kInput:
    case Prim::kInputHigh:
    case Prim::kScalar:
    case Prim::kConstant:
      return 0;
    case Prim::kSqrt:
    case Prim::kRound:
    case Prim::kFloor:
    case Prim::kCeil:
    case Prim::kRoundFp16:
    case Prim::kIntAbs:
    case Prim::kShiftLeft:
    case Prim::kShiftRight:
    case Prim::kShiftSigned:
    case Prim::kToFloat:
    case Prim::kTruncate:
    case Prim::kNearest:
    case Prim::kLongShiftLeft:
    case Prim::kLongShiftRight:
    case Prim::kWidenLow:
    case Prim::kWidenHigh:
    case Prim::kFloatToLongLow:
    case Prim::kFloatToLongHigh:
      return 1;
    case Prim::kFma:
    case Prim::kBlend:
      return 3;
    default:
      return 2;
  }
}

Term Expression::constant(float value) { return constant_bits(std::bit_cast<uint32_t>(value)); }

Term Expression::constant_bits(uint32_t bits) { return constant_long(uint64_t{bits} << 32 | bits); }

Term Expression::constant_long(uint64_t bits) { return constant({bits, bits, bits, bits}); }

Term Expression::table(const std::array<uint32_t, 8>& bits) {
  return constant(std::bit_cast<Constant>(bits));
}

Term Expression::constant(const Constant& bits) {
  const auto found = std::find(constants_.begin(), constants_.end(), bits);
  const auto slot = static_cast<uint16_t>(found - constants_.begin());
  if (found == constants_.end()) constants_.push_back(bits);
  return leaf(Prim::kConstant, slot, 0);
}

Term Expression::leaf(Prim prim, uint16_t slot, pfrt_dtype type) {
  for (size_t i = 0; i < operations_.size(); ++i)
    if (operations_[i].prim == prim && operations_[i].slot == slot) return static_cast<Term>(i);
  operations_.push_back({.prim = prim, .slot = slot, .type = type});
  return static_cast<Term>(operations_.size() - 1);
}

Term Expression::op(Prim prim, Term a, Term b, Term c) {
  operations_.push_back({.prim = prim, .a = a, .b = b, .c = c});
  return static_cast<Term>(operations_.size() - 1);
}

Term Expression::shift(Prim prim, Term a, uint16_t bits) {
  operations_.push_back({.prim = prim, .a = a, .slot = bits});
  return static_cast<Term>(operations_.size() - 1);
}

Expression Expression::with_neighbours(const std::vector<bool>& slots) const {
  Expression out = *this;
  for (Operation& op : out.operations_)
    if (op.prim == Prim::kScalar && slots[op.slot]) op.prim = Prim::kInput;
  return out;
}

std::string Expression::key() const {
  std::string out;
  const auto put = [&](uint32_t n) {
    out += static_cast<char>(n & 0xff);
    out += static_cast<char>(n >> 8 & 0xff);
  };
  for (const Operation& op : operations_) {
    out += static_cast<char>(op.prim);
    for (Term t : operands(op)) put(t);
    put(op.slot);
    put(op.type);
  }
  put(kNoTerm);
  for (const Stored& stored : outputs_) {
    put(stored.term);
    put(stored.high);
    put(stored.type);
  }
  return out;
}

Registers allocate_registers(const Expression& expression, int limit) {
  Registers pinned = allocate(expression, true);
  return pinned.count <= limit ? pinned : allocate(expression, false);
}

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
//
// For each vector of elements the terms of an expression are computed in order, each in the
// register that liveness gave it, and outputs are stored as soon as they are known. Where registers
// allow, two vectors take turns, operation by operation, so that neither waits for its last result.
// Registers that are left hold the constants that are read most; others are read from memory. The
// last, partial vector runs the same operations with masked loads and stores.
//
//   rdi  pointers            rsi  constants, 32 bytes each
//   rdx  element             rcx  end of the range, less what a turn takes while in a loop
//   rax  a pointer at hand   r8-r11  the first four pointers
//   zmm0-29 terms, zmm30 and zmm31 at hand, k1 and k3 the tail's masks, k2 and k4 of
//   comparisons
//   ymm0-12 terms, ymm13 and ymm14 at hand, ymm15 the tail's mask; with two vectors a turn, which
//   are never masked, one term more
#include "providers/cpu/jit/elementwise_loop.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "providers/cpu/jit/element_access.h"
#include "providers/cpu/jit/published.h"

namespace pfrt::cpu {
namespace {

constexpr int kConstantBytes = 32;
constexpr uint16_t kHeldPointers = 4;
constexpr size_t kBytesPerOperation = 1024;  // all bodies, generously
constexpr size_t kBytesAround = 1024;

template <typename Vmm>
class Generator : public ElementAccess<Vmm> {
 public:
  using Access = ElementAccess<Vmm>;
  using Access::kLanes, Access::kTerms, Access::kWide;
  static constexpr int kTermsOfTwo = kWide ? 30 : 14;

  Generator(const Expression& expression, Registers registers, size_t capacity)
      : Access(capacity),
        ops_(expression.operations()),
        outputs_(expression.outputs()),
        registers_(std::move(registers)) {
    for (const Operation& op : ops_)
      if (op.prim == Prim::kInput || op.prim == Prim::kScalar)
        inputs_ = std::max(inputs_, static_cast<uint16_t>(op.slot + 1));
    if (Xbyak::GetError() == Xbyak::ERR_NONE) emit();  // else there is no memory to write to
  }

 private:
  using Access::first_spare, Access::second_spare, Access::vector_;
  using X = Xbyak::CodeGenerator;
  using X::rax, X::rcx, X::rdi, X::rdx, X::rsi, X::rsp, X::k2, X::T_z, X::ptr, X::ptr_b;

  void emit() {
    const uint16_t pointers = static_cast<uint16_t>(inputs_ + outputs_.size());
    for (uint16_t i = 0; i < std::min(pointers, kHeldPointers); ++i)
      X::mov(held(i), ptr[rdi + 8 * i]);
    if (registers_.scalars_pinned)
      for (size_t i = 0; i < ops_.size(); ++i)
        if (ops_[i].prim == Prim::kScalar) load_scalar(i);
    const int most = pinned() + 2 * own() <= kTermsOfTwo ? 2 : 1;
    hold_constants(pinned() + most * own());
    Xbyak::Label done;
    if (most == 2) loop(2);
    loop(1);
    X::sub(rcx, rdx);
    X::jle(done, X::T_NEAR);
    Access::make_mask();
    body(1, true);
    X::L(done);
    X::vzeroupper();
    X::ret();
    Access::put_mask_table();
  }

  // Registers from |first| on, which no term has, are for the constants that are read most.
  void hold_constants(int first) {
    std::vector<std::pair<int, Term>> reads(ops_.size());
    for (size_t i = 0; i < ops_.size(); ++i) reads[i].second = static_cast<Term>(i);
    for (const Operation& op : ops_)
      for (Term t : {op.a, op.b, op.c})
        if (t != kNoTerm && ops_[t].prim == Prim::kConstant) --reads[t].first;
    std::ranges::sort(reads);
    for (const auto& [count, constant] : reads) {
      if (count == 0 || first >= kTerms) break;
      if constexpr (kWide)
        X::vbroadcastf64x4(Vmm(first), ptr[constant_at(constant)]);
      else
        X::vmovups(Vmm(first), ptr[constant_at(constant)]);
      registers_.of[constant] = first++;
    }
  }

  // Writes a loop over |vectors| vectors a turn.
  void loop(int vectors) {
    const auto elements = static_cast<uint32_t>(vectors * kLanes);
    Xbyak::Label next, end;
    X::sub(rcx, elements);
    X::L(next);
    X::cmp(rdx, rcx);
    X::jg(end, X::T_NEAR);
    body(vectors, false);
    X::add(rdx, elements);
    X::jmp(next, X::T_NEAR);
    X::L(end);
    X::add(rcx, elements);
  }

  void body(int vectors, bool masked) {
    Access::spare_ = vectors == 1 ? kTerms : kTermsOfTwo;
    for (size_t i = 0; i < ops_.size(); ++i)
      // NOLINTNEXTLINE(bugprone-infinite-loop): it does not see members of a dependent base
      for (vector_ = 0; vector_ < vectors; ++vector_) {
        operation(i, masked);
        for (size_t out = 0; out < outputs_.size(); ++out) {
          if (outputs_[out].term == i) store(out, i, false, masked);
          if (outputs_[out].high == i) store(out, i, true, masked);
        }
      }
    vector_ = 0;
  }

  void operation(size_t i, bool masked) {
    const Operation& op = ops_[i];
    switch (op.prim) {
      case Prim::kConstant:
        return;
      case Prim::kScalar:
        if (!registers_.scalars_pinned) load_scalar(i);
        return;
      case Prim::kInput:
      case Prim::kInputHigh:
        return Access::load(of(i), pointer(op.slot), op.type, op.prim == Prim::kInputHigh, masked);
      case Prim::kAdd:
        return X::vaddps(of(i), loaded(op.a), operand(op.b));
      case Prim::kSub:
        return X::vsubps(of(i), loaded(op.a), operand(op.b));
      case Prim::kMul:
        return X::vmulps(of(i), loaded(op.a), operand(op.b));
      case Prim::kDiv:
        return X::vdivps(of(i), loaded(op.a), operand(op.b));
      case Prim::kMax:
        return X::vmaxps(of(i), loaded(op.a), operand(op.b));
      case Prim::kMin:
        return X::vminps(of(i), loaded(op.a), operand(op.b));
      case Prim::kAnd:
        return X::vandpd(of(i), loaded(op.a), operand(op.b));
      case Prim::kOr:
        return X::vorpd(of(i), loaded(op.a), operand(op.b));
      case Prim::kXor:
        return X::vxorpd(of(i), loaded(op.a), operand(op.b));
      case Prim::kSqrt:
        return X::vsqrtps(of(i), operand(op.a));
      case Prim::kRound:
        return round(i, 8);
      case Prim::kFloor:
        return round(i, 9);
      case Prim::kCeil:
        return round(i, 10);
      case Prim::kScale:
        return scale(i);
      case Prim::kLess:
        return compare(i, 17);  // LT, quiet
      case Prim::kLessEqual:
        return compare(i, 18);
      case Prim::kEqual:
        return compare(i, 0);
      case Prim::kUnordered:
        return compare(i, 3);
      case Prim::kFma:
        return fma(i);
      case Prim::kBlend:
        return blend(i);
      case Prim::kLookUp:
        return look_up(i);
      case Prim::kRoundFp16:
        return round_fp16(i);
      default:
        return integer_operation(i);
    }
  }

  void integer_operation(size_t i) {
    const Operation& op = ops_[i];
    const auto bits = static_cast<uint8_t>(op.slot);
    switch (op.prim) {
      case Prim::kIntAdd:
        return X::vpaddd(of(i), loaded(op.a), operand(op.b));
      case Prim::kIntSub:
        return X::vpsubd(of(i), loaded(op.a), operand(op.b));
      case Prim::kIntMul:
        return X::vpmulld(of(i), loaded(op.a), operand(op.b));
      case Prim::kIntMax:
        return X::vpmaxsd(of(i), loaded(op.a), operand(op.b));
      case Prim::kIntMin:
        return X::vpminsd(of(i), loaded(op.a), operand(op.b));
      case Prim::kIntAbs:
        return X::vpabsd(of(i), operand(op.a));
      case Prim::kIntEqual:
        X::vpcmpeqd(compared(i), loaded(op.a), operand(op.b));
        return fill(i);
      case Prim::kIntGreater:
        X::vpcmpgtd(compared(i), loaded(op.a), operand(op.b));
        return fill(i);
      case Prim::kShiftLeft:
        return X::vpslld(of(i), loaded(op.a), bits);
      case Prim::kShiftRight:
        return X::vpsrld(of(i), loaded(op.a), bits);
      case Prim::kShiftSigned:
        return X::vpsrad(of(i), loaded(op.a), bits);
      case Prim::kToFloat:
        return X::vcvtdq2ps(of(i), operand(op.a));
      case Prim::kTruncate:
        return X::vcvttps2dq(of(i), operand(op.a));
      case Prim::kNearest:
        return X::vcvtps2dq(of(i), operand(op.a));
      case Prim::kLongAdd:
        return X::vpaddq(of(i), loaded(op.a), operand(op.b));
      case Prim::kLongSub:
        return X::vpsubq(of(i), loaded(op.a), operand(op.b));
      case Prim::kLongMulLow:
        return X::vpmuludq(of(i), loaded(op.a), operand(op.b));
      case Prim::kLongEqual:
        X::vpcmpeqq(compared(i), loaded(op.a), operand(op.b));
        return fill_long(i);
      case Prim::kLongGreater:
        X::vpcmpgtq(compared(i), loaded(op.a), operand(op.b));
        return fill_long(i);
      case Prim::kLongShiftLeft:
        return X::vpsllq(of(i), loaded(op.a), bits);
      case Prim::kLongShiftRight:
        return X::vpsrlq(of(i), loaded(op.a), bits);
      case Prim::kWidenLow:
        return X::vpmovsxdq(of(i), half(loaded(op.a)));
      case Prim::kWidenHigh:
        return widen_high(i);
      case Prim::kNarrow:
        return narrow(i);
      case Prim::kDoubleAdd:
        return X::vaddpd(of(i), loaded(op.a), operand(op.b));
      case Prim::kDoubleSub:
        return X::vsubpd(of(i), loaded(op.a), operand(op.b));
      case Prim::kDoubleNarrow:
        return narrow_doubles(i);
      case Prim::kLongToFloat:
        return long_to_float(of(i), of(op.a), of(op.b));
      case Prim::kFloatToLongLow:
      case Prim::kFloatToLongHigh:
        return float_to_long(of(i), loaded(op.a), op.prim == Prim::kFloatToLongHigh);
      default:
        return;
    }
  }

  void round(size_t i, uint8_t mode) {
    if constexpr (kWide)
      X::vrndscaleps(of(i), operand(ops_[i].a), mode);
    else
      X::vroundps(of(i), operand(ops_[i].a), mode);
  }

  // With AVX2 the factor is two factors, of which the first is exact, so that results below the
  // smallest normal number are rounded once.
  void scale(size_t i) {
    const Operation& op = ops_[i];
    const Vmm d = of(i), power = first_spare(), half = second_spare();
    if constexpr (kWide) {
      X::vscalefps(d, loaded(op.a), operand(op.b));
    } else {
      X::vroundps(power, operand(op.b), 9);
      X::vcvtps2dq(power, power);
      X::vpsrad(half, power, 1);
      X::vpsubd(power, power, half);
      X::vpslld(half, half, 23);
      move(d, op.a);
      X::vpaddd(d, d, half);
      X::vpcmpeqd(half, half, half);  // to the bits of 1
      X::vpsrld(half, half, 25);
      X::vpslld(half, half, 23);
      X::vpslld(power, power, 23);
      X::vpaddd(power, power, half);
      X::vmulps(d, d, power);
    }
  }

  void round_fp16(size_t i) {
    X::vcvtps2ph(half(of(i)), loaded(ops_[i].a), 0);
    X::vcvtph2ps(of(i), half(of(i)));
  }

  void compare(size_t i, uint8_t predicate) {
    X::vcmpps(compared(i), loaded(ops_[i].a), operand(ops_[i].b), predicate);
    fill(i);
  }

  // The register of a comparison's result, and the code that makes lanes of it.
  auto compared([[maybe_unused]] size_t i) const {
    if constexpr (kWide)
      return k2;
    else
      return of(i);
  }
  void fill([[maybe_unused]] size_t i) {
    if constexpr (kWide) X::vpternlogd(of(i) | k2 | T_z, of(i), of(i), 0xff);
  }
  void fill_long([[maybe_unused]] size_t i) {
    if constexpr (kWide) X::vpternlogq(of(i) | k2 | T_z, of(i), of(i), 0xff);
  }

  void widen_high(size_t i) {
    const Vmm from = loaded(ops_[i].a);
    if constexpr (kWide)
      X::vextracti64x4(half(first_spare()), from, 1);
    else
      X::vextracti128(half(first_spare()), from, 1);
    X::vpmovsxdq(of(i), half(first_spare()));
  }

  // The result is written once both operands are read.
  void narrow(size_t i) {
    const Vmm d = of(i), a = loaded(ops_[i].a), b = loaded(ops_[i].b, second_spare());
    if constexpr (kWide) {
      X::vpmovqd(half(first_spare()), a);
      X::vpmovqd(half(d), b);
      X::vinserti64x4(d, first_spare(), half(d), 1);
    } else {
      X::vshufps(d, a, b, 0x88);
      X::vpermq(d, d, 0xd8);
    }
  }

  void narrow_doubles(size_t i) {
    const Vmm d = of(i), a = loaded(ops_[i].a), b = loaded(ops_[i].b, second_spare());
    X::vcvtpd2ps(half(first_spare()), a);
    X::vcvtpd2ps(half(d), b);
    if constexpr (kWide)
      X::vinsertf64x4(d, first_spare(), half(d), 1);
    else
      X::vinsertf128(d, first_spare(), half(d), 1);
  }

  // AVX2 has no instruction for this. Elements go by way of int32 where all fit, else one by one,
  // in the 128 bytes below the stack pointer that belong to the function.
  void long_to_float(const Vmm& d, const Vmm& a, const Vmm& b) {
    const Vmm highs = first_spare(), lows = second_spare();
    if constexpr (kWide) {
      X::vcvtqq2ps(half(highs), a);
      X::vcvtqq2ps(half(d), b);
      X::vinsertf64x4(d, highs, half(d), 1);
    } else {
      Xbyak::Label large, done;
      X::vshufps(highs, a, b, 0xdd);
      X::vshufps(lows, a, b, 0x88);
      X::vpsrad(lows, lows, 31);
      X::vpxor(highs, highs, lows);
      X::vptest(highs, highs);
      X::jnz(large, X::T_NEAR);
      X::vshufps(lows, a, b, 0x88);
      X::vpermq(lows, lows, 0xd8);
      X::vcvtdq2ps(d, lows);
      X::jmp(done, X::T_NEAR);
      X::L(large);
      X::vmovdqu(ptr[rsp - 64], a);
      X::vmovdqu(ptr[rsp - 32], b);
      const Xbyak::Xmm one = half(highs);
      for (size_t k = 0; k < kLanes; ++k) {
        X::vcvtsi2ss(one, one, X::qword[rsp - 64 + 8 * k]);
        X::vmovss(X::dword[rsp - 96 + 4 * k], one);
      }
      X::vmovups(d, ptr[rsp - 96]);
      X::L(done);
    }
  }

  void float_to_long(const Vmm& d, const Vmm& a, bool high) {
    const auto from = half(first_spare()), spare = half(second_spare());
    if constexpr (kWide) {
      if (high)
        X::vextractf64x4(from, a, 1);
      else
        X::vmovaps(from, half(a));
      X::vcvttps2qq(d, from);
      X::vxorps(spare, spare, spare);
      X::vcmpps(k2, from, spare, 30);  // GT, quiet
      X::vpmovq2m(X::k4, d);
      X::kandw(k2, k2, X::k4);
      X::vpternlogq(d | k2, d, d, 0x55);  // all other bits than the sign
      X::vcmpps(k2, from, from, 3);
      X::vpxorq(d | k2, d, d);
    } else {
      if (high)
        X::vextractf128(from, a, 1);
      else
        X::vmovaps(from, half(a));
      Xbyak::Label large, done;
      X::vcvttps2dq(spare, from);
      X::vpabsd(half(d), spare);  // negative where it was out of range
      X::vmovmskps(X::eax, half(d));
      X::test(X::eax, X::eax);
      X::jnz(large, X::T_NEAR);
      X::vpmovsxdq(d, spare);
      X::jmp(done, X::T_NEAR);
      X::L(large);
      X::vmovups(ptr[rsp - 16], from);
      X::vxorps(from, from, from);
      for (size_t k = 0; k < kLanes / 2; ++k) one_to_long(k, from, spare);
      X::vmovups(d, ptr[rsp - 48]);
      X::L(done);
    }
  }

  // The instruction gives the least integer for what is out of range; it is the only integer from
  // which subtracting 1 overflows.
  void one_to_long(size_t k, const Xbyak::Xmm& zero, const Xbyak::Xmm& one) {
    Xbyak::Label store, ordered;
    X::vmovss(one, X::dword[rsp - 16 + 4 * k]);
    X::vcvttss2si(rax, one);
    X::cmp(rax, 1);
    X::jno(store);
    X::vucomiss(one, zero);
    X::jnp(ordered);
    X::xor_(X::eax, X::eax);
    X::jmp(store);
    X::L(ordered);
    X::jbe(store);
    X::dec(rax);
    X::L(store);
    X::mov(X::qword[rsp - 48 + 8 * k], rax);
  }

  void fma(size_t i) {
    const Operation& op = ops_[i];
    const Vmm d = of(i);
    move(d, op.a);
    if (is_constant(op.b) && !is_constant(op.c))
      X::vfmadd132ps(d, of(op.c), operand(op.b));
    else
      X::vfmadd213ps(d, loaded(op.b), operand(op.c));
  }

  void blend(size_t i) {
    const Operation& op = ops_[i];
    const Vmm d = of(i);
    if constexpr (kWide) {
      move(d, op.a);
      X::vpternlogq(d, loaded(op.b), operand(op.c), 0xca);  // a ? b : c
    } else {
      const Vmm c = loaded(op.c, second_spare());
      X::vblendvps(d, c, operand(op.b), loaded(op.a));
    }
  }

  void look_up(size_t i) {
    const Operation& op = ops_[i];
    if (!is_constant(op.b)) return X::vpermps(of(i), of(op.a), of(op.b));
    const auto table = ptr[constant_at(op.b)];
    if constexpr (kWide) {
      X::vbroadcastf64x4(first_spare(), table);
      X::vpermps(of(i), of(op.a), first_spare());
    } else {
      X::vpermps(of(i), of(op.a), table);
    }
  }

  void load_scalar(size_t i) { Access::load_one(of(i), pointer(ops_[i].slot), ops_[i].type); }

  void store(size_t out, size_t term, bool high, bool masked) {
    const Vmm from = loaded(static_cast<Term>(term));
    Access::store(pointer(static_cast<uint16_t>(inputs_ + out)), from, outputs_[out].type, high,
                  masked);
  }

  void move(const Vmm& to, Term from) {
    if (is_constant(from))
      X::vbroadcastsd(to, ptr[constant_at(from)]);
    else if (of(from).getIdx() != to.getIdx())
      X::vmovaps(to, of(from));
  }

  // Whether it is a constant in memory.
  bool is_constant(Term t) const {
    return ops_[t].prim == Prim::kConstant && registers_.of[t] == Registers::kNone;
  }
  Xbyak::RegExp constant_at(Term t) const { return rsi + kConstantBytes * ops_[t].slot; }
  // Registers of scalars that stay come first and are shared; each vector has the others for
  // itself.
  int pinned() const {
    if (!registers_.scalars_pinned) return 0;
    return static_cast<int>(std::ranges::count(ops_, Prim::kScalar, &Operation::prim));
  }
  int own() const { return registers_.count - pinned(); }
  Vmm of(size_t term) const {
    const int first = registers_.of[term];
    if (ops_[term].prim == Prim::kConstant) return Vmm(first);
    return Vmm(first < pinned() ? first : first + vector_ * own());
  }
  static auto half(const Vmm& v) {
    return std::conditional_t<kWide, Xbyak::Ymm, Xbyak::Xmm>(v.getIdx());
  }
  Xbyak::Reg64 held(uint16_t i) const { return Xbyak::Reg64(Xbyak::Operand::R8 + i); }

  // The term in a register, for operands that cannot be memory.
  Vmm loaded(Term t, const Vmm& spare) {
    if (!is_constant(t)) return of(t);
    X::vbroadcastsd(spare, ptr[constant_at(t)]);
    return spare;
  }
  Vmm loaded(Term t) { return loaded(t, first_spare()); }

  // A register, or a constant's memory. The reference lasts until the next call.
  const Xbyak::Operand& operand(Term t) {
    if (!is_constant(t)) {
      register_ = of(t);
      return register_;
    }
    if constexpr (kWide)
      memory_ = ptr_b[constant_at(t)];
    else
      memory_ = ptr[constant_at(t)];
    return memory_;
  }

  Xbyak::Reg64 pointer(uint16_t slot) {
    if (slot < kHeldPointers) return held(slot);
    X::mov(rax, ptr[rdi + 8 * slot]);
    return rax;
  }

  const std::vector<Operation>& ops_;
  const std::vector<Stored>& outputs_;
  Registers registers_;
  uint16_t inputs_ = 0;
  Vmm register_;
  Xbyak::Address memory_ = ptr[rsi];
};

template <typename Vmm>
class Loop final : public ElementwiseLoop {
 public:
  Loop(const Expression& expression, Registers registers, const std::string& name)
      : generator_(expression, std::move(registers),
                   kBytesAround + kBytesPerOperation * expression.operations().size()) {
    name_ = name;
  }

  bool ready() {
    if (!seal(generator_)) return false;
    code_ = generator_.template getCode<Code>();
    return true;
  }

  void publish_as(const Expression& expression) const {
    char key[20];
    std::snprintf(key, sizeof key, "%08zx",
                  std::hash<std::string>()(expression.key()) & 0xffffffff);
    publish(name_ + "_" + key, generator_.getCode(), generator_.getSize());
  }

 private:
  Generator<Vmm> generator_;
};

template <typename Vmm>
std::shared_ptr<const ElementwiseLoop> make_loop(const Expression& expression,
                                                 const std::string& name) {
  Registers registers = allocate_registers(expression, Generator<Vmm>::kTerms);
  if (registers.count > Generator<Vmm>::kTerms) return nullptr;
  Xbyak::ClearError();
  auto loop = std::make_shared<Loop<Vmm>>(expression, std::move(registers), name);
  if (!loop->ready()) return nullptr;
  loop->publish_as(expression);
  return loop;
}

}  // namespace

int ElementwiseLoop::register_limit(Isa isa) {
  if (isa >= Isa::kAvx512) return Generator<Xbyak::Zmm>::kTerms;
  return isa >= Isa::kAvx2 ? Generator<Xbyak::Ymm>::kTerms : 0;
}

std::shared_ptr<const ElementwiseLoop> ElementwiseLoop::make(const Expression& expression, Isa isa,
                                                             size_t nodes) {
  if (isa < Isa::kAvx2) return nullptr;
  const bool wide = isa >= Isa::kAvx512;
  const std::string name =
      message("elementwise_jit_", wide ? "avx512_" : "avx2_", nodes, nodes == 1 ? "op" : "ops");
  return wide ? make_loop<Xbyak::Zmm>(expression, name) : make_loop<Xbyak::Ymm>(expression, name);
}

std::vector<uint64_t> ElementwiseLoop::constant_pool(const Expression& expression) {
  std::vector<uint64_t> pool;
  for (const Expression::Constant& bits : expression.constants())
    pool.insert(pool.end(), bits.begin(), bits.end());
  return pool;
}

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
//
// For each vector of elements the terms of an expression are computed in order, each in the
// register that liveness gave it, and outputs are stored as soon as they are known. Where registers
// allow, two vectors take turns, operation by operation: neither waits for its own last one. The
// last, partial vector runs the same operations with masked loads and stores, so that no byte
// outside the range is touched.
//
//   rdi  pointers            rsi  constants, 32 bytes each
//   rdx  byte offset         rcx  end of the range, less what a turn takes while in a loop
//   rax  a pointer at hand   r8-r11  the first four pointers
//   zmm0-29 terms, zmm30 and zmm31 at hand, k1 the tail's mask, k2 of comparisons
//   ymm0-12 terms, ymm13 and ymm14 at hand, ymm15 the tail's mask; with two vectors a turn, which
//   are never masked, one term more
#include "providers/cpu/jit/elementwise_loop.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <type_traits>

#include "providers/cpu/jit/code_pages.h"
#include "providers/cpu/jit/published.h"

namespace pfrt::cpu {
namespace {

constexpr int kConstantBytes = 32;
constexpr uint16_t kHeldPointers = 4;
constexpr size_t kBytesPerOperation = 256;  // all bodies, generously
constexpr size_t kBytesAround = 1024;

template <typename Vmm>
class Generator : private HasCodePages, public Xbyak::CodeGenerator {
 public:
  static constexpr bool kWide = std::is_same_v<Vmm, Xbyak::Zmm>;
  static constexpr int kBytes = kWide ? 64 : 32;
  static constexpr int kTerms = kWide ? 30 : 13, kTermsOfTwo = kWide ? 30 : 14;

  Generator(const Expression& expression, Registers registers, size_t capacity)
      : CodeGenerator(capacity, Xbyak::DontSetProtectRWE, &pages),
        ops_(expression.operations()),
        outputs_(expression.outputs()),
        registers_(std::move(registers)) {
    for (const Operation& op : ops_)
      if (op.prim == Prim::kInput || op.prim == Prim::kScalar)
        inputs_ = std::max(inputs_, static_cast<uint16_t>(op.slot + 1));
    if (Xbyak::GetError() == Xbyak::ERR_NONE) emit();  // else there is no memory to write to
  }

 private:
  void emit() {
    const uint16_t pointers = static_cast<uint16_t>(inputs_ + outputs_.size());
    for (uint16_t i = 0; i < std::min(pointers, kHeldPointers); ++i) mov(held(i), ptr[rdi + 8 * i]);
    if (registers_.scalars_pinned)
      for (size_t i = 0; i < ops_.size(); ++i)
        if (ops_[i].prim == Prim::kScalar) load_scalar(i);
    Xbyak::Label done, mask;
    if (pinned() + 2 * own() <= kTermsOfTwo) loop(2);
    loop(1);
    sub(rcx, rdx);
    jle(done, T_NEAR);
    tail_mask(mask);
    body(1, true);
    L(done);
    vzeroupper();
    ret();
    if constexpr (!kWide) {
      align(32);
      L(mask);
      for (int i = 0; i < 8; ++i) dd(0xffffffff);
      for (int i = 0; i < 8; ++i) dd(0);
    }
  }

  // |vectors| a turn.
  void loop(int vectors) {
    Xbyak::Label next, end;
    sub(rcx, vectors * kBytes);
    L(next);
    cmp(rdx, rcx);
    jg(end, T_NEAR);
    body(vectors, false);
    add(rdx, vectors * kBytes);
    jmp(next, T_NEAR);
    L(end);
    add(rcx, vectors * kBytes);
  }

  // rcx holds the bytes left, less than a vector.
  void tail_mask([[maybe_unused]] Xbyak::Label& mask) {
    if constexpr (kWide) {
      shr(ecx, 2);
      mov(eax, 1);
      shl(eax, cl);
      sub(eax, 1);
      kmovw(k1, eax);
    } else {
      lea(rax, ptr[rip + mask]);
      sub(rax, rcx);
      vmovdqu(mask_register(), ptr[rax + kBytes]);
    }
  }

  void body(int vectors, bool masked) {
    spare_ = vectors == 1 ? kTerms : kTermsOfTwo;
    for (size_t i = 0; i < ops_.size(); ++i)
      for (vector_ = 0; vector_ < vectors; ++vector_) {
        operation(i, masked);
        for (size_t out = 0; out < outputs_.size(); ++out)
          if (outputs_[out] == i) store(out, i, masked);
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
        return load(op.slot, of(i), masked);
      case Prim::kAdd:
        return vaddps(of(i), loaded(op.a), operand(op.b));
      case Prim::kSub:
        return vsubps(of(i), loaded(op.a), operand(op.b));
      case Prim::kMul:
        return vmulps(of(i), loaded(op.a), operand(op.b));
      case Prim::kDiv:
        return vdivps(of(i), loaded(op.a), operand(op.b));
      case Prim::kMax:
        return vmaxps(of(i), loaded(op.a), operand(op.b));
      case Prim::kMin:
        return vminps(of(i), loaded(op.a), operand(op.b));
      case Prim::kAnd:
        return vandps(of(i), loaded(op.a), operand(op.b));
      case Prim::kOr:
        return vorps(of(i), loaded(op.a), operand(op.b));
      case Prim::kXor:
        return vxorps(of(i), loaded(op.a), operand(op.b));
      case Prim::kSqrt:
        return vsqrtps(of(i), operand(op.a));
      case Prim::kRound:
        return round(i, 8);
      case Prim::kFloor:
        return round(i, 9);
      case Prim::kCeil:
        return round(i, 10);
      case Prim::kExponent:
        return exponent(i);
      case Prim::kLess:
        return compare(i, 17);  // LT, quiet
      case Prim::kUnordered:
        return compare(i, 3);
      case Prim::kFma:
        return fma(i);
      case Prim::kBlend:
        return blend(i);
    }
  }

  void round(size_t i, uint8_t mode) {
    if constexpr (kWide)
      vrndscaleps(of(i), operand(ops_[i].a), mode);
    else
      vroundps(of(i), operand(ops_[i].a), mode);
  }

  void exponent(size_t i) {
    vcvtps2dq(of(i), operand(ops_[i].a));
    vpslld(of(i), of(i), 23);
  }

  void compare(size_t i, uint8_t predicate) {
    const Vmm d = of(i);
    if constexpr (kWide) {
      vcmpps(k2, loaded(ops_[i].a), operand(ops_[i].b), predicate);
      vpternlogd(d | k2 | T_z, d, d, 0xff);
    } else {
      vcmpps(d, loaded(ops_[i].a), operand(ops_[i].b), predicate);
    }
  }

  void fma(size_t i) {
    const Operation& op = ops_[i];
    const Vmm d = of(i);
    move(d, op.a);
    if (is_constant(op.b) && !is_constant(op.c))
      vfmadd132ps(d, of(op.c), operand(op.b));
    else
      vfmadd213ps(d, loaded(op.b), operand(op.c));
  }

  void blend(size_t i) {
    const Operation& op = ops_[i];
    const Vmm d = of(i);
    if constexpr (kWide) {
      move(d, op.a);
      vpternlogd(d, loaded(op.b), operand(op.c), 0xca);  // a ? b : c
    } else {
      const Vmm c = loaded(op.c, second_spare());
      vblendvps(d, c, operand(op.b), loaded(op.a));
    }
  }

  void load_scalar(size_t i) { vbroadcastss(of(i), ptr[pointer(ops_[i].slot)]); }

  void load(uint16_t slot, const Vmm& to, bool masked) {
    const Xbyak::Address at = ptr[pointer(slot) + rdx + vector_ * kBytes];
    if (!masked)
      vmovups(to, at);
    else if constexpr (kWide)
      vmovups(to | k1 | T_z, at);
    else
      vmaskmovps(to, mask_register(), at);
  }

  void store(size_t out, size_t term, bool masked) {
    const Vmm from = loaded(static_cast<Term>(term));
    const Xbyak::Address at =
        ptr[pointer(static_cast<uint16_t>(inputs_ + out)) + rdx + vector_ * kBytes];
    if (!masked)
      vmovups(at, from);
    else if constexpr (kWide)
      vmovups(at | k1, from);
    else
      vmaskmovps(at, mask_register(), from);
  }

  void move(const Vmm& to, Term from) {
    if (is_constant(from))
      vbroadcastss(to, ptr[constant_at(from)]);
    else if (of(from).getIdx() != to.getIdx())
      vmovaps(to, of(from));
  }

  bool is_constant(Term t) const { return ops_[t].prim == Prim::kConstant; }
  Xbyak::RegExp constant_at(Term t) const { return rsi + kConstantBytes * ops_[t].slot; }
  // Scalars that stay come first, for all vectors; each vector has the others for itself.
  int pinned() const {
    if (!registers_.scalars_pinned) return 0;
    return static_cast<int>(std::ranges::count(ops_, Prim::kScalar, &Operation::prim));
  }
  int own() const { return registers_.count - pinned(); }
  Vmm of(size_t term) const {
    const int first = registers_.of[term];
    return Vmm(first < pinned() ? first : first + vector_ * own());
  }
  Vmm first_spare() const { return Vmm(spare_); }
  Vmm second_spare() const { return Vmm(spare_ + 1); }
  Vmm mask_register() const { return Vmm(15); }
  Xbyak::Reg64 held(uint16_t i) const { return Xbyak::Reg64(Xbyak::Operand::R8 + i); }

  // In a register, for operands that cannot be memory.
  Vmm loaded(Term t, const Vmm& spare) {
    if (!is_constant(t)) return of(t);
    vbroadcastss(spare, ptr[constant_at(t)]);
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
    mov(rax, ptr[rdi + 8 * slot]);
    return rax;
  }

  const std::vector<Operation>& ops_;
  const std::vector<Term>& outputs_;
  Registers registers_;
  uint16_t inputs_ = 0;
  int vector_ = 0;      // of a turn
  int spare_ = kTerms;  // the first of two
  Vmm register_;
  Xbyak::Address memory_ = ptr[rsi];
};

template <typename Vmm>
class Loop final : public ElementwiseLoop {
 public:
  Loop(const Expression& expression, Registers registers, std::string name)
      : generator_(expression, std::move(registers),
                   kBytesAround + kBytesPerOperation * expression.operations().size()) {
    name_ = std::move(name);
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
std::shared_ptr<const ElementwiseLoop> make_loop(const Expression& expression, std::string name) {
  Registers registers = allocate_registers(expression, Generator<Vmm>::kTerms);
  if (registers.count > Generator<Vmm>::kTerms) return nullptr;
  Xbyak::ClearError();
  auto loop = std::make_shared<Loop<Vmm>>(expression, std::move(registers), std::move(name));
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
  std::string name =
      message("elementwise_jit_", wide ? "avx512_" : "avx2_", nodes, nodes == 1 ? "op" : "ops");
  return wide ? make_loop<Xbyak::Zmm>(expression, std::move(name))
              : make_loop<Xbyak::Ymm>(expression, std::move(name));
}

std::vector<float> ElementwiseLoop::constant_pool(const Expression& expression) {
  std::vector<float> pool;
  for (uint32_t bits : expression.constants())
    pool.insert(pool.end(), kConstantBytes / sizeof(float), std::bit_cast<float>(bits));
  return pool;
}

}  // namespace pfrt::cpu

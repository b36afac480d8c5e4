// SPDX-License-Identifier: Apache-2.0
//
//   rdi  the arguments               rax  A, from chunk to chunk     rsi  B
//   r8   A of the row block          r9   C of the row block         rcx  chunks left
//   r12  bytes from chunk to chunk   r13  bytes to the second panel of B
//   r15  what is fetched next        rsp  totals that registers have no room for
#include "providers/cpu/jit/short_chain_microkernel.h"

#include <cstddef>
#include <cstdio>
#include <iterator>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/jit/code_pages.h"
#include "providers/cpu/jit/published.h"

namespace pfrt::cpu {
namespace {

using Blocks = ShortChainMicrokernel::Blocks;
constexpr int kPanel = ShortChainMicrokernel::kPanel;
constexpr int kChunk = ShortChainMicrokernel::kChunk;
constexpr int kLine = 64;    // bytes: 16 k of a row, a k of a panel
constexpr int kFetches = 2;  // lines of each panel for every chunk
constexpr size_t kCapacity = 192 << 10;
alignas(4096) uint8_t code_pages[2][2][kCapacity];  // of AVX2 and of AVX-512: chains of 8, of 16

class Generator final : public Xbyak::CodeGenerator {
 public:
  Generator(bool wide, int chain)
      : CodeGenerator(kCapacity, code_pages[wide][chain == kChunk]), wide_(wide), chain_(chain) {}

  const uint8_t* write(int rows, int vectors) {
    align(64);
    const uint8_t* const code = getCurr();
    rows_ = rows;
    vectors_ = vectors;
    product();
    return code;
  }

 private:
  int lanes() const { return wide_ ? 16 : 8; }
  int sums() const { return rows_ * vectors_; }
  bool two_panels() const { return vectors_ * lanes() > kPanel; }
  Xbyak::Xmm vector(int i) const {
    return wide_ ? static_cast<Xbyak::Xmm>(Xbyak::Zmm(i)) : static_cast<Xbyak::Xmm>(Xbyak::Ymm(i));
  }
  Xbyak::Xmm sum(int r, int v) const { return vector(r * vectors_ + v); }
  Xbyak::Xmm total(int r, int v) const { return vector(sums() + r * vectors_ + v); }
  // Two registers take turns, so that the next element is loaded while this one is multiplied.
  Xbyak::Xmm element(int r) const { return vector((wide_ ? 2 : 1) * sums() + r % 2); }
  Xbyak::Xmm column(int v) const { return vector((wide_ ? 2 : 1) * sums() + 2 + v); }
  Xbyak::Address total_on_stack(int r, int v) const {
    return ptr[rsp + static_cast<size_t>((r * vectors_ + v) * 4 * lanes())];
  }
  Xbyak::Address arg(size_t offset) { return qword[rdi + offset]; }
  // Of vector |v| of panels whose second is |panel| bytes from the first.
  Xbyak::Address of_vector(const Xbyak::Reg64& base, const Xbyak::Reg64& panel, int v, int line) {
    const int offset = v * lanes() % kPanel * 4 + line * kLine;
    const auto at = static_cast<size_t>(offset);
    return v * lanes() < kPanel ? ptr[base + at] : ptr[base + panel + at];
  }
  template <typename Fn>
  void each(Fn&& fn) {
    for (int r = 0; r < rows_; ++r)
      for (int v = 0; v < vectors_; ++v) fn(r, v);
  }
  void clear(const Xbyak::Xmm& x) {
    if (wide_)
      vpxord(x, x, x);
    else
      vxorps(x, x, x);
  }

  void add_to_total(int r, int v) {
    if (wide_) {
      vaddps(total(r, v), total(r, v), sum(r, v));
    } else {
      vaddps(sum(r, v), sum(r, v), total_on_stack(r, v));
      vmovups(total_on_stack(r, v), sum(r, v));
    }
  }

  void multiply(const Xbyak::Xmm& to, const Xbyak::Xmm& b, const Xbyak::Operand& a, bool first) {
    if (first)
      vmulps(to, b, a);
    else
      vfmadd231ps(to, b, a);
  }

  // Of 16 k. A chain's first product takes the place of the sum before it.
  void multiply_chunk() {
    for (int i = 0; i < kFetches; ++i) {
      prefetcht1(ptr[r15 + static_cast<size_t>(i * kLine)]);
      if (two_panels()) prefetcht1(ptr[r15 + r13 + static_cast<size_t>(i * kLine)]);
    }
    for (int k = 0; k < kChunk; ++k) {
      for (int v = 0; v < vectors_; ++v) vmovups(column(v), of_vector(rsi, r13, v, k));
      for (int r = 0; r < rows_; ++r) {
        const int offset = r * kLine + k * 4;
        const auto at = static_cast<size_t>(offset);
        // Of one vector alone the multiplication broadcasts the element itself.
        const bool broadcasts = wide_ && vectors_ == 1;
        if (!broadcasts) vbroadcastss(element(r), ptr[rax + at]);
        for (int v = 0; v < vectors_; ++v) {
          if (k % chain_ == 0) add_to_total(r, v);
          if (broadcasts)
            multiply(sum(r, v), column(v), ptr_b[rax + at], k % chain_ == 0);
          else
            multiply(sum(r, v), column(v), element(r), k % chain_ == 0);
        }
      }
    }
    add(r15, kFetches * kLine);
    add(rax, r12);
    add(rsi, kChunk * kLine);
  }

  void product() {
    const Xbyak::Reg64 saved[] = {rbp, r12, r13, r15};
    for (const Xbyak::Reg64& reg : saved) push(reg);
    mov(rbp, rsp);
    if (!wide_) {
      sub(rsp, static_cast<uint32_t>(sums() * 4 * lanes()));
      and_(rsp, static_cast<uint32_t>(-kLine));
    }
    mov(r8, arg(offsetof(Blocks, a)));
    mov(r9, arg(offsetof(Blocks, c)));
    mov(r12, arg(offsetof(Blocks, a_chunk)));
    shl(r12, 2);
    mov(r13, arg(offsetof(Blocks, b_panel)));
    shl(r13, 2);

    Xbyak::Label row_block, chunk;
    L(row_block);
    mov(r15, arg(offsetof(Blocks, ahead)));
    mov(rax, r8);
    mov(rsi, arg(offsetof(Blocks, b)));
    mov(rcx, arg(offsetof(Blocks, chunks)));
    cmp(r15, arg(offsetof(Blocks, ahead_end)));
    cmovae(r15, rsi);  // then it fetches what is read anyway
    each([&](int r, int v) {
      clear(sum(r, v));
      if (wide_)
        clear(total(r, v));
      else
        vmovups(total_on_stack(r, v), sum(r, v));
    });
    align(32);
    L(chunk);
    multiply_chunk();
    dec(rcx);
    jnz(chunk, T_NEAR);
    put_out();
    const auto rows_bytes = static_cast<uint32_t>(rows_ * kLine);
    add(r8, rows_bytes);
    add(r9, rows_bytes);
    mov(rax, arg(offsetof(Blocks, ahead)));
    cmp(rax, arg(offsetof(Blocks, ahead_end)));
    cmovb(rax, r15);
    mov(arg(offsetof(Blocks, ahead)), rax);
    dec(arg(offsetof(Blocks, row_blocks)));
    jg(row_block, T_NEAR);

    mov(arg(offsetof(Blocks, a)), r8);
    mov(arg(offsetof(Blocks, c)), r9);
    mov(rsp, rbp);
    for (size_t i = std::size(saved); i-- > 0;) pop(saved[i]);
    vzeroupper();
    ret();
  }

  void put_out() {
    Xbyak::Label store;
    mov(rax, arg(offsetof(Blocks, c_panel)));
    each([&](int r, int v) {
      if (wide_)
        vaddps(sum(r, v), total(r, v), sum(r, v));
      else
        vaddps(sum(r, v), sum(r, v), total_on_stack(r, v));
    });
    lea(rax, ptr[r9 + rax * 4]);
    cmp(arg(offsetof(Blocks, adds)), 0);
    je(store, T_NEAR);
    each([&](int r, int v) { vaddps(sum(r, v), sum(r, v), of_output(r, v)); });
    L(store);
    each([&](int r, int v) { vmovups(of_output(r, v), sum(r, v)); });
  }

  Xbyak::Address of_output(int r, int v) {
    const int offset = r * kLine + v * lanes() % kPanel * 4;
    const auto at = static_cast<size_t>(offset);
    return v * lanes() < kPanel ? ptr[r9 + at] : ptr[rax + at];
  }

  const bool wide_;
  const int chain_;
  int rows_ = 0, vectors_ = 0;
};

}  // namespace

// All of them, written together.
class ShortChainMicrokernelSet {
 public:
  // 7 x 2 sums and their totals fill 28 of 32 registers. 6 x 2 sums of AVX2 fill 12 of 16, so
  // their totals are on the stack.
  ShortChainMicrokernelSet(bool wide, int chain) {
    ShortChainMicrokernel& m = microkernel_;
    m.rows_ = wide ? 7 : 6;
    m.panels_ = wide ? 2 : 1;
    m.half_rows_ = wide ? 0 : 12;
    Xbyak::ClearError();
    Generator generator(wide, chain);
    const uint8_t* code[ShortChainMicrokernel::kMostPanels][ShortChainMicrokernel::kMostRows + 1] =
        {};
    const uint8_t* half[ShortChainMicrokernel::kMostRows + 1] = {};
    for (int64_t p = 0; p < m.panels_; ++p) {
      for (int64_t r = 0; r < m.rows_; ++r)
        code[p][r] = write(generator, r + 1, (p + 1) * (wide ? 1 : 2), m.code_[p][r]);
      code[p][m.rows_] = generator.getCurr();
    }
    for (int64_t r = 0; r < m.half_rows_; ++r)
      half[r] = write(generator, r + 1, 1, m.half_code_[r]);
    half[m.half_rows_] = generator.getCurr();
    written_ = seal(generator);
    for (int64_t p = 0; written_ && p < m.panels_; ++p)
      for (int64_t r = 0; r < m.rows_; ++r)
        publish_one(wide, chain, r + 1, p == 0 ? "1" : "2", code[p][r], code[p][r + 1]);
    for (int64_t r = 0; written_ && r < m.half_rows_; ++r)
      publish_one(wide, chain, r + 1, "half", half[r], half[r + 1]);
  }
  const ShortChainMicrokernel* get() const { return written_ ? &microkernel_ : nullptr; }

 private:
  static const uint8_t* write(Generator& generator, int64_t rows, int64_t vectors,
                              ShortChainMicrokernel::Code& to) {
    const uint8_t* const code = generator.write(static_cast<int>(rows), static_cast<int>(vectors));
    to = Xbyak::CastTo<ShortChainMicrokernel::Code>(code);
    return code;
  }
  // Nothing is allocated here: an exception would come after the pages were sealed, and they could
  // not be written again.
  static void publish_one(bool wide, int chain, int64_t rows, const char* panels,
                          const uint8_t* begin, const uint8_t* end) noexcept {
    char name[64];
    std::snprintf(name, sizeof name, "short_chains_%d_%s_%dx%s", chain, wide ? "avx512" : "avx2",
                  static_cast<int>(rows), panels);
    publish(name, begin, static_cast<size_t>(end - begin));
  }
  ShortChainMicrokernel microkernel_;
  bool written_ = false;  // and could be made executable
};

namespace {

template <bool wide, int chain>
const ShortChainMicrokernel* set() {
  static const ShortChainMicrokernelSet made(wide, chain);
  return made.get();
}

// PFRT_ISA may change from call to call.
template <int chain>
const ShortChainMicrokernel* usable() {
  const Isa have = isa();
  if (have < Isa::kAvx2) return nullptr;
  return have < Isa::kAvx512 ? set<false, chain>() : set<true, chain>();
}

}  // namespace

const ShortChainMicrokernel* ShortChainMicrokernel::get(int64_t chain) {
  return chain == kChunk ? usable<kChunk>() : usable<8>();
}

}  // namespace pfrt::cpu

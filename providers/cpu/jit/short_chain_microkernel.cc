// SPDX-License-Identifier: Apache-2.0
//
//   rdi  the arguments               rax  A, from chunk to chunk     rsi  B
//   r8   A of the row block          r9   C of the row block         rcx  chunks left
//   r12  bytes from chunk to chunk   r13  bytes to the second panel of B
//   r15  what is fetched next        rsp  totals that registers have no room for
#include "providers/cpu/jit/short_chain_microkernel.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <new>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/jit/code_pages.h"
#include "providers/cpu/jit/published.h"

namespace pfrt::cpu {
namespace {

using Blocks = ShortChainMicrokernel::Blocks;
constexpr int kPanel = ShortChainMicrokernel::kPanel;
constexpr int kChunk = ShortChainMicrokernel::kChunk;
constexpr int kLine = 64;               // bytes: 16 k of a row, a k of a panel
constexpr int kFetches = 2;             // lines of each panel for every chunk
constexpr size_t kCapacity = 12 << 10;  // of one piece of code

class Generator final : public Xbyak::CodeGenerator {
 public:
  Generator(uint8_t* pages, bool wide, int64_t chain, int64_t rows, int64_t vectors)
      : CodeGenerator(kCapacity, pages),
        wide_(wide),
        chain_(static_cast<int>(chain)),
        rows_(static_cast<int>(rows)),
        vectors_(static_cast<int>(vectors)) {
    product();
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
  // Address in vector |v| of panels of which the second is |panel| bytes from the first.
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

  // Multiplies 16 k. A chain's first product takes the place of the sum before it.
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
        // With one vector alone the multiplication broadcasts the element itself.
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
  const int chain_, rows_, vectors_;
};

}  // namespace

// The microkernel for a kind of vectors and a length of chains, and the pages of its code.
class ShortChainMicrokernelSet {
 public:
  // 7 x 2 sums and their totals fill 28 of 32 registers. 6 x 2 sums of AVX2 fill 12 of 16, so
  // their totals are on the stack.
  ShortChainMicrokernelSet(bool wide, int64_t chain) {
    ShortChainMicrokernel& m = microkernel_;
    m.wide_ = wide;
    m.chain_ = chain;
    m.rows_ = wide ? 7 : 6;
    m.panels_ = wide ? 2 : 1;
    m.half_rows_ = wide ? 0 : ShortChainMicrokernel::kMostRows;
  }
  const ShortChainMicrokernel& get() const { return microkernel_; }

  // Writes the code for one row, with which any number of rows can be done. Throws std::bad_alloc;
  // what was written by then stays.
  bool write_one_row() const {
    const ShortChainMicrokernel& m = microkernel_;
    return write(m, ShortChainMicrokernel::kOne, 1) &&
           (m.half_rows_ == 0 || write(m, ShortChainMicrokernel::kHalf, 1));
  }

  static LazyCode<Blocks>::Code write(const ShortChainMicrokernel& m,
                                      ShortChainMicrokernel::Form form, int64_t rows) {
    return m.code_[form][rows - 1].get([&] { return write_now(m, form, rows); });
  }

 private:
  static LazyCode<Blocks>::Code write_now(const ShortChainMicrokernel& m,
                                          ShortChainMicrokernel::Form form, int64_t rows) {
    alignas(4096) static uint8_t pages[2][2][ShortChainMicrokernel::kForms]
                                      [ShortChainMicrokernel::kMostRows][kCapacity];
    const int64_t whole = m.wide_ ? 1 : 2;  // vectors of a panel
    const int64_t vectors = form == ShortChainMicrokernel::kHalf  ? 1
                            : form == ShortChainMicrokernel::kTwo ? 2 * whole
                                                                  : whole;
    Xbyak::ClearError();
    Generator generator(pages[m.wide_][m.chain_ == kChunk][form][rows - 1], m.wide_, m.chain_, rows,
                        vectors);
    if (!seal(generator)) return nullptr;
    constexpr const char* kNames[] = {"1", "2", "half"};
    char name[64];
    std::snprintf(name, sizeof name, "short_chains_%d_%s_%dx%s", static_cast<int>(m.chain_),
                  m.wide_ ? "avx512" : "avx2", static_cast<int>(rows), kNames[form]);
    publish(name, generator.getCode(), generator.getSize());
    return generator.getCode<LazyCode<Blocks>::Code>();
  }

  ShortChainMicrokernel microkernel_;
};

void ShortChainMicrokernel::run_first(Form form, int64_t rows, Blocks& blocks) const {
  try {
    if (const auto code = ShortChainMicrokernelSet::write(*this, form, rows)) return code(&blocks);
  } catch (const std::bad_alloc&) {  // the next time, perhaps
  }
  const auto one_row = code_[form == kHalf ? kHalf : kOne][0].ready();
  const int64_t panels = form == kTwo ? 2 : 1;
  const Blocks all = blocks;
  for (int64_t p = 0; p < panels; ++p) {
    blocks = all;
    blocks.b += p * all.b_panel;
    blocks.c += p * all.c_panel;
    blocks.ahead = blocks.ahead_end = nullptr;
    blocks.row_blocks = std::max<int64_t>(all.row_blocks, 1) * rows;
    one_row(&blocks);
  }
  blocks.b = all.b;
  blocks.c -= (panels - 1) * all.c_panel;
  blocks.ahead = all.ahead;
  blocks.ahead_end = all.ahead_end;
}

namespace {

template <bool wide, int chain>
const ShortChainMicrokernel* set() {
  static const ShortChainMicrokernelSet made(wide, chain);
  static const bool written = made.write_one_row();
  return written ? &made.get() : nullptr;
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

// SPDX-License-Identifier: Apache-2.0
//
//   rdi  A                  r9   next offset of A        rsi  B, next chunk
//   rbx, r12, r13  terms of the chunk of A              r14, r15, rbp  their second tiles
//   r11  bytes from row to row of A      r8   from term to term     r10  to the second tile
//   rdx  chunks left        rax  bytes of a row of a tile   rcx  what is fetched next
//   tmm0-3 sums by tile row and column, tmm4-5 of A, tmm6-7 of B
#include "providers/cpu/jit/tile_microkernel.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <span>

#include "providers/cpu/isa/amx.h"
#include "providers/cpu/jit/code_pages.h"
#include "providers/cpu/jit/published.h"
#include "providers/cpu/jit/tile_config.h"

namespace pfrt::cpu {
namespace {

struct TermPair {
  int a, b;  // terms
};

// Products that are summed before the product of the first terms, by the number of terms. Each
// shares a term with the one before. A sum is rounded at each step according to its size. These
// sums are small, so that only the roundings of the last product matter.
constexpr TermPair kOfTwo[] = {{1, 0}, {0, 1}};
constexpr TermPair kOfThree[] = {{2, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 2}};
constexpr std::span<const TermPair> kSmall[] = {{}, kOfTwo, kOfThree};
constexpr TermPair kLargest[] = {{0, 0}};

// The code is in pages of the library itself. They need no destructor, which could run while a
// thread is still in a run at the end of the process.
constexpr size_t kCapacity = 32768;
alignas(4096) uint8_t code_pages[kCapacity];

using Blocks = TileMicrokernel::Blocks;
constexpr int kLinesAhead = 2;  // for each product of tiles

size_t at_tile(int index) { return static_cast<size_t>(index * TileMicrokernel::kTileBytes); }

class Generator final : public Xbyak::CodeGenerator {
 public:
  Generator() : CodeGenerator(kCapacity, code_pages) {}

  const uint8_t* write_product(int terms, int rows, int cols) {
    align(64);
    const uint8_t* const code = getCurr();
    product(terms, rows, cols);
    return code;
  }

 private:
  Xbyak::Tmm sum(int row, int col) const { return Xbyak::Tmm(2 * row + col); }
  Xbyak::Tmm tile_a(int row) const { return Xbyak::Tmm(4 + row); }
  Xbyak::Tmm tile_b(int col) const { return Xbyak::Tmm(6 + col); }

  template <typename Fn>
  void each(int rows, int cols, Fn&& fn) {
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < cols; ++c) fn(r, c);
  }

  // All chunks, the products of |pairs|. The stack holds the step ahead and the arguments.
  void sweep(std::span<const TermPair> pairs, int terms, int rows, int cols) {
    const Xbyak::Reg64 of_a[2][TileMicrokernel::kMostTerms] = {{rbx, r12, r13}, {r14, r15, rbp}};
    int used = 0;
    for (const TermPair& pair : pairs) used = std::max(used, pair.a + 1);
    mov(rdi, ptr[rsp + 8]);
    mov(r9, ptr[rdi + offsetof(Blocks, a_chunks)]);
    mov(rsi, ptr[rdi + offsetof(Blocks, b)]);
    mov(rdx, ptr[rdi + offsetof(Blocks, chunks)]);
    mov(rdi, ptr[rdi + offsetof(Blocks, a)]);
    Xbyak::Label loop;
    align(32);
    L(loop);
    mov(of_a[0][0], ptr[r9]);
    add(of_a[0][0], rdi);
    for (int p = 1; p < used; ++p) lea(of_a[0][p], ptr[of_a[0][p - 1] + r8]);
    for (int p = 0; rows == 2 && p < used; ++p) lea(of_a[1][p], ptr[of_a[0][p] + r10]);
    TermPair held{-1, -1};
    for (const TermPair& pair : pairs) {
      each(rows, cols, [&](int r, int c) {
        if (c == 0 && pair.a != held.a) tileloadd(tile_a(r), ptr[of_a[r][pair.a] + r11]);
        if (r == 0 && pair.b != held.b)
          tileloadd(tile_b(c), ptr[rsi + rax + at_tile(pair.b * cols + c)]);
        tdpbf16ps(sum(r, c), tile_a(r), tile_b(c));
        for (int line = 0; line < kLinesAhead; ++line) {
          prefetcht1(ptr[rcx]);
          add(rcx, ptr[rsp]);
        }
      });
      held = pair;
    }
    add(r9, 8);
    add(rsi, static_cast<uint32_t>(at_tile(terms * cols)));
    dec(rdx);
    jnz(loop, T_NEAR);
  }

  void product(int terms, int rows, int cols) {
    const Xbyak::Reg64 saved[] = {rbx, rbp, r12, r13, r14, r15};
    for (const Xbyak::Reg64& reg : saved) push(reg);
    push(rdi);
    mov(r11, ptr[rdi + offsetof(Blocks, a_row_bytes)]);
    mov(r8, ptr[rdi + offsetof(Blocks, a_term_bytes)]);
    mov(rcx, ptr[rdi + offsetof(Blocks, ahead)]);
    push(qword[rdi + offsetof(Blocks, ahead_step)]);
    mov(r10, r11);
    shl(r10, 4);
    mov(eax, 64);
    each(rows, cols, [&](int r, int c) { tilezero(sum(r, c)); });
    if (terms > 1) sweep(kSmall[terms - 1], terms, rows, cols);
    sweep(kLargest, terms, rows, cols);
    pop(rdi);
    pop(rdi);
    mov(rcx, ptr[rdi + offsetof(Blocks, c)]);
    mov(r8, ptr[rdi + offsetof(Blocks, c_row_bytes)]);
    mov(r9, ptr[rdi + offsetof(Blocks, c_tile_bytes)]);
    for (int r = 0; r < rows; ++r) {
      tilestored(ptr[rcx + r8], sum(r, 0));
      if (cols == 2) {
        lea(r10, ptr[rcx + r9]);
        tilestored(ptr[r10 + r8], sum(r, 1));
      }
      if (r + 1 == rows) break;
      mov(r11, r8);
      shl(r11, 4);
      add(rcx, r11);
    }
    for (size_t i = std::size(saved); i-- > 0;) pop(saved[i]);
    ret();
  }
};

}  // namespace

// All of them, written together.
class TileMicrokernelSet {
 public:
  TileMicrokernelSet() {
    Xbyak::ClearError();
    Generator generator;
    const uint8_t* code[4 * TileMicrokernel::kMostTerms + 1];  // and where the last one ends
    for (int terms = 1; terms <= TileMicrokernel::kMostTerms; ++terms)
      for (int i = 0; i < 4; ++i) {
        const uint8_t*& at = code[4 * (terms - 1) + i];
        at = generator.write_product(terms, i / 2 + 1, i % 2 + 1);
        microkernels_[terms - 1].code_[i / 2][i % 2] = Xbyak::CastTo<TileMicrokernel::Code>(at);
      }
    code[4 * TileMicrokernel::kMostTerms] = generator.getCurr();
    written_ = seal(generator);
    // Nothing is allocated here: an exception would come after the pages were sealed, and they
    // could not be written again.
    for (int i = 0; written_ && i < 4 * TileMicrokernel::kMostTerms; ++i) {
      char name[64];
      std::snprintf(name, sizeof name, "tile_matmul_%d_terms_%dx%d", i / 4 + 1, i / 2 % 2 + 1,
                    i % 2 + 1);
      publish(name, code[i], static_cast<size_t>(code[i + 1] - code[i]));
    }
  }
  const TileMicrokernel* get(int terms) const {
    return written_ ? &microkernels_[terms - 1] : nullptr;
  }

 private:
  TileMicrokernel microkernels_[TileMicrokernel::kMostTerms];
  bool written_ = false;  // and could be made executable
};

TileMicrokernel::Scope::Scope(const TileMicrokernel&) {
  TileConfig config;
  for (int tile = 0; tile < TileConfig::kTiles; ++tile) config.set(tile, kSide, kTileBytes / kSide);
  config.load();
}
TileMicrokernel::Scope::~Scope() { TileConfig::release(); }

int64_t TileMicrokernel::bytes_ahead(int terms, int64_t row_tiles, int64_t col_tiles,
                                     int64_t chunks) {
  const auto products = static_cast<int64_t>(kSmall[terms - 1].size()) + 1;
  return kLinesAhead * 64 * products * row_tiles * col_tiles * chunks;
}

const TileMicrokernel* TileMicrokernel::of_terms(int terms) {
  if (!amx_usable()) return nullptr;
  static const TileMicrokernelSet set;
  return set.get(terms);
}

}  // namespace pfrt::cpu

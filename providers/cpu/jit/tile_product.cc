// SPDX-License-Identifier: Apache-2.0
//
//   rdi  A, next chunk      rsi  B, next chunk           rdx  chunks left
//   rcx  C                  r10  C, second tile row      r8   bytes of a row of C
//   rax  bytes of a row of a tile
//   with a B that lies as an image does:
//   rsi  B's origin         r9   next offset             rbx, r12, r13  planes of the chunk
//   r11  bytes from row to row                           r14  from plane to plane
//   tmm0-3 sums by tile row and column, tmm4-5 of A, tmm6-7 of B
#include "providers/cpu/jit/tile_product.h"

#include <cstddef>
#include <iterator>
#include <span>

#include "providers/cpu/isa/amx.h"
#include "providers/cpu/jit/code_pages.h"

namespace pfrt::cpu {
namespace {

struct Term {
  int a, b;  // planes
};

// Smallest products first, each sharing a plane with the one before.
constexpr Term kSix[] = {{2, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 2}, {0, 0}};

// 64 bytes that ldtilecfg takes: palette 1, eight tiles of 16 rows of 64 bytes.
struct alignas(64) Palette {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(Palette) == 64);
constexpr Palette kPalette;

// In the library's own pages, which go when it goes and need no destructor: a thread may still be
// in a run when the process ends.
constexpr size_t kCapacity = 8192;
alignas(4096) uint8_t code_pages[kCapacity];

constexpr int kTileBytes = TileProduct::kTileBytes, kChunkBytes = TileProduct::kPlanes * kTileBytes;

class Generator final : public Xbyak::CodeGenerator {
 public:
  Generator() : CodeGenerator(kCapacity, code_pages) {}

  struct Functions {
    const uint8_t *products[2][2], *spread_products[2][2], *configure, *release;
  };
  // False where the code cannot be made executable.
  bool write(std::span<const Term> terms, Functions& out) {
    for (int rows = 1; rows <= 2; ++rows)
      for (int cols = 1; cols <= 2; ++cols) {
        out.products[rows - 1][cols - 1] = getCurr();
        product(terms, rows, cols);
        align(64);
        out.spread_products[rows - 1][cols - 1] = getCurr();
        spread_product(terms, rows, cols);
        align(64);
      }
    out.configure = getCurr();
    ldtilecfg(ptr[rdi]);
    ret();
    out.release = getCurr();
    tilerelease();
    ret();
    return seal(*this);
  }

 private:
  Xbyak::Tmm sum(int row, int col) const { return Xbyak::Tmm(2 * row + col); }
  Xbyak::Tmm tile_a(int row) const { return Xbyak::Tmm(4 + row); }
  Xbyak::Tmm tile_b(int col) const { return Xbyak::Tmm(6 + col); }
  Xbyak::Address of_c(int row, int col) {
    return row == 0 ? ptr[rcx + r8 + 64 * col] : ptr[r10 + r8 + 64 * col];
  }

  void begin(int rows, int cols) {
    mov(eax, 64);
    if (rows == 2) {
      mov(r10, r8);
      shl(r10, 4);
      add(r10, rcx);
    }
    each(rows, cols, [&](int r, int c) { tilezero(sum(r, c)); });
  }

  template <typename Fn>
  void each(int rows, int cols, Fn&& fn) {
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < cols; ++c) fn(r, c);
  }

  // One chunk; load_b(plane, tile) makes the instruction that loads a tile of B.
  template <typename LoadB, typename After>
  void chunk(std::span<const Term> terms, int rows, int cols, LoadB&& load_b, After&& after) {
    Term held{-1, -1};
    for (const Term& term : terms) {
      for (int r = 0; r < rows; ++r) {
        if (term.a != held.a)
          tileloadd(tile_a(r), ptr[rdi + rax + (term.a * rows + r) * kTileBytes]);
        for (int c = 0; c < cols; ++c) {
          if (r == 0 && term.b != held.b) load_b(term.b, c);
          tdpbf16ps(sum(r, c), tile_a(r), tile_b(c));
          after();
        }
      }
      held = term;
    }
    add(rdi, rows * kChunkBytes);
  }

  void store(int rows, int cols) {
    each(rows, cols, [&](int r, int c) { tilestored(of_c(r, c), sum(r, c)); });
  }

  void product(std::span<const Term> terms, int rows, int cols) {
    Xbyak::Label loop;
    begin(rows, cols);
    align(32);
    L(loop);
    const auto load_b = [&](int plane, int c) {
      tileloadd(tile_b(c), ptr[rsi + rax + (plane * cols + c) * kTileBytes]);
    };
    chunk(terms, rows, cols, load_b, [] {});
    add(rsi, cols * kChunkBytes);
    dec(rdx);
    jnz(loop, T_NEAR);
    store(rows, cols);
    ret();
  }

  void spread_product(std::span<const Term> terms, int rows, int cols) {
    using Spread = TileProduct::Spread;
    Xbyak::Label loop;
    const Xbyak::Reg64 planes[] = {rbx, r12, r13}, saved[] = {rbx, r12, r13, r14, r15};
    for (const Xbyak::Reg64& reg : saved) push(reg);
    mov(rsi, ptr[rdi + offsetof(Spread, b)]);
    mov(rdx, ptr[rdi + offsetof(Spread, chunks)]);
    mov(rcx, ptr[rdi + offsetof(Spread, c)]);
    mov(r8, ptr[rdi + offsetof(Spread, ldc_bytes)]);
    mov(r11, ptr[rdi + offsetof(Spread, row_bytes)]);
    mov(r14, ptr[rdi + offsetof(Spread, plane_bytes)]);
    begin(rows, cols);
    mov(r9, ptr[rdi + offsetof(Spread, offsets)]);
    mov(rdi, ptr[rdi + offsetof(Spread, a)]);
    align(32);
    L(loop);
    mov(rbx, ptr[r9]);
    add(rbx, rsi);
    lea(r12, ptr[rbx + r14]);
    lea(r13, ptr[r12 + r14]);
    mov(r15, ptr[r9 + 8]);
    add(r15, rsi);
    const auto load_b = [&](int plane, int c) {
      tileloadd(tile_b(c), ptr[planes[plane] + r11 + 64 * c]);
    };
    // Rows lie too far apart for the processor to see what comes next: the planes of the next chunk
    // are fetched meanwhile, some rows after each product.
    const int products = static_cast<int>(terms.size()) * rows * cols;
    const int lines = int(TileProduct::kPlanes * TileProduct::kSide);
    int done = 0, fetched = 0;
    chunk(terms, rows, cols, load_b, [&] {
      for (++done; fetched < lines * done / products; ++fetched) {
        for (int c = 0; c < cols; ++c) prefetcht0(ptr[r15 + 64 * c]);
        add(r15, r11);
      }
    });
    add(r9, 8);
    dec(rdx);
    jnz(loop, T_NEAR);
    store(rows, cols);
    for (size_t i = std::size(saved); i-- > 0;) pop(saved[i]);
    ret();
  }
};

template <typename Function>
Function as_function(const uint8_t* code) {
  return reinterpret_cast<Function>(reinterpret_cast<uintptr_t>(code));
}

}  // namespace

TileProduct::Scope::Scope(const TileProduct& product) : product_(product) {
  product.configure_(&kPalette);
}

const TileProduct* TileProduct::of_three_planes() {
  if (!amx_usable()) return nullptr;
  static const TileProduct product = [] {
    TileProduct made;
    Xbyak::ClearError();
    Generator::Functions code{};
    if (!Generator().write(kSix, code)) return made;
    for (int i = 0; i < 4; ++i)
      made.code_[i / 2][i % 2] = as_function<Code>(code.products[i / 2][i % 2]);
    for (int i = 0; i < 4; ++i)
      made.spread_code_[i / 2][i % 2] = as_function<SpreadCode>(code.spread_products[i / 2][i % 2]);
    made.configure_ = as_function<void (*)(const void*)>(code.configure);
    made.release_ = as_function<void (*)()>(code.release);
    return made;
  }();
  return product.release_ != nullptr ? &product : nullptr;
}

}  // namespace pfrt::cpu

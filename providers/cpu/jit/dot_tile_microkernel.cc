// SPDX-License-Identifier: Apache-2.0
//
//   rbx  A                  r9   next offset of A           rdx  chunks left, rbp  parts left
//   r12, r13  tiles of A    r11  bytes from row to row      r10  to the next part
//   rsi, r14, r15, rdi      panels of B                     r8   to the next part
//   rax  bytes of a row of a tile of B                      rcx  what is fetched next
//   tmm0-3 sums, tmm4-5 of A, tmm6-7 of B
// The stack holds the step ahead, the bytes between tiles of A, the parts and the arguments.
#include "providers/cpu/jit/dot_tile_microkernel.h"

#include <cstddef>
#include <cstdio>
#include <iterator>

#include "providers/cpu/isa/amx.h"
#include "providers/cpu/jit/code_pages.h"
#include "providers/cpu/jit/published.h"
#include "providers/cpu/jit/tile_config.h"

namespace pfrt::cpu {
namespace {

constexpr int kMostPanels = DotTileMicrokernel::kMostPanels;
constexpr int kLineBytes = 64;  // a step of a panel
constexpr int kLinesAhead = 2;  // for each product of tiles
constexpr size_t kCapacity = 16384;
alignas(4096) uint8_t code_pages[kCapacity];

using Blocks = DotTileMicrokernel::Blocks;

constexpr int most_panels(int rows) { return kMostPanels / rows; }

class Generator final : public Xbyak::CodeGenerator {
 public:
  Generator() : CodeGenerator(kCapacity, code_pages) {}

  const uint8_t* write(int rows, int panels, bool signed_rows) {
    align(64);
    const uint8_t* const code = getCurr();
    rows_ = rows, panels_ = panels, signed_rows_ = signed_rows;
    product();
    return code;
  }

 private:
  Xbyak::Tmm sum(int row, int panel) const { return Xbyak::Tmm(2 * row + panel); }
  Xbyak::Tmm tile_a(int row) const { return Xbyak::Tmm(4 + row); }
  Xbyak::Tmm tile_b(int panel) const { return Xbyak::Tmm(6 + panel % 2); }
  Xbyak::Reg64 panel(int p) const {
    const Xbyak::Reg64 regs[kMostPanels] = {rsi, r14, r15, rdi};
    return regs[p];
  }
  Xbyak::Address arg(size_t offset) { return qword[rdi + offset]; }

  template <typename Fn>
  void each(Fn&& fn) {
    for (int r = 0; r < rows_; ++r)
      for (int p = 0; p < panels_; ++p) fn(r, p);
  }

  void product() {
    const Xbyak::Reg64 saved[] = {rbx, rbp, r12, r13, r14, r15};
    for (const Xbyak::Reg64& reg : saved) push(reg);
    load_sums();
    push(rdi);
    push(arg(offsetof(Blocks, parts)));
    push(arg(offsetof(Blocks, a_tile)));
    push(arg(offsetof(Blocks, ahead_step)));
    mov(rbx, arg(offsetof(Blocks, a)));
    mov(r9, arg(offsetof(Blocks, offsets)));
    mov(r11, arg(offsetof(Blocks, a_row)));
    mov(rdx, arg(offsetof(Blocks, chunks)));
    mov(rcx, arg(offsetof(Blocks, ahead)));
    mov(r10, arg(offsetof(Blocks, depth)));
    shl(r10, 2);
    mov(r8, r10);
    shl(r8, 4);
    mov(rsi, arg(offsetof(Blocks, b)));
    mov(rax, arg(offsetof(Blocks, b_panel)));
    for (int p = 1; p < panels_; ++p) lea(panel(p), ptr[panel(p - 1) + rax]);
    mov(eax, kLineBytes);
    Xbyak::Label chunk, part;
    align(32);
    L(chunk);
    mov(r12, ptr[r9]);
    add(r12, rbx);
    if (rows_ == 2) {
      mov(r13, ptr[rsp + 8]);
      add(r13, r12);
    }
    mov(rbp, ptr[rsp + 16]);
    align(32);
    L(part);
    multiply();
    dec(rbp);
    jnz(part, T_NEAR);
    add(r9, 8);
    dec(rdx);
    jnz(chunk, T_NEAR);
    mov(rdi, ptr[rsp + 24]);
    add(rsp, 32);
    of_sums([&](const Xbyak::Tmm& tile, const Xbyak::Address& at) { tilestored(at, tile); });
    for (size_t i = std::size(saved); i-- > 0;) pop(saved[i]);
    ret();
  }

  void multiply() {
    each([&](int r, int p) {
      const Xbyak::Reg64& row = r == 0 ? r12 : r13;
      if (p == 0) tileloadd(tile_a(r), ptr[row + r11]);
      if (r == 0) tileloadd(tile_b(p), ptr[panel(p) + rax]);
      if (signed_rows_)
        tdpbssd(sum(r, p), tile_a(r), tile_b(p));
      else
        tdpbusd(sum(r, p), tile_a(r), tile_b(p));
      for (int line = 0; line < kLinesAhead; ++line) {
        prefetcht1(ptr[rcx]);
        add(rcx, ptr[rsp]);
      }
    });
    add(r12, r10);
    if (rows_ == 2) add(r13, r10);
    for (int p = 0; p < panels_; ++p) add(panel(p), r8);
  }

  void load_sums() {
    Xbyak::Label from_c, done;
    mov(rsi, arg(offsetof(Blocks, start)));
    test(rsi, rsi);
    jz(from_c, T_NEAR);
    mov(rdx, arg(offsetof(Blocks, start_panel)));
    shl(rdx, 2);
    xor_(eax, eax);  // rows do not differ
    for (int p = 0; p < panels_; ++p) {
      for (int r = 0; r < rows_; ++r) tileloadd(sum(r, p), ptr[rsi + rax]);
      add(rsi, rdx);
    }
    jmp(done, T_NEAR);
    L(from_c);
    of_sums([&](const Xbyak::Tmm& tile, const Xbyak::Address& at) { tileloadd(tile, at); });
    L(done);
  }

  // Wants the arguments in |rdi|.
  template <typename Fn>
  void of_sums(Fn&& fn) {
    mov(rsi, arg(offsetof(Blocks, c)));
    mov(rax, arg(offsetof(Blocks, c_row)));
    mov(rdx, arg(offsetof(Blocks, c_panel)));
    mov(rcx, arg(offsetof(Blocks, c_tile)));
    for (int r = 0; r < rows_; ++r) {
      if (r > 0) lea(rsi, ptr[rsi + rcx * 4]);
      mov(r8, rsi);
      lea(r9, ptr[rax * 4]);
      for (int p = 0; p < panels_; ++p) {
        if (p > 0) lea(r8, ptr[r8 + rdx * 4]);
        fn(sum(r, p), ptr[r8 + r9]);
      }
    }
  }

  int rows_ = 0, panels_ = 0;  // rows of tiles
  bool signed_rows_ = false;
};

}  // namespace

// All of them, written together.
class DotTileMicrokernelSet {
 public:
  DotTileMicrokernelSet() {
    Xbyak::ClearError();
    Generator generator;
    each([&](int is_signed, int rows, int panels) {
      const uint8_t* const code = generator.write(rows, panels, is_signed != 0);
      microkernel_.code_[is_signed][rows - 1][panels - 1] =
          Xbyak::CastTo<DotTileMicrokernel::Code>(code);
      sizes_[is_signed][rows - 1][panels - 1] = static_cast<size_t>(generator.getCurr() - code);
    });
    written_ = seal(generator);
    if (written_) publish_all();
  }
  const DotTileMicrokernel* get() const { return written_ ? &microkernel_ : nullptr; }

 private:
  template <typename Fn>
  static void each(Fn&& fn) {
    for (int is_signed = 0; is_signed < 2; ++is_signed)
      for (int rows = 1; rows <= 2; ++rows)
        for (int panels = 1; panels <= most_panels(rows); ++panels) fn(is_signed, rows, panels);
  }
  // Nothing is allocated here: an exception would come after the pages were sealed, and they could
  // not be written again.
  void publish_all() const noexcept {
    each([&](int is_signed, int rows, int panels) {
      char name[64];
      std::snprintf(name, sizeof name, "dot_tiles_%s_%dx%d", is_signed != 0 ? "int8" : "uint8",
                    rows, panels);
      publish(name, Xbyak::CastTo<const void*>(microkernel_.code_[is_signed][rows - 1][panels - 1]),
              sizes_[is_signed][rows - 1][panels - 1]);
    });
  }

  DotTileMicrokernel microkernel_;
  size_t sizes_[2][2][kMostPanels] = {};
  bool written_ = false;  // and could be made executable
};

DotTileMicrokernel::Scope::~Scope() {
  if (depth_ != 0) TileConfig::release();
}

void DotTileMicrokernel::Scope::shape(int64_t first, int64_t second, int64_t depth) {
  if (first == first_ && second == second_ && depth == depth_) return;
  first_ = first, second_ = second, depth_ = depth;
  TileConfig config;
  for (int i = 0; i < 2; ++i) {
    config.set(i, first, kLineBytes);
    config.set(2 + i, second, kLineBytes);
    config.set(4 + i, i == 0 ? first : second, 4 * depth);
    config.set(6 + i, depth, kLineBytes);
  }
  config.load();
}

void DotTileMicrokernel::run(Scope& scope, int64_t first, int64_t second, int64_t panels,
                             bool signed_rows, const Blocks& blocks) const {
  // A single tile of rows takes what is set up, but if sums of a third panel need other tiles.
  const bool kept = second == 0 && panels <= kMostPanels / 2 && scope.first_ == first;
  const int64_t other = second > 0 ? second : kept ? scope.second_ : first;
  scope.shape(first, other, blocks.depth);
  code_[signed_rows][second > 0][panels - 1](&blocks);
}

int64_t DotTileMicrokernel::bytes_ahead(int64_t row_tiles, int64_t panels, int64_t products_of_k) {
  return int64_t{kLinesAhead * kLineBytes} * row_tiles * panels * products_of_k;
}

const DotTileMicrokernel* DotTileMicrokernel::get() {
  if (!amx_int8_usable()) return nullptr;
  static const DotTileMicrokernelSet set;
  return set.get();
}

}  // namespace pfrt::cpu

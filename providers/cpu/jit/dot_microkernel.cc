// SPDX-License-Identifier: Apache-2.0
//
//   rdi  the arguments      r9   next offset of A           rsi  B
//   rax, r10, r11, r12  rows 0, 3, 6, 9 of A                rbx  bytes from row to row
//   rcx  steps left in the chunk    rdx  chunks left
//   r13  bytes to the second panel of B, r14 to the fourth
#include "providers/cpu/jit/dot_microkernel.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <iterator>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/jit/code_pages.h"
#include "providers/cpu/jit/published.h"

namespace pfrt::cpu {
namespace {

constexpr int kPanel = DotMicrokernel::kPanel;
constexpr int kStep = DotMicrokernel::kStepBytes;
constexpr int kLine = kPanel * kStep;  // bytes
constexpr int kSumBytes = sizeof(int32_t);
constexpr int kTogether = 4;    // steps of a turn of the loop
constexpr int kRowsOfBase = 3;  // rows that one base register reaches
constexpr int kFetched = 1024;  // bytes ahead of each panel that few rows read
constexpr size_t kCapacity = 512 << 10;
constexpr int kInstructions = 6;  // DotInstructions
constexpr int kPlain = 2;         // of int16
alignas(4096) uint8_t code_pages[kInstructions + kPlain][kCapacity];

int page_of(DotInstructions instructions, bool plain) {
  return static_cast<int>(instructions) + (plain ? kInstructions - 1 : 0);
}

using Blocks = DotMicrokernel::Blocks;

class Generator final : public Xbyak::CodeGenerator {
 public:
  Generator(DotInstructions instructions, bool plain)
      : CodeGenerator(kCapacity, code_pages[page_of(instructions, plain)]),
        wide_(instructions == DotInstructions::kByteEvex512 ||
              instructions == DotInstructions::kInt16x512),
        bytes_(instructions >= DotInstructions::kByteVex256),
        crosswise_(!bytes_ && !plain),
        encoding_(instructions == DotInstructions::kByteVex256 ? Xbyak::VexEncoding
                                                               : Xbyak::EvexEncoding) {}

  bool bytes() const { return bytes_; }
  bool crosswise() const { return crosswise_; }
  bool requantizes() const { return !bytes_ && !wide_; }
  // Sums fill most of the registers: 12 x 2 of 32, or 6 or 4 x 1 panels of two vectors of 16.
  int most_rows() const { return wide_ ? 12 : crosswise_ ? 4 : 6; }
  int most_panels(int rows) const {
    if (wide_) return rows <= 4 ? 4 : 2;
    return rows == 1 ? 4 : rows == 2 ? 2 : 1;
  }

  const uint8_t* write(int rows, int panels, bool flipped) {
    align(64);
    const uint8_t* const code = getCurr();
    rows_ = rows;
    vectors_ = panels * kPanel / lanes();
    flipped_ = flipped;
    product();
    return code;
  }

 private:
  int lanes() const { return wide_ ? 16 : 8; }
  Xbyak::Xmm vector(int i) const {
    return wide_ ? static_cast<Xbyak::Xmm>(Xbyak::Zmm(i)) : static_cast<Xbyak::Xmm>(Xbyak::Ymm(i));
  }
  // Rows stay in registers while columns come one by one, or columns while rows do.
  bool holds_rows() const { return rows_ <= vectors_; }
  int sums() const { return rows_ * vectors_; }
  int held() const { return (holds_rows() ? rows_ : vectors_) * at_once(); }
  int at_once() const { return crosswise_ ? 2 : 1; }  // steps
  Xbyak::Xmm sum(int row, int v) const { return vector(row * vectors_ + v); }
  Xbyak::Xmm hold(int i) const { return vector(sums() + i); }
  Xbyak::Xmm passing(int i) const { return vector(sums() + held() + i); }
  Xbyak::Xmm signs() const { return vector(wide_ ? 31 : 15); }

  Xbyak::Address arg(size_t offset) { return qword[rdi + offset]; }

  template <typename Fn>
  void each(Fn&& fn) {
    for (int r = 0; r < rows_; ++r)
      for (int v = 0; v < vectors_; ++v) fn(r, v);
  }

  int bases() const { return (rows_ + kRowsOfBase - 1) / kRowsOfBase; }
  Xbyak::RegExp of_row(int r, int step) {
    const Xbyak::Reg64 base[] = {rax, r10, r11, r12};
    const Xbyak::Reg64& b = base[r / kRowsOfBase];
    const int offset = step * kStep;
    const auto at = static_cast<size_t>(offset);
    const int strides = r % kRowsOfBase;
    return strides == 0 ? b + at : b + rbx * strides + at;
  }
  // |panel| and |three| are the bytes to the second panel and to the fourth.
  Xbyak::RegExp of_vector(const Xbyak::Reg64& base, const Xbyak::Reg64& panel,
                          const Xbyak::Reg64& three, int v, int displacement = 0) {
    const int offset = v * lanes() % kPanel * kStep + displacement;
    const auto at = static_cast<size_t>(offset);
    switch (v * lanes() / kPanel) {
      case 0:
        return base + at;
      case 1:
        return base + panel + at;
      case 2:
        return base + panel * 2 + at;
      default:
        return base + three + at;
    }
  }

  void load_row(const Xbyak::Xmm& to, int r, int step) {
    vpbroadcastd(to, ptr[of_row(r, step)]);
    if (!flipped_) return;
    if (wide_)
      vpxord(to, to, signs());
    else
      vpxor(to, to, signs());
  }
  void load_columns(const Xbyak::Xmm& to, int v, int step) {
    if (wide_)
      vmovdqu32(to, ptr[of_vector(rsi, r13, r14, v, step * kLine)]);
    else
      vmovdqu(to, ptr[of_vector(rsi, r13, r14, v, step * kLine)]);
  }
  void fetch(int v, int step) {
    if (v * lanes() % kPanel == 0)
      prefetcht0(ptr[of_vector(rsi, r13, r14, v, step * kLine + kFetched)]);
  }

  void multiply(int step) {
    if (bytes_)
      multiply_bytes(step);
    else if (crosswise_)
      multiply_crosswise(step);
    else
      multiply_pairs(step);
  }

  void multiply_bytes(int step) {
    const auto turn = [&](int i) { return passing(wide_ ? i % 2 : 0); };
    if (holds_rows()) {
      for (int r = 0; r < rows_; ++r) load_row(hold(r), r, step);
      for (int v = 0; v < vectors_; ++v) {
        fetch(v, step);
        load_columns(turn(v), v, step);
        for (int r = 0; r < rows_; ++r) vpdpbusd(sum(r, v), hold(r), turn(v), encoding_);
      }
      return;
    }
    for (int v = 0; v < vectors_; ++v) load_columns(hold(v), v, step);
    for (int r = 0; r < rows_; ++r) {
      load_row(turn(r), r, step);
      for (int v = 0; v < vectors_; ++v) vpdpbusd(sum(r, v), turn(r), hold(v), encoding_);
    }
  }

  // |product| may be |row| or |columns|.
  void add_pairs(int r, int v, const Xbyak::Xmm& row, const Xbyak::Xmm& columns,
                 const Xbyak::Xmm& product) {
    vpmaddwd(product, row, columns);
    vpaddd(sum(r, v), sum(r, v), product);
  }
  void multiply_pairs(int step) {
    if (holds_rows()) {
      for (int r = 0; r < rows_; ++r) load_row(hold(r), r, step);
      for (int v = 0; v < vectors_; ++v) {
        fetch(v, step);
        load_columns(passing(0), v, step);
        for (int r = 0; r < rows_; ++r)
          add_pairs(r, v, hold(r), passing(0), passing(r + 1 < rows_ ? 1 : 0));
      }
      return;
    }
    for (int v = 0; v < vectors_; ++v) load_columns(hold(v), v, step);
    for (int r = 0; r < rows_; ++r) {
      load_row(passing(0), r, step);
      for (int v = 0; v < vectors_; ++v)
        add_pairs(r, v, passing(0), hold(v), passing(v + 1 < vectors_ ? 1 : 0));
    }
  }

  // Lines of columns are exchanged already. |x| and |y| may be |row0| and |row1|.
  void add_crosswise(int r, int v, const Xbyak::Xmm& row0, const Xbyak::Xmm& row1,
                     const Xbyak::Xmm& columns0, const Xbyak::Xmm& columns1, const Xbyak::Xmm& x,
                     const Xbyak::Xmm& y) {
    vpaddw(x, row0, columns0);
    vpaddw(y, row1, columns1);
    vpmaddwd(x, x, y);
    vpaddd(sum(r, v), sum(r, v), x);
  }
  void multiply_crosswise(int step) {
    if (holds_rows()) {
      for (int i = 0; i < 2 * rows_; ++i) load_row(hold(i), i / 2, step + i % 2);
      for (int v = 0; v < vectors_; ++v) {
        for (int i = 0; i < 2; ++i) fetch(v, step + i);
        for (int i = 0; i < 2; ++i) load_columns(passing(i), v, step + i);
        for (int r = 0; r < rows_; ++r)
          add_crosswise(r, v, hold(2 * r), hold(2 * r + 1), passing(0), passing(1), passing(2),
                        passing(3));
      }
      return;
    }
    for (int i = 0; i < 2 * vectors_; ++i) load_columns(hold(i), i / 2, step + i % 2);
    for (int r = 0; r < rows_; ++r) {
      for (int i = 0; i < 2; ++i) load_row(passing(i), r, step + i);
      for (int v = 0; v < vectors_; ++v) {
        const int to = v + 1 < vectors_ ? 2 : 0;
        add_crosswise(r, v, passing(0), passing(1), hold(2 * v), hold(2 * v + 1), passing(to),
                      passing(to + 1));
      }
    }
  }

  void advance(int steps) {
    const Xbyak::Reg64 base[] = {rax, r10, r11, r12};
    for (int i = 0; i < bases(); ++i) add(base[i], static_cast<uint32_t>(kStep * steps));
    add(rsi, static_cast<uint32_t>(kLine * steps));
  }

  void multiply_chunk() {
    const Xbyak::Reg64 base[] = {rax, r10, r11, r12};
    Xbyak::Label next, single, one, done;
    mov(rax, ptr[r9]);
    add(rax, arg(offsetof(Blocks, a)));
    for (int i = 1; i < bases(); ++i) {
      lea(base[i], ptr[base[i - 1] + rbx * 2]);
      add(base[i], rbx);
    }
    mov(rcx, arg(offsetof(Blocks, depth)));
    sub(rcx, kTogether);
    jl(single, T_NEAR);
    L(next);
    for (int step = 0; step < kTogether; step += at_once()) multiply(step);
    advance(kTogether);
    sub(rcx, kTogether);
    jge(next, T_NEAR);
    L(single);
    add(rcx, kTogether);
    jz(done, T_NEAR);
    L(one);
    multiply(0);
    advance(at_once());
    sub(rcx, static_cast<uint32_t>(at_once()));
    jnz(one, T_NEAR);
    L(done);
  }

  void product() {
    const Xbyak::Reg64 saved[] = {rbx, r12, r13, r14};
    for (const Xbyak::Reg64& reg : saved) push(reg);
    if (flipped_) {
      mov(eax, 0x80808080);
      vmovd(Xbyak::Xmm(signs().getIdx()), eax);
      vpbroadcastd(signs(), Xbyak::Xmm(signs().getIdx()));
    }
    Xbyak::Label row_block, chunk;
    L(row_block);
    fetch_next();
    mov(r9, arg(offsetof(Blocks, offsets)));
    mov(rsi, arg(offsetof(Blocks, b)));
    mov(r13, arg(offsetof(Blocks, b_panel)));
    lea(r14, ptr[r13 + r13 * 2]);
    load_sums();
    mov(rbx, arg(offsetof(Blocks, a_row)));
    mov(rdx, arg(offsetof(Blocks, chunks)));
    L(chunk);
    multiply_chunk();
    add(r9, 8);
    dec(rdx);
    jnz(chunk, T_NEAR);
    store_sums();
    move_on();
    dec(arg(offsetof(Blocks, row_blocks)));
    jg(row_block, T_NEAR);
    for (size_t i = std::size(saved); i-- > 0;) pop(saved[i]);
    vzeroupper();
    ret();
  }

  void fetch_next() {
    Xbyak::Label line, none;
    mov(rcx, arg(offsetof(Blocks, next_lines)));
    test(rcx, rcx);
    jz(none);
    mov(rax, arg(offsetof(Blocks, next)));
    L(line);
    prefetcht1(ptr[rax]);
    add(rax, 64);
    dec(rcx);
    jnz(line);
    mov(arg(offsetof(Blocks, next)), rax);
    L(none);
  }
  void load_sums() {
    Xbyak::Label from_c, done;
    mov(rax, arg(offsetof(Blocks, start)));
    test(rax, rax);
    jz(from_c, T_NEAR);
    mov(r10, arg(offsetof(Blocks, start_panel)));
    shl(r10, 2);
    lea(r11, ptr[r10 + r10 * 2]);
    for (int v = 0; v < vectors_; ++v) vmovups(sum(0, v), ptr[of_vector(rax, r10, r11, v)]);
    for (int r = 1; r < rows_; ++r)
      for (int v = 0; v < vectors_; ++v) vmovaps(sum(r, v), sum(0, v));
    mov(rax, arg(offsetof(Blocks, row_start)));
    test(rax, rax);
    jz(done, T_NEAR);
    for (int r = 0; r < rows_; ++r) {
      const int offset = r * kSumBytes;
      vpbroadcastd(passing(0), ptr[rax + static_cast<size_t>(offset)]);
      for (int v = 0; v < vectors_; ++v) vpaddd(sum(r, v), sum(r, v), passing(0));
    }
    add(rax, static_cast<uint32_t>(rows_ * kSumBytes));
    mov(arg(offsetof(Blocks, row_start)), rax);
    jmp(done, T_NEAR);
    L(from_c);
    of_c([&](int r, int v, const Xbyak::Address& at) { vmovups(sum(r, v), at); });
    L(done);
  }
  void store_sums() {
    Xbyak::Label sums, done;
    if (requantizes()) {
      mov(rax, arg(offsetof(Blocks, out)));
      test(rax, rax);
      jz(sums, T_NEAR);
      store_bytes();
      jmp(done, T_NEAR);
    }
    L(sums);
    of_c([&](int r, int v, const Xbyak::Address& at) { vmovups(at, sum(r, v)); });
    L(done);
  }
  // Rows in pairs: packing puts four channels of each into a lane, and |order| the rows apart.
  void store_bytes() {
    const Xbyak::Ymm order(15);
    const auto member = [&](size_t offset) { return ptr[r11 + offset]; };
    mov(r10, arg(offsetof(Blocks, scales)));
    mov(r11, arg(offsetof(Blocks, bytes)));
    mov(r12, arg(offsetof(Blocks, out_row)));
    mov(rcx, arg(offsetof(Blocks, out_panel)));
    vmovdqu(order, member(offsetof(DotMicrokernel::Bytes, order)));
    for (int v = 0; v < vectors_; v += 2) {
      for (int r = 0; r < rows_; ++r) {
        for (int i = v; i < v + 2; ++i) {
          const int scale = i * lanes() * kSumBytes;
          vcvtdq2ps(sum(r, i), sum(r, i));
          vmulps(sum(r, i), sum(r, i), ptr[r10 + static_cast<size_t>(scale)]);
          vcvtps2dq(sum(r, i), sum(r, i));
        }
        vpackssdw(sum(r, v), sum(r, v), sum(r, v + 1));
        vpaddsw(sum(r, v), sum(r, v), member(offsetof(DotMicrokernel::Bytes, zeros)));
      }
      mov(rdx, rax);
      for (int r = 0; r < rows_; r += 2) {
        const bool two = r + 1 < rows_;
        const Xbyak::Ymm bytes(sum(r, v).getIdx());
        vpackuswb(bytes, bytes, sum(two ? r + 1 : r, v));
        vpxor(bytes, bytes, member(offsetof(DotMicrokernel::Bytes, flips)));
        vpermd(bytes, order, bytes);
        vmovdqu(ptr[rdx], Xbyak::Xmm(bytes.getIdx()));
        if (!two) continue;
        vextracti128(ptr[rdx + r12], bytes, 1);
        lea(rdx, ptr[rdx + r12 * 2]);
      }
      if (v + 2 < vectors_) add(rax, rcx);
    }
    imul(rdx, r12, rows_);
    add(arg(offsetof(Blocks, out)), rdx);
    mov(rax, arg(offsetof(Blocks, c_row)));
    imul(rax, rax, rows_ * kSumBytes);
    add(rax, arg(offsetof(Blocks, c)));
  }
  // Leaves |rax| at the row after the last one of C.
  template <typename Fn>
  void of_c(Fn&& fn) {
    mov(rax, arg(offsetof(Blocks, c)));
    mov(r10, arg(offsetof(Blocks, c_panel)));
    shl(r10, 2);
    lea(r11, ptr[r10 + r10 * 2]);
    mov(rcx, arg(offsetof(Blocks, c_row)));
    shl(rcx, 2);
    for (int r = 0; r < rows_; ++r) {
      for (int v = 0; v < vectors_; ++v) fn(r, v, ptr[of_vector(rax, r10, r11, v)]);
      add(rax, rcx);
    }
  }
  void move_on() {
    mov(arg(offsetof(Blocks, c)), rax);
    imul(rax, rbx, rows_);
    add(arg(offsetof(Blocks, a)), rax);
  }

  const bool wide_, bytes_, crosswise_;
  const Xbyak::PreferredEncoding encoding_;
  int rows_ = 0, vectors_ = 0;
  bool flipped_ = false;
};

}  // namespace

DotMicrokernel::Bytes::Bytes(int32_t zero, bool is_signed) {
  std::fill(std::begin(zeros), std::end(zeros),
            static_cast<int16_t>(is_signed ? zero + 128 : zero));
  std::fill(std::begin(flips), std::end(flips), static_cast<uint8_t>(is_signed ? 128 : 0));
  for (int32_t i = 0; i < 8; ++i) order[i] = i / 2 + i % 2 * 4;
}

// All of them, written together.
class DotMicrokernelSet {
 public:
  DotMicrokernelSet(DotInstructions instructions, bool plain) {
    Xbyak::ClearError();
    Generator generator(instructions, plain);
    microkernel_.bytes_ = generator.bytes();
    microkernel_.crosswise_ = generator.crosswise();
    microkernel_.requantizes_ = generator.requantizes();
    microkernel_.rows_ = generator.most_rows();
    for (int flipped = 0; flipped <= microkernel_.bytes_; ++flipped)
      for (int rows = 1; rows <= microkernel_.rows_; ++rows) {
        microkernel_.panels_[rows - 1] = generator.most_panels(rows);
        for (int panels = 1; panels <= generator.most_panels(rows); ++panels) {
          const uint8_t* const code = generator.write(rows, panels, flipped != 0);
          microkernel_.code_[flipped][panels - 1][rows - 1] =
              Xbyak::CastTo<DotMicrokernel::Code>(code);
          sizes_[flipped][panels - 1][rows - 1] = static_cast<size_t>(generator.getCurr() - code);
        }
      }
    written_ = seal(generator);
    if (written_) publish_all(static_cast<int>(instructions), plain);
  }
  const DotMicrokernel* get() const { return written_ ? &microkernel_ : nullptr; }

 private:
  // Nothing is allocated here: an exception would come after the pages were sealed, and they could
  // not be written again.
  void publish_all(int instructions, bool plain) const noexcept {
    constexpr const char* kNames[kInstructions] = {"",        "int16_256", "int16_512",
                                                   "vex_256", "evex_256",  "evex_512"};
    for (int flipped = 0; flipped < 2; ++flipped)
      for (int panels = 1; panels <= DotMicrokernel::kMostPanels; ++panels)
        for (int rows = 1; rows <= DotMicrokernel::kMostRows; ++rows) {
          const DotMicrokernel::Code code = microkernel_.code_[flipped][panels - 1][rows - 1];
          if (code == nullptr) continue;
          char name[64];
          std::snprintf(name, sizeof name, "dot_%s_%dx%d%s", kNames[instructions], rows, panels,
                        flipped != 0 ? "_flipped"
                        : plain      ? "_plain"
                                     : "");
          publish(name, Xbyak::CastTo<const void*>(code), sizes_[flipped][panels - 1][rows - 1]);
        }
  }

  DotMicrokernel microkernel_;
  size_t sizes_[2][DotMicrokernel::kMostPanels][DotMicrokernel::kMostRows] = {};
  bool written_ = false;  // and could be made executable
};

namespace {

template <DotInstructions instructions, bool plain = false>
const DotMicrokernel* set() {
  static const DotMicrokernelSet made(instructions, plain);
  return made.get();
}

}  // namespace

// PFRT_ISA may change from call to call.
const DotMicrokernel* DotMicrokernel::get() {
  switch (dot_instructions()) {
    case DotInstructions::kInt16x256:
      return set<DotInstructions::kInt16x256>();
    case DotInstructions::kInt16x512:
      return set<DotInstructions::kInt16x512>();
    case DotInstructions::kByteVex256:
      return set<DotInstructions::kByteVex256>();
    case DotInstructions::kByteEvex256:
      return set<DotInstructions::kByteEvex256>();
    case DotInstructions::kByteEvex512:
      return set<DotInstructions::kByteEvex512>();
    case DotInstructions::kNone:
      break;
  }
  return nullptr;
}

const DotMicrokernel* DotMicrokernel::plain() {
  switch (dot_instructions()) {
    case DotInstructions::kInt16x256:
      return set<DotInstructions::kInt16x256, true>();
    case DotInstructions::kInt16x512:
      return set<DotInstructions::kInt16x512, true>();
    default:
      return get();
  }
}

}  // namespace pfrt::cpu

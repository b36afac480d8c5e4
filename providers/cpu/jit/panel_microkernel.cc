// SPDX-License-Identifier: Apache-2.0
//
//   rdi  the arguments      r9   next offset of A           rsi  B
//   rax, r10, r11, r12  rows 0, 3, 6, 9 of A                rbx  bytes from row to row
//   rcx  k left in the chunk        r8   chunks left in the chain       rdx  chains left
//   r13  bytes to the second panel of B                     r15  what is fetched next
//   r12  with more than two panels, and so with few rows: bytes to the fourth
//   r14  where the next chain's sums go, from rsp on: kSlots times all sums
// Where B is not packed there is one chunk:
//   r13  bytes from row to row of B     r8  A's row block     rdx  row blocks left
//   r9, r14  C, bytes from row to row   r15, rbp  |start|, bytes from row to row
#include "providers/cpu/jit/panel_microkernel.h"

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

constexpr size_t kCapacity = 12 << 10;  // of one piece of code

using Blocks = PanelMicrokernel::Blocks;
constexpr int kPanel = PanelMicrokernel::kPanel;
constexpr int kTogether = PanelMicrokernel::kAheadDepth;  // k of a turn of the loop
constexpr int kRowsOfBase = 3;  // rows that one base register reaches: 0, 1 and 2 strides from it
constexpr int kSlots = 4;       // chains whose sums are kept on the stack before they are added
constexpr int kLine = 64;       // bytes
constexpr int kFetched = 2048;  // bytes ahead of a single stream
static_assert(PanelMicrokernel::kAheadLine * sizeof(float) == kLine);

class Generator final : public Xbyak::CodeGenerator {
 public:
  enum class Kind { kRows, kPackedRows, kStreams, kPlain };

  Generator(uint8_t* pages, bool wide, bool bf16, int64_t rows, int64_t vectors, Kind kind)
      : CodeGenerator(kCapacity, pages),
        wide_(wide),
        bf16_(bf16),
        streams_(kind == Kind::kStreams),
        plain_(kind == Kind::kPlain),
        k_step_(kind == Kind::kPackedRows ? kPanel : 1),
        rows_(static_cast<int>(rows)),
        vectors_(static_cast<int>(vectors)) {
    if (plain_)
      plain_product();
    else
      product();
  }

 private:
  int lanes() const { return wide_ ? 16 : 8; }
  Xbyak::Xmm vector(int i) const {
    return wide_ ? static_cast<Xbyak::Xmm>(Xbyak::Zmm(i)) : static_cast<Xbyak::Xmm>(Xbyak::Ymm(i));
  }
  Xbyak::Xmm sum(int row, int v) const { return vector(row * vectors_ + v); }
  Xbyak::Xmm column(int v) const { return vector(rows_ * vectors_ + v); }
  // Two registers take turns, so that the next element is loaded while this one is multiplied.
  Xbyak::Xmm element(int row) const { return vector((rows_ + 1) * vectors_ + row % 2); }

  Xbyak::Address arg(size_t offset) { return qword[rdi + offset]; }

  template <typename Fn>
  void each(Fn&& fn) {
    for (int r = 0; r < rows_; ++r)
      for (int v = 0; v < vectors_; ++v) fn(r, v);
  }

  // Vectors of a panel follow each other; one of AVX-512 is a panel. |panel| and |three| are the
  // bytes to the second and to the fourth.
  Xbyak::Address of_vector(const Xbyak::Reg64& base, const Xbyak::Reg64& panel,
                           const Xbyak::Reg64& three, int v, int displacement = 0) {
    const int offset = v * lanes() % kPanel * 4 + displacement;
    const auto at = static_cast<size_t>(offset);
    switch (v * lanes() / kPanel) {
      case 0:
        return ptr[base + at];
      case 1:
        return ptr[base + panel + at];
      case 2:
        return ptr[base + panel * 2 + at];
      default:
        return ptr[base + three + at];
    }
  }
  bool many_panels() const { return vectors_ * lanes() > PanelMicrokernel::kMostPanels * kPanel; }

  Xbyak::Address of_slot(int r, int v) {
    return ptr[r14 + static_cast<size_t>((r * vectors_ + v) * 4 * lanes())];
  }
  uint32_t slot_bytes() const { return static_cast<uint32_t>(rows_ * vectors_ * 4 * lanes()); }

  int bases() const { return (rows_ + kRowsOfBase - 1) / kRowsOfBase; }

  Xbyak::RegExp of_row(int r, int k) {
    const Xbyak::Reg64 base[] = {rax, r10, r11, r12};
    const Xbyak::Reg64& b = base[r / kRowsOfBase];
    const int strides = r % kRowsOfBase;
    const auto at = static_cast<size_t>(k * k_step_) * sizeof(float);
    return strides == 0 ? b + at : b + rbx * strides + at;
  }
  // Whether the multiplication broadcasts an element itself, as it does for one vector alone: a
  // register of its own would take a second operation for each element.
  bool broadcasts() const { return wide_ && vectors_ == 1; }

  // Multiplies all rows by a step of k. |fresh|: a chain begins, and the sums of the chain before
  // it are stored to their slot between the multiplications. Many stores at once would delay what
  // follows.
  void multiply(int k, bool fresh = false) {
    if (streams_ && vectors_ * lanes() > kPanel) return multiply_streams(k, fresh);
    if (streams_) prefetcht0(ptr[rsi + static_cast<size_t>(k * kPanel * 4 + kFetched)]);
    for (int v = 0; v < vectors_; ++v)
      vmovups(column(v), of_vector(rsi, r13, r12, v, plain_ ? 0 : k * kPanel * 4));
    if (plain_) add(rsi, r13);
    for (int r = 0; r < rows_; ++r) {
      if (!broadcasts()) vbroadcastss(element(r), ptr[of_row(r, k)]);
      for (int v = 0; v < vectors_; ++v) {
        if (fresh) vmovups(of_slot(r, v), sum(r, v));
        if (broadcasts())
          multiply_broadcast(sum(r, v), column(v), ptr_b[of_row(r, k)], fresh);
        else if (fresh)
          set_product(sum(r, v), element(r), column(v));
        else
          add_product(r, v);
      }
    }
  }

  void multiply_broadcast(const Xbyak::Xmm& to, const Xbyak::Xmm& b, const Xbyak::Address& a,
                          bool fresh) {
    if (bf16_) {
      if (fresh) vpxord(to, to, to);
      vdpbf16ps(to, b, a);
    } else if (fresh) {
      vmulps(to, b, a);
    } else {
      vfmadd231ps(to, b, a);
    }
  }

  void set_product(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b) {
    if (bf16_) {
      vpxord(to, to, to);
      vdpbf16ps(to, a, b);
    } else {
      vmulps(to, a, b);
    }
  }

  void add_product(int r, int v) {
    if (bf16_)
      vdpbf16ps(sum(r, v), element(r), column(v));
    else
      vfmadd231ps(sum(r, v), element(r), column(v));
  }

  // Elements stay in registers; columns are loaded one at a time.
  void multiply_streams(int k, bool fresh) {
    const int at = rows_ * vectors_;
    for (int r = 0; r < rows_; ++r) vbroadcastss(vector(at + 1 + r), ptr[of_row(r, k)]);
    for (int v = 0; v < vectors_; ++v) {
      vmovups(vector(at), of_vector(rsi, r13, r12, v, k * kPanel * 4));
      for (int r = 0; r < rows_; ++r) {
        if (fresh) {
          vmovups(of_slot(r, v), sum(r, v));
          vmulps(sum(r, v), vector(at + 1 + r), vector(at));
        } else {
          vfmadd231ps(sum(r, v), vector(at + 1 + r), vector(at));
        }
      }
    }
  }

  int fetches() const { return streams_ || plain_ ? 0 : std::max(1, vectors_ * lanes() / kPanel); }

  void several(bool fresh) {
    for (int i = 0; i < fetches(); ++i) prefetcht1(ptr[r15 + static_cast<size_t>(i * kLine)]);
    for (int k = 0; k < kTogether; ++k) multiply(k, fresh && k == 0);
    add(r15, static_cast<uint32_t>(fetches() * kLine));
    advance(kTogether);
  }

  void advance(int k) {
    const Xbyak::Reg64 base[] = {rax, r10, r11, r12};
    for (int i = 0; i < bases(); ++i) add(base[i], static_cast<uint32_t>(4 * k_step_ * k));
    if (!plain_) add(rsi, static_cast<uint32_t>(4 * kPanel * k));
  }

  // |rcx| becomes the k of the chunk.
  void find_chunk() {
    mov(rax, ptr[r9]);
    shl(rax, 2);
    add(rax, arg(offsetof(Blocks, a)));
    find_bases();
  }

  void find_bases() {
    const Xbyak::Reg64 base[] = {rax, r10, r11, r12};
    for (int i = 1; i < bases(); ++i) {
      lea(base[i], ptr[base[i - 1] + rbx * 2]);
      add(base[i], rbx);
    }
    mov(rcx, arg(offsetof(Blocks, depth)));
  }

  // Multiplies the |rcx| k that are left of a chunk.
  void multiply_chunk() {
    Xbyak::Label next, single, one, done;
    sub(rcx, kTogether);
    jl(single, T_NEAR);
    L(next);
    several(false);
    sub(rcx, kTogether);
    jge(next, T_NEAR);
    L(single);
    add(rcx, kTogether);
    jz(done, T_NEAR);
    L(one);
    multiply(0);
    advance(1);
    dec(rcx);
    jnz(one, T_NEAR);
    L(done);
  }

  void clear_sums() {
    each([&](int r, int v) {
      if (wide_)
        vpxord(sum(r, v), sum(r, v), sum(r, v));
      else
        vxorps(sum(r, v), sum(r, v), sum(r, v));
    });
  }

  // Adds the chains in the slots, the last one first.
  void add_slots() {
    Xbyak::Label next, done;
    cmp(r14, rsp);
    je(done, T_NEAR);
    L(next);
    sub(r14, slot_bytes());
    each([&](int r, int v) { vaddps(sum(r, v), sum(r, v), of_slot(r, v)); });
    cmp(r14, rsp);
    jne(next, T_NEAR);
    L(done);
  }

  void product() {
    const Xbyak::Reg64 saved[] = {rbx, rbp, r12, r13, r14, r15};
    for (const Xbyak::Reg64& reg : saved) push(reg);
    mov(rbp, rsp);
    sub(rsp, kSlots * slot_bytes());
    and_(rsp, static_cast<uint32_t>(-kLine));
    mov(r14, rsp);

    Xbyak::Label row_block, chunk, rest, room, shallow, last;
    L(row_block);
    mov(rbx, arg(offsetof(Blocks, a_row)));
    shl(rbx, 2);
    mov(r9, arg(offsetof(Blocks, offsets)));
    mov(rsi, arg(offsetof(Blocks, b)));
    mov(r13, arg(offsetof(Blocks, b_panel)));
    shl(r13, 2);
    if (many_panels()) lea(r12, ptr[r13 + r13 * 2]);
    mov(r15, arg(offsetof(Blocks, ahead)));
    cmp(r15, arg(offsetof(Blocks, ahead_end)));
    cmovae(r15, rsi);  // then it fetches what is read anyway
    mov(rdx, arg(offsetof(Blocks, chunks)));
    if (!streams_) fetch_lines_of_c();
    clear_sums();
    mov(r8, arg(offsetof(Blocks, chain)));
    sub(rdx, r8);
    L(chunk);
    find_chunk();
    L(rest);
    multiply_chunk();
    add(r9, 8);
    dec(r8);
    jnz(chunk, T_NEAR);
    test(rdx, rdx);
    jz(last, T_NEAR);

    lea(rcx, ptr[rsp + kSlots * slot_bytes()]);
    cmp(r14, rcx);
    jne(room, T_NEAR);
    add_slots();
    L(room);
    mov(r8, arg(offsetof(Blocks, chain)));
    sub(rdx, r8);
    find_chunk();
    sub(rcx, kTogether);
    jl(shallow, T_NEAR);
    several(true);
    add(r14, slot_bytes());
    jmp(rest, T_NEAR);
    L(shallow);
    add(rcx, kTogether);
    each([&](int r, int v) { vmovups(of_slot(r, v), sum(r, v)); });
    clear_sums();
    add(r14, slot_bytes());
    jmp(rest, T_NEAR);

    L(last);
    add_slots();
    put_out();
    move_on();
    dec(arg(offsetof(Blocks, row_blocks)));
    jg(row_block, T_NEAR);
    mov(rsp, rbp);
    for (size_t i = std::size(saved); i-- > 0;) pop(saved[i]);
    vzeroupper();
    ret();
  }

  // A small product takes little longer than what is done once for each block of rows.
  void plain_product() {
    const Xbyak::Reg64 saved[] = {rbx, rbp, r12, r13, r14, r15};
    for (const Xbyak::Reg64& reg : saved) push(reg);
    const auto load = [&](const Xbyak::Reg64& to, size_t offset, bool bytes) {
      mov(to, arg(offset));
      if (bytes) shl(to, 2);
    };
    load(rbx, offsetof(Blocks, a_row), true);
    load(r13, offsetof(Blocks, b_row), true);
    load(r8, offsetof(Blocks, a), false);
    load(rdx, offsetof(Blocks, row_blocks), false);
    load(r9, offsetof(Blocks, c), false);
    load(r14, offsetof(Blocks, c_row), true);
    load(r15, offsetof(Blocks, start), false);
    load(rbp, offsetof(Blocks, start_row), true);
    test(r15, r15);
    cmovz(r15, r9);
    cmovz(rbp, r14);

    Xbyak::Label row_block;
    L(row_block);
    mov(rsi, arg(offsetof(Blocks, b)));
    mov(rax, r8);
    find_bases();
    clear_sums();
    multiply_chunk();
    for (int r = 0; r < rows_; ++r) {
      const auto at = [&](const Xbyak::Reg64& base, int v) {
        return ptr[base + static_cast<size_t>(v * 4 * lanes())];
      };
      for (int v = 0; v < vectors_; ++v) vaddps(sum(r, v), sum(r, v), at(r15, v));
      for (int v = 0; v < vectors_; ++v) vmovups(at(r9, v), sum(r, v));
      add(r15, rbp);
      add(r9, r14);
    }
    imul(rax, rbx, rows_);
    add(r8, rax);
    dec(rdx);
    jg(row_block, T_NEAR);

    mov(arg(offsetof(Blocks, a)), r8);
    mov(arg(offsetof(Blocks, c)), r9);
    cmp(qword[rdi + offsetof(Blocks, start)], 0);
    cmovz(r15, arg(offsetof(Blocks, start)));
    mov(arg(offsetof(Blocks, start)), r15);
    for (size_t i = std::size(saved); i-- > 0;) pop(saved[i]);
    vzeroupper();
    ret();
  }

  // Stores reach the cache in program order. Without this, stores of sums to the stack would wait
  // for lines of C that come from memory.
  void fetch_lines_of_c() {
    mov(rax, arg(offsetof(Blocks, c)));
    mov(r10, arg(offsetof(Blocks, c_row)));
    mov(r11, arg(offsetof(Blocks, c_panel)));
    for (int r = 0; r < rows_; ++r) {
      prefetchw(ptr[rax]);
      if (vectors_ * lanes() > kPanel) prefetchw(ptr[rax + r11 * 4]);
      if (r + 1 < rows_) lea(rax, ptr[rax + r10 * 4]);
    }
  }

  void put_out() {
    mov(rcx, arg(offsetof(Blocks, c)));
    mov(rbx, arg(offsetof(Blocks, c_row)));
    shl(rbx, 2);
    mov(r13, arg(offsetof(Blocks, c_panel)));
    shl(r13, 2);
    mov(rax, arg(offsetof(Blocks, start)));
    mov(r11, arg(offsetof(Blocks, start_row)));
    shl(r11, 2);
    mov(r10d, kPanel * 4);  // from panel to panel
    test(rax, rax);
    cmovz(rax, rcx);
    cmovz(r11, rbx);
    cmovz(r10, r13);
    if (many_panels()) lea(r12, ptr[r10 + r10 * 2]);
    for (int r = 0; r < rows_; ++r) {
      for (int v = 0; v < vectors_; ++v) vaddps(sum(r, v), sum(r, v), of_vector(rax, r10, r12, v));
      if (r + 1 < rows_) add(rax, r11);
    }
    if (many_panels()) lea(r12, ptr[r13 + r13 * 2]);
    for (int r = 0; r < rows_; ++r) {
      for (int v = 0; v < vectors_; ++v) vmovups(of_vector(rcx, r13, r12, v), sum(r, v));
      if (r + 1 < rows_) add(rcx, rbx);
    }
  }

  // |rcx| was left at the last row of C; |rbx| and |r11| are the bytes from row to row of it and
  // of |start|.
  void move_on() {
    mov(rax, arg(offsetof(Blocks, ahead)));
    cmp(rax, arg(offsetof(Blocks, ahead_end)));
    cmovb(rax, r15);
    mov(arg(offsetof(Blocks, ahead)), rax);
    imul(rax, arg(offsetof(Blocks, a_row)), 4 * rows_);
    add(arg(offsetof(Blocks, a)), rax);
    add(rcx, rbx);
    mov(arg(offsetof(Blocks, c)), rcx);
    xor_(edx, edx);
    mov(rax, arg(offsetof(Blocks, start)));
    imul(rcx, r11, rows_);
    test(rax, rax);
    cmovnz(rdx, rcx);
    add(rax, rdx);
    mov(arg(offsetof(Blocks, start)), rax);
  }

  const bool wide_, bf16_, streams_, plain_;
  const int k_step_;  // elements of A from k to k
  const int rows_, vectors_;
};

}  // namespace

// The microkernel for a kind of vectors and elements, and the pages of its code.
class PanelMicrokernelSet {
 public:
  // 6 x 2 sums fill 12 of 16 registers, 12 x 2 fill 24 of 32; 2 x 4 leave room for four columns.
  // Half panels of AVX2 have 12 x 1. Streams have 1 x 8, 2 x 6, 3 x 4 and R x 2, or R x 4; dot
  // products of pairs have none.
  PanelMicrokernelSet(bool wide, bool pairs) {
    PanelMicrokernel& m = microkernel_;
    m.wide_ = wide;
    m.pairs_ = pairs;
    m.rows_ = wide ? 12 : 6;
    m.rows_of_two_ = wide ? 12 : 2;
    m.half_rows_ = wide ? 0 : PanelMicrokernel::kMostRows;
    m.stream_rows_ = pairs ? 0 : wide ? 4 : PanelMicrokernel::kMostStreamRows;
    for (int64_t rows = 1; rows <= m.stream_rows_; ++rows) {
      const int64_t most = PanelMicrokernel::kMostStreams;
      m.streams_[rows - 1] = wide ? most : std::max<int64_t>(most + 1 - rows, 1);
    }
    m.packed_rows_ = pairs ? 0 : std::min(m.rows_, PanelMicrokernel::kMostPackedRows);
  }
  const PanelMicrokernel& get() const { return microkernel_; }

  // Writes the code for one row, with which any number of rows can be done. Throws std::bad_alloc;
  // what was written by then stays.
  bool write_one_row() const {
    const PanelMicrokernel& m = microkernel_;
    return write(m, PanelMicrokernel::kOne, 1) &&
           (m.half_rows_ == 0 || write(m, PanelMicrokernel::kHalf, 1)) &&
           (m.packed_rows_ == 0 || write(m, PanelMicrokernel::kPacked, 1)) &&
           (!m.takes_plain() || (write(m, PanelMicrokernel::kUnpacked, 1) &&
                                 write(m, PanelMicrokernel::kUnpackedHalf, 1)));
  }

  static PanelMicrokernel::Form of_one_row(PanelMicrokernel::Form form) {
    switch (form) {
      case PanelMicrokernel::kHalf:
      case PanelMicrokernel::kUnpacked:
      case PanelMicrokernel::kUnpackedHalf:
        return form;
      case PanelMicrokernel::kPacked:
      case PanelMicrokernel::kTwoPacked:
        return PanelMicrokernel::kPacked;
      default:
        return PanelMicrokernel::kOne;
    }
  }
  static int64_t panels(const PanelMicrokernel& m, PanelMicrokernel::Form form, int64_t rows) {
    if (form == PanelMicrokernel::kStreamed) return m.streams(rows);
    return form == PanelMicrokernel::kTwo || form == PanelMicrokernel::kTwoPacked ? 2 : 1;
  }
  static LazyCode<Blocks>::Code write(const PanelMicrokernel& m, PanelMicrokernel::Form form,
                                      int64_t rows) {
    return m.code_[form][rows - 1].get([&] { return write_now(m, form, rows); });
  }

 private:
  static LazyCode<Blocks>::Code write_now(const PanelMicrokernel& m, PanelMicrokernel::Form form,
                                          int64_t rows) {
    alignas(4096) static uint8_t pages[3][PanelMicrokernel::kForms][PanelMicrokernel::kMostRows]
                                      [kCapacity];
    using Kind = Generator::Kind;
    const bool packed = of_one_row(form) == PanelMicrokernel::kPacked;
    const bool plain_half = form == PanelMicrokernel::kUnpackedHalf;
    const Kind kind = packed                                              ? Kind::kPackedRows
                      : form == PanelMicrokernel::kStreamed               ? Kind::kStreams
                      : plain_half || form == PanelMicrokernel::kUnpacked ? Kind::kPlain
                                                                          : Kind::kRows;
    const int64_t vectors = form == PanelMicrokernel::kHalf || plain_half
                                ? 1
                                : panels(m, form, rows) * (m.wide_ ? 1 : 2);
    Xbyak::ClearError();
    Generator generator(pages[m.pairs_ ? 2 : m.wide_][form][rows - 1], m.wide_, m.pairs_, rows,
                        vectors, kind);
    if (!seal(generator)) return nullptr;
    constexpr const char* kNames[] = {"1",        "2",        "half",  "streams",
                                      "packed_1", "packed_2", "plain", "plain_half"};
    char name[64];
    std::snprintf(name, sizeof name, "%s_%s_%dx%s", m.pairs_ ? "bf16_dot" : "panel_matmul",
                  m.wide_ ? "avx512" : "avx2", static_cast<int>(rows), kNames[form]);
    publish(name, generator.getCode(), generator.getSize());
    return generator.getCode<LazyCode<Blocks>::Code>();
  }

  PanelMicrokernel microkernel_;
};

void PanelMicrokernel::run_plain(int64_t rows, bool half, Blocks& blocks) const {
  run_form(half ? kUnpackedHalf : kUnpacked, row_blocks(rows, half ? half_rows_ : rows_), blocks);
}

void PanelMicrokernel::run_first(Form form, int64_t rows, Blocks& blocks) const {
  try {
    if (const auto code = PanelMicrokernelSet::write(*this, form, rows)) return code(&blocks);
  } catch (const std::bad_alloc&) {  // the next time, perhaps
  }
  const auto one_row = code_[PanelMicrokernelSet::of_one_row(form)][0].ready();
  const int64_t panels = PanelMicrokernelSet::panels(*this, form, rows);
  const Blocks all = blocks;
  for (int64_t p = 0; p < panels; ++p) {
    blocks = all;
    blocks.b += p * all.b_panel;
    blocks.c += p * all.c_panel;
    if (all.start) blocks.start += p * kPanel;
    blocks.ahead = blocks.ahead_end = nullptr;
    blocks.row_blocks = std::max<int64_t>(all.row_blocks, 1) * rows;
    one_row(&blocks);
  }
  blocks.b = all.b;
  blocks.c -= (panels - 1) * all.c_panel;
  if (all.start) blocks.start -= (panels - 1) * kPanel;
  blocks.ahead = all.ahead;
  blocks.ahead_end = all.ahead_end;
}

namespace {

template <bool wide, bool pairs>
const PanelMicrokernel* set() {
  static const PanelMicrokernelSet made(wide, pairs);
  static const bool written = made.write_one_row();
  return written ? &made.get() : nullptr;
}

}  // namespace

// PFRT_ISA may change from call to call.
const PanelMicrokernel* PanelMicrokernel::get() {
  const Isa have = isa();
  if (have < Isa::kAvx2) return nullptr;
  return have < Isa::kAvx512 ? set<false, false>() : set<true, false>();
}
const PanelMicrokernel* PanelMicrokernel::get_bf16_dot() {
  return isa() < Isa::kAvx512Bf16 ? nullptr : set<true, true>();
}

}  // namespace pfrt::cpu

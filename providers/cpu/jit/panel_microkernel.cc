// SPDX-License-Identifier: Apache-2.0
//
//   rdi  the arguments      r9   next offset of A           rsi  B
//   rax, r10, r11, r12  rows 0, 3, 6, 9 of A                rbx  bytes from row to row
//   rcx  k left in the chunk        r8   chunks left in the chain       rdx  chains left
//   r13  bytes to the second panel of B                     r15  what is fetched next
//   r12  with more than two panels, and so with few rows: bytes to the fourth
//   r14  where the next chain's sums go, from rsp on: kSlots times all sums
#include "providers/cpu/jit/panel_microkernel.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <iterator>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/jit/code_pages.h"
#include "providers/cpu/jit/published.h"

namespace pfrt::cpu {
namespace {

constexpr size_t kCapacity = 256 << 10;
// What an element of 32 bits is: a float, or a pair.
enum class Elements : uint8_t { kFloat, kBf16Dot };
alignas(4096) uint8_t code_pages[2][2][kCapacity];  // of AVX2 and of AVX-512, by Elements

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
  Generator(bool wide, Elements elements)
      : CodeGenerator(kCapacity, code_pages[wide][static_cast<size_t>(elements)]),
        wide_(wide),
        bf16_(elements == Elements::kBf16Dot) {}

  const uint8_t* write(int rows, int panels) {
    return write_vectors(rows, panels * kPanel / lanes(), Form::kRows);
  }
  const uint8_t* write_packed(int rows, int panels) {
    return write_vectors(rows, panels * kPanel / lanes(), Form::kPackedRows);
  }
  const uint8_t* write_half(int rows) { return write_vectors(rows, 1, Form::kRows); }
  const uint8_t* write_streams(int rows, int panels) {
    return write_vectors(rows, panels * kPanel / lanes(), Form::kStreams);
  }

 private:
  enum class Form { kRows, kPackedRows, kStreams };

  const uint8_t* write_vectors(int rows, int vectors, Form form) {
    align(64);
    const uint8_t* const code = getCurr();
    rows_ = rows;
    vectors_ = vectors;
    streams_ = form == Form::kStreams;
    k_step_ = form == Form::kPackedRows ? kPanel : 1;
    product();
    return code;
  }
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
  // Where an element is for one vector alone, the multiplication broadcasts it itself: a register
  // of its own would take a second operation for each.
  bool broadcasts() const { return wide_ && vectors_ == 1; }

  // |fresh|: a chain begins, and the sums of the chain before it are stored to their slot between
  // the multiplications. Many stores at once would delay what follows.
  void multiply(int k, bool fresh = false) {
    if (streams_ && vectors_ * lanes() > kPanel) return multiply_streams(k, fresh);
    if (streams_) prefetcht0(ptr[rsi + static_cast<size_t>(k * kPanel * 4 + kFetched)]);
    for (int v = 0; v < vectors_; ++v)
      vmovups(column(v), of_vector(rsi, r13, r12, v, k * kPanel * 4));
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

  int fetches() const { return streams_ ? 0 : std::max(1, vectors_ * lanes() / kPanel); }

  void several(bool fresh) {
    for (int i = 0; i < fetches(); ++i) prefetcht1(ptr[r15 + static_cast<size_t>(i * kLine)]);
    for (int k = 0; k < kTogether; ++k) multiply(k, fresh && k == 0);
    add(r15, static_cast<uint32_t>(fetches() * kLine));
    advance(kTogether);
  }

  void advance(int k) {
    const Xbyak::Reg64 base[] = {rax, r10, r11, r12};
    for (int i = 0; i < bases(); ++i) add(base[i], static_cast<uint32_t>(4 * k_step_ * k));
    add(rsi, static_cast<uint32_t>(4 * kPanel * k));
  }

  // |rcx| becomes the k of the chunk.
  void find_chunk() {
    const Xbyak::Reg64 base[] = {rax, r10, r11, r12};
    mov(rax, ptr[r9]);
    shl(rax, 2);
    add(rax, arg(offsetof(Blocks, a)));
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

  const bool wide_, bf16_;
  int rows_ = 0, vectors_ = 0;
  int k_step_ = 1;  // elements of A from k to k
  bool streams_ = false;
};

}  // namespace

// All of them, written together.
class PanelMicrokernelSet {
 public:
  // 6 x 2 sums fill 12 of 16 registers, 12 x 2 fill 24 of 32; 2 x 4 leave room for four columns.
  // Half panels of AVX2 have 12 x 1. Streams have 1 x 8, 2 x 6, 3 x 4 and R x 2, or R x 4; dot
  // products of pairs have none.
  PanelMicrokernelSet(bool wide, Elements elements) {
    const bool pairs = elements != Elements::kFloat;
    microkernel_.rows_ = wide ? 12 : 6;
    microkernel_.rows_of_two_ = wide ? 12 : 2;
    Xbyak::ClearError();
    Generator generator(wide, elements);
    const uint8_t* code[PanelMicrokernel::kMostPanels][PanelMicrokernel::kMostRows + 1] = {};
    const int64_t rows_of[] = {microkernel_.rows_, microkernel_.rows_of_two_};  // by panels - 1
    for (int panels = 1; panels <= PanelMicrokernel::kMostPanels; ++panels) {
      for (int rows = 1; rows <= rows_of[panels - 1]; ++rows) {
        code[panels - 1][rows - 1] = generator.write(rows, panels);
        microkernel_.code_[panels - 1][rows - 1] =
            Xbyak::CastTo<PanelMicrokernel::Code>(code[panels - 1][rows - 1]);
      }
      code[panels - 1][rows_of[panels - 1]] = generator.getCurr();
    }
    const uint8_t* streams[PanelMicrokernel::kMostStreamRows + 1] = {};
    microkernel_.stream_rows_ = pairs ? 0 : wide ? 4 : PanelMicrokernel::kMostStreamRows;
    for (int rows = 1; rows <= microkernel_.stream_rows_; ++rows) {
      const int most = PanelMicrokernel::kMostStreams;
      const int panels = wide ? most : std::max(most + 1 - rows, 1);
      microkernel_.streams_[rows - 1] = panels;
      streams[rows - 1] = generator.write_streams(rows, panels);
      microkernel_.streams_code_[rows - 1] =
          Xbyak::CastTo<PanelMicrokernel::Code>(streams[rows - 1]);
    }
    streams[microkernel_.stream_rows_] = generator.getCurr();
    microkernel_.half_rows_ = wide ? 0 : PanelMicrokernel::kMostRows;
    const uint8_t* half[PanelMicrokernel::kMostRows + 1] = {};
    for (int rows = 1; rows <= microkernel_.half_rows_; ++rows) {
      half[rows - 1] = generator.write_half(rows);
      microkernel_.half_code_[rows - 1] = Xbyak::CastTo<PanelMicrokernel::Code>(half[rows - 1]);
    }
    half[microkernel_.half_rows_] = generator.getCurr();
    const uint8_t* packed[PanelMicrokernel::kMostPanels][PanelMicrokernel::kMostPackedRows + 1] =
        {};
    microkernel_.packed_rows_ =
        pairs ? 0 : std::min(microkernel_.rows_, PanelMicrokernel::kMostPackedRows);
    for (int panels = 1; !pairs && panels <= microkernel_.packed_panels(); ++panels) {
      for (int rows = 1; rows <= microkernel_.packed_rows_; ++rows) {
        packed[panels - 1][rows - 1] = generator.write_packed(rows, panels);
        microkernel_.packed_code_[panels - 1][rows - 1] =
            Xbyak::CastTo<PanelMicrokernel::Code>(packed[panels - 1][rows - 1]);
      }
      packed[panels - 1][microkernel_.packed_rows_] = generator.getCurr();
    }
    written_ = seal(generator);
    for (int64_t p = 0; written_ && p < PanelMicrokernel::kMostPanels; ++p)
      for (int64_t r = 0; r < rows_of[p]; ++r)
        publish_one(wide, elements, r + 1, p == 0 ? "1" : "2", code[p][r], code[p][r + 1]);
    for (int64_t r = 0; written_ && r < microkernel_.stream_rows_; ++r)
      publish_one(wide, elements, r + 1, "streams", streams[r], streams[r + 1]);
    for (int64_t r = 0; written_ && r < microkernel_.half_rows_; ++r)
      publish_one(wide, elements, r + 1, "half", half[r], half[r + 1]);
    for (int64_t p = 0; written_ && !pairs && p < microkernel_.packed_panels(); ++p)
      for (int64_t r = 0; r < microkernel_.packed_rows_; ++r)
        publish_one(wide, elements, r + 1, p == 0 ? "packed_1" : "packed_2", packed[p][r],
                    packed[p][r + 1]);
  }
  const PanelMicrokernel* get() const { return written_ ? &microkernel_ : nullptr; }

 private:
  // Nothing is allocated here: an exception would come after the pages were sealed, and they could
  // not be written again.
  static void publish_one(bool wide, Elements elements, int64_t rows, const char* panels,
                          const uint8_t* begin, const uint8_t* end) noexcept {
    constexpr const char* kNames[] = {"panel_matmul", "bf16_dot"};
    char name[64];
    std::snprintf(name, sizeof name, "%s_%s_%dx%s", kNames[static_cast<size_t>(elements)],
                  wide ? "avx512" : "avx2", static_cast<int>(rows), panels);
    publish(name, begin, static_cast<size_t>(end - begin));
  }
  PanelMicrokernel microkernel_;
  bool written_ = false;  // and could be made executable
};

namespace {

template <bool wide, Elements elements>
const PanelMicrokernel* set() {
  static const PanelMicrokernelSet made(wide, elements);
  return made.get();
}

// PFRT_ISA may change from call to call.
template <Elements elements>
const PanelMicrokernel* usable() {
  const Isa have = isa();
  if (have < Isa::kAvx2) return nullptr;
  return have < Isa::kAvx512 ? set<false, elements>() : set<true, elements>();
}

}  // namespace

const PanelMicrokernel* PanelMicrokernel::get() { return usable<Elements::kFloat>(); }
const PanelMicrokernel* PanelMicrokernel::get_bf16_dot() {
  return isa() < Isa::kAvx512Bf16 ? nullptr : set<true, Elements::kBf16Dot>();
}

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
//
//   rdi  the arguments              rax  A of the block       rbx  A, from line to line
//   rsi  B of the block             r14  B, from line to line r15  scales of the block
//   rdx  zero points of the block   r13  bytes to the second panel   r12  to the fourth
//   r8   blocks left                r10  segments left        rcx  lines left
//   r9   C                          r11  constants            rsp  what registers have no room for
//
// Floats: field f of a line is put into the mantissa of 2^23 where it lies, or of a smaller power
// of two for higher bits, by a mask; less that power and the zero point it is a float, exactly.
// Bytes: unsigned weights by signed rows, in vpdpbusd, or in vpmaddubsw with sums of int16. These
// hold kShortSum products of 4 bits by 7. Weights of 8 bits lose 128 and lend rows their signs, so
// that both products of a pair fit.
#include "providers/cpu/jit/nbits_microkernel.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <optional>
#include <vector>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/jit/code_pages.h"
#include "providers/cpu/jit/published.h"

namespace pfrt::cpu {
namespace {

using Blocks = NBitsMicrokernel::Blocks;
using Zeros = NBitsPanel::Zeros;
constexpr int kLine = NBitsPanel::kLine, kColumns = NBitsPanel::kColumns;
constexpr size_t kCapacity = 256 << 10;
constexpr int kMostFields = 8;  // of half a line's 32 bits

enum class Dot : uint8_t { kFloat, kVnni, kShort };

// Numbers that vectors are compared, masked and multiplied with; all 32-bit lanes of a vector are
// equal.
struct Constants {
  enum : int { kNibbles, kOnes, kSigns, kMiddle, kMasks, kCount = kMasks + 3 * kMostFields };
  alignas(64) uint32_t words[kCount][kColumns];
};

constexpr int field_bit(int bits, int field) { return field * bits; }
// 2^23 where the lowest bit of the mantissa is 1, and so on.
constexpr float power_of(int bit) { return static_cast<float>(1u << (23 - bit)); }

constexpr Constants constants_of(int bits) {
  Constants c{};
  const auto set = [&c](int which, uint32_t word) {
    for (uint32_t& w : c.words[which]) w = word;
  };
  const uint32_t field = (1u << bits) - 1;
  set(Constants::kNibbles, field * 0x01010101u);
  set(Constants::kOnes, 0x00010001);
  set(Constants::kSigns, 0x80808080);
  set(Constants::kMiddle, 128);
  for (int f = 0; f < 16 / bits; ++f) {
    const float power = power_of(field_bit(bits, f));
    set(Constants::kMasks + f, field << field_bit(bits, f));
    set(Constants::kMasks + kMostFields + f, std::bit_cast<uint32_t>(power));
    set(Constants::kMasks + 2 * kMostFields + f,
        std::bit_cast<uint32_t>(power + static_cast<float>(1u << (bits - 1))));
  }
  return c;
}
constexpr Constants kConstants[] = {constants_of(2), constants_of(4), constants_of(8)};

struct Form {
  bool wide;
  Dot dot;
  int bits;
  Zeros zeros;
  bool widened = false;  // weights are floats already
  bool vex = false;      // vpdpbusd of 256 bits: how it is encoded

  bool floats() const { return dot == Dot::kFloat; }
  // Signs of 8-bit weights go to the rows, and pairs of products to int32 at once.
  bool lends_signs() const { return dot == Dot::kShort && bits == 8; }
  bool sums_shorts() const { return dot == Dot::kShort && bits < 8; }
  int most_rows() const { return wide ? 12 : floats() && !widened ? 5 : 6; }
  int panels(int rows) const {
    if (wide) return rows <= 4 ? 4 : 2;
    if (floats()) return rows <= 2 ? 2 : 1;
    return rows == 1 ? 4 : rows <= 3 ? 2 : 1;
  }
};

class Generator final : public Xbyak::CodeGenerator {
 public:
  Generator(const Form& form, uint8_t* pages) : CodeGenerator(kCapacity, pages), f_(form) {}

  const uint8_t* write(int rows, int panels) {
    align(64);
    const uint8_t* const code = getCurr();
    rows_ = rows;
    panels_ = panels;
    assign_registers();
    product();
    return code;
  }
  const uint8_t* write_widen() {
    align(64);
    const uint8_t* const code = getCurr();
    rows_ = panels_ = 1;
    assign_registers();
    widen();
    return code;
  }

 private:
  // ------------------------------------------------------------------ registers

  int halves() const { return f_.wide ? 1 : 2; }
  int vectors() const { return panels_ * halves(); }
  int vector_bytes() const { return f_.wide ? 64 : 32; }
  int sums() const { return rows_ * vectors(); }
  Xbyak::Xmm vector(int i) const {
    return f_.wide ? static_cast<Xbyak::Xmm>(Xbyak::Zmm(i))
                   : static_cast<Xbyak::Xmm>(Xbyak::Ymm(i));
  }
  Xbyak::Xmm sum(int r, int v) const { return vector(r * vectors() + v); }
  // A line's fields as they are multiplied.
  Xbyak::Xmm weight(int v) const { return vector(sums() + (together_ ? v : 0)); }
  // The register of an element of A. If all weights of a line are held in registers, an element is
  // loaded once for all of them; otherwise the elements of all rows may be held.
  Xbyak::Xmm element(int r) const { return vector(elements_at_ + (holds_elements_ ? r : 0)); }
  Xbyak::Xmm product_of_shorts() const { return vector(product_at_); }
  Xbyak::Xmm line(int v) const { return vector(lines_at_ + v); }

  // A constant in a register, while there are any, or in memory.
  const Xbyak::Operand& constant(int which) {
    const auto held = std::find(held_.begin(), held_.end(), which);
    if (held != held_.end()) {
      operand_ = vector(held_at_ + static_cast<int>(held - held_.begin()));
      return operand_;
    }
    address_.emplace(ptr[r11 + static_cast<size_t>(which * kLine)]);
    return *address_;
  }

  void assign_registers() {
    const int all = f_.wide ? 32 : 16;
    together_ = vectors() <= 2 && !f_.lends_signs();
    int next = sums() + (together_ ? vectors() : 1) + f_.lends_signs();
    elements_at_ = next;
    // vpmaddubsw broadcasts nothing by itself, and needs a register for its products.
    const int product = f_.sums_shorts() && (together_ || vectors() > 2) ? 1 : 0;
    const int lines = f_.floats() && !f_.widened ? vectors() : 0;
    holds_elements_ = !together_ && !f_.lends_signs() && next + rows_ + product + lines <= all;
    next += holds_elements_ ? rows_ : 1;
    product_at_ = next < all ? next : elements_at_;
    if (product == 1 && (together_ || holds_elements_)) ++next;
    lines_at_ = next;
    next += lines;
    held_.clear();
    held_at_ = next;
    const auto hold = [&](int which) {
      if (held_at_ + static_cast<int>(held_.size()) < all) held_.push_back(which);
    };
    if (!f_.floats()) {
      if (f_.bits < 8) hold(Constants::kNibbles);
      if (f_.dot == Dot::kShort) hold(Constants::kOnes);
      if (f_.lends_signs()) hold(Constants::kSigns);
      return;
    }
    if (f_.widened) return;
    const int kinds = f_.zeros == Zeros::kMiddle ? 3 : 2;
    for (int kind = 0; kind < kinds; ++kind)
      for (int i = 0; i < 16 / f_.bits; ++i) hold(Constants::kMasks + kind * kMostFields + i);
  }

  // ------------------------------------------------------------------ addresses

  Xbyak::RegExp of_panel(const Xbyak::Reg64& base, int panel) const {
    switch (panel) {
      case 0:
        return Xbyak::RegExp(base);
      case 1:
        return base + r13;
      case 2:
        return base + r13 * 2;
      default:
        return base + r12;
    }
  }
  Xbyak::Address of_vector(const Xbyak::Reg64& base, int v, int at = 0) {
    const int offset = v % halves() * 32 + at;
    return ptr[of_panel(base, v / halves()) + static_cast<size_t>(offset)];
  }
  Xbyak::Address of_sum(int r, int v) {
    const int offset = (v / halves() * rows_ + r) * kLine + v % halves() * 32;
    return ptr[r9 + static_cast<size_t>(offset)];
  }
  Xbyak::Address on_stack(int i) { return ptr[rsp + static_cast<size_t>(i * vector_bytes())]; }
  Xbyak::Address arg(size_t offset) { return qword[rdi + offset]; }

  // ------------------------------------------------------------------ instructions of both widths

  void and_bits(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Operand& b) {
    f_.wide ? vpandd(to, a, b) : vpand(to, a, b);
  }
  void or_bits(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Operand& b) {
    f_.wide ? vpord(to, a, b) : vpor(to, a, b);
  }
  void clear(const Xbyak::Xmm& to) { f_.wide ? vpxord(to, to, to) : vpxor(to, to, to); }
  void load(const Xbyak::Xmm& to, const Xbyak::Operand& from) {
    f_.wide ? vmovdqu32(to, from) : vmovdqu(to, from);
  }
  void copy(const Xbyak::Xmm& to, const Xbyak::Xmm& from) {
    f_.wide ? vmovdqa32(to, from) : vmovdqa(to, from);
  }
  void store(const Xbyak::Address& to, const Xbyak::Xmm& from) { vmovups(to, from); }

  // ------------------------------------------------------------------ lines of bytes

  // Quad |q| of a line, at |at|: 8-bit fields of 4 k as unsigned bytes.
  void load_quad(int q, int v, int at) {
    const Xbyak::Xmm to = weight(v);
    const Xbyak::Address from = of_vector(r14, v, at);
    load(to, from);
    if (q > 0) vpsrld(to, to, static_cast<uint8_t>(q * f_.bits));
    if (f_.bits < 8) and_bits(to, to, constant(Constants::kNibbles));
  }
  bool is_held(int which) const {
    return std::find(held_.begin(), held_.end(), which) != held_.end();
  }

  void multiply_quad(int q, int line_in_turn) {
    const int quads = 8 / f_.bits;
    const int a_at = (line_in_turn * quads + q) * rows_ * 4, b_at = line_in_turn * kLine;
    const auto of_row = [&](int r) { return rbx + static_cast<size_t>(a_at + r * 4); };
    if (f_.lends_signs()) return lend_signs(a_at, b_at);
    if (together_) {
      for (int v = 0; v < vectors(); ++v) load_quad(q, v, b_at);
      for (int r = 0; r < rows_; ++r) {
        if (f_.dot == Dot::kVnni && f_.wide && vectors() == 1) {
          vpdpbusd(sum(r, 0), weight(0), ptr_b[of_row(r)]);
          continue;
        }
        vpbroadcastd(element(0), ptr[of_row(r)]);
        for (int v = 0; v < vectors(); ++v)
          add_quad(sum(r, v), weight(v), element(0),
                   v + 1 < vectors() ? product_of_shorts() : element(0));
      }
      return;
    }
    if (holds_elements_)
      for (int r = 0; r < rows_; ++r) vpbroadcastd(element(r), ptr[of_row(r)]);
    for (int v = 0; v < vectors(); ++v) {
      load_quad(q, v, b_at);
      for (int r = 0; r < rows_; ++r) {
        if (!holds_elements_) vpbroadcastd(element(r), ptr[of_row(r)]);
        add_quad(sum(r, v), weight(v), element(r),
                 holds_elements_ ? product_of_shorts() : element(r));
      }
    }
  }

  // |to| += the products of 4 k; |spare| may be the register of |a|.
  void add_quad(const Xbyak::Xmm& to, const Xbyak::Xmm& b, const Xbyak::Xmm& a,
                const Xbyak::Xmm& spare) {
    if (f_.dot == Dot::kVnni) {
      vpdpbusd(to, b, a, f_.vex ? Xbyak::VexEncoding : Xbyak::EvexEncoding);
      return;
    }
    vpmaddubsw(spare, b, a);
    vpaddw(to, to, spare);
  }

  void lend_signs(int a_at, int b_at) {
    const Xbyak::Xmm w = vector(sums()), magnitude = vector(sums() + 1);
    for (int v = 0; v < vectors(); ++v) {
      load(w, of_vector(r14, v, b_at));
      vpxor(w, w, constant(Constants::kSigns));
      vpabsb(magnitude, w);
      for (int r = 0; r < rows_; ++r) {
        vpbroadcastd(element(0), ptr[rbx + static_cast<size_t>(a_at + r * 4)]);
        vpsignb(element(0), element(0), w);
        vpmaddubsw(element(0), magnitude, element(0));
        vpmaddwd(element(0), element(0), constant(Constants::kOnes));
        vpaddd(sum(r, v), sum(r, v), element(0));
      }
    }
  }

  // ------------------------------------------------------------------ lines of floats

  int fields() const { return 32 / f_.bits; }
  // Calls fn(field, field of its half) for the fields of a line, one half after the other.
  template <typename Fn>
  void each_field(int b_at, Fn&& fn) {
    if (!f_.widened)
      for (int v = 0; v < vectors(); ++v) load(line(v), of_vector(r14, v, b_at));
    const int per_half = 16 / f_.bits;
    for (int half = 0; half < 2; ++half) {
      for (int v = 0; half == 1 && !f_.widened && v < vectors(); ++v) vpsrld(line(v), line(v), 16);
      for (int i = 0; i < per_half; ++i) fn(half * per_half + i, i);
    }
  }

  void multiply_floats(int line_in_turn) {
    const int a_at = line_in_turn * fields() * rows_ * 4;
    const int b_at = line_in_turn * kLine * (f_.widened ? fields() : 1);
    each_field(b_at, [&](int field, int i) {
      const int bit = field * f_.bits, k = bit % 8 / f_.bits * 4 + bit / 8;
      multiply_field(i, a_at + k * rows_ * 4, b_at + field * kLine);
    });
  }

  // Multiplies field |i| of a half; weights that are widened already are at |b_at|.
  void multiply_field(int i, int a_at, int b_at) {
    const auto of_row = [&](int r) { return rbx + static_cast<size_t>(a_at + r * 4); };
    if (together_) {
      for (int v = 0; v < vectors(); ++v) widen_field(weight(v), v, i, b_at);
      for (int r = 0; r < rows_; ++r) {
        if (f_.wide && vectors() == 1) {
          vfmadd231ps(sum(r, 0), weight(0), ptr_b[of_row(r)]);
          continue;
        }
        vbroadcastss(element(0), ptr[of_row(r)]);
        for (int v = 0; v < vectors(); ++v) vfmadd231ps(sum(r, v), weight(v), element(0));
      }
      return;
    }
    if (holds_elements_)
      for (int r = 0; r < rows_; ++r) vbroadcastss(element(r), ptr[of_row(r)]);
    for (int v = 0; v < vectors(); ++v) {
      widen_field(weight(v), v, i, b_at);
      for (int r = 0; r < rows_; ++r) {
        if (!holds_elements_) vbroadcastss(element(r), ptr[of_row(r)]);
        vfmadd231ps(sum(r, v), weight(v), element(r));
      }
    }
  }

  // Field |i| of half a line, less the zero point.
  void widen_field(const Xbyak::Xmm& to, int v, int i, int b_at = 0) {
    if (f_.widened) {
      vmovups(to, of_vector(r14, v, b_at));
      return;
    }
    const int mask = Constants::kMasks + i, power = mask + kMostFields,
              middle = power + kMostFields;
    if (f_.wide && is_held(mask)) {
      constexpr uint8_t kAndOr = 0xea;  // (to & b) | c
      const Xbyak::Xmm held = vector(
          held_at_ + static_cast<int>(std::find(held_.begin(), held_.end(), mask) - held_.begin()));
      copy(to, line(v));
      vpternlogd(to, held, constant(power), kAndOr);
    } else {
      and_bits(to, line(v), constant(mask));
      or_bits(to, to, constant(power));
    }
    switch (f_.zeros) {
      case Zeros::kMiddle:
        vsubps(to, to, constant(middle));
        break;
      case Zeros::kUint8:
        vsubps(to, to, on_stack(v * kMostFields + i));
        break;
      case Zeros::kFloat:
        vsubps(to, to, constant(power));
        vsubps(to, to, of_vector(rdx, v));
        break;
    }
  }

  // Each power of two and the zero point.
  void prepare_float_zeros() {
    if (f_.zeros != Zeros::kUint8) return;
    for (int v = 0; v < vectors(); ++v) {
      load_zeros(weight(0), v);
      vcvtdq2ps(weight(0), weight(0));
      for (int i = 0; i < 16 / f_.bits; ++i) {
        vaddps(element(0), weight(0), constant(Constants::kMasks + kMostFields + i));
        store(on_stack(v * kMostFields + i), element(0));
      }
    }
  }
  void load_zeros(const Xbyak::Xmm& to, int v) {
    const int at = v % halves() * 8;
    vpmovzxbd(to, ptr[of_panel(rdx, v / halves()) + static_cast<size_t>(at)]);
  }

  // ------------------------------------------------------------------ a block

  // Sums of integers begin at what the zero points take off.
  void begin_with_corrections() {
    const auto correction = [&](int r) { return ptr[rax + static_cast<size_t>((rows_ + r) * 4)]; };
    if (f_.zeros == Zeros::kMiddle) {
      for (int r = 0; r < rows_; ++r) {
        if (f_.lends_signs())
          clear(sum(r, 0));
        else
          vpbroadcastd(sum(r, 0), correction(r));
        for (int v = 1; v < vectors(); ++v) copy(sum(r, v), sum(r, 0));
      }
    } else {
      for (int v = 0; v < vectors(); ++v) {
        load_zeros(weight(0), v);
        if (f_.lends_signs())
          vpsubd(weight(0), weight(0), ptr[r11 + static_cast<size_t>(Constants::kMiddle * kLine)]);
        for (int r = 0; r < rows_; ++r) {
          vpbroadcastd(element(0), correction(r));
          vpmaddwd(sum(r, v), weight(0), element(0));
        }
      }
    }
    if (!f_.sums_shorts()) return;
    for (int r = 0; r < rows_; ++r)
      for (int v = 0; v < vectors(); ++v) store(on_stack(r * vectors() + v), sum(r, v));
  }

  void clear_sums() {
    for (int i = 0; i < sums(); ++i) clear(vector(i));
  }

  // Lines of a turn of the loop, whose code many rows make long.
  int lines_together() const {
    if (f_.bits == 2 || f_.widened) return 1;
    return f_.floats() && sums() > 8 ? 1 : 2;
  }

  void multiply_lines() {
    Xbyak::Label next;
    const int together = lines_together();
    mov(rcx, arg(offsetof(Blocks, segment_lines)));
    L(next);
    for (int i = 0; i < together; ++i) {
      if (f_.floats())
        multiply_floats(i);
      else
        for (int q = 0; q < 8 / f_.bits; ++q) multiply_quad(q, i);
    }
    add(r14, static_cast<uint32_t>(together * kLine * (f_.widened ? fields() : 1)));
    add(rbx, static_cast<uint32_t>(together * 32 / f_.bits * rows_ * (f_.floats() ? 4 : 1)));
    sub(rcx, static_cast<uint32_t>(together));
    jnz(next, T_NEAR);
  }

  void float_block() {
    Xbyak::Label segment;
    prepare_float_zeros();
    L(segment);
    clear_sums();
    multiply_lines();
    for (int v = 0; v < vectors(); ++v) {
      vmovups(weight(0), of_vector(r15, v));
      for (int r = 0; r < rows_; ++r) {
        vfmadd213ps(sum(r, v), weight(0), of_sum(r, v));
        vmovups(of_sum(r, v), sum(r, v));
      }
    }
    dec(r10);
    jnz(segment, T_NEAR);
  }

  void integer_block() {
    Xbyak::Label segment, last;
    begin_with_corrections();
    L(segment);
    if (f_.sums_shorts()) clear_sums();
    multiply_lines();
    if (f_.sums_shorts()) {
      for (int r = 0; r < rows_; ++r)
        for (int v = 0; v < vectors(); ++v) {
          vpmaddwd(sum(r, v), sum(r, v), constant(Constants::kOnes));
          vpaddd(sum(r, v), sum(r, v), on_stack(r * vectors() + v));
        }
      dec(r10);
      jz(last, T_NEAR);
      for (int r = 0; r < rows_; ++r)
        for (int v = 0; v < vectors(); ++v) store(on_stack(r * vectors() + v), sum(r, v));
      jmp(segment, T_NEAR);
      L(last);
    }
    for (int v = 0; v < vectors(); ++v) {
      vmovups(weight(0), of_vector(r15, v));
      for (int r = 0; r < rows_; ++r) {
        const auto scale = rax + static_cast<size_t>(r * 4);
        vcvtdq2ps(sum(r, v), sum(r, v));
        if (f_.wide) {
          vmulps(element(0), weight(0), ptr_b[scale]);
        } else {
          vbroadcastss(element(0), ptr[scale]);
          vmulps(element(0), weight(0), element(0));
        }
        vfmadd213ps(sum(r, v), element(0), of_sum(r, v));
        vmovups(of_sum(r, v), sum(r, v));
      }
    }
  }

  // Widens a block of one panel to floats.
  void widen_block() {
    Xbyak::Label next;
    prepare_float_zeros();
    mov(rcx, arg(offsetof(Blocks, segment_lines)));
    L(next);
    each_field(0, [&](int field, int i) {
      for (int v = 0; v < vectors(); ++v) {
        const int at = field * kLine + v * vector_bytes();
        widen_field(weight(v), v, i);
        vmovups(ptr[r9 + static_cast<size_t>(at)], weight(v));
      }
    });
    add(r14, kLine);
    add(r9, static_cast<uint32_t>(fields() * kLine));
    dec(rcx);
    jnz(next, T_NEAR);
    for (int v = 0; v < vectors(); ++v) {
      vmovups(weight(v), of_vector(r15, v));
      vmovups(ptr[r9 + static_cast<size_t>(v * vector_bytes())], weight(v));
    }
    add(r9, kLine);
  }

  int stack_bytes() const {
    if (f_.floats())
      return f_.zeros == Zeros::kUint8 ? vectors() * kMostFields * vector_bytes() : 0;
    return f_.sums_shorts() ? sums() * vector_bytes() : 0;
  }

  void widen() {
    each_block([&] { widen_block(); });
  }
  void product() {
    each_block([&] {
      const int head = f_.floats() ? 0 : rows_ * 8;
      lea(rbx, ptr[rax + static_cast<size_t>(head)]);
      if (f_.floats())
        float_block();
      else
        integer_block();
      mov(rax, rbx);
    });
  }

  template <typename Fn>
  void each_block(Fn&& fn) {
    const Xbyak::Reg64 saved[] = {rbx, rbp, r12, r13, r14, r15};
    for (const Xbyak::Reg64& reg : saved) push(reg);
    mov(rbp, rsp);
    if (stack_bytes() > 0) {
      sub(rsp, static_cast<uint32_t>(stack_bytes()));
      and_(rsp, static_cast<uint32_t>(-kLine));
    }
    mov(r11, reinterpret_cast<size_t>(&kConstants[f_.bits == 2 ? 0 : f_.bits == 4 ? 1 : 2]));
    mov(rax, arg(offsetof(Blocks, a)));
    mov(rsi, arg(offsetof(Blocks, b)));
    mov(rdx, arg(offsetof(Blocks, zeros)));
    mov(r13, arg(offsetof(Blocks, b_panel)));
    mov(r8, arg(offsetof(Blocks, blocks)));
    mov(r9, arg(offsetof(Blocks, c)));
    if (panels_ > 3) lea(r12, ptr[r13 + r13 * 2]);
    for (int i = 0; i < static_cast<int>(held_.size()); ++i)
      load(vector(held_at_ + i),
           ptr[r11 + static_cast<size_t>(held_[static_cast<size_t>(i)] * kLine)]);

    Xbyak::Label block;
    align(32);
    L(block);
    mov(r14, rsi);
    mov(r15, rsi);
    add(r15, arg(offsetof(Blocks, scales_at)));
    mov(r10, arg(offsetof(Blocks, segments)));
    fn();
    add(rsi, arg(offsetof(Blocks, block_bytes)));
    if (f_.zeros != Zeros::kMiddle) add(rdx, f_.zeros == Zeros::kUint8 ? kColumns : kLine);
    dec(r8);
    jnz(block, T_NEAR);

    mov(rsp, rbp);
    for (size_t i = std::size(saved); i-- > 0;) pop(saved[i]);
    vzeroupper();
    ret();
  }

  const Form f_;
  int rows_ = 0, panels_ = 0;
  bool together_ = false, holds_elements_ = false;
  int elements_at_ = 0, product_at_ = 0, lines_at_ = 0, held_at_ = 0;
  std::vector<int> held_;
  Xbyak::Xmm operand_;
  std::optional<Xbyak::Address> address_;
};

}  // namespace

// All of one form, written together.
class NBitsMicrokernelSet {
 public:
  NBitsMicrokernelSet(const Form& form, uint8_t* pages) {
    NBitsMicrokernel& m = microkernel_;
    m.rows_ = form.most_rows();
    m.segment_ = form.floats()        ? NBitsMicrokernel::kChain
                 : form.sums_shorts() ? NBitsMicrokernel::kShortSum
                                      : INT64_MAX;
    Xbyak::ClearError();
    Generator generator(form, pages);
    const uint8_t* one[NBitsMicrokernel::kMostRows + 1] = {};
    const uint8_t* several[NBitsMicrokernel::kMostRows + 1] = {};
    for (int64_t r = 0; r < m.rows_; ++r) {
      const int rows = static_cast<int>(r) + 1;
      m.panels_[r] = form.panels(rows);
      one[r] = generator.write(rows, 1);
      several[r] = form.panels(rows) > 1 ? generator.write(rows, form.panels(rows)) : one[r];
      m.one_[r] = Xbyak::CastTo<NBitsMicrokernel::Code>(one[r]);
      m.several_[r] = Xbyak::CastTo<NBitsMicrokernel::Code>(several[r]);
    }
    one[m.rows_] = generator.getCurr();
    m.widened_ = form.widened;
    if (form.floats() && !form.widened)
      m.widen_ = Xbyak::CastTo<NBitsMicrokernel::Code>(generator.write_widen());
    const uint8_t* const end_of_all = generator.getCurr();
    written_ = seal(generator);
    if (written_ && m.widen_ != nullptr) publish_one(form, 0, 1, one[m.rows_], end_of_all);
    for (int64_t r = 0; written_ && r < m.rows_; ++r) {
      const uint8_t* const end = one[r + 1];
      publish_one(form, r + 1, 1, one[r], several[r] == one[r] ? end : several[r]);
      if (several[r] != one[r])
        publish_one(form, r + 1, form.panels(static_cast<int>(r) + 1), several[r], end);
    }
  }
  const NBitsMicrokernel* get() const { return written_ ? &microkernel_ : nullptr; }

 private:
  // Nothing is allocated here: an exception would come after the pages were sealed, and they could
  // not be written again.
  static void publish_one(const Form& form, int64_t rows, int panels, const uint8_t* begin,
                          const uint8_t* end) noexcept {
    constexpr const char* kDots[] = {"float", "vnni", "int16"};
    constexpr const char* kZeros[] = {"", "_zeros", "_float_zeros"};
    char name[64];
    std::snprintf(name, sizeof name, "nbits_%d%s_%s_%s_%dx%d", form.bits,
                  form.widened ? "_widened" : kZeros[static_cast<size_t>(form.zeros)],
                  kDots[static_cast<size_t>(form.dot)], form.wide ? "avx512" : "avx2",
                  static_cast<int>(rows), panels);
    publish(name, begin, static_cast<size_t>(end - begin));
  }
  NBitsMicrokernel microkernel_;
  bool written_ = false;  // and could be made executable
};

namespace {

template <bool kWide, Dot kDot, int kBits, Zeros kZeros, bool kWidened = false>
const NBitsMicrokernel* set() {
  alignas(4096) static uint8_t pages[kCapacity];
  // The machine's encoding of vpdpbusd does not change, so the first call may decide it.
  static const NBitsMicrokernelSet made(Form{kWide, kDot, kBits, kZeros, kWidened,
                                             dot_instructions() == DotInstructions::kByteVex256},
                                        pages);
  return made.get();
}

template <bool kWide, Dot kDot, Zeros kZeros>
const NBitsMicrokernel* of_bits(int64_t bits) {
  switch (bits) {
    case 2:
      return set<kWide, kDot, 2, kZeros>();
    case 4:
      return set<kWide, kDot, 4, kZeros>();
    case 8:
      // vpsignb has no form of 512 bits.
      return set < kWide && kDot != Dot::kShort, kDot, 8, kZeros > ();
    default:
      return nullptr;
  }
}

template <bool kWide, Dot kDot>
const NBitsMicrokernel* of_zeros(int64_t bits, Zeros zeros) {
  switch (zeros) {
    case Zeros::kMiddle:
      return of_bits<kWide, kDot, Zeros::kMiddle>(bits);
    case Zeros::kUint8:
      return of_bits<kWide, kDot, Zeros::kUint8>(bits);
    case Zeros::kFloat:
      if constexpr (kDot == Dot::kFloat) return of_bits<kWide, kDot, Zeros::kFloat>(bits);
  }
  return nullptr;
}

template <bool kWide>
const NBitsMicrokernel* widened(int64_t bits) {
  switch (bits) {
    case 2:
      return set<kWide, Dot::kFloat, 2, Zeros::kMiddle, true>();
    case 4:
      return set<kWide, Dot::kFloat, 4, Zeros::kMiddle, true>();
    case 8:
      return set<kWide, Dot::kFloat, 8, Zeros::kMiddle, true>();
    default:
      return nullptr;
  }
}

}  // namespace

void NBitsMicrokernel::set_blocks(const NBitsPanel& panel, Blocks& blocks) const {
  const int64_t segment = std::min(segment_, panel.block);
  blocks.block_bytes = widened_ ? widened_bytes(panel) : panel.block_bytes();
  blocks.scales_at = blocks.block_bytes - NBitsPanel::kLine;
  blocks.segments = panel.block / segment;
  blocks.segment_lines = segment / panel.fields();
}

void NBitsMicrokernel::widen(const NBitsPanel& panel, const uint8_t* b, const uint8_t* zeros,
                             int64_t blocks, float* to) const {
  Blocks p{};
  set_blocks(panel, p);
  p.b = b;
  p.zeros = zeros;
  p.blocks = blocks;
  p.segment_lines = panel.lines();
  p.c = to;
  widen_(&p);
}

// PFRT_ISA may change from call to call.
const NBitsMicrokernel* NBitsMicrokernel::get(Rows rows, int64_t bits, Zeros zeros) {
  const Isa have = isa();
  if (have < Isa::kAvx2) return nullptr;
  if (rows == Rows::kFloat)
    return have >= Isa::kAvx512 ? of_zeros<true, Dot::kFloat>(bits, zeros)
                                : of_zeros<false, Dot::kFloat>(bits, zeros);
  switch (dot_instructions()) {
    case DotInstructions::kByteEvex512:
      return of_zeros<true, Dot::kVnni>(bits, zeros);
    case DotInstructions::kByteVex256:
    case DotInstructions::kByteEvex256:
      return of_zeros<false, Dot::kVnni>(bits, zeros);
    case DotInstructions::kInt16x512:
      return of_zeros<true, Dot::kShort>(bits, zeros);
    case DotInstructions::kInt16x256:
      return of_zeros<false, Dot::kShort>(bits, zeros);
    case DotInstructions::kNone:
      return nullptr;
  }
  return nullptr;
}

const NBitsMicrokernel* NBitsMicrokernel::get_widened(int64_t bits) {
  const Isa have = isa();
  if (have < Isa::kAvx2) return nullptr;
  return have >= Isa::kAvx512 ? widened<true>(bits) : widened<false>(bits);
}

}  // namespace pfrt::cpu

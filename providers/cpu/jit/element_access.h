// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores of generated loops over elements. Each type gets its form in 32-bit lanes of a
// vector (loop/expression.h), and the last, partial vector touches no byte outside the range. With
// AVX2 elements of 32 and 64 bits go through a mask, shorter ones in pieces of four, two and one.
//
//   rdx  the first element   rcx  of the last vector: elements left
//   rax  at hand             k1, k3 or ymm15  the last vector's mask
#pragma once

#include <type_traits>

#include "core/base/dtype.h"
#include "providers/cpu/jit/code_pages.h"

namespace pfrt::cpu {

template <typename Vmm>
class ElementAccess : protected HasCodePages, public Xbyak::CodeGenerator {
 public:
  static constexpr bool kWide = std::is_same_v<Vmm, Xbyak::Zmm>;
  static constexpr int kLanes = kWide ? 16 : 8;
  static constexpr int kTerms = kWide ? 30 : 13;  // registers that are free for them

 protected:
  explicit ElementAccess(size_t capacity)
      : CodeGenerator(capacity, Xbyak::DontSetProtectRWE, &pages) {}

  Vmm first_spare() const { return Vmm(spare_); }
  Vmm second_spare() const { return Vmm(spare_ + 1); }

  // rcx elements are left, fewer than a vector.
  void make_mask() {
    if constexpr (kWide) {
      mov(eax, 1);
      shl(eax, cl);
      sub(eax, 1);
      kmovw(k1, eax);
      kshiftrw(k3, k1, 8);
    } else {
      lea(rax, ptr[rip + mask_]);
      neg(rcx);
      vmovdqu(mask(), ptr[rax + rcx * 4 + 32]);
      neg(rcx);
    }
  }
  void put_mask_table() {
    if constexpr (!kWide) {
      align(32);
      L(mask_);
      for (int i = 0; i < 8; ++i) dd(0xffffffff);
      for (int i = 0; i < 8; ++i) dd(0);
    }
  }

  // Elements of |base|; of 64 bits, one half of the lanes.
  void load(const Vmm& to, const Xbyak::Reg64& base, pfrt_dtype type, bool high, bool masked) {
    const int size = static_cast<int>(dtype_size(type));
    const Xbyak::Address at = address(base, size, high);
    if (size < 4) {
      if (!masked) return widen(to, at, type);
      load_part(to, base, size);
      return widen(to, short_form(to, size), type);
    }
    if (!masked)
      vmovups(to, at);
    else if constexpr (kWide)
      size == 4 ? vmovups(to | k1 | T_z, at) : vmovupd(to | half_mask(high) | T_z, at);
    else
      size == 4 ? vmaskmovps(to, mask(), at) : vpmaskmovq(to, half_mask(high), at);
  }

  // All lanes from one element; of 64 bits, those of each half.
  void load_one(const Vmm& to, const Xbyak::Reg64& base, pfrt_dtype type) {
    const Xbyak::Address at = ptr[base];
    switch (dtype_size(type)) {
      case 8:
        return vbroadcastsd(to, at);
      case 4:
        return vbroadcastss(to, at);
      case 2:
        vpbroadcastw(short_form(to, 2), at);
        return widen(to, short_form(to, 2), type);
      default:
        vpbroadcastb(short_form(to, 1), at);
        return widen(to, short_form(to, 1), type);
    }
  }

  // |from| is no spare but the first.
  void store(const Xbyak::Reg64& base, const Vmm& from, pfrt_dtype type, bool high, bool masked) {
    const int size = static_cast<int>(dtype_size(type));
    const Xbyak::Address at = address(base, size, high);
    if (size < 4) {
      narrow(from, type);
      return store_short(base, size, masked);
    }
    if (!masked)
      vmovups(at, from);
    else if constexpr (kWide)
      size == 4 ? vmovups(at | k1, from) : vmovupd(at | half_mask(high), from);
    else
      size == 4 ? vmaskmovps(at, mask(), from) : vpmaskmovq(at, half_mask(high), from);
  }

  int vector_ = 0;      // of those that take turns, of which only the first is ever masked
  int spare_ = kTerms;  // the first of two

 private:
  static Vmm mask() { return Vmm(15); }
  Xbyak::Address address(const Xbyak::Reg64& base, int size, bool high) {
    const int element = vector_ * kLanes + (high ? kLanes / 2 : 0);
    return ptr[base + rdx * size + static_cast<size_t>(element * size)];
  }

  // The register that holds a vector of elements that are shorter than lanes.
  static auto short_form(const Vmm& v, int size) {
    const bool whole = kWide && size == 2;
    return whole ? static_cast<Xbyak::Xmm>(Xbyak::Ymm(v.getIdx())) : Xbyak::Xmm(v.getIdx());
  }

  auto half_mask(bool high) {
    if constexpr (kWide) {
      return high ? k3 : k1;
    } else {
      const Xbyak::Xmm half(second_spare().getIdx());
      if (high) vextracti128(half, mask(), 1);
      vpmovsxdq(second_spare(), high ? half : Xbyak::Xmm(mask().getIdx()));
      return second_spare();
    }
  }

  void widen(const Vmm& to, const Xbyak::Operand& from, pfrt_dtype type) {
    switch (type) {
      case PFRT_DTYPE_FLOAT16:
        return vcvtph2ps(to, from);
      case PFRT_DTYPE_BFLOAT16:
        vpmovzxwd(to, from);
        return vpslld(to, to, 16);
      case PFRT_DTYPE_INT16:
        return vpmovsxwd(to, from);
      case PFRT_DTYPE_UINT16:
        return vpmovzxwd(to, from);
      case PFRT_DTYPE_INT8:
        return vpmovsxbd(to, from);
      case PFRT_DTYPE_UINT8:
        return vpmovzxbd(to, from);
      default:  // bool: what is not 0
        vpmovzxbd(to, from);
        if constexpr (kWide) {
          vptestmd(k2, to, to);
          vpternlogd(to | k2 | T_z, to, to, 0xff);
        } else {
          vpxor(second_spare(), second_spare(), second_spare());
          vpcmpgtd(to, to, second_spare());
        }
    }
  }

  // Narrows |from| to the first spare register.
  void narrow(const Vmm& from, pfrt_dtype type) {
    const Vmm to = first_spare();
    const int size = static_cast<int>(dtype_size(type));
    if (type == PFRT_DTYPE_FLOAT16)
      return vcvtps2ph(short_form(to, 2), from, 0);  // to nearest even
    Vmm lanes = from;
    if (type == PFRT_DTYPE_BFLOAT16 || type == PFRT_DTYPE_BOOL) {
      vpsrld(to, from, type == PFRT_DTYPE_BOOL ? 31 : 16);
      lanes = to;
    }
    if constexpr (kWide) {
      size == 2 ? vpmovdw(short_form(to, 2), lanes) : vpmovdb(short_form(to, 1), lanes);
    } else {
      // Lanes hold numbers of the type: nothing saturates.
      const bool is_signed = type == PFRT_DTYPE_INT16 || type == PFRT_DTYPE_INT8;
      is_signed ? vpackssdw(to, lanes, lanes) : vpackusdw(to, lanes, lanes);
      vpermq(to, to, 0x08);
      const Xbyak::Xmm words(to.getIdx());
      if (size == 1) is_signed ? vpacksswb(words, words, words) : vpackuswb(words, words, words);
    }
  }

  void store_short(const Xbyak::Reg64& base, int size, bool masked) {
    const auto from = short_form(first_spare(), size);
    const Xbyak::Address at = address(base, size, false);
    if constexpr (kWide) {
      const Xbyak::Address to = masked ? at | k1 : at;
      size == 2 ? vmovdqu16(to, from) : vmovdqu8(to, from);
    } else if (masked) {
      store_part(base, size);
    } else {
      size == 2 ? vmovdqu(at, from) : vmovq(at, from);
    }
  }

  // The last pieces first, so that each moves up those before it.
  void load_part(const Vmm& to, const Xbyak::Reg64& base, int size) {
    if constexpr (kWide) {
      const Xbyak::Address at = address(base, size, false);
      const auto part = short_form(to, size);
      size == 2 ? vmovdqu16(part | k1 | T_z, at) : vmovdqu8(part | k1 | T_z, at);
    } else {
      const Xbyak::Xmm part(to.getIdx());
      lea(rax, ptr[base + rdx * size]);
      lea(rax, ptr[rax + rcx * size]);
      vpxor(part, part, part);
      for (int elements = 1; elements < kLanes; elements *= 2) {
        const int bytes = elements * size;
        Xbyak::Label skip;
        test(cl, static_cast<uint32_t>(elements));
        jz(skip);
        sub(rax, static_cast<uint32_t>(bytes));
        if (elements > 1) vpslldq(part, part, static_cast<uint8_t>(bytes));
        insert(part, bytes);
        L(skip);
      }
    }
  }

  void store_part(const Xbyak::Reg64& base, int size) {
    const Xbyak::Xmm part(first_spare().getIdx());
    lea(rax, ptr[base + rdx * size]);
    for (int elements = kLanes / 2; elements > 0; elements /= 2) {
      const int bytes = elements * size;
      Xbyak::Label skip;
      test(cl, static_cast<uint32_t>(elements));
      jz(skip);
      extract(part, bytes);
      vpsrldq(part, part, static_cast<uint8_t>(bytes));
      add(rax, static_cast<uint32_t>(bytes));
      L(skip);
    }
  }

  void insert(const Xbyak::Xmm& part, int bytes) {
    switch (bytes) {
      case 1:
        return vpinsrb(part, part, ptr[rax], 0);
      case 2:
        return vpinsrw(part, part, ptr[rax], 0);
      case 4:
        return vpinsrd(part, part, ptr[rax], 0);
      default:
        return vpinsrq(part, part, ptr[rax], 0);
    }
  }
  void extract(const Xbyak::Xmm& part, int bytes) {
    switch (bytes) {
      case 1:
        return vpextrb(ptr[rax], part, 0);
      case 2:
        return vpextrw(ptr[rax], part, 0);
      case 4:
        return vpextrd(ptr[rax], part, 0);
      default:
        return vpextrq(ptr[rax], part, 0);
    }
  }

  Xbyak::Label mask_;
};

}  // namespace pfrt::cpu

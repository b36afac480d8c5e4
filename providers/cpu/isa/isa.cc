// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/isa/isa.h"

#include <cpuid.h>

#include <algorithm>
#include <atomic>

#include "core/base/os/variable.h"

namespace pfrt::cpu {
namespace {

constexpr std::string_view kNames[] = {"generic",     "avx2",        "avx_vnni", "avx512",
                                       "avx512_vnni", "avx512_bf16", "amx"};

struct Leaf {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Leaf leaf(uint32_t number, uint32_t sub) {
  Leaf l;
  if (!__get_cpuid_count(number, sub, &l.eax, &l.ebx, &l.ecx, &l.edx)) return {};
  return l;
}

constexpr bool all(uint32_t word, std::initializer_list<unsigned> bits) {
  for (unsigned bit : bits)
    if ((word >> bit & 1) == 0) return false;
  return true;
}

// The register files that the operating system saves, as bits of XCR0.
uint32_t saved_state() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

struct Machine {
  Isa isa = Isa::kGeneric;
  bool vex_vnni = false, evex_vnni = false, int8_tiles = false, byte_permutes = false;
};

Machine detect() {
  const Leaf one = leaf(1, 0);
  const Leaf seven = leaf(7, 0);
  const Leaf seven_one = seven.eax >= 1 ? leaf(7, 1) : Leaf{};
  constexpr unsigned kFma = 12, kOsxsave = 27, kAvx = 28, kF16c = 29;
  if (!all(one.ecx, {kFma, kOsxsave, kAvx, kF16c})) return {};
  const uint32_t saved = saved_state();
  constexpr unsigned kBmi1 = 3, kAvx2 = 5, kBmi2 = 8;
  if (!all(saved, {1, 2}) || !all(seven.ebx, {kBmi1, kAvx2, kBmi2})) return {};
  constexpr unsigned kAvxVnni = 4;
  Machine out{Isa::kAvx2, all(seven_one.eax, {kAvxVnni}), false};
  if (out.vex_vnni) out.isa = Isa::kAvxVnni;
  constexpr unsigned kF = 16, kDq = 17, kCd = 28, kBw = 30, kVl = 31;
  if (!all(saved, {5, 6, 7}) || !all(seven.ebx, {kF, kDq, kCd, kBw, kVl})) return out;
  out.isa = Isa::kAvx512;
  constexpr unsigned kVbmi = 1, kVnni = 11, kBf16 = 5;
  out.byte_permutes = all(seven.ecx, {kVbmi});
  if (!all(seven.ecx, {kVnni})) return out;
  out.evex_vnni = true;
  out.isa = Isa::kAvx512Vnni;
  if (!all(seven_one.eax, {kBf16})) return out;
  out.isa = Isa::kAvx512Bf16;
  constexpr unsigned kAmxBf16 = 22, kAmxTile = 24, kAmxInt8 = 25;
  if (!all(saved, {17, 18}) || !all(seven.edx, {kAmxTile})) return out;
  out.int8_tiles = all(seven.edx, {kAmxInt8});
  if (out.int8_tiles && all(seven.edx, {kAmxBf16})) out.isa = Isa::kAmx;
  return out;
}

std::atomic<bool> emulated{false};

const Machine& machine() {
  static const Machine found = detect();
  return found;
}

}  // namespace

Isa machine_isa() {
  const Isa found = machine().isa;
  return found == Isa::kAvx512Bf16 && amx_emulated() ? Isa::kAmx : found;
}

void set_amx_emulated(bool on) { emulated = on; }
bool amx_emulated() { return emulated; }

bool machine_has_int8_tiles() { return machine().int8_tiles || amx_emulated(); }

bool machine_has_byte_permutes() { return machine().byte_permutes; }

DotInstructions dot_instructions() {
  const Isa have = isa();
  if (have < Isa::kAvx2) return DotInstructions::kNone;
  if (have >= Isa::kAvx512Vnni) return DotInstructions::kByteEvex512;
  if (have >= Isa::kAvx512) return DotInstructions::kInt16x512;
  if (have < Isa::kAvxVnni) return DotInstructions::kInt16x256;
  // A machine with the wider instruction has the narrower one, in either encoding.
  if (machine().vex_vnni) return DotInstructions::kByteVex256;
  return machine().evex_vnni ? DotInstructions::kByteEvex256 : DotInstructions::kInt16x256;
}

Result<Isa> isa_cap() {
  const std::string_view word = os::variable("PFRT_ISA");
  if (word.empty()) return Isa::kAmx;
  Result<Isa> cap = isa_from_name(word);
  if (cap.ok()) return cap;
  return cap.take_status().prepend("PFRT_ISA");
}

Isa isa() {
  const Result<Isa> cap = isa_cap();
  return cap.ok() ? std::min(cap.value(), machine_isa()) : Isa::kGeneric;
}

std::string_view isa_name(Isa isa) { return kNames[static_cast<size_t>(isa)]; }

Result<Isa> isa_from_name(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return static_cast<Isa>(i);
  return error(Code::kINVALID_ARGUMENT, "'", name,
               "' names no instruction set; give one of generic avx2 avx_vnni avx512 avx512_vnni "
               "avx512_bf16 amx");
}

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
//
// Instructions that kernels may use: those of the processor and the operating system, capped by the
// environment variable PFRT_ISA (generic avx2 avx_vnni avx512 avx512_vnni avx512_bf16 amx). Each
// level includes those before it, but for avx_vnni, whose instruction dot_instructions reports. The
// variable is read at each call, so that a test can force every level in one process. Thread-safe
// unless someone calls setenv.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/status.h"

namespace pfrt::cpu {

enum class Isa : uint8_t {
  kGeneric,
  kAvx2,        // and FMA, F16C, BMI2
  kAvxVnni,     // dot products of bytes in vectors of 256 bits
  kAvx512,      // F, BW, CD, DQ, VL
  kAvx512Vnni,  // dot products of bytes in vectors of 512 bits
  kAvx512Bf16,
  kAmx,  // tiles of int8 and bfloat16; a process asks the kernel for permission when it first needs
         // them
};

// The machine's highest level, whatever PFRT_ISA says.
Isa machine_isa();
// PFRT_ISA; kAmx when it is unset or empty, INVALID_ARGUMENT when it is no word of the list.
Result<Isa> isa_cap();
// The lower of both: what kernels may use. A word that isa_cap refuses counts as generic.
Isa isa();

// Instructions with which kernels multiply integers: on pairs of int16 (vpmaddwd), or on four bytes
// at once (vpdpbusd, in one of its encodings).
enum class DotInstructions : uint8_t {
  kNone,
  kInt16x256,
  kInt16x512,
  kByteVex256,
  kByteEvex256,
  kByteEvex512
};
DotInstructions dot_instructions();

// Whether the machine has tiles of int8, whatever PFRT_ISA says. Tiles of bfloat16 alone are not
// kAmx. amx.h says whether a process may use them.
bool machine_has_int8_tiles();

// Whether the machine has permutations of bytes in 512 bits (AVX-512 VBMI), whatever PFRT_ISA says;
// levels from avx512_vnni on may use them.
bool machine_has_byte_permutes();

// Says whether tiles count as usable (amx.h) from now on, unless PFRT_ISA excludes them. It is for
// a process that carries out tile instructions itself where the machine has none, as tests do.
// isa() tells of kAmx only if the machine has all levels before it, so that kernels need not run on
// other machines.
void set_amx_emulated(bool emulated);
bool amx_emulated();

// "avx512_bf16"
std::string_view isa_name(Isa isa);
Result<Isa> isa_from_name(std::string_view name);

}  // namespace pfrt::cpu

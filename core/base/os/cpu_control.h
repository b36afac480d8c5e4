// SPDX-License-Identifier: Apache-2.0
//
// Differences between instruction sets below the kernels: the word that controls floating point,
// and the hint of a waiting loop. Each thread has its own word.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace pfrt::os {

#if defined(__x86_64__)

// The word is MXCSR, since nothing here computes with x87.
using FpControl = uint32_t;
// This value rounds to nearest, masks exceptions and keeps denormals.
inline constexpr FpControl kDefaultFpControl = 0x1f80;
// This value also takes denormals that are read, and those that are computed, for zero.
inline constexpr FpControl kFlushingFpControl = 0x9fc0;
inline FpControl fp_control() { return _mm_getcsr(); }
inline void set_fp_control(FpControl control) { _mm_setcsr(control); }
inline void relax() { _mm_pause(); }

#elif defined(__aarch64__)

// The word is FPCR.
using FpControl = uint64_t;
inline constexpr FpControl kDefaultFpControl = 0;
inline constexpr FpControl kFlushingFpControl = FpControl{1} << 24;
inline FpControl fp_control() {
  FpControl control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
inline void set_fp_control(FpControl control) { asm volatile("msr fpcr, %0" : : "r"(control)); }
inline void relax() { asm volatile("yield"); }

#else
#error "core/base/os/cpu_control.h knows x86-64 and AArch64"
#endif

}  // namespace pfrt::os

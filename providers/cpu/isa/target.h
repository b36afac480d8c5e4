// SPDX-License-Identifier: Apache-2.0
//
// Functions compiled for instructions that the rest of the library may not use: callers have asked
// isa() before.
#pragma once

#define PFRT_AVX2 __attribute__((target("avx2")))
#define PFRT_AVX2_FMA __attribute__((target("avx2,fma")))
#define PFRT_AVX2_F16C __attribute__((target("avx2,f16c")))
#define PFRT_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define PFRT_AVX512_VBMI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))
// The following are for functions that are called for each vector.
#define PFRT_AVX2_INLINE __attribute__((target("avx2"), always_inline))
#define PFRT_AVX2_FMA_INLINE __attribute__((target("avx2,fma"), always_inline))
#define PFRT_AVX512_INLINE \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"), always_inline))

// SPDX-License-Identifier: Apache-2.0
//
// Functions from here to avx512_bf16_end.h are compiled for AVX-512 with bfloat16; callers have
// asked isa() before. No templates of the standard library between the two: they would be compiled
// for AVX-512, and the linker may take those for the whole program. Included once a file.
#ifdef __clang__
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // gcc 12, of its own header
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#endif

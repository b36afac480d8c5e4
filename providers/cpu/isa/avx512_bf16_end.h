// SPDX-License-Identifier: Apache-2.0
//
// The end of what avx512_bf16_begin.h began.
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC diagnostic pop
#pragma GCC pop_options
#endif

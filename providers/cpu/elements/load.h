// SPDX-License-Identifier: Apache-2.0
//
// Strided reads and dense writes between tensors and the few types kernels compute in: float,
// double, uint32_t and uint64_t (integers modulo 2^32 and 2^64, so that overflow wraps). Pure
// functions; thread-safe.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "core/base/status.h"
#include "providers/cpu/kernel/types.h"
#include "providers/kit/node.h"

namespace pfrt::cpu {

// out[i] = element |offset| + i * |stride| of |base|, for i < n.
template <typename T>
using LoadFn = void (*)(T* out, const void* base, int64_t offset, int64_t stride, int64_t n);
// Elements |offset|... of |base| = in[i]. Integers saturate and drop fractions where T is floating;
// NaN becomes 0.
template <typename T>
using StoreFn = void (*)(void* base, int64_t offset, const T* in, int64_t n);

// nullptr where T does not carry |dtype|: float and double carry every floating type of kFloats,
// bool and integers; unsigned types carry integers.
template <typename T>
LoadFn<T> load_fn(pfrt_dtype dtype);
template <typename T>
StoreFn<T> store_fn(pfrt_dtype dtype);

// DTYPE_MISMATCH unless each of |inputs| is absent or of |types|: rows check one input, closures
// read them all.
Status need_types(const SnapshotNode& node, std::initializer_list<uint32_t> inputs, Types types);

}  // namespace pfrt::cpu

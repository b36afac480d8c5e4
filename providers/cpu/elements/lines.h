// SPDX-License-Identifier: Apache-2.0
//
// The lines of a tensor along one axis, for kernels that work on one line at a time (Softmax,
// CumSum, ArgMax, TopK). Lines that are neighbours in memory make a group, one task of a parallel
// loop; a group is brought into contiguous lines of a compute type, in place where memory already
// looks like that. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/status.h"
#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/run.h"
#include "providers/cpu/kernel/stop_poll.h"

namespace pfrt::cpu {

struct Lines {
  int64_t outer = 1, length = 1, inner = 1;  // the tensor is [outer, length, inner]
  int64_t group = 1;                         // lines of a full group
  int64_t groups_per_outer = 1;              // when inner > 1
  int64_t groups = 1;

  // |axis| may count from the end. A rank-0 tensor has one line of one element.
  static Result<Lines> make(std::span<const int64_t> dims, int64_t axis);
  // These groups over lines of another length.
  Lines with_length(int64_t other) const;

  int64_t lines() const { return outer * inner; }
  // Elements of T of one group's buffer.
  uint64_t group_elements() const {
    return static_cast<uint64_t>(group) * static_cast<uint64_t>(length);
  }
  // Bytes of that buffer; 0 where lines of |dtype| are used in place.
  template <typename T>
  uint64_t buffer_bytes(pfrt_dtype dtype) const {
    return inner <= 1 && dtype == kDtypeOf<T> ? 0 : group_elements() * sizeof(T);
  }
};

// A group of lines: lines [first, first + count) of one slice when inner > 1, else of the whole
// tensor.
struct LineGroup {
  LineGroup(const Lines& lines, int64_t index);
  int64_t slice, first, count;
};

// The group as |count| contiguous lines: in place or in |buffer| of group_elements().
template <typename T>
const T* load_lines(Pace& pace, const Lines& lines, const LineGroup& group, pfrt_dtype dtype,
                    const void* base, T* buffer);
// Address at which a kernel computes the group's lines of an output; store_lines completes it.
template <typename T>
T* place_lines(const Lines& lines, const LineGroup& group, pfrt_dtype dtype, void* base, T* buffer);
template <typename T>
void store_lines(Pace& pace, const Lines& lines, const LineGroup& group, pfrt_dtype dtype,
                 void* base, const T* placed);

// The group's lines of output 0 are final.
void finish_lines(const Run& run, const Lines& lines, const LineGroup& group);

#define PFRT_LINES(T)                                                                        \
  extern template const T* load_lines(Pace&, const Lines&, const LineGroup&, pfrt_dtype,     \
                                      const void*, T*);                                      \
  extern template T* place_lines(const Lines&, const LineGroup&, pfrt_dtype, void*, T*);     \
  extern template void store_lines(Pace&, const Lines&, const LineGroup&, pfrt_dtype, void*, \
                                   const T*);
PFRT_LINES(float)
PFRT_LINES(double)
PFRT_LINES(int64_t)
PFRT_LINES(uint64_t)
#undef PFRT_LINES

}  // namespace pfrt::cpu

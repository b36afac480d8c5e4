// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/elements/lines.h"

#include <algorithm>

#include "providers/cpu/kernel/signature.h"

namespace pfrt::cpu {

Result<Lines> Lines::make(std::span<const int64_t> dims, int64_t axis) {
  Lines lines;
  if (dims.empty()) {
    if (axis != 0 && axis != -1) return axis_of(axis, 0).take_status();
    return lines;
  }
  PFRT_ASSIGN(const int64_t at, axis_of(axis, dims.size()));
  const auto split = dims.begin() + at;
  lines.length = *split;
  for (auto d = dims.begin(); d != split; ++d) lines.outer *= *d;
  for (auto d = split + 1; d != dims.end(); ++d) lines.inner *= *d;

  // About four blocks a group; across short rows of neighbours at least a cache line of them.
  const int64_t wanted = 4 * kBlock / std::max<int64_t>(lines.length, 1);
  if (lines.inner > 1) {
    lines.group = std::min(lines.inner, std::clamp<int64_t>(wanted, 16, kBlock));
    lines.groups_per_outer = (lines.inner + lines.group - 1) / lines.group;
    lines.groups = lines.outer * lines.groups_per_outer;
  } else {
    lines.group = std::max<int64_t>(std::min(lines.lines(), wanted), 1);
    lines.groups = (lines.lines() + lines.group - 1) / lines.group;
  }
  return lines;
}

Lines Lines::with_length(int64_t other) const {
  Lines lines = *this;
  lines.length = other;
  return lines;
}

LineGroup::LineGroup(const Lines& lines, int64_t index) {
  if (lines.inner > 1) {
    slice = index / lines.groups_per_outer;
    first = index % lines.groups_per_outer * lines.group;
    count = std::min(lines.group, lines.inner - first);
  } else {
    slice = 0;
    first = index * lines.group;
    count = std::min(lines.group, lines.lines() - first);
  }
}

namespace {

// First element of row |k| (element k of every line) of a group when inner > 1.
int64_t row_start(const Lines& lines, const LineGroup& group, int64_t k) {
  return (group.slice * lines.length + k) * lines.inner + group.first;
}

}  // namespace

template <typename T>
const T* load_lines(Pace& pace, const Lines& lines, const LineGroup& group, pfrt_dtype dtype,
                    const void* base, T* buffer) {
  if (lines.inner <= 1)
    return read_block(dtype, base, group.first * lines.length, group.count * lines.length, buffer);
  T block[kBlock];
  for (int64_t k = 0; k < lines.length && !pace.stopped(4 * group.count); ++k) {
    const T* row = read_block(dtype, base, row_start(lines, group, k), group.count, block);
    for (int64_t j = 0; j < group.count; ++j) buffer[j * lines.length + k] = row[j];
  }
  return buffer;
}

template <typename T>
T* place_lines(const Lines& lines, const LineGroup& group, pfrt_dtype dtype, void* base,
               T* buffer) {
  return lines.inner <= 1 ? place_block(dtype, base, group.first * lines.length, buffer) : buffer;
}

template <typename T>
void store_lines(Pace& pace, const Lines& lines, const LineGroup& group, pfrt_dtype dtype,
                 void* base, const T* placed) {
  if (lines.inner <= 1)
    return write_block(dtype, base, group.first * lines.length, group.count * lines.length, placed);
  T block[kBlock];
  for (int64_t k = 0; k < lines.length && !pace.stopped(4 * group.count); ++k) {
    const int64_t start = row_start(lines, group, k);
    T* row = place_block(dtype, base, start, block);
    for (int64_t j = 0; j < group.count; ++j) row[j] = placed[j * lines.length + k];
    write_block(dtype, base, start, group.count, row);
  }
}

void finish_lines(const Run& run, const Lines& lines, const LineGroup& group) {
  if (lines.inner <= 1)
    return run.apply_epilogue(group.first * lines.length,
                              (group.first + group.count) * lines.length);
  for (int64_t k = 0; k < lines.length; ++k) {
    const int64_t start = row_start(lines, group, k);
    run.apply_epilogue(start, start + group.count);
  }
}

#define PFRT_LINES(T)                                                                          \
  template const T* load_lines(Pace&, const Lines&, const LineGroup&, pfrt_dtype, const void*, \
                               T*);                                                            \
  template T* place_lines(const Lines&, const LineGroup&, pfrt_dtype, void*, T*);              \
  template void store_lines(Pace&, const Lines&, const LineGroup&, pfrt_dtype, void*, const T*);
PFRT_LINES(float)
PFRT_LINES(double)
PFRT_LINES(int64_t)
PFRT_LINES(uint64_t)
#undef PFRT_LINES

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
//
// Operators that put tensors together, take parts of them by position, or put something around
// them.
#include <algorithm>

#include "providers/wse/operators/copy.h"
#include "providers/wse/operators/families.h"
#include "providers/wse/operators/tensor.h"
#include "providers/wse/operators/walk.h"

namespace pfrt::wse {
namespace cut {
namespace {

template <typename T>
void copy_as(const Part& from, const Part& to, const Dims& dims) {
  const T* const source = from.tensor.as<T>() + from.first;
  T* const target = to.tensor.as<T>() + to.first;
  each_row<2>(dims, {from.strides, to.strides},
              [&](int64_t length, const auto& at, const auto& step) {
                for (int64_t i = 0; i < length; ++i)
                  target[at[1] + i * step[1]] = source[at[0] + i * step[0]];
              });
}

// An axis that tensors are put together or taken apart along; -1 where it is none of them.
int64_t axis_attr(const Call& call, const Tensor& tensor, int64_t fallback) {
  return axis_of(call.node.attr_int("axis", fallback), tensor.rank());
}

// Whether |part| is as |whole| but along |axis|, where it has elements [at, at + its own).
bool is_part(const Tensor& part, const Tensor& whole, int64_t axis, int64_t at) {
  Dims dims = part.dims;
  if (dims.size() != whole.dims.size()) return false;
  const auto a = static_cast<size_t>(axis);
  if (dims[a] > whole.dims[a] - at) return false;
  dims[a] = whole.dims[a];
  return dims == whole.dims;
}

bool run_concat(const Call& call, std::string* why) {
  if (!sound(call, call.node.input_count(), why)) return false;
  const Tensor& y = call.out[0];
  const int64_t axis = axis_attr(call, y, 0);
  if (axis < 0) return fault(call, why, "the axis is not one of dimensions ", text_of(y.dims));
  const auto a = static_cast<size_t>(axis);
  const Dims strides = strides_of(y.dims);
  int64_t at = 0;
  for (const Tensor& x : call.in) {
    if (!is_part(x, y, axis, at))
      return fault(call, why, "an input of dimensions ", text_of(x.dims), " is no part of ",
                   text_of(y.dims));
    copy_strided({x, 0, strides_of(x.dims)}, {y, at * strides[a], strides}, x.dims);
    at += x.dims[a];
  }
  if (at != y.dims[a])
    return fault(call, why, "inputs of ", at, " elements along axis ", axis, " for ",
                 text_of(y.dims));
  round_output(call, y);
  return true;
}

// Elements of part |i| along the axis. Parts of one size are rounded up, so that the last may be
// shorter.
int64_t part_of(const std::vector<int64_t>& sizes, int64_t whole, size_t parts, size_t i) {
  if (!sizes.empty()) return i < sizes.size() ? sizes[i] : 0;
  const auto count = static_cast<int64_t>(parts), part = (whole + count - 1) / count;
  return std::clamp<int64_t>(whole - part * static_cast<int64_t>(i), 0, part);
}

bool run_split(const Call& call, std::string* why) {
  // The first output may be one that nobody wants, unlike elsewhere.
  const Tensor& x = call.in.empty() ? Tensor{} : call.in[0];
  const int64_t axis = axis_attr(call, x, 0);
  if (x.count() < 0 || (x.count() > 0 && x.data == nullptr) || axis < 0)
    return fault(call, why, "the axis is not one of dimensions ", text_of(x.dims));
  const std::vector<int64_t> sizes = integers(call, 1);
  const auto a = static_cast<size_t>(axis);
  const Dims strides = strides_of(x.dims);
  int64_t at = 0;
  for (size_t i = 0; i < call.out.size(); ++i) {
    const Tensor& y = call.out[i];
    const int64_t size = part_of(sizes, x.dims[a], call.out.size(), i);
    if (size < 0 || size > x.dims[a] - at)
      return fault(call, why, "part ", i, " has ", size, " elements of the ", x.dims[a] - at,
                   " that are left");
    if (y.data != nullptr) {
      if (y.rank() != x.rank() || y.dims[a] != size || !is_part(y, x, axis, at))
        return fault(call, why, "output ", i, " of dimensions ", text_of(y.dims), " is no part of ",
                     text_of(x.dims));
      copy_strided({x, at * strides[a], strides}, {y, 0, strides_of(y.dims)}, y.dims);
      round_output(call, y);
    }
    at += size;
  }
  return true;
}

// --------------------------------------------------------------------------------------- Slice

// Along one axis: |count| elements from |first| on, |step| apart.
struct Range {
  int64_t first, count, step;
};

// A start before the first element is the first, also for a slice that goes back.
Range range_of(int64_t size, int64_t start, int64_t end, int64_t step) {
  if (size == 0) return {0, 0, 1};
  const int64_t least = step > 0 ? 0 : -1, most = step > 0 ? size : size - 1;
  const auto placed = [&](int64_t v) { return v >= 0 ? v : v < -size ? least : v + size; };
  const int64_t first = std::clamp<int64_t>(placed(start), 0, most),
                last = std::clamp(placed(end), least, most);
  step = std::clamp<int64_t>(step, -size, size);  // takes one element, as any larger step does
  const int64_t span = step > 0 ? last - first : first - last, apart = step > 0 ? step : -step;
  return {first, span > 0 ? (span - 1) / apart + 1 : 0, step};
}

bool run_slice(const Call& call, std::string* why) {
  if (!sound(call, 1, why)) return false;
  const Tensor &x = call.in[0], &y = call.out[0];
  const auto starts = integers(call, 1), ends = integers(call, 2);
  auto axes = integers(call, 3), steps = integers(call, 4);
  for (size_t i = axes.size(); i < starts.size() && !has_input(call, 3); ++i)
    axes.push_back(static_cast<int64_t>(i));
  if (!has_input(call, 4)) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return fault(call, why, "starts, ends, axes and steps differ in length");
  Dims dims = x.dims, strides = strides_of(x.dims);
  const Dims own = strides;
  std::vector<bool> seen(dims.size(), false);
  int64_t first = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t axis = axis_of(axes[i], x.rank());
    const auto a = static_cast<size_t>(axis);
    if (axis < 0 || steps[i] == 0 || seen[a])
      return fault(call, why, "axis ", axes[i], ", step ", steps[i], " of dimensions ",
                   text_of(x.dims));
    seen[a] = true;
    const Range range = range_of(x.dims[a], starts[i], ends[i], steps[i]);
    dims[a] = range.count;
    strides[a] = own[a] * range.step;
    first += range.count > 0 ? range.first * own[a] : 0;
  }
  if (!output_has_dims(call, 0, dims, why)) return false;
  copy_strided({x, first, strides}, {y, 0, strides_of(dims)}, dims);
  round_output(call, y);
  return true;
}

// ----------------------------------------------------------------------------------------- Pad

template <typename T>
void fill_with(const Tensor& to, const void* value) {
  T element{};
  if (value != nullptr)
    std::copy_n(static_cast<const char*>(value), sizeof(T), reinterpret_cast<char*>(&element));
  std::fill_n(to.as<T>(), to.count(), element);
}

void fill(const Tensor& to, const void* value) {
  const size_t size = dtype_size(to.dtype);
  if (size == 1) return fill_with<uint8_t>(to, value);
  if (size == 4) return fill_with<uint32_t>(to, value);
  fill_with<uint64_t>(to, value);
}

// Padding by axis, from the lists of the axes that have some. False where they do not fit.
bool read_pads(const Call& call, Dims* before, Dims* after) {
  const int64_t rank = call.in[0].rank();
  const std::vector<int64_t> pads = integers(call, 1);
  std::vector<int64_t> axes = integers(call, 3);
  for (int64_t i = 0; i < rank && !has_input(call, 3); ++i) axes.push_back(i);
  if (pads.size() != 2 * axes.size()) return false;
  before->assign(static_cast<size_t>(rank), 0);
  *after = *before;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axis_of(axes[i], rank);
    if (axis < 0) return false;
    (*before)[static_cast<size_t>(axis)] = pads[i];
    (*after)[static_cast<size_t>(axis)] = pads[axes.size() + i];
  }
  return true;
}

// Sums with a dimension fit an int64.
bool is_small(int64_t pad) {
  constexpr int64_t kMost = int64_t{1} << 61;
  return pad > -kMost && pad < kMost;
}

// Negative padding leaves elements out.
bool run_pad(const Call& call, std::string* why) {
  if (!sound(call, 1, why)) return false;
  const Tensor &x = call.in[0], &y = call.out[0];
  Dims before, after;
  if (!read_pads(call, &before, &after) || y.rank() != x.rank())
    return fault(call, why, "pads ", text_of(integers(call, 1)), " of dimensions ", text_of(x.dims),
                 " to ", text_of(y.dims));
  const Dims from = strides_of(x.dims), to = strides_of(y.dims);
  Dims kept(x.dims.size());
  int64_t first = 0, target = 0;
  for (size_t d = 0; d < kept.size(); ++d) {
    if (!is_small(before[d]) || !is_small(after[d]) ||
        y.dims[d] != x.dims[d] + before[d] + after[d])
      return fault(call, why, "pads ", before[d], " and ", after[d], " of dimensions ",
                   text_of(x.dims), " to ", text_of(y.dims));
    const int64_t skipped = std::max<int64_t>(-before[d], 0), at = std::max<int64_t>(before[d], 0);
    kept[d] = std::max<int64_t>(std::min(x.dims[d] - skipped, y.dims[d] - at), 0);
    if (kept[d] == 0) continue;
    first += skipped * from[d];
    target += at * to[d];
  }
  fill(y, has_input(call, 2) && call.in[2].count() > 0 ? call.in[2].data : nullptr);
  copy_strided({x, first, from}, {y, target, to}, kept);
  round_output(call, y);
  return true;
}

// ------------------------------------------------------------------------------------ refusals

std::string refuse_concat(const SnapshotNode& node) {
  for (uint32_t i = 0; i < node.input_count(); ++i)
    if (std::string why = refuse_unlike_output(node, i, kMoved); !why.empty()) return why;
  return {};
}

std::string refuse_split(const SnapshotNode& node) {
  const pfrt_dtype dtype = node.input_dtype(0);
  for (uint32_t i = 0; i < node.output_count() && dtype < 32; ++i)
    if (std::string why = refuse_output(node, i, types_of(dtype)); !why.empty()) return why;
  return first_of({refuse_input(node, 0, kMoved), refuse_input(node, 1, kIndex),
                   refuse_run_time(node, 1, "lengths")});
}

std::string refuse_slice(const SnapshotNode& node) {
  std::string why = refuse_unlike_output(node, 0, kMoved);
  constexpr std::string_view kNames[] = {"starts", "ends", "axes", "steps"};
  for (uint32_t i = 0; i < 4 && why.empty(); ++i)
    why = first_of({refuse_input(node, i + 1, kIndex), refuse_run_time(node, i + 1, kNames[i])});
  return why;
}

std::string refuse_pad(const SnapshotNode& node) {
  const std::string_view mode = node.attr_string("mode", "constant");
  if (mode != "constant") return message("Pad of mode '", mode, "': 'constant' is taken here");
  return first_of({refuse_unlike_output(node, 0, kMoved), refuse_input(node, 1, kIndex),
                   refuse_run_time(node, 1, "pads"), refuse_unlike_output(node, 2, kMoved),
                   refuse_input(node, 3, kIndex), refuse_run_time(node, 3, "axes")});
}

constexpr Work kNone{.vector_operations = 0};

constexpr Operator kOperators[] = {
    {"", "Concat", Family::kMove, kNone, refuse_concat, run_concat},
    {"", "Split", Family::kMove, kNone, refuse_split, run_split},
    {"", "Slice", Family::kMove, kNone, refuse_slice, run_slice},
    {"", "Pad", Family::kMove, kNone, refuse_pad, run_pad},
};

}  // namespace
}  // namespace cut

void copy_strided(const Part& from, const Part& to, const Dims& dims) {
  if (element_count(dims.data(), dims.size()) <= 0) return;
  switch (dtype_size(to.tensor.dtype)) {
    case 1:
      return cut::copy_as<uint8_t>(from, to, dims);
    case 4:
      return cut::copy_as<uint32_t>(from, to, dims);
    default:
      return cut::copy_as<uint64_t>(from, to, dims);
  }
}

std::span<const Operator> cut_operators() { return cut::kOperators; }

}  // namespace pfrt::wse

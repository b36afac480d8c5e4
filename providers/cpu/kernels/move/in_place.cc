// SPDX-License-Identifier: Apache-2.0
//
// When nodes of the move family need no step: along outermost dimensions the outputs of Split,
// Slice and Gather lie in their input, and the inputs of Concat in its output.
#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "providers/cpu/kernel/slice_range.h"
#include "providers/cpu/kernel/types.h"
#include "providers/cpu/kernels/move/make.h"

namespace pfrt::cpu {
namespace {

using Dims = std::span<const int64_t>;
using Offsets = std::optional<std::vector<uint64_t>>;

int64_t product(Dims dims) { return element_count(dims.data(), dims.size()); }

// The axis, where only dimensions of 1 stand before it.
std::optional<size_t> outermost_axis(const SnapshotNode& node, Dims dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t axis = node.attr_int("axis", 0);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || product(dims.first(static_cast<size_t>(axis))) != 1)
    return std::nullopt;
  return static_cast<size_t>(axis);
}

// Whether |slice| is |whole| but for the size along |axis|.
bool fits(Dims slice, Dims whole, size_t axis) {
  if (slice.size() != whole.size()) return false;
  for (size_t d = 0; d < slice.size(); ++d)
    if (d != axis && slice[d] != whole[d]) return false;
  return true;
}

// Offsets of slices that follow each other along |axis| of |whole|; dims(i) are those of slice |i|.
template <typename DimsOf>
Offsets in_a_row(Dims whole, size_t axis, uint32_t count, size_t element, DimsOf dims) {
  std::vector<uint64_t> out;
  int64_t at = 0;
  const int64_t inner = product(whole.subspan(axis + 1));
  for (uint32_t i = 0; i < count; ++i) {
    const Dims slice = dims(i);
    if (!fits(slice, whole, axis)) return std::nullopt;
    out.push_back(static_cast<uint64_t>(at * inner) * element);
    at += slice[axis];
  }
  return at == whole[axis] ? Offsets(std::move(out)) : std::nullopt;
}

Offsets slice(const SnapshotNode& node, size_t element) {
  const Dims in = node.input_dims(0), out = node.output_dims(0);
  for (uint32_t i = 1; i < node.input_count(); ++i)
    if (node.has_input(i) && node.input_elements(i) > 0 && !node.is_constant(i))
      return std::nullopt;
  const std::vector<int64_t> starts = node.constant_int64s(1), ends = node.constant_int64s(2),
                             steps = node.constant_int64s(4);
  std::vector<int64_t> axes = node.constant_int64s(3);
  if (!node.has_input(3)) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() || in.size() != out.size() ||
      (!steps.empty() && steps.size() != starts.size()))
    return std::nullopt;
  std::vector<int64_t> count(in.begin(), in.end());
  int64_t offset = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + static_cast<int64_t>(in.size()) : axes[i];
    if (axis < 0 || axis >= static_cast<int64_t>(in.size())) return std::nullopt;
    const auto d = static_cast<size_t>(axis);
    auto range = slice_range(starts[i], ends[i], steps.empty() ? 1 : steps[i], in[d]);
    if (!range.ok() || (range->count > 1 && range->step != 1)) return std::nullopt;
    count[d] = range->count;
    offset += range->start * product(in.subspan(d + 1));
  }
  if (!std::ranges::equal(count, out)) return std::nullopt;
  // Once a dimension keeps several elements, those inside it must keep all.
  size_t d = 0;
  while (d < out.size() && out[d] == 1) ++d;
  for (++d; d < out.size(); ++d)
    if (out[d] != in[d]) return std::nullopt;
  return std::vector<uint64_t>{static_cast<uint64_t>(offset) * element};
}

Offsets gather(const SnapshotNode& node, size_t element) {
  const Dims in = node.input_dims(0);
  const std::optional<size_t> axis = outermost_axis(node, in);
  const std::vector<int64_t> indices = node.constant_int64s(1);
  if (!axis || indices.size() != 1) return std::nullopt;
  const int64_t size = in[*axis], at = indices[0] < 0 ? indices[0] + size : indices[0];
  if (at < 0 || at >= size) return std::nullopt;
  return std::vector<uint64_t>{static_cast<uint64_t>(at * product(in.subspan(*axis + 1))) *
                               element};
}

// Whether only dimensions of 1 are moved.
bool keeps_order(const SnapshotNode& node) {
  const Dims dims = node.input_dims(0), perm = node.attr_ints("perm");
  if (perm.size() != dims.size()) return false;
  int64_t last = -1;
  for (int64_t p : perm) {
    if (p < 0 || p >= static_cast<int64_t>(dims.size())) return false;
    if (dims[static_cast<size_t>(p)] == 1) continue;
    if (p < last) return false;
    last = p;
  }
  return true;
}

std::optional<InPlace> in_place(InPlace::Which which, Offsets offsets) {
  if (!offsets) return std::nullopt;
  return InPlace{which, std::move(*offsets)};
}

}  // namespace

std::optional<InPlace> transpose_in_place(const SnapshotNode& node) {
  return keeps_order(node) ? std::optional<InPlace>(InPlace{}) : std::nullopt;
}

std::optional<InPlace> slice_in_place(const SnapshotNode& node) {
  if (!kMovable.has(node.input_dtype(0))) return std::nullopt;
  return in_place(InPlace::Which::kInInput, slice(node, stored_size(node.input_dtype(0))));
}

std::optional<InPlace> gather_in_place(const SnapshotNode& node) {
  if (!kMovable.has(node.input_dtype(0))) return std::nullopt;
  return in_place(InPlace::Which::kInInput, gather(node, stored_size(node.input_dtype(0))));
}

std::optional<InPlace> split_in_place(const SnapshotNode& node) {
  if (!kMovable.has(node.input_dtype(0))) return std::nullopt;
  const Dims in = node.input_dims(0);
  for (uint32_t i = 0; i < node.output_count(); ++i)
    if (!node.has_output(i)) return std::nullopt;
  const std::optional<size_t> axis = outermost_axis(node, in);
  if (!axis) return std::nullopt;
  return in_place(InPlace::Which::kInInput,
                  in_a_row(in, *axis, node.output_count(), stored_size(node.input_dtype(0)),
                           [&](uint32_t i) { return node.output_dims(i); }));
}

std::optional<InPlace> concat_in_place(const SnapshotNode& node) {
  if (!kMovable.has(node.input_dtype(0))) return std::nullopt;
  const Dims out = node.output_dims(0);
  for (uint32_t i = 0; i < node.input_count(); ++i)
    if (!node.has_input(i) || node.input_dtype(i) != node.input_dtype(0)) return std::nullopt;
  const std::optional<size_t> axis = outermost_axis(node, out);
  if (!axis) return std::nullopt;
  return in_place(InPlace::Which::kInOutput,
                  in_a_row(out, *axis, node.input_count(), stored_size(node.input_dtype(0)),
                           [&](uint32_t i) { return node.input_dims(i); }));
}

}  // namespace pfrt::cpu

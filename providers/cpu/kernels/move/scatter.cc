// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "providers/cpu/elements/indices.h"
#include "providers/cpu/elements/load.h"
#include "providers/cpu/elements/strided.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/move/by_size.h"
#include "providers/cpu/kernels/move/combine.h"
#include "providers/cpu/kernels/move/make.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kBetweenLooks = 1 << 14;  // elements
constexpr int64_t kColumns = 256;           // of a task
constexpr int64_t kContiguous = 4096;       // of a task, where columns of the data are the same
constexpr int64_t kRow = 64;                // elements that are worth a copy as a whole
constexpr int64_t kTaskElements = 1024;     // elements of a slice that a task takes

// Inputs of both operators: data, indices, updates.
Status check_inputs(const SnapshotNode& node) {
  PFRT_TRY(need(node, 3, 1));
  PFRT_TRY(need_types(node, {1}, kIndices));
  if (node.input_dtype(2) != node.input_dtype(0))
    return kernel_error("updates are ", dtype_name(node.input_dtype(2)), ", data ",
                        dtype_name(node.input_dtype(0)));
  return need_output_dims(node, 0, node.input_dims(0));
}

Kernel scatter_kernel(const SnapshotNode& node) {
  Kernel kernel;
  kernel.width = 1;
  if (node.input_index(0) != node.input_index(1) && node.input_index(0) != node.input_index(2))
    kernel.may_alias = 0;
  return kernel;
}

// Updates [first, first + n) of lines of |inner| neighbours, for positions [begin, end) along the
// axis. They are done in their order, since the last of equal indices wins.
struct ScatterLines {
  int64_t begin, end, inner, n;
  int64_t size, stride;   // of the data along the axis
  const int64_t* places;  // of the neighbours, in the data; null where they are contiguous
  int64_t first;          // of them
};

// These stand for the index of a row whose elements have not all the same.
constexpr int64_t kMixed = -1, kOutside = -2;

// Returns the position on an axis of |size| that all of a row of indices mean, or one of the above.
template <typename I>
int64_t common_index(const I* indices, int64_t n, int64_t size) {
  for (int64_t begin = 0; begin < n; begin += kColumns) {
    I differences = 0;
    for (int64_t j = begin; j < std::min(n, begin + kColumns); ++j)
      differences |= indices[j] ^ indices[0];
    if (differences == 0) continue;
    return IndexInput::any_outside<I>(indices, 0, n, {&size, 1}) ? kOutside : kMixed;
  }
  const int64_t index = indices[0];
  return index < -size || index >= size ? kOutside : from_end(index, size);
}

// Returns that of each row of |n| indices; nothing where an index is outside. Rows have one index
// where it was repeated for a slice.
std::vector<int64_t> common_indices(const Run& run, const IndexInput& indices, int64_t n,
                                    int64_t size) {
  const int64_t rows = indices.count() / n;
  const void* const at = indices.data(run);
  std::vector<int64_t> all(static_cast<size_t>(rows));
  run.blocks(rows, std::max<int64_t>(1, kBetweenLooks / n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      all[static_cast<size_t>(i)] =
          indices.wide() ? common_index(static_cast<const int64_t*>(at) + i * n, n, size)
                         : common_index(static_cast<const int32_t*>(at) + i * n, n, size);
  });
  if (std::ranges::find(all, kOutside) != all.end()) all.clear();
  return all;
}

// |join| gives what becomes of an element and its update.
template <typename E, typename I, typename Join>
void put(const ScatterLines& lines, const E* updates, const I* indices, E* out, Join&& join) {
  const auto to = [&](I index) { return out + from_end(index, lines.size) * lines.stride; };
  for (int64_t k = lines.begin; k < lines.end; ++k) {
    const E* const from = updates + k * lines.inner;
    const I* const at = indices + k * lines.inner;
    for (int64_t j = 0; j < lines.n; ++j) {
      E& y = to(at[j])[lines.places != nullptr ? lines.places[j] : lines.first + j];
      y = join(y, from[j]);
    }
  }
}

Reduction reduction_of(const SnapshotNode& node) {
  return reduction_from_name(node.attr_string("reduction", "none")).value_or(Reduction::kNone);
}

}  // namespace

std::string refuse_scatter(const KernelRequest& node) {
  const std::string_view name = node.attr_string("reduction", "none");
  const auto reduction = reduction_from_name(name);
  if (!reduction) return message("reduction is '", name, "', expected none, add, mul, max or min");
  const pfrt_dtype dtype = node.input_dtype(0);
  const bool is_complex = dtype == PFRT_DTYPE_COMPLEX64 || dtype == PFRT_DTYPE_COMPLEX128;
  const bool orders = *reduction == Reduction::kMax || *reduction == Reduction::kMin;
  if (*reduction != Reduction::kNone && (combine_fn(dtype) == nullptr || (is_complex && orders)))
    return message("reduction ", name, " has no meaning for ", dtype_name(node.input_dtype(0)));
  return "";
}

Result<Kernel> make_scatter_elements(const KernelRequest& node) {
  PFRT_TRY(check_inputs(node));
  const auto data = node.input_dims(0), dims = node.input_dims(1);
  if (data.size() != dims.size() || !same_dims(dims, node.input_dims(2)))
    return kernel_error("indices and updates must have the same dimensions, of rank ", data.size());
  PFRT_ASSIGN(const int64_t signed_axis, axis_of(node.attr_int("axis", 0), data.size()));
  const size_t axis = static_cast<size_t>(signed_axis);
  for (size_t d = 0; d < dims.size(); ++d)
    if (d != axis && dims[d] > data[d])
      return kernel_error("indices exceed the data in dimension ", d, ": ", dims[d], " of ",
                          data[d]);
  const int64_t size = data[axis], bytes = static_cast<int64_t>(stored_size(node.input_dtype(0)));
  const int64_t data_bytes = node.input_elements(0) * bytes;
  const IndexInput indices(node, 1);
  const Reduction reduction = reduction_of(node);
  const CombineFn combine = combine_fn(node.input_dtype(0));
  // Lines along the axis are independent: an update stays on its line.
  const int64_t outer = SnapshotNode::elements(dims.first(axis)),
                inner = SnapshotNode::elements(dims.subspan(axis + 1));
  const bool whole = same_dims(dims.subspan(axis + 1), data.subspan(axis + 1));
  const int64_t columns = whole ? kContiguous : kColumns;
  const int64_t rows = std::max<int64_t>(
      1, kBetweenLooks / std::max<int64_t>(1, dims[axis] * std::min(inner, columns)));
  const bool by_rows = whole && inner >= kRow;
  const bool adds_floats =
      reduction == Reduction::kAdd && node.input_dtype(0) == PFRT_DTYPE_FLOAT32;
  Kernel kernel = scatter_kernel(node);
  kernel.width = 0;
  kernel.run = [=, shape = std::vector<int64_t>(dims.begin(), dims.end()),
                strides = dense_strides(data)](const Run& run) -> pfrt_code {
    // Offset in the data of position |i| of dimensions [begin, end) of the indices.
    const auto place = [&](int64_t i, size_t begin, size_t end) {
      int64_t offset = 0;
      for (size_t d = end; d-- > begin; i /= shape[d]) offset += i % shape[d] * strides[d];
      return offset;
    };
    std::vector<int64_t> common;
    if (by_rows && indices.count() > 0) common = common_indices(run, indices, inner, size);
    if (common.empty())
      if (const pfrt_code code = indices.check(run, "ScatterElements", size)) return code;
    if (const pfrt_code code = run.stop()) return code;
    copy_bytes(run, run.input(0), run.output(0), data_bytes);
    if (indices.count() == 0) return 0;
    const void* const at = indices.data(run);
    const int64_t tasks = (inner + columns - 1) / columns;
    run.parallel((outer + rows - 1) / rows * tasks, [&](int64_t task, uint32_t) {
      const int64_t first = task % tasks * columns, n = std::min(columns, inner - first);
      int64_t places[kColumns];
      for (int64_t j = 0; j < n && !whole; ++j)
        places[j] = place(first + j, axis + 1, shape.size());
      for (int64_t o = task / tasks * rows; o < std::min(outer, (task / tasks + 1) * rows); ++o) {
        if (run.stopped()) return;
        const int64_t base = place(o, 0, axis);
        const int64_t length = shape[axis], from = o * length * inner + first;
        const int64_t step = common.empty() ? std::max<int64_t>(1, kBetweenLooks / n) : 1;
        for (int64_t k = 0; k < length; k += step) {
          if (k > 0 && run.stopped()) return;
          const int64_t same =
              common.empty() ? kMixed : common[static_cast<size_t>(o * length + k)];
          if (same >= 0) {
            char* const to = run.output<char>(0) + (base + same * strides[axis] + first) * bytes;
            const char* const update = run.input<char>(2) + (from + k * inner) * bytes;
            if (reduction == Reduction::kNone)
              std::memcpy(to, update, static_cast<size_t>(n * bytes));
            else
              combine(to, update, n, reduction);
            continue;
          }
          const ScatterLines lines{k,
                                   std::min(k + step, length),
                                   inner,
                                   n,
                                   size,
                                   strides[axis],
                                   whole ? nullptr : places,
                                   first};
          // The indices and elements of the line, as their types.
          const auto put_as = [&](auto element, auto index, auto&& join) {
            using E = decltype(element);
            using I = decltype(index);
            put(lines, run.input<E>(2) + from, static_cast<const I*>(at) + from,
                run.output<E>(0) + base, join);
          };
          if (reduction == Reduction::kNone &&
              by_size(bytes, indices.wide(), [&](auto element, auto index) {
                put_as(element, index, [](auto, auto update) { return update; });
              }))
            continue;
          if (adds_floats) {
            const auto add = [](float y, float update) { return y + update; };
            indices.wide() ? put_as(0.0f, int64_t{}, add) : put_as(0.0f, int32_t{}, add);
            continue;
          }
          for (int64_t l = k; l < lines.end; ++l)
            for (int64_t j = 0; j < n; ++j) {
              const int64_t i = from + l * inner + j;
              char* const to =
                  run.output<char>(0) + (base + (whole ? first + j : places[j]) +
                                         from_end(indices.at(at, i), size) * strides[axis]) *
                                            bytes;
              const char* const update = run.input<char>(2) + i * bytes;
              if (reduction == Reduction::kNone)
                std::memcpy(to, update, static_cast<size_t>(bytes));
              else
                combine(to, update, 1, reduction);
            }
        }
      }
    });
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_scatter_nd(const KernelRequest& node) {
  PFRT_TRY(check_inputs(node));
  const auto data = node.input_dims(0), dims = node.input_dims(1), updates = node.input_dims(2);
  if (dims.empty() || dims.back() > static_cast<int64_t>(data.size()))
    return kernel_error("index tuples do not fit data of rank ", data.size());
  const size_t depth = static_cast<size_t>(dims.back()), lead = dims.size() - 1;
  if (updates.size() != lead + data.size() - depth ||
      !same_dims(updates.first(lead), dims.first(lead)) ||
      !same_dims(updates.subspan(lead), data.subspan(depth)))
    return kernel_error(
        "updates must have the dimensions of the indices but the last, then those of a slice");
  const int64_t tuples = SnapshotNode::elements(dims.first(lead)),
                slice = SnapshotNode::elements(data.subspan(depth));
  const int64_t bytes = static_cast<int64_t>(stored_size(node.input_dtype(0)));
  const int64_t data_bytes = node.input_elements(0) * bytes;
  const IndexInput indices(node, 1);
  const Reduction reduction = reduction_of(node);
  const CombineFn combine = combine_fn(node.input_dtype(0));
  Kernel kernel = scatter_kernel(node);
  if (slice > kTaskElements) kernel.width = 0;
  kernel.run = [=, sizes = std::vector<int64_t>(data.begin(), data.end()),
                strides = dense_strides(data)](const Run& run) -> pfrt_code {
    const void* const at = indices.data(run);
    const int64_t width = static_cast<int64_t>(depth);
    if (const pfrt_code code =
            indices.check_tuples(run, "ScatterND", std::span<const int64_t>(sizes).first(depth)))
      return code;
    copy_bytes(run, run.input(0), run.output(0), data_bytes);
    if (slice == 0) return 0;
    // Tuples may be equal: each task takes a range of every slice, in the order of the updates.
    const int64_t tasks = (slice + kTaskElements - 1) / kTaskElements;
    const int64_t between = std::max<int64_t>(kBetweenLooks / std::min(slice, kTaskElements), 1);
    run.parallel(tasks, [&](int64_t task, uint32_t) {
      const int64_t first = task * kTaskElements, n = std::min(kTaskElements, slice - first);
      for (int64_t t = 0; t < tuples; ++t) {
        if (t % between == 0 && run.stopped()) return;
        int64_t start = first;
        for (size_t d = 0; d < depth; ++d) {
          const int64_t index = indices.at(at, t * width + static_cast<int64_t>(d));
          start += (index < 0 ? index + sizes[d] : index) * strides[d];
        }
        char* const to = run.output<char>(0) + start * bytes;
        const char* const from = run.input<char>(2) + (t * slice + first) * bytes;
        if (reduction == Reduction::kNone) {
          std::memcpy(to, from, static_cast<size_t>(n * bytes));
        } else {
          combine(to, from, n, reduction);
        }
      }
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "providers/cpu/elements/indices.h"
#include "providers/cpu/elements/load.h"
#include "providers/cpu/elements/strided.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/move/by_size.h"
#include "providers/cpu/kernels/move/make.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kBlockBytes = 1 << 16;  // a task, about

int64_t product(std::span<const int64_t> dims) { return SnapshotNode::elements(dims); }

std::vector<int64_t> concatenated(std::span<const int64_t> a, std::span<const int64_t> b,
                                  std::span<const int64_t> c) {
  std::vector<int64_t> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

int64_t rows_a_task(int64_t row_bytes) {
  return std::max<int64_t>(1, kBlockBytes / std::max<int64_t>(row_bytes, 1));
}

void copy_element(char* to, const char* from, int64_t bytes) {
  switch (bytes) {  // a constant size is one move
    case 1:
      *to = *from;
      break;
    case 2:
      std::memcpy(to, from, 2);
      break;
    case 4:
      std::memcpy(to, from, 4);
      break;
    case 8:
      std::memcpy(to, from, 8);
      break;
    default:
      std::memcpy(to, from, static_cast<size_t>(bytes));
  }
}

}  // namespace

Result<Kernel> make_gather(const KernelRequest& node) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_types(node, {1}, kIndices));
  const auto data = node.input_dims(0);
  PFRT_ASSIGN(const int64_t signed_axis, axis_of(node.attr_int("axis", 0), data.size()));
  const size_t axis = static_cast<size_t>(signed_axis);
  PFRT_TRY(need_output_dims(
      node, 0, concatenated(data.first(axis), node.input_dims(1), data.subspan(axis + 1))));
  const int64_t outer = product(data.first(axis)), size = data[axis];
  const int64_t elements = product(data.subspan(axis + 1)),
                row = elements * static_cast<int64_t>(stored_size(node.input_dtype(0)));
  const IndexInput indices(node, 1);
  Kernel kernel;
  kernel.run = [=](const Run& run) -> pfrt_code {
    if (const pfrt_code code = indices.check(run, "Gather", size)) return code;
    if (outer == 0 || row == 0) return 0;
    const void* const at = indices.data(run);
    const int64_t count = indices.count();
    run.blocks(outer * count, rows_a_task(row), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t index = indices.at(at, i % count),
                      slice = i / count * size + (index < 0 ? index + size : index);
        copy_element(run.output<char>(0) + i * row, run.input<char>(0) + slice * row, row);
      }
      run.apply_epilogue(begin * elements, end * elements);
    });
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_gather_elements(const KernelRequest& node) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_types(node, {1}, kIndices));
  const auto data = node.input_dims(0), dims = node.input_dims(1);
  if (data.size() != dims.size())
    return kernel_error("indices have rank ", dims.size(), ", data ", data.size());
  PFRT_ASSIGN(const int64_t signed_axis, axis_of(node.attr_int("axis", 0), data.size()));
  const size_t axis = static_cast<size_t>(signed_axis);
  for (size_t d = 0; d < dims.size(); ++d)
    if (d != axis && dims[d] > data[d])
      return kernel_error("indices exceed the data in dimension ", d, ": ", dims[d], " of ",
                          data[d]);
  PFRT_TRY(need_output_dims(node, 0, dims));
  const int64_t size = data[axis], bytes = static_cast<int64_t>(stored_size(node.input_dtype(0)));
  const IndexInput indices(node, 1);
  Kernel kernel;
  kernel.run = [=, shape = std::vector<int64_t>(dims.begin(), dims.end()),
                strides = dense_strides(data)](const Run& run) -> pfrt_code {
    if (const pfrt_code code = indices.check(run, "GatherElements", size)) return code;
    const void* const at = indices.data(run);
    const size_t last = shape.size() - 1;
    run.blocks(indices.count(), rows_a_task(bytes), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end;) {
        int64_t left = i / shape[last], base = 0;
        for (size_t d = last; d-- > 0; left /= shape[d])
          if (d != axis) base += left % shape[d] * strides[d];
        const int64_t column = i % shape[last], n = std::min(shape[last] - column, end - i);
        const int64_t step = axis == last ? 0 : 1;
        if (step > 0) base += column;
        const auto from = [&](int64_t index, int64_t j) {
          return base + from_end(index, size) * strides[axis] + step * j;
        };
        const bool known = by_size(bytes, indices.wide(), [&](auto element, auto index) {
          using E = decltype(element);
          const auto* const v = static_cast<const decltype(index)*>(at) + i;
          const E* const x = run.input<E>(0);
          E* const y = run.output<E>(0) + i;
          const int64_t first = base, length = size, stride = strides[axis], next = step;
          for (int64_t j = 0; j < n; ++j)
            y[j] = x[first + from_end(v[j], length) * stride + next * j];
        });
        for (int64_t j = 0; j < n && !known; ++j)
          std::memcpy(run.output<char>(0) + (i + j) * bytes,
                      run.input<char>(0) + from(indices.at(at, i + j), j) * bytes,
                      static_cast<size_t>(bytes));
        i += n;
      }
      run.apply_epilogue(begin, end);
    });
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_gather_nd(const KernelRequest& node) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_types(node, {1}, kIndices));
  const auto data = node.input_dims(0), dims = node.input_dims(1);
  const int64_t batch_dims = node.attr_int("batch_dims", 0);
  if (dims.empty() || data.empty()) return kernel_error("data and indices need rank 1 or more");
  if (batch_dims < 0 || batch_dims >= static_cast<int64_t>(std::min(data.size(), dims.size())))
    return kernel_error("batch_dims ", batch_dims, " does not fit ranks ", data.size(), " and ",
                        dims.size());
  const size_t lead = static_cast<size_t>(batch_dims);
  const int64_t depth = dims.back();
  if (depth < 0 || depth > static_cast<int64_t>(data.size() - lead) ||
      !same_dims(data.first(lead), dims.first(lead)))
    return kernel_error("index tuples of ", depth, " do not fit data of rank ", data.size(),
                        " after ", lead, " batch dimensions");
  const size_t tuple = static_cast<size_t>(depth);
  PFRT_TRY(need_output_dims(
      node, 0, concatenated(dims.first(dims.size() - 1), {}, data.subspan(lead + tuple))));
  const int64_t batches = product(data.first(lead)), batch_size = product(data.subspan(lead));
  const int64_t tuples = product(dims.first(dims.size() - 1)),
                each = batches ? tuples / batches : 0;
  const int64_t bytes = static_cast<int64_t>(stored_size(node.input_dtype(0)));
  const int64_t row = product(data.subspan(lead + tuple)) * bytes;
  const IndexInput indices(node, 1);
  const std::vector<int64_t> strides = dense_strides(data.subspan(lead));
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < tuple; ++d) sizes.push_back(data[lead + d]);
  Kernel kernel;
  kernel.run = [=](const Run& run) -> pfrt_code {
    if (const pfrt_code code = indices.check_tuples(run, "GatherND", sizes)) return code;
    if (row == 0) return 0;
    const void* const at = indices.data(run);
    run.blocks(tuples, rows_a_task(row), [&](int64_t begin, int64_t end) {
      // The element that a tuple of indices means, of a batch that begins at |start|.
      const auto from = [&](const auto* tuple_indices, int64_t start) {
        for (size_t d = 0; d < tuple; ++d)
          start += from_end(tuple_indices[d], sizes[d]) * strides[d];
        return start;
      };
      for (int64_t t = begin; t < end;) {
        const int64_t batch = t / each, last = std::min(end, (batch + 1) * each);
        const bool known =
            row == bytes && by_size(bytes, indices.wide(), [&](auto element, auto index) {
              using E = decltype(element);
              const auto* const v = static_cast<const decltype(index)*>(at);
              const E* const x = run.input<E>(0);
              E* const y = run.output<E>(0);
              for (int64_t i = t; i < last; ++i) y[i] = x[from(v + i * depth, batch * batch_size)];
            });
        for (; !known && t < last; ++t) {
          const int64_t start =
              indices.wide()
                  ? from(static_cast<const int64_t*>(at) + t * depth, batch * batch_size)
                  : from(static_cast<const int32_t*>(at) + t * depth, batch * batch_size);
          std::memcpy(run.output<char>(0) + t * row, run.input<char>(0) + start * bytes,
                      static_cast<size_t>(row));
        }
        t = last;
      }
      run.apply_epilogue(begin * (row / bytes), end * (row / bytes));
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu

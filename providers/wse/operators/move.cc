// SPDX-License-Identifier: Apache-2.0
//
// Operators that move whole tensors: under other dimensions, along other axes, repeated; and rows
// looked up by index.
#include <algorithm>
#include <numeric>

#include "providers/wse/operators/copy.h"
#include "providers/wse/operators/families.h"
#include "providers/wse/operators/tensor.h"
#include "providers/wse/operators/walk.h"

namespace pfrt::wse {
namespace move {
namespace {

// The output's dimensions say it all.
bool run_view(const Call& call, std::string* why) {
  if (!sound(call, 1, why)) return false;
  const Tensor &x = call.in[0], &y = call.out[0];
  if (x.count() != y.count())
    return fault(call, why, "dimensions ", text_of(x.dims), " to ", text_of(y.dims));
  std::copy_n(x.data, tensor_bytes(y.dtype, y.count()), y.data);
  round_output(call, y);
  return true;
}

bool run_transpose(const Call& call, std::string* why) {
  if (!sound(call, 1, why)) return false;
  const Tensor &x = call.in[0], &y = call.out[0];
  const auto given = call.node.attr_ints("perm");
  Dims order(given.begin(), given.end());
  if (order.empty()) {
    order.resize(x.dims.size());
    std::iota(order.rbegin(), order.rend(), 0);
  }
  const Dims own = strides_of(x.dims);
  Dims dims, strides;
  std::vector<bool> seen(x.dims.size(), false);
  for (const int64_t axis : order) {
    const auto at = static_cast<size_t>(axis);
    if (axis < 0 || at >= seen.size() || seen[at]) break;
    seen[at] = true;
    dims.push_back(x.dims[at]);
    strides.push_back(own[at]);
  }
  if (dims.size() != x.dims.size() || order.size() != dims.size())
    return fault(call, why, "perm ", text_of(order), " of dimensions ", text_of(x.dims));
  if (!output_has_dims(call, 0, dims, why)) return false;
  copy_strided({x, 0, strides}, {y, 0, strides_of(dims)}, dims);
  round_output(call, y);
  return true;
}

bool run_expand(const Call& call, std::string* why) {
  if (!sound(call, 1, why)) return false;
  const Tensor &x = call.in[0], &y = call.out[0];
  if (!broadcasts(x.dims, y.dims))
    return fault(call, why, "dimensions ", text_of(x.dims), " do not broadcast to ",
                 text_of(y.dims));
  copy_strided({x, 0, broadcast_strides(x.dims, y.dims)}, {y, 0, strides_of(y.dims)}, y.dims);
  round_output(call, y);
  return true;
}

// -------------------------------------------------------------------------------------- Gather

// Indices as positions from 0 on. False where one is out of range.
template <typename T>
bool positions(const Call& call, int64_t axis, int64_t rows, std::vector<int64_t>* out,
               std::string* why) {
  const int64_t count = call.in[1].count();
  out->reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<int64_t>(call.in[1].as<T>()[i]);
    if (index < -rows || index >= rows)
      return fault(call, why, "index ", index, " (element ", i, ") is outside [", -rows, ", ", rows,
                   "), the elements of axis ", axis);
    out->push_back(index < 0 ? index + rows : index);
  }
  return true;
}

bool run_gather(const Call& call, std::string* why) {
  if (!sound(call, 2, why)) return false;
  const Tensor &x = call.in[0], &indices = call.in[1], &y = call.out[0];
  const int64_t given = call.node.attr_int("axis", 0), axis = axis_of(given, x.rank());
  if (axis < 0)
    return fault(call, why, "axis ", given, " is not one of dimensions ", text_of(x.dims));
  Dims dims(x.dims.begin(), x.dims.begin() + axis);
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  if (!output_has_dims(call, 0, dims, why)) return false;
  const int64_t rows = x.dims[static_cast<size_t>(axis)];
  std::vector<int64_t> at;
  const bool wide = indices.dtype == PFRT_DTYPE_INT64;
  if (!(wide ? positions<int64_t>(call, axis, rows, &at, why)
             : positions<int32_t>(call, axis, rows, &at, why)))
    return false;
  if (y.count() == 0) return true;
  const int64_t outer = elements_of(x.dims, 0, axis);
  const int64_t bytes =
      elements_of(x.dims, axis + 1, x.rank()) * static_cast<int64_t>(dtype_size(x.dtype));
  char* to = y.data;
  for (int64_t o = 0; o < outer; ++o)
    for (const int64_t i : at) to = std::copy_n(x.data + (o * rows + i) * bytes, bytes, to);
  round_output(call, y);
  return true;
}

// ------------------------------------------------------------------------------------ refusals

// Dimensions are known where a value lies, which need not be looked at.
bool run_shape(const Call& call, std::string* why) {
  if (call.in.empty() || call.out.size() != 1 || call.out[0].dtype != PFRT_DTYPE_INT64)
    return fault(call, why, "no input, or an output that is no int64");
  const Dims& dims = call.in[0].dims;
  const auto rank = static_cast<int64_t>(dims.size());
  const auto place = [&](int64_t axis) {
    return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  const int64_t start = place(call.node.attr_int("start", 0));
  const int64_t end = std::max(start, place(call.node.attr_int("end", rank)));
  if (call.out[0].count() != end - start)
    return fault(call, why, "dimensions ", text_of(dims), " from ", start, " to ", end);
  std::copy(dims.begin() + start, dims.begin() + end, call.out[0].as<int64_t>());
  return true;
}

std::string refuse_shape(const SnapshotNode&) { return {}; }

std::string refuse_one_type(const SnapshotNode& node) {
  return refuse_unlike_output(node, 0, kMoved);
}

std::string refuse_gather(const SnapshotNode& node) {
  return first_of({refuse_one_type(node), refuse_input(node, 1, kIndex)});
}

constexpr Work kNone{.vector_operations = 0};

constexpr Operator kOperators[] = {
    {"", "Reshape", Family::kMove, kNone, refuse_one_type, run_view},
    {"", "Flatten", Family::kMove, kNone, refuse_one_type, run_view},
    {"", "Squeeze", Family::kMove, kNone, refuse_one_type, run_view},
    {"", "Unsqueeze", Family::kMove, kNone, refuse_one_type, run_view},
    {"", "Shape", Family::kMove, kNone, refuse_shape, run_shape},
    {"", "Transpose", Family::kMove, kNone, refuse_one_type, run_transpose},
    {"", "Expand", Family::kMove, kNone, refuse_one_type, run_expand},
    {"", "Gather", Family::kLookup, kNone, refuse_gather, run_gather},
};

}  // namespace
}  // namespace move

std::span<const Operator> move_operators() { return move::kOperators; }

}  // namespace pfrt::wse

// SPDX-License-Identifier: Apache-2.0
#include "core/op/engine/sparse.h"

#include <algorithm>
#include <cstring>

namespace pfrt {
namespace {

// A limit is needed since a model may name a shape of any size in a few bytes.
constexpr uint64_t kMostBytes = uint64_t{256} << 20;
constexpr uint64_t kMostTimesStored = 64;

// The flat position of non-zero element |n|, or -1 when it lies outside.
int64_t flat_position(const Value& sparse, const std::vector<int64_t>& indices, size_t n) {
  const Dims& dims = sparse.dense_dims;
  if (sparse.indices.dims.size() == 1) return indices[n];
  int64_t at = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t index = indices[n * dims.size() + d];
    if (index < 0 || index >= dims[d]) return -1;
    at = at * dims[d] + index;
  }
  return at;
}

std::string dims_text(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += message(i ? "," : "", dims[i]);
  return text + "]";
}

Status take(const GraphValue& value, uint64_t& bytes) {
  const Value& sparse = *value.constant;
  const uint64_t dense = tensor_bytes(
      sparse.tensor.dtype, element_count(sparse.dense_dims.data(), sparse.dense_dims.size()));
  const uint64_t stored = sparse.tensor.bytes() + sparse.indices.bytes();
  const uint64_t most = std::max(kMostBytes, kMostTimesStored * stored);
  if (dense <= most && bytes <= most - dense) {
    bytes += dense;
    return {};
  }
  return error(Code::kUNSUPPORTED, "making the sparse initializer '", value.name,
               "' dense, as the operator that uses it takes dense tensors: ",
               dtype_name(sparse.tensor.dtype), " ", dims_text(sparse.dense_dims),
               bytes ? message(", after ", bytes, " bytes of others,") : std::string(),
               " is more than the ", most,
               " bytes that a model of its size may ask for; store it as a dense initializer");
}

}  // namespace

Result<Tensor> dense_of(const Value& sparse) {
  const Tensor& values = sparse.tensor;
  const size_t size = dtype_size(values.dtype);
  if (size == 0 && values.dtype != PFRT_DTYPE_STRING)
    return error(Code::kUNSUPPORTED, "a sparse constant of ", dtype_name(values.dtype),
                 " is not supported");
  const std::vector<int64_t> indices = to_int64s(sparse.indices);
  const size_t count = static_cast<size_t>(std::max<int64_t>(values.count(), 0));
  const size_t width = sparse.indices.dims.size() == 1 ? 1 : sparse.dense_dims.size();
  if (indices.size() != count * width)
    return error(Code::kINVALID_MODEL, "a sparse constant has ", count, " values and ",
                 indices.size(), " indices, needs ", count * width);
  PFRT_ASSIGN(Tensor out, Tensor::allocate(values.dtype, sparse.dense_dims));
  for (size_t n = 0; n < count; ++n) {
    const int64_t at = flat_position(sparse, indices, n);
    if (at < 0 || at >= out.count())
      return error(Code::kINVALID_MODEL, "a sparse constant has an index outside its shape");
    if (values.dtype == PFRT_DTYPE_STRING) {
      PFRT_TRY(out.buffer->set_string(static_cast<uint64_t>(at), view(values.strings()[n])));
    } else {
      std::memcpy(out.as<char>() + static_cast<size_t>(at) * size, values.as<char>() + n * size,
                  size);
    }
  }
  return out;
}

Status make_initializers_dense(Graph& graph, uint64_t& bytes) {
  std::vector<ValueId> sparse;
  for (ValueId id : graph.initializers())
    if (graph.at(id).constant->kind == PFRT_VALUE_SPARSE) sparse.push_back(id);
  if (sparse.empty()) return {};
  std::vector<bool> used(graph.value_count());
  for (NodeId id : graph.node_ids())
    for (ValueId value : graph.used_by(*graph.node(id))) used[value] = true;
  for (ValueId id : sparse) {
    if (!used[id]) continue;
    PFRT_TRY(take(graph.at(id), bytes));
    auto made = dense_of(*graph.at(id).constant);
    if (!made.ok())
      return made.take_status().prepend(message("initializer '", graph.at(id).name, "'"));
    ValuePtr dense = Value::of(made.take());
    if (!graph.is_output(id)) {
      graph.set_constant(id, std::move(dense));
      continue;
    }
    const ValueId other = graph.fresh(graph.at(id).name + "/dense");
    graph.set_constant(other, std::move(dense));
    const std::vector<ValueId> outputs = graph.outputs;
    graph.replace_uses(id, other);
    graph.outputs = outputs;
  }
  return {};
}

}  // namespace pfrt

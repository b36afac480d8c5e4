// SPDX-License-Identifier: Apache-2.0
#include "providers/kit/snapshot_copy.h"

#include <algorithm>
#include <cstring>

namespace pfrt {
namespace {

// The fields that both the host and this build know of; the rest are zero.
template <typename T>
void read_prefix(T& to, const T* array, uint32_t stride, uint64_t i) {
  const size_t size = std::min(sizeof(T), static_cast<size_t>(stride));
  std::memcpy(&to, reinterpret_cast<const char*>(array) + i * stride, size);
}

}  // namespace

SnapshotCopy::SnapshotCopy(const pfrt_snapshot& snapshot, std::span<const uint32_t> nodes,
                           std::span<const uint32_t> values)
    : nodes_(snapshot.node_count), values_(snapshot.value_count) {
  for (pfrt_snapshot_value& v : values_) {
    v.rank = -1;
    v.producer = PFRT_NO_INDEX;
  }
  for (uint32_t n : nodes) copy_node(snapshot, n);
  for (uint32_t v : values) copy_value(snapshot, v);
  snapshot_.struct_size = sizeof snapshot_;
  snapshot_.abi = PFRT_ABI_VERSION;
  snapshot_.node_size = sizeof(pfrt_snapshot_node);
  snapshot_.value_size = sizeof(pfrt_snapshot_value);
  snapshot_.attr_size = sizeof(pfrt_snapshot_attr);
  snapshot_.node_count = snapshot.node_count;
  snapshot_.value_count = snapshot.value_count;
  snapshot_.nodes = nodes_.data();
  snapshot_.values = values_.data();
}

void SnapshotCopy::drop_output(uint32_t node, uint32_t output) {
  const_cast<uint32_t*>(nodes_[node].outputs)[output] = PFRT_NO_INDEX;
}

template <typename T>
T* SnapshotCopy::array(const T* data, uint64_t count) {
  if (data == nullptr || count == 0) return nullptr;
  const size_t bytes = static_cast<size_t>(count) * sizeof(T);
  void* to = memory_.allocate(bytes, alignof(T));
  std::memcpy(to, data, bytes);
  return static_cast<T*>(to);
}

pfrt_string SnapshotCopy::text(pfrt_string s) { return {array(s.data, s.size), s.size}; }

void SnapshotCopy::copy_node(const pfrt_snapshot& from, uint32_t index) {
  pfrt_snapshot_node& n = nodes_[index];
  read_prefix(n, from.nodes, from.node_size, index);
  n.name = text(n.name);
  n.op = text(n.op);
  n.domain = text(n.domain);
  n.inputs = array(n.inputs, n.input_count);
  n.outputs = array(n.outputs, n.output_count);
  for (uint32_t i = 0; i < n.input_count; ++i) copy_value(from, n.inputs[i]);
  for (uint32_t i = 0; i < n.output_count; ++i) copy_value(from, n.outputs[i]);
  const pfrt_snapshot_attr* attrs = n.attrs;
  const size_t bytes = static_cast<size_t>(n.attr_count) * sizeof(pfrt_snapshot_attr);
  auto* own =
      static_cast<pfrt_snapshot_attr*>(memory_.allocate(bytes, alignof(pfrt_snapshot_attr)));
  for (uint64_t i = 0; i < n.attr_count; ++i) {
    pfrt_snapshot_attr a{};
    read_prefix(a, attrs, from.attr_size, i);
    copy_attr(a, own[i]);
  }
  n.attrs = own;
}

void SnapshotCopy::copy_value(const pfrt_snapshot& from, uint32_t index) {
  if (index == PFRT_NO_INDEX || values_[index].name.data != nullptr) return;
  pfrt_snapshot_value& v = values_[index];
  read_prefix(v, from.values, from.value_size, index);
  v.name = v.name.size == 0 ? pfrt_string{"", 0} : text(v.name);
  v.dims = array(v.dims, static_cast<uint64_t>(std::max(v.rank, 0)));
}

void SnapshotCopy::copy_attr(const pfrt_snapshot_attr& from, pfrt_snapshot_attr& to) {
  to = from;
  to.name = text(from.name);
  to.s = text(from.s);
  to.ints = from.type == PFRT_ATTR_INTS ? array(from.ints, from.count) : nullptr;
  to.floats = from.type == PFRT_ATTR_FLOATS ? array(from.floats, from.count) : nullptr;
  to.strings = nullptr;
  if (from.type == PFRT_ATTR_STRINGS) {
    pfrt_string* strings = array(from.strings, from.count);
    for (uint64_t i = 0; i < from.count; ++i) strings[i] = text(strings[i]);
    to.strings = strings;
  }
  if (from.type == PFRT_ATTR_TENSOR) {
    to.tensor.dims = array(from.tensor.dims, from.tensor.rank);
    to.tensor.strides = array(from.tensor.strides, from.tensor.rank);
    void* data = memory_.allocate(static_cast<size_t>(from.tensor.bytes), 64);
    if (from.tensor.bytes != 0) std::memcpy(data, from.tensor.data, from.tensor.bytes);
    to.tensor.data = data;
    if (from.tensor.dtype != PFRT_DTYPE_STRING) return;
    auto* strings = static_cast<pfrt_string*>(data);
    for (uint64_t i = 0; i < from.tensor.bytes / sizeof(pfrt_string); ++i)
      strings[i] = text(strings[i]);
  }
}

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
#include "providers/kit/node.h"

#include <cstring>

namespace pfrt {
namespace {

// Element |i| of an array whose elements may be larger than the struct this was built with.
template <typename T>
const T* strided(const T* array, uint32_t stride, uint64_t i) {
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(array) + i * stride);
}

template <typename T>
std::vector<int64_t> widened(const void* data, int64_t count) {
  std::vector<int64_t> out(static_cast<size_t>(count));
  const char* bytes = static_cast<const char*>(data);
  for (size_t i = 0; i < out.size(); ++i) {
    T element;
    std::memcpy(&element, bytes + i * sizeof(T), sizeof(T));
    out[i] = static_cast<int64_t>(element);
  }
  return out;
}

}  // namespace

Precision precision_of(pfrt_compile_hints hints) {
  if ((hints & PFRT_COMPILE_PLAIN) != 0) return Precision::kIeee;
  if ((hints & PFRT_COMPILE_BF16) != 0) return Precision::kBfloat16;
  return (hints & PFRT_COMPILE_FAST) != 0 ? Precision::kFast : Precision::kFloat32;
}

SnapshotNode::SnapshotNode(const pfrt_snapshot& snapshot, uint32_t node, const pfrt_shapes* shapes,
                           Precision precision)
    : snapshot_(&snapshot),
      node_(strided(snapshot.nodes, snapshot.node_size, node)),
      shapes_(shapes),
      index_(node),
      precision_(precision) {}

const pfrt_snapshot_value* SnapshotNode::value(uint32_t index) const {
  return strided(snapshot_->values, snapshot_->value_size, index);
}

int32_t SnapshotNode::rank(uint32_t index) const {
  const pfrt_snapshot_value* v = value(index);
  if (shapes_ == nullptr) return v->rank;
  if (index < shapes_->value_count && shapes_->ranks[index] >= 0) return shapes_->ranks[index];
  return (v->flags & PFRT_SNAPSHOT_CONSTANT) != 0 ? v->rank : -1;
}

std::span<const int64_t> SnapshotNode::dims(uint32_t index) const {
  const int32_t r = rank(index);
  if (r <= 0) return {};
  const bool given =
      shapes_ != nullptr && index < shapes_->value_count && shapes_->ranks[index] >= 0;
  return {given ? shapes_->dims[index] : value(index)->dims, static_cast<size_t>(r)};
}

pfrt_dtype SnapshotNode::input_dtype(uint32_t i) const {
  return has_input(i) ? value(node_->inputs[i])->dtype : pfrt_dtype{};
}
pfrt_dtype SnapshotNode::output_dtype(uint32_t i) const {
  return has_output(i) ? value(node_->outputs[i])->dtype : pfrt_dtype{};
}
int32_t SnapshotNode::input_rank(uint32_t i) const {
  return has_input(i) ? rank(node_->inputs[i]) : -1;
}
int32_t SnapshotNode::output_rank(uint32_t i) const {
  return has_output(i) ? rank(node_->outputs[i]) : -1;
}
std::span<const int64_t> SnapshotNode::input_dims(uint32_t i) const {
  return has_input(i) ? dims(node_->inputs[i]) : std::span<const int64_t>();
}
std::span<const int64_t> SnapshotNode::output_dims(uint32_t i) const {
  return has_output(i) ? dims(node_->outputs[i]) : std::span<const int64_t>();
}

bool SnapshotNode::is_constant(uint32_t i) const {
  return has_input(i) && (value(node_->inputs[i])->flags & PFRT_SNAPSHOT_CONSTANT) != 0;
}

const void* SnapshotNode::input_constant(uint32_t i) const {
  return is_constant(i) ? value(node_->inputs[i])->data : nullptr;
}

std::vector<int64_t> SnapshotNode::constant_int64s(uint32_t i) const {
  const void* data = input_constant(i);
  if (data == nullptr) return {};
  const pfrt_snapshot_value* v = value(node_->inputs[i]);
  if (v->rank < 0) return {};
  const int64_t count = element_count(v->dims, static_cast<size_t>(v->rank));
  const uint64_t bytes = tensor_bytes(v->dtype, count);
  if (count <= 0 || bytes > v->bytes) return {};
  switch (v->dtype) {
    case PFRT_DTYPE_INT8:
      return widened<int8_t>(data, count);
    case PFRT_DTYPE_INT16:
      return widened<int16_t>(data, count);
    case PFRT_DTYPE_INT32:
      return widened<int32_t>(data, count);
    case PFRT_DTYPE_INT64:
      return widened<int64_t>(data, count);
    case PFRT_DTYPE_BOOL:
    case PFRT_DTYPE_UINT8:
      return widened<uint8_t>(data, count);
    case PFRT_DTYPE_UINT16:
      return widened<uint16_t>(data, count);
    case PFRT_DTYPE_UINT32:
      return widened<uint32_t>(data, count);
    case PFRT_DTYPE_UINT64:
      return widened<uint64_t>(data, count);
    default:
      return {};
  }
}

const pfrt_snapshot_attr* SnapshotNode::attr(std::string_view name) const {
  for (uint64_t i = 0; i < node_->attr_count; ++i) {
    const pfrt_snapshot_attr* a = strided(node_->attrs, snapshot_->attr_size, i);
    if (view(a->name) == name) return a;
  }
  return nullptr;
}

int64_t SnapshotNode::attr_int(std::string_view name, int64_t fallback) const {
  const pfrt_snapshot_attr* a = attr(name);
  return a != nullptr && a->type == PFRT_ATTR_INT ? a->i : fallback;
}
float SnapshotNode::attr_float(std::string_view name, float fallback) const {
  const pfrt_snapshot_attr* a = attr(name);
  return a != nullptr && a->type == PFRT_ATTR_FLOAT ? a->f : fallback;
}
std::string_view SnapshotNode::attr_string(std::string_view name, std::string_view fallback) const {
  const pfrt_snapshot_attr* a = attr(name);
  return a != nullptr && a->type == PFRT_ATTR_STRING ? view(a->s) : fallback;
}
std::span<const int64_t> SnapshotNode::attr_ints(std::string_view name) const {
  const pfrt_snapshot_attr* a = attr(name);
  if (a == nullptr || a->type != PFRT_ATTR_INTS) return {};
  return {a->ints, static_cast<size_t>(a->count)};
}
std::span<const float> SnapshotNode::attr_floats(std::string_view name) const {
  const pfrt_snapshot_attr* a = attr(name);
  if (a == nullptr || a->type != PFRT_ATTR_FLOATS) return {};
  return {a->floats, static_cast<size_t>(a->count)};
}

}  // namespace pfrt

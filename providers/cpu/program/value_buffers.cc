// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/program/value_buffers.h"

#include <utility>

#include "providers/cpu/kernel/types.h"

namespace pfrt::cpu {

ValueBuffers::ValueBuffers(const Executable& executable, const pfrt_shapes& shapes)
    : executable_(executable),
      snapshot_(executable.snapshot()),
      shapes_(shapes),
      of_(snapshot_.snapshot().value_count, PFRT_NO_INDEX) {}

std::optional<std::span<const int64_t>> ValueBuffers::dims(uint32_t value) const {
  if (value < shapes_.value_count && shapes_.ranks[value] >= 0)
    return std::span(shapes_.dims[value], static_cast<size_t>(shapes_.ranks[value]));
  const pfrt_snapshot_value& v = snapshot_.value(value);
  if ((v.flags & PFRT_SNAPSHOT_CONSTANT) == 0 || v.rank < 0) return std::nullopt;
  return std::span(v.dims, static_cast<size_t>(v.rank));
}

int64_t ValueBuffers::elements(uint32_t value) const {
  const auto known = dims(value);
  return known ? element_count(known->data(), known->size()) : -1;
}

uint64_t ValueBuffers::bytes(uint32_t value) const {
  return tensor_bytes(snapshot_.value(value).dtype, elements(value));
}

uint32_t ValueBuffers::of(uint32_t value) {
  if (value == PFRT_NO_INDEX) return value;
  if (of_[value] == PFRT_NO_INDEX) of_[value] = add(executable_.home(value), bytes(value));
  return of_[value];
}

uint32_t ValueBuffers::add(const Home& home, uint64_t bytes) {
  pfrt_buffer buffer{};
  buffer.kind = home.kind;
  buffer.index = home.index;
  buffer.bytes = bytes;
  buffers_.push_back(buffer);
  return static_cast<uint32_t>(buffers_.size() - 1);
}

bool ValueBuffers::rename(const SnapshotNode& node) {
  if (!node.has_input(0) || !node.has_output(0)) return false;
  const uint32_t from = node.input_index(0), to = node.output_index(0);
  if (!is_temporary(to) || bytes(from) != bytes(to) || bytes(to) == PFRT_BYTES_UNKNOWN ||
      snapshot_.value(from).dtype != snapshot_.value(to).dtype)
    return false;
  of_[to] = of(from);
  return true;
}

bool ValueBuffers::outputs_in_input(const SnapshotNode& node,
                                    const std::vector<uint64_t>& offsets) {
  if (bytes(node.input_index(0)) == PFRT_BYTES_UNKNOWN) return false;
  for (uint32_t i = 0; i < node.output_count(); ++i)
    if (node.has_output(i) && !is_temporary(node.output_index(i))) return false;
  const uint32_t whole = of(node.input_index(0));
  for (uint32_t i = 0; i < node.output_count(); ++i)
    if (node.has_output(i)) make_sub_buffer(of(node.output_index(i)), whole, offsets[i]);
  return true;
}

bool ValueBuffers::inputs_in_output(const SnapshotNode& node, const std::vector<uint64_t>& offsets,
                                    bool no_copies, Copies& copies) {
  if (bytes(node.output_index(0)) == PFRT_BYTES_UNKNOWN) return false;
  for (uint32_t i = 0; no_copies && i < node.input_count(); ++i)
    if (!is_temporary(node.input_index(i))) return false;
  const uint32_t whole = of(node.output_index(0));
  for (uint32_t i = 0; i < node.input_count(); ++i) {
    const uint32_t from = of(node.input_index(i));
    if (buffers_[from].kind == PFRT_BUFFER_TEMP) {
      make_sub_buffer(from, whole, offsets[i]);
      continue;
    }
    copies.bytes.push_back(bytes(node.input_index(i)));
    copies.from.push_back(from);
    copies.to.push_back(add_temporary(copies.bytes.back()));
    make_sub_buffer(copies.to.back(), whole, offsets[i]);
  }
  return true;
}

void ValueBuffers::make_sub_buffer(uint32_t buffer, uint32_t whole, uint64_t offset) {
  pfrt_buffer& sub_buffer = buffers_[buffer];
  sub_buffer.kind = PFRT_BUFFER_PART;
  sub_buffer.index = whole;
  sub_buffer.offset = offset;
}

std::vector<pfrt_buffer> ValueBuffers::take() {
  for (pfrt_buffer& b : buffers_) {
    while (b.kind == PFRT_BUFFER_PART && buffers_[b.index].kind == PFRT_BUFFER_PART) {
      b.offset += buffers_[b.index].offset;
      b.index = buffers_[b.index].index;
    }
  }
  return std::move(buffers_);
}

}  // namespace pfrt::cpu

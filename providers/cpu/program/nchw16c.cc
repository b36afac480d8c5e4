// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/program/nchw16c.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "providers/cpu/kernel/row.h"
#include "providers/cpu/registry/registry.h"

namespace pfrt::cpu {
namespace {

using Dims = std::span<const int64_t>;
constexpr int64_t kBlock = 16;
constexpr Types kImageTypes =
    kFloatsTo32 | Types{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8, PFRT_DTYPE_INT32};

class Finder {
 public:
  Finder(const Executable& executable, const pfrt_shapes& shapes)
      : executable_(executable),
        snapshot_(executable.snapshot()),
        shapes_(shapes),
        parent_(snapshot_.snapshot().value_count),
        pinned_(parent_.size()),
        wanted_(parent_.size()) {
    std::iota(parent_.begin(), parent_.end(), 0u);
  }

  std::vector<bool> find() {
    for (size_t u = 0; u < executable_.fusion_groups().size(); ++u)
      add(executable_.fusion_groups()[u], executable_.code(u));
    std::vector<bool> out(parent_.size());
    for (uint32_t v = 0; v < out.size(); ++v) {
      const uint32_t root = root_of(v);
      out[v] = wanted_[root] && !pinned_[root];
    }
    return out;
  }

 private:
  void add(const FusionGroup& group, const LoopCode& code) {
    const size_t heads = group.before_loop();
    const size_t after = group.loop ? group.nodes.size() - group.has_norm : heads;
    const auto reader = [&](size_t i) {
      return SnapshotNode(snapshot_.snapshot(), group.nodes[i], &shapes_,
                          executable_.precision(group.nodes[i]));
    };
    if (group.has_pool) add_pooled(reader(0), reader(1));
    for (size_t i = group.has_pool ? heads : 0; i < group.nodes.size(); ++i) {
      if (group.loop && i >= heads && i < after) continue;
      if (group.has_norm && i + 1 == group.nodes.size())
        pin_all(reader(i));  // rows are normalised in row-major order
      else
        add(reader(i));
    }
    if (group.loop) add(*group.loop, code);
  }

  void add(const LoopPlan& loop, const LoopCode& code) {
    const uint32_t first = loop.outputs.front();
    const auto join = [&](uint32_t value) {
      if (std::ranges::equal(dims(value), dims(first)))
        unite(value, first);
      else
        pin(value), pin(first);
    };
    for (const uint32_t value : loop.outputs) join(value);
    for (size_t i = 0; i < loop.inputs.size(); ++i)
      if (code.by_channel != nullptr && code.channel_slots[i])
        pin(loop.inputs[i]);
      else if (!one_element(loop.inputs[i]))
        join(loop.inputs[i]);
  }

  void add(const SnapshotNode& node) {
    const KernelRow* const row = find_kernel(KernelRequest(node), nullptr);
    if (row == nullptr || !row->has(kNchw16c) || !node.has_input(0) || !node.has_output(0))
      return pin_all(node);
    add(KernelRequest(node), node.output_index(0));
    for (uint32_t i = 1; i < node.output_count(); ++i)
      if (node.has_output(i)) pin(node.output_index(i));
  }

  // A head and the pooling of its output. Where they are one step the output of the head is not in
  // memory.
  void add_pooled(const SnapshotNode& head, const SnapshotNode& pool) {
    KernelRequest request(head);
    request.pool = &pool;
    const KernelRow* const row = find_kernel(request, nullptr);
    if (row != nullptr && row->has(kNchw16c) && head.has_input(0) && pool.has_output(0))
      return add(request, pool.output_index(0));
    pin_all(head), pin_all(pool);
  }

  void add(KernelRequest node, uint32_t out) {
    const auto takes = [&](bool input, bool output) {
      node.sides = {input, output};
      return find_kernel(node, nullptr) != nullptr;
    };
    const uint32_t in = node.input_index(0);
    const bool alike = takes(true, true), alone_in = takes(true, false),
               alone_out = takes(false, true);
    if (alike && alone_in && alone_out) {
      want(in), want(out);
    } else if (alike) {
      // All inputs of Concat are images; other operators have weights after the first.
      const uint32_t images = node.op() == "Concat" ? node.input_count() : 1;
      for (uint32_t i = 0; i < images; ++i) unite(node.input_index(i), out);
    } else {
      if (!alone_in) pin(in);
      if (!alone_out) pin(out);
    }
  }

  void pin_all(const SnapshotNode& node) {
    for (uint32_t i = 0; i < node.input_count(); ++i)
      if (node.has_input(i)) pin(node.input_index(i));
    for (uint32_t i = 0; i < node.output_count(); ++i)
      if (node.has_output(i)) pin(node.output_index(i));
  }

  Dims dims(uint32_t value) const {
    if (value < shapes_.value_count && shapes_.ranks[value] >= 0)
      return Dims(shapes_.dims[value], static_cast<size_t>(shapes_.ranks[value]));
    const pfrt_snapshot_value& v = snapshot_.value(value);
    if ((v.flags & PFRT_SNAPSHOT_CONSTANT) != 0 && v.rank >= 0)
      return Dims(v.dims, static_cast<size_t>(v.rank));
    return {};
  }

  bool one_element(uint32_t value) const {
    const Dims d = dims(value);
    const bool known = !d.empty() || snapshot_.value(value).rank == 0;
    return known && element_count(d.data(), d.size()) == 1;
  }

  // An image of one pixel is the same in either layout.
  bool indifferent(uint32_t value) const {
    const Dims d = dims(value);
    return d.size() > 2 && element_count(d.data() + 2, d.size() - 2) == 1;
  }

  bool eligible(uint32_t value) const {
    const Dims d = dims(value);
    return kImageTypes.has(snapshot_.value(value).dtype) && d.size() > 2 && d[1] % kBlock == 0 &&
           executable_.home(value).kind == PFRT_BUFFER_TEMP &&
           element_count(d.data(), d.size()) > 0;
  }

  void pin(uint32_t value) { pinned_[root_of(value)] = true; }

  void want(uint32_t value) {
    if (!eligible(value)) return pin(value);
    if (!indifferent(value)) wanted_[root_of(value)] = true;
  }

  void unite(uint32_t a, uint32_t b) {
    for (const uint32_t v : {a, b})
      if (!eligible(v) && !indifferent(v)) pin(v);
    if (indifferent(a) || indifferent(b)) return;
    const uint32_t from = root_of(a), to = root_of(b);
    if (from == to) return;
    parent_[from] = to;
    if (pinned_[from]) pinned_[to] = true;
    if (wanted_[from]) wanted_[to] = true;
  }

  uint32_t root_of(uint32_t value) {
    while (parent_[value] != value) value = parent_[value] = parent_[parent_[value]];
    return value;
  }

  const Executable& executable_;
  const SnapshotCopy& snapshot_;
  const pfrt_shapes& shapes_;
  std::vector<uint32_t> parent_;
  std::vector<bool> pinned_, wanted_;
};

}  // namespace

std::vector<bool> nchw16c_values(const Executable& executable, const pfrt_shapes& shapes) {
  return Finder(executable, shapes).find();
}

}  // namespace pfrt::cpu

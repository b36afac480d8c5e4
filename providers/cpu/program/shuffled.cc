// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/program/shuffled.h"

#include <algorithm>

#include "providers/cpu/kernel/row.h"
#include "providers/cpu/registry/registry.h"

namespace pfrt::cpu {
namespace {

using Dims = std::span<const int64_t>;

class Finder {
 public:
  Finder(const Executable& executable, const pfrt_shapes& shapes)
      : executable_(executable), snapshot_(executable.snapshot()), shapes_(shapes) {
    for (const FusionGroup& group : executable.fusion_groups())
      for (const uint32_t node : group.nodes)
        for (uint32_t i = 0; i < snapshot_.node(node).output_count; ++i)
          producers_[snapshot_.node(node).outputs[i]] = node;
  }

  Shuffles find() {
    for (const FusionGroup& group : executable_.fusion_groups())
      if (!group.loop || group.has_head) add(group.nodes.front());
    return std::move(shuffles_);
  }

 private:
  SnapshotNode reader(uint32_t node) const {
    return SnapshotNode(snapshot_.snapshot(), node, &shapes_, executable_.precision(node));
  }

  // The node of the region that makes |value|, if it is an |op| and one node alone reads the value.
  std::optional<SnapshotNode> only_maker(uint32_t value, std::string_view op) const {
    const auto found = producers_.find(value);
    if (found == producers_.end() || snapshot_.value(value).consumer_count != 1 ||
        executable_.home(value).kind != PFRT_BUFFER_TEMP)
      return std::nullopt;
    const SnapshotNode node = reader(found->second);
    if (!node.domain().empty() || node.op() != op || !node.has_input(0)) return std::nullopt;
    return node;
  }

  void add(uint32_t index) {
    const SnapshotNode node = reader(index);
    if (!node.has_input(0)) return;
    const auto back = only_maker(node.input_index(0), "Reshape");
    if (!back) return;
    const auto transpose = only_maker(back->input_index(0), "Transpose");
    if (!transpose) return;
    const auto apart = only_maker(transpose->input_index(0), "Reshape");
    if (!apart || !swaps_groups(*apart, *transpose, *back)) return;
    KernelRequest request(node);
    request.shuffle_groups = transpose->input_dims(0)[1];
    if (find_kernel(request, nullptr) == nullptr) return;
    shuffles_.groups[index] = request.shuffle_groups;
    shuffles_.transposes.insert(transpose->index());
  }

  static bool swaps_groups(const SnapshotNode& apart, const SnapshotNode& transpose,
                           const SnapshotNode& back) {
    const Dims image = apart.input_dims(0), groups = transpose.input_dims(0);
    const Dims perm = transpose.attr_ints("perm");
    if (image.size() < 3 || groups.size() < 4 || perm.size() != groups.size() ||
        SnapshotNode::elements(image) <= 0 || !std::ranges::equal(image, back.output_dims(0)))
      return false;
    for (size_t d = 0; d < perm.size(); ++d) {
      const size_t from = d == 1 ? 2 : d == 2 ? 1 : d;
      if (perm[d] != static_cast<int64_t>(from)) return false;
    }
    return SnapshotNode::elements(groups) == SnapshotNode::elements(image) &&
           groups[0] == image[0] && groups[1] * groups[2] == image[1];
  }

  const Executable& executable_;
  const SnapshotCopy& snapshot_;
  const pfrt_shapes& shapes_;
  std::unordered_map<uint32_t, uint32_t> producers_;  // by value
  Shuffles shuffles_;
};

}  // namespace

Shuffles find_shuffles(const Executable& executable, const pfrt_shapes& shapes) {
  return Finder(executable, shapes).find();
}

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
//
// Asks a client's planner of memory to place a segment's buffers.
#include "core/exec/segment_plan.h"
#include "core/plan/blocks.h"

namespace pfrt {

// Names for the memory of each root, for messages: that of the value it holds, or else of the node
// whose step is the first to use it.
std::vector<std::string_view> SegmentPlan::entry_names(const std::vector<size_t>& root) const {
  std::vector<std::string_view> out(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].value != kNoId && out[root[i]].empty())
      out[root[i]] = graph_->at(entries_[i].value).name;
  for (const StepRef& ref : steps_) {
    const Node* const node = ref.node == kNoId ? nullptr : graph_->node(ref.node);
    if (!node) continue;
    const bool output = node->name.empty() && node->has_output(0);
    const std::string_view name = output ? graph_->at(node->outputs[0]).name : node->name;
    const size_t base = programs_[ref.program].first_entry;
    for (uint32_t i = 0; i < ref.step->write_count; ++i) {
      std::string_view& named = out[root[base + ref.step->writes[i]]];
      if (named.empty()) named = name;
    }
  }
  return out;
}

// |owner| has the root of each of |items|.
Result<uint64_t> SegmentPlan::ask_planner(MemoryPlanner& planner, std::string_view memory,
                                          const std::vector<size_t>& root,
                                          const std::vector<size_t>& owner,
                                          std::vector<BlockItem>& items) const {
  if (items.empty()) return uint64_t{0};
  const std::vector<std::string_view> names = entry_names(root);
  for (size_t i = 0; i < items.size(); ++i) items[i].name = names[owner[i]];
  PFRT_ASSIGN(const uint64_t bytes, planner.place(graph_->name, memory, items));
  PFRT_TRY(check_placed(items, bytes));
  return bytes;
}

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// Reports a compiled graph's use of host memory, and gives memory back.
#include <algorithm>

#include "core/exec/compiled_graph.h"
#include "core/exec/plan_table.h"
#include "core/exec/segment_plan.h"

namespace pfrt {
namespace {

std::vector<std::shared_ptr<BlockPool>> blocks_of(const Segment& segment) {
  const std::lock_guard lock(segment.mutex);
  return segment.blocks;
}

}  // namespace

uint64_t CompiledGraph::trim(uint64_t given_ns) {
  uint64_t bytes = 0;
  for (const auto& segment : segments_)
    for (const auto& blocks : blocks_of(*segment)) bytes += blocks->trim(given_ns);
  for (const auto& [graph, body] : bodies_) bytes += body->trim(given_ns);
  return bytes;
}

bool CompiledGraph::at_work() const {
  for (const auto& segment : segments_)
    for (const auto& pool : blocks_of(*segment))
      if (pool->usage().in_use != 0) return true;
  return std::ranges::any_of(bodies_, [](const auto& body) { return body.second->at_work(); });
}

// The dimensions in a signature, such as "x[8,3,224,224]".
std::string CompiledGraph::signature_text(const Segment& segment,
                                          const std::vector<int64_t>& key) const {
  std::string out;
  size_t at = 0;
  for (size_t i = 0; i < segment.live_in.size() && at < key.size(); ++i) {
    out += message(i ? " " : "", graph_->at(segment.live_in[i]).name, "[");
    const auto rank = static_cast<size_t>(key[at++]);
    for (size_t d = 0; d < rank; ++d) out += message(d ? "," : "", key[at++]);
    out += "]";
    ++at;  // where it lives
    if (segment.contents_key[i]) return out + " and contents";
  }
  return out;
}

void CompiledGraph::add_memory(MemoryUse& out) const {
  for (const auto& segment : segments_) {
    for (const auto& pool : blocks_of(*segment)) {
      const BlockPool::Usage blocks = pool->usage();
      (pool->device() ? out.device_in_use : out.in_use) += blocks.in_use;
      (pool->device() ? out.device_idle : out.idle) += blocks.idle;
      if (!pool->device()) out.peak += blocks.peak;
    }
    for (const StageExecutable& stage : segment->stages)
      for (const auto& constant : stage.constants)
        if (out.counted.insert(constant.get()).second) out.packed += constant->bytes();
    segment->plans->each([&](const std::vector<int64_t>& key, const auto& plan) {
      out.signatures.emplace_back(signature_text(*segment, key), plan->block_bytes());
    });
  }
  for (const auto& [graph, body] : bodies_) body->add_memory(out);
}

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// Compiling a graph: its bodies, then its stages by their providers, a node that one of them turns
// out not to run going to the next; then which values cross from segment to segment.
#include <algorithm>
#include <set>

#include "core/exec/body_call.h"
#include "core/exec/compiled_graph.h"
#include "core/exec/host/host_ops.h"
#include "core/exec/segment_plan.h"
#include "core/ir/verify.h"
#include "core/memory/staging.h"
#include "core/op/engine/knowable.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/operator_set.h"
#include "core/plan/fault.h"

namespace pfrt {
namespace {

uint64_t fnv(const void* data, size_t size, uint64_t h) {
  const auto* at = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < size; ++i) h = (h ^ at[i]) * 0x100000001b3u;
  return h;
}

// Whether the next provider may take the node over that |status| is about.
bool next_may_take_over(const Status& status) {
  const Fault fault = fault_of(status.code());
  return fault != Fault::kMemory && fault != Fault::kDevice && status.code() != Code::kCANCELLED &&
         status.code() != Code::kDEADLINE;
}

}  // namespace

Status CompiledGraph::compile_bodies(const CompileServices& services,
                                     const CompileOptions& options) {
  CompileOptions own = options;
  own.node_precision = nullptr;
  for (NodeId id : order_) {
    PFRT_TRY(services.progress.stop());
    const Node& node = *graph_->node(id);
    Status status;
    for_each_body(node, [&](const std::shared_ptr<Graph>& body) {
      if (!status.ok()) return;
      auto compiled = create(body, services, own);
      if (!compiled.ok()) {
        status = compiled.take_status();
        status.prepend("body '" + body->name + "' of " + describe(*graph_, node));
        return;
      }
      bodies_[body.get()] = compiled.take();
    });
    PFRT_TRY(std::move(status));
  }
  return {};
}

Status CompiledGraph::compile(const CompileServices& services, const CompileOptions& options) {
  std::vector<Refusal> refusals;
  // Each round but the last takes one (node, provider) pair away, so this ends.
  for (bool again = true; again;) {
    again = false;
    PFRT_TRY(services.progress.stop());
    segments_.clear();
    PFRT_ASSIGN(partition_, partition(*graph_, order_, *snapshot_, services.candidates, refusals,
                                      &services.progress));
    if (options.node_precision)
      for (uint32_t n = 0; n < order_.size(); ++n)
        partition_.nodes[n].precision = (*options.node_precision)[order_[n]].note;
    Staging staging;
    for (const Stage& stage : partition_.stages) {
      PFRT_TRY(services.progress.stop());
      if (segments_.empty() || stage.starts_segment)
        segments_.push_back(std::make_unique<Segment>());
      Segment& segment = *segments_.back();
      for (uint32_t n : stage.nodes) segment.order.push_back(order_[n]);
      if (stage.provider < 0) {
        segment.host = true;
        segment.host_node = stage.nodes.front();
        segment.host_op = find_host_op(*graph_->node(order_[segment.host_node]));
        continue;
      }
      uint32_t at = PFRT_NO_INDEX;
      auto made = compile_stage(stage, services, options, staging, &at);
      if (made.ok()) {
        segment.stages.push_back(made.take());
        continue;
      }
      Status status = made.take_status();
      const bool of_stage = std::ranges::find(stage.nodes, at) != stage.nodes.end();
      if (!options.fallback || !of_stage || !next_may_take_over(status)) return status;
      if (services.logger)
        services.logger->log(PFRT_LOG_WARNING, status.message(), "; it goes to the next provider");
      refusals.push_back({at, stage.provider, status.message()});
      again = true;
      break;
    }
  }
  number_slots();
  note_last_reads();
  return {};
}

Result<StageExecutable> CompiledGraph::compile_stage(const Stage& stage,
                                                     const CompileServices& services,
                                                     const CompileOptions& options,
                                                     Staging& staging, uint32_t* at) const {
  pfrt_region region{};
  region.struct_size = sizeof region;
  region.abi = PFRT_ABI_VERSION;
  region.nodes = stage.nodes.data();
  region.node_count = static_cast<uint32_t>(stage.nodes.size());
  region.inputs = stage.inputs.data();
  region.input_count = static_cast<uint32_t>(stage.inputs.size());
  region.outputs = stage.outputs.data();
  region.output_count = static_cast<uint32_t>(stage.outputs.size());
  region.hints = options.precision;
  if (options.run_once)
    region.hints |= PFRT_COMPILE_RUN_ONCE;
  else if (options.tune)
    region.hints |= PFRT_COMPILE_TUNE;
  if (options.apart) region.hints |= PFRT_COMPILE_APART;
  std::vector<pfrt_compile_hints> node_hints;
  if (options.node_precision) {
    for (uint32_t n : stage.nodes) node_hints.push_back((*options.node_precision)[order_[n]].hint);
    region.node_hints = node_hints.data();
  }
  Provider& provider = *services.candidates[static_cast<size_t>(stage.provider)].provider;
  auto compiled = provider.compile(snapshot_->get(), region, at);
  if (!compiled.ok()) {
    Status status = compiled.take_status();
    if (*at < order_.size()) status.prepend(describe(*graph_, *graph_->node(order_[*at])));
    return std::move(status.blame(provider));
  }
  StageExecutable made;
  made.stage = &stage;
  made.executable = compiled.take();
  Status packed = pack_constants(made, services, staging);
  if (!packed.ok()) return std::move(packed.blame(provider));
  return made;
}

Status CompiledGraph::pack_constants(StageExecutable& stage, const CompileServices& services,
                                     Staging& staging) const {
  const std::string& provider = stage.executable->provider().name();
  PFRT_ASSIGN(auto constants, stage.executable->constants());
  for (const pfrt_packed_constant& c : constants) {
    PFRT_TRY(services.progress.stop());
    std::string key = message(provider, "/", view(c.recipe), "/", c.bytes);
    std::vector<const Tensor*> sources;
    for (uint32_t i = 0; i < c.source_count; ++i) {
      const Tensor* t =
          c.sources[i] < graph_->value_count() ? graph_->constant(c.sources[i]) : nullptr;
      if (!t)
        return error(Code::kPROVIDER, provider, " packs value ", c.sources[i],
                     ", which is no constant");
      sources.push_back(t);
      key += message("/", dtype_name(t->dtype),
                     reinterpret_cast<uintptr_t>(t->buffer ? t->buffer->identity() : nullptr), "+",
                     t->offset, ":",
                     fnv(t->dims.data(), t->dims.size() * sizeof(int64_t), 0xcbf29ce484222325u));
    }
    PFRT_ASSIGN(auto packed, services.packed->get(key, c, sources, staging));
    stage.constants.push_back(std::move(packed));
  }
  return {};
}

// A value has a slot when it crosses a segment's edge, or the graph's.
void CompiledGraph::number_slots() {
  const Graph& g = *graph_;
  slot_of_.assign(g.value_count(), kNoId);
  slot_count_ = 0;
  const auto slot = [&](ValueId v) {
    if (slot_of_[v] == kNoId) slot_of_[v] = slot_count_++;
  };
  for (ValueId v : inputs_) slot(v);
  for (ValueId v : g.outputs) slot(v);
  std::vector<int> made_in(g.value_count(), -1);
  for (size_t s = 0; s < segments_.size(); ++s)
    for (NodeId id : segments_[s]->order)
      for (ValueId v : g.node(id)->outputs)
        if (v != kNoId) made_in[v] = static_cast<int>(s);
  const Knowable known = knowable(g, order_);
  for (size_t s = 0; s < segments_.size(); ++s) {
    std::set<ValueId> reads, direct;
    for (NodeId id : segments_[s]->order) {
      const Node& node = *g.node(id);
      for (ValueId v : g.used_by(node))
        if (made_in[v] != static_cast<int>(s) && !g.at(v).constant) reads.insert(v);
      const OperatorDef* def = find_canonical(g, node);
      for (size_t i = 0; def && i < node.inputs.size() && i < 32; ++i)
        if ((def->shape_inputs >> i & 1u) && node.has_input(i)) direct.insert(node.inputs[i]);
    }
    for (ValueId v : reads) {
      slot(v);
      segments_[s]->live_in.push_back(v);
      segments_[s]->contents_key.push_back(direct.count(v) != 0 || known.data[v]);
    }
  }
  for (size_t s = 0; s < segments_.size(); ++s)
    for (NodeId id : segments_[s]->order)
      for (ValueId v : g.node(id)->outputs)
        if (v != kNoId && slot_of_[v] != kNoId) segments_[s]->live_out.push_back(v);
}

void CompiledGraph::note_last_reads() {
  std::set<uint32_t> later;
  for (const ValueId v : graph_->outputs) later.insert(slot_of_[v]);
  for (size_t s = segments_.size(); s-- > 0;) {
    Segment& segment = *segments_[s];
    // Captures are read when the body runs.
    const bool plain = segment.host && segment.order.size() == 1 &&
                       !runs_bodies(*graph_->node(segment.order.front()));
    for (const ValueId v : segment.live_in)
      if (later.insert(slot_of_[v]).second && plain) segment.last_read.push_back(slot_of_[v]);
  }
}

}  // namespace pfrt

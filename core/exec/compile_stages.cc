// SPDX-License-Identifier: Apache-2.0
//
// Compiles a graph: its bodies, then its stages by their providers, where a node that a provider
// turns out not to run goes to the next; then decides which values pass from segment to segment.
#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "core/exec/body_call.h"
#include "core/exec/compiled_graph.h"
#include "core/exec/host/host_ops.h"
#include "core/exec/plan_table.h"
#include "core/exec/segment_plan.h"
#include "core/ir/verify.h"
#include "core/memory/staging.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/operator_set.h"
#include "core/op/engine/static_facts.h"
#include "core/provider/fault.h"

namespace pfrt {
namespace {

// Whether the next provider may take over the node that failed with |status|.
bool next_may_take_over(const Status& status) {
  const Fault fault = fault_of(status.code());
  return fault != Fault::kMemory && fault != Fault::kDevice && status.code() != Code::kCANCELLED &&
         status.code() != Code::kDEADLINE;
}

}  // namespace

// Compiles a graph and its bodies: a provider gets all of their regions in one call, so that it can
// place them globally.
class CompiledGraph::Compilation {
 public:
  explicit Compilation(const CompileServices& services) : services_(services) {}

  // Adds |graph|, then its bodies. |where| names the nodes that a body is in.
  Status add(CompiledGraph& graph, const CompileOptions& options, const std::string& where = {}) {
    parts_.push_back({&graph, options, where, {}, true});
    graph.rules_ = options.rules;
    CompileOptions own = options;
    for (NodeId id : graph.order_) {
      PFRT_TRY(services_.progress.stop());
      const Node& node = *graph.graph_->node(id);
      Status status;
      for_each_body(node, [&](const std::shared_ptr<Graph>& body) {
        if (!status.ok()) return;
        const std::string at = message(where, where.empty() ? "" : ": ", "body '", body->name,
                                       "' of ", describe(*graph.graph_, node));
        auto made = make(body, services_);
        if (made.ok()) {
          auto& place = graph.bodies_[body.get()] = made.take();
          own.node_precision = precisions_in(options, body.get());
          status = add(*place, own, at);
        } else {
          status = made.take_status();
          status.prepend(at);
        }
      });
      PFRT_TRY(std::move(status));
    }
    return {};
  }

  Status run() {
    // Each round except the last removes a (node, provider) pair, so this ends.
    for (bool again = true; again;) {
      again = false;
      for (Part& part : parts_) PFRT_TRY(divide(part));
      tell(kDividedUntil);
      const size_t count = services_.candidates.size();
      for (size_t p = 0; p < count && !again; ++p) {
        PFRT_ASSIGN(again, compile_for(p));
        tell(kDividedUntil + (kCompiledUntil - kDividedUntil) * static_cast<double>(p + 1) /
                                 static_cast<double>(count));
      }
    }
    const ProfileSpan span(services_.progress.profile(), "pack constants");
    Staging staging;
    size_t packed_parts = 0;
    for (const Part& part : parts_) {
      tell(kCompiledUntil + (1 - kCompiledUntil) * static_cast<double>(packed_parts++) /
                                static_cast<double>(parts_.size()));
      for (const auto& segment : part.graph->segments_) {
        for (StageExecutable& stage : segment->stages) {
          Status packed = part.graph->pack_constants(stage, part.where, services_, staging);
          if (!packed.ok()) return in(part, std::move(packed.blame(stage.executable->provider())));
        }
      }
      part.graph->number_slots();
      part.graph->note_last_reads();
    }
    return {};
  }

 private:
  // The precisions of the nodes of |body|; null: one for all.
  static const std::vector<NodePrecision>* precisions_in(const CompileOptions& options,
                                                         const Graph* body) {
    if (!options.body_precision) return nullptr;
    const auto own = options.body_precision->find(body);
    return own == options.body_precision->end() ? nullptr : &own->second;
  }
  static constexpr double kDividedUntil = 0.2, kCompiledUntil = 0.7;  // of the progress
  void tell(double done) const {
    if (services_.tells) (void)services_.progress.at(done).ok();  // others ask whether to stop
  }

  struct Part {
    CompiledGraph* graph;
    CompileOptions options;
    std::string where;
    std::vector<Refusal> refusals;
    bool to_divide;  // for the first time, or after a refusal
  };
  // A region in the list that a provider gets.
  struct Place {
    Part* part;
    StageExecutable* stage;
  };

  // Divides a part into segments with stages that are not compiled yet.
  Status divide(Part& part) {
    PFRT_TRY(services_.progress.stop());
    if (!std::exchange(part.to_divide, false)) return {};
    const ProfileSpan span(services_.progress.profile(), "partition");
    CompiledGraph& g = *part.graph;
    g.segments_.clear();
    auto divided = partition(*g.graph_, g.order_, *g.snapshot_, services_.candidates, part.refusals,
                             part.options.assign, &services_.progress);
    if (!divided.ok()) return in(part, divided.take_status());
    g.partition_ = divided.take();
    if (part.options.node_precision)
      for (uint32_t n = 0; n < g.order_.size(); ++n)
        g.partition_.nodes[n].precision = (*part.options.node_precision)[g.order_[n]].note;
    for (const Stage& stage : g.partition_.stages) {
      if (g.segments_.empty() || stage.starts_segment) {
        g.segments_.push_back(std::make_unique<Segment>());
        g.segments_.back()->plans = std::make_shared<PlanTable>();
      }
      Segment& segment = *g.segments_.back();
      for (uint32_t n : stage.nodes) segment.order.push_back(g.order_[n]);
      if (stage.provider < 0) {
        segment.host = true;
        segment.host_node = stage.nodes.front();
        segment.host_op = find_host_op(*g.graph_->node(g.order_[segment.host_node]));
      } else {
        segment.stages.push_back({&stage, nullptr, {}});
      }
    }
    return {};
  }

  // True when the provider refused a node that the next one may run.
  Result<bool> compile_for(size_t p) {
    PFRT_TRY(services_.progress.stop());
    std::vector<Place> places;
    for (Part& part : parts_)
      for (const auto& segment : part.graph->segments_)
        for (StageExecutable& stage : segment->stages)
          if (stage.stage->provider == static_cast<int>(p)) places.push_back({&part, &stage});
    if (places.empty()) return false;
    std::vector<pfrt_region> regions;
    std::vector<std::vector<pfrt_compile_hints>> node_hints(places.size());
    for (size_t i = 0; i < places.size(); ++i)
      regions.push_back(region_of(*places[i].part, *places[i].stage->stage, node_hints[i]));
    Provider& provider = *services_.candidates[p].provider;
    const ProfileSpan span(services_.progress.profile(), "compile");
    CompileFault fault;
    for (const Place& place : places) place.stage->executable.reset();  // of a round before
    auto compiled = provider.compile(
        regions, [this] { return services_.progress.stop(); }, &fault);
    if (compiled.ok()) {
      for (size_t i = 0; i < places.size(); ++i) {
        if (!places[i].part->options.run_once) (*compiled)[i]->set_tuning(services_.tuning);
        places[i].stage->executable = std::move((*compiled)[i]);
      }
      return false;
    }
    Status status = std::move(compiled.take_status().blame(provider));
    if (fault.region >= places.size()) return status;
    Part& part = *places[fault.region].part;
    const CompiledGraph& g = *part.graph;
    if (fault.node < g.order_.size())
      status.prepend(describe(*g.graph_, *g.graph_->node(g.order_[fault.node])));
    const auto& nodes = places[fault.region].stage->stage->nodes;
    const bool of_stage = std::ranges::find(nodes, fault.node) != nodes.end();
    if (!part.options.fallback || !of_stage || !next_may_take_over(status))
      return in(part, std::move(status));
    if (services_.logger)
      services_.logger->log(PFRT_LOG_WARNING, status.message(), "; it goes to the next provider");
    part.refusals.push_back({fault.node, static_cast<int>(p), status.message()});
    part.to_divide = true;
    return true;
  }

  pfrt_region region_of(const Part& part, const Stage& stage,
                        std::vector<pfrt_compile_hints>& node_hints) const {
    const CompileOptions& options = part.options;
    pfrt_region region{};
    region.struct_size = sizeof region;
    region.abi = PFRT_ABI_VERSION;
    region.snapshot = &part.graph->snapshot_->get();
    region.nodes = stage.nodes.data();
    region.node_count = static_cast<uint32_t>(stage.nodes.size());
    region.inputs = stage.inputs.data();
    region.input_count = static_cast<uint32_t>(stage.inputs.size());
    region.outputs = stage.outputs.data();
    region.output_count = static_cast<uint32_t>(stage.outputs.size());
    region.hints = options.precision;
    if (options.run_once)
      region.hints |= PFRT_COMPILE_RUN_ONCE;
    else if (services_.tuning && services_.tuning->measures())
      region.hints |= PFRT_COMPILE_TUNE;
    if (options.apart) region.hints |= PFRT_COMPILE_APART;
    if (options.node_precision) {
      for (uint32_t n : stage.nodes)
        node_hints.push_back((*options.node_precision)[part.graph->order_[n]].hint);
      region.node_hints = node_hints.data();
    }
    return region;
  }

  static Status in(const Part& part, Status status) {
    if (!part.where.empty()) status.prepend(part.where);
    return status;
  }

  const CompileServices& services_;
  std::deque<Part> parts_;
};

Result<std::unique_ptr<CompiledGraph>> CompiledGraph::create(std::shared_ptr<const Graph> graph,
                                                             const CompileServices& services,
                                                             const CompileOptions& options) {
  PFRT_ASSIGN(auto out, make(std::move(graph), services));
  Compilation compilation(services);
  PFRT_TRY(compilation.add(*out, options));
  PFRT_TRY(compilation.run());
  return out;
}

Status CompiledGraph::pack_constants(StageExecutable& stage, std::string_view where,
                                     const CompileServices& services, Staging& staging) const {
  const std::string& provider = stage.executable->provider().name();
  const Stop stop = [&] { return services.progress.stop(); };
  PFRT_ASSIGN(auto constants, stage.executable->constants(stop));
  for (const pfrt_packed_constant& c : constants) {
    PFRT_TRY(services.progress.stop());
    const std::string kind = message(provider, "/", view(c.recipe), "/", c.bytes);
    std::string key = kind, name = message(where, "/", kind);
    std::vector<const Tensor*> sources;
    for (uint32_t i = 0; i < c.source_count; ++i) {
      const Tensor* t =
          c.sources[i] < graph_->value_count() ? graph_->constant(c.sources[i]) : nullptr;
      if (!t)
        return error(Code::kPROVIDER, provider, " packs value ", c.sources[i],
                     ", which is no constant");
      sources.push_back(t);
      if (services.made && t->buffer) services.made->sources.insert(t->buffer->identity());
      name += "/" + graph_->at(c.sources[i]).name;
    }
    if (services.stored) {
      const auto at = services.stored->find(name);
      if (at != services.stored->end() && at->second->bytes() == c.bytes) {
        stage.constants.push_back(at->second);
        continue;
      }
    }
    for (const Tensor* t : sources) key += "/" + services.packed->contents().key_of(*t);
    Sink sink(services.logger, stop);
    PFRT_ASSIGN(auto packed, services.packed->get(key, c, sources, staging, sink));
    if (services.made) services.made->buffers.emplace(std::move(name), packed);
    stage.constants.push_back(std::move(packed));
  }
  return {};
}

// A value has a slot when it crosses an edge of a segment or of the graph, and when it leaves its
// stage though nothing reads it, since only a run can tell its size.
void CompiledGraph::number_slots() {
  const Graph& g = *graph_;
  slot_of_.assign(g.value_count(), kNoId);
  slot_count_ = 0;
  const auto slot = [&](ValueId v) {
    if (slot_of_[v] == kNoId) slot_of_[v] = slot_count_++;
  };
  for (ValueId v : inputs_) slot(v);
  for (ValueId v : g.outputs) slot(v);
  output_in_.assign(slot_count_, kNoId);
  next_output_.assign(g.outputs.size(), kNoId);
  for (size_t i = g.outputs.size(); i-- > 0;) {
    uint32_t& first = output_in_[slot_of_[g.outputs[i]]];
    next_output_[i] = first;
    first = static_cast<uint32_t>(i);
  }
  std::vector<int> made_in(g.value_count(), -1);
  std::vector<bool> read(g.value_count());
  for (size_t s = 0; s < segments_.size(); ++s)
    for (NodeId id : segments_[s]->order)
      for (ValueId v : g.node(id)->outputs)
        if (v != kNoId) made_in[v] = static_cast<int>(s);
  const StaticFacts known = static_facts(g, order_);
  for (size_t s = 0; s < segments_.size(); ++s) {
    std::set<ValueId> reads, direct;
    for (NodeId id : segments_[s]->order) {
      const Node& node = *g.node(id);
      for (ValueId v : g.used_by(node)) {
        read[v] = true;
        if (made_in[v] != static_cast<int>(s) && !g.at(v).constant) reads.insert(v);
      }
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
  for (const auto& segment : segments_)
    for (const StageExecutable& stage : segment->stages)
      for (ValueId v : stage.stage->outputs)
        if (!read[v]) slot(v);
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
    for (const ValueId v : segment.live_in) {
      const bool last = later.insert(slot_of_[v]).second;
      segment.last_here.push_back(last);
      if (last && plain) segment.last_read.push_back(slot_of_[v]);
    }
  }
}

}  // namespace pfrt

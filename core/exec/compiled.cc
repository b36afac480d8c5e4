// SPDX-License-Identifier: Apache-2.0
#include "core/exec/compiled.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory_resource>
#include <set>

#include "core/base/lock.h"
#include "core/base/os/pages.h"
#include "core/exec/body_call.h"
#include "core/exec/home.h"
#include "core/exec/host_ops.h"
#include "core/exec/segment_plan.h"
#include "core/ir/verify.h"
#include "core/op/engine/infer.h"
#include "core/op/engine/knowable.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/operator_set.h"
#include "core/plan/fault.h"

namespace pfrt {
namespace {

constexpr size_t kPlansPerSegment = 32;
constexpr uint64_t kPlansATrim = 8;  // making one takes about as long as a trim
constexpr int64_t kMaxContents = 1024;

template <typename Fn>
void for_each_body(const Node& node, Fn fn) {
  for (const Attribute& a : node.attrs) {
    if (a.graph) fn(a.graph);
    for (const auto& g : a.graphs) fn(g);
  }
}

bool has_body(const Node& node) {
  return std::any_of(node.attrs.begin(), node.attrs.end(),
                     [](const Attribute& a) { return a.graph != nullptr; });
}

// The bytes of a small tensor, so that plans made for other contents are not taken.
void append_contents(const Tensor& t, std::pmr::vector<int64_t>& key) {
  if (t.count() > kMaxContents || t.dtype == PFRT_DTYPE_STRING) return;
  const size_t at = key.size();
  key.resize(at + (static_cast<size_t>(t.bytes()) + 7) / 8, 0);
  if (t.bytes()) std::memcpy(key.data() + at, t.data(), static_cast<size_t>(t.bytes()));
}

uint64_t fnv(const void* data, size_t size, uint64_t h) {
  const auto* at = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < size; ++i) h = (h ^ at[i]) * 0x100000001b3u;
  return h;
}

Status look(const CompileContext& context) {
  return context.progress ? context.progress->stop() : Status();
}

}  // namespace

CompiledGraph::~CompiledGraph() = default;

Result<std::unique_ptr<CompiledGraph>> CompiledGraph::create(std::shared_ptr<const Graph> graph,
                                                             const CompileContext& context) {
  auto out = std::unique_ptr<CompiledGraph>(new CompiledGraph);
  out->graph_ = std::move(graph);
  out->concurrent_steps_ = context.concurrent_steps;
  const Graph& g = *out->graph_;
  PFRT_ASSIGN(out->order_, g.topological_order());
  PFRT_TRY(look(context));
  for (ValueId v : g.inputs)
    if (!g.at(v).constant) out->inputs_.push_back(v);
  for (const Capture& c : g.captures) out->inputs_.push_back(c.inner);
  out->base_state_ = initial_state(g);
  const bool deferred = std::ranges::all_of(context.candidates, [](const Candidate& c) {
    return !c.provider || c.provider->takes_deferred();
  });
  out->snapshot_ = std::make_unique<Snapshot>(out->graph_, out->order_, deferred);
  PFRT_TRY(look(context));
  PFRT_TRY(out->compile_bodies(context));
  PFRT_TRY(out->compile(context));
  return out;
}

Status CompiledGraph::compile_bodies(const CompileContext& context) {
  for (NodeId id : order_) {
    PFRT_TRY(look(context));
    const Node& node = *graph_->node(id);
    Status status;
    for_each_body(node, [&](const std::shared_ptr<Graph>& body) {
      if (!status.ok()) return;
      CompileContext own = context;
      own.node_precision = nullptr;
      auto compiled = create(body, own);
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

Status CompiledGraph::compile(const CompileContext& context) {
  std::vector<Refusal> refusals;
  while (true) {
    PFRT_TRY(look(context));
    segments_.clear();
    PFRT_ASSIGN(partition_, partition(*graph_, order_, *snapshot_, context.candidates, refusals,
                                      context.culprit, context.progress));
    if (context.node_precision)
      for (uint32_t n = 0; n < order_.size(); ++n)
        partition_.nodes[n].precision = (*context.node_precision)[order_[n]].note;
    bool again = false;
    Staging staging;
    for (const Stage& stage : partition_.stages) {
      PFRT_TRY(look(context));
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
      pfrt_region region{};
      region.struct_size = sizeof region;
      region.abi = PFRT_ABI_VERSION;
      region.nodes = stage.nodes.data();
      region.node_count = static_cast<uint32_t>(stage.nodes.size());
      region.inputs = stage.inputs.data();
      region.input_count = static_cast<uint32_t>(stage.inputs.size());
      region.outputs = stage.outputs.data();
      region.output_count = static_cast<uint32_t>(stage.outputs.size());
      if (context.run_once)
        region.hints |= PFRT_COMPILE_RUN_ONCE;
      else if (context.tune)
        region.hints |= PFRT_COMPILE_TUNE;
      region.hints |= context.precision;
      std::vector<pfrt_compile_hints> node_hints;
      if (context.node_precision) {
        for (uint32_t n : stage.nodes)
          node_hints.push_back((*context.node_precision)[order_[n]].hint);
        region.node_hints = node_hints.data();
      }
      uint32_t at = PFRT_NO_INDEX;
      Provider& provider = *context.candidates[static_cast<size_t>(stage.provider)].provider;
      *context.culprit = &provider;
      auto compiled = provider.compile(snapshot_->get(), region, &at);
      if (!compiled.ok()) {
        Status status = compiled.take_status();
        if (at < order_.size()) status.prepend(describe(*graph_, *graph_->node(order_[at])));
        // A node of this stage that the provider turns out not to run goes to the next one. Each
        // round takes one (node, provider) pair away, so this ends.
        const Fault fault = fault_of(status.code());
        const bool of_stage =
            std::find(stage.nodes.begin(), stage.nodes.end(), at) != stage.nodes.end();
        if (!context.fallback || !of_stage || fault == Fault::kMemory || fault == Fault::kDevice ||
            status.code() == Code::kCANCELLED || status.code() == Code::kDEADLINE)
          return status;
        if (context.logger)
          context.logger->log(PFRT_LOG_WARNING, status.message(), "; it goes to the next provider");
        refusals.push_back({at, stage.provider, status.message()});
        *context.culprit = nullptr;
        again = true;
        break;
      }
      StageExecutable made;
      made.stage = &stage;
      made.executable = compiled.take();
      PFRT_ASSIGN(auto constants, made.executable->constants());
      for (const pfrt_packed_constant& c : constants) {
        PFRT_TRY(look(context));
        std::string key = message(provider.name(), "/", view(c.recipe), "/", c.bytes);
        std::vector<const Tensor*> sources;
        for (uint32_t i = 0; i < c.source_count; ++i) {
          const Tensor* t =
              c.sources[i] < graph_->value_count() ? graph_->constant(c.sources[i]) : nullptr;
          if (!t)
            return error(Code::kPROVIDER, provider.name(), " packs value ", c.sources[i],
                         ", which is no constant");
          sources.push_back(t);
          key +=
              message("/", dtype_name(t->dtype),
                      reinterpret_cast<uintptr_t>(t->buffer ? t->buffer->identity() : nullptr), "+",
                      t->offset, ":",
                      fnv(t->dims.data(), t->dims.size() * sizeof(int64_t), 0xcbf29ce484222325u));
        }
        PFRT_ASSIGN(auto packed, context.packed->get(key, c, sources, staging));
        made.constants.push_back(std::move(packed));
      }
      *context.culprit = nullptr;
      segment.stages.push_back(std::move(made));
    }
    if (!again) break;
  }
  number_slots();
  note_last_reads();
  return {};
}

// A value has a slot when it crosses a segment's border, or the graph's.
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
                       !has_body(*graph_->node(segment.order.front()));
    for (const ValueId v : segment.live_in)
      if (later.insert(slot_of_[v]).second && plain) segment.last_read.push_back(slot_of_[v]);
  }
}

void CompiledGraph::release_memory() {
  for (const auto& segment : segments_) {
    decltype(segment->plans) released;  // outlives the lock
    std::lock_guard lock(segment->mutex);
    released.swap(segment->plans);
    segment->blocks = std::make_shared<BlockPool>();  // what runs have goes with their plans
  }
  for (const auto& [graph, body] : bodies_) body->release_memory();
}

Result<std::shared_ptr<SegmentPlan>> CompiledGraph::make_plan(Segment& segment, InferState state,
                                                              const std::vector<Device*>& resident,
                                                              const Provider** culprit) {
  PFRT_TRY(infer(*graph_, segment.order, state));
  return SegmentPlan::build(*graph_, *snapshot_, segment, slot_of_, std::move(state), resident,
                            concurrent_steps_, culprit);
}

Result<std::shared_ptr<SegmentPlan>> CompiledGraph::plan_for(Segment& segment,
                                                             const std::vector<ValuePtr>& slots,
                                                             const RunControl& control) {
  std::array<std::byte, 1024> near;
  std::pmr::monotonic_buffer_resource memory(near.data(), near.size());
  std::pmr::vector<int64_t> key(&memory);
  key.reserve(std::min(near.size() / sizeof(int64_t), segment.live_in.size() * 6));
  std::vector<Device*> resident;  // by slot; empty unless a value lives on a device
  for (size_t i = 0; i < segment.live_in.size(); ++i) {
    const Tensor& t = slots[slot_of_[segment.live_in[i]]]->tensor;
    key.push_back(static_cast<int64_t>(t.dims.size()));
    key.insert(key.end(), t.dims.begin(), t.dims.end());
    if (t.device()) {
      resident.resize(slot_count_);
      resident[slot_of_[segment.live_in[i]]] = t.device();
    }
    key.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(t.device())));
    if (segment.contents_key[i]) append_contents(t, key);
  }
  const auto lock = lock_unless(segment.mutex, [&] { return control.stop() != Code::kOK; });
  if (!lock.owns_lock()) return stop_status(control.stop());
  for (auto it = segment.plans.begin(); it != segment.plans.end(); ++it) {
    if (!std::ranges::equal(it->first, key)) continue;
    segment.plans.splice(segment.plans.begin(), segment.plans, it);
    return segment.plans.front().second;
  }
  InferState state = base_state_;
  for (size_t i = 0; i < segment.live_in.size(); ++i) {
    const ValueId v = segment.live_in[i];
    const Tensor& t = slots[slot_of_[v]]->tensor;
    state.types[v] = Type::tensor(t.dtype, Shape(t.dims.begin(), t.dims.end()));
    state.data[v].reset();
    if (!segment.contents_key[i] || t.count() > kMaxContents) continue;
    state.contents[v] = t;
    const std::vector<int64_t> contents = to_int64s(t);
    if (static_cast<int64_t>(contents.size()) == t.count())
      state.data[v] = Shape(contents.begin(), contents.end());
  }
  const Provider* culprit = nullptr;
  auto made = make_plan(segment, std::move(state), resident, &culprit);
  if (!made.ok()) {
    control.culprit = culprit;
    return made.take_status();
  }
  std::shared_ptr<SegmentPlan> plan = made.take();
  segment.plans.emplace_front(std::vector<int64_t>(key.begin(), key.end()), plan);
  if (segment.plans.size() > kPlansPerSegment) {
    segment.plans.pop_back();
    if (++segment.plans_dropped % kPlansATrim == 0) os::return_freed_memory();
  }
  return plan;
}

Status CompiledGraph::run(std::vector<ValuePtr> inputs, const std::vector<OutputRequest>& requests,
                          const RunControl& control, std::vector<ValuePtr>& outputs) {
  const Graph& g = *graph_;
  std::vector<ValuePtr> slots(slot_count_);
  for (size_t i = 0; i < inputs_.size(); ++i) slots[slot_of_[inputs_[i]]] = std::move(inputs[i]);
  std::vector<OutputRequest> targets;  // by slot; empty: nothing is wanted anywhere
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!requests[i].data) continue;
    targets.resize(slot_count_);
    OutputRequest& target = targets[slot_of_[g.outputs[i]]];
    if (!target.data) target = requests[i];
  }
  for (const auto& segment : segments_) {
    if (const Code stop = control.stop(); stop != Code::kOK) return stop_status(stop);
    if (segment->host) {
      PFRT_TRY(run_host(*segment, slots, control));
      continue;
    }
    std::vector<ValuePtr*> read_here;
    for (size_t i = 0; i < segment->live_in.size(); ++i) {
      const ValueId v = segment->live_in[i];
      ValuePtr& value = slots[slot_of_[v]];
      if (!value || value->kind != PFRT_VALUE_TENSOR)
        return error(Code::kINVALID_MODEL, "running graph '", g.name, "': value '", g.at(v).name,
                     "' is not a tensor");
      if (segment->contents_key[i] && value->tensor.device()) read_here.push_back(&value);
    }
    PFRT_TRY(bring_home(read_here, control));
    PFRT_ASSIGN(auto plan, plan_for(*segment, slots, control));
    PFRT_TRY(plan->execute(slots, targets, control));
  }
  outputs.resize(g.outputs.size());
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    const ValueId v = g.outputs[i];
    outputs[i] = g.at(v).constant && !slots[slot_of_[v]] ? g.at(v).constant : slots[slot_of_[v]];
    if (!outputs[i])
      return error(Code::kINTERNAL, "running graph '", g.name, "': output '", g.at(v).name,
                   "' was not produced");
  }
  return {};
}

Result<std::vector<ValuePtr>> CompiledGraph::inputs_of(const Node& node,
                                                       const std::vector<ValuePtr>& slots,
                                                       const RunControl& control) const {
  const Graph& g = *graph_;
  std::vector<ValuePtr> inputs;
  inputs.reserve(node.inputs.size());
  for (ValueId v : node.inputs) {
    inputs.push_back(v == kNoId         ? nullptr
                     : g.at(v).constant ? g.at(v).constant
                                        : slots[slot_of_[v]]);
    if (v != kNoId && !inputs.back())
      return error(Code::kINTERNAL, "input '", g.at(v).name, "' was not produced");
  }
  // What a loop carries may stay where it is.
  const size_t read = node.op == "Loop" ? std::min<size_t>(inputs.size(), 2) : inputs.size();
  std::vector<ValuePtr*> read_here;
  for (size_t i = 0; i < read; ++i)
    if (inputs[i] && inputs[i]->tensor.device()) read_here.push_back(&inputs[i]);
  PFRT_TRY(bring_home(read_here, control));
  return inputs;
}

Status CompiledGraph::run_host(const Segment& segment, std::vector<ValuePtr>& slots,
                               const RunControl& control) {
  const Graph& g = *graph_;
  for (NodeId id : segment.order) {
    const Node& node = *g.node(id);
    std::vector<ValuePtr> made(node.outputs.size());
    const auto run = [&]() -> Status {
      PFRT_ASSIGN(std::vector<ValuePtr> inputs, inputs_of(node, slots, control));
      for (const uint32_t slot : segment.last_read) slots[slot].reset();
      PFRT_TRY(has_body(node) ? run_control_flow(node, inputs, slots, control, made)
                              : run_host_op(segment.host_op, g, node, inputs, made, control));
      for (size_t i = 0; i < made.size(); ++i)
        if (node.outputs[i] != kNoId && made[i])
          PFRT_TRY(check_planned(g, node.outputs[i], *made[i]));
      return {};
    };
    Status status = run();
    if (!status.ok()) {
      if (status.code() != Code::kCANCELLED && status.code() != Code::kDEADLINE)
        status.prepend(describe(g, node));
      return status;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNoId && slot_of_[node.outputs[i]] != kNoId)
        slots[slot_of_[node.outputs[i]]] = std::move(made[i]);
  }
  return {};
}

Status CompiledGraph::run_control_flow(const Node& node, const std::vector<ValuePtr>& node_inputs,
                                       const std::vector<ValuePtr>& slots,
                                       const RunControl& control,
                                       std::vector<ValuePtr>& node_outputs) {
  const char* name = "body";
  if (node.op == "If") {
    const Tensor& condition = node_inputs.at(0)->tensor;
    if (condition.dtype != PFRT_DTYPE_BOOL || condition.count() != 1)
      return error(Code::kSHAPE_MISMATCH, "the condition must be one bool");
    name = *condition.as<const uint8_t>() ? "then_branch" : "else_branch";
  }
  const Attribute* attr = node.attr(name);
  const auto it = attr && attr->graph ? bodies_.find(attr->graph.get()) : bodies_.end();
  if (it == bodies_.end())
    return error(Code::kINVALID_MODEL, "attribute '", name, "' holds no graph");
  std::vector<ValuePtr> captured;
  for (const Capture& c : attr->graph->captures)
    captured.push_back(graph_->at(c.outer).constant ? graph_->at(c.outer).constant
                                                    : slots[slot_of_[c.outer]]);
  BodyCall body(*it->second, std::move(captured), control);
  if (node.op == "Loop") return run_loop(body, node_inputs, node_outputs);
  if (node.op == "Scan") return run_scan(node, body, node_inputs, node_outputs);
  if (node.op == "SequenceMap") return run_sequence_map(body, node_inputs, node_outputs);
  std::vector<ValuePtr> outputs;
  PFRT_TRY(body.run({}, {}, outputs));
  if (outputs.size() != node_outputs.size())
    return error(Code::kINVALID_MODEL, "the branch has ", outputs.size(), " outputs, the node ",
                 node_outputs.size());
  node_outputs = std::move(outputs);
  return {};
}

std::vector<StepReport> CompiledGraph::explain() {
  std::vector<StepReport> rows;
  for (const auto& segment : segments_) {
    if (segment->host) {
      const Node& node = *graph_->node(order_[segment->host_node]);
      StepReport row;
      row.nodes = node.name;
      row.ops = node.op;
      row.provider = "host";
      row.kernel = "host_" + node.op;
      row.reason = partition_.nodes[segment->host_node].reason;
      rows.push_back(std::move(row));
      for_each_body(node, [&](const std::shared_ptr<Graph>& body) {
        for (StepReport& inner : bodies_.at(body.get())->explain())
          rows.push_back(std::move(inner));
      });
      continue;
    }
    std::shared_ptr<SegmentPlan> plan;
    {
      std::lock_guard lock(segment->mutex);
      if (!segment->plans.empty()) plan = segment->plans.front().second;
    }
    if (!plan) {
      // Not run yet: plan with the declared dimensions, where these are numbers.
      InferState state = base_state_;
      for (ValueId v : segment->live_in) state.types[v] = graph_->at(v).type;
      const Provider* culprit = nullptr;
      auto made = make_plan(*segment, std::move(state), {}, &culprit);
      if (made.ok()) plan = made.take();
    }
    if (plan) {
      plan->report(*graph_, *snapshot_, partition_, rows);
      continue;
    }
    for (const StageExecutable& stage : segment->stages) {
      for (uint32_t n : stage.stage->nodes) {
        const Node& node = *graph_->node(order_[n]);
        StepReport row;
        row.nodes = node.name;
        row.ops = node.op;
        row.provider = stage.executable->provider().name();
        row.kernel = "chosen when the dimensions are known";
        row.reason = partition_.nodes[n].reason;
        if (const std::string& own = partition_.nodes[n].precision; !own.empty())
          row.reason += "; " + own;
        row.refused = partition_.nodes[n].refused;
        row.estimated_ns = partition_.nodes[n].est_ns;
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
#include "core/exec/compiled_graph.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory_resource>
#include <ranges>

#include "core/base/os/pages.h"
#include "core/exec/body_call.h"
#include "core/exec/device_copy.h"
#include "core/exec/host/host_ops.h"
#include "core/exec/plan_table.h"
#include "core/exec/segment_plan.h"
#include "core/ir/verify.h"
#include "core/op/engine/infer.h"

namespace pfrt {
CompiledGraph::~CompiledGraph() = default;

Result<std::unique_ptr<CompiledGraph>> CompiledGraph::make(std::shared_ptr<const Graph> graph,
                                                           const CompileServices& services) {
  auto out = std::unique_ptr<CompiledGraph>(new CompiledGraph);
  out->graph_ = std::move(graph);
  out->statistics_ = services.statistics;
  const Graph& g = *out->graph_;
  PFRT_ASSIGN(out->order_, g.topological_order());
  PFRT_TRY(services.progress.stop());
  for (ValueId v : g.inputs)
    if (!g.at(v).constant) out->inputs_.push_back(v);
  for (const Capture& c : g.captures) out->inputs_.push_back(c.inner);
  out->base_state_ = initial_state(g);
  const bool deferred = std::ranges::all_of(services.candidates, [](const Candidate& c) {
    return !c.provider || c.provider->takes_deferred();
  });
  out->snapshot_ = std::make_unique<Snapshot>(out->graph_, out->order_, deferred);
  PFRT_TRY(services.progress.stop());
  return out;
}

void CompiledGraph::release_memory() {
  for (const auto& segment : segments_) {
    segment->plans->clear();
    const std::lock_guard lock(segment->mutex);
    segment->blocks = {std::make_shared<BlockPool>()};  // runs under way keep theirs
  }
  for (const auto& [graph, body] : bodies_) body->release_memory();
}

std::vector<bool> CompiledGraph::wanted_slots(const std::vector<OutputRequest>& requests) const {
  if (std::ranges::all_of(requests, &OutputRequest::wanted)) return {};
  std::vector<bool> wanted(slot_count_);
  for (size_t i = 0; i < requests.size(); ++i)
    if (requests[i].wanted) wanted[slot_of_[graph_->outputs[i]]] = true;
  for (const auto& segment : std::views::reverse(segments_)) {
    if (!makes_wanted(*segment, wanted)) continue;
    for (const ValueId v : segment->live_in) wanted[slot_of_[v]] = true;
  }
  return wanted;
}

bool CompiledGraph::makes_wanted(const Segment& segment, const std::vector<bool>& wanted) const {
  return wanted.empty() ||
         std::ranges::any_of(segment.live_out, [&](ValueId v) { return wanted[slot_of_[v]]; });
}

Status CompiledGraph::run(std::vector<ValuePtr> inputs, const std::vector<OutputRequest>& requests,
                          const RunControl& control, std::vector<ValuePtr>& outputs) {
  const Graph& g = *graph_;
  std::vector<ValuePtr> slots = std::move(inputs);  // the inputs have the first slots
  slots.resize(slot_count_);
  const OutputTargets targets{requests, output_in_, next_output_};
  const std::vector<bool> wanted = wanted_slots(requests);
  for (const auto& segment : segments_) {
    if (const Code stop = control.stop(); stop != Code::kOK) return stop_status(stop);
    if (!makes_wanted(*segment, wanted)) continue;
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
    PFRT_TRY(copy_to_host(read_here, control));
    PFRT_ASSIGN(const RunPlan plan, plan_for(*segment, slots, control));
    if (control.profile) plan.plan->describe_to(*control.profile, *graph_, *snapshot_, partition_);
    PFRT_TRY(plan.plan->execute(slots, targets, control, wanted.empty() ? nullptr : &wanted,
                                plan.dimensions.get()));
  }
  outputs.resize(g.outputs.size());
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    const ValueId v = g.outputs[i];
    outputs[i] = g.at(v).constant && !slots[slot_of_[v]] ? g.at(v).constant : slots[slot_of_[v]];
    if (!outputs[i] && (wanted.empty() || wanted[slot_of_[v]]))
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
  // Values that a loop carries may stay on a device.
  const size_t read = node.op == "Loop" ? std::min<size_t>(inputs.size(), 2) : inputs.size();
  std::vector<ValuePtr*> read_here;
  for (size_t i = 0; i < read; ++i)
    if (inputs[i] && inputs[i]->tensor.device()) read_here.push_back(&inputs[i]);
  PFRT_TRY(copy_to_host(read_here, control));
  return inputs;
}

uint32_t CompiledGraph::profile_name(Segment& segment, const RunControl& control) const {
  if (!control.profile) return 0;
  if (const uint32_t known = segment.profiled.load(std::memory_order_relaxed)) return known - 1;
  const Node& node = *graph_->node(order_[segment.host_node]);
  std::vector<ProfileStep> step;
  step.push_back({node.name, node.op, "host", "host_" + node.op});
  const uint32_t name = control.profile->add_steps(std::move(step));
  if (name != Profile::kDropped) segment.profiled.store(name + 1, std::memory_order_relaxed);
  return name;
}

Status CompiledGraph::run_host(Segment& segment, std::vector<ValuePtr>& slots,
                               const RunControl& control) {
  const Graph& g = *graph_;
  const ProfileSpan span(control.profile, Profile::Kind::kStep, profile_name(segment, control),
                         control.number);
  for (NodeId id : segment.order) {
    const Node& node = *g.node(id);
    std::vector<ValuePtr> made(node.outputs.size());
    const auto run = [&]() -> Status {
      PFRT_ASSIGN(std::vector<ValuePtr> inputs, inputs_of(node, slots, control));
      for (const uint32_t slot : segment.last_read) slots[slot].reset();
      PFRT_TRY(runs_bodies(node) ? run_control_flow(node, inputs, slots, control, made)
                                 : run_host_op(segment.host_op, g, node, inputs, made, control,
                                               segment.prepared));
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
  captured.reserve(attr->graph->captures.size());
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

void CompiledGraph::explain(PlanReport& out) {
  for (const auto& segment : segments_) {
    if (segment->host) {
      const Node& node = *graph_->node(order_[segment->host_node]);
      StepReport row;
      row.nodes = node.name;
      row.ops = node.op;
      row.provider = "host";
      row.kernel = "host_" + node.op;
      row.reason = partition_.nodes[segment->host_node].reason;
      out.steps.push_back(std::move(row));
      for_each_body(
          node, [&](const std::shared_ptr<Graph>& body) { bodies_.at(body.get())->explain(out); });
      continue;
    }
    std::shared_ptr<SegmentPlan> plan = segment->plans->recent();
    if (!plan) {
      // The segment has not run yet: it is planned with the declared dimensions, where these are
      // numbers.
      InferState state = base_state_;
      for (ValueId v : segment->live_in) state.types[v] = graph_->at(v).type;
      auto made = make_plan(*segment, std::move(state), {}, nullptr, nullptr);
      if (made.ok()) plan = made.take();
    }
    if (plan) {
      plan->report(*graph_, *snapshot_, partition_, out);
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
        out.steps.push_back(std::move(row));
      }
    }
  }
}

}  // namespace pfrt

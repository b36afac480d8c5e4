// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/compile/executable.h"

#include <algorithm>
#include <unordered_map>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/loop/by_channel.h"
#include "providers/cpu/registry/empty.h"
#include "providers/cpu/registry/registry.h"

namespace pfrt::cpu {
namespace {

Status check(const pfrt_snapshot& snapshot, const pfrt_region& region) {
  const auto inside = [](const uint32_t* list, uint32_t count, uint32_t limit) {
    return std::all_of(list, list + count, [&](uint32_t i) { return i < limit; });
  };
  if (inside(region.nodes, region.node_count, snapshot.node_count) &&
      inside(region.inputs, region.input_count, snapshot.value_count) &&
      inside(region.outputs, region.output_count, snapshot.value_count))
    return {};
  return error(Code::kINVALID_ARGUMENT, "the region names nodes or values outside the snapshot of ",
               snapshot.node_count, " nodes and ", snapshot.value_count, " values");
}

}  // namespace

Result<std::unique_ptr<Executable>> Executable::compile(const pfrt_snapshot& snapshot,
                                                        const pfrt_region& region, uint32_t& node) {
  node = PFRT_NO_INDEX;
  PFRT_TRY(check(snapshot, region));
  std::vector<uint32_t> nodes(region.nodes, region.nodes + region.node_count);
  std::ranges::sort(nodes);
  std::vector<uint32_t> values(region.inputs, region.inputs + region.input_count);
  values.insert(values.end(), region.outputs, region.outputs + region.output_count);
  std::unique_ptr<Executable> out(new Executable);
  out->snapshot_ = std::make_unique<SnapshotCopy>(snapshot, nodes, values);
  const bool once = (region.hints & PFRT_COMPILE_RUN_ONCE) != 0;
  out->tunes_ = !once && (region.hints & PFRT_COMPILE_TUNE) != 0;
  const bool rows_alone = (region.hints & PFRT_COMPILE_BATCH) != 0;
  out->precision_ = rows_alone ? Precision::kRowsAlone
                    : once     ? Precision::kIeee
                               : precision_of(region.hints);
  if (region.node_hints != nullptr && !once && !rows_alone)
    for (uint32_t i = 0; i < region.node_count; ++i)
      out->own_precision_[region.nodes[i]] = precision_of(region.node_hints[i]);
  for (uint32_t n : nodes) {
    const SnapshotNode reader(out->snapshot_->snapshot(), n, nullptr, out->precision(n));
    std::string reason = refuse_values(out->snapshot_->snapshot(), reader);
    node = n;
    const KernelRow* row = reason.empty() ? find_kernel(KernelRequest(reader), &reason) : nullptr;
    if (row != nullptr && row->prepare != nullptr) {
      Result<Prepared> prepared = row->prepare(reader);
      if (!prepared.ok()) return prepared.take_status().prepend(describe(reader));
      out->prepared_[n] = prepared.take();
    }
    // A constant is not packed for a single run, where the row can do without.
    const bool optional = row != nullptr && row->has(kPackOptional);
    if (row != nullptr && row->pack != nullptr && !(optional && (once || has_empty(reader))))
      out->add_constant(reader, *row);
    if (row != nullptr) continue;
    return error(Code::kUNSUPPORTED_OPERATOR, describe(reader), ": ", reason);
  }
  node = PFRT_NO_INDEX;
  out->outputs_.assign(region.outputs, region.outputs + region.output_count);
  out->drop_unused_outputs(nodes);
  out->settle_values(region);
  const int registers = once ? 0 : ElementwiseLoop::register_limit(isa());
  const bool joins = (region.hints & PFRT_COMPILE_APART) == 0;
  out->fusion_groups_ = find_fusion_groups(*out->snapshot_, nodes, out->outputs_, registers, joins);
  out->generate();
  return out;
}

void Executable::add_constant(const SnapshotNode& node, const KernelRow& row) {
  std::optional<PackedInput> input = row.pack(node);
  if (!input) return;
  Packed& packed = packed_[node.index()];
  packed.row = &row;
  packed.sources = {node.input_index(input->input)};
  for (const uint32_t i : input->others) packed.sources.push_back(node.input_index(i));
  packed.index = static_cast<uint32_t>(constants_.size());
  packed.input = std::move(*input);
  pfrt_packed_constant constant{};
  constant.sources = packed.sources.data();
  constant.source_count = static_cast<uint32_t>(packed.sources.size());
  constant.recipe = to_c(packed.input.recipe);
  constant.bytes = packed.input.bytes;
  constant.pack = [](void* user, const void* const* sources, void* out,
                     const pfrt_sink* sink) -> pfrt_code {
    if (const pfrt_code code = sink->stop(sink)) return code;
    try {
      static_cast<const PackedInput*>(user)->write(sources, out);
      return PFRT_CODE_OK;
    } catch (...) {
      return PFRT_CODE_OUT_OF_MEMORY;
    }
  };
  constant.user = &packed.input;
  constants_.push_back(constant);
}

Precision Executable::precision(uint32_t node) const {
  const auto own = own_precision_.find(node);
  return own == own_precision_.end() ? precision_ : own->second;
}

const Packed* Executable::packed(uint32_t node) const {
  const auto found = packed_.find(node);
  return found == packed_.end() ? nullptr : &found->second;
}

void Executable::drop_unused_outputs(const std::vector<uint32_t>& nodes) {
  std::vector<bool> used(snapshot_->snapshot().value_count);
  for (uint32_t v : outputs_) used[v] = true;
  for (uint32_t n : nodes) {
    const pfrt_snapshot_node& node = snapshot_->node(n);
    for (uint32_t i = 0; i < node.input_count; ++i)
      if (node.inputs[i] != PFRT_NO_INDEX) used[node.inputs[i]] = true;
  }
  for (uint32_t n : nodes) {
    const pfrt_snapshot_node& node = snapshot_->node(n);
    const KernelRow* const row = operator_row(SnapshotNode(snapshot_->snapshot(), n));
    if (row == nullptr || !row->has(kOptionalOutputs)) continue;
    for (uint32_t i = 1; i < node.output_count; ++i)
      if (node.outputs[i] != PFRT_NO_INDEX && !used[node.outputs[i]]) snapshot_->drop_output(n, i);
  }
}

void Executable::settle_values(const pfrt_region& region) {
  homes_.resize(snapshot_->snapshot().value_count);
  for (uint32_t i = region.output_count; i-- > 0;) homes_[region.outputs[i]] = {PFRT_BUFFER_OUT, i};
  // Inputs and constants come after the outputs: an output that is also one of these is copied from
  // there.
  for (uint32_t v = 0; v < homes_.size(); ++v)
    if ((snapshot_->value(v).flags & PFRT_SNAPSHOT_CONSTANT) != 0)
      homes_[v] = {PFRT_BUFFER_INITIALIZER, v};
  for (uint32_t i = 0; i < region.input_count; ++i) homes_[region.inputs[i]] = {PFRT_BUFFER_IN, i};
}

void Executable::generate() {
  std::unordered_map<std::string, std::shared_ptr<const ElementwiseLoop>> loops;
  for (const FusionGroup& group : fusion_groups_) {
    LoopCode& code = code_.emplace_back();
    if (!group.loop) continue;
    const Expression& expression = group.loop->expression;
    const size_t nodes = group.nodes.size() - group.before_loop() - group.has_norm;
    const auto made = [&](const Expression& of) {
      const auto [known, is_new] = loops.try_emplace(message(nodes, " ", of.key()));
      if (is_new) known->second = ElementwiseLoop::make(of, isa(), nodes);
      return known->second;
    };
    code.loop = made(expression);
    code.channel_slots = channel_slots(*snapshot_, *group.loop);
    if (std::ranges::find(code.channel_slots, true) != code.channel_slots.end())
      code.by_channel = made(expression.with_neighbours(code.channel_slots));
    code.constants =
        std::make_shared<const std::vector<uint64_t>>(ElementwiseLoop::constant_pool(expression));
  }
}

}  // namespace pfrt::cpu

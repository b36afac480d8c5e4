// SPDX-License-Identifier: Apache-2.0
//
// Makes the plan of a segment: its stages' programs for the dimensions at hand, and where each of
// their buffers comes from.
#include <algorithm>
#include <atomic>

#include "core/exec/compiled_graph.h"
#include "core/exec/segment_plan.h"
#include "core/ir/verify.h"

namespace pfrt {

Result<std::shared_ptr<SegmentPlan>> SegmentPlan::build(
    const Graph& graph, const Snapshot& snapshot, const Segment& segment,
    const std::vector<uint32_t>& slot_of, InferState state, const std::vector<Device*>& resident,
    const RunRules& rules, const RunDimensions* least, const RunControl* control) {
  auto plan = std::shared_ptr<SegmentPlan>(new SegmentPlan);
  plan->keep_blocks_ = rules.keep_blocks;
  std::vector<int32_t> ranks(graph.value_count(), -1);
  std::vector<Dims> dims(graph.value_count());
  std::vector<const int64_t*> dim_pointers(graph.value_count(), nullptr);
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Type& type = state.types[id];
    if (!type.is_tensor() || !type.fixed()) continue;
    dims[id] = dims_of(type);
    ranks[id] = static_cast<int32_t>(dims[id].size());
    dim_pointers[id] = dims[id].data();
  }
  pfrt_shapes shapes{};
  shapes.struct_size = sizeof shapes;
  shapes.abi = PFRT_ABI_VERSION;
  shapes.ranks = ranks.data();
  shapes.dims = dim_pointers.data();
  shapes.value_count = static_cast<uint32_t>(ranks.size());
  const Source source{graph, snapshot, shapes, state, slot_of, resident, least, control};
  for (const StageExecutable& stage : segment.stages) {
    Status status = plan->add_program(source, stage);
    if (!status.ok()) return std::move(status.blame(stage.executable->provider()));
  }
  plan->graph_ = &graph;
  static std::atomic<uint64_t> plans{0};
  plan->number_ = ++plans;
  // Values are copied to a device before its program's first step, so steps keep their order.
  PFRT_TRY(plan->place_buffers(segment, slot_of,
                               rules.concurrent_steps && plan->spaces_.size() == 1, rules.reuse));
  for (Space& space : plan->spaces_) space.blocks = segment.blocks_in(space.device);
  for (size_t i = 0; i < plan->entries_.size(); ++i) {
    const Entry& e = plan->entries_[i];
    const bool stays = e.place == Place::kConstant || (e.place == Place::kBlock && e.space == 0);
    if (!stays) plan->moving_.push_back(i);
  }
  plan->measured_ = std::vector<Measured>(plan->steps_.size());
  return plan;
}

Result<pfrt_shapes> SegmentPlan::shapes_for(const Source& source, const StageExecutable& stage) {
  pfrt_shapes shapes = source.shapes;
  if (!source.least) return shapes;
  const auto varies = [&](ValueId v) { return v != kNoId && source.least->by_value[v]; };
  const bool any = std::ranges::any_of(stage.stage->nodes, [&](uint32_t n) {
    const Node& node = *source.graph.node(source.snapshot.node_id(n));
    return std::ranges::any_of(node.inputs, varies) || std::ranges::any_of(node.outputs, varies);
  });
  if (!any) return shapes;
  const Provider& provider = stage.executable->provider();
  if (!provider.has_ranges())
    return error(Code::kUNSUPPORTED, provider.name(), " takes no dimensions that vary");
  shapes.least = source.least->by_value.data();
  return shapes;
}

Status SegmentPlan::add_program(const Source& source, const StageExecutable& stage) {
  PFRT_ASSIGN(const pfrt_shapes shapes, shapes_for(source, stage));
  uint32_t node = PFRT_NO_INDEX;
  programs_.reserve(programs_.size() + 1);  // a new program can be stored without failing
  const Stop stop = source.stop();
  auto made = stage.executable->specialise(shapes, stop, &node);
  if (!made.ok()) {
    Status status = made.take_status();
    if (node < source.snapshot.get().node_count)
      status.prepend(describe(source.graph, *source.graph.node(source.snapshot.node_id(node))));
    if (status.code() == Code::kUNSUPPORTED) status.blame_request(stage.executable->provider());
    return status;
  }
  Provider& provider = stage.executable->provider();
  programs_.push_back({&stage,
                       made.take(),
                       true,
                       provider.has_runs() ? &provider : nullptr,
                       entries_.size(),
                       steps_.size(),
                       {}});
  const pfrt_program& program = programs_.back().program;
  Transfers transfers;
  Uploads fresh;
  for (uint32_t i = 0; i < program.buffer_count; ++i) {
    PFRT_ASSIGN(Entry entry, make_entry(source, stage, buffer_at(program, i), transfers, fresh));
    entries_.push_back(entry);
  }
  PFRT_TRY(place_sub_buffers(stage, source.state));
  PFRT_TRY(transfers.run_alone(stop));
  for (const auto& [host, buffer] : fresh) provider.set_uploaded(host, buffer);
  return add_steps(source, provider.name());
}

// Makes the next entry, for |b| of the last program.
Result<SegmentPlan::Entry> SegmentPlan::make_entry(const Source& source,
                                                   const StageExecutable& stage,
                                                   const pfrt_buffer& b, Transfers& transfers,
                                                   Uploads& fresh) {
  Provider& provider = stage.executable->provider();
  const std::string& who = provider.name();
  const bool on_device = b.memory == PFRT_MEMORY_DEVICE && provider.has_memory();
  const bool aligned = (b.alignment & (b.alignment - 1)) == 0 &&
                       (b.alignment <= kAlignment || b.kind == PFRT_BUFFER_TEMP);
  if (!aligned || (b.memory != PFRT_MEMORY_HOST && !on_device))
    return error(Code::kUNSUPPORTED, who, " returned a program with a buffer in memory kind ",
                 b.memory, " aligned to ", b.alignment,
                 "; this host gives host memory, and that of providers which declare the feature, "
                 "aligned to 64, and temporaries to any power of two");
  Entry entry;
  entry.bytes = b.bytes;
  entry.alignment = std::max(b.alignment, kAlignment);
  if (on_device) entry.space = space_of(provider);
  switch (b.kind) {
    case PFRT_BUFFER_IN:
      PFRT_TRY(place_input(source, stage, b, entry));
      break;
    case PFRT_BUFFER_OUT:
      PFRT_TRY(place_output(source, stage, b, entry));
      break;
    case PFRT_BUFFER_TEMP:
      if (b.bytes == PFRT_BYTES_UNKNOWN)
        return error(Code::kPROVIDER, who,
                     " returned a program with a temporary buffer of unknown size");
      entry.place = Place::kBlock;
      break;
    case PFRT_BUFFER_CONST:
    case PFRT_BUFFER_INITIALIZER:
      PFRT_TRY(place_constant(source, stage, b, transfers, fresh, entry));
      break;
    case PFRT_BUFFER_PART:  // placed after all buffers that it may lie in
      break;
    case PFRT_BUFFER_UNSET:
      return error(Code::kPROVIDER, who, " returned a program with a buffer whose kind is not set");
    default:
      return error(Code::kUNSUPPORTED, who, " returned a program with a buffer of kind ", b.kind,
                   ", which this host does not know");
  }
  return entry;
}

Status SegmentPlan::place_output(const Source& source, const StageExecutable& stage,
                                 const pfrt_buffer& b, Entry& entry) {
  const std::string& who = stage.executable->provider().name();
  const std::vector<ValueId>& outputs = stage.stage->outputs;
  if (b.index >= outputs.size())
    return error(Code::kPROVIDER, who, " returned a program with output ", b.index, " of ",
                 outputs.size());
  const ValueId v = outputs[b.index];
  const Type& type = source.state.types[v];
  entry.value = v;
  const bool known = type.is_tensor() && type.fixed();
  if (known) {
    const Dims dims = dims_of(type);
    const uint64_t bytes = tensor_bytes(type.dtype, element_count(dims.data(), dims.size()));
    if (b.bytes != bytes && b.bytes != PFRT_BYTES_UNKNOWN)
      return error(Code::kPROVIDER, who, " returned a program that writes ", b.bytes, " bytes to '",
                   source.graph.at(v).name, "', which has ", bytes);
    entry.bytes = bytes;
  }
  inner_[v] = entries_.size();
  if (source.slot_of[v] != kNoId) {
    const bool late = b.bytes == PFRT_BYTES_UNKNOWN || !known;
    entry.place = late ? Place::kAllocated : Place::kOutput;
    entry.slot = source.slot_of[v];
    outputs_.push_back({v, entry.slot, type.dtype, late ? Dims() : dims_of(type), entry.bytes,
                        !late, entry.space});
    return {};
  }
  if (!known)
    return error(Code::kINTERNAL, "the dimensions of '", source.graph.at(v).name,
                 "' are not known");
  entry.place = Place::kBlock;
  return {};
}

Status SegmentPlan::place_constant(const Source& source, const StageExecutable& stage,
                                   const pfrt_buffer& b, Transfers& transfers, Uploads& fresh,
                                   Entry& entry) {
  const std::string& who = stage.executable->provider().name();
  entry.place = Place::kConstant;
  if (b.kind == PFRT_BUFFER_CONST) {
    if (b.index >= stage.constants.size())
      return error(Code::kPROVIDER, who, " returned a program with packed constant ", b.index,
                   " of ", stage.constants.size());
    entry.constant = stage.constants[b.index]->data();
    entry.bytes = stage.constants[b.index]->bytes();
  } else {
    const Tensor* t =
        b.index < source.graph.value_count() ? source.graph.constant(b.index) : nullptr;
    if (!t)
      return error(Code::kPROVIDER, who, " returned a program that reads value ", b.index,
                   " as a constant, which it is not");
    // A constant that is copied to be aligned is read whole, and in memory twice.
    entry.constant = b.alignment == 1 && entry.space == 0 ? t->at_any_address() : t->data();
    entry.bytes = t->bytes();
  }
  if (entry.space != 0) {
    PFRT_ASSIGN(entry.constant, upload(stage.executable->provider(), entry.constant, entry.bytes,
                                       source.stop(), transfers, fresh));
  }
  return {};
}

// Adds the steps of the last program.
Status SegmentPlan::add_steps(const Source& source, const std::string& who) {
  const pfrt_program& program = programs_.back().program;
  for (uint32_t i = 0; i < program.step_count; ++i) {
    const pfrt_step& step = step_at(program, i);
    for (uint32_t r = 0; r < step.read_count + step.write_count; ++r) {
      const uint32_t b = r < step.read_count ? step.reads[r] : step.writes[r - step.read_count];
      if (b >= program.buffer_count)
        return error(Code::kPROVIDER, who, " returned a step that uses buffer ", b, " of ",
                     program.buffer_count);
    }
    NodeId origin = kNoId;
    if (step.node_count > 0 && step.nodes[0] < source.snapshot.get().node_count)
      origin = source.snapshot.node_id(step.nodes[0]);
    steps_.push_back({&step, static_cast<uint32_t>(programs_.size() - 1), origin});
    scratch_bytes_ = std::max(scratch_bytes_, (step.scratch_bytes + 63) / 64 * 64);
  }
  return {};
}

}  // namespace pfrt

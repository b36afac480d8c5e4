// SPDX-License-Identifier: Apache-2.0
#include "core/exec/segment_plan.h"

#include <algorithm>
#include <cstring>

#include "core/exec/threads.h"
#include "core/ir/verify.h"
#include "core/plan/blocks.h"

namespace pfrt {
namespace {

const pfrt_buffer& buffer_at(const pfrt_program& p, uint32_t i) {
  return *reinterpret_cast<const pfrt_buffer*>(reinterpret_cast<const char*>(p.buffers) +
                                               size_t{p.buffer_size} * i);
}

const pfrt_step& step_at(const pfrt_program& p, uint32_t i) {
  return *reinterpret_cast<const pfrt_step*>(reinterpret_cast<const char*>(p.steps) +
                                             size_t{p.step_size} * i);
}

Dims dims_of(const Type& type) {
  Dims dims;
  for (const Dim& d : type.shape) dims.push_back(d.value());
  return dims;
}

}  // namespace

// What one run of a segment holds; the step context's host pointer leads here.
struct SegmentPlan::Frame {
  SegmentPlan* plan = nullptr;
  const RunControl* control = nullptr;
  std::vector<ValuePtr>* slots = nullptr;
  std::vector<void*> pointers;  // by entry
  char* scratch = nullptr;
  uint32_t program = 0;
  std::string text;  // of the failing step
  std::mutex mutex;

  static Frame& of(const pfrt_step_context* context) { return *static_cast<Frame*>(context->host); }

  struct Loop {
    Frame* frame;
    void (*fn)(void*, uint64_t, uint32_t);
    void* arg;
  };
  static void parallel(const pfrt_step_context* context, uint64_t n,
                       void (*fn)(void*, uint64_t, uint32_t), void* arg) {
    Frame& frame = of(context);
    Loop loop{&frame, fn, arg};
    parallel_for(
        frame.control->width, n,
        [](void* l, uint64_t i, uint32_t worker) {
          const Loop& self = *static_cast<Loop*>(l);
          if (self.frame->control->stop() == Code::kOK) self.fn(self.arg, i, worker);
        },
        &loop);
  }
  static pfrt_code stop(const pfrt_step_context* context) {
    return static_cast<pfrt_code>(of(context).control->stop());
  }
  static void* scratch_of(const pfrt_step_context* context, uint32_t worker) {
    Frame& frame = of(context);
    return frame.scratch + frame.plan->scratch_bytes_ * worker;
  }
  static pfrt_code fail(const pfrt_step_context* context, pfrt_code code, pfrt_string text) {
    Frame& frame = of(context);
    std::lock_guard lock(frame.mutex);
    try {
      if (frame.text.empty()) frame.text = view(text);
    } catch (const std::bad_alloc&) {
      return PFRT_CODE_OUT_OF_MEMORY;
    }
    return code;
  }
  static pfrt_code alloc_output(const pfrt_step_context* context, uint32_t buffer,
                                const int64_t* dims, uint32_t rank, void** out) {
    Frame& frame = of(context);
    *out = nullptr;
    try {
      return frame.allocate(buffer, Dims(dims, dims + rank), out);
    } catch (const std::bad_alloc&) {
      return PFRT_CODE_OUT_OF_MEMORY;
    }
  }
  pfrt_code allocate(uint32_t buffer, Dims dims, void** out) {
    const Program& p = plan->programs_[program];
    if (buffer >= p.program.buffer_count) return PFRT_CODE_INTERNAL;
    const Entry& entry = plan->entries_[p.first_entry + buffer];
    if (entry.place != Place::kAllocated) return PFRT_CODE_INTERNAL;
    for (const OutputValue& o : plan->outputs_) {
      if (o.value != entry.value) continue;
      auto tensor = Tensor::allocate(o.dtype, std::move(dims), false);
      if (!tensor.ok()) return static_cast<pfrt_code>(tensor.status().code());
      *out = tensor->data();
      pointers[p.first_entry + buffer] = *out;
      (*slots)[o.slot] = Value::of(tensor.take());
      return PFRT_CODE_OK;
    }
    return PFRT_CODE_INTERNAL;
  }
};

Result<std::shared_ptr<SegmentPlan>> SegmentPlan::build(const Graph& graph,
                                                        const Snapshot& snapshot, Segment& segment,
                                                        const std::vector<uint32_t>& slot_of,
                                                        InferState state,
                                                        const Provider** culprit) {
  auto plan = std::shared_ptr<SegmentPlan>(new SegmentPlan);
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
  for (StageExecutable& stage : segment.stages) {
    *culprit = &stage.executable->provider();
    PFRT_TRY(plan->add_program(graph, snapshot, stage, shapes, state, slot_of));
    *culprit = nullptr;
  }
  PFRT_TRY(plan->place_buffers());
  plan->measured_ns_ = std::vector<std::atomic<uint64_t>>(plan->steps_.size());
  return plan;
}

SegmentPlan::~SegmentPlan() {
  for (Program& p : programs_)
    if (p.made) p.stage->executable->release_program(p.program);
}

Status SegmentPlan::add_program(const Graph& graph, const Snapshot& snapshot,
                                StageExecutable& stage, const pfrt_shapes& shapes,
                                const InferState& state, const std::vector<uint32_t>& slot_of) {
  const Stage& plan_stage = *stage.stage;
  uint32_t node = PFRT_NO_INDEX;
  auto made = stage.executable->specialise(shapes, &node);
  if (!made.ok()) {
    Status status = made.take_status();
    if (node < snapshot.get().node_count)
      status.prepend(describe(graph, *graph.node(snapshot.node_id(node))));
    return status;
  }
  programs_.push_back({&stage, made.take(), true, entries_.size()});
  const pfrt_program& program = programs_.back().program;
  const std::string& who = stage.executable->provider().name();

  const auto find_inner = [&](ValueId v) {
    return std::any_of(inner_.begin(), inner_.end(),
                       [v](const auto& made_here) { return made_here.first == v; });
  };
  for (uint32_t i = 0; i < program.buffer_count; ++i) {
    const pfrt_buffer& b = buffer_at(program, i);
    Entry e;
    e.bytes = b.bytes;
    const auto outside = [&](size_t limit) { return b.index >= limit; };
    if (b.alignment > 64 || b.memory != PFRT_MEMORY_HOST)
      return error(Code::kUNSUPPORTED, who, " returned a program with a buffer in memory kind ",
                   b.memory, " aligned to ", b.alignment,
                   "; this host gives host memory aligned to 64");
    switch (b.kind) {
      case PFRT_BUFFER_IN: {
        if (outside(plan_stage.inputs.size()))
          return error(Code::kPROVIDER, who, " returned a program with input ", b.index, " of ",
                       plan_stage.inputs.size());
        const ValueId v = plan_stage.inputs[b.index];
        if (slot_of[v] != kNoId && !find_inner(v)) {
          e.place = Place::kLiveIn;
          e.slot = slot_of[v];
        } else if (find_inner(v)) {
          e.place = Place::kBlock;  // place_buffers gives it the producer's place
          e.value = v;
        } else {
          return error(Code::kINTERNAL, "value '", graph.at(v).name,
                       "' is used before it is produced");
        }
        break;
      }
      case PFRT_BUFFER_OUT: {
        if (outside(plan_stage.outputs.size()))
          return error(Code::kPROVIDER, who, " returned a program with output ", b.index, " of ",
                       plan_stage.outputs.size());
        const ValueId v = plan_stage.outputs[b.index];
        const Type& type = state.types[v];
        e.value = v;
        const bool known = type.is_tensor() && type.fixed();
        if (known) {
          const Dims dims = dims_of(type);
          const uint64_t bytes = tensor_bytes(type.dtype, element_count(dims.data(), dims.size()));
          if (b.bytes != bytes && b.bytes != PFRT_BYTES_UNKNOWN)
            return error(Code::kPROVIDER, who, " returned a program that writes ", b.bytes,
                         " bytes to '", graph.at(v).name, "', which has ", bytes);
          e.bytes = bytes;
        }
        if (slot_of[v] != kNoId) {
          const bool late = b.bytes == PFRT_BYTES_UNKNOWN || !known;
          e.place = late ? Place::kAllocated : Place::kOutput;
          e.slot = slot_of[v];
          outputs_.push_back({v, e.slot, type.dtype, late ? Dims() : dims_of(type), !late});
        } else {
          if (!known)
            return error(Code::kINTERNAL, "the dimensions of '", graph.at(v).name,
                         "' are not known");
          e.place = Place::kBlock;
        }
        inner_.emplace_back(v, entries_.size());
        break;
      }
      case PFRT_BUFFER_TEMP:
        if (b.bytes == PFRT_BYTES_UNKNOWN)
          return error(Code::kPROVIDER, who,
                       " returned a program with a temporary buffer of unknown size");
        e.place = Place::kBlock;
        break;
      case PFRT_BUFFER_CONST:
        if (outside(stage.constants.size()))
          return error(Code::kPROVIDER, who, " returned a program with packed constant ", b.index,
                       " of ", stage.constants.size());
        e.place = Place::kConstant;
        e.constant = stage.constants[b.index]->data();
        break;
      case PFRT_BUFFER_INITIALIZER: {
        const Tensor* t = b.index < graph.value_count() ? graph.constant(b.index) : nullptr;
        if (!t)
          return error(Code::kPROVIDER, who, " returned a program that reads value ", b.index,
                       " as a constant, which it is not");
        e.place = Place::kConstant;
        e.constant = t->data();
        e.bytes = t->bytes();
        break;
      }
      default:
        return error(Code::kUNSUPPORTED, who, " returned a program with a buffer of kind ", b.kind,
                     ", which this host does not know");
    }
    entries_.push_back(e);
  }
  for (uint32_t i = 0; i < program.step_count; ++i) {
    const pfrt_step& step = step_at(program, i);
    for (uint32_t r = 0; r < step.read_count + step.write_count; ++r) {
      const uint32_t b = r < step.read_count ? step.reads[r] : step.writes[r - step.read_count];
      if (b >= program.buffer_count)
        return error(Code::kPROVIDER, who, " returned a step that uses buffer ", b, " of ",
                     program.buffer_count);
    }
    steps_.push_back({&step, static_cast<uint32_t>(programs_.size() - 1)});
    scratch_bytes_ = std::max(scratch_bytes_, (step.scratch_bytes + 63) / 64 * 64);
  }
  return {};
}

Status SegmentPlan::place_buffers() {
  // Root entry of every block buffer: readers in later programs share the producer's, aliases their
  // source's.
  std::vector<size_t> root(entries_.size());
  for (size_t i = 0; i < root.size(); ++i) root[i] = i;
  for (size_t p = 0; p < programs_.size(); ++p) {
    const Program& program = programs_[p];
    for (uint32_t i = 0; i < program.program.buffer_count; ++i) {
      const size_t at = program.first_entry + i;
      if (buffer_at(program.program, i).kind != PFRT_BUFFER_IN || entries_[at].value == kNoId)
        continue;
      for (const auto& [value, entry] : inner_) {
        if (value != entries_[at].value) continue;
        root[at] = entry;
        entries_[at].place = entries_[entry].place;
        entries_[at].slot = entries_[entry].slot;
      }
    }
  }

  constexpr uint32_t kNever = UINT32_MAX;
  std::vector<uint32_t> first(entries_.size(), kNever), last(entries_.size(), 0);
  for (uint32_t s = 0; s < steps_.size(); ++s) {
    const pfrt_step& step = *steps_[s].step;
    const size_t base = programs_[steps_[s].program].first_entry;
    const auto use = [&](uint32_t b) {
      const size_t r = root[base + b];
      first[r] = std::min(first[r], s);
      last[r] = std::max(last[r], s);
    };
    for (uint32_t i = 0; i < step.read_count; ++i) use(step.reads[i]);
    for (uint32_t i = 0; i < step.write_count; ++i) use(step.writes[i]);
  }
  // In-place: the source dies in the step that first writes the alias, and nobody else reads it
  // there.
  for (const Program& program : programs_) {
    for (uint32_t i = 0; i < program.program.buffer_count; ++i) {
      const pfrt_buffer& b = buffer_at(program.program, i);
      if (b.may_alias == 0 || b.may_alias > program.program.buffer_count) continue;
      const size_t to = root[program.first_entry + i],
                   from = root[program.first_entry + b.may_alias - 1];
      const Entry &target = entries_[to], &source = entries_[from];
      if (to == from || target.place != Place::kBlock || source.place != Place::kBlock) continue;
      if (target.bytes > source.bytes || first[to] == kNever || last[from] != first[to]) continue;
      if (first[from] == first[to]) continue;
      for (size_t k = 0; k < root.size(); ++k)
        if (root[k] == to) root[k] = from;
      last[from] = last[to];
    }
  }
  std::vector<BlockItem> items;
  std::vector<size_t> owner;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].place != Place::kBlock || root[i] != i || first[i] == kNever) continue;
    items.push_back({entries_[i].bytes, 64, first[i], last[i], 0});
    owner.push_back(i);
  }
  block_bytes_ = place(items);
  if (block_bytes_ == UINT64_MAX)
    return error(Code::kOUT_OF_MEMORY, "planning a run: its buffers do not fit the address space");
  block_bytes_ = (block_bytes_ + 63) / 64 * 64;
  for (size_t k = 0; k < items.size(); ++k) entries_[owner[k]].offset = items[k].offset;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].place == Place::kBlock) entries_[i].offset = entries_[root[i]].offset;
  }
  return {};
}

Result<std::shared_ptr<Buffer>> SegmentPlan::take_block(uint32_t workers) {
  const uint64_t bytes = block_bytes_ + scratch_bytes_ * workers;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty() && idle_.back()->bytes() >= bytes) {
      auto block = std::move(idle_.back());
      idle_.pop_back();
      return block;
    }
    idle_.clear();
  }
  return Buffer::allocate(bytes, false);
}

void SegmentPlan::give_block(std::shared_ptr<Buffer> block) {
  constexpr size_t kKeep = 4;
  std::lock_guard lock(mutex_);
  if (idle_.size() < kKeep) idle_.push_back(std::move(block));
}

Status SegmentPlan::execute(std::vector<ValuePtr>& slots, const std::vector<OutputRequest>& targets,
                            const RunControl& control) {
  Frame frame;
  frame.plan = this;
  frame.control = &control;
  frame.slots = &slots;
  PFRT_ASSIGN(auto block, take_block(control.width));
  char* base = static_cast<char*>(block->data());
  frame.scratch = base + block_bytes_;
  frame.pointers.assign(entries_.size(), nullptr);

  for (const OutputValue& o : outputs_) {
    if (!o.known) continue;
    Tensor tensor;
    const OutputRequest* target = o.slot < targets.size() ? &targets[o.slot] : nullptr;
    tensor.dtype = o.dtype;
    tensor.dims = o.dims;
    if (target && target->data && target->bytes == tensor.bytes()) {
      PFRT_ASSIGN(tensor.buffer, Buffer::wrap(target->data, target->bytes, {}));
    } else {
      PFRT_ASSIGN(tensor, Tensor::allocate(o.dtype, o.dims, false));
    }
    slots[o.slot] = Value::of(std::move(tensor));
  }
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& e = entries_[i];
    switch (e.place) {
      case Place::kConstant:
        frame.pointers[i] = const_cast<void*>(e.constant);
        break;
      case Place::kBlock:
        frame.pointers[i] = base + e.offset;
        break;
      case Place::kLiveIn:
      case Place::kOutput:
        frame.pointers[i] = slots[e.slot] ? slots[e.slot]->tensor.data() : nullptr;
        break;
      case Place::kAllocated:  // by the step
      case Place::kUnused:
        break;
    }
  }

  pfrt_step_context context{};
  context.struct_size = sizeof context;
  context.abi = PFRT_ABI_VERSION;
  context.host = &frame;
  context.workers = control.width;
  context.parallel = &Frame::parallel;
  context.stop = &Frame::stop;
  context.scratch = &Frame::scratch_of;
  context.alloc_output = &Frame::alloc_output;
  context.fail = &Frame::fail;
  Status status;
  for (size_t s = 0; s < steps_.size(); ++s) {
    if (const Code stop = control.stop(); stop != Code::kOK) {
      status = stop_status(stop);
      break;
    }
    const pfrt_step& step = *steps_[s].step;
    frame.program = steps_[s].program;
    context.buffers = frame.pointers.data() + programs_[frame.program].first_entry;
    const uint64_t started = control.profile ? os::monotonic_ns() : 0;
    const pfrt_code code = step.run(step.state, &context);
    if (control.profile) measured_ns_[s] = os::monotonic_ns() - started;
    if (code != PFRT_CODE_OK) {
      const Code kind = static_cast<Code>(code);
      control.culprit = &programs_[frame.program].stage->executable->provider();
      if (kind == Code::kCANCELLED || kind == Code::kDEADLINE) {
        status = stop_status(kind);
      } else {
        status = error(kind, "running step '", view(step.kernel),
                       "': ", frame.text.empty() ? std::string(code_text(kind)) : frame.text);
      }
      break;
    }
    // A loop that was cut short has left its step's results half done.
    if (const Code stop = control.stop(); stop != Code::kOK) {
      status = stop_status(stop);
      break;
    }
  }
  give_block(std::move(block));
  PFRT_TRY(std::move(status));
  for (const OutputValue& o : outputs_)
    if (!slots[o.slot]) {
      for (const Program& p : programs_)
        for (uint32_t i = 0; i < p.program.buffer_count; ++i)
          if (entries_[p.first_entry + i].value == o.value)
            control.culprit = &p.stage->executable->provider();
      return error(Code::kPROVIDER, "running: a step did not allocate its output");
    }
  return {};
}

void SegmentPlan::report(const Graph& graph, const Snapshot& snapshot, const Partition& partition,
                         std::vector<StepReport>& rows) const {
  for (size_t s = 0; s < steps_.size(); ++s) {
    const pfrt_step& step = *steps_[s].step;
    StepReport row;
    for (uint32_t i = 0; i < step.node_count; ++i) {
      if (step.nodes[i] >= snapshot.get().node_count) continue;
      const Node& node = *graph.node(snapshot.node_id(step.nodes[i]));
      std::string label = node.name;
      for (size_t o = 0; label.empty() && o < node.outputs.size(); ++o)
        if (node.outputs[o] != kNoId) label = graph.at(node.outputs[o]).name;
      row.nodes += (i ? "," : "") + label;
      row.ops += (i ? "," : "") + node.op;
      const NodePlan& plan = partition.nodes[step.nodes[i]];
      if (row.reason.empty()) row.reason = plan.reason;
      if (row.refused.empty()) row.refused = plan.refused;
    }
    row.provider = programs_[steps_[s].program].stage->executable->provider().name();
    row.kernel = view(step.kernel);
    row.bytes = step.bytes;
    row.flops = step.flops;
    row.estimated_ns = step.est_ns;
    row.measured_ns = static_cast<double>(measured_ns_[s].load());
    rows.push_back(std::move(row));
  }
}

}  // namespace pfrt

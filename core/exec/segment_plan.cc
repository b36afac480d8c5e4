// SPDX-License-Identifier: Apache-2.0
#include "core/exec/segment_plan.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/os/fork.h"
#include "core/base/rank.h"
#include "core/ir/verify.h"

namespace pfrt {
namespace {

constexpr std::string_view kEscaped = "an exception escaped the provider";

// Calls a step's own code, and catches its exceptions.
pfrt_code call_step(const pfrt_step& step, const pfrt_step_context& context) {
  try {
    return step.run(step.state, &context);
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  } catch (...) {
    return context.fail(&context, PFRT_CODE_PROVIDER, to_c(kEscaped));
  }
}

char* data_of(const Tensor& tensor, uint64_t offset) {
  char* data = static_cast<char*>(tensor.data());
  return data ? data + offset : nullptr;
}

}  // namespace

// The state of one run of a segment.
struct SegmentPlan::Frame {
  SegmentPlan* plan = nullptr;
  const RunControl* control = nullptr;
  std::vector<ValuePtr>* slots = nullptr;
  const RunDimensions* dimensions = nullptr;  // null: nothing varies
  std::span<void*> pointers;                  // by entry
  const Needs* needs = nullptr;               // null: everything is needed
  char* scratch = nullptr;
  uint64_t clock_ns = 0;  // when the last step ended, for the next one; 0: not known
  const MemorySource& source = MemoryScope::current();  // outlives the run
};

// The state of one step's call, which its context's host pointer refers to.
struct SegmentPlan::Call {
  Frame* frame;
  uint32_t program;
  uint32_t step;
  uint32_t workers;
  char* scratch;
  std::mutex mutex;
  std::string text;                  // message of its failure
  std::atomic<bool> escaped{false};  // an exception left a body of its loop

  bool goes_on() const {
    return frame->control->stop() == Code::kOK && !escaped.load(std::memory_order_relaxed);
  }
  static Call& of(const pfrt_step_context* context) { return *static_cast<Call*>(context->host); }

  // A loop with very many bodies calls them in groups: each group costs a call of the scheduler,
  // and once the run is stopped all groups are over at once.
  static constexpr uint64_t kMostGroups = 1 << 14;
  struct Loop {
    Call* call;
    void (*fn)(void*, uint64_t, uint32_t);
    void* arg;
    uint64_t n, group;
    void run(uint64_t at, uint32_t worker) const {
      const RunControl& control = *call->frame->control;
      // The profile has the step's own thread already.
      Profile* const profile = worker > 0 ? control.profile : nullptr;
      const uint64_t started = profile ? os::quick_ns() : 0;
      const uint64_t end = std::min(n, (at + 1) * group);
      try {  // on a thread of the pool nobody else would catch it
        for (uint64_t i = at * group; i < end && call->goes_on(); ++i) fn(arg, i, worker);
      } catch (const std::bad_alloc&) {
        control.stop_with(Code::kOUT_OF_MEMORY);
      } catch (...) {
        call->escaped.store(true, std::memory_order_relaxed);
      }
      if (profile)
        profile->add_share(started, os::quick_ns(), call->frame->plan->profile_name(call->step),
                           control.number);
    }
  };
  static void parallel(const pfrt_step_context* context, uint64_t n,
                       void (*fn)(void*, uint64_t, uint32_t), void* arg) {
    Call& call = of(context);
    const uint64_t group = n / kMostGroups + 1;
    Loop loop{&call, fn, arg, n, group};
    call.frame->control->loop(
        call.workers, (n + group - 1) / group,
        [](void* l, uint64_t i, uint32_t worker) { static_cast<Loop*>(l)->run(i, worker); }, &loop);
  }
  static pfrt_code stop(const pfrt_step_context* context) {
    return static_cast<pfrt_code>(of(context).frame->control->stop());
  }
  static void* scratch_of(const pfrt_step_context* context, uint32_t worker) {
    Call& call = of(context);
    return call.scratch + call.frame->plan->scratch_bytes_ * worker;
  }
  static pfrt_code fail(const pfrt_step_context* context, pfrt_code code, pfrt_string text) {
    return of(context).said(code, view(text));
  }
  // Keeps the first message.
  pfrt_code said(pfrt_code code, std::string_view what) {
    std::lock_guard lock(mutex);
    try {
      if (text.empty()) text = what;
    } catch (const std::bad_alloc&) {
      return PFRT_CODE_OUT_OF_MEMORY;
    }
    return code;
  }
  static pfrt_code alloc_output(const pfrt_step_context* context, uint32_t buffer,
                                const int64_t* dims, uint32_t rank, void** out) {
    *out = nullptr;
    if (rank > kMaxRank || (rank && !dims)) return PFRT_CODE_INVALID_ARGUMENT;
    try {
      return of(context).allocate(buffer, Dims(dims, dims + rank), out);
    } catch (const std::bad_alloc&) {
      return PFRT_CODE_OUT_OF_MEMORY;
    }
  }
  static pfrt_code set_strings(const pfrt_step_context* context, uint32_t buffer, uint64_t first,
                               const pfrt_string* texts, uint64_t count) {
    Call& call = of(context);
    if (count && !texts) return PFRT_CODE_INVALID_ARGUMENT;
    const std::lock_guard lock(call.mutex);
    try {
      return call.set(buffer, first, {texts, static_cast<size_t>(count)});
    } catch (const std::bad_alloc&) {
      return PFRT_CODE_OUT_OF_MEMORY;
    }
  }
  pfrt_code set(uint32_t buffer, uint64_t first, std::span<const pfrt_string> texts) {
    const SegmentPlan& plan = *frame->plan;
    const Program& p = plan.programs_[program];
    if (buffer >= p.program.buffer_count) return PFRT_CODE_INVALID_ARGUMENT;
    const Entry& entry = plan.entries_[p.first_entry + buffer];
    const bool output = entry.place == Place::kOutput || entry.place == Place::kAllocated;
    const ValuePtr value = output ? (*frame->slots)[entry.slot] : nullptr;
    if (!value || value->tensor.dtype != PFRT_DTYPE_STRING) return PFRT_CODE_INVALID_ARGUMENT;
    const auto elements = static_cast<uint64_t>(value->tensor.count());
    if (first > elements || texts.size() > elements - first) return PFRT_CODE_INVALID_ARGUMENT;
    for (size_t i = 0; i < texts.size(); ++i)
      if (const Status status = value->tensor.buffer->set_string(first + i, view(texts[i]));
          !status.ok())
        return static_cast<pfrt_code>(status.code());
    return PFRT_CODE_OK;
  }
  pfrt_code allocate(uint32_t buffer, Dims dims, void** out) {
    const SegmentPlan& plan = *frame->plan;
    const Program& p = plan.programs_[program];
    if (buffer >= p.program.buffer_count) return PFRT_CODE_INTERNAL;
    const Entry& entry = plan.entries_[p.first_entry + buffer];
    if (entry.place != Place::kAllocated) return PFRT_CODE_INTERNAL;
    for (const OutputValue& o : plan.outputs_) {
      if (o.value != entry.value) continue;
      const MemoryScope scope(frame->source);  // this may be any thread
      auto tensor = frame->plan->allocate_in(o.space, o.dtype, std::move(dims), *frame->control);
      if (!tensor.ok())
        return said(static_cast<pfrt_code>(tensor.status().code()), tensor.status().message());
      *out = tensor->data();
      for (size_t i = 0; i < frame->pointers.size(); ++i)
        if (i == p.first_entry + buffer || plan.entries_[i].source == p.first_entry + buffer)
          frame->pointers[i] = *out;
      (*frame->slots)[o.slot] = Value::of(tensor.take());
      return PFRT_CODE_OK;
    }
    return PFRT_CODE_INTERNAL;
  }
};

SegmentPlan::~SegmentPlan() {
  for (Program& p : programs_)
    if (p.made) p.stage->executable->release_program(p.program);
}

Status SegmentPlan::fail_output(const OutputValue& o, Status status) const {
  Type type = Type::tensor(o.dtype);
  type.has_shape = true;
  for (const int64_t d : o.dims) type.shape.push_back(Dim(d));
  const NodeId producer = graph_->at(o.value).producer;
  status.prepend(message("output '", graph_->at(o.value).name, "', ",
                         type_text(type, *graph_->symbols), ", of ",
                         describe(*graph_, *graph_->node(producer))));
  return status;
}

Status SegmentPlan::fail_block(uint64_t bytes, Status status) const {
  uint64_t most = 0;
  NodeId who = kNoId;
  for (const StepRef& at : steps_)
    for (uint32_t w = 0; w < at.step->write_count; ++w) {
      const Entry& e = entries_[programs_[at.program].first_entry + at.step->writes[w]];
      if (e.place != Place::kBlock || e.bytes <= most) continue;
      most = e.bytes;
      who = at.node;
    }
  status.prepend(message(
      "working memory of ", bytes, " bytes",
      who == kNoId ? ""
                   : message(", ", most, " of them for ", describe(*graph_, *graph_->node(who)))));
  return status;
}

char* SegmentPlan::base_of(const BlockPool::Block& block) const {
  auto* const data = static_cast<char*>(block.buffer->data());
  const uintptr_t past = reinterpret_cast<uintptr_t>(data) % spaces_[0].alignment;
  return past ? data + (spaces_[0].alignment - past) : data;
}

void SegmentPlan::point(BlockPool::Block& block, const DeviceBlocks& device_blocks,
                        const std::vector<ValuePtr>& slots) const {
  char* const base = base_of(block);
  const auto place = [&](size_t i) -> void* {
    const Entry& e = entries_[i];
    switch (e.place) {
      case Place::kConstant:
        return const_cast<void*>(e.constant);
      case Place::kBlock:
        return (e.space ? device_blocks.base_of(e.space) : base) + e.offset;
      case Place::kLiveIn:
      case Place::kOutput:
        return slots[e.slot] ? data_of(slots[e.slot]->tensor, e.within) : nullptr;
      case Place::kAllocated:  // by the step
      case Place::kUnused:
        break;
    }
    return nullptr;
  };
  if (block.plan == number_) {
    for (const size_t i : moving_) block.pointers[i] = place(i);
    return;
  }
  block.pointers.resize(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) block.pointers[i] = place(i);
  block.plan = number_;
}

// Goes backwards over the steps: a step that writes something needed runs, and needs what it reads.
SegmentPlan::Needs SegmentPlan::needs_of(const std::vector<bool>& wanted) const {
  const auto root = [&](size_t i) {
    while (entries_[i].source != kNone) i = entries_[i].source;
    return i;
  };
  std::vector<bool> needed(entries_.size()), used_slot(wanted.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& e = entries_[i];
    if ((e.place == Place::kOutput || e.place == Place::kAllocated) && wanted[e.slot])
      needed[root(i)] = true;
  }
  Needs out{std::vector<bool>(steps_.size()), std::vector<bool>(entries_.size()),
            std::vector<bool>(outputs_.size())};
  const auto use = [&](size_t i) {
    needed[root(i)] = true;
    for (const size_t used : {root(i), i})
      if (entries_[used].slot != kNoId) used_slot[entries_[used].slot] = true;
  };
  for (size_t at = steps_.size(); at-- > 0;) {
    const pfrt_step& step = *steps_[at].step;
    const Program& program = programs_[steps_[at].program];
    const auto entry = [&](uint32_t buffer) { return program.first_entry + size_t{buffer}; };
    const std::span writes(step.writes, step.write_count), reads(step.reads, step.read_count);
    out.steps[at] =
        std::ranges::any_of(writes, [&](uint32_t buffer) { return needed[root(entry(buffer))]; });
    if (out.steps[at])
      for (const std::span<const uint32_t> buffers : {writes, reads})
        for (const uint32_t buffer : buffers) use(entry(buffer));
    if (at != program.first_step) continue;
    for (const DeviceTransfer& t : program.transfers) {
      if (!needed[root(t.to)]) continue;
      use(t.to);
      if (t.from != kNone) use(t.from);
    }
  }
  for (size_t i = 0; i < entries_.size(); ++i) out.entries[i] = needed[root(i)];
  for (size_t i = 0; i < outputs_.size(); ++i) out.outputs[i] = used_slot[outputs_[i].slot];
  return out;
}

SegmentPlan::OutputValue SegmentPlan::in_run(const OutputValue& output,
                                             const RunDimensions& dimensions) {
  OutputValue out = output;
  const int64_t* const dims = dimensions.by_value[output.value];
  out.dims.assign(dims, dims + output.dims.size());
  out.bytes = tensor_bytes(out.dtype, element_count(dims, out.dims.size()));
  return out;
}

// Whether the memory that |target| offers is that of the input that |output| may replace.
bool SegmentPlan::replaces(const OutputValue& output, const OutputRequest& target,
                           const std::vector<ValuePtr>& slots) {
  if (output.replaces == kNoId || !slots[output.replaces]) return false;
  const Tensor& input = slots[output.replaces]->tensor;
  return input.data() == target.data && input.bytes() == output.bytes;
}

// Allocates the outputs whose dimensions are known.
Status SegmentPlan::make_outputs(std::vector<ValuePtr>& slots, const OutputTargets& targets,
                                 const Frame& frame) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i].known || (frame.needs && !frame.needs->outputs[i])) continue;
    std::optional<OutputValue> varied;
    if (frame.dimensions && frame.dimensions->by_value[outputs_[i].value])
      varied = in_run(outputs_[i], *frame.dimensions);
    const OutputValue& o = varied ? *varied : outputs_[i];
    Tensor tensor;
    const OutputRequest* target = targets.of(o.slot);
    const bool spared = target && target->in_place && !replaces(o, *target, slots);
    if (target && !spared &&
        (target->at_most ? target->bytes >= o.bytes : target->bytes == o.bytes) &&
        target->device() == spaces_[o.space].device.get()) {
      tensor.dtype = o.dtype;
      tensor.dims = o.dims;
      if (target->in_place) frame.control->overwrote_input = true;
      if (target->buffer) {
        tensor.buffer = target->buffer;
        tensor.offset = static_cast<uint64_t>(static_cast<char*>(target->data) -
                                              static_cast<char*>(target->buffer->data()));
      } else {
        PFRT_ASSIGN(tensor.buffer, Buffer::wrap(target->data, target->bytes, {}));
      }
    } else {
      auto made = allocate_in(o.space, o.dtype, o.dims, *frame.control);
      if (!made.ok()) return fail_output(o, made.take_status());
      tensor = made.take();
    }
    slots[o.slot] = Value::of(std::move(tensor));
  }
  return {};
}

Status SegmentPlan::execute(std::vector<ValuePtr>& slots, const OutputTargets& targets,
                            const RunControl& control, const std::vector<bool>* wanted,
                            const RunDimensions* dimensions) {
  Frame frame;
  frame.dimensions = dimensions;
  frame.plan = this;
  frame.control = &control;
  frame.slots = &slots;
  const uint64_t bytes = block_room() + scratch_bytes_ * control.width;
  struct Memory {
    const RunControl& control;
    const uint64_t working;
    const uint64_t& clock_ns;
    uint64_t made = 0;
    const uint64_t start_ns = control.profile ? os::quick_ns() : 0;
    ~Memory() {
      if (!control.profile) return;
      const uint64_t now = clock_ns ? clock_ns : os::quick_ns();
      control.profile->add(Profile::Kind::kResults, start_ns, now, 0, control.number, made);
      control.profile->add(Profile::Kind::kWorking, start_ns, now, 0, control.number, working);
    }
  } memory{control, bytes, frame.clock_ns};
  BlockPool& blocks = *spaces_[0].blocks;
  auto taken = blocks.take(bytes);
  if (!taken.ok()) return fail_block(bytes, taken.take_status());
  std::unique_ptr<BlockPool::Block> block = taken.take();
  struct Held {
    BlockPool& pool;
    const std::unique_ptr<BlockPool::Block>& block;
    ~Held() {
      if (block) pool.lost(*block);
    }
  } const held{blocks, block};
  char* base = base_of(*block);
  DeviceBlocks device_blocks(*this);
  PFRT_TRY(device_blocks.take(control));
  frame.scratch = base + block_bytes_;

  std::optional<Needs> needs;
  if (wanted) needs = needs_of(*wanted);
  frame.needs = needs ? &*needs : nullptr;
  PFRT_TRY(make_outputs(slots, targets, frame));
  point(*block, device_blocks, slots);
  frame.pointers = block->pointers;

  Status status;
  {
    const os::ForkPause pause;  // nothing below holds a lock that others use
    std::optional<LoopsAhead> ahead;
    if (control.width > 1) ahead.emplace(control.width);
    for (size_t at = 0; at < levels_.size() && status.ok(); ++at)
      status = run_level(frame, levels_[at]);
  }
  if (control.profile)
    for (const OutputValue& o : outputs_)
      if (slots[o.slot]) memory.made += slots[o.slot]->tensor.bytes();
  blocks.give(std::move(block), bytes, keep_blocks_);
  device_blocks.keep();
  PFRT_TRY(std::move(status));
  for (const OutputValue& o : outputs_)
    if (!slots[o.slot] && (!wanted || (*wanted)[o.slot])) {
      Status missing = error(Code::kPROVIDER, "running: a step did not allocate its output");
      for (const Program& p : programs_)
        for (uint32_t i = 0; i < p.program.buffer_count; ++i)
          if (entries_[p.first_entry + i].value == o.value)
            missing.blame(p.stage->executable->provider());
      return missing;
    }
  return {};
}

Status SegmentPlan::run_step(Frame& frame, uint32_t at, uint32_t workers, uint32_t lane,
                             char* scratch, uint64_t* clock_ns) {
  const RunControl& control = *frame.control;
  if (const Code stop = control.stop(); stop != Code::kOK) return stop_status(stop);
  const pfrt_step& step = *steps_[at].step;
  const Program& program = programs_[steps_[at].program];
  if (step.width > 0) workers = std::min(workers, step.width);
  if (at == program.first_step && !program.transfers.empty()) {
    PFRT_TRY(run_device_transfers(program, frame));
    if (clock_ns) *clock_ns = 0;
  }
  if (frame.needs && !frame.needs->steps[at]) {
    measured_[at].set(0, 0, lane);
    return {};
  }
  Call call{&frame, steps_[at].program, at, workers, scratch, {}, {}, {}};
  pfrt_step_context context{};
  context.struct_size = sizeof context;
  context.abi = PFRT_ABI_VERSION;
  context.host = &call;
  context.buffers = frame.pointers.data() + programs_[call.program].first_entry;
  if (program.told) {
    PFRT_TRY(control.devices.queue(*program.told, control.stopper()));
    context.run = control.devices.number();
  }
  context.workers = workers;
  context.parallel = &Call::parallel;
  context.stop = &Call::stop;
  context.scratch = &Call::scratch_of;
  context.alloc_output = &Call::alloc_output;
  context.fail = &Call::fail;
  context.set_strings = &Call::set_strings;
  if (frame.dimensions) context.dims = frame.dimensions->by_value.data();
  // Reading the clock takes a good part of the time of a small step.
  uint64_t started = 0;
  if (control.profile) started = clock_ns && *clock_ns ? *clock_ns : os::quick_ns();
  pfrt_code code = call_step(step, context);
  if (call.escaped) code = Call::fail(&context, PFRT_CODE_PROVIDER, to_c(kEscaped));
  if (control.profile) {
    const uint64_t ended = std::max(os::quick_ns(), started);
    if (clock_ns) *clock_ns = ended;
    measured_[at].set(started, ended - started, lane);
    control.profile->add(Profile::Kind::kStep, started, ended, profile_name(at), control.number);
  }
  const Code kind = static_cast<Code>(code);
  if (kind != Code::kOK && kind == control.stop()) return stop_status(kind);
  if (kind != Code::kOK) {
    const NodeId node = steps_[at].node;
    Status status =
        error(kind, "running ", node == kNoId ? "" : describe(*graph_, *graph_->node(node)) + " ",
              "in step '", view(step.kernel),
              "': ", call.text.empty() ? std::string(code_text(kind)) : call.text);
    status.blame(program.stage->executable->provider());
    return status;
  }
  // A loop that was cut short has left its step's results half done.
  if (const Code stop = control.stop(); stop != Code::kOK) return stop_status(stop);
  return {};
}

Status SegmentPlan::run_device_transfers(const Program& program, const Frame& frame) const {
  Transfers transfers;
  for (const DeviceTransfer& transfer : program.transfers) {
    if (frame.needs && !frame.needs->entries[transfer.to]) continue;
    const Entry& to = entries_[transfer.to];
    Device* const here = spaces_[to.space].device.get();
    void* const at = frame.pointers[transfer.to];
    if (transfer.from == kNone) {
      const Tensor& from = (*frame.slots)[transfer.slot]->tensor;
      transfers.add(at, here, from.data(), from.device(), from.bytes());
      continue;
    }
    const int64_t* const dims =
        frame.dimensions ? frame.dimensions->by_value[transfer.value] : nullptr;
    transfers.add(
        at, here, frame.pointers[transfer.from],
        spaces_[entries_[transfer.from].space].device.get(),
        dims ? tensor_bytes(transfer.dtype, element_count(dims, transfer.rank)) : to.bytes);
  }
  return transfers.run(frame.control->devices, frame.control->stopper());
}

// Runs independent steps, each with a part of the threads and of their scratch.
Status SegmentPlan::run_level(Frame& frame, const std::vector<uint32_t>& steps) {
  const uint32_t width = frame.control->width;
  const auto at_once = std::min(width, static_cast<uint32_t>(steps.size()));
  if (at_once == 1) {
    for (const uint32_t s : steps)
      PFRT_TRY(run_step(frame, s, width, 0, frame.scratch, &frame.clock_ns));
    return {};
  }
  struct Level {
    SegmentPlan* plan;
    Frame* frame;
    const std::vector<uint32_t>& steps;
    uint32_t workers;
    std::vector<Status> outcome;
  } level{this, &frame, steps, width / at_once, std::vector<Status>(steps.size())};
  frame.control->loop(
      at_once, steps.size(),
      [](void* arg, uint64_t i, uint32_t worker) {
        Level& l = *static_cast<Level*>(arg);
        try {
          l.outcome[i] = l.plan->run_step(
              *l.frame, l.steps[i], l.workers, worker,
              l.frame->scratch + l.plan->scratch_bytes_ * l.workers * worker, nullptr);
        } catch (const std::bad_alloc&) {
          l.outcome[i] = Status(Code::kOUT_OF_MEMORY, "running: no memory left");
        }
      },
      &level);
  frame.clock_ns = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!level.outcome[i].ok()) return std::move(level.outcome[i]);
  }
  return {};
}

void SegmentPlan::report(const Graph& graph, const Snapshot& snapshot, const Partition& partition,
                         PlanReport& out) const {
  report_counters(out.steps.size(), out);
  std::ranges::move(rows(graph, snapshot, partition), std::back_inserter(out.steps));
}

void SegmentPlan::describe_to(Profile& profile, const Graph& graph, const Snapshot& snapshot,
                              const Partition& partition) noexcept {
  if (profiled_.load(std::memory_order_relaxed)) return;
  try {
    std::vector<ProfileStep> steps;
    for (StepReport& row : rows(graph, snapshot, partition))
      steps.push_back({std::move(row.nodes), std::move(row.ops), std::move(row.provider),
                       std::move(row.kernel), row.bytes, row.flops});
    const uint32_t first = profile.add_steps(std::move(steps));
    if (first != Profile::kDropped) profiled_.store(first + 1, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {  // the run goes on, and the profile counts its steps as dropped
  }
}

std::vector<StepReport> SegmentPlan::rows(const Graph& graph, const Snapshot& snapshot,
                                          const Partition& partition) const {
  std::vector<StepReport> out;
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
    for (uint32_t i = 0; i < step.node_count; ++i)
      if (step.nodes[i] < snapshot.get().node_count &&
          !partition.nodes[step.nodes[i]].precision.empty())
        row.reason += "; " + partition.nodes[step.nodes[i]].precision;
    row.provider = programs_[steps_[s].program].stage->executable->provider().name();
    row.kernel = view(step.kernel);
    if (step.detail.size > 0) row.reason += message(row.reason.empty() ? "" : "; ", step.detail);
    row.tuning = view(step.tuning);
    row.bytes = step.bytes;
    row.flops = step.flops;
    row.estimated_ns = step.est_ns;
    row.measured_ns = static_cast<double>(measured_[s].took_ns.load());
    row.started_ns = measured_[s].started_ns;
    row.lane = measured_[s].lane;
    out.push_back(std::move(row));
  }
  return out;
}

void SegmentPlan::report_counters(size_t first_row, PlanReport& out) const {
  for (const Program& program : programs_) {
    Executable& executable = *program.stage->executable;
    auto counted = executable.report(program.program);
    if (!counted.ok()) {
      out.faults.push_back(counted.status().message());
      continue;
    }
    const size_t first = first_row + program.first_step;
    for (Counter& c : *counted) {
      const bool whole = c.step == PFRT_NO_INDEX;
      out.counters.push_back(
          {whole ? first : first + c.step, whole ? program.program.step_count : size_t{1},
           executable.provider().name(), std::move(c.name), std::move(c.unit), c.value});
    }
  }
}

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/check_plugin/program_run.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace cli::check {
namespace {

size_t bytes_of(const CaseValue& v) { return v.data.size() * element_bytes(v.dtype); }

std::string buffer_name(const pfrt_buffer& b, uint32_t index, const Case& c) {
  std::string at = "buffer " + std::to_string(index);
  switch (b.kind) {
    case PFRT_BUFFER_IN:
      return at + " (input '" + c.values[c.inputs[b.index]].name + "')";
    case PFRT_BUFFER_OUT:
      return at + " (output '" + c.values[c.outputs[b.index]].name + "')";
    case PFRT_BUFFER_TEMP:
      return at + " (temporary)";
    case PFRT_BUFFER_PART:
      return at + " (part of buffer " + std::to_string(b.index) + ")";
    default:
      return at;
  }
}

template <typename T>
const T* at(const T* array, size_t stride, size_t i) {
  return static_cast<const T*>(pfrt_at(array, stride, i));
}

// Says why a buffer is wrong; empty when it is right.
std::string fault_of(const pfrt_buffer& b, const Case& c, const HostSnapshot& snapshot,
                     size_t constant_count) {
  const auto outside = [&](size_t limit) {
    return b.index < limit
               ? std::string()
               : "has index " + std::to_string(b.index) + " of " + std::to_string(limit);
  };
  switch (b.kind) {
    case PFRT_BUFFER_IN:
      return outside(c.inputs.size());
    case PFRT_BUFFER_OUT: {
      if (b.index >= c.outputs.size()) return outside(c.outputs.size());
      const size_t bytes = bytes_of(c.values[c.outputs[b.index]]);
      if (b.bytes == bytes || b.bytes == PFRT_BYTES_UNKNOWN) return {};
      return "is an output of " + std::to_string(b.bytes) + " bytes whose value has " +
             std::to_string(bytes);
    }
    case PFRT_BUFFER_TEMP:
      if (b.alignment & (b.alignment - 1)) return "has an alignment that is no power of two";
      return b.bytes == PFRT_BYTES_UNKNOWN ? "is a temporary of unknown size" : "";
    case PFRT_BUFFER_CONST:
      return outside(constant_count);
    case PFRT_BUFFER_INITIALIZER:
      return snapshot.constant(b.index)
                 ? ""
                 : "names value " + std::to_string(b.index) + " as a constant, which it is not";
    case PFRT_BUFFER_PART:
      return {};  // fault_of_part
    default:
      return "is of kind " + std::to_string(b.kind) + ", which there is not";
  }
}

// Says why a buffer that is part of another is wrong; empty when it is right.
std::string fault_of_part(const pfrt_buffer& b, const std::vector<pfrt_buffer>& buffers,
                          const Case& c, const HostSnapshot& snapshot) {
  if (b.index >= buffers.size() || buffers[b.index].kind == PFRT_BUFFER_PART)
    return "is part of buffer " + std::to_string(b.index) + ", which is " +
           (b.index < buffers.size() ? "itself a part" : "not there");
  const pfrt_buffer& whole = buffers[b.index];
  uint64_t bytes = whole.bytes;
  if (whole.kind == PFRT_BUFFER_IN) bytes = bytes_of(c.values[c.inputs[whole.index]]);
  if (whole.kind == PFRT_BUFFER_INITIALIZER) bytes = snapshot.get()->values[whole.index].bytes;
  if (bytes != PFRT_BYTES_UNKNOWN && b.offset <= bytes && b.bytes <= bytes - b.offset) return {};
  return "is " + std::to_string(b.bytes) + " bytes from byte " + std::to_string(b.offset) +
         " on of buffer " + std::to_string(b.index) + ", which has " +
         (bytes == PFRT_BYTES_UNKNOWN ? "as many as the run finds" : std::to_string(bytes));
}

}  // namespace

ProgramView read_program(Trial& trial, const pfrt_program& program, const Case& c,
                         const HostSnapshot& snapshot, size_t constant_count) {
  trial.at("struct-size-plugin", "its program was read");
  const auto broken = [&](const char* rule, const std::string& found) {
    trial.fail(rule, found + " (" + c.name + ")");
    throw Broken(found);
  };
  if ((program.buffer_count && program.buffer_size < kLeast<pfrt_buffer>) ||
      (program.step_count && program.step_size < kLeast<pfrt_step>))
    broken("struct-size-plugin", "buffer_size is " + std::to_string(program.buffer_size) +
                                     " and step_size " + std::to_string(program.step_size) +
                                     "; at least " + std::to_string(kLeast<pfrt_buffer>) + " and " +
                                     std::to_string(kLeast<pfrt_step>) + " are needed");
  trial.keep("struct-size-plugin");
  trial.at("program", "its program was read");
  if ((program.buffer_count && !program.buffers) || (program.step_count && !program.steps))
    broken("program", "it counts buffers or steps that it does not list");
  for (uint32_t i = 0; i < program.buffer_count; ++i)
    if (!is_zero_behind(at(program.buffers, program.buffer_size, i), program.buffer_size))
      broken("unknown", "buffer " + std::to_string(i) + kSetMore);
  for (uint32_t i = 0; i < program.step_count; ++i)
    if (!is_zero_behind(at(program.steps, program.step_size, i), program.step_size))
      broken("unknown", "step " + std::to_string(i) + kSetMore);
  ProgramView view;
  view.buffers = copy_elements(program.buffers, program.buffer_size, program.buffer_count);
  view.steps = copy_elements(program.steps, program.step_size, program.step_count);
  for (uint32_t i = 0; i < view.buffers.size(); ++i) {
    std::string fault = fault_of(view.buffers[i], c, snapshot, constant_count);
    if (view.buffers[i].kind == PFRT_BUFFER_PART)
      fault = fault_of_part(view.buffers[i], view.buffers, c, snapshot);
    if (!fault.empty()) broken("program", "buffer " + std::to_string(i) + " " + fault);
    if (view.buffers[i].reserved)
      broken("unknown", "the reserved word of buffer " + std::to_string(i) + " is not 0");
    view.host_memory &= view.buffers[i].memory == PFRT_MEMORY_HOST;
  }
  std::vector<bool> written(c.outputs.size());
  for (uint32_t s = 0; s < view.steps.size(); ++s) {
    const pfrt_step& step = view.steps[s];
    const std::string who = "step " + std::to_string(s) + " '" + text_of(step.kernel) + "' ";
    if (!step.run) broken("program", who + "has no run function");
    if (step.flags & ~uint64_t{PFRT_STEP_LONG})
      broken("unknown", who + "has flags " + std::to_string(step.flags));
    const auto listed = [&](const uint32_t* list, uint32_t count, size_t limit, const char* what) {
      if (count && !list) broken("program", who + "counts " + what + " that it does not list");
      for (uint32_t i = 0; i < count; ++i)
        if (list[i] >= limit)
          broken("program", who + "names " + what + " " + std::to_string(list[i]) + " of " +
                                std::to_string(limit));
    };
    listed(step.reads, step.read_count, view.buffers.size(), "buffers");
    listed(step.writes, step.write_count, view.buffers.size(), "buffers");
    listed(step.nodes, step.node_count, c.nodes.size(), "nodes");
    for (uint32_t i = 0; i < step.write_count; ++i) {
      const pfrt_buffer& named = view.buffers[step.writes[i]];
      const pfrt_buffer& b = named.kind == PFRT_BUFFER_PART ? view.buffers[named.index] : named;
      if (b.kind == PFRT_BUFFER_OUT) written[b.index] = true;
      if (b.kind == PFRT_BUFFER_IN || b.kind == PFRT_BUFFER_CONST ||
          b.kind == PFRT_BUFFER_INITIALIZER)
        broken("program", who + "writes to an input or a constant");
    }
  }
  for (size_t i = 0; i < written.size(); ++i) {
    const CaseValue& output = c.values[c.outputs[i]];
    const bool empty = std::ranges::find(output.dims, 0) != output.dims.end();
    if (!written[i] && !empty) broken("program", "no step writes output '" + output.name + "'");
  }
  trial.keep("program");
  return view;
}

ProgramRun::ProgramRun(const ProgramView& program, const Case& c, const HostSnapshot& snapshot,
                       const std::vector<std::unique_ptr<Guarded>>& constants,
                       const RunOptions& options)
    : program_(program),
      case_(c),
      options_(options),
      outputs_(c.outputs.size()),
      dims_(c.outputs.size()) {
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    const pfrt_buffer& b = program.buffers[i];
    const std::string name = buffer_name(b, i, c);
    std::unique_ptr<Guarded> memory;
    void* pointer = nullptr;
    switch (b.kind) {
      case PFRT_BUFFER_IN: {
        const CaseValue& v = c.values[c.inputs[b.index]];
        const std::vector<char> bytes = to_bytes(v.dtype, v.data);
        memory = std::make_unique<Guarded>(bytes.size(), name, kBuffer, element_bytes(v.dtype),
                                           options.placed);
        if (!bytes.empty()) std::memcpy(memory->data(), bytes.data(), bytes.size());
        break;
      }
      case PFRT_BUFFER_OUT: {
        if (b.bytes == PFRT_BYTES_UNKNOWN) break;  // allocated when the step asks
        const CaseValue& v = c.values[c.outputs[b.index]];
        memory = std::make_unique<Guarded>(options.dims ? bytes_of(v) : b.bytes, name, kBuffer,
                                           element_bytes(v.dtype), options.placed);
        outputs_[b.index] = memory.get();
        dims_[b.index] = v.dims;
        break;
      }
      case PFRT_BUFFER_CONST:
        pointer = constants[b.index]->data();
        break;
      case PFRT_BUFFER_INITIALIZER:
        pointer = const_cast<void*>(snapshot.constant(b.index));
        break;
      case PFRT_BUFFER_PART:  // below
        break;
      default:
        memory = std::make_unique<Guarded>(b.bytes, name, kBuffer,
                                           std::max<uint32_t>(b.alignment, 64), options.placed);
    }
    pointers_.push_back(memory ? memory->data() : pointer);
    memory_.push_back(std::move(memory));
  }
  for (uint32_t i = 0; i < program.buffers.size(); ++i)
    if (const pfrt_buffer& b = program.buffers[i]; b.kind == PFRT_BUFFER_PART)
      pointers_[i] = static_cast<char*>(pointers_[b.index]) + b.offset;
}

// Calls |fn| with the last index first, so that nothing depends on the order.
void ProgramRun::parallel(const pfrt_step_context* context, uint64_t n,
                          void (*fn)(void*, uint64_t, uint32_t), void* arg) {
  ProgramRun& self = of(context);
  ++self.asked_;
  if (self.options_.cancelled) return;
  std::atomic<uint64_t> left{n};
  const auto work = [&](uint32_t worker) {
    for (uint64_t i = left; i > 0;)
      if (left.compare_exchange_weak(i, i - 1)) {
        fn(arg, i - 1, worker);
        i = left;
      }
  };
  std::vector<std::thread> others;
  for (uint32_t worker = 1; worker < self.options_.workers && worker < n; ++worker)
    others.emplace_back(work, worker);
  work(0);
  for (std::thread& other : others) other.join();
}

pfrt_code ProgramRun::allocate(uint32_t buffer, const int64_t* dims, uint32_t rank, void** out) {
  *out = nullptr;
  if (buffer >= program_.buffers.size()) return PFRT_CODE_INVALID_ARGUMENT;
  const pfrt_buffer& b = program_.buffers[buffer];
  if (b.kind != PFRT_BUFFER_OUT || b.bytes != PFRT_BYTES_UNKNOWN || (rank && !dims))
    return PFRT_CODE_INVALID_ARGUMENT;
  const CaseValue& v = case_.values[case_.outputs[b.index]];
  std::vector<int64_t> shape(dims, dims + rank);
  if (shape != v.dims) return PFRT_CODE_SHAPE_MISMATCH;
  memory_[buffer] = std::make_unique<Guarded>(bytes_of(v), buffer_name(b, buffer, case_), kBuffer,
                                              element_bytes(v.dtype), options_.placed);
  outputs_[b.index] = memory_[buffer].get();
  dims_[b.index] = std::move(shape);
  *out = pointers_[buffer] = memory_[buffer]->data();
  return PFRT_CODE_OK;
}

void ProgramRun::open_for(const pfrt_step& step) {
  using Access = Guarded::Access;
  std::vector<Access> access(memory_.size(), Access::kNone);
  const auto whole = [&](uint32_t b) {
    return program_.buffers[b].kind == PFRT_BUFFER_PART ? program_.buffers[b].index : b;
  };
  for (uint32_t i = 0; i < step.read_count; ++i) access[whole(step.reads[i])] = Access::kRead;
  for (uint32_t i = 0; i < step.write_count; ++i) access[whole(step.writes[i])] = Access::kWrite;
  for (size_t i = 0; i < memory_.size(); ++i)
    if (memory_[i]) memory_[i]->allow(access[i]);
}

bool ProgramRun::run_step(Trial& trial, const pfrt_step& step, const pfrt_step_context* context) {
  const std::string name = "step '" + text_of(step.kernel) + "' of " + case_.name + " ran";
  open_for(step);
  asked_ = 0;
  text_.clear();
  scratch_.clear();
  for (uint32_t w = 0; w < options_.workers; ++w)
    scratch_.push_back(std::make_unique<Guarded>(step.scratch_bytes, "its scratch", kBuffer, 64));
  const char* rule = options_.cancelled && (step.flags & PFRT_STEP_LONG) ? "long-without-stop"
                                                                         : "writes-past-buffer";
  const pfrt_code code =
      call(trial, rule, name + (options_.cancelled ? " although the run was cancelled" : ""),
           [&] { return step.run(step.state, context); });
  for (const auto& memory : memory_) {
    if (!memory) continue;
    memory->allow(Guarded::Access::kRead);
    if (!memory->margins_intact())
      trial.fail("writes-past-buffer", "bytes beside " + memory->label() + " changed when " + name);
  }
  size_t elements = 0;
  for (uint32_t v : case_.outputs) elements += case_.values[v].data.size();
  if ((step.flags & PFRT_STEP_LONG) && elements > 0)
    trial.expect(asked_ > 0, "long-without-stop",
                 "it called neither stop() nor parallel() when " + name);
  if (options_.cancelled) {
    const bool stopped = code == PFRT_CODE_CANCELLED || code == PFRT_CODE_OK;
    if (!stopped)
      trial.fail("long-without-stop",
                 name + ", was cancelled, and returned " + code_text(code) + " " + text_);
    return stopped;
  }
  if (code == PFRT_CODE_OK) return true;
  trial.fail("wrong-claim", "it accepted " + case_.name + ", and then " + name + " with " +
                                code_text(code) + " " + text_);
  return false;
}

bool ProgramRun::run(Trial& trial) {
  pfrt_step_context context{};
  context.host = this;
  context.buffers = pointers_.data();
  context.workers = options_.workers;
  context.dims = options_.dims;
  context.parallel = parallel;
  context.stop = [](const pfrt_step_context* c) -> pfrt_code {
    ++of(c).asked_;
    return of(c).options_.cancelled ? PFRT_CODE_CANCELLED : PFRT_CODE_OK;
  };
  context.scratch = [](const pfrt_step_context* c, uint32_t worker) -> void* {
    auto& scratch = of(c).scratch_;
    return worker < scratch.size() ? scratch[worker]->data() : nullptr;
  };
  context.alloc_output = [](const pfrt_step_context* c, uint32_t buffer, const int64_t* dims,
                            uint32_t rank,
                            void** out) { return of(c).allocate(buffer, dims, rank, out); };
  context.fail = [](const pfrt_step_context* c, pfrt_code code, pfrt_string message) {
    of(c).text_ = text_of(message);
    return code;
  };
  // No buffer here holds strings.
  context.set_strings = [](const pfrt_step_context*, uint32_t, uint64_t, const pfrt_string*,
                           uint64_t) -> pfrt_code { return PFRT_CODE_INVALID_ARGUMENT; };
  Sized<pfrt_step_context> sized(options_.age, context, "the step's context");
  sized.make_read_only();
  for (const pfrt_step& step : program_.steps)
    if (!run_step(trial, step, sized.get())) return false;
  trial.keep("writes-past-buffer");
  trial.keep("reads-past-buffer");
  trial.keep("writes-undeclared");
  return true;
}

std::vector<char> ProgramRun::output(uint32_t index) const {
  const Guarded* memory = outputs_[index];
  if (!memory) return {};
  return std::vector<char>(memory->data(), memory->data() + memory->size());
}

}  // namespace cli::check

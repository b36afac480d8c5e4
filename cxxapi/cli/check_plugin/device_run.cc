// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/check_plugin/device_run.h"

#include <algorithm>
#include <cstring>

namespace cli::check {
namespace {

// Rules broken by accesses to memory that the device has no business with any more.
constexpr Guards kLeftAlone = {"device-stop", "device-memory", "device-stop"};
constexpr Guards kSource = {"device-memory", "device-memory", "device-memory"};
constexpr size_t kScratch = size_t{1} << 20;

uint64_t next_number() {
  static uint64_t number = 1000;
  return ++number;
}

size_t bytes_of(const CaseValue& v) { return v.data.size() * element_bytes(v.dtype); }

}  // namespace

DeviceRun::DeviceRun(Trial& trial, Device& device, const ProgramView& program, const Case& c,
                     const HostSnapshot& snapshot,
                     const std::vector<std::unique_ptr<Guarded>>& constants,
                     const int64_t* const* dims)
    : trial_(trial),
      device_(device),
      program_(program),
      case_(c),
      snapshot_(snapshot),
      constants_(constants),
      dims_(dims),
      number_(next_number()),
      pointers_(program.buffers.size()),
      host_(program.buffers.size()),
      outputs_(c.outputs.size()) {
  for (const uint32_t v : c.inputs) {
    const std::vector<char> bytes = to_bytes(c.values[v].dtype, c.values[v].data);
    inputs_.push_back(std::make_unique<Guarded>(bytes.size(), "an input that was copied", kSource,
                                                element_bytes(c.values[v].dtype)));
    if (!bytes.empty()) std::memcpy(inputs_.back()->data(), bytes.data(), bytes.size());
  }
  for (uint32_t o = 0; o < c.outputs.size(); ++o)
    outputs_[o] = std::make_unique<Guarded>(bytes_of(c.values[c.outputs[o]]),
                                            "an output of a run that is over", kLeftAlone,
                                            element_bytes(c.values[c.outputs[o]].dtype));
}

DeviceRun::~DeviceRun() {
  if (begun_ && device_.has(PFRT_PROVIDER_RUNS))
    call(trial_, "device-runs", "a run ended",
         [&] { device_.table().run_end(device_.handle(), number_); });
  for (void* memory : memory_)
    call(trial_, "double-release", "memory of the device was released",
         [&] { device_.table().release_memory(device_.handle(), memory); });
}

void* DeviceRun::allocate(uint64_t bytes) {
  HostSink sink(device_.age());
  void* memory = nullptr;
  const pfrt_code code = call(trial_, "device-memory", "memory of the device was allocated", [&] {
    return device_.table().allocate(device_.handle(), number_, bytes ? bytes : 1, 64, sink.get(),
                                    &memory);
  });
  if (!trial_.expect(code == PFRT_CODE_OK && memory, "device-memory",
                     "allocating " + std::to_string(bytes) + " bytes gave " + sink.reason(code) +
                         (memory ? "" : " and no address")))
    return nullptr;
  trial_.expect(reinterpret_cast<uintptr_t>(memory) % 64 == 0, "device-memory",
                "memory that should be aligned to 64 bytes is not");
  memory_.push_back(memory);
  return memory;
}

// Gives buffer |index| its memory, unless a step allocates it or it is part of another.
bool DeviceRun::place(uint32_t index) {
  const pfrt_buffer& b = program_.buffers[index];
  if (b.kind == PFRT_BUFFER_PART || b.bytes == PFRT_BYTES_UNKNOWN) return true;
  size_t bytes = b.bytes;
  const void* const source = source_of(b, &bytes);
  if (b.memory == PFRT_MEMORY_DEVICE) {
    pointers_[index] = allocate(std::max<uint64_t>(bytes, b.bytes));
    return pointers_[index] != nullptr;
  }
  host_[index] = std::make_unique<Guarded>(bytes, "a buffer", kBuffer, 64);
  if (source && bytes) std::memcpy(host_[index]->data(), source, bytes);
  pointers_[index] = host_[index]->data();
  return true;
}

const void* DeviceRun::source_of(const pfrt_buffer& b, size_t* bytes) const {
  switch (b.kind) {
    case PFRT_BUFFER_IN:
      *bytes = inputs_[b.index]->size();
      return inputs_[b.index]->data();
    case PFRT_BUFFER_CONST:
      *bytes = constants_[b.index]->size();
      return constants_[b.index]->data();
    case PFRT_BUFFER_INITIALIZER:
      *bytes = snapshot_.constant_bytes(b.index);
      return snapshot_.constant(b.index);
    default:
      return nullptr;
  }
}

bool DeviceRun::copy(const std::vector<pfrt_device_copy>& copies, const char* what) {
  if (copies.empty()) return true;
  HostSink sink(device_.age());
  const pfrt_code code = call(trial_, "device-memory", std::string(what) + " were copied", [&] {
    return device_.table().copy(device_.handle(), number_, copies.data(), sizeof copies[0],
                                copies.size(), sink.get());
  });
  return trial_.expect(code == PFRT_CODE_OK, "device-memory",
                       std::string("copying ") + what + " failed with " + sink.reason(code));
}

// Copies inputs to the device. The sources may change once copy has returned: they are changed, and
// protected.
bool DeviceRun::copy_in() {
  std::vector<pfrt_device_copy> copies;
  for (uint32_t i = 0; i < program_.buffers.size(); ++i) {
    const pfrt_buffer& b = program_.buffers[i];
    size_t bytes = 0;
    const void* const source = b.memory == PFRT_MEMORY_DEVICE ? source_of(b, &bytes) : nullptr;
    if (source && bytes) copies.push_back({pointers_[i], source, bytes, PFRT_TO_DEVICE, 0});
  }
  if (!copy(copies, "inputs and constants")) return false;
  for (const auto& input : inputs_) {
    std::memset(input->data(), 0xee, input->size());
    input->allow(Guarded::Access::kNone);
  }
  return true;
}

pfrt_code DeviceRun::late_output(uint32_t buffer, const int64_t* dims, uint32_t rank, void** out) {
  *out = nullptr;
  if (buffer >= program_.buffers.size()) return PFRT_CODE_INVALID_ARGUMENT;
  const pfrt_buffer& b = program_.buffers[buffer];
  if (b.kind != PFRT_BUFFER_OUT || b.bytes != PFRT_BYTES_UNKNOWN) return PFRT_CODE_INVALID_ARGUMENT;
  const CaseValue& v = case_.values[case_.outputs[b.index]];
  if (std::vector<int64_t>(dims, dims + rank) != v.dims) return PFRT_CODE_SHAPE_MISMATCH;
  *out = pointers_[buffer] = allocate(bytes_of(v));
  return *out ? PFRT_CODE_OK : PFRT_CODE_OUT_OF_MEMORY;
}

bool DeviceRun::run_steps() {
  pfrt_step_context context{};
  context.host = this;
  context.buffers = pointers_.data();
  context.run = number_;
  context.dims = dims_;
  context.workers = 1;
  context.parallel = [](const pfrt_step_context*, uint64_t n, void (*fn)(void*, uint64_t, uint32_t),
                        void* arg) {
    for (uint64_t i = n; i > 0; --i) fn(arg, i - 1, 0);
  };
  context.stop = [](const pfrt_step_context*) -> pfrt_code { return PFRT_CODE_OK; };
  context.alloc_output = [](const pfrt_step_context* c, uint32_t buffer, const int64_t* dims,
                            uint32_t rank,
                            void** out) { return of(c).late_output(buffer, dims, rank, out); };
  context.fail = [](const pfrt_step_context* c, pfrt_code code, pfrt_string message) {
    of(c).text_ = text_of(message);
    return code;
  };
  context.set_strings = [](const pfrt_step_context*, uint32_t, uint64_t, const pfrt_string*,
                           uint64_t) -> pfrt_code { return PFRT_CODE_INVALID_ARGUMENT; };
  context.scratch = [](const pfrt_step_context*, uint32_t) -> void* {
    alignas(64) static thread_local char memory[kScratch];
    return memory;
  };
  Sized<pfrt_step_context> sized(device_.age(), context, "the step's context");
  sized.make_read_only();
  for (const pfrt_step& step : program_.steps) {
    if (step.scratch_bytes > kScratch) {
      trial_.skip("a step with more than 1 MiB of scratch was not run on the device");
      return false;
    }
    const pfrt_code code =
        call(trial_, "wrong-claim", "step '" + text_of(step.kernel) + "' of " + case_.name + " ran",
             [&] { return step.run(step.state, sized.get()); });
    if (!trial_.expect(code == PFRT_CODE_OK, "wrong-claim",
                       "it accepted " + case_.name + ", and a step failed with " + code_text(code) +
                           " " + text_))
      return false;
  }
  return true;
}

bool DeviceRun::copy_out() {
  std::vector<pfrt_device_copy> copies;
  for (uint32_t i = 0; i < program_.buffers.size(); ++i) {
    const pfrt_buffer& b = program_.buffers[i];
    if (b.kind != PFRT_BUFFER_OUT || outputs_[b.index]->size() == 0) continue;
    if (b.memory == PFRT_MEMORY_DEVICE) {
      copies.push_back(
          {outputs_[b.index]->data(), pointers_[i], outputs_[b.index]->size(), PFRT_TO_HOST, 0});
    } else {
      std::memcpy(outputs_[b.index]->data(), host_[i]->data(), outputs_[b.index]->size());
    }
  }
  return copy(copies, "outputs");
}

bool DeviceRun::queue() {
  HostSink sink(device_.age());
  if (device_.has(PFRT_PROVIDER_RUNS)) {
    const pfrt_code code = call(trial_, "device-runs", "a run began", [&] {
      return device_.table().run_begin(device_.handle(), number_, sink.get());
    });
    if (!trial_.expect(code == PFRT_CODE_OK, "device-runs",
                       "run_begin failed with " + sink.reason(code)))
      return false;
  }
  begun_ = true;
  for (uint32_t i = 0; i < program_.buffers.size(); ++i)
    if (!place(i)) return false;
  for (uint32_t i = 0; i < program_.buffers.size(); ++i)
    if (const pfrt_buffer& b = program_.buffers[i]; b.kind == PFRT_BUFFER_PART)
      pointers_[i] = static_cast<char*>(pointers_[b.index]) + b.offset;
  return copy_in() && run_steps() && copy_out();
}

pfrt_code DeviceRun::finish(bool stop) {
  if (!device_.has(PFRT_PROVIDER_FENCES)) return PFRT_CODE_OK;
  HostSink sink(device_.age(), stop ? PFRT_CODE_CANCELLED : PFRT_CODE_OK);
  pfrt_fence* fence = nullptr;
  const pfrt_provider_table& table = device_.table();
  pfrt_code code = call(trial_, "device-runs", "a fence was set", [&] {
    return table.signal(device_.handle(), number_, sink.get(), &fence);
  });
  if (!trial_.expect(code == PFRT_CODE_OK && fence, "device-runs",
                     "signal gave " + sink.reason(code) + (fence ? "" : " and no fence")))
    return PFRT_CODE_PROVIDER;
  code = call(trial_, stop ? "device-stop" : "device-runs", "a fence was waited for",
              [&] { return table.wait(device_.handle(), fence, sink.get()); });
  call(trial_, "double-release", "a fence was released",
       [&] { table.release_fence(device_.handle(), fence); });
  if (!stop)
    trial_.expect(code == PFRT_CODE_OK, "device-runs",
                  "waiting for " + case_.name + " gave " + sink.reason(code));
  return code;
}

std::vector<char> DeviceRun::output(uint32_t index) const {
  return {outputs_[index]->data(), outputs_[index]->data() + outputs_[index]->size()};
}

void DeviceRun::lock_outputs() {
  for (const auto& output : outputs_) output->allow(Guarded::Access::kRead);
}

}  // namespace cli::check

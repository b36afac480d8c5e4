// SPDX-License-Identifier: Apache-2.0
//
// A device that does queued work when somebody waits. It is right unless the file that includes
// this spoils something: #define SPOIL .late_copy = true
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "test/plugins/chip/loops.h"
#include "test/plugins/compile_each.h"
#include "test/plugins/elementwise.h"

struct pfrt_fence {
  uint64_t run;
};

namespace queue_device {
namespace {

struct Spoils {
  bool late_copy = false;  // reads the source of a copy when the device comes to it
  bool goes_on = false;    // does the queued work of a given-up run all the same
  bool one_run = false;    // forgets the work of all other runs when one is waited for
};
constexpr Spoils kSpoil = {SPOIL};

struct Job {
  uint64_t run;
  std::function<void()> work;
};
struct Device {
  std::deque<Job> jobs;
};
struct Program {
  std::shared_ptr<const loops::Region> region;
  std::vector<pfrt_buffer> buffers;
  std::deque<struct Step> states;
  std::vector<pfrt_step> steps;
};
struct Executable {
  Device* device;
  std::shared_ptr<const loops::Region> region;
};
struct Step {
  Device* device;
  const loops::Node* node;
  std::vector<uint32_t> reads;
  uint32_t write;
  std::vector<loops::Tensor> tensors;
};

Device& of(pfrt_provider* p) { return *reinterpret_cast<Device*>(p); }
Executable& of(pfrt_executable* e) { return *reinterpret_cast<Executable*>(e); }

pfrt_code open(pfrt_string word, const pfrt_key_value*, size_t count, const pfrt_sink* sink,
               pfrt_provider** out) {
  *out = nullptr;
  if (count || loops::text_of(word) != "queue")
    return loops::fail(sink, PFRT_CODE_INVALID_ARGUMENT, "it is 'queue', without options");
  *out = reinterpret_cast<pfrt_provider*>(new Device);
  return PFRT_CODE_OK;
}
void close(pfrt_provider* p) { delete &of(p); }
pfrt_code claim(pfrt_provider*, const pfrt_snapshot* snapshot, const pfrt_claims* claims,
                const pfrt_sink*) {
  loops::claim(*snapshot, claims);
  return PFRT_CODE_OK;
}
pfrt_code compile_one(pfrt_provider* p, const pfrt_region* region, const pfrt_sink*,
                      pfrt_executable** out) {
  *out = reinterpret_cast<pfrt_executable*>(
      new Executable{&of(p), std::make_shared<const loops::Region>(*region)});
  return PFRT_CODE_OK;
}
void release_executable(pfrt_executable* e) { delete &of(e); }

pfrt_code run(void* state, const pfrt_step_context* context) {
  const Step& step = *static_cast<const Step*>(state);
  std::vector<loops::Tensor> in = step.tensors;
  for (size_t i = 0; i < in.size(); ++i)
    in[i].data =
        static_cast<char*>(context->buffers[i < step.reads.size() ? step.reads[i] : step.write]);
  const loops::Tensor out = in.back();
  in.pop_back();
  step.device->jobs.push_back({context->run, [node = *step.node, in, out] {
                                 if (out.count()) loops::table().at(node.op)(node, in, out);
                               }});
  return PFRT_CODE_OK;
}

pfrt_code specialise(pfrt_executable* e, const pfrt_shapes* shapes, const pfrt_sink* sink,
                     pfrt_program* out) {
  auto program = std::make_unique<Program>();
  program->region = of(e).region;
  for (const loops::Node& node : program->region->nodes)
    if (shapes->ranks[node.output] < 0)
      return loops::fail(sink, PFRT_CODE_UNSUPPORTED, "it needs dimensions");
  std::map<uint32_t, uint32_t> home;
  program->buffers = loops::buffers_of(*program->region, *shapes, PFRT_MEMORY_DEVICE, home);
  for (const loops::Node& node : program->region->nodes) {
    Step& step = program->states.emplace_back(Step{of(e).device, &node, {}, home[node.output], {}});
    for (const uint32_t v : node.inputs) {
      step.reads.push_back(home[v == PFRT_NO_INDEX ? node.output : v]);
      step.tensors.push_back(program->region->tensor(*shapes, v));
    }
    step.tensors.push_back(program->region->tensor(*shapes, node.output));
    program->steps.push_back(loops::row_of(step, run));
  }
  loops::describe(program.release(), out);
  return PFRT_CODE_OK;
}
void release_program(pfrt_executable*, pfrt_program* program) {
  delete static_cast<Program*>(program->handle);
}

pfrt_code allocate(pfrt_provider*, uint64_t, uint64_t bytes, uint32_t alignment, const pfrt_sink*,
                   void** out) {
  *out = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  return *out ? PFRT_CODE_OK : PFRT_CODE_OUT_OF_MEMORY;
}
void release_memory(pfrt_provider* p, void* memory) {
  of(p).jobs.push_back({0, [memory] { free(memory); }});
}

pfrt_code copy(pfrt_provider* p, uint64_t number, const pfrt_device_copy* copies, size_t size,
               size_t count, const pfrt_sink*) {
  for (size_t i = 0; i < count; ++i) {
    const auto c = *static_cast<const pfrt_device_copy*>(pfrt_at(copies, size, i));
    const auto* const from = static_cast<const char*>(c.src);
    if (c.direction == PFRT_TO_DEVICE && !kSpoil.late_copy) {
      of(p).jobs.push_back({number, [c, taken = std::vector<char>(from, from + c.bytes)] {
                              std::memcpy(c.dst, taken.data(), c.bytes);
                            }});
    } else {
      of(p).jobs.push_back({number, [c] { std::memmove(c.dst, c.src, c.bytes); }});
    }
  }
  return PFRT_CODE_OK;
}

pfrt_code signal(pfrt_provider*, uint64_t number, const pfrt_sink*, pfrt_fence** out) {
  *out = new pfrt_fence{number};
  return PFRT_CODE_OK;
}
pfrt_code wait(pfrt_provider* p, pfrt_fence* fence, const pfrt_sink* sink) {
  std::deque<Job>& jobs = of(p).jobs;
  const pfrt_code stop = sink->stop(sink);
  if (stop != PFRT_CODE_OK) {
    for (Job& job : jobs)
      if (job.run == fence->run && !kSpoil.goes_on) job.work = [] {};
    return stop;
  }
  for (; !jobs.empty(); jobs.pop_front())
    if (!kSpoil.one_run || jobs.front().run == fence->run || jobs.front().run == 0)
      jobs.front().work();
  return PFRT_CODE_OK;
}
void release_fence(pfrt_provider*, pfrt_fence* fence) { delete fence; }
pfrt_code run_begin(pfrt_provider*, uint64_t, const pfrt_sink*) { return PFRT_CODE_OK; }
void run_end(pfrt_provider*, uint64_t) {}

constexpr pfrt_provider_table kTable = [] {
  pfrt_provider_table table{};
  table.struct_size = sizeof table;
  table.abi = PFRT_ABI_VERSION;
  table.devices = {"queue", 5};
  table.open = open;
  table.close = close;
  table.claim = claim;
  table.compile = pfrt_test::compile_each<compile_one, release_executable>;
  table.release_executable = release_executable;
  table.specialise = specialise;
  table.release_program = release_program;
  table.allocate = allocate;
  table.release_memory = release_memory;
  table.copy = copy;
  table.signal = signal;
  table.wait = wait;
  table.release_fence = release_fence;
  table.run_begin = run_begin;
  table.run_end = run_end;
  return table;
}();

}  // namespace
}  // namespace queue_device

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out) {
  return elementwise::describe(host, out, "QueueExecutionProvider",
                               PFRT_PROVIDER_MEMORY | PFRT_PROVIDER_FENCES | PFRT_PROVIDER_RUNS,
                               &queue_device::kTable);
}

// SPDX-License-Identifier: Apache-2.0
//
// A device with everything that a provider may have: a thread that works through a queue, memory at
// addresses that nobody else can touch, processors that are divided among all regions of a session,
// dimensions that vary, counters, questions, a fingerprint, exported executables, and a signature
// that it refuses (a first dimension of 13). Its computations are in loops.h.
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "test/plugins/chip/loops.h"
#include "test/plugins/elementwise.h"

struct pfrt_fence {
  uint64_t run, reached_at;  // jobs done
};

namespace chip {
namespace {

using elementwise::text;
using loops::fail, loops::region_at;

constexpr uint64_t kBytes = uint64_t{4} << 30;  // address space
constexpr uint32_t kRows = 64;                  // rows of processors

struct Chip {
  struct Job {
    uint64_t run;
    std::function<void()> work;
  };
  explicit Chip(const std::string& kind) : name("a chip of kind " + kind) {
    void* pages =
        mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages != MAP_FAILED) addresses = static_cast<char*>(pages);
    worker = std::thread([this] { work(); });
  }
  ~Chip() {
    enqueue(0, [this] { closing = true; });
    worker.join();
    if (addresses) munmap(addresses, kBytes);
  }
  // Returns the host's memory for an address of the device.
  char* at(const void* address) {
    const std::lock_guard lock(mutex);
    const auto* const byte = static_cast<const char*>(address);
    if (!byte) return nullptr;
    const auto block = std::prev(blocks.upper_bound(byte));
    return block->second.data() + (byte - block->first);
  }
  void enqueue(uint64_t run, std::function<void()> job) {
    const std::lock_guard lock(mutex);
    jobs.push_back({run, std::move(job)});
    ++queued;
    changed.notify_all();
  }
  void work() {
    std::unique_lock lock(mutex);
    while (!closing) {
      changed.wait(lock, [&] { return !jobs.empty(); });
      Job job = std::move(jobs.front());
      jobs.pop_front();
      at_work_for = job.run;
      const bool wanted = !faults.count(job.run);
      lock.unlock();
      std::string fault;
      try {
        if (wanted) job.work();
      } catch (const std::exception& e) {
        fault = e.what();
      }
      job.work = nullptr;
      lock.lock();
      if (!fault.empty()) faults[job.run] = fault;
      at_work_for = 0;
      ++done;
      changed.notify_all();
    }
  }

  const std::string name;
  std::atomic<uint64_t> copied[4] = {};  // bytes, by pfrt_direction
  std::mutex mutex;                      // guards the members below
  std::condition_variable changed;
  char* addresses = nullptr;
  uint64_t used = 0;                                // addresses used so far; none is used again
  std::map<const char*, std::vector<char>> blocks;  // by address
  std::deque<Job> jobs;
  uint64_t queued = 0, done = 0, at_work_for = 0;
  std::map<uint64_t, std::string> faults;  // by run
  bool closing = false;                    // only the worker uses it
  std::thread worker;
};

// The place of a region on the chip.
struct Place {
  uint32_t first_row, rows;
};

struct Executable {
  Chip* chip;
  Place place;
  loops::Region region;
};

struct Step {
  Chip* chip;
  const loops::Node* node;
  std::vector<uint32_t> reads, values;  // buffers; values of the inputs and the output
  uint32_t write = 0;
  std::vector<loops::Tensor> tensors;  // by |values|, without data
  std::atomic<int64_t> elements{-1};   // elements of the last run
};

struct Program {
  std::shared_ptr<const Executable> executable;
  std::vector<pfrt_buffer> buffers;
  std::deque<Step> states;
  std::vector<pfrt_step> steps;
};

Chip& of(pfrt_provider* p) { return *reinterpret_cast<Chip*>(p); }
auto& of(pfrt_executable* e) { return *reinterpret_cast<std::shared_ptr<const Executable>*>(e); }

pfrt_code open(pfrt_string device, const pfrt_key_value*, size_t count, const pfrt_sink* sink,
               pfrt_provider** out) {
  *out = nullptr;
  const std::string word = loops::text_of(device);
  if (count || (word != "chip" && word != "chip2"))
    return fail(sink, PFRT_CODE_INVALID_ARGUMENT, "it is 'chip' or 'chip2', without options");
  auto made = std::make_unique<Chip>(word);
  if (!made->addresses) return fail(sink, PFRT_CODE_OUT_OF_MEMORY, "no addresses left");
  *out = reinterpret_cast<pfrt_provider*>(made.release());
  return PFRT_CODE_OK;
}
void close(pfrt_provider* p) { delete &of(p); }

pfrt_code claim(pfrt_provider*, const pfrt_snapshot* snapshot, const pfrt_claims* claims,
                const pfrt_sink*) {
  loops::claim(*snapshot, claims);
  return PFRT_CODE_OK;
}

pfrt_executable* make(pfrt_provider* p, const pfrt_region& region, const Place& place) {
  auto made = std::make_shared<const Executable>(Executable{&of(p), place, loops::Region(region)});
  return reinterpret_cast<pfrt_executable*>(new std::shared_ptr(std::move(made)));
}

// Divides the rows by the number of nodes in each region.
pfrt_code compile(pfrt_provider* p, const pfrt_region* regions, size_t region_size, size_t count,
                  const pfrt_sink* sink, pfrt_executable** out, size_t* out_region) {
  uint64_t nodes = 0;
  for (size_t i = 0; i < count; ++i) nodes += region_at(regions, region_size, i).node_count;
  if (count > kRows) {
    *out_region = kRows;
    return fail(sink, PFRT_CODE_PROVIDER, "it has 64 rows, a region needs one");
  }
  uint32_t first = 0;
  for (size_t i = 0; i < count; ++i) {
    const pfrt_region& region = region_at(regions, region_size, i);
    const auto spare = static_cast<uint64_t>(kRows - count);
    const auto rows = static_cast<uint32_t>(1 + spare * region.node_count / nodes);
    out[i] = make(p, region, {first, rows});
    first += rows;
  }
  return PFRT_CODE_OK;
}
void release_executable(pfrt_executable* e) { delete &of(e); }

pfrt_code run(void* state, const pfrt_step_context* context) {
  Step& step = *static_cast<Step*>(state);
  Chip& chip = *step.chip;
  std::vector<loops::Tensor> tensors = step.tensors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint32_t v = step.values[i];
    if (v == PFRT_NO_INDEX) continue;
    tensors[i].data = chip.at(context->buffers[i < step.reads.size() ? step.reads[i] : step.write]);
    if (context->dims && context->dims[v])
      tensors[i].dims.assign(context->dims[v], context->dims[v] + tensors[i].rank());
  }
  const loops::Tensor out = tensors.back();
  tensors.pop_back();
  step.elements = out.count();
  chip.enqueue(context->run, [node = *step.node, in = std::move(tensors), out] {
    if (out.count()) loops::table().at(node.op)(node, in, out);
  });
  return PFRT_CODE_OK;
}

pfrt_code specialise(pfrt_executable* e, const pfrt_shapes* shapes, const pfrt_sink* sink,
                     pfrt_program* out) {
  auto program = std::make_unique<Program>();
  program->executable = of(e);
  const loops::Region& region = program->executable->region;
  for (const loops::Node& node : region.nodes)
    if (shapes->ranks[node.output] < 0)
      return sink->fail(sink, PFRT_CODE_UNSUPPORTED, node.index, text("it needs dimensions"));
  for (const uint32_t v : region.inputs) {
    if (shapes->ranks[v] <= 0) continue;
    const int64_t most = shapes->dims[v][0];
    const int64_t least = shapes->least && shapes->least[v] ? shapes->least[v][0] : most;
    if (least <= 13 && 13 <= most)
      return fail(sink, PFRT_CODE_UNSUPPORTED, "nothing here is 13 long");
  }
  std::map<uint32_t, uint32_t> home;
  program->buffers = loops::buffers_of(region, *shapes, PFRT_MEMORY_DEVICE, home);
  for (const loops::Node& node : region.nodes) {
    Step& step = program->states.emplace_back();
    step.chip = program->executable->chip;
    step.node = &node;
    step.values = node.inputs;
    step.values.push_back(node.output);
    for (const uint32_t v : step.values) step.tensors.push_back(region.tensor(*shapes, v));
    for (const uint32_t v : node.inputs)
      step.reads.push_back(v == PFRT_NO_INDEX ? home[node.output] : home[v]);
    step.write = home[node.output];
    program->steps.push_back(loops::row_of(step, run));
  }
  loops::describe(program.release(), out);
  return PFRT_CODE_OK;
}
void release_program(pfrt_executable*, pfrt_program* program) {
  delete static_cast<Program*>(program->handle);
}

pfrt_code allocate(pfrt_provider* p, uint64_t, uint64_t bytes, uint32_t alignment,
                   const pfrt_sink* sink, void** out) {
  Chip& chip = of(p);
  const std::lock_guard lock(chip.mutex);
  *out = nullptr;
  if (bytes + alignment > kBytes - chip.used)
    return fail(sink, PFRT_CODE_OUT_OF_MEMORY, "it is full");
  chip.used = (chip.used + alignment - 1) / alignment * alignment;
  char* const at = chip.addresses + std::exchange(chip.used, chip.used + bytes);
  chip.blocks[at].resize(bytes);
  *out = at;
  return PFRT_CODE_OK;
}
void release_memory(pfrt_provider* p, void* memory) {
  of(p).enqueue(0, [&chip = of(p), memory] {
    const std::lock_guard lock(chip.mutex);
    chip.blocks.erase(static_cast<const char*>(memory));
  });
}

pfrt_code copy(pfrt_provider* p, uint64_t run, const pfrt_device_copy* copies, size_t copy_size,
               size_t count, const pfrt_sink*) {
  Chip& chip = of(p);
  for (size_t i = 0; i < count; ++i) {
    const auto& c = *static_cast<const pfrt_device_copy*>(pfrt_at(copies, copy_size, i));
    chip.copied[c.direction] += c.bytes;
    const auto* const from = static_cast<const char*>(c.src);
    if (c.direction == PFRT_TO_DEVICE) {
      chip.enqueue(run, [&chip, c, taken = std::vector<char>(from, from + c.bytes)] {
        std::memcpy(chip.at(c.dst), taken.data(), c.bytes);
      });
    } else {
      const bool here = c.direction == PFRT_ON_DEVICE;
      chip.enqueue(run, [&chip, c, here] {
        std::memmove(here ? chip.at(c.dst) : c.dst, chip.at(c.src), c.bytes);
      });
    }
  }
  return PFRT_CODE_OK;
}

pfrt_code signal(pfrt_provider* p, uint64_t run, const pfrt_sink*, pfrt_fence** out) {
  const std::lock_guard lock(of(p).mutex);
  *out = new pfrt_fence{run, of(p).queued};
  return PFRT_CODE_OK;
}
// When the sink says stop, the rest of the run's work is dropped.
pfrt_code wait(pfrt_provider* p, pfrt_fence* fence, const pfrt_sink* sink) {
  Chip& chip = of(p);
  std::unique_lock lock(chip.mutex);
  while (chip.done < fence->reached_at) {
    chip.changed.wait_for(lock, std::chrono::milliseconds(1));
    lock.unlock();
    const pfrt_code code = sink->stop(sink);
    lock.lock();
    if (code == PFRT_CODE_OK) continue;
    for (Chip::Job& job : chip.jobs)
      if (job.run == fence->run) job.work = [] {};
    chip.changed.wait(lock, [&] { return chip.at_work_for != fence->run; });
    return code;
  }
  const auto fault = chip.faults.find(fence->run);
  if (fault != chip.faults.end()) return fail(sink, PFRT_CODE_INPUT, fault->second);
  return PFRT_CODE_OK;
}
void release_fence(pfrt_provider*, pfrt_fence* fence) { delete fence; }
pfrt_code run_begin(pfrt_provider*, uint64_t, const pfrt_sink*) { return PFRT_CODE_OK; }
void run_end(pfrt_provider* p, uint64_t run) {
  const std::lock_guard lock(of(p).mutex);
  of(p).faults.erase(run);
}

pfrt_code report(pfrt_executable* e, const pfrt_program* program, const pfrt_counters* counters,
                 const pfrt_sink*) {
  const Place& place = of(e)->place;
  const auto& steps = static_cast<Program*>(program->handle)->states;
  if (steps.empty() || steps.front().elements < 0) return PFRT_CODE_OK;
  counters->add(counters, text("first row"), place.first_row, text(""), PFRT_NO_INDEX);
  counters->add(counters, text("rows"), place.rows, text(""), PFRT_NO_INDEX);
  for (uint32_t i = 0; i < steps.size(); ++i)
    counters->add(counters, text("cycles"), std::ceil(double(steps[i].elements) / place.rows),
                  text("cycles"), i);
  return PFRT_CODE_OK;
}

pfrt_code fingerprint(pfrt_provider* p, const pfrt_sink*, pfrt_string* out) {
  *out = text(of(p).name);
  return PFRT_CODE_OK;
}

pfrt_code ask(pfrt_provider* p, const pfrt_question* question, const pfrt_answer* answer,
              const pfrt_sink* sink) {
  const std::string verb(loops::text_of(question->verb));
  if (verb == "memory") {
    Chip& chip = of(p);
    const std::lock_guard lock(chip.mutex);
    size_t held = 0;
    for (const auto& [at, block] : chip.blocks) held += block.size();
    answer->text(answer, text(std::to_string(chip.blocks.size()) + " blocks, " +
                              std::to_string(held) + " bytes"));
    return PFRT_CODE_OK;
  }
  if (verb != "traffic")
    return fail(sink, PFRT_CODE_UNSUPPORTED, "it knows two verbs, 'memory' and 'traffic'");
  const auto bytes = [&](pfrt_direction d) { return std::to_string(of(p).copied[d].load()); };
  answer->text(answer, text("to_device " + bytes(PFRT_TO_DEVICE) + " to_host " +
                            bytes(PFRT_TO_HOST) + " on_device " + bytes(PFRT_ON_DEVICE)));
  return PFRT_CODE_OK;
}

constexpr pfrt_provider_table kTable = [] {
  pfrt_provider_table table{};
  table.struct_size = sizeof table;
  table.abi = PFRT_ABI_VERSION;
  table.devices = {"chip,chip2", 10};
  table.open = open;
  table.close = close;
  table.claim = claim;
  table.compile = compile;
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
  table.report = report;
  table.fingerprint = fingerprint;
  table.ask = ask;
  return table;
}();

}  // namespace
}  // namespace chip

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out) {
  return elementwise::describe(host, out, "ChipExecutionProvider",
                               PFRT_PROVIDER_MEMORY | PFRT_PROVIDER_FENCES | PFRT_PROVIDER_RUNS |
                                   PFRT_PROVIDER_RANGES | PFRT_PROVIDER_OWN_THREADS |
                                   PFRT_PROVIDER_NO_FOLD | PFRT_PROVIDER_REPORT |
                                   PFRT_PROVIDER_FINGERPRINT | PFRT_PROVIDER_ASK,
                               &chip::kTable);
}

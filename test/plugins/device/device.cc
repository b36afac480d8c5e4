// SPDX-License-Identifier: Apache-2.0
//
// A device with memory of its own, in pages that only its own calls open, for their duration: a
// host that reads or writes there crashes. It computes Add, Mul and Neg, and refuses Abs. It is
// compiled twice. Plain, all work is done when a call returns; with PFRT_FENCED, steps and copies
// are queued and done when the host waits, and not before.
#include "test/plugins/device/device.h"

#include <sys/mman.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <thread>

#include "test/plugins/compile_each.h"
#include "test/plugins/elementwise.h"

#ifdef PFRT_FENCED
constexpr bool kFenced = true;
#else
constexpr bool kFenced = false;
#endif

struct pfrt_fence {
  uint64_t run;
  uint64_t reached_at;  // jobs done
};

namespace fake_device {
namespace {

using elementwise::text;

constexpr size_t kBytes = size_t{16} << 20;

class Device {
 public:
  explicit Device(Counters* lent) : counters(lent ? lent : &own_) {
    void* pages =
        mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages != MAP_FAILED) pages_ = static_cast<char*>(pages);
  }
  ~Device() {
    if (pages_) munmap(pages_, kBytes);
  }
  bool good() const { return pages_ != nullptr; }

  // Allocates by first fit; null = no room.
  void* allocate(uint64_t bytes) {
    std::lock_guard lock(mutex_);
    bytes = (bytes + 63) / 64 * 64;
    uint64_t at = 0;
    for (const auto& [offset, size] : taken_) {
      if (offset - at >= bytes) break;
      at = offset + size;
    }
    if (at + bytes > kBytes) return nullptr;
    taken_[at] = bytes;
    ++counters->allocations;
    return pages_ + at;
  }
  void release(void* memory) {
    --counters->allocations;
    enqueue(0, [this, memory] {
      taken_.erase(static_cast<uint64_t>(static_cast<char*>(memory) - pages_));
    });
  }
  // Runs |job| now or, with PFRT_FENCED, when the host waits.
  void enqueue(uint64_t run, std::function<void()> job, bool to_host = false) {
    std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(job), run, to_host});
    ++queued_;
    if (!kFenced) work(queued_);
  }
  uint64_t queued() {
    std::lock_guard lock(mutex_);
    return queued_;
  }
  void wait(uint64_t until) {
    std::lock_guard lock(mutex_);
    work(until);
  }
  void drop_copies_to_host(uint64_t run) {
    std::lock_guard lock(mutex_);
    for (Job& job : jobs_)
      if (job.to_host && job.run == run) job.work = [] {};
  }
  // Marks the run as failed; called by jobs.
  void fail_run(uint64_t run) { failed_.insert(run); }
  bool has_failed(uint64_t run) {
    std::lock_guard lock(mutex_);
    return failed_.count(run) != 0;
  }
  void begin_run(uint64_t run) {
    std::lock_guard lock(mutex_);
    if (!runs_.insert(run).second) std::abort();  // numbers are never used again
    ++counters->runs;
  }
  void end_run(uint64_t run) {
    std::lock_guard lock(mutex_);
    if (runs_.erase(run) != 1) std::abort();
    failed_.erase(run);
    --counters->runs;
  }
  // Ends the process when no run with this number has begun.
  void expect(uint64_t run) {
    std::lock_guard lock(mutex_);
    if (!runs_.count(run)) std::abort();
  }
  bool fails(Failure kind) {
    int expected = kind;
    return counters->failure.compare_exchange_strong(expected, kNone);
  }

  Counters* counters;
  bool late = false;    // steps allocate the outputs
  bool packed = false;  // constants are packed (as they are) instead of read in place

 private:
  void work(uint64_t until) {
    mprotect(pages_, kBytes, PROT_READ | PROT_WRITE);
    for (; done_ < until; ++done_) {
      jobs_.front().work();
      jobs_.pop_front();
    }
    mprotect(pages_, kBytes, PROT_NONE);
  }

  struct Job {
    std::function<void()> work;
    uint64_t run;
    bool to_host;
  };
  Counters own_;
  std::mutex mutex_;
  char* pages_ = nullptr;
  std::map<uint64_t, uint64_t> taken_;
  std::deque<Job> jobs_;
  uint64_t queued_ = 0, done_ = 0;
  std::set<uint64_t> runs_, failed_;
};

struct Executable {
  Device* device;
  elementwise::Region region;
  std::deque<uint32_t> sources;  // packed constants point into it
  std::deque<uint64_t> sizes;
  std::vector<pfrt_packed_constant> packed;
};

Device& of(pfrt_provider* p) { return *reinterpret_cast<Device*>(p); }
Executable& of(pfrt_executable* e) { return *reinterpret_cast<Executable*>(e); }

pfrt_code open(pfrt_string, const pfrt_key_value* options, size_t count, const pfrt_sink* sink,
               pfrt_provider** out) {
  *out = nullptr;
  Counters* counters = nullptr;
  bool late = false, packed = false;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view value(options[i].value.data, options[i].value.size);
    intptr_t address = 0;
    std::from_chars(value.data(), value.data() + value.size(), address);
    if (address) counters = reinterpret_cast<Counters*>(address);
    const std::string_view key(options[i].key.data, options[i].key.size);
    late |= key == "late" && value == "true";
    packed |= key == "packed" && value == "true";
  }
  auto device = std::make_unique<Device>(counters);
  if (!device->good())
    return sink->fail(sink, PFRT_CODE_OUT_OF_MEMORY, PFRT_NO_INDEX, text("no pages"));
  device->late = late;
  device->packed = packed;
  ++device->counters->opens;
  *out = reinterpret_cast<pfrt_provider*>(device.release());
  return PFRT_CODE_OK;
}

void close(pfrt_provider* p) {
  of(p).wait(of(p).queued());
  ++of(p).counters->closes;
  delete &of(p);
}

pfrt_code claim(pfrt_provider*, const pfrt_snapshot* snapshot, const pfrt_claims* claims,
                const pfrt_sink*) {
  for (uint32_t n = 0; n < snapshot->node_count; ++n) {
    const elementwise::Op* op = elementwise::find(*snapshot, n);
    if (op && op->name != "Abs") {
      claims->accept(claims, n, 0, 0);
    } else {
      claims->refuse(claims, n, text("this device adds, multiplies and negates"));
    }
  }
  return PFRT_CODE_OK;
}

pfrt_code compile_one(pfrt_provider* p, const pfrt_region* region, const pfrt_sink*,
                      pfrt_executable** out) {
  auto made =
      std::make_unique<Executable>(Executable{&of(p), elementwise::Region(*region), {}, {}, {}});
  for (uint32_t value : made->region.constants()) {
    if (!of(p).packed) break;
    made->sources.push_back(value);
    made->sizes.push_back(region->snapshot->values[value].bytes);
    pfrt_packed_constant constant{};
    constant.sources = &made->sources.back();
    constant.source_count = 1;
    constant.recipe = text("as it is");
    constant.bytes = made->sizes.back();
    constant.pack = [](void* user, const void* const* sources, void* to,
                       const pfrt_sink*) -> pfrt_code {
      std::memcpy(to, sources[0], *static_cast<uint64_t*>(user));
      return PFRT_CODE_OK;
    };
    constant.user = &made->sizes.back();
    made->packed.push_back(constant);
  }
  *out = reinterpret_cast<pfrt_executable*>(made.release());
  return PFRT_CODE_OK;
}
void release_executable(pfrt_executable* e) { delete &of(e); }

pfrt_code constants(pfrt_executable* e, const pfrt_sink*, const pfrt_packed_constant** out,
                    size_t* size, size_t* count) {
  *size = sizeof(pfrt_packed_constant);
  *out = of(e).packed.data();
  *count = of(e).packed.size();
  return PFRT_CODE_OK;
}

pfrt_code run(void* state, const pfrt_step_context* context) {
  const auto& step = *static_cast<const elementwise::Step*>(state);
  Device& device = *static_cast<Device*>(step.owner);
  uint32_t used = step.write;
  for (uint32_t r : step.reads) used = r > used ? r : used;
  if (!context->buffers[step.write]) {
    const auto dim = static_cast<int64_t>(step.counts.back());
    void* unused = nullptr;
    const pfrt_code code = context->alloc_output(context, step.write, &dim, 1, &unused);
    if (code != PFRT_CODE_OK) return code;
  }
  std::vector<void*> buffers(context->buffers, context->buffers + used + 1);
  ++device.counters->steps;
  device.expect(context->run);
  const bool late = device.fails(kStepLate);
  if (late && !kFenced) return context->fail(context, PFRT_CODE_PROVIDER, text("it broke"));
  device.enqueue(context->run,
                 [&device, late, run = context->run, step, buffers = std::move(buffers)] {
                   if (late) return device.fail_run(run);
                   step.compute(buffers.data());
                 });
  return PFRT_CODE_OK;
}

pfrt_code specialise(pfrt_executable* e, const pfrt_shapes* shapes, const pfrt_sink*,
                     pfrt_program* out) {
  auto program =
      of(e).region.specialise(*shapes, PFRT_MEMORY_DEVICE, run, of(e).device, of(e).device->late);
  uint32_t next = 0;
  for (pfrt_buffer& buffer : program->buffers) {
    if (!of(e).device->packed || buffer.kind != PFRT_BUFFER_INITIALIZER) continue;
    buffer.kind = PFRT_BUFFER_CONST;
    buffer.index = next++;
  }
  elementwise::fill(program.release(), out);
  return PFRT_CODE_OK;
}
void release_program(pfrt_executable*, pfrt_program* program) {
  delete static_cast<elementwise::Program*>(program->handle);
}

size_t option_count() { return 3; }
pfrt_code option_at(size_t index, pfrt_option_info* out) {
  constexpr std::string_view kKeys[] = {"counters", "late", "packed"};
  if (index > 2) return PFRT_CODE_INVALID_ARGUMENT;
  out->type = index ? PFRT_OPTION_BOOL : PFRT_OPTION_INT;
  out->key = text(kKeys[index]);
  out->default_value = text(index ? "false" : "0");
  out->doc = text("see device.h");
  return PFRT_CODE_OK;
}

pfrt_code run_begin(pfrt_provider* p, uint64_t run, const pfrt_sink*) {
  of(p).begin_run(run);
  return PFRT_CODE_OK;
}
void run_end(pfrt_provider* p, uint64_t run) { of(p).end_run(run); }

pfrt_code allocate(pfrt_provider* p, uint64_t, uint64_t bytes, uint32_t, const pfrt_sink* sink,
                   void** out) {
  *out = of(p).fails(kNoMemory) ? nullptr : of(p).allocate(bytes);
  if (*out) return PFRT_CODE_OK;
  return sink->fail(sink, PFRT_CODE_OUT_OF_MEMORY, PFRT_NO_INDEX, text("the device is full"));
}
void release_memory(pfrt_provider* p, void* memory) { of(p).release(memory); }

pfrt_code copy(pfrt_provider* p, uint64_t run, const pfrt_device_copy* copies, size_t copy_size,
               size_t count, const pfrt_sink* sink) {
  Device& device = of(p);
  device.expect(run);
  if (device.fails(kCopyLost))
    return sink->fail(sink, PFRT_CODE_DEVICE_LOST, PFRT_NO_INDEX, text("unplugged in a copy"));
  bool seen[4] = {};
  for (size_t i = 0; i < count; ++i) {
    const auto& c = *static_cast<const pfrt_device_copy*>(pfrt_at(copies, copy_size, i));
    if (!seen[c.direction]) ++device.counters->calls[c.direction];
    seen[c.direction] = true;
    ++device.counters->copies[c.direction];
    device.counters->bytes[c.direction] += static_cast<int64_t>(c.bytes);
    if (c.direction == PFRT_TO_DEVICE) {
      const auto* from = static_cast<const char*>(c.src);
      std::vector<char> taken(from, from + c.bytes);
      device.enqueue(run,
                     [c, taken = std::move(taken)] { std::memcpy(c.dst, taken.data(), c.bytes); });
    } else {
      device.enqueue(
          run, [c] { std::memcpy(c.dst, c.src, c.bytes); }, c.direction == PFRT_TO_HOST);
    }
  }
  return PFRT_CODE_OK;
}

#ifdef PFRT_FENCED
pfrt_code signal(pfrt_provider* p, uint64_t run, const pfrt_sink*, pfrt_fence** out) {
  of(p).expect(run);
  ++of(p).counters->fences;
  *out = new pfrt_fence{run, of(p).queued()};
  return PFRT_CODE_OK;
}
pfrt_code wait(pfrt_provider* p, pfrt_fence* fence, const pfrt_sink* sink) {
  ++of(p).counters->waits;
  if (of(p).fails(kWaitLost)) {
    of(p).drop_copies_to_host(fence->run);
    return sink->fail(sink, PFRT_CODE_DEVICE_LOST, PFRT_NO_INDEX, text("unplugged at work"));
  }
  while (of(p).counters->stalled) {
    if (const pfrt_code code = sink->stop(sink)) {
      of(p).drop_copies_to_host(fence->run);
      return code;
    }
    std::this_thread::yield();
  }
  of(p).wait(fence->reached_at);
  if (!of(p).has_failed(fence->run)) return PFRT_CODE_OK;
  return sink->fail(sink, PFRT_CODE_PROVIDER, PFRT_NO_INDEX, text("it broke"));
}
void release_fence(pfrt_provider* p, pfrt_fence* fence) {
  --of(p).counters->fences;
  delete fence;
}
#endif

constexpr pfrt_provider_table kTable = [] {
  pfrt_provider_table table{};
  table.struct_size = sizeof table;
  table.abi = PFRT_ABI_VERSION;
  table.devices = {"fake", 4};
  table.open = open;
  table.close = close;
  table.claim = claim;
  table.compile = pfrt_test::compile_each<compile_one, release_executable>;
  table.release_executable = release_executable;
  table.specialise = specialise;
  table.release_program = release_program;
  table.constants = constants;
  table.option_count = option_count;
  table.option_at = option_at;
  table.allocate = allocate;
  table.release_memory = release_memory;
  table.copy = copy;
  table.run_begin = run_begin;
  table.run_end = run_end;
#ifdef PFRT_FENCED
  table.signal = signal;
  table.wait = wait;
  table.release_fence = release_fence;
#endif
  return table;
}();

}  // namespace
}  // namespace fake_device

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out) {
  return elementwise::describe(
      host, out, kFenced ? "FencedExecutionProvider" : "DeviceExecutionProvider",
      PFRT_PROVIDER_CONSTANTS | PFRT_PROVIDER_OPTIONS | PFRT_PROVIDER_MEMORY | PFRT_PROVIDER_RUNS |
          (kFenced ? PFRT_PROVIDER_FENCES : 0),
      &fake_device::kTable);
}

// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/program/varying_step.h"

#include <array>
#include <cstddef>
#include <memory_resource>
#include <new>

namespace pfrt::cpu {
namespace {

constexpr size_t kAlignment = 64;

struct Aligned {
  void operator()(char* memory) const { ::operator delete(memory, std::align_val_t(kAlignment)); }
};
using Memory = std::unique_ptr<char[], Aligned>;

Memory allocate(uint64_t bytes) {
  return Memory(static_cast<char*>(::operator new(bytes, std::align_val_t(kAlignment))));
}

// The context that the steps of a group get: the program's, with buffers of their own.
struct Within : pfrt_step_context {
  // Buffers are where |at| says, in the program's or in |own|; |memory| holds their addresses.
  Within(const pfrt_step_context& whole, const std::vector<MadeSteps::Place>& at,
         std::span<void*> memory, char* own)
      : pfrt_step_context(whole), outer(whole), places(at), pointers(memory) {
    host = this;
    parallel = [](const pfrt_step_context* c, uint64_t n, void (*fn)(void*, uint64_t, uint32_t),
                  void* arg) { of(c).loop(n, fn, arg); };
    stop = [](const pfrt_step_context* c) { return of(c).outer.stop(&of(c).outer); };
    scratch = [](const pfrt_step_context* c, uint32_t worker) -> void* {
      const Within& self = of(c);
      if (!self.more_scratch) return self.outer.scratch(&self.outer, worker);
      return self.more_scratch.get() + self.scratch_bytes * worker;
    };
    // Only a run can tell some sizes, whatever dimensions the steps are made for.
    alloc_output = [](const pfrt_step_context* c, uint32_t buffer, const int64_t* sizes,
                      uint32_t rank,
                      void** out) { return of(c).allocate(buffer, sizes, rank, out); };
    fail = [](const pfrt_step_context* c, pfrt_code code, pfrt_string text) {
      return of(c).outer.fail(&of(c).outer, code, text);
    };
    dims = nullptr;
    for (size_t i = 0; i < pointers.size(); ++i)
      pointers[i] = places[i].buffer == PFRT_NO_INDEX ? own + places[i].offset
                                                      : outer.buffers[places[i].buffer];
    buffers = pointers.data();
  }
  static const Within& of(const pfrt_step_context* context) {
    return *static_cast<const Within*>(context->host);
  }
  void loop(uint64_t n, void (*fn)(void*, uint64_t, uint32_t), void* arg) const {
    if (width != 1) return outer.parallel(&outer, n, fn, arg);
    for (uint64_t i = 0; i < n && outer.stop(&outer) == PFRT_CODE_OK; ++i) fn(arg, i, 0);
  }

  pfrt_code allocate(uint32_t buffer, const int64_t* sizes, uint32_t rank, void** out) const {
    *out = nullptr;
    if (buffer >= places.size() || places[buffer].buffer == PFRT_NO_INDEX)
      return PFRT_CODE_INTERNAL;
    const uint32_t whole = places[buffer].buffer;
    const pfrt_code code = outer.alloc_output(&outer, whole, sizes, rank, out);
    for (size_t i = 0; code == PFRT_CODE_OK && i < pointers.size(); ++i)
      if (places[i].buffer == whole) pointers[i] = *out;
    return code;
  }

  const pfrt_step_context& outer;
  const std::vector<MadeSteps::Place>& places;
  const std::span<void*> pointers;
  uint32_t width = 0;  // of the step that is running
  Memory more_scratch;
  uint64_t scratch_bytes = 0;  // a worker
};

}  // namespace

KeptShapes::KeptShapes(const pfrt_shapes& shapes)
    : ranks_(shapes.ranks, shapes.ranks + shapes.value_count),
      dims_(shapes.value_count),
      pointers_(shapes.value_count) {
  for (uint32_t v = 0; v < shapes.value_count; ++v) {
    if (ranks_[v] > 0) dims_[v].assign(shapes.dims[v], shapes.dims[v] + ranks_[v]);
    pointers_[v] = dims_[v].data();
  }
}

pfrt_shapes KeptShapes::with(std::span<const uint32_t> values, const int64_t* const* dims,
                             std::vector<const int64_t*>& pointers) const {
  pointers = pointers_;
  for (const uint32_t v : values) pointers[v] = dims[v];
  pfrt_shapes out{};
  out.struct_size = sizeof out;
  out.abi = PFRT_ABI_VERSION;
  out.ranks = ranks_.data();
  out.dims = pointers.data();
  out.value_count = static_cast<uint32_t>(ranks_.size());
  return out;
}

Result<std::shared_ptr<const MadeSteps>> VaryingStep::steps_for(const int64_t* const* dims) {
  std::array<std::byte, 512> near;
  std::pmr::monotonic_buffer_resource memory(near.data(), near.size());
  std::pmr::vector<int64_t> key(&memory);
  for (const uint32_t v : values_) key.insert(key.end(), dims[v], dims[v] + shapes_->rank(v));
  if (auto known = made_.find(key)) return known;
  const auto never = [] { return Status(); };
  return made_.get(key, never, [&] {
    std::vector<const int64_t*> pointers;
    return make_(shapes_->with(values_, dims, pointers));
  });
}

pfrt_code VaryingStep::run(const pfrt_step_context& context) {
  auto steps = steps_for(context.dims);
  if (!steps.ok())
    return context.fail(&context, static_cast<pfrt_code>(steps.status().code()),
                        to_c(steps.status().message()));
  const std::shared_ptr<const MadeSteps> kept = steps.take();
  const MadeSteps& made = *kept;
  std::array<std::byte, 512> near;
  std::pmr::monotonic_buffer_resource memory(near.data(), near.size());
  std::pmr::vector<void*> buffers(made.places.size(), &memory);
  Memory more;
  if (made.own_bytes > own_bytes_) more = allocate(made.own_bytes);
  char* const own = more                    ? more.get()
                    : own_ == PFRT_NO_INDEX ? nullptr
                                            : static_cast<char*>(context.buffers[own_]);
  Within within(context, made.places, buffers, own);
  if (made.scratch_bytes > scratch_bytes_) {
    within.more_scratch = allocate(made.scratch_bytes * context.workers);
    within.scratch_bytes = made.scratch_bytes;
  }
  for (const Step& step : made.steps) {
    within.width = width_of(step);
    if (const pfrt_code code = run_step(const_cast<Step*>(&step), &within)) return code;
  }
  return PFRT_CODE_OK;
}

}  // namespace pfrt::cpu

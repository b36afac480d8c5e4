// SPDX-License-Identifier: Apache-2.0
#include "test/providers/cpu/step_host.h"

#include <atomic>
#include <thread>

namespace pfrt::test {
namespace {

StepHost& self(const pfrt_step_context* context) { return *static_cast<StepHost*>(context->host); }

}  // namespace

StepHost::StepHost(std::vector<void*> buffers, uint32_t workers, uint64_t scratch_bytes,
                   uint64_t looks)
    : buffers_(std::move(buffers)), last_look_(looks) {
  for (uint32_t i = 0; i < workers; ++i) scratch_.emplace_back(scratch_bytes, Placed::kAtEnd, 64);
  context_.struct_size = sizeof context_;
  context_.abi = PFRT_ABI_VERSION;
  context_.host = this;
  context_.buffers = buffers_.data();
  context_.workers = workers;
  context_.parallel = parallel;
  context_.stop = [](const pfrt_step_context* c) {
    const bool late = self(c).looks_.fetch_add(1) >= self(c).last_look_;
    return static_cast<pfrt_code>(late ? PFRT_CODE_CANCELLED : PFRT_CODE_OK);
  };
  context_.scratch = [](const pfrt_step_context* c, uint32_t worker) {
    return static_cast<void*>(self(c).scratch_.at(worker).data());
  };
  context_.alloc_output = [](const pfrt_step_context* c, uint32_t buffer, const int64_t* dims,
                             uint32_t rank, void** out) {
    *out = self(c).alloc_ ? self(c).alloc_(buffer, {dims, dims + rank}) : nullptr;
    return static_cast<pfrt_code>(*out ? PFRT_CODE_OK : PFRT_CODE_INTERNAL);
  };
  context_.fail = [](const pfrt_step_context* c, pfrt_code code, pfrt_string text) {
    self(c).message_.assign(text.data, text.size);
    return code;
  };
}

// Starts with the last index, since nothing may depend on the order.
void StepHost::parallel(const pfrt_step_context* context, uint64_t n,
                        void (*fn)(void*, uint64_t, uint32_t), void* arg) {
  std::atomic<uint64_t> left{n};
  const auto work = [&](uint32_t worker) {
    for (uint64_t i = left; i > 0;)
      if (left.compare_exchange_weak(i, i - 1)) {
        // Like the host, this leaves calls out once the run is stopped.
        if (self(context).looks_.load() <= self(context).last_look_) fn(arg, i - 1, worker);
        i = left;
      }
  };
  std::vector<std::thread> others;
  for (uint32_t worker = 1; worker < context->workers && worker < n; ++worker)
    others.emplace_back(work, worker);
  work(0);
  for (std::thread& other : others) other.join();
}

}  // namespace pfrt::test

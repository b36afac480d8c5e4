// SPDX-License-Identifier: Apache-2.0
#include "capi/handle/plugin_scope.h"
#include "capi/handle/status.h"
#include "capi/run.h"
#include "core/base/foreign.h"

namespace pfrt::capi {
namespace {

// Keeps all that a run needs until its callback has returned.
class AsyncRun {
 public:
  AsyncRun(pfrt_session* session, pfrt_options* options, pfrt_run_done_fn done, void* user)
      : session_(session), options_(options), done_(done), user_(user) {
    retain(session_);
    retain(options_);
  }
  ~AsyncRun() {
    for (size_t i = 0; i < count_; ++i) release(output(i)->value);
    release(options_);
    release(session_);
  }
  AsyncRun(const AsyncRun&) = delete;
  AsyncRun& operator=(const AsyncRun&) = delete;

  Status prepare(const pfrt_io* inputs, size_t input_count, const pfrt_io* outputs,
                 size_t output_count) {
    PFRT_TRY(prepare_run(*session_, inputs, input_count, outputs, output_count, options_, run_));
    if (run_.control.profile) asked_ns_ = os::monotonic_ns();
    if (output_count == 0) return {};
    // In elements of the caller's size, who gets them back.
    outputs_.resize(output_count * (outputs->struct_size / sizeof(uint64_t)));
    for (size_t i = 0; i < output_count; ++i) {
      std::memcpy(outputs_.data() + i * (outputs->struct_size / sizeof(uint64_t)),
                  pfrt_at(outputs, outputs->struct_size, i), outputs->struct_size);
      count_ = i + 1;
      output(i)->struct_size = outputs->struct_size;
      output(i)->tensor.dims = output(i)->tensor.strides = nullptr;  // the arrays may go
      retain(output(i)->value);
    }
    return {};
  }
  Executor* executor() const { return run_.control.executor; }
  const std::shared_ptr<const Replacements>& replacements() const { return run_.own; }
  int64_t priority() const { return run_.priority; }

  // A Task.
  static void run_and_call_done(void* self) {
    const Inside library;  // the callee may release the last handle
    const std::unique_ptr<AsyncRun> run(static_cast<AsyncRun*>(self));
    const RunControl& control = run->run_.control;
    if (control.profile)
      control.profile->add(Profile::Kind::kWait, run->asked_ns_, os::monotonic_ns(), 0,
                           control.number);
    pfrt_status* status =
        guard([&] { return carry_out(*run->session_, run->run_, run->output(0)); });
    run->run_.values.clear();
    // From here on the callee owns the values.
    const size_t count = std::exchange(run->count_, 0);
    call_foreign([&] { run->done_(run->user_, status, run->output(0), count); });
  }

 private:
  pfrt_io* output(size_t i) {
    auto* list = reinterpret_cast<pfrt_io*>(outputs_.data());
    return i == 0 ? list : slot_at(list, i);
  }

  pfrt_session* session_;
  pfrt_options* options_;
  pfrt_run_done_fn done_;
  void* user_;
  PreparedRun run_;
  uint64_t asked_ns_ = 0;          // when, where the run is profiled
  std::vector<uint64_t> outputs_;  // the bytes of pfrt_io, struct_size of the first apart
  size_t count_ = 0;
};

}  // namespace

pfrt_status* run_async(pfrt_session* session, const pfrt_io* inputs, size_t input_count,
                       const pfrt_io* outputs, size_t output_count, pfrt_options* options,
                       pfrt_run_done_fn done, void* user) {
  return guard([&]() -> Status {
    if (!session || !done) return null_argument(session ? "done" : "session");
    auto run = std::make_unique<AsyncRun>(session, options, done, user);
    PFRT_TRY(run->prepare(inputs, input_count, outputs, output_count));
    // Once it is added the run may be over, and its callback have released everything.
    const std::shared_ptr<Environment> env = session->env;
    const std::shared_ptr<const Replacements> own = run->replacements();
    Executor* const executor = run->executor();
    RunQueue& waiting = env->waiting_runs();
    PFRT_TRY(waiting.add(run->priority(), &AsyncRun::run_and_call_done, run.get()));
    // A thread that comes takes the first of those that wait, which keeps the queue alive.
    const auto serve = [](void* queue) { static_cast<RunQueue*>(queue)->serve(); };
    Status submitted = executor ? executor->submit(serve, &waiting) : submit(serve, &waiting);
    if (!submitted.ok() && waiting.remove(run.get())) return submitted;
    static_cast<void>(run.release());  // run_and_call_done deletes it
    // Another one's thread has this run, so that the other waits for one.
    if (!submitted.ok()) waiting.serve();
    return {};
  });
}

}  // namespace pfrt::capi

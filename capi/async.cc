// SPDX-License-Identifier: Apache-2.0
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
    for (const pfrt_io& output : outputs_) release(output.value);
    release(options_);
    release(session_);
  }
  AsyncRun(const AsyncRun&) = delete;
  AsyncRun& operator=(const AsyncRun&) = delete;

  Status prepare(const pfrt_io* inputs, size_t input_count, const pfrt_io* outputs,
                 size_t output_count) {
    PFRT_TRY(prepare_run(*session_, inputs, input_count, outputs, output_count, options_, run_));
    for (size_t i = 0; i < output_count; ++i) {
      const auto* from = reinterpret_cast<const char*>(outputs) + i * outputs->struct_size;
      outputs_.push_back(read(reinterpret_cast<const pfrt_io*>(from)));
      pfrt_io& output = outputs_.back();
      output.struct_size = sizeof output;
      output.tensor.dims = output.tensor.strides = nullptr;  // the caller's arrays may go
      retain(output.value);
    }
    return {};
  }
  Executor* executor() const { return run_.control.executor; }

  // A Task.
  static void run_and_call_done(void* self) {
    const Inside library;  // the callee may release the last handle
    const std::unique_ptr<AsyncRun> run(static_cast<AsyncRun*>(self));
    pfrt_status* status =
        guard([&] { return carry_out(*run->session_, run->run_, run->outputs_.data()); });
    run->run_.values.clear();
    // From here on the callee owns the values.
    std::vector<pfrt_io> outputs = std::move(run->outputs_);
    run->outputs_.clear();
    call_foreign([&] { run->done_(run->user_, status, outputs.data(), outputs.size()); });
  }

 private:
  pfrt_session* session_;
  pfrt_options* options_;
  pfrt_run_done_fn done_;
  void* user_;
  PreparedRun run_;
  std::vector<pfrt_io> outputs_;
};

}  // namespace

pfrt_status* run_async(pfrt_session* session, const pfrt_io* inputs, size_t input_count,
                       const pfrt_io* outputs, size_t output_count, pfrt_options* options,
                       pfrt_run_done_fn done, void* user) {
  return guard([&]() -> Status {
    if (!session || !done) return null_argument(session ? "done" : "session");
    auto run = std::make_unique<AsyncRun>(session, options, done, user);
    PFRT_TRY(run->prepare(inputs, input_count, outputs, output_count));
    Executor* const executor = run->executor();
    PFRT_TRY(executor ? executor->submit(&AsyncRun::run_and_call_done, run.get())
                      : submit(&AsyncRun::run_and_call_done, run.get()));
    static_cast<void>(run.release());  // run_and_call_done deletes it
    return {};
  });
}

}  // namespace pfrt::capi

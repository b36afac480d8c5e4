// SPDX-License-Identifier: Apache-2.0
//
// A run through the C ABI, in two parts. prepare_run checks the caller's arguments and turns them
// into the runtime's objects; carry_out runs the session with these, at once or later on another
// thread. One thread at a time uses a PreparedRun.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "capi/handle/env.h"
#include "capi/handle/guard.h"
#include "capi/handle/options.h"
#include "capi/handle/session.h"
#include "capi/handle/value.h"

namespace pfrt::capi {

struct PreparedRun {
  // The client's own allocator and threads, as they were when it asked for the run.
  std::shared_ptr<const Replacements> own;
  RunControl control;
  BudgetPtr budget;
  std::shared_ptr<State> state;  // that it has; may be null
  Observer observer;
  std::vector<ValuePtr> values;
  std::vector<OutputRequest> requests;
  int64_t priority = 0;    // among those that wait
  bool own_width = false;  // the run says how many threads it has
  std::string trace;       // what the log calls the run; empty = it is not logged
};

// The bytes of a pfrt_io that every client's version has.
constexpr size_t kLeastIo = offsetof(pfrt_io, value) + sizeof(pfrt_value*);
// A copy of element |i|; members that the caller's version lacks are zero. Elements are as far
// apart as the struct_size of the first says.
pfrt_io io_at(const pfrt_io* list, size_t i);
// Element |i| itself, to be written.
inline pfrt_io* slot_at(pfrt_io* list, size_t i) {
  return static_cast<pfrt_io*>(const_cast<void*>(pfrt_at(list, list->struct_size, i)));
}
Status check_io(const pfrt_io* inputs, size_t input_count, const pfrt_io* outputs,
                size_t output_count);

// Reports every fault that can be found before the run. |out| points to the cancel flag of
// |options|, which have to live until the run ends.
Status prepare_run(pfrt_session& session, const pfrt_io* inputs, size_t input_count,
                   const pfrt_io* outputs, size_t output_count, const pfrt_options* options,
                   PreparedRun& out);
// |outputs| are those given to prepare_run; results go there.
Status carry_out(pfrt_session& session, PreparedRun& run, pfrt_io* outputs);

pfrt_status* run_async(pfrt_session* session, const pfrt_io* inputs, size_t input_count,
                       const pfrt_io* outputs, size_t output_count, pfrt_options* options,
                       pfrt_run_done_fn done, void* user);

}  // namespace pfrt::capi

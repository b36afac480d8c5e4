// SPDX-License-Identifier: Apache-2.0
//
// A run as the ABI is asked for it: arguments checked and turned into the runtime's objects, then
// carried out, at once or later. One thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "capi/handles.h"

namespace pfrt::capi {

struct PreparedRun {
  std::shared_ptr<const Replacements> own;  // those at the time of the call
  RunControl control;
  BudgetPtr budget;
  std::shared_ptr<State> state;  // that it has; may be null
  std::vector<ValuePtr> values;
  std::vector<OutputRequest> requests;
  std::string trace;  // how the log calls the run; empty = it is not to be logged
};

// Bytes of a pfrt_io that every client has.
constexpr size_t kLeastIo = offsetof(pfrt_io, value) + sizeof(pfrt_value*);
// Element |i|, as far as its maker knows the struct; elements are as far apart as the first says.
pfrt_io io_at(const pfrt_io* list, size_t i);
inline pfrt_io* slot_at(pfrt_io* list, size_t i) {
  return static_cast<pfrt_io*>(const_cast<void*>(pfrt_at(list, list->struct_size, i)));
}
Status check_io(const pfrt_io* inputs, size_t input_count, const pfrt_io* outputs,
                size_t output_count);

// Everything that can be said before the run. |out| refers to |options|' cancel flag.
Status prepare_run(pfrt_session& session, const pfrt_io* inputs, size_t input_count,
                   const pfrt_io* outputs, size_t output_count, const pfrt_options* options,
                   PreparedRun& out);
// |outputs| as given to prepare_run.
Status carry_out(pfrt_session& session, PreparedRun& run, pfrt_io* outputs);

pfrt_status* run_async(pfrt_session* session, const pfrt_io* inputs, size_t input_count,
                       const pfrt_io* outputs, size_t output_count, pfrt_options* options,
                       pfrt_run_done_fn done, void* user);

}  // namespace pfrt::capi

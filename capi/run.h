// SPDX-License-Identifier: Apache-2.0
//
// Entries of the session's table that run it, and what others of its entries share with them: the
// reading of a run's settings, and the look-up of ports.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/memory/tensor.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt {
class Session;
struct RunSettings;
}  // namespace pfrt

namespace pfrt::capi {

pfrt_status* run(pfrt_session* session, const pfrt_io* inputs, size_t input_count, pfrt_io* outputs,
                 size_t output_count, const pfrt_run_desc* desc);
pfrt_status* run_named(pfrt_session* session, const pfrt_string* input_names, const pfrt_io* inputs,
                       size_t input_count, const pfrt_string* output_names, pfrt_io* outputs,
                       size_t output_count, const pfrt_run_desc* desc);
pfrt_status* run_async(pfrt_session* session, const pfrt_io* inputs, size_t input_count,
                       const pfrt_io* outputs, size_t output_count, const pfrt_run_desc* desc,
                       pfrt_run_done_fn done, void* user);

// Reads |desc|, which may be null; a timeout counts from now. |doing| begins its errors.
Status read_settings(std::string_view doing, const pfrt_run_desc* desc, RunSettings& out);

// The values that are fed to |session|, in its order; null where none is.
Status read_inputs(const Session& session, const pfrt_io* inputs, size_t count,
                   std::vector<ValuePtr>& out);

// Index of the port of that name; the number of ports when there is none.
size_t find_port(const std::vector<pfrt_value_info>& ports, std::string_view name);
// Says which ports there are.
Status no_port(std::string_view doing, const char* what, std::string_view name,
               const std::vector<pfrt_value_info>& ports, Code code);

}  // namespace pfrt::capi

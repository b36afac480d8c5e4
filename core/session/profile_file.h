// SPDX-License-Identifier: Apache-2.0
//
// A profile as a file: an object with "traceEvents", of the Trace Event format that Perfetto and
// Chrome's tracing page draw. Times are in microseconds since the profile's start, to the
// nanosecond. Steps are complete events of the category "Node", named after their nodes as
// ONNX Runtime names them, with op_name and provider among their arguments.
#pragma once

#include <string>
#include <string_view>

#include "core/base/os/profile.h"
#include "core/base/status.h"

namespace pfrt {

struct ProfileAbout {
  std::string_view graph;
  uint64_t session = 0;          // its number in the process, from 1 on
  uint64_t parameter_bytes = 0;  // of the model
};

// Such as "|prefix|_2026-01-31_23-59-59_4711_1.json", with the time now in UTC, the number of this
// process, and the session's.
std::string profile_path(std::string_view prefix, uint64_t session);

// Writes the file completely or not at all. Runs may go on meanwhile.
Status write_profile(const Profile& profile, const ProfileAbout& about, const std::string& path);

}  // namespace pfrt

// SPDX-License-Identifier: Apache-2.0
//
// Generated code for people to look at. PFRT_JIT_DUMP=DIR: each piece is written to DIR/NAME.bin.
// PFRT_JIT_PERF=1: each is named in /tmp/perf-PID.map, where `perf report` looks. Best effort: what
// cannot be written is left. Thread-safe.
#pragma once

#include <cstddef>
#include <string>

namespace pfrt::cpu {

void publish(const std::string& name, const void* code, size_t bytes);

}  // namespace pfrt::cpu

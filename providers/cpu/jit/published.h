// SPDX-License-Identifier: Apache-2.0
//
// Generated code for people to look at. PFRT_JIT_DUMP=DIR: each piece is written to DIR/NAME.bin.
// PFRT_JIT_PERF=1: each is named in /tmp/perf-PID.map, where `perf report` looks. Best effort: what
// cannot be written, or named for want of memory, is left. Thread-safe.
#pragma once

#include <cstddef>
#include <string_view>

namespace pfrt::cpu {

void publish(std::string_view name, const void* code, size_t bytes) noexcept;

}  // namespace pfrt::cpu

// SPDX-License-Identifier: Apache-2.0
//
// Shows generated code to people and tools. With PFRT_JIT_DUMP=DIR each piece is written to
// DIR/NAME.bin. With PFRT_JIT_PERF=1 its address and name are added to /tmp/perf-PID.map, where
// `perf report` finds them. A piece that cannot be written is skipped, without an error.
// Thread-safe.
#pragma once

#include <cstddef>
#include <string_view>

namespace pfrt::cpu {

void publish(std::string_view name, const void* code, size_t bytes) noexcept;

}  // namespace pfrt::cpu

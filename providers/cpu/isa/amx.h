// SPDX-License-Identifier: Apache-2.0
//
// The system's leave to use AMX tiles, which a process has to ask for. It is asked for once, when
// first wanted, because from then on signal stacks must be larger. Thread-safe.
#pragma once

namespace pfrt::cpu {

// Whether tiles of bfloat16 and int8 may be used now: isa() says so and the system agrees. False
// where it refuses, as a sandbox may, or a thread with a small sigaltstack.
bool amx_usable();
// The same of tiles of int8 alone, which a machine may have without those of bfloat16.
bool amx_int8_usable();

}  // namespace pfrt::cpu

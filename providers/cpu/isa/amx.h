// SPDX-License-Identifier: Apache-2.0
//
// The system's leave to use AMX tiles, which a process has to ask for. It is asked for once, when
// first wanted, because from then on signal stacks must be larger. Thread-safe.
#pragma once

namespace pfrt::cpu {

// Whether tiles of bfloat16 and int8 may be used now: isa() says so and the system agrees. The
// system may refuse in a sandbox, or because a thread has a small sigaltstack.
bool amx_usable();
// Whether tiles of int8 may be used now; a machine may have these without tiles of bfloat16.
bool amx_int8_usable();

}  // namespace pfrt::cpu

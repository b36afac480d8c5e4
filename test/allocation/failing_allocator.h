// SPDX-License-Identifier: Apache-2.0
//
// Stands in front of the process's memory: malloc and its kin (and so operator new), mmap and the
// creation of threads, as every library sees them. While armed it counts the requests of all
// threads and fails one of them, or one and all that follow. Two things are left out: what the
// dynamic loader asks for itself (it ends the process when it has no memory for a thread's
// variables), and what happens inside dlopen, where libraries' static initialisers run, which
// nothing can catch an exception of (libprotobuf-lite's allocate).
#pragma once

#include <cstdint>

namespace failing {

// From now on the |nth| request (from 1) fails; with |lasting| those after it do too.
void arm(uint64_t nth, bool lasting);
// Back to normal; true when a request was failed.
bool disarm();
// Requests since arm.
uint64_t requests();
// Blocks and mappings not given back yet.
int64_t live();

}  // namespace failing

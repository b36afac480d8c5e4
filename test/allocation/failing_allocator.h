// SPDX-License-Identifier: Apache-2.0
//
// Stands in front of the process's memory: malloc and its kin (and so operator new), mmap and the
// creation of threads, as every library sees them. While armed it counts the requests of all
// threads and fails one of them, or one and all that follow. It leaves two kinds of request out:
// those of the dynamic loader itself, which ends the process when it has no memory for a thread's
// variables, and those inside dlopen, where libraries' static initialisers run and nothing can
// catch an exception (libprotobuf-lite's allocate).
#pragma once

#include <cstdint>

namespace failing {

// Makes the |nth| request from here fail (counted from 1); with |lasting| those after it too.
void arm(uint64_t nth, bool lasting);
// Ends the failures; true when a request was failed.
bool disarm();
// Number of requests since arm.
uint64_t requests();
// Number of blocks and mappings not given back yet.
int64_t live();

}  // namespace failing

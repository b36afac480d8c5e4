// SPDX-License-Identifier: Apache-2.0
//
// The pool of the process: buffers whose environment has no allocator take from it once a client
// has configured it. Until then it counts what they take from the C library. Each thread counts for
// itself, so that small runs share no cache line. Thread-safe.
#pragma once

#include <memory>

#include "core/memory/pool.h"

namespace pfrt::global_pool {

// Null until configure was called.
AllocatorPtr of_buffers();
// Configures the pool for later allocations; existing memory goes back to where it came from.
Status configure(PoolConfig config);
// Returns to the state before the first configure.
void restore();
// The configured pool; until then a pool with defaults, which buffers do not take from.
Result<std::shared_ptr<MemoryPool>> pool();
// Statistics of the pool and of buffers outside of it; |pool| is the result of pool(). The peak of
// those buffers is exact except for blocks under 64 KiB, which count when somebody asks.
PoolStats stats(const MemoryPool& pool);
void reset_stats(MemoryPool& pool);
// Gives idle memory of the pool back; returns its bytes.
uint64_t trim();

// Count buffers that come from the C library.
void count_allocation(uint64_t bytes);
void count_free(uint64_t bytes);
// Counts a block that was used before.
void count_reuse(uint64_t bytes);

}  // namespace pfrt::global_pool

// SPDX-License-Identifier: Apache-2.0
//
// The pool of the process: what buffers without an allocator of their environment's take from once
// a client has configured it, and the count of what they take from the C library until then. That
// is counted by each thread for itself: it costs small runs no shared line. Thread-safe.
#pragma once

#include <memory>

#include "core/memory/pool.h"

namespace pfrt::global_pool {

// Null until configure was called.
AllocatorPtr of_buffers();
// For what is allocated afterwards; what there is goes back to where it came from.
Status configure(PoolConfig config);
// As before the first configure.
void restore();
// The configured one; until then one of defaults, which buffers do not take from.
Result<std::shared_ptr<MemoryPool>> pool();
// Of the pool and of buffers outside of it; |pool| is what pool() gave. Their peak is exact but for
// blocks under 64 KiB, which count as they are when somebody asks.
PoolStats stats(const MemoryPool& pool);
void reset_stats(MemoryPool& pool);
// Gives idle memory of the pool back; the bytes that this was.
uint64_t trim();

// Of buffers that come from the C library.
void count_allocation(uint64_t bytes);
void count_free(uint64_t bytes);
// One that somebody else has used before.
void count_reuse(uint64_t bytes);

}  // namespace pfrt::global_pool

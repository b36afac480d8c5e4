// SPDX-License-Identifier: Apache-2.0
#include "capi/handle/guard.h"
#include "capi/handle/memory_pool.h"
#include "capi/handle/slots.h"
#include "core/memory/global_pool.h"

namespace pfrt::capi {
namespace {

Result<PoolConfig> config_of(const pfrt_pool_config* given) {
  PFRT_ASSIGN(const pfrt_pool_config c, read(given));
  if (c.size_class_count && !c.size_classes) return null_argument("config.size_classes");
  PoolConfig out;
  if (c.size_class_count)
    out.size_classes.assign(c.size_classes, c.size_classes + c.size_class_count);
  if (c.max_blocks_per_class) out.max_blocks_per_class = c.max_blocks_per_class;
  if (c.alignment) out.alignment = c.alignment;
  out.memory_limit = c.memory_limit;
  out.initial_pool_size = c.initial_pool_size;
  out.thread_safe = !(c.flags & PFRT_POOL_ONE_THREAD);
  out.track_stats = !(c.flags & PFRT_POOL_NO_STATS);
  out.auto_grow = !(c.flags & PFRT_POOL_NO_GROWTH);
  return out;
}

pfrt_status* create_pool(const pfrt_pool_config* config, const pfrt_allocator* base,
                         pfrt_memory_pool** out) {
  return guard([&]() -> Status {
    PFRT_ASSIGN(AllocatorPtr below, allocator_of(base));
    if (!out) return null_argument("out_pool");
    *out = nullptr;
    PFRT_ASSIGN(PoolConfig settings, config_of(config));
    PFRT_ASSIGN(auto pool, MemoryPool::create(std::move(settings), std::move(below)));
    *out = new pfrt_memory_pool(std::move(pool));
    return {};
  });
}

// Calls |fn| with the object behind |pool|.
template <typename Handle, typename Fn>
pfrt_status* with_pool(Handle* pool, Fn&& fn) {
  return guard([&]() -> Status { return pool ? fn(*pool->pool) : null_argument("pool"); });
}

Status give_out(Result<void*> taken, void** out) {
  PFRT_ASSIGN(*out, std::move(taken));
  return {};
}

pfrt_status* allocate(pfrt_memory_pool* pool, uint64_t bytes, uint64_t alignment, void** out) {
  return with_pool(pool, [&](MemoryPool& own) -> Status {
    if (!out) return null_argument("out_data");
    *out = nullptr;
    return give_out(own.take(bytes, alignment), out);
  });
}

pfrt_status* deallocate(pfrt_memory_pool* pool, void* data) {
  return with_pool(pool, [&](MemoryPool& own) { return own.give(data); });
}

pfrt_status* reallocate(pfrt_memory_pool* pool, void* data, uint64_t bytes, void** out) {
  return with_pool(pool, [&](MemoryPool& own) -> Status {
    if (!out) return null_argument("out_data");
    *out = nullptr;
    return give_out(own.resize(data, bytes), out);
  });
}

pfrt_status* reset(pfrt_memory_pool* pool) {
  return with_pool(pool, [&](MemoryPool& own) -> Status {
    if (pool->global)
      return error(
          Code::kUNSUPPORTED,
          "resetting the global memory pool: runs and values have blocks of it; trim gives "
          "back what none has");
    own.reset();
    return {};
  });
}

pfrt_status* reserve(pfrt_memory_pool* pool, uint64_t bytes) {
  return with_pool(pool, [&](MemoryPool& own) { return own.reserve(bytes); });
}

pfrt_status* trim(pfrt_memory_pool* pool, uint64_t* out) {
  return with_pool(pool, [&](MemoryPool& own) -> Status {
    const uint64_t given = own.trim();
    if (out) *out = given;
    return {};
  });
}

pfrt_status* pool_stats(const pfrt_memory_pool* pool, pfrt_pool_stats* out) {
  return with_pool(pool, [&](MemoryPool& own) -> Status {
    if (!out) return null_argument("out_stats");
    const PoolStats stats = pool->global ? global_pool::stats(own) : own.stats();
    pfrt_pool_stats c{};
    c.total_allocated = stats.total_allocated;
    c.total_freed = stats.total_freed;
    c.num_allocations = stats.num_allocations;
    c.num_frees = stats.num_frees;
    c.pool_hits = stats.pool_hits;
    c.pool_misses = stats.pool_misses;
    c.current_usage = stats.current_usage;
    c.peak_usage = stats.peak_usage;
    return write(out, c);
  });
}

pfrt_status* reset_stats(pfrt_memory_pool* pool) {
  return with_pool(pool, [&](MemoryPool& own) -> Status {
    pool->global ? global_pool::reset_stats(own) : own.reset_stats();
    return {};
  });
}

pfrt_status* set_global_pool(const pfrt_pool_config* config) {
  return guard([&]() -> Status {
    if (!config) {
      global_pool::restore();
      return {};
    }
    PFRT_ASSIGN(PoolConfig settings, config_of(config));
    return global_pool::configure(std::move(settings));
  });
}

pfrt_status* get_global_pool(pfrt_memory_pool** out) {
  return guard([&]() -> Status {
    if (!out) return null_argument("out_pool");
    *out = nullptr;
    PFRT_ASSIGN(auto pool, global_pool::pool());
    *out = new pfrt_memory_pool(std::move(pool));
    (*out)->global = true;
    return {};
  });
}

}  // namespace

const pfrt_memory_api kMemoryApi = {
    sizeof(pfrt_memory_api),
    PFRT_ABI_VERSION,
    create_pool,
    retain<pfrt_memory_pool>,
    last_call<release<pfrt_memory_pool>, pfrt_memory_pool>,
    allocate,
    deallocate,
    reallocate,
    reset,
    reserve,
    trim,
    pool_stats,
    reset_stats,
    set_global_pool,
    get_global_pool,
};

}  // namespace pfrt::capi

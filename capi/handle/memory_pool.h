// SPDX-License-Identifier: Apache-2.0
//
// Members of a memory pool's handle.
#pragma once

#include <memory>
#include <utility>

#include "capi/handle/counted.h"
#include "core/memory/pool.h"
#include "pyflame_rt/pyflame_rt.h"

struct pfrt_memory_pool : pfrt::capi::Counted {
  explicit pfrt_memory_pool(std::shared_ptr<pfrt::MemoryPool> p) : pool(std::move(p)) {}
  std::shared_ptr<pfrt::MemoryPool> pool;
  bool global = false;
};

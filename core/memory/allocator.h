// SPDX-License-Identifier: Apache-2.0
//
// Where buffers' bytes come from: the C library, or what the thread's scope says, and what they
// count in. A scope is set around whatever works for an environment. Allocators are thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/memory/budget.h"

namespace pfrt {

class Allocator {
 public:
  virtual ~Allocator() = default;
  // nullptr when there is no memory. |bytes| is a multiple of |alignment|, above 0.
  virtual void* allocate(uint64_t bytes, uint64_t alignment) = 0;
  virtual void free(void* data, uint64_t bytes) = 0;
  // Whether it is for what lives long alone, and what soon goes better comes from elsewhere.
  virtual bool lasting() const { return false; }
  // What allocate has just answered nullptr to, as the message of an error.
  virtual std::string refusal(uint64_t bytes) const;
};

// Null = the C library's.
using AllocatorPtr = std::shared_ptr<Allocator>;

class MemoryPlanner;  // core/plan/blocks.h

// Where a thread's buffers come from, what they count in, and who places those of a run in its
// block (null: the library itself).
struct MemorySource {
  AllocatorPtr allocator;
  BudgetPtr budget;
  std::shared_ptr<MemoryPlanner> planner = nullptr;
};

// That of buffers made on this thread while it lives.
class MemoryScope {
 public:
  explicit MemoryScope(MemorySource source);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  // Valid while the innermost scope of this thread is; the C library's without limit where there is
  // none.
  static const MemorySource& current();

 private:
  const MemorySource source_;
  const MemorySource* const before_;
};

}  // namespace pfrt

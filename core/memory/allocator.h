// SPDX-License-Identifier: Apache-2.0
//
// Decides where buffers' bytes come from: the C library, or the source of the thread's scope, and
// which budget they count in. A scope is set around all work for an environment. Allocators are
// thread-safe.
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
  // Whether it serves long-lived memory only, so that short-lived memory better comes from
  // elsewhere.
  virtual bool lasting() const { return false; }
  // The message of an error, after allocate returned nullptr for |bytes|.
  virtual std::string refusal(uint64_t bytes) const;
};

// Null = the C library's.
using AllocatorPtr = std::shared_ptr<Allocator>;

class MemoryPlanner;  // core/plan/blocks.h

// The source of a thread's buffers, the budget that they count in, and the planner that places the
// buffers of a run in its block (null: the library itself).
struct MemorySource {
  AllocatorPtr allocator;
  BudgetPtr budget;
  std::shared_ptr<MemoryPlanner> planner = nullptr;
};

// Sets the source of buffers made on this thread while it lives.
class MemoryScope {
 public:
  explicit MemoryScope(MemorySource source);
  // Uses |source|, which outlives this.
  explicit MemoryScope(const MemorySource* source);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  // Valid while the innermost scope of this thread is. Where there is none: the C library without
  // limit.
  static const MemorySource& current();

 private:
  const MemorySource source_;
  const MemorySource* const before_;
};

}  // namespace pfrt

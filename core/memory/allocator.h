// SPDX-License-Identifier: Apache-2.0
//
// Where buffers' bytes come from: the C library, or what the thread's scope says. A scope is set
// around whatever works for an environment with an allocator of its own. Allocators are
// thread-safe.
#pragma once

#include <cstdint>
#include <memory>

namespace pfrt {

class Allocator {
 public:
  virtual ~Allocator() = default;
  // nullptr when there is no memory. |bytes| is a multiple of |alignment|, above 0.
  virtual void* allocate(uint64_t bytes, uint64_t alignment) = 0;
  virtual void free(void* data, uint64_t bytes) = 0;
  // Whether it is for what lives long alone, and what soon goes better comes from elsewhere.
  virtual bool lasting() const { return false; }
};

// Null = the C library's.
using AllocatorPtr = std::shared_ptr<Allocator>;

// Buffers allocated on this thread while it lives come from |allocator|.
class AllocatorScope {
 public:
  explicit AllocatorScope(AllocatorPtr allocator);
  ~AllocatorScope();
  AllocatorScope(const AllocatorScope&) = delete;
  AllocatorScope& operator=(const AllocatorScope&) = delete;

  static AllocatorPtr current();

 private:
  const AllocatorPtr allocator_;
  const AllocatorPtr* const before_;
};

}  // namespace pfrt

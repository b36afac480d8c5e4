// SPDX-License-Identifier: Apache-2.0
//
// Memory for long-lived data that is made in one go, such as a model's constants: blocks side by
// side in few large mappings, on the large pages of the system, which are taken five times as fast
// as small ones and reach further in the processor's address caches. A freed block gives its pages
// back at once, and its addresses when its mapping has no block left. Thread-safe.
#pragma once

#include <map>
#include <mutex>

#include "core/memory/allocator.h"

namespace pfrt {

class Slabs final : public Allocator {
 public:
  Slabs() = default;
  ~Slabs() override;

  // Small blocks, and the first few, come from the C library.
  void* allocate(uint64_t bytes, uint64_t alignment) override;
  void free(void* data, uint64_t bytes) override;
  bool lasting() const override { return true; }

 private:
  struct Slab {
    uint64_t bytes = 0, used = 0, blocks = 0;
  };
  void* allocate_in_slab(uint64_t bytes, uint64_t alignment);

  std::mutex mutex_;
  uint64_t asked_ = 0;
  std::map<char*, Slab> slabs_;  // by address
  char* current_ = nullptr;      // the slab with room
};

}  // namespace pfrt

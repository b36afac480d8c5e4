// SPDX-License-Identifier: Apache-2.0
//
// Memory of runs between runs: blocks that any signature of a segment may take, on the host or on
// one device. The part that the last run did not use goes back to the system, so that many shapes
// take no more than one does; a device's blocks are as large as the largest. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core/memory/tensor.h"

namespace pfrt {

class BlockPool {
 public:
  // A null |device| is the host.
  explicit BlockPool(std::shared_ptr<Device> device = nullptr) : device_(std::move(device)) {}
  const std::shared_ptr<Device>& device() const { return device_; }

  struct Block {
    Block() = default;
    ~Block() { let_go(); }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    void let_go() {
      if (const BudgetPtr counted = std::move(holder)) counted->let_go(buffer->bytes());
    }

    std::shared_ptr<Buffer> buffer;
    uint64_t touched = 0;   // bytes from its start that may be in memory
    uint64_t given_ns = 0;  // when, on os::recent_ns
    uint32_t alignment = 0;
    BudgetPtr holder;  // counts it for this run alone, after another run took the budget's share
    // Addresses of the last run's buffers and the plan they belong to, for the next run.
    std::vector<void*> pointers;
    uint64_t plan = 0;
  };
  // Takes a block of at least |bytes|, with undefined contents. |work| is the number of the
  // DeviceWork that is to use a device's block; |stop| ends an allocation there.
  Result<std::unique_ptr<Block>> take(uint64_t bytes, uint32_t alignment = 64,
                                      const Stop& stop = {}, uint64_t work = 0);
  // Returns a block after a run that used its first |used| bytes. |keep|: it may wait for the next
  // run.
  void give(std::unique_ptr<Block> block, uint64_t used, bool keep = true);

  struct Usage {
    uint64_t in_use = 0, idle = 0, peak = 0;  // bytes; of blocks at their largest size
  };
  Usage usage() const;
  // Notes that a block of the pool is gone without having been given back.
  void lost(const Block& block);
  // Frees idle blocks that were given back before |given_ns|; returns their bytes.
  uint64_t trim(uint64_t given_ns = UINT64_MAX);

 private:
  Result<std::shared_ptr<Buffer>> allocate(uint64_t bytes, uint32_t alignment, const Stop& stop,
                                           uint64_t work) const;
  const std::shared_ptr<Device> device_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> idle_;  // by size
  uint64_t held_ = 0, peak_ = 0;              // in use and idle
};

}  // namespace pfrt

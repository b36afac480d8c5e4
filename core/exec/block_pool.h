// SPDX-License-Identifier: Apache-2.0
//
// Memory of runs between runs: blocks that any signature of a segment may take. What the last run
// had no use for goes back to the system, so that many shapes leave no more than one does.
// Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core/memory/tensor.h"

namespace pfrt {

class BlockPool {
 public:
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
    BudgetPtr holder;       // that counts it for this run alone, another having taken it
    // Where the buffers of its last run were, and whose plan that was, for its next run.
    std::vector<void*> pointers;
    uint64_t plan = 0;
  };
  // At least |bytes|, whose contents are undefined.
  Result<std::unique_ptr<Block>> take(uint64_t bytes);
  // After a run that used the first |used| bytes. |keep|: it may wait for the next.
  void give(std::unique_ptr<Block> block, uint64_t used, bool keep = true);

  struct Usage {
    uint64_t in_use = 0, idle = 0, peak = 0;  // bytes; of blocks as large as they ever were
  };
  Usage usage() const;
  // A block of the pool's is gone without having been given back.
  void lost(const Block& block);
  // Frees idle blocks that were given back before |given_ns|, and the bytes that this was.
  uint64_t trim(uint64_t given_ns = UINT64_MAX);

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> idle_;  // by size
  uint64_t held_ = 0, peak_ = 0;              // in use and idle
};

}  // namespace pfrt

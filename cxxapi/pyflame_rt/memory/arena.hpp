// SPDX-License-Identifier: Apache-2.0
//
// Memory for a limited time: allocations one behind the other, all freed at once. Not for several
// threads at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <pyflame_rt/error.hpp>
#include <string>
#include <utility>
#include <vector>

namespace pyflame_rt {
namespace memory {

// An arena. Allocations that do not fit into it come from overflow blocks, which the next reset
// frees. Nothing is constructed or destroyed in the memory it gives.
class Arena {
 public:
  static constexpr size_t kDefaultCapacity = size_t{1} << 20;  // bytes

  // Allocates |capacity| bytes at once. Throws std::bad_alloc.
  explicit Arena(size_t capacity = kDefaultCapacity)
      : block_(take(capacity)), capacity_(capacity) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Returns |bytes| bytes, aligned for any object, whose contents are undefined. Throws
  // std::bad_alloc.
  void* allocate(size_t bytes) { return allocate_aligned(bytes, alignof(std::max_align_t)); }
  // Allocates at |alignment|, a power of two; throws InvalidArgumentError otherwise.
  void* allocate_aligned(size_t bytes, size_t alignment) {
    if (alignment == 0 || (alignment & (alignment - 1)) != 0)
      throw InvalidArgumentError("allocating from an arena: alignment " +
                                     std::to_string(alignment) + " is no power of two",
                                 PFRT_CODE_INVALID_ARGUMENT);
    const size_t at = padding(block_.get() + used_, alignment);
    if (at <= capacity_ - used_ && bytes <= capacity_ - used_ - at) {
      used_ += at + bytes;
      return block_.get() + used_ - bytes;
    }
    if (bytes > SIZE_MAX - alignment) throw std::bad_alloc();
    Block block = take(bytes + alignment - 1);
    char* const data = block.get() + padding(block.get(), alignment);
    overflow_.push_back({std::move(block), bytes + alignment - 1});
    return data;
  }

  // Frees everything, overflow blocks included.
  void reset() noexcept { rewind(0, 0); }

  // Bytes in use of the arena itself, including gaps for alignment.
  size_t used() const noexcept { return used_; }
  // Bytes of the arena itself.
  size_t capacity() const noexcept { return capacity_; }
  // Bytes of the arena itself that are left.
  size_t remaining() const noexcept { return capacity_ - used_; }
  // Number of blocks beside the arena: 0 where the capacity is enough.
  size_t overflow_blocks() const noexcept { return overflow_.size(); }
  // Bytes of these blocks.
  size_t overflow_bytes() const noexcept {
    size_t sum = 0;
    for (const auto& each : overflow_) sum += each.second;
    return sum;
  }

 private:
  friend class ScopedArena;
  static constexpr std::align_val_t kAlignment{64};
  struct Delete {
    void operator()(char* data) const noexcept { ::operator delete(data, kAlignment); }
  };
  using Block = std::unique_ptr<char, Delete>;

  static Block take(size_t bytes) {
    return Block(static_cast<char*>(::operator new(std::max<size_t>(bytes, 1), kAlignment)));
  }
  static size_t padding(const char* data, size_t alignment) {
    return (alignment - reinterpret_cast<uintptr_t>(data) % alignment) % alignment;
  }
  void rewind(size_t used, size_t overflow) noexcept {
    used_ = std::min(used, used_);
    while (overflow_.size() > overflow) overflow_.pop_back();
  }

  Block block_;
  size_t capacity_;
  size_t used_ = 0;
  std::vector<std::pair<Block, size_t>> overflow_;
};

// A scope of an arena: all that is allocated there during its life is freed when it ends. Scopes of
// one arena may lie inside each other.
class ScopedArena {
 public:
  // |arena| must outlive the scope.
  explicit ScopedArena(Arena& arena) noexcept
      : arena_(arena), used_(arena.used_), overflow_(arena.overflow_.size()) {}
  ~ScopedArena() { arena_.rewind(used_, overflow_); }
  ScopedArena(const ScopedArena&) = delete;
  ScopedArena& operator=(const ScopedArena&) = delete;

  // Calls Arena::allocate.
  void* allocate(size_t bytes) { return arena_.allocate(bytes); }
  // Calls Arena::allocate_aligned.
  void* allocate_aligned(size_t bytes, size_t alignment) {
    return arena_.allocate_aligned(bytes, alignment);
  }

 private:
  Arena& arena_;
  size_t used_, overflow_;
};

}  // namespace memory
}  // namespace pyflame_rt

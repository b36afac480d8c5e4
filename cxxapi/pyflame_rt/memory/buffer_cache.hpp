// SPDX-License-Identifier: Apache-2.0
//
// Buffers that are kept for later requests of about the same size. Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <mutex>
#include <new>
#include <pyflame_rt/error.hpp>
#include <unordered_map>

namespace pyflame_rt {
namespace memory {

// Counts of a cache's use, and its contents.
struct BufferCacheStats {
  // Free buffers, and their bytes.
  size_t cached_buffers = 0, cached_bytes = 0;
  // Calls of get_buffer that found one, and that made one.
  size_t hits = 0, misses = 0;

  // Share of hits among all calls, from 0 to 1.
  double hit_rate() const noexcept {
    return hits + misses == 0 ? 0.0
                              : static_cast<double>(hits) / static_cast<double>(hits + misses);
  }
};

// A cache of free buffers. When there are too many, those given back longest ago are freed first.
class BufferCache {
 public:
  // Most free buffers by default.
  static constexpr size_t kMaxBuffers = 32;
  // Most bytes in free buffers by default.
  static constexpr size_t kMaxBytes = size_t{256} << 20;

  // Keeps at most |max_buffers| free buffers of |max_bytes| together.
  explicit BufferCache(size_t max_buffers = kMaxBuffers, size_t max_bytes = kMaxBytes)
      : max_buffers_(max_buffers), max_bytes_(max_bytes) {}
  // Buffers that are not given back stay allocated.
  ~BufferCache() { clear(); }
  BufferCache(const BufferCache&) = delete;
  BufferCache& operator=(const BufferCache&) = delete;

  // Returns a buffer of at least |bytes|, 64-byte aligned, contents undefined: the smallest free
  // one that is at most twice the size, else a new one. Throws std::bad_alloc.
  void* get_buffer(size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    bytes = std::max<size_t>(bytes, 1);
    auto best = waiting_.end();
    for (auto at = waiting_.begin(); at != waiting_.end(); ++at)
      if (at->bytes >= bytes && at->bytes / 2 <= bytes &&
          (best == waiting_.end() || at->bytes < best->bytes))
        best = at;
    if (best == waiting_.end()) {
      void* const made = ::operator new(bytes, kAlignment);
      try {
        used_.emplace(made, bytes);
      } catch (...) {
        ::operator delete(made, kAlignment);
        throw;
      }
      ++misses_;
      return made;
    }
    used_.emplace(best->data, best->bytes);
    void* const found = best->data;
    bytes_ -= best->bytes;
    waiting_.erase(best);
    ++hits_;
    return found;
  }

  // Takes a buffer of get_buffer back; null is ignored. Throws InvalidArgumentError for any other
  // address.
  void return_buffer(void* data) {
    if (data == nullptr) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = used_.find(data);
    if (at == used_.end())
      throw InvalidArgumentError(
          "giving a buffer back: the cache has given none at that address, or has it back already",
          PFRT_CODE_INVALID_ARGUMENT);
    waiting_.push_front({data, at->second});
    bytes_ += at->second;
    used_.erase(at);
    while (waiting_.size() > max_buffers_ || bytes_ > max_bytes_) drop_last();
  }

  // get_buffer by another name.
  void* acquire(size_t bytes) { return get_buffer(bytes); }
  // return_buffer by another name.
  void release(void* data) { return_buffer(data); }

  // Frees all free buffers.
  void clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (!waiting_.empty()) drop_last();
  }

  // All figures at one moment.
  BufferCacheStats get_stats() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return {waiting_.size(), bytes_, hits_, misses_};
  }
  // Number of free buffers.
  size_t cached_buffers() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return waiting_.size();
  }
  // Bytes in free buffers.
  size_t cached_bytes() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return bytes_;
  }
  // Number of calls of get_buffer that found a buffer.
  size_t hits() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return hits_;
  }
  // Number of calls of get_buffer that made a buffer.
  size_t misses() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return misses_;
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Waiting {
    void* data;
    size_t bytes;
  };
  void drop_last() {
    ::operator delete(waiting_.back().data, kAlignment);
    bytes_ -= waiting_.back().bytes;
    waiting_.pop_back();
  }

  const size_t max_buffers_, max_bytes_;
  mutable std::mutex mutex_;
  std::list<Waiting> waiting_;  // the last given back first
  std::unordered_map<void*, size_t> used_;
  size_t bytes_ = 0, hits_ = 0, misses_ = 0;
};

// The cache of the process, made when it is first asked for and never destroyed.
inline BufferCache& global_buffer_cache() {
  static BufferCache* const the = new BufferCache;
  return *the;
}

}  // namespace memory
}  // namespace pyflame_rt

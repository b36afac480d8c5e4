// SPDX-License-Identifier: Apache-2.0
#include "core/memory/slabs.h"

#include <cstdlib>
#include <iterator>
#include <new>

#include "core/base/os/pages.h"

namespace pfrt {
namespace {

constexpr uint64_t kSmall = uint64_t{16} << 10;  // smaller ones come from the C library
// Small models take no large page up to here; beyond, as many small pages take longer than a large
// one.
constexpr uint64_t kFirst = uint64_t{256} << 10;
constexpr uint64_t kSlab = uint64_t{32} << 20;

}  // namespace

Slabs::~Slabs() {
  for (const auto& [data, slab] : slabs_) os::unmap_memory(data, slab.bytes);
}

void* Slabs::allocate(uint64_t bytes, uint64_t alignment) {
  if (bytes >= kSmall) {
    const std::lock_guard lock(mutex_);
    asked_ += bytes;
    if (asked_ > kFirst) return allocate_in_slab(bytes, alignment);
  }
  return std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(bytes));
}

void* Slabs::allocate_in_slab(uint64_t bytes, uint64_t alignment) {
  const auto place = [&](std::map<char*, Slab>::iterator at) -> void* {
    Slab& slab = at->second;
    const uint64_t offset = (slab.used + alignment - 1) / alignment * alignment;
    if (offset > slab.bytes || bytes > slab.bytes - offset) return nullptr;
    slab.used = offset + bytes;
    ++slab.blocks;
    return at->first + offset;
  };
  if (current_)
    if (void* data = place(slabs_.find(current_))) return data;
  const bool apart = bytes > kSlab / 2;
  const uint64_t size = apart ? bytes : kSlab;
  void* const made = os::map_memory(size);
  if (!made) return nullptr;
  try {
    const auto at = slabs_.emplace(static_cast<char*>(made), Slab{size}).first;
    if (!apart) current_ = at->first;
    return place(at);
  } catch (const std::bad_alloc&) {
    os::unmap_memory(made, size);
    return nullptr;
  }
}

void Slabs::free(void* data, uint64_t bytes) {
  if (bytes >= kSmall) {
    const std::lock_guard lock(mutex_);
    char* const block = static_cast<char*>(data);
    auto at = slabs_.upper_bound(block);
    if (at != slabs_.begin() && block < (--at)->first + at->second.bytes) {
      Slab& slab = at->second;
      if (--slab.blocks == 0) {
        if (current_ == at->first) current_ = nullptr;
        os::unmap_memory(at->first, slab.bytes);
        slabs_.erase(at);
        return;
      }
      // The addresses of the last block can be used for the next.
      if (block + bytes == at->first + slab.used) slab.used -= bytes;
      os::drop_pages(data, bytes);
      return;
    }
  }
  std::free(data);
}

}  // namespace pfrt

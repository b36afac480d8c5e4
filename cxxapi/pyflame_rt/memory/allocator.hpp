// SPDX-License-Identifier: Apache-2.0
//
// A client's own memory in place of the library's. Allocators are called from any thread, several
// at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <pyflame_rt/env.hpp>
#include <utility>

namespace pyflame_rt {
namespace memory {

// Source of memory, to be derived from.
class IAllocator {
 public:
  virtual ~IAllocator() = default;
  // Returns |size| bytes, never 0, for any object. Returning null, or throwing, means that there
  // are none.
  virtual void* Alloc(size_t size) = 0;
  // Takes back memory that Alloc gave.
  virtual void Free(void* p) = 0;
};

namespace detail {

// Allocates memory of an IAllocator at any alignment. The address that Alloc gave stands before the
// result.
inline void* aligned_from(IAllocator& from, uint64_t bytes, uint64_t alignment) {
  if (alignment < sizeof(void*)) alignment = sizeof(void*);
  if (bytes > SIZE_MAX - alignment - sizeof(void*)) return nullptr;
  void* const began = from.Alloc(static_cast<size_t>(bytes + alignment + sizeof(void*)));
  if (began == nullptr) return nullptr;
  char* const first = static_cast<char*>(began) + sizeof(void*);
  char* const data =
      first + (alignment - reinterpret_cast<uintptr_t>(first) % alignment) % alignment;
  std::memcpy(data - sizeof(void*), &began, sizeof(began));
  return data;
}

inline void free_aligned(IAllocator& from, void* data) {
  void* began;
  std::memcpy(&began, static_cast<char*>(data) - sizeof(void*), sizeof(began));
  from.Free(began);
}

// The C struct of |allocator|, which it keeps until release.
inline pfrt_allocator c_allocator(std::shared_ptr<IAllocator> allocator) {
  using Kept = std::shared_ptr<IAllocator>;
  pfrt_allocator c{};
  c.struct_size = sizeof(c);
  c.user = new Kept(std::move(allocator));
  c.allocate = [](void* user, uint64_t bytes, uint64_t alignment) -> void* {
    try {
      return aligned_from(**static_cast<Kept*>(user), bytes, alignment);
    } catch (...) {  // nothing may unwind through the C library
      return nullptr;
    }
  };
  c.free = [](void* user, void* data, uint64_t) {
    try {
      free_aligned(**static_cast<Kept*>(user), data);
    } catch (...) {  // as above
    }
  };
  c.release = [](void* user) { delete static_cast<Kept*>(user); };
  return c;
}

}  // namespace detail
}  // namespace memory

inline void Environment::set_allocator(std::shared_ptr<memory::IAllocator> allocator) {
  if (allocator == nullptr) {
    detail::check(api().env->set_allocator(handle(), nullptr));
    return;
  }
  const pfrt_allocator c = memory::detail::c_allocator(std::move(allocator));
  detail::check(api().env->set_allocator(handle(), &c));
}

}  // namespace pyflame_rt

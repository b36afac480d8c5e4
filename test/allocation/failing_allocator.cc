// SPDX-License-Identifier: Apache-2.0
//
// A program's own malloc comes before the C library's for all of its libraries, those opened with
// RTLD_DEEPBIND included: their operator new is libstdc++'s, which was bound before.
#include "test/allocation/failing_allocator.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* data);
}

namespace {

std::atomic<bool> armed{false};
std::atomic<bool> all_after{false};
std::atomic<bool> has_failed{false};
std::atomic<uint64_t> count{0};
std::atomic<uint64_t> fail_at{0};
std::atomic<int64_t> alive{0};

// Above 0 while this thread opens a library.
thread_local int opening = 0;

// Addresses of the dynamic loader's code.
uintptr_t loader_begin = 0, loader_end = 0;

int find_loader(dl_phdr_info* info, size_t, void*) {
  if (!std::strstr(info->dlpi_name, "ld-linux")) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (!loader_begin) loader_begin = begin;
    loader_end = begin + part.p_memsz;
  }
  return 1;
}

bool refuse(const void* caller) {
  if (!armed.load(std::memory_order_relaxed) || opening > 0) return false;
  const auto at = reinterpret_cast<uintptr_t>(caller);
  if (at >= loader_begin && at < loader_end) return false;
  const uint64_t n = count.fetch_add(1, std::memory_order_relaxed) + 1;
  const uint64_t chosen = fail_at.load(std::memory_order_relaxed);
  if (n != chosen && !(n > chosen && all_after.load(std::memory_order_relaxed))) return false;
  has_failed.store(true, std::memory_order_relaxed);
  errno = ENOMEM;
  return true;
}

void* counted(void* data) {
  if (data) alive.fetch_add(1, std::memory_order_relaxed);
  return data;
}

}  // namespace

namespace failing {

void arm(uint64_t nth, bool lasting) {
  if (!loader_begin) dl_iterate_phdr(find_loader, nullptr);
  count = 0;
  fail_at = nth;
  all_after = lasting;
  has_failed = false;
  armed = true;
}
bool disarm() {
  armed = false;
  return has_failed;
}
uint64_t requests() { return count; }
int64_t live() { return alive; }

}  // namespace failing

// GCC knows what malloc and its kin return and would drop the null checks around them.
#pragma GCC visibility push(default)
extern "C" {

void* malloc(size_t size) noexcept {
  return refuse(__builtin_return_address(0)) ? nullptr : counted(__libc_malloc(size));
}
void* calloc(size_t n, size_t size) noexcept {
  return refuse(__builtin_return_address(0)) ? nullptr : counted(__libc_calloc(n, size));
}
void* realloc(void* old, size_t size) noexcept {
  if (refuse(__builtin_return_address(0))) return nullptr;
  void* data = __libc_realloc(old, size);
  return old ? data : counted(data);
}
void* memalign(size_t alignment, size_t size) noexcept {
  return refuse(__builtin_return_address(0)) ? nullptr : counted(__libc_memalign(alignment, size));
}
void* aligned_alloc(size_t alignment, size_t size) noexcept {
  return refuse(__builtin_return_address(0)) ? nullptr : counted(__libc_memalign(alignment, size));
}
int posix_memalign(void** out, size_t alignment, size_t size) noexcept {
  if (refuse(__builtin_return_address(0))) return ENOMEM;
  void* data = counted(__libc_memalign(alignment, size));
  if (!data) return ENOMEM;
  *out = data;
  return 0;
}
void free(void* data) noexcept {
  if (data) alive.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(data);
}

void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  static const auto real = reinterpret_cast<decltype(&mmap)>(dlsym(RTLD_NEXT, "mmap"));
  if (refuse(__builtin_return_address(0))) return MAP_FAILED;
  void* data = real(at, size, protection, flags, fd, offset);
  if (data != MAP_FAILED) alive.fetch_add(1, std::memory_order_relaxed);
  return data;
}
int munmap(void* at, size_t size) noexcept {
  static const auto real = reinterpret_cast<decltype(&munmap)>(dlsym(RTLD_NEXT, "munmap"));
  alive.fetch_sub(1, std::memory_order_relaxed);
  return real(at, size);
}
void* dlopen(const char* path, int flags) noexcept {
  static const auto real = reinterpret_cast<decltype(&dlopen)>(dlsym(RTLD_NEXT, "dlopen"));
  ++opening;
  void* library = real(path, flags);
  --opening;
  return library;
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*fn)(void*),
                   void* arg) noexcept {
  static const auto real =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  if (refuse(__builtin_return_address(0))) return EAGAIN;
  return real(thread, attributes, fn, arg);
}
// This requests no memory, but thousands of saves need not reach the disk.
int fsync(int) { return 0; }
}
#pragma GCC visibility pop
